/* SPDX-License-Identifier: Apache-2.0 */
#include "combine.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <frit/types.h>

#include "narrow.h"

/* Elements that are combined at a time: their sums stay in the first-level cache. */
enum { BLOCK = 1024 };

union block {
    uint16_t u16[BLOCK];
    float f32[BLOCK];
    double f64[BLOCK];
    int64_t i64[BLOCK];
};

/* The loops of one element type.  `sums` holds `count` sums of the type that values are summed in.
 */
struct combiner {
    uint32_t dtype;
    uint32_t bytes; /* of an element */
    void (*start)(void *restrict sums, const char *restrict a, const char *restrict b,
                  size_t count);
    void (*add)(void *restrict sums, const char *restrict from, size_t count);
    void (*divide)(void *sums, size_t count, uint32_t by);
    /* To elements; NULL: sums are elements. */
    void (*convert)(void *restrict into, const void *restrict sums, size_t count);
    /* The sums of two arrays, or half of them, to two, each of which may be an operand; NULL: not
     * of this type. */
    void (*exchange)(char *const into[2], const char *a, const char *b, size_t count, bool halved);
};

/* ---- loops ---- */

#define SAME(value)    (value)
#define PLUS(a, b)     ((a) + (b))
#define WRAP_I64(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))

/* The macros take types, which are not in parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */

