/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a launch: each parameter of the module gets its word when it is made. */
#include "lower/sched.h"

#include <string.h>

/* The array with room for one more; NULL without memory.  What it grew out of stays in the arena.
 */
static void *grow(struct arena *arena, void *array, uint32_t n, uint32_t *room, size_t item)
{
    uint32_t more = *room ? 2 * *room : 16;
    void *grown;

    if (n < *room)
        return array;
    grown = arena_array(arena, more, item);
    if (!grown)
        return NULL;
    if (n)
        memcpy(grown, array, n * item);
    *room = more;
    return grown;
}

uint32_t sched_word(struct sched *s, enum kir_type type, uint64_t bits)
{
    struct sched_numbers *numbers = s->numbers;

    uint64_t *words = grow(&numbers->arena, numbers->words, numbers->n_words, &numbers->words_room,
                           sizeof(*words));

    if (!words) {
        s->module->failed = true;
        return KIR_NONE;
    }
    numbers->words = words;
    words[numbers->n_words++] = bits;
    return kir_param(s->module, type);
}

uint64_t sched_bytes(const struct sched *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->block->n_inputs + s->block->n_outputs; i++) {
        const frit_arg_sig *arg =
            (const frit_arg_sig *)(const void *)((const char *)s->sig->args +
                                                 (size_t)i * s->sig->arg_stride);
        int64_t count = 1;

        for (uint32_t d = 0; d < arg->rank; d++)
            if (arg->strides[d])
                count *= arg->dims[d];
        bytes += frit_storage_bytes(arg->dtype, count);
    }
    return bytes;
}

uint32_t sched_index(struct sched *s, int64_t value)
{
    return sched_word(s, s->module->wide ? KIR_I64 : KIR_I32, (uint64_t)value);
}

uint32_t sched_scalar(struct sched *s, uint32_t scalar, enum kir_type type)
{
    struct sched_numbers *numbers = s->numbers;
    struct sched_late *late =
        grow(&numbers->arena, numbers->late, numbers->n_late, &numbers->late_room, sizeof(*late));

    if (!late) {
        s->module->failed = true;
        return KIR_NONE;
    }
    numbers->late = late;
    late[numbers->n_late++] = (struct sched_late){numbers->n_words, scalar, (uint32_t)type};
    return sched_word(s, type, 0);
}

uint32_t sched_wide(struct sched *s, uint32_t value)
{
    if (!s->module->wide)
        return value;
    return kir_emit(s->module, KIR_i64, value, KIR_NONE, KIR_NONE);
}

/* floor(x / by) of 0 <= x < 2^31 is the high half of x * f, shifted right by s, with
 * s = ceil(log2(by)) - 1 and f = ceil(2^(32 + s) / by) (Granlund and Montgomery, PLDI 1994); by
 * > 1. */
struct sched_divisor sched_divisor(struct sched *s, int64_t by)
{
    struct sched_divisor divisor = {KIR_NONE, KIR_NONE, KIR_NONE};
    uint32_t shift = 0;
    uint64_t factor;

    if (s->module->wide) {
        divisor.by = sched_index(s, by);
        return divisor;
    }
    while ((int64_t)2 << shift < by)
        shift++;
    factor = ((1ull << (32 + shift)) + (uint64_t)by - 1) / (uint64_t)by;
    divisor.factor = sched_index(s, (int64_t)factor);
    divisor.shift = sched_index(s, shift);
    return divisor;
}

uint32_t sched_divide(struct sched *s, const struct sched_divisor *divisor, uint32_t x)
{
    if (s->module->wide)
        return kir_emit(s->module, KIR_udiv, x, divisor->by, KIR_NONE);
    x = kir_emit(s->module, KIR_mulhi, x, divisor->factor, KIR_NONE);
    return kir_emit(s->module, KIR_shr, x, divisor->shift, KIR_NONE);
}

const struct schedule *const schedules[] = {&sched_map, &sched_row};
const uint32_t n_schedules = sizeof(schedules) / sizeof(schedules[0]);
