/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of products, pooling, resampling, spectra and losses. */
#include "grad/rules_contract.h"

static term swapped(term t)
{
    return t_transpose(t, -2, -1);
}

/* What broadcasting repeated is summed by the caller. */
term rule_matmul(const struct grad_rule *r, uint32_t i)
{
    return i == 0 ? t_op2(FRIT_OP_matmul, r->g[0], swapped(r->in[1]))
                  : t_op2(FRIT_OP_matmul, swapped(r->in[0]), r->g[0]);
}

term rule_linear(const struct grad_rule *r, uint32_t i)
{
    static const uint32_t ops[] = {FRIT_OP_linear_backward_x, FRIT_OP_linear_backward_w,
                                   FRIT_OP_linear_backward_bias};
    const term x = i == 1 ? r->in[0] : t_shape(r, 0), w = i == 0 ? r->in[1] : t_shape(r, 1);

    if (i == 2)
        return t_op1(ops[i], r->g[0]);
    return t_op(ops[i], 3, (term[]){x, w, r->g[0]}, NULL);
}

/* All gradients of a node are results of one op. */
term rule_attention(const struct grad_rule *r, uint32_t i)
{
    enum { BIAS = 4, RESULTS = 4 };
    static const uint32_t result_of[] = {0, 1, 2, 0, 3};
    frit_attrs_attention attrs = r->attrs->attention;
    frit_tensor *more[RESULTS] = {0};
    term in[] = {r->in[0], r->in[1], r->in[2], t_none(), t_none(), r->g[0]};

    if (t_has(r->shared[0]))
        return r->shared[result_of[i]];
    for (uint32_t k = 3; k < r->n_in; k++)
        in[k] = r->in[k];
    r->shared[0] = t_of(api_op(
        &(struct api_call){.op = FRIT_OP_attention_backward,
                           .n_in = 6,
                           .in = in,
                           .attrs = &attrs,
                           .more = {&more[1], &more[2], r->wanted >> BIAS & 1 ? &more[3] : NULL}}));
    for (uint32_t k = 1; k < RESULTS; k++)
        r->shared[k] = t_of(more[k]);
    return r->shared[result_of[i]];
}

term rule_conv(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_conv attrs = r->attrs->conv;

    if (i == 2)
        return t_op1(FRIT_OP_conv_backward_bias, r->g[0]);
    if (i == 0)
        return t_op(FRIT_OP_conv_backward_x, 3, (term[]){t_shape(r, 0), r->in[1], r->g[0]}, &attrs);
    return t_op(FRIT_OP_conv_backward_w, 3, (term[]){r->in[0], t_shape(r, 1), r->g[0]}, &attrs);
}

/* The elements of t before the type's extents. */
static term first_of(term t, const struct op_type *type)
{
    const struct op_type have = t_type(t);
    frit_slices slices = {.count = type->rank};

    for (uint32_t d = 0; d < type->rank; d++)
        slices.dim[d] = (frit_range){0, type->dims[d], 1};
    return op_type_equal(&have, type) ? t : t_slice(t, &slices);
}

/* By x: what padding_out adds may make conv's result larger than x. */
term rule_conv_transpose(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_conv_transpose attrs = r->attrs->conv_transpose;
    frit_attrs_conv conv = {.struct_size = sizeof(conv), .groups = attrs.groups};

    if (i == 2)
        return t_op1(FRIT_OP_conv_backward_bias, r->g[0]);
    if (i == 1)
        return t_op(FRIT_OP_conv_transpose_backward_w, 3,
                    (term[]){r->in[0], t_shape(r, 1), r->g[0]}, &attrs);
    for (int d = 0; d < 3; d++) {
        conv.stride[d] = attrs.stride[d];
        conv.padding[d] = attrs.padding[d];
        conv.dilation[d] = attrs.dilation[d];
    }
    return first_of(t_op(FRIT_OP_conv, 3, (term[]){r->g[0], r->in[1], t_none()}, &conv),
                    &r->types[0].type);
}

term rule_avg_pool(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_avg_pool attrs = r->attrs->avg_pool;

    return t_op(FRIT_OP_avg_pool_backward, 2, (term[]){t_shape(r, i), r->g[0]}, &attrs);
}

