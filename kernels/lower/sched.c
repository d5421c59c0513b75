/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of modules and their values. */
#include "lower/sched.h"

#include <string.h>

#include "base/fail.h"

/* Of groups that run on threads: the more threads there are, the likelier it is that one of them is
 * late, and others have to take some of its groups. */
enum { MANY_THREADS = 8, GROUPS_PER_THREAD = 4 };

/* Returns `array`, or a larger copy of it, with room for one more element; NULL if out of memory.
 * The arena keeps the old array. */
static void *grow(struct arena *arena, void *array, uint32_t n, uint32_t *capacity, size_t item)
{
    uint32_t grown_capacity = *capacity ? 2 * *capacity : 16;
    void *grown;

    if (n < *capacity)
        return array;
    grown = arena_array(arena, grown_capacity, item);
    if (!grown)
        return NULL;
    if (n)
        memcpy(grown, array, n * item);
    *capacity = grown_capacity;
    return grown;
}

uint32_t sched_add_param(struct sched *s, enum kir_type type, uint64_t bits)
{
    struct sched_numbers *numbers = s->numbers;

    uint64_t *words = grow(&numbers->arena, numbers->words, numbers->n_words,
                           &numbers->words_capacity, sizeof(*words));

    if (!words) {
        s->module->failed = true;
        return KIR_NONE;
    }
    numbers->words = words;
    words[numbers->n_words++] = bits;
    return kir_param(s->module, type);
}

frit_status sched_check_rounds(const struct sched *s, int64_t rounds, frit_err *err)
{
    if (!s->target->max_rounds || rounds <= s->target->max_rounds)
        return FRIT_OK;
    return fail(err, FRIT_UNSUPPORTED, "kernels: %s has longer loops than the device completes",
                s->module->name);
}

uint32_t sched_lanes(uint32_t most, int64_t n)
{
    while (most > SCHED_MIN_LANES && most / 2 >= n)
        most /= 2;
    return most;
}

struct kir_tuning sched_tuning(const struct sched *s)
{
    return kir_tuning_filled(&s->target->tuning, s->target->rereads_are_cached);
}

uint32_t sched_spread_lanes(const struct sched *s, uint32_t lanes, int64_t n)
{
    const uint32_t many = sched_tuning(s).many_rows;
    const uint32_t least = many < SCHED_MIN_LANES ? SCHED_MIN_LANES : many;
    int64_t groups = s->target->units;

    if (s->target->lanes_interleaved && groups >= MANY_THREADS)
        groups *= GROUPS_PER_THREAD;
    while (lanes > least && n / lanes < groups)
        lanes /= 2;
    return lanes;
}

uint64_t sched_bytes(const struct sched *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->block->n_inputs + s->block->n_outputs; i++) {
        const frit_arg_sig *arg = frit_arg_sig_at(s->sig, i);
        int64_t count = 1;

        for (uint32_t d = 0; d < arg->rank; d++)
            if (arg->strides[d])
                count *= arg->dims[d];
        bytes += frit_storage_bytes(arg->dtype, count);
    }
    return bytes;
}

uint32_t sched_add_index(struct sched *s, int64_t value)
{
    return sched_add_param(s, kir_index_type(s->module), (uint64_t)value);
}

/* Adds a parameter whose value is set at launch. */
static uint32_t add_late_param(struct sched *s, const struct sched_late *what)
{
    struct sched_numbers *numbers = s->numbers;
    struct sched_late *late = grow(&numbers->arena, numbers->late, numbers->n_late,
                                   &numbers->late_capacity, sizeof(*late));

    if (!late) {
        s->module->failed = true;
        return KIR_NONE;
    }
    numbers->late = late;
    late[numbers->n_late] = *what;
    late[numbers->n_late++].word = numbers->n_words;
    return sched_add_param(s, (enum kir_type)what->type, 0);
}

uint32_t sched_add_scalar(struct sched *s, uint32_t scalar, enum kir_type type)
{
    return add_late_param(s, &(struct sched_late){.number = scalar, .type = (uint32_t)type});
}

uint32_t sched_add_bound(struct sched *s, uint32_t bound, int64_t min, int64_t max, int64_t offset)
{
    return add_late_param(s, &(struct sched_late){.number = bound,
                                                  .type = kir_index_type(s->module),
                                                  .from = SCHED_BOUND,
                                                  .min = min,
                                                  .max = max,
                                                  .offset = offset});
}

bool sched_bound_known(const struct sched *s, uint32_t bound, int64_t *value)
{
    static const int64_t values[] = {[FRIT_SCALAR_CLASS_ONE] = 1,
                                     [FRIT_SCALAR_CLASS_MINUS_ONE] = -1,
                                     [FRIT_SCALAR_CLASS_TWO] = 2};
    uint32_t class = s->sig->bound_classes ? s->sig->bound_classes[bound] : FRIT_SCALAR_CLASS_OTHER;

    if (class == FRIT_SCALAR_CLASS_OTHER || class > FRIT_SCALAR_CLASS_TWO)
        return false;
    *value = values[class];
    return true;
}

uint32_t sched_wide(struct sched *s, uint32_t value)
{
    if (!s->module->wide)
        return value;
    return kir_unary(s->module, KIR_i64, value);
}

/* Replaces the division by a multiplication (Granlund and Montgomery, PLDI 1994).  Let
 * s = ceil(log2(by)) - 1 and f = ceil(2^(32 + s) / by).  For 0 <= x < 2^31 and by > 1, floor(x /
 * by) is the high half of x * f, shifted right by s. */
struct sched_divisor sched_add_divisor(struct sched *s, int64_t by)
{
    struct sched_divisor divisor = {KIR_NONE, KIR_NONE, KIR_NONE};
    uint32_t shift = 0;
    uint64_t factor;

    if (s->module->wide) {
        divisor.by = sched_add_index(s, by);
        return divisor;
    }
    while ((int64_t)2 << shift < by)
        shift++;
    factor = ((1ull << (32 + shift)) + (uint64_t)by - 1) / (uint64_t)by;
    divisor.factor = sched_add_index(s, (int64_t)factor);
    divisor.shift = sched_add_index(s, shift);
    return divisor;
}

uint32_t sched_divide(struct sched *s, const struct sched_divisor *divisor, uint32_t x)
{
    if (s->module->wide)
        return kir_binary(s->module, KIR_udiv, x, divisor->by);
    x = kir_binary(s->module, KIR_mulhi, x, divisor->factor);
    return kir_binary(s->module, KIR_shr, x, divisor->shift);
}
