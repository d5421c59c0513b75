/* SPDX-License-Identifier: Apache-2.0 */
/* sin, cos, tan.
 *
 * |x| = (q + t) pi / 2 with q an integer and |t| at most 1/2, for every finite x (Payne and Hanek).
 * x is an integer m times a power of 2.  Of the product m * 2 / pi only the bits of q mod 4 and the
 * fraction are computed, in integers, from a window of three words of the bits of 2 / pi, which is
 * chosen by selects.  The window is wide enough that t has a full significand even if x is close to
 * a multiple of pi / 2. */
#include <math.h>

#include "math/kit.h"

/* The reduced argument: the pair r, |r| at most pi / 4, and the low bits of q. */
struct reduced_angle {
    uint32_t q;
    struct pair r;
};

/* The high half of a product; a is below 2^53 where words have 64 bits. */
static uint32_t mul_high(const struct kit *kit, uint32_t a, uint32_t b)
{
    uint32_t half, a0, a1, b0, b1, cross, mid;

    if (!kit->wide)
        return kit_mulhi(kit, a, b);
    half = kit_i(kit, UINT32_MAX);
    a0 = kit_and(kit, a, half);
    a1 = kit_shr(kit, a, 32);
    b0 = kit_and(kit, b, half);
    b1 = kit_shr(kit, b, 32);
    cross = kit_mul(kit, a0, b1);
    mid = kit_add(kit, kit_shr(kit, kit_mul(kit, a0, b0), 32), kit_and(kit, cross, half));
    mid = kit_add(kit, mid, kit_mul(kit, a1, b0));
    mid = kit_add(kit, kit_shr(kit, mid, 32), kit_shr(kit, cross, 32));
    return kit_add(kit, kit_mul(kit, a1, b1), mid);
}