/* Operands are read by memcpy, so no alignment is assumed. */
#define COMBINER(NAME, element, sum, LOAD, ADD)                                                   \
    static inline sum load_##NAME(const char *from, size_t i)                                     \
    {                                                                                             \
        element value;                                                                            \
                                                                                                  \
        memcpy(&value, from + i * sizeof(value), sizeof(value));                                  \
        return (sum)LOAD(value);                                                                  \
    }                                                                                             \
    static void start_##NAME(void *restrict sums, const char *restrict a, const char *restrict b, \
                             size_t count)                                                        \
    {                                                                                             \
        sum *restrict to = sums;                                                                  \
                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                        \
            to[i] = (sum)ADD(load_##NAME(a, i), load_##NAME(b, i));                               \
    }                                                                                             \
    static void add_##NAME(void *restrict sums, const char *restrict from, size_t count)          \
    {                                                                                             \
        sum *restrict to = sums;                                                                  \
                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                        \
            to[i] = (sum)ADD(to[i], load_##NAME(from, i));                                        \
    }

#define DIVISION(NAME, sum)                                          \
    static void divide_##NAME(void *sums, size_t count, uint32_t by) \
    {                                                                \
        sum *to = sums;                                              \
                                                                     \
        for (size_t i = 0; i < count; i++)                           \
            to[i] = (sum)(to[i] / (sum)by);                          \
    }

/* The product with the inverse of a power of two has the same bits, and is faster. */
#define FLOAT_DIVISION(NAME, sum)                                    \
    static void divide_##NAME(void *sums, size_t count, uint32_t by) \
    {                                                                \
        const sum inverse = 1 / (sum)by;                             \
        sum *to = sums;                                              \
                                                                     \
        if (by & (by - 1)) {                                         \
            for (size_t i = 0; i < count; i++)                       \
                to[i] /= (sum)by;                                    \
        } else {                                                     \
            for (size_t i = 0; i < count; i++)                       \
                to[i] *= inverse;                                    \
        }                                                            \
    }

/* No iteration needs what another one writes: an `into` is an operand or overlaps none. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define EXCHANGE_LOOP(element, SUM)                          \
    char *first = into[0], *second = into[1];                \
                                                             \
    INDEPENDENT                                              \
    for (size_t i = 0; i < count; i++) {                     \
        const element sum = (element)(SUM);                  \
                                                             \
        memcpy(first + i * sizeof(sum), &sum, sizeof(sum));  \
        memcpy(second + i * sizeof(sum), &sum, sizeof(sum)); \
    }

#define EXCHANGE(NAME, element)                                                                  \
    static void exchange_##NAME(char *const into[2], const char *a, const char *b, size_t count, \
                                bool halved)                                                     \
    {                                                                                            \
        EXCHANGE_LOOP(element, load_##NAME(a, i) + load_##NAME(b, i))                            \
        (void)halved;                                                                            \
    }

#define FLOAT_EXCHANGE(NAME, element)                                                            \
    static void exchange_##NAME(char *const into[2], const char *a, const char *b, size_t count, \
                                bool halved)                                                     \
    {                                                                                            \
        const element scale = halved ? (element)0.5 : 1;                                         \
        EXCHANGE_LOOP(element, (load_##NAME(a, i) + load_##NAME(b, i)) * scale)                  \
    }

#define CONVERSION(NAME, element, sum, CONVERT)                                              \
    static void convert_##NAME(void *restrict into, const void *restrict sums, size_t count) \
    {                                                                                        \
        element *restrict to = into;                                                         \
        const sum *restrict of = sums;                                                       \
                                                                                             \
        for (size_t i = 0; i < count; i++)                                                   \
            to[i] = (element)CONVERT(of[i]);                                                 \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#define FLOATS(NAME, element)                    \
    COMBINER(NAME, element, element, SAME, PLUS) \
    FLOAT_DIVISION(NAME, element)                \
    FLOAT_EXCHANGE(NAME, element)

#define INTEGERS(NAME, element)                  \
    COMBINER(NAME, element, element, SAME, PLUS) \
    EXCHANGE(NAME, element)

FLOATS(f64, double)
FLOATS(f32, float)
INTEGERS(u64, uint64_t)
INTEGERS(u32, uint32_t)
INTEGERS(u16, uint16_t)
INTEGERS(u8, uint8_t)

/* Of 16 bits, in f32. */
#define NARROW(NAME, dtype)                                                                       \
    static void add_##NAME(void *restrict sums, const char *restrict from, size_t count)          \
    {                                                                                             \
        float *restrict to = sums, terms[BLOCK];                                                  \
                                                                                                  \
        narrow_best(dtype)->load(terms, from, count);                                             \
        for (size_t i = 0; i < count; i++)                                                        \
            to[i] += terms[i];                                                                    \
    }                                                                                             \
    static void start_##NAME(void *restrict sums, const char *restrict a, const char *restrict b, \
                             size_t count)                                                        \
    {                                                                                             \
        narrow_best(dtype)->load(sums, a, count);                                                 \
        add_##NAME(sums, b, count);                                                               \
    }                                                                                             \
    static void convert_##NAME(void *restrict into, const void *restrict sums, size_t count)      \
    {                                                                                             \
        narrow_best(dtype)->store(into, sums, count);                                             \
    }                                                                                             \
    static void exchange_##NAME(char *const into[2], const char *a, const char *b, size_t count,  \
                                bool halved)                                                      \
    {                                                                                             \
        narrow_best(dtype)->exchange(into, a, b, count, halved);                                  \
    }

NARROW(f16, FRIT_F16)
NARROW(bf16, FRIT_BF16)

