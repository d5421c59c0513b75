/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows: Philox4x32-10 (Salmon et al., SC 2011) at the element's row-major number, as ops.def
 * says which words of which block are whose. */
#include "lower/rows/lower_cast.h"
#include "lower/rows/rows.h"
#include "math/math.h"

enum { ROUNDS = 10 };

static uint32_t word_const(const struct lower *l, uint32_t value)
{
    return kir_const_i(l->m, KIR_I32, (int64_t)value);
}

/* Of the type of an index. */
static uint32_t index_const(const struct lower *l, int64_t value)
{
    return kir_const_i(l->m, kir_type_at(l->m, l->at), value);
}

/* The low and high half of an I64. */
static void halves(const struct lower *l, uint32_t x, uint32_t *low, uint32_t *high)
{
    *low = kir_unary(l->m, KIR_i32, x);
    *high = kir_unary(l->m, KIR_i32, kir_binary(l->m, KIR_shr, x, kir_const_i(l->m, KIR_I64, 32)));
}

static void philox(const struct lower *l, uint32_t c[4], uint32_t k[2])
{
    static const uint32_t multiplier[2] = {0xd2511f53, 0xcd9e8d57};
    static const uint32_t weyl[2] = {0x9e3779b9, 0xbb67ae85};
    uint32_t m0 = word_const(l, multiplier[0]), m1 = word_const(l, multiplier[1]);

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t high0 = kir_binary(l->m, KIR_mulhi, c[0], m0),
                 low0 = kir_binary(l->m, KIR_mul, c[0], m0);
        uint32_t high1 = kir_binary(l->m, KIR_mulhi, c[2], m1),
                 low1 = kir_binary(l->m, KIR_mul, c[2], m1);

        c[0] = kir_binary(l->m, KIR_xor, kir_binary(l->m, KIR_xor, high1, c[1]), k[0]);
        c[1] = low1;
        c[2] = kir_binary(l->m, KIR_xor, kir_binary(l->m, KIR_xor, high0, c[3]), k[1]);
        c[3] = low0;
        k[0] = kir_binary(l->m, KIR_add, k[0], word_const(l, weyl[0]));
        k[1] = kir_binary(l->m, KIR_add, k[1], word_const(l, weyl[1]));
    }
}

/* The words of block `at >> shift`. */
static void draw(const struct lower *l, uint32_t shift, uint32_t words[4])
{
    uint32_t block = kir_binary(l->m, KIR_shr, l->at, index_const(l, shift)), key[2];

    if (kir_type_at(l->m, block) == KIR_I64) {
        halves(l, block, &words[0], &words[1]);
    } else {
        words[0] = block;
        words[1] = word_const(l, 0);
    }
    halves(l, l->counter, &words[2], &words[3]);
    halves(l, l->seed, &key[0], &key[1]);
    philox(l, words, key);
}

/* Whether bit `bit` of the element's number is set. */
static uint32_t at_bit(const struct lower *l, int64_t bit)
{
    return kir_binary(l->m, KIR_ne, kir_binary(l->m, KIR_and, l->at, index_const(l, bit)),
                      index_const(l, 0));
}

/* c ? a : b */
static uint32_t join(const struct lower *l, uint32_t low, uint32_t high)
{
    high =
        kir_binary(l->m, KIR_shl, kir_unary(l->m, KIR_u64, high), kir_const_i(l->m, KIR_I64, 32));
    return kir_binary(l->m, KIR_or, kir_unary(l->m, KIR_u64, low), high);
}

static uint32_t word32(const struct lower *l)
{
    uint32_t words[4], odd, second;

    draw(l, 2, words);
    odd = at_bit(l, 1);
    second = at_bit(l, 2);
    return kir_select(l->m, second, kir_select(l->m, odd, words[3], words[2]),
                      kir_select(l->m, odd, words[1], words[0]));
}

static uint32_t word64(const struct lower *l)
{
    uint32_t words[4], odd;

    draw(l, 1, words);
    odd = at_bit(l, 1);
    return join(l, kir_select(l->m, odd, words[2], words[0]),
                kir_select(l->m, odd, words[3], words[1]));
}

/* 0 <= u < 1 of a word. */
static uint32_t unit32(const struct lower *l, uint32_t word)
{
    uint32_t real = kir_unary(l->m, KIR_f32, kir_binary(l->m, KIR_shr, word, word_const(l, 8)));

    return kir_binary(l->m, KIR_mul, real, kir_const_f(l->m, KIR_F32, 0x1p-24));
}

