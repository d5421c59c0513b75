/* SPDX-License-Identifier: Apache-2.0 */
/* See oracle.h. */
#include "kernels/math/oracle.h"

#include <float.h>
#include <math.h>

#include <mpfr.h>

#include "math/math.h"

enum { PRECISION = 160 };

#define R MPFR_RNDN

static mpfr_t at_x, at_y, value, spare;

void oracle_init(void)
{
    mpfr_inits2(PRECISION, at_x, at_y, value, spare, (mpfr_ptr)NULL);
}

void oracle_fini(void)
{
    mpfr_clears(at_x, at_y, value, spare, (mpfr_ptr)NULL);
    mpfr_free_cache();
}

/* ---- functions of x and y into r ---- */

#define PLAIN_1(name)                                                 \
    static void true_##name(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) \
    {                                                                 \
        (void)y;                                                      \
        mpfr_##name(r, x, R);                                         \
    }
#define PLAIN_2(name)                                                 \
    static void true_##name(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) \
    {                                                                 \
        mpfr_##name(r, x, y, R);                                      \
    }
PLAIN_1(exp)
PLAIN_1(expm1)
PLAIN_1(log)
PLAIN_1(log1p)
PLAIN_1(sin)
PLAIN_1(cos)
PLAIN_1(tan)
PLAIN_1(asin)
PLAIN_1(acos)
PLAIN_1(atan)
PLAIN_1(sinh)
PLAIN_1(cosh)
PLAIN_1(tanh)
PLAIN_1(asinh)
PLAIN_1(acosh)
PLAIN_1(atanh)
PLAIN_1(erf)
PLAIN_2(pow)
PLAIN_2(atan2)
PLAIN_2(hypot)

static void true_rsqrt(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    (void)y;
    mpfr_sqrt(r, x, R);
    mpfr_ui_div(r, 1, r, R);
}

static void one_plus_exp_neg(mpfr_ptr r, mpfr_srcptr x)
{
    mpfr_neg(r, x, R);
    mpfr_exp(r, r, R);
    mpfr_add_ui(r, r, 1, R);
}

static void true_sigmoid(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    (void)y;
    one_plus_exp_neg(r, x);
    mpfr_ui_div(r, 1, r, R);
}

static void true_silu(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    (void)y;
    one_plus_exp_neg(r, x);
    mpfr_div(r, x, r, R);
}

/* max(x, 0) + log1p(e^-|x|) */
static void true_softplus(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    (void)y;
    mpfr_abs(r, x, R);
    mpfr_neg(r, r, R);
    mpfr_exp(r, r, R);
    mpfr_log1p(r, r, R);
    if (mpfr_sgn(x) > 0)
        mpfr_add(r, r, x, R);
}

/* 0 - softplus(-x) */
static void true_log_sigmoid(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    mpfr_neg(spare, x, R);
    true_softplus(r, spare, y);
    mpfr_set_zero(spare, 1);
    mpfr_sub(r, spare, r, R);
}

/* x / 2 * erfc(-x / sqrt 2) */
static void true_gelu(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    (void)y;
    mpfr_sqrt_ui(r, 2, R);
    mpfr_div(r, x, r, R);
    mpfr_neg(r, r, R);
    mpfr_erfc(r, r, R);
    mpfr_mul(r, r, x, R);
    mpfr_div_2ui(r, r, 1, R);
}

static void true_rem(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y)
{
    mpfr_fmod(r, x, y, R);
    if (mpfr_zero_p(r))
        mpfr_setsign(r, r, mpfr_signbit(y), R);
    else if (!mpfr_nan_p(r) && mpfr_signbit(r) != mpfr_signbit(y))
        mpfr_add(r, r, y, R);
}

typedef void (*true_fn)(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y);

static const true_fn truths[] = {
#define MATH_1(name, cost, meaning) true_##name,
#define MATH_2(name, cost, meaning) true_##name,
#include "math/math.def"
};

const struct function functions[] = {
#define MATH_1(name, cost, meaning) {#name, math_##name, NULL},
#define MATH_2(name, cost, meaning) {#name, NULL, math_##name},
#include "math/math.def"
};

/* ---- errors ---- */

static double rounded(bool wide, mpfr_srcptr x)
{
    return wide ? mpfr_get_d(x, R) : (double)mpfr_get_flt(x, R);
}

double oracle_error(uint32_t function, bool wide, double x, double y, double got)
{
    int bits = wide ? DBL_MANT_DIG : FLT_MANT_DIG, least = wide ? DBL_MIN_EXP : FLT_MIN_EXP;
    int most = wide ? DBL_MAX_EXP : FLT_MAX_EXP;
    mpfr_exp_t exponent;
    double nearest;

    mpfr_set_d(at_x, x, R);
    mpfr_set_d(at_y, y, R);
    truths[function](value, at_x, at_y);
    nearest = rounded(wide, value);
    if (mpfr_nan_p(value) || isnan(got))
        return mpfr_nan_p(value) && isnan(got) ? 0 : INFINITY;
    if (mpfr_zero_p(value))
        return got == 0 && !signbit(got) == !mpfr_signbit(value) ? 0 : INFINITY;
    if (isinf(nearest) && isinf(got))
        return nearest == got ? 0 : INFINITY;
    if (mpfr_inf_p(value))
        return INFINITY;
    exponent = mpfr_get_exp(value) < least ? least : mpfr_get_exp(value);
    if (isinf(got))
        mpfr_set_si_2exp(spare, got > 0 ? 1 : -1, most, R);
    else
        mpfr_set_d(spare, got, R);
    mpfr_sub(spare, spare, value, R);
    mpfr_mul_2si(spare, spare, bits - (long)exponent, R);
    return fabs(mpfr_get_d(spare, R));
}
