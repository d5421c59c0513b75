/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators. */
#include <math.h>
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"

/* ---- one op of the table ---- */

void onnx_row_unary(struct import_node *n, uint32_t arg)
{
    e_out(n, 0, e_un(n, arg, e_in(n, 0)));
}

void onnx_row_binary(struct import_node *n, uint32_t arg)
{
    e_out(n, 0, e_bin(n, arg, e_in(n, 0), e_in(n, 1)));
}

/* Any number of operands, two at a time. */
void onnx_row_chain(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    for (uint32_t i = 1; i < n->n_in; i++)
        x = e_bin(n, arg, x, e_in(n, i));
    e_out(n, 0, x);
}

void onnx_row_mean_of(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    (void)arg;
    for (uint32_t i = 1; i < n->n_in; i++)
        x = e_add(n, x, e_in(n, i));
    e_out(n, 0, e_div(n, x, e_num(n, n->n_in)));
}

/* ---- arithmetic ---- */

/* The exponent may have another type; an integer base with a float exponent is computed in that. */
void onnx_row_pow(struct import_node *n, uint32_t arg)
{
    val *base = e_in(n, 0), *exponent = e_in(n, 1);
    uint32_t dtype = e_dtype(base);

    (void)arg;
    if (!e_is_float(base) && e_is_float(exponent))
        base = e_cast(n, base, e_dtype(exponent));
    else
        exponent = e_cast(n, exponent, dtype);
    e_out(n, 0, e_cast(n, e_bin(n, FRIT_OP_pow, base, exponent), dtype));
}

/* With fmod the remainder has the sign of the dividend. */
void onnx_row_mod(struct import_node *n, uint32_t arg)
{
    val *a = e_in(n, 0), *b = e_in(n, 1);
    val *rest;

    (void)arg;
    if (!attr_int(n, "fmod", 0)) {
        e_out(n, 0, e_bin(n, FRIT_OP_rem, a, b));
        return;
    }
    if (!e_is_float(a)) {
        e_out(n, 0, e_sub(n, a, e_mul(n, e_div(n, a, b), b)));
        return;
    }
    rest = e_bin(n, FRIT_OP_rem, e_un(n, FRIT_OP_abs, a), e_un(n, FRIT_OP_abs, b));
    e_out(n, 0, e_where(n, e_bin(n, FRIT_OP_lt, a, e_num(n, 0)), e_un(n, FRIT_OP_neg, rest), rest));
}

void onnx_row_bit_shift(struct import_node *n, uint32_t arg)
{
    bool left = attr_is(n, "direction", "", "LEFT");
    val *x = e_in(n, 0), *bits = e_in(n, 1);

    (void)arg;
    /* A signed number that is shifted right by its width or more leaves its sign. */
    if (!left && x && e_is_signed(x) && bits)
        bits = e_where(n, e_bin(n, FRIT_OP_lt, e_like(n, bits, x), e_whole(n, 0)),
                       e_whole(n, frit_dtype_info_of(x->type.dtype).bits - 1),
                       e_min(n, bits, e_whole(n, frit_dtype_info_of(x->type.dtype).bits - 1)));
    e_out(n, 0, e_bin(n, left ? FRIT_OP_shl : FRIT_OP_shr, x, bits));
}

/* Bounds are attributes up to opset 10, then operands. */
void onnx_row_clip(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    (void)arg;
    if (n->opset < 11) {
        if (attr_has(n, "min"))
            x = e_max(n, x, e_num(n, attr_float(n, "min", 0)));
        if (attr_has(n, "max"))
            x = e_min(n, x, e_num(n, attr_float(n, "max", 0)));
    } else {
        if (e_has(n, 1))
            x = e_max(n, x, e_in(n, 1));
        if (e_has(n, 2))
            x = e_min(n, x, e_in(n, 2));
    }
    e_out(n, 0, x);
}

void onnx_row_is_inf(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    bool low = attr_int(n, "detect_negative", 1), high = attr_int(n, "detect_positive", 1);

    (void)arg;
    if (low && high)
        e_out(n, 0, e_un(n, FRIT_OP_is_inf, x));
    else if (low || high)
        e_out(n, 0, e_bin(n, FRIT_OP_eq, x, e_num(n, high ? INFINITY : -INFINITY)));
    else
        e_out(n, 0, e_full(n, FRIT_BOOL, e_whole(n, 0), e_dims(x)));
}

/* ---- activations ---- */

void onnx_row_leaky_relu(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, e_bin(n, FRIT_OP_leaky_relu, e_in(n, 0), e_num(n, attr_float(n, "alpha", 0.01F))));
}

