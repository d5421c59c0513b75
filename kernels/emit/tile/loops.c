/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise loops: compiled once per level, TILE_LEVEL, with that level's instructions.
 *
 * Each row of rows.def becomes functions over arrays, one for every choice of operands that are a
 * single element, which the loop then keeps in a register.  Expressions have no branches, and no
 * undefined cases: what a conversion cannot represent is replaced before it. */
#include "emit/tile/loops.h"

#include <string.h>

#include <frit/types.h>

#include "emit/tile/lanes.h"

#define FUNCTION(...) __VA_ARGS__
#include "emit/rows.def"

/* Types take no parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */

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
#define ROW1(op, TYPE, TO, A, expression) LOOP(op##_##TYPE##_0, 6, TO, A, u8, u8, expression)
#define ROW2(op, TYPE, TO, A, expression)              \
    LOOP(op##_##TYPE##_0, 4, TO, A, A, u8, expression) \
    LOOP(op##_##TYPE##_1, 5, TO, A, A, u8, expression) \
    LOOP(op##_##TYPE##_2, 6, TO, A, A, u8, expression)
#define ROW3(op, TYPE, TO, A, B, C, expression)       \
    LOOP(op##_##TYPE##_0, 0, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_1, 1, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_2, 2, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_3, 3, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_4, 4, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_5, 5, TO, A, B, C, expression) \
    LOOP(op##_##TYPE##_6, 6, TO, A, B, C, expression)
#define ROUND(KIND, expression) LOOP(round_##KIND, 6, f32, f32, u8, u8, expression)
#include "emit/rows.def"

/* Exchange at a known distance, which becomes a shuffle. */
#define SWAP(T, by)                             \
    for (size_t i = 0; i < n; i += 2 * (by)) {  \
        for (size_t j = i; j < i + (by); j++) { \
            to[j] = from[j + (by)];             \
            to[j + (by)] = from[j];             \
        }                                       \
    }

#define EXCHANGE(T)                                                                           \
    static void exchange_##T(void *restrict out, const void *a, const void *b, const void *c, \
                             size_t n, uint64_t imm)                                          \
    {                                                                                         \
        T *restrict to = out;                                                                 \
        const T *restrict from = a;                                                           \
        (void)b, (void)c;                                                                     \
        if (imm == 1) {                                                                       \
            SWAP(T, 1)                                                                        \
        } else if (imm == 2) {                                                                \
            SWAP(T, 2)                                                                        \
        } else if (imm == 4) {                                                                \
            SWAP(T, 4)                                                                        \
        } else {                                                                              \
            SWAP(T, imm)                                                                      \
        }                                                                                     \
    }

/* What does not depend on anything but places: not elementwise, or not arithmetic. */
#define MOVES(T)                                                                            \
    EXCHANGE(T)                                                                             \
    static void shift_##T(void *out, const void *a, const void *b, const void *c, size_t n, \
                          uint64_t imm)                                                     \
    {                                                                                       \
        (void)b, (void)c;                                                                   \
        memcpy(out, a, imm * sizeof(T));                                                    \
        memcpy((T *)out + imm, a, (n - imm) * sizeof(T));                                   \
    }                                                                                       \
    static void copy_##T(void *out, const void *a, const void *b, const void *c, size_t n,  \
                         uint64_t imm)                                                      \
    {                                                                                       \
        (void)b, (void)c, (void)imm;                                                        \
        memcpy(out, a, n * sizeof(T));                                                      \
    }                                                                                       \
    LOOP(spread_##T, 7, T, T, u8, u8, a)                                                    \
    static void line_##T(void *out, const void *a, const void *b, const void *c, size_t n,  \
                         uint64_t imm)                                                      \
    {                                                                                       \
        T *to = out;                                                                        \
        const T first = *(const T *)a, step = (T)imm;                                       \
        (void)b, (void)c;                                                                   \
        TILE_LANES                                                                          \
        for (size_t i = 0; i < n; i++)                                                      \
            to[i] = first + (T)i * step;                                                    \
    }
MOVES(u32)
MOVES(u64)
/* NOLINTEND(bugprone-macro-parentheses) */

#define ROW1(op, TYPE, TO, A, expression) [KIR_##op][KIR_##TYPE] = {op##_##TYPE##_0},
#define ROW2(op, TYPE, TO, A, expression) \
    [KIR_##op][KIR_##TYPE] = {op##_##TYPE##_0, op##_##TYPE##_1, op##_##TYPE##_2},
#define ROW3(op, TYPE, TO, A, B, C, expression)                                                   \
    [KIR_##op][KIR_##TYPE] = {op##_##TYPE##_0, op##_##TYPE##_1, op##_##TYPE##_2, op##_##TYPE##_3, \
                              op##_##TYPE##_4, op##_##TYPE##_5, op##_##TYPE##_6},

extern tile_move *const TILE_NAME(tile_load)[TILE_KINDS][TILE_WAYS];
extern tile_move *const TILE_NAME(tile_store)[TILE_KINDS][TILE_WAYS];

extern tile_multiply *const TILE_NAME(tile_products)[TILE_PRODUCTS][KIR_TYPES];

const struct tile_loops TILE_NAME(tile_loops) = {
    .loop =
        {
#include "emit/rows.def"
        },
    .round =
        {
#define ROUND(KIND, expression) [TILE_##KIND] = round_##KIND,
#include "emit/rows.def"
        },
    .exchange = {exchange_u32, exchange_u64},
    .shift = {shift_u32, shift_u64},
    .copy = {copy_u32, copy_u64},
    .spread = {spread_u32, spread_u64},
    .line = {line_u32, line_u64},
    .products = TILE_NAME(tile_products),
    .load = TILE_NAME(tile_load),
    .store = TILE_NAME(tile_store),
};
