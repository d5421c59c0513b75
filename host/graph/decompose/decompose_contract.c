/* SPDX-License-Identifier: Apache-2.0 */
/* linear with its gradients, gradients by a bias, cross. */
#include "graph/decompose/build.h"

static const struct op_type *operand(const struct build *b, uint32_t index)
{
    return &b->call->in[index].type;
}

/* x [.., n] as [m, n]; either may be 0. */
static term as_matrix(struct build *b, uint32_t index)
{
    const struct op_type *x = operand(b, index);
    int64_t dims[2] = {1, x->dims[x->rank - 1]};

    for (uint32_t d = 0; d + 1 < x->rank; d++)
        dims[0] *= x->dims[d];
    return b_reshape(b, b_in(b, index), 2, dims);
}

term decompose_linear(struct build *b)
{
    term x = operand(b, 0)->rank == 1 ? as_matrix(b, 0) : b_in(b, 0);
    term y = b_matmul(b, x, b_in(b, 1));

    if (b_has(b, 2))
        y = b_add(b, y, b_in(b, 2));
    return operand(b, 0)->rank == 1 ? b_reshape(b, y, 1, b->out.dims) : y;
}

term decompose_linear_backward_x(struct build *b)
{
    term grad = as_matrix(b, 2), dx = b_matmul(b, grad, b_swap_last(b, b_in(b, 1)));

    return b_reshape(b, dx, b->out.rank, b->out.dims);
}

term decompose_linear_backward_w(struct build *b)
{
    term x = b_swap_last(b, as_matrix(b, 0));

    return b_matmul(b, x, as_matrix(b, 2));
}

term decompose_linear_backward_bias(struct build *b)
{
    const frit_axes rows = {.count = 1, .axis = {0}};

    return b_reduce(b, FRIT_OP_sum, as_matrix(b, 0), &rows, false);
}

term decompose_conv_backward_bias(struct build *b)
{
    frit_axes axes = {.count = 1, .axis = {0}};

    for (uint32_t i = 2; i < operand(b, 0)->rank; i++)
        axes.axis[axes.count++] = i;
    return b_reduce(b, FRIT_OP_sum, b_in(b, 0), &axes, false);
}

/* Component i of operand `index` along the axis of the result, aligned at the right. */
static term component(struct build *b, uint32_t index, uint32_t i)
{
    const frit_attrs_axis *a = b->call->attrs;
    uint32_t axis = (uint32_t)a->axis + operand(b, index)->rank - b->out.rank;

    return b_slice(b, b_in(b, index), axis, i % 3, i % 3 + 1);
}

term decompose_cross(struct build *b)
{
    const frit_attrs_axis *a = b->call->attrs;
    term y[3];

    for (uint32_t i = 0; i < 3; i++) {
        term a1 = component(b, 0, i + 1), a2 = component(b, 0, i + 2);
        term b1 = component(b, 1, i + 1), b2 = component(b, 1, i + 2);
        term plus = b_mul(b, a1, b2);

        y[i] = b_sub(b, plus, b_mul(b, a2, b1));
    }
    return b_cat(b, 3, y, (uint32_t)a->axis);
}
