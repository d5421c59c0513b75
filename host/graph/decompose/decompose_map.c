/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise rows and their gradients.  The forms are exact near 0 and do not overflow where the
 * result does not; branches that are not taken may hold anything, where takes the other. */
#include <math.h>

#include "graph/decompose/build.h"

static term recip(struct build *b, term x)
{
    return b_div(b, b_number(1), x);
}

static term half(struct build *b, term x)
{
    return b_mul(b, x, b_number(0.5));
}

static term gt(struct build *b, term x, term y)
{
    return b_lt(b, y, x);
}

/* A function of |x| with the sign of x. */
static term odd(struct build *b, term x, term of_abs)
{
    term mirrored = b_neg(b, of_abs);

    return b_where(b, b_lt(b, x, b_number(0)), mirrored, of_abs);
}

static term ceil_of(struct build *b, term x)
{
    return b_neg(b, b_floor(b, b_neg(b, x)));
}

term decompose_ceil(struct build *b)
{
    return ceil_of(b, b_in(b, 0));
}

/* The floor is tested, not x, which may be a denormal: devices take such for zero. */
term decompose_trunc(struct build *b)
{
    term x = b_in(b, 0), up = ceil_of(b, x), down = b_floor(b, x);

    return b_where(b, b_lt(b, down, b_number(0)), up, down);
}

term decompose_recip(struct build *b)
{
    return recip(b, b_in(b, 0));
}

term decompose_rsqrt(struct build *b)
{
    return recip(b, b_sqrt(b, b_in(b, 0)));
}

term decompose_square(struct build *b)
{
    term x = b_in(b, 0);

    return b_mul(b, x, x);
}

/* ---- trigonometric and hyperbolic ---- */

term decompose_tan(struct build *b)
{
    term x = b_in(b, 0), sine = b_sin(b, x);

    return b_div(b, sine, b_cos(b, x));
}

/* The other side of a right triangle with hypotenuse 1: sqrt(1 - x^2), factored so that nothing is
 * lost near 1. */
static term other_side(struct build *b, term x)
{
    term below = b_sub(b, b_number(1), x);

    return b_sqrt(b, b_mul(b, below, b_add(b, x, b_number(1))));
}

term decompose_asin(struct build *b)
{
    term x = b_in(b, 0);

    return b_atan2(b, x, other_side(b, x));
}

term decompose_acos(struct build *b)
{
    term x = b_in(b, 0);

    return b_atan2(b, other_side(b, x), x);
}

term decompose_atan(struct build *b)
{
    return b_atan2(b, b_in(b, 0), b_number(1));
}

/* e^x / 2 + sign e^-x / 2 by t = e^(x / 2), which stays finite where the result does. */
static term exp_pair(struct build *b, term x, double sign)
{
    term t = b_exp(b, half(b, x));
    term rising = b_mul(b, half(b, t), t);

    return b_add(b, rising, b_div(b, b_div(b, b_number(0.5 * sign), t), t));
}

/* Near 0 by u = e^x - 1: (u + u / (u + 1)) / 2. */
term decompose_sinh(struct build *b)
{
    term x = b_in(b, 0), u = b_expm1(b, x);
    term ratio = b_div(b, u, b_add(b, u, b_number(1)));
    term near = half(b, b_add(b, u, ratio));
    term far = exp_pair(b, x, -1);

    return b_where(b, b_lt(b, b_abs(b, x), b_number(1)), near, far);
}

term decompose_cosh(struct build *b)
{
    return exp_pair(b, b_in(b, 0), 1);
}

/* From here on sqrt(x^2 + 1) and sqrt(x^2 - 1) are x to the last bit, in f64 too. */
static const double huge = 0x1p28;

/* log(2 x) without the product's overflow. */
static term log_twice(struct build *b, term x)
{
    return b_add(b, b_log(b, x), b_number(0.69314718055994530942));
}

/* log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|. */
term decompose_asinh(struct build *b)
{
    term x = b_in(b, 0), a = b_abs(b, x);
    term root = b_add(b, b_hypot(b, a, b_number(1)), b_number(1));
    term near = b_log1p(b, b_add(b, a, b_mul(b, a, b_div(b, a, root))));
    term far = log_twice(b, a);

    return odd(b, x, b_where(b, b_lt(b, a, b_number(huge)), near, far));
}

/* log1p(t + sqrt(t) sqrt(t + 2)), t = x - 1. */
term decompose_acosh(struct build *b)
{
    term x = b_in(b, 0), t = b_sub(b, x, b_number(1)), root = b_sqrt(b, t);
    term product = b_mul(b, root, b_sqrt(b, b_add(b, t, b_number(2))));
    term near = b_log1p(b, b_add(b, t, product)), far = log_twice(b, x);

    return b_where(b, b_lt(b, x, b_number(huge)), near, far);
}

