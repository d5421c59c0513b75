/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that are sums over rows: of linear by w, of embedding, and by a bias. */
#include "rows.h"

static void add_to(const struct view *sums, int64_t at, double value)
{
    union value old = value_get(sums->dtype, sums->data + at);

    old.real += value;
    value_put(sums->dtype, sums->data + at, old);
}

/* The outer product of every row of x with its row of grad. */
void ref_linear_backward_w(const struct call *call)
{
    const struct view x = call_in(call, 0), grad = call_in(call, 2), sums = call_sums(call, 0);
    uint32_t last = x.rank - 1;
    const struct view x_rows = view_without(&x, last), grad_rows = view_without(&grad, last);
    const struct view *views[] = {&x_rows, &grad_rows};
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t i = 0; i < sums.dims[0]; i++)
            for (int64_t o = 0; o < sums.dims[1]; o++)
                add_to(&sums, i * sums.strides[0] + o * sums.strides[1],
                       value_get(x.dtype, x.data + walk.at[0] + i * x.strides[last]).real *
                           value_get(grad.dtype, grad.data + walk.at[1] + o * grad.strides[last])
                               .real);
    call_round(call, 0, &sums);
}

/* A row number outside adds nothing. */
void ref_embedding_backward(const struct call *call)
{
    const struct view grad = call_in(call, 1), index = call_in(call, 2);
    const struct view sums = call_sums(call, 0);
    uint32_t last = grad.rank - 1;
    const struct view grad_rows = view_without(&grad, last);
    const struct view *views[] = {&index, &grad_rows};
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        int64_t row = value_get(index.dtype, index.data + walk.at[0]).sint;

        for (int64_t i = 0; i < sums.dims[1] && row >= 0 && row < sums.dims[0]; i++)
            add_to(&sums, row * sums.strides[0] + i * sums.strides[1],
                   value_get(grad.dtype, grad.data + walk.at[1] + i * grad.strides[last]).real);
    }
    call_round(call, 0, &sums);
}

/* Sums over all dims but one. */
static void sum_all_but(const struct call *call, uint32_t axis)
{
    const struct view grad = call_in(call, 0), db = call_out(call, 0);
    const struct view rest = view_without(&grad, axis), *views[] = {&rest};
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 1);
    for (int64_t i = 0; i < db.dims[0]; i++) {
        union value sum = {.real = 0};

        for (bool more = walk_first(&walk); more; more = walk_next(&walk))
            sum.real += value_get(grad.dtype, grad.data + walk.at[0] + i * grad.strides[axis]).real;
        value_put(db.dtype, db.data + i * db.strides[0], sum);
    }
}

void ref_conv_backward_bias(const struct call *call)
{
    sum_all_but(call, 1);
}

void ref_linear_backward_bias(const struct call *call)
{
    sum_all_but(call, call_in(call, 0).rank - 1);
}