term rule_max_pool(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_max_pool attrs = r->attrs->max_pool;

    return t_op(FRIT_OP_max_pool_backward, 3, (term[]){t_shape(r, i), r->g[0], r->y[1]}, &attrs);
}

term rule_adaptive_avg_pool(const struct grad_rule *r, uint32_t i)
{
    return t_op2(FRIT_OP_adaptive_avg_pool_backward, t_shape(r, i), r->g[0]);
}

term rule_interpolate(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_interpolate attrs = r->attrs->interpolate;

    return t_op(FRIT_OP_interpolate_backward, 2, (term[]){t_shape(r, i), r->g[0]}, &attrs);
}

/* An item whose loss counts for nothing has gradient 0, also where its loss is infinite. */
term rule_ctc_loss(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_ctc attrs = r->attrs->ctc;
    struct op_type of_item = r->types[0].type;
    const term grad = t_op(FRIT_OP_ctc_loss_backward, 5,
                           (term[]){r->in[0], r->in[1], r->in[2], r->in[3], r->g[0]}, &attrs);

    (void)i;
    of_item.dims[0] = of_item.dims[2] = 1;
    return t_where(t_eq(t_reshape(r->g[0], &of_item), t_num(0)), t_num(0), grad);
}

/* ---- spectra ---- */

/* A tensor along `axis` cut, or filled with zeros, to n. */
static term fit(term t, int64_t axis, int64_t n)
{
    const struct op_type type = t_type(t);
    frit_attrs_pad attrs = {.struct_size = sizeof(attrs)};

    if (type.dims[axis] == n)
        return t;
    attrs.low.rank = attrs.high.rank = attrs.inner.rank = type.rank;
    attrs.high.dim[axis] = n - type.dims[axis];
    return t_op(FRIT_OP_pad, 2, (term[]){t, t_num(0)}, &attrs);
}

/* 1 at 0 and, for an even n, at n / 2; `inner` elsewhere: values of a real spectrum count twice but
 * there. */
static term weights(const struct grad_rule *r, const struct op_type *like, int64_t axis, int64_t n,
                    double inner)
{
    const term k = t_iota(r, like, axis, FRIT_I64);
    const struct op_type type = t_type(k);
    const term ends = n % 2 ? t_eq(k, api_i(0)) : t_or(t_eq(k, api_i(0)), t_eq(k, api_i(n / 2)));
    struct op_type full = type;

    full.dtype = like->dtype;
    return t_where(ends, t_full(r, &full, 1), t_num(inner));
}

/* Of the sum of re * a + im * b: n times the inverse transform of (a, b), whose inner values it
 * counts twice. */
term rule_rfft(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_fft attrs = r->attrs->fft;
    const int64_t axis = attrs.axis, extent = r->types[i].type.dims[axis];
    const int64_t n = attrs.n ? attrs.n : extent;
    const struct op_type *out = &r->out[0];
    const term w = weights(r, out, axis, n, 0.5);
    const term re = t_has(r->g[0]) ? t_mul(r->g[0], w) : t_full(r, out, 0);
    const term im = t_has(r->g[1]) ? t_mul(r->g[1], w) : t_full(r, out, 0);

    attrs.n = n;
    return fit(t_mul(t_op(FRIT_OP_irfft, 2, (term[]){re, im}, &attrs), t_num((double)n)), axis,
               extent);
}

/* The transform of the gradient over n, inner values twice; the imaginary parts at the ends count
 * for nothing, and there the transform's are 0. */
term rule_irfft(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_fft attrs = r->attrs->fft;
    const int64_t axis = attrs.axis, n = r->out[0].dims[axis], extent = r->types[i].type.dims[axis];
    const term g = r->g[0];
    struct op_type like = r->out[0];
    frit_tensor *im = NULL;
    term re, t;

    attrs.n = n;
    like.dims[axis] = n / 2 + 1;
    re = t_of(api_op(&(struct api_call){
        .op = FRIT_OP_rfft, .n_in = 1, .in = &g, .attrs = &attrs, .more = {&im}}));
    t = i == 0 ? re : t_of(im);
    t = t_mul(t, weights(r, &like, axis, n, 2));
    return fit(t_mul(t, t_num(1 / (double)n)), axis, extent);
}