/* log1p(2 a / (1 - a)) / 2, a = |x|. */
term decompose_atanh(struct build *b)
{
    term x = b_in(b, 0), a = b_abs(b, x);
    term twice = b_mul(b, a, b_number(2)), rest = b_sub(b, b_number(1), a);

    return odd(b, x, half(b, b_log1p(b, b_div(b, twice, rest))));
}

/* ---- comparing ---- */

term decompose_is_nan(struct build *b)
{
    term x = b_in(b, 0);

    return b_not(b, b_eq(b, x, x));
}

term decompose_is_inf(struct build *b)
{
    return b_eq(b, b_abs(b, b_in(b, 0)), b_number(INFINITY));
}

term decompose_ne(struct build *b)
{
    return b_not(b, b_eq(b, b_in(b, 0), b_in(b, 1)));
}

term decompose_gt(struct build *b)
{
    return gt(b, b_in(b, 0), b_in(b, 1));
}

term decompose_ge(struct build *b)
{
    return b_le(b, b_in(b, 1), b_in(b, 0));
}

static term clamp(struct build *b, term x, term low, term high)
{
    return b_minimum(b, b_maximum(b, x, low), high);
}

term decompose_clamp(struct build *b)
{
    return clamp(b, b_in(b, 0), b_in(b, 1), b_in(b, 2));
}

term decompose_mask_fill(struct build *b)
{
    return b_where(b, b_in(b, 1), b_in(b, 2), b_in(b, 0));
}

/* ---- activations ---- */

static term sigmoid(struct build *b, term x)
{
    return recip(b, b_add(b, b_exp(b, b_neg(b, x)), b_number(1)));
}

/* log(1 + e^-|x|): e^ of what is never above 0. */
static term log1p_exp(struct build *b, term x)
{
    return b_log1p(b, b_exp(b, b_neg(b, b_abs(b, x))));
}

term decompose_relu(struct build *b)
{
    return b_maximum(b, b_in(b, 0), b_number(0));
}

/* The normal distribution function, (1 + erf(x / sqrt 2)) / 2. */
static term normal_below(struct build *b, term x)
{
    return half(b, b_add(b, b_erf(b, b_mul(b, x, b_number(0.70710678118654752440))), b_number(1)));
}

term decompose_gelu(struct build *b)
{
    term x = b_in(b, 0);

    return b_mul(b, x, normal_below(b, x));
}

term decompose_silu(struct build *b)
{
    term x = b_in(b, 0);

    return b_mul(b, x, sigmoid(b, x));
}

term decompose_sigmoid(struct build *b)
{
    return sigmoid(b, b_in(b, 0));
}

term decompose_log_sigmoid(struct build *b)
{
    term x = b_in(b, 0), line = b_minimum(b, x, b_number(0));

    return b_sub(b, line, log1p_exp(b, x));
}

term decompose_hard_sigmoid(struct build *b)
{
    term line = b_add(b, b_mul(b, b_in(b, 0), b_in(b, 1)), b_in(b, 2));

    return clamp(b, line, b_number(0), b_number(1));
}

term decompose_leaky_relu(struct build *b)
{
    term x = b_in(b, 0), below = b_mul(b, x, b_in(b, 1));

    return b_where(b, gt(b, x, b_number(0)), x, below);
}

term decompose_softplus(struct build *b)
{
    term x = b_in(b, 0), line = b_maximum(b, x, b_number(0));

    return b_add(b, line, log1p_exp(b, x));
}

/* ---- gradients of activations ---- */

term decompose_relu_backward(struct build *b)
{
    return b_where(b, gt(b, b_in(b, 0), b_number(0)), b_in(b, 1), b_number(0));
}

/* grad * (P(x) + x p(x)), P and p the normal distribution and its density. */
term decompose_gelu_backward(struct build *b)
{
    term x = b_in(b, 0);
    term bell = b_exp(b, b_mul(b, b_mul(b, x, x), b_number(-0.5)));
    term slope = b_mul(b, x, b_mul(b, bell, b_number(0.39894228040143267794)));

    return b_mul(b, b_in(b, 1), b_add(b, normal_below(b, x), slope));
}

term decompose_sigmoid_backward(struct build *b)
{
    term y = b_in(b, 0), product = b_mul(b, b_in(b, 1), y);

    return b_mul(b, product, b_sub(b, b_number(1), y));
}

term decompose_log_sigmoid_backward(struct build *b)
{
    return b_mul(b, b_in(b, 1), sigmoid(b, b_neg(b, b_in(b, 0))));
}