static uint32_t unit64(const struct lower *l, uint32_t word)
{
    uint32_t real =
        kir_unary(l->m, KIR_f64, kir_binary(l->m, KIR_shr, word, kir_const_i(l->m, KIR_I64, 11)));

    return kir_binary(l->m, KIR_mul, real, kir_const_f(l->m, KIR_F64, 0x1p-53));
}

uint32_t lower_random_raw(const struct lower *l)
{
    return l->dtype == FRIT_U64 ? word64(l) : word32(l);
}

uint32_t lower_random_uniform(const struct lower *l)
{
    uint32_t u = l->dtype == FRIT_F64 ? unit64(l, word64(l)) : unit32(l, word32(l));
    uint32_t range = kir_binary(l->m, KIR_sub, l->in[1], l->in[0]);

    return kir_binary(l->m, KIR_add, l->in[0], kir_binary(l->m, KIR_mul, u, range));
}

uint32_t lower_random_bernoulli(const struct lower *l)
{
    uint32_t p = lower_convert(l->m, l->in_dtype[0], FRIT_F32, l->in[0]);
    uint32_t one = kir_binary(l->m, KIR_lt, unit32(l, word32(l)), p);

    return lower_convert(l->m, FRIT_BOOL, l->dtype, one);
}

uint32_t lower_random_int(const struct lower *l)
{
    uint32_t wide = lower_is_unsigned(l->dtype) ? FRIT_U64 : FRIT_I64;
    uint32_t low = lower_convert(l->m, l->dtype, wide, l->in[0]);
    uint32_t high = lower_convert(l->m, l->dtype, wide, l->in[1]);
    uint32_t range = kir_binary(l->m, KIR_sub, high, low), zero = kir_const_i(l->m, KIR_I64, 0);
    uint32_t rest = kir_binary(l->m, KIR_urem, word64(l), range);

    rest = kir_select(l->m, kir_binary(l->m, KIR_eq, range, zero), zero, rest);
    return lower_convert(l->m, wide, l->dtype, kir_binary(l->m, KIR_add, low, rest));
}

/* cos(2 pi v - odd pi / 2): v is brought near a quarter, which is exact, then the angle is small.
 */
static uint32_t circle(const struct lower *l, enum kir_type type, uint32_t v, uint32_t odd)
{
    uint32_t four = kir_const_f(l->m, type, 4), quarter = kir_const_f(l->m, type, 0.25), turn,
             angle;
    uint32_t sine, cosine, swap, flip;

    turn = kir_unary(l->m, KIR_rint, kir_binary(l->m, KIR_mul, v, four));
    angle = kir_binary(l->m, KIR_sub, v, kir_binary(l->m, KIR_mul, turn, quarter));
    angle = kir_binary(l->m, KIR_mul, angle, kir_const_f(l->m, type, 6.283185307179586));
    sine = math_sin(l->m, l->target, angle);
    cosine = math_cos(l->m, l->target, angle);
    turn = kir_binary(l->m, KIR_sub, kir_unary(l->m, KIR_i32, turn), kir_unary(l->m, KIR_i32, odd));
    swap = kir_binary(l->m, KIR_ne, kir_binary(l->m, KIR_and, turn, word_const(l, 1)),
                      word_const(l, 0));
    flip = kir_binary(l->m, KIR_ne,
                      kir_binary(l->m, KIR_and, kir_binary(l->m, KIR_add, turn, word_const(l, 1)),
                                 word_const(l, 2)),
                      word_const(l, 0));
    cosine = kir_select(l->m, swap, sine, cosine);
    return kir_select(l->m, flip, kir_unary(l->m, KIR_neg, cosine), cosine);
}

uint32_t lower_random_normal(const struct lower *l)
{
    enum kir_type type = kir_type_of(l->dtype);
    uint32_t words[4], u, v, radius, second;

    draw(l, type == KIR_F64 ? 1 : 2, words);
    if (type == KIR_F64) {
        u = unit64(l, join(l, words[0], words[1]));
        v = unit64(l, join(l, words[2], words[3]));
    } else {
        second = at_bit(l, 2);
        u = unit32(l, kir_select(l->m, second, words[2], words[0]));
        v = unit32(l, kir_select(l->m, second, words[3], words[1]));
    }
    radius = math_log1p(l->m, l->target, kir_unary(l->m, KIR_neg, u));
    radius =
        kir_unary(l->m, KIR_sqrt, kir_binary(l->m, KIR_mul, kir_const_f(l->m, type, -2), radius));
    radius = kir_binary(l->m, KIR_mul, radius, circle(l, type, v, at_bit(l, 1)));
    return kir_binary(l->m, KIR_add, l->in[0], kir_binary(l->m, KIR_mul, l->in[1], radius));
}
