/* SPDX-License-Identifier: Apache-2.0 */
/* matmul, linear and its gradient by x: one row of the result after another, gathered over k in
 * full width. */
#include "rows.h"

struct product {
    struct view a, b, y;
    struct view bias; /* of rank 1; data NULL: none */
    int64_t k, n;
    int64_t a_k, b_k, b_n, y_n; /* strides */
};

static void add_products(enum value_kind kind, union value *sums, union value a,
                         const union value *b, int64_t n)
{
    if (kind == VALUE_REAL)
        for (int64_t j = 0; j < n; j++)
            sums[j].real += a.real * b[j].real;
    else
        for (int64_t j = 0; j < n; j++)
            sums[j].uint += a.uint * b[j].uint;
}

/* `n` neighbours of a row of y from a row of a and as many columns of b. */
static void product_part(const struct product *p, const char *a, const char *b, union value *sums,
                         int64_t n)
{
    enum value_kind kind = value_kind(p->y.dtype);
    union value row[VALUE_LANES], factors[VALUE_LANES];

    for (int64_t done = 0, some; done < p->k; done += some) {
        some = p->k - done < VALUE_LANES ? p->k - done : VALUE_LANES;
        value_load(p->a.dtype, a + done * p->a_k, p->a_k, some, factors);
        for (int64_t i = 0; i < some; i++) {
            value_load(p->b.dtype, b + (done + i) * p->b_k, p->b_n, n, row);
            add_products(kind, sums, factors[i], row, n);
        }
    }
}

static void product_row(const struct product *p, const char *a, const char *b, char *y)
{
    union value sums[VALUE_LANES];

    for (int64_t done = 0, n; done < p->n; done += n) {
        n = p->n - done < VALUE_LANES ? p->n - done : VALUE_LANES;
        for (int64_t j = 0; j < n; j++)
            sums[j].uint = 0; /* the 0 of every kind */
        if (p->bias.data)
            value_load(p->bias.dtype, p->bias.data + done * p->bias.strides[0], p->bias.strides[0],
                       n, sums);
        product_part(p, a, b + done * p->b_n, sums, n);
        value_store(p->y.dtype, y + done * p->y_n, p->y_n, n, sums);
    }
}

/* a [.., m, k] or [.., k], b [.., k, n]; the rows of y are those of a. */
static void product_run(struct product *p)
{
    uint32_t k = p->a.rank - 1, n = p->b.rank - 1, last = p->y.rank - 1;
    struct view y_rows = view_without(&p->y, last), a_rows = view_without(&p->a, k),
                b_rows = view_without(&p->b, n);
    const struct view *views[] = {&y_rows, &a_rows, &b_rows};
    struct walk walk;

    p->k = p->a.dims[k];
    p->n = p->b.dims[n];
    p->a_k = p->a.strides[k];
    p->b_k = p->b.strides[n - 1];
    p->b_n = p->b.strides[n];
    p->y_n = p->y.strides[last];
    b_rows.dims[n - 1] = 1; /* every row of y sees all of k */
    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        product_row(p, p->a.data + walk.at[1], p->b.data + walk.at[2], p->y.data + walk.at[0]);
}

void ref_matmul(const struct call *call)
{
    struct product product = {.a = call_in(call, 0), .b = call_in(call, 1), .y = call_out(call, 0)};

    product_run(&product);
}

void ref_linear(const struct call *call)
{
    struct product product = {.a = call_in(call, 0),
                              .b = call_in(call, 1),
                              .bias = call_in(call, 2),
                              .y = call_out(call, 0)};

    product_run(&product);
}

/* grad times w, whose dims are swapped. */
void ref_linear_backward_x(const struct call *call)
{
    const struct view w = call_in(call, 1);
    struct product product = {.a = call_in(call, 2), .b = w, .y = call_out(call, 0)};

    for (int d = 0; d < 2; d++) {
        product.b.dims[d] = w.dims[1 - d];
        product.b.strides[d] = w.strides[1 - d];
    }
    product_run(&product);
}
