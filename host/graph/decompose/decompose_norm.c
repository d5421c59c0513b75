/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, the softmax family and normalisation. */
#include <math.h>

#include "graph/decompose/build.h"

static const struct op_type *operand(const struct build *b, uint32_t index)
{
    return &b->call->in[index].type;
}

static term square(struct build *b, term x)
{
    return b_mul(b, x, x);
}

/* ---- reductions ---- */

term decompose_mean(struct build *b)
{
    const frit_attrs_reduce *a = b->call->attrs;

    return b_mean(b, b_in(b, 0), &a->axes, a->keep);
}

term decompose_var(struct build *b)
{
    const frit_attrs_reduce *a = b->call->attrs;
    term x = b_in(b, 0);

    return b_mean(b, square(b, b_sub(b, x, b_mean(b, x, &a->axes, true))), &a->axes, a->keep);
}

term decompose_max_abs(struct build *b)
{
    const frit_attrs_reduce *a = b->call->attrs;

    return b_reduce(b, FRIT_OP_max, b_abs(b, b_in(b, 0)), &a->axes, a->keep);
}

/* max or min over truth values; these rows refuse an empty axis, where `identity` is the answer. */
static term truth(struct build *b, uint32_t op, double identity)
{
    const frit_attrs_reduce *a = b->call->attrs;
    term x = b_in(b, 0);

    for (int64_t i = 0; i < a->axes.count; i++) {
        if (operand(b, 0)->dims[a->axes.axis[i]] == 0)
            return b_full(b, FRIT_BOOL, b_number(identity).scalar, b->out.rank, b->out.dims);
    }
    if (operand(b, 0)->dtype != FRIT_BOOL)
        x = b_not(b, b_eq(b, x, b_number(0)));
    return b_reduce(b, op, x, &a->axes, a->keep);
}

term decompose_any(struct build *b)
{
    return truth(b, FRIT_OP_max, 0);
}

term decompose_all(struct build *b)
{
    return truth(b, FRIT_OP_min, 1);
}

/* ---- softmax ---- */

static frit_axes one_axis(const struct build *b)
{
    const frit_attrs_axis *a = b->call->attrs;

    return (frit_axes){.count = 1, .axis = {a->axis}};
}

/* x - max(x), so that the largest power is 1. */
static term shifted(struct build *b, term x, const frit_axes *axes)
{
    return b_sub(b, x, b_reduce(b, FRIT_OP_max, x, axes, true));
}

static term softmax(struct build *b, term x)
{
    frit_axes axes = one_axis(b);
    term e = b_exp(b, shifted(b, x, &axes));

    return b_div_rows(b, e, b_reduce(b, FRIT_OP_sum, e, &axes, true));
}

term decompose_softmax(struct build *b)
{
    return softmax(b, b_in(b, 0));
}

term decompose_softmin(struct build *b)
{
    return softmax(b, b_neg(b, b_in(b, 0)));
}

term decompose_log_softmax(struct build *b)
{
    frit_axes axes = one_axis(b);
    term x = shifted(b, b_in(b, 0), &axes);

    return b_sub(b, x, b_log(b, b_reduce(b, FRIT_OP_sum, b_exp(b, x), &axes, true)));
}

/* ---- normalisation ---- */

static term over_root(struct build *b, term x, term mean_square, double eps)
{
    return b_div_rows(b, x, b_sqrt(b, b_add(b, mean_square, b_number(eps))));
}

static term normalised(struct build *b, term x, const frit_axes *axes, double eps)
{
    term d = b_sub(b, x, b_mean(b, x, axes, true));

    return over_root(b, d, b_mean(b, square(b, d), axes, true), eps);
}

/* An operand with the dims of the axes, with extent 1 everywhere else; the last dims need nothing.
 */
static term along_axes(struct build *b, uint32_t index, const frit_axes *axes)
{
    const struct op_type *x = operand(b, 0);
    int64_t dims[FRIT_MAX_RANK];

    if (axes->axis[0] == (int64_t)x->rank - axes->count)
        return b_in(b, index);
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = 1;
    for (int64_t i = 0; i < axes->count; i++)
        dims[axes->axis[i]] = x->dims[axes->axis[i]];
    return b_reshape(b, b_in(b, index), x->rank, dims);
}

/* y * gamma + beta, where they are there. */
static term scaled(struct build *b, term y, uint32_t gamma, uint32_t beta, const frit_axes *axes)
{
    if (b_has(b, gamma))
        y = b_mul(b, y, along_axes(b, gamma, axes));
    if (beta < b->call->n_in && b_has(b, beta))
        y = b_add(b, y, along_axes(b, beta, axes));
    return y;
}

term decompose_layer_norm(struct build *b)
{
    const frit_attrs_norm_axes *a = b->call->attrs;

    return scaled(b, normalised(b, b_in(b, 0), &a->axes, a->eps), 1, 2, &a->axes);
}

term decompose_rms_norm(struct build *b)
{
    const frit_attrs_norm_axes *a = b->call->attrs;
    term x = b_in(b, 0);
    term y = over_root(b, x, b_mean(b, square(b, x), &a->axes, true), a->eps);

    return scaled(b, y, 1, 2, &a->axes);
}

static const frit_axes channel = {.count = 1, .axis = {1}};

term decompose_batch_norm(struct build *b)
{
    const frit_attrs_norm *a = b->call->attrs;
    term d = b_sub(b, b_in(b, 0), along_axes(b, 3, &channel));

    return scaled(b, over_root(b, d, along_axes(b, 4, &channel), a->eps), 1, 2, &channel);
}

/* A group's channels and all later dims become one dim. */
term decompose_group_norm(struct build *b)
{
    const frit_attrs_norm_groups *a = b->call->attrs;
    const frit_axes last = {.count = 1, .axis = {2}};
    const struct op_type *x = operand(b, 0);
    int64_t dims[3] = {x->dims[0], a->groups, op_elements(x) / (x->dims[0] * a->groups)};
    term y = normalised(b, b_reshape(b, b_in(b, 0), 3, dims), &last, a->eps);

    return scaled(b, b_reshape(b, y, x->rank, x->dims), 1, 2, &channel);
}