/* Integers in 64 bits, for means. */
#define WIDE(NAME, element, sum, ADD)              \
    COMBINER(wide_##NAME, element, sum, SAME, ADD) \
    DIVISION(wide_##NAME, sum)                     \
    CONVERSION(wide_##NAME, element, sum, SAME)

WIDE(i64, int64_t, int64_t, WRAP_I64)
WIDE(i32, int32_t, int64_t, PLUS)
WIDE(i16, int16_t, int64_t, PLUS)
WIDE(i8, int8_t, int64_t, PLUS)
WIDE(u64, uint64_t, uint64_t, PLUS)
WIDE(u32, uint32_t, uint64_t, PLUS)
WIDE(u16, uint16_t, uint64_t, PLUS)
WIDE(u8, uint8_t, uint64_t, PLUS)

/* ---- the tables ---- */

#define FLOAT(NAME) start_##NAME, add_##NAME, divide_##NAME, NULL, exchange_##NAME
#define SHORT(NAME) start_##NAME, add_##NAME, divide_f32, convert_##NAME, exchange_##NAME
#define WRAPS(NAME) start_##NAME, add_##NAME, NULL, NULL, exchange_##NAME
#define WIDENS(NAME) \
    start_wide_##NAME, add_wide_##NAME, divide_wide_##NAME, convert_wide_##NAME, NULL

static const struct combiner sums[] = {
    {FRIT_F64, 8, FLOAT(f64)},   {FRIT_F32, 4, FLOAT(f32)}, {FRIT_F16, 2, SHORT(f16)},
    {FRIT_BF16, 2, SHORT(bf16)}, {FRIT_I64, 8, WRAPS(u64)}, {FRIT_U64, 8, WRAPS(u64)},
    {FRIT_I32, 4, WRAPS(u32)},   {FRIT_U32, 4, WRAPS(u32)}, {FRIT_I16, 2, WRAPS(u16)},
    {FRIT_U16, 2, WRAPS(u16)},   {FRIT_I8, 1, WRAPS(u8)},   {FRIT_U8, 1, WRAPS(u8)},
};

static const struct combiner means[] = {
    {FRIT_F64, 8, FLOAT(f64)},   {FRIT_F32, 4, FLOAT(f32)},  {FRIT_F16, 2, SHORT(f16)},
    {FRIT_BF16, 2, SHORT(bf16)}, {FRIT_I64, 8, WIDENS(i64)}, {FRIT_U64, 8, WIDENS(u64)},
    {FRIT_I32, 4, WIDENS(i32)},  {FRIT_U32, 4, WIDENS(u32)}, {FRIT_I16, 2, WIDENS(i16)},
    {FRIT_U16, 2, WIDENS(u16)},  {FRIT_I8, 1, WIDENS(i8)},   {FRIT_U8, 1, WIDENS(u8)},
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

static void copy_to_all(const struct combine *c, const void *elements, uint64_t at, size_t bytes)
{
    for (uint32_t r = 0; r < c->n_into; r++) {
        char *into = (char *)c->into[r] + at;

        if (into != elements)
            memcpy(into, elements, bytes);
    }
}

/* Elements `done` and on, of at most a block. */
static void combine_block(const struct combine *c, const struct combiner *loops, uint64_t done,
                          size_t count)
{
    const uint64_t from = (c->from_at + done) * loops->bytes;
    union block block, converted;

    loops->start(&block, (const char *)c->from[0] + from, (const char *)c->from[1] + from, count);
    for (uint32_t r = 2; r < c->n_from; r++)
        loops->add(&block, (const char *)c->from[r] + from, count);
    if (c->mean)
        loops->divide(&block, count, c->n_from);
    if (loops->convert)
        loops->convert(&converted, &block, count);
    copy_to_all(c, loops->convert ? &converted : &block, (c->into_at + done) * loops->bytes,
                count * loops->bytes);
}

void combine_run(const struct combine *c)
{
    const struct combiner *loops = find(c->dtype, c->mean);
    const uint64_t from = c->from_at * loops->bytes, into = c->into_at * loops->bytes;
    const char *first = (const char *)c->from[0] + from;

    if (c->n_from == 1) {
        copy_to_all(c, first, into, (size_t)(c->count * loops->bytes));
        return;
    }
    if (c->n_from == 2 && c->n_into <= 2 && loops->exchange) {
        loops->exchange(
            (char *[]){(char *)c->into[0] + into, (char *)c->into[c->n_into - 1] + into}, first,
            (const char *)c->from[1] + from, (size_t)c->count, c->mean);
        return;
    }
    for (uint64_t done = 0; done < c->count; done += BLOCK)
        combine_block(c, loops, done, c->count - done < BLOCK ? (size_t)(c->count - done) : BLOCK);
}