/* Three words of 2 / pi, starting at bit `at`. */
static void load_window(const struct kit *kit, uint32_t at, uint32_t words[3])
{
    uint32_t n = kit->wide ? TURNS : 8;
    uint32_t number = kit_shr(kit, at, kit->wide ? 6 : 5);
    uint32_t shift = kit_and(kit, at, kit_i(kit, kit->width - 1));
    uint32_t back = kit_xor(kit, shift, kit_i(kit, kit->width - 1));
    uint32_t all[TURNS], bit, high, low;

    for (uint32_t i = 0; i < n; i++)
        all[i] = kit_i(kit, (int64_t)turns[kit->wide][i]);
    for (uint32_t step = kit->wide ? 16 : 4; step; step /= 2) {
        bit = kit_ne(kit, kit_and(kit, number, kit_i(kit, step)), kit_i(kit, 0));
        for (uint32_t i = 0; i < 3 + step && i + step < n; i++)
            all[i] = kit_select(kit, bit, all[i + step], all[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        high = kit_binary(kit, KIR_shl, all[i], shift);
        low = kit_binary(kit, KIR_shr, kit_shr(kit, all[i + 1], 1), back);
        words[i] = kit_or(kit, high, low);
    }
}

/* Converts t, a fixed-point number of 2 words with `high` in units of 2^-30 (2^-62), to a pair. */
static struct pair to_pair(const struct kit *kit, uint32_t high, uint32_t low)
{
    int width = (int)kit->width;
    uint32_t most = kit_unary(kit, kit->wide ? KIR_f64 : KIR_f32, high);
    uint32_t taken = kit_unary(kit, kit->wide ? KIR_i64 : KIR_i32, most);
    uint32_t left = kit_unary(kit, kit->wide ? KIR_f64 : KIR_f32, kit_sub(kit, high, taken));
    uint32_t rest = kit_unary(kit, kit->wide ? KIR_uf64 : KIR_uf32, low);

    rest = kit_mad(kit, left, kit_f(kit, ldexp(1, width)), rest);
    return kit_sum_fast(kit, kit_mul(kit, most, kit_f(kit, ldexp(1, 2 - width))),
                        kit_mul(kit, rest, kit_f(kit, ldexp(1, 2 - 2 * width))));
}

static struct reduced_angle reduce_far(const struct kit *kit, uint32_t bits)
{
    const struct split *pi_2 = &split_pi_2[kit->wide];
    int64_t one = INT64_C(1) << kit->man;
    uint32_t at = kit_sub(kit, kit_shr(kit, bits, kit->man), kit_i(kit, kit->bias - 1));
    uint32_t m = kit_or(kit, kit_and(kit, bits, kit_i(kit, one - 1)), kit_i(kit, one));
    uint32_t word[3], high, low, carry, q;

    load_window(kit, at, word);
    carry = mul_high(kit, m, word[2]);
    low = kit_add(kit, kit_mul(kit, m, word[1]), carry);
    carry = kit_unary(kit, kit->wide ? KIR_i64 : KIR_i32, kit_ult(kit, low, carry));
    high = kit_add(kit, kit_mul(kit, m, word[0]), kit_add(kit, mul_high(kit, m, word[1]), carry));
    q = kit_add(kit, high, kit_i(kit, INT64_C(1) << (kit->width - 3)));
    q = kit_shr(kit, q, kit->width - 2);
    high = kit_sub(kit, high, kit_shl(kit, q, kit->width - 2));
    return (struct reduced_angle){
        q, kit_pair_product(kit, to_pair(kit, high, low),
                            (struct pair){kit_f(kit, pi_2->hi), kit_f(kit, pi_2->lo)})};
}

static struct reduced_angle reduced_angle(const struct kit *kit, uint32_t magnitude)
{
    struct reduced_angle far = reduce_far(kit, kit_bits(kit, magnitude));
    uint32_t near = kit_lt(kit, magnitude, kit_f(kit, 0.78));

    return (struct reduced_angle){
        kit_select(kit, near, kit_i(kit, 0), far.q),
        kit_pair_select(kit, near, (struct pair){magnitude, kit_f(kit, 0)}, far.r)};
}

static uint32_t sin_near(const struct kit *kit, struct pair r, uint32_t z)
{
    uint32_t cube = kit_mul(kit, r.hi, z);

    return kit_add(kit, r.hi, kit_mad(kit, cube, kit_poly(kit, poly_sin, z), r.lo));
}

/* cos x for small x, z = x^2: 1 - z / 2, then its rounding error plus the remaining terms. */
static uint32_t cos_near(const struct kit *kit, uint32_t z)
{
    uint32_t one = kit_f(kit, 1);
    uint32_t half = kit_mul(kit, z, kit_f(kit, 0.5));
    uint32_t most = kit_sub(kit, one, half);
    uint32_t lost = kit_sub(kit, kit_sub(kit, one, most), half);
    uint32_t rest = kit_mad(kit, kit_mul(kit, z, z), kit_poly(kit, poly_cos, z), lost);

    return kit_add(kit, most, rest);
}

/* Bit `bit` of q, moved to the sign bit. */
static uint32_t sign_of(const struct kit *kit, uint32_t q, uint32_t bit)
{
    return kit_shl(kit, kit_shr(kit, q, bit), kit->width - 1);
}

static uint32_t flip(const struct kit *kit, uint32_t y, uint32_t sign)
{
    return kit_float(kit, kit_xor(kit, kit_bits(kit, y), sign));
}

static uint32_t is_odd(const struct kit *kit, uint32_t q)
{
    return kit_ne(kit, kit_and(kit, q, kit_i(kit, 1)), kit_i(kit, 0));
}

static uint32_t unless_inf(const struct kit *kit, uint32_t magnitude, uint32_t y)
{
    return kit_select(kit, kit_lt(kit, magnitude, kit_f(kit, INFINITY)), y, kit_f(kit, NAN));
}

/* sin(|x| + quarters * pi / 2) */
static uint32_t sin_or_cos(const struct kit *kit, uint32_t magnitude, uint32_t quarters)
{
    struct reduced_angle x = reduced_angle(kit, magnitude);
    uint32_t z = kit_mul(kit, x.r.hi, x.r.hi);
    uint32_t q = quarters ? kit_add(kit, x.q, kit_i(kit, quarters)) : x.q;
    uint32_t y = kit_select(kit, is_odd(kit, q), cos_near(kit, z), sin_near(kit, x.r, z));

    return unless_inf(kit, magnitude, flip(kit, y, sign_of(kit, q, 1)));
}

uint32_t math_sin(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);

    return flip(&kit, sin_or_cos(&kit, kit_abs(&kit, x), 0), kit_sign(&kit, x));
}

uint32_t math_cos(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);

    return sin_or_cos(&kit, kit_abs(&kit, x), 1);
}

/* tan(r), or -1 / tan(r) where q is odd. */
uint32_t math_tan(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t magnitude = kit_abs(&kit, x);
    struct reduced_angle turn = reduced_angle(&kit, magnitude);
    uint32_t z = kit_mul(&kit, turn.r.hi, turn.r.hi);
    uint32_t low = kit_mad(&kit, turn.r.lo, z, turn.r.lo);
    uint32_t cube = kit_mul(&kit, turn.r.hi, z);
    uint32_t y = kit_add(&kit, turn.r.hi, kit_mad(&kit, cube, kit_poly(&kit, poly_tan, z), low));

    y = kit_select(&kit, is_odd(&kit, turn.q), kit_div(&kit, kit_f(&kit, 1), y), y);
    y = flip(&kit, y, kit_xor(&kit, sign_of(&kit, turn.q, 0), kit_sign(&kit, x)));
    return unless_inf(&kit, magnitude, y);
}
