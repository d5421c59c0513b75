/* SPDX-License-Identifier: Apache-2.0 */
/* The polynomials of the functions, generated into coefs.c by tests/kernels/math/fit.py.  Each has
 * a form for F32 and one for F64; a form has no terms if the function does not use it. */
#ifndef MATH_COEFS_H
#define MATH_COEFS_H

#include <stdint.h>

enum { POLY_TERMS = 24, TURNS = 20 };

struct poly {
    uint32_t n;
    double c[POLY_TERMS]; /* lowest first */
};

/* A constant as hi + lo.  Where noted, hi has enough trailing zeros for exact products. */
struct split {
    double hi, lo;
};

extern const struct split split_ln2[2]; /* hi times any exponent is exact */
extern const struct split split_pi_2[2];
extern const struct split split_log2e[2];
extern const struct split split_2_3[2];

/* The bits of 2 / pi in words of 32 and of 64 bits, after 26 and 55 zeros. */
extern const uint64_t turns[2][TURNS];

extern const struct poly poly_exp[2];      /* e^r, |r| <= ln 2 */
extern const struct poly poly_exp_near[2]; /* e^r, |r| <= ln 2 / 2; F32 */
extern const struct poly poly_expm1[2];    /* (e^r - 1 - r) / r^2, |r| <= ln 2 / 2 */
extern const struct poly poly_tanh[2];     /* of x^2: (tanh x - x) / x^3, x <= 0.55 */
extern const struct poly poly_sinh[2];     /* of x^2: (sinh x - x) / x^3, x <= 1 */
extern const struct poly poly_log[2];      /* F32: (log(1 + f) - f + f^2 / 2) / f^3 */
extern const struct poly poly_log_s[2];    /* of s^2: (atanh s - s) / s^3 * 2, s <= 0.1717 */
extern const struct poly poly_atanh[2];    /* of x^2: (atanh x - x) / x^3, x <= 1/2 */
extern const struct poly poly_sin[2];      /* of x^2: (sin x - x) / x^3, x <= pi / 4 */
extern const struct poly poly_cos[2];      /* of x^2: (cos x - 1 + x^2 / 2) / x^4, x <= pi / 4 */
extern const struct poly poly_tan[2];      /* of x^2: (tan x - x) / x^3, x <= pi / 4 */
extern const struct poly poly_atan[2];     /* of x^2: (atan x - x) / x^3, x <= 1 */
extern const struct poly poly_asin[2];     /* of x^2: (asin x - x) / x^3, x <= 1/2 */
extern const struct poly poly_erf[2];      /* of x^2: erf x / x - 1, x <= 1 */
extern const struct poly poly_erf_log[2];  /* log(1 - erf x), x >= 1 */
extern const struct poly poly_pow[2];      /* of s^2: ((atanh s - s) / s^3 * 2 - 2/3) / s^2 */
extern const struct poly poly_mills[2];    /* see erf.c */

#endif
