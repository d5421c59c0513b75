/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise loops: compiled once per level, TILE_LEVEL, with that level's instructions.
 *
 * Each row of loops.def becomes functions over arrays, one for every choice of operands that are a
 * single element, which the loop then keeps in a register.  Expressions have no branches, and no
 * undefined cases: what a conversion cannot represent is replaced before it. */
#include "emit/tile/loops.h"

#include <string.h>

#include <frit/types.h>

#include "emit/tile/lanes.h"
#include "ir/half.h"

static inline u32 sdiv32(u32 a, u32 b)
{
    if (b + 1 <= 1)
        return 0 - (a & b); /* b is 0 or -1 */
    return (u32)((i32)a / (i32)b);
}

static inline u64 sdiv64(u64 a, u64 b)
{
    if (b + 1 <= 1)
        return 0 - (a & b);
    return (u64)((i64)a / (i64)b);
}

static inline u32 wrap32(u32 a, i64 bits)
{
    return bits == 8 ? (u32)(int8_t)a : bits == 16 ? (u32)(int16_t)a : bits == -8 ? (u8)a : (u16)a;
}

static inline f32 round32(f32 a, u64 dtype)
{
    return dtype == FRIT_F16 ? f16_load(f16_store(a)) : bf16_load(bf16_store(a));
}

/* Saturating conversions: LEAST and BEYOND are exact in both float types. */
#define SATURATE(name, TO, FROM, LEAST, BEYOND, MIN, MAX)        \
    static inline TO name(FROM a)                                \
    {                                                            \
        TO in = (TO)(a >= (LEAST) && a < (BEYOND) ? a : 0);      \
        return a >= (BEYOND) ? (MAX) : a < (LEAST) ? (MIN) : in; \
    }

SATURATE(i32_f32, i32, f32, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)
SATURATE(i32_f64, i32, f64, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)
SATURATE(i64_f32, i64, f32, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)
SATURATE(i64_f64, i64, f64, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)
SATURATE(u32_f32, u32, f32, 0.0f, 0x1p32f, 0, UINT32_MAX)
SATURATE(u32_f64, u32, f64, 0.0, 0x1p32, 0, UINT32_MAX)
SATURATE(u64_f32, u64, f32, 0.0f, 0x1p64f, 0, UINT64_MAX)
SATURATE(u64_f64, u64, f64, 0.0, 0x1p64, 0, UINT64_MAX)

/* One function: `ones` says which operands are single. */
#define LOOP(name, ones, TO, A, B, C, expression)                                         \
    static void name(void *out, const void *pa, const void *pb, const void *pc, size_t n, \
                     uint64_t imm)                                                        \
    {                                                                                     \
        TO *to = out;                                                                     \
        const A *as = pa, a0 = *as;                                                       \
        const B *bs = pb, b0 = *bs;                                                       \
        const C *cs = pc, c0 = *cs;                                                       \
        (void)imm;                                                                        \
        TILE_LANES                                                                        \
        for (size_t i = 0; i < n; i++) {                                                  \
            const A a = (ones)&TILE_ONE_A ? a0 : as[i];                                   \
            const B b = (ones)&TILE_ONE_B ? b0 : bs[i];                                   \
            const C c = (ones)&TILE_ONE_C ? c0 : cs[i];                                   \
            (void)b, (void)c;                                                             \
            to[i] = (expression);                                                         \
        }                                                                                 \
    }

/* Operands that a row does not have are read as single bytes of operand a. */
#define LOOP1(op, TYPE, TO, A, expression)              \
    LOOP(op##_##TYPE##_0, 6, TO, A, u8, u8, expression) \
    LOOP(op##_##TYPE##_1, 7, TO, A, u8, u8, expression)
#define LOOP2(op, TYPE, TO, A, expression)             \
    LOOP(op##_##TYPE##_0, 4, TO, A, A, u8, expression) \
    LOOP(op##_##TYPE##_1, 5, TO, A, A, u8, expression) \
    LOOP(op##_##TYPE##_2, 6, TO, A, A, u8, expression)
#define LOOP3(op, TYPE, TO, A, B, C, expression)      \
    LOOP(op##_##TYPE##_0, 0, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_1, 1, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_2, 2, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_3, 3, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_4, 4, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_5, 5, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_6, 6, TO, A, B, C, expression)
#include "emit/tile/loops.def"

/* Across lanes, and lines. */
#define ACROSS(T)                                                                              \
    static void exchange_##T(void *out, const void *a, const void *b, const void *c, size_t n, \
                             uint64_t imm)                                                     \
    {                                                                                          \
        T *to = out;                                                                           \
        const T *from = a;                                                                     \
        (void)b, (void)c;                                                                      \
        for (size_t i = 0; i < n; i += 2 * imm) {                                              \
            memcpy(to + i, from + i + imm, imm * sizeof(T));                                   \
            memcpy(to + i + imm, from + i, imm * sizeof(T));                                   \
        }                                                                                      \
    }                                                                                          \
    static void shift_##T(void *out, const void *a, const void *b, const void *c, size_t n,    \
                          uint64_t imm)                                                        \
    {                                                                                          \
        size_t own = imm < n ? imm : n;                                                        \
        (void)b, (void)c;                                                                      \
        memcpy(out, a, own * sizeof(T));                                                       \
        memcpy((T *)out + own, a, (n - own) * sizeof(T));                                      \
    }                                                                                          \
    static void line_##T(void *out, const void *a, const void *b, const void *c, size_t n,     \
                         uint64_t imm)                                                         \
    {                                                                                          \
        T *to = out;                                                                           \
        const T first = *(const T *)a, step = (T)imm;                                          \
        (void)b, (void)c;                                                                      \
        TILE_LANES                                                                             \
        for (size_t i = 0; i < n; i++)                                                         \
            to[i] = first + (T)i * step;                                                       \
    }
ACROSS(u32)
ACROSS(u64)

#define LOOP1(op, TYPE, TO, A, expression) \
    [KIR_##op][KIR_##TYPE] = {op##_##TYPE##_0, op##_##TYPE##_1},
#define LOOP2(op, TYPE, TO, A, expression) \
    [KIR_##op][KIR_##TYPE] = {op##_##TYPE##_0, op##_##TYPE##_1, op##_##TYPE##_2},
#define LOOP3(op, TYPE, TO, A, B, C, expression)                                                  \
    [KIR_##op][KIR_##TYPE] = {op##_##TYPE##_0, op##_##TYPE##_1, op##_##TYPE##_2, op##_##TYPE##_3, \
                              op##_##TYPE##_4, op##_##TYPE##_5, op##_##TYPE##_6},

extern tile_move *const TILE_NAME(tile_load)[TILE_KINDS][TILE_WAYS];
extern tile_move *const TILE_NAME(tile_store)[TILE_KINDS][TILE_WAYS];

const struct tile_loops TILE_NAME(tile_loops) = {
    .loop =
        {
#include "emit/tile/loops.def"
        },
    .exchange = {exchange_u32, exchange_u64},
    .shift = {shift_u32, shift_u64},
    .line = {line_u32, line_u64},
    .load = TILE_NAME(tile_load),
    .store = TILE_NAME(tile_store),
};
