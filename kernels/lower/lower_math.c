/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are a function of kernels/math, for floats at least. */
#include "lower/rows.h"
#include "math/math.h"

#define MATH_ROW(name)                                 \
    uint32_t lower_##name(const struct lower *l)       \
    {                                                  \
        return math_##name(l->m, l->target, l->in[0]); \
    }

MATH_ROW(exp)
MATH_ROW(expm1)
MATH_ROW(log)
MATH_ROW(log1p)
MATH_ROW(sinh)
MATH_ROW(cosh)
MATH_ROW(tanh)
MATH_ROW(asinh)
MATH_ROW(acosh)
MATH_ROW(atanh)
MATH_ROW(sigmoid)
MATH_ROW(log_sigmoid)
MATH_ROW(softplus)
MATH_ROW(silu)