/* x where it is positive, else gain * alpha * (e^(x / alpha) - 1) and its kin. */
static val *exponential(struct import_node *n, val *x, double scale, double inner, double gain)
{
    val *below = e_un(n, FRIT_OP_expm1, inner == 1 ? x : e_div(n, x, e_num(n, inner)));

    below = e_mul(n, below, e_num(n, scale));
    x = e_where(n, e_bin(n, FRIT_OP_gt, x, e_num(n, 0)), x, below);
    return gain == 1 ? x : e_mul(n, x, e_num(n, gain));
}

void onnx_row_elu(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, exponential(n, e_in(n, 0), attr_float(n, "alpha", 1), 1, 1));
}

void onnx_row_celu(struct import_node *n, uint32_t arg)
{
    double alpha = attr_float(n, "alpha", 1);

    (void)arg;
    e_out(n, 0, exponential(n, e_in(n, 0), alpha, alpha, 1));
}

void onnx_row_selu(struct import_node *n, uint32_t arg)
{
    double alpha = attr_float(n, "alpha", 1.67326319217681884765625);

    (void)arg;
    e_out(n, 0,
          exponential(n, e_in(n, 0), alpha, 1, attr_float(n, "gamma", 1.05070102214813232421875)));
}

void onnx_row_gelu(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *inner;

    (void)arg;
    if (!attr_is(n, "approximate", "none", "tanh")) {
        e_out(n, 0, e_un(n, FRIT_OP_gelu, x));
        return;
    }
    inner = e_mul(n, e_mul(n, x, x), e_mul(n, x, e_num(n, 0.044715)));
    inner = e_un(n, FRIT_OP_tanh, e_mul(n, e_add(n, x, inner), e_num(n, sqrt(2 / M_PI))));
    e_out(n, 0, e_mul(n, e_mul(n, x, e_num(n, 0.5)), e_add(n, inner, e_num(n, 1))));
}

static val *hard_sigmoid(struct import_node *n, val *x, double alpha, double beta)
{
    return E_OP(n, FRIT_OP_hard_sigmoid, NULL, x, e_num(n, alpha), e_num(n, beta));
}

void onnx_row_hard_sigmoid(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0,
          hard_sigmoid(n, e_in(n, 0), attr_float(n, "alpha", 0.2F), attr_float(n, "beta", 0.5)));
}

void onnx_row_hard_swish(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    (void)arg;
    e_out(n, 0, e_mul(n, x, hard_sigmoid(n, x, 1.0 / 6, 0.5)));
}

void onnx_row_mish(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    (void)arg;
    e_out(n, 0, e_mul(n, x, e_un(n, FRIT_OP_tanh, e_un(n, FRIT_OP_softplus, x))));
}

void onnx_row_softsign(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    (void)arg;
    e_out(n, 0, e_div(n, x, e_add(n, e_un(n, FRIT_OP_abs, x), e_num(n, 1))));
}

void onnx_row_thresholded_relu(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    val *above = e_bin(n, FRIT_OP_gt, x, e_num(n, attr_float(n, "alpha", 1)));

    (void)arg;
    e_out(n, 0, e_where(n, above, x, e_num(n, 0)));
}

/* x + bias below -lambd, x - bias above lambd, else 0. */
void onnx_row_shrink(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *low, *high;
    double bound = attr_float(n, "lambd", 0.5), bias = attr_float(n, "bias", 0);
    uint32_t dtype = e_dtype(x);

    (void)arg;
    if (!e_is_float(x))
        x = e_cast(n, x, FRIT_F32);
    low = e_where(n, e_bin(n, FRIT_OP_lt, x, e_num(n, -bound)), e_add(n, x, e_num(n, bias)),
                  e_num(n, 0));
    high = e_where(n, e_bin(n, FRIT_OP_gt, x, e_num(n, bound)), e_sub(n, x, e_num(n, bias)), low);
    e_out(n, 0, e_cast(n, high, dtype));
}

void onnx_row_swish(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    double alpha = attr_float(n, "alpha", 1);
    val *inner = alpha == 1 ? x : e_mul(n, x, e_num(n, alpha));

    (void)arg;
    e_out(n, 0, e_mul(n, x, e_un(n, FRIT_OP_sigmoid, inner)));
}

void onnx_row_swiglu(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *inner = e_mul(n, x, e_num(n, attr_float(n, "alpha", 1)));

    (void)arg;
    e_out(n, 0, e_mul(n, e_mul(n, x, e_un(n, FRIT_OP_sigmoid, inner)), e_in(n, 1)));
}

/* ---- types ---- */

void onnx_row_identity(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, e_in(n, 0));
}

void onnx_row_where(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, e_where(n, e_in(n, 0), e_in(n, 1), e_in(n, 2)));
}
