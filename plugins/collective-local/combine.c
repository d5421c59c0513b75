/* SPDX-License-Identifier: Apache-2.0 */
#include "combine.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <frit/types.h>

#include "ir/half.h"

/* Elements that are summed at a time: the sums stay in the first-level cache. */
enum { BLOCK = 2048 };

union sums {
    float f32[BLOCK];
    double f64[BLOCK];
    uint64_t u64[BLOCK];
};

/* The loops of one element type.  `sums` holds `count` sums of the type that values are summed in.
 */
struct combiner {
    uint32_t dtype;
    uint32_t bytes; /* of an element */
    void (*start)(void *restrict sums, const char *restrict from, size_t count);
    void (*add)(void *restrict sums, const char *restrict from, size_t count);
    void (*divide)(void *sums, size_t count, uint32_t by);
    void (*store)(char *restrict into, const void *restrict sums, size_t count);
};

/* ---- loops ---- */

#define SAME(value)     (value)
#define FROM_F16(value) half_load(value, 10)
#define TO_F16(value)   half_store(value, 10)
#define FROM_BF16(x)    half_load(x, 7)
#define TO_BF16(value)  half_store(value, 7)
#define PLUS(a, b)      ((a) + (b))
#define WRAP_I64(a, b)  (int64_t)((uint64_t)(a) + (uint64_t)(b))

/* Elements are moved by memcpy, so no alignment is assumed. */
#define COMBINER(NAME, element, sum, LOAD, STORE, ADD)                                     \
    static void start_##NAME(void *restrict sums, const char *restrict from, size_t count) \
    {                                                                                      \
        sum *restrict to = sums;                                                           \
                                                                                           \
        for (size_t i = 0; i < count; i++) {                                               \
            element value;                                                                 \
                                                                                           \
            memcpy(&value, from + i * sizeof(value), sizeof(value));                       \
            to[i] = (sum)LOAD(value);                                                      \
        }                                                                                  \
    }                                                                                      \
    static void add_##NAME(void *restrict sums, const char *restrict from, size_t count)   \
    {                                                                                      \
        sum *restrict to = sums;                                                           \
                                                                                           \
        for (size_t i = 0; i < count; i++) {                                               \
            element value;                                                                 \
                                                                                           \
            memcpy(&value, from + i * sizeof(value), sizeof(value));                       \
            to[i] = (sum)ADD(to[i], (sum)LOAD(value));                                     \
        }                                                                                  \
    }                                                                                      \
    static void divide_##NAME(void *sums, size_t count, uint32_t by)                       \
    {                                                                                      \
        sum *to = sums;                                                                    \
                                                                                           \
        for (size_t i = 0; i < count; i++)                                                 \
            to[i] = (sum)(to[i] / (sum)by);                                                \
    }                                                                                      \
    static void store_##NAME(char *restrict into, const void *restrict sums, size_t count) \
    {                                                                                      \
        const sum *restrict of = sums;                                                     \
                                                                                           \
        for (size_t i = 0; i < count; i++) {                                               \
            const element value = (element)STORE(of[i]);                                   \
                                                                                           \
            memcpy(into + i * sizeof(value), &value, sizeof(value));                       \
        }                                                                                  \
    }

COMBINER(f64, double, double, SAME, SAME, PLUS)
COMBINER(f32, float, float, SAME, SAME, PLUS)
COMBINER(f16, uint16_t, float, FROM_F16, TO_F16, PLUS)
COMBINER(bf16, uint16_t, float, FROM_BF16, TO_BF16, PLUS)
COMBINER(u64, uint64_t, uint64_t, SAME, SAME, PLUS)
COMBINER(u32, uint32_t, uint32_t, SAME, SAME, PLUS)
COMBINER(u16, uint16_t, uint16_t, SAME, SAME, PLUS)
COMBINER(u8, uint8_t, uint8_t, SAME, SAME, PLUS)
COMBINER(wide_i64, int64_t, int64_t, SAME, SAME, WRAP_I64)
COMBINER(wide_i32, int32_t, int64_t, SAME, SAME, PLUS)
COMBINER(wide_i16, int16_t, int64_t, SAME, SAME, PLUS)
COMBINER(wide_i8, int8_t, int64_t, SAME, SAME, PLUS)
COMBINER(wide_u32, uint32_t, uint64_t, SAME, SAME, PLUS)
COMBINER(wide_u16, uint16_t, uint64_t, SAME, SAME, PLUS)
COMBINER(wide_u8, uint8_t, uint64_t, SAME, SAME, PLUS)

/* ---- the tables ---- */

#define LOOPS(NAME) start_##NAME, add_##NAME, divide_##NAME, store_##NAME

static const struct combiner sums[] = {
    {FRIT_F64, 8, LOOPS(f64)},   {FRIT_F32, 4, LOOPS(f32)}, {FRIT_F16, 2, LOOPS(f16)},
    {FRIT_BF16, 2, LOOPS(bf16)}, {FRIT_I64, 8, LOOPS(u64)}, {FRIT_U64, 8, LOOPS(u64)},
    {FRIT_I32, 4, LOOPS(u32)},   {FRIT_U32, 4, LOOPS(u32)}, {FRIT_I16, 2, LOOPS(u16)},
    {FRIT_U16, 2, LOOPS(u16)},   {FRIT_I8, 1, LOOPS(u8)},   {FRIT_U8, 1, LOOPS(u8)},
};

static const struct combiner means[] = {
    {FRIT_F64, 8, LOOPS(f64)},      {FRIT_F32, 4, LOOPS(f32)},      {FRIT_F16, 2, LOOPS(f16)},
    {FRIT_BF16, 2, LOOPS(bf16)},    {FRIT_I64, 8, LOOPS(wide_i64)}, {FRIT_U64, 8, LOOPS(u64)},
    {FRIT_I32, 4, LOOPS(wide_i32)}, {FRIT_U32, 4, LOOPS(wide_u32)}, {FRIT_I16, 2, LOOPS(wide_i16)},
    {FRIT_U16, 2, LOOPS(wide_u16)}, {FRIT_I8, 1, LOOPS(wide_i8)},   {FRIT_U8, 1, LOOPS(wide_u8)},
};

static_assert(sizeof(sums) == sizeof(means), "the same types");

static const struct combiner *find(uint32_t dtype, bool mean)
{
    const struct combiner *table = mean ? means : sums;

    for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
        if (table[i].dtype == dtype)
            return &table[i];
    }
    return NULL;
}

bool combine_has(uint32_t dtype)
{
    return find(dtype, false);
}

void combine_run(const struct combine *c)
{
    const struct combiner *loops = find(c->dtype, c->mean);
    union sums block;

    for (uint64_t done = 0; done < c->count; done += BLOCK) {
        const size_t n = c->count - done < BLOCK ? (size_t)(c->count - done) : BLOCK;
        const uint64_t from = (c->from_at + done) * loops->bytes;
        const uint64_t into = (c->into_at + done) * loops->bytes;

        loops->start(&block, (const char *)c->from[0] + from, n);
        for (uint32_t r = 1; r < c->n_from; r++)
            loops->add(&block, (const char *)c->from[r] + from, n);
        if (c->mean)
            loops->divide(&block, n, c->n_from);
        for (uint32_t r = 0; r < c->n_into; r++)
            loops->store((char *)c->into[r] + into, &block, n);
    }
}
