/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and interpolation as weighted reads along one spatial dim after another, and their
 * gradients as the same reads turned round.
 *
 * Place i of a result reads some neighbours of x, its taps.  Their numbers in x, their weights and
 * whether they are there are tables [size, taps], which core ops compute by counting, in integers
 * as far as they go. */
#include <string.h>

#include "graph/decompose/decompose_taps.h"

/* How places along one dim read x. */
struct reads {
    uint32_t axis;
    int64_t extent, size, taps;
    int64_t repeats; /* places in a row that read one element, of all elements in order; 0: see the
                        tables, which repeats leave out */
    term index;      /* i64, within x */
    term weight;     /* absent: 1 */
    term there;      /* bool; absent: all of them */
    term divisor;    /* [size, 1], by which the sum is divided; absent: 1 */
};

static bool is_there(term x)
{
    return x.kind != FRIT_OPERAND_ABSENT;
}

/* ---- reading and its reverse ---- */

/* The dims of x with the axis split into this many places and taps. */
static struct op_type split(const struct reads *r, const struct op_type *x, int64_t size,
                            int64_t taps)
{
    struct op_type y = {.dtype = x->dtype, .rank = x->rank + 1};

    for (uint32_t d = 0; d < y.rank; d++)
        y.dims[d] = d <= r->axis ? x->dims[d] : x->dims[d - 1];
    y.dims[r->axis] = size;
    y.dims[r->axis + 1] = taps;
    return y;
}

/* The dims of x with another extent along the axis. */
static struct op_type resized(const struct reads *r, const struct op_type *x, int64_t extent)
{
    struct op_type y = *x;

    y.dims[r->axis] = extent;
    return y;
}

static term reshaped(struct build *b, term x, const struct op_type *type)
{
    return b_reshape(b, x, type->rank, type->dims);
}

/* A table beside a tensor of this type whose axis is split. */
static term beside(struct build *b, const struct reads *r, term table, const struct op_type *x)
{
    struct op_type type = b_type(b, table), ones = {.rank = x->rank};

    for (uint32_t d = 0; d < x->rank; d++)
        ones.dims[d] = 1;
    ones = split(r, &ones, type.dims[0], type.dims[1]);
    return reshaped(b, table, &ones);
}

static term flat(struct build *b, const struct reads *r, term table)
{
    return b_reshape(b, table, 1, (const int64_t[]){r->size * r->taps});
}

/* Each element of the axis as often as it is read. */
static term repeat_along(struct build *b, const struct reads *r, term x)
{
    struct op_type from = b_type(b, x), one = split(r, &from, r->extent, 1);
    struct op_type all = split(r, &from, r->extent, r->repeats), to = resized(r, &from, r->size);

    return reshaped(b, b_expand(b, reshaped(b, x, &one), all.rank, all.dims), &to);
}

/* x with the size in place of its extent. */
static term read_along(struct build *b, const struct reads *r, term x)
{
    const frit_axes taps = {.count = 1, .axis = {r->axis + 1}};
    struct op_type from = b_type(b, x), to = split(r, &from, r->size, r->taps);

    if (r->repeats)
        return repeat_along(b, r, x);
    if (r->taps == 1 && !is_there(r->there) && !is_there(r->weight) && !is_there(r->divisor))
        return b_select(b, x, flat(b, r, r->index), r->axis);
    x = reshaped(b, b_select(b, x, flat(b, r, r->index), r->axis), &to);
    if (is_there(r->there))
        x = b_where(b, beside(b, r, r->there, &from), x, b_number(0));
    if (is_there(r->weight))
        x = b_mul(b, x, beside(b, r, r->weight, &from));
    x = b_reduce(b, FRIT_OP_sum, x, &taps, true);
    if (is_there(r->divisor))
        x = b_div(b, x, beside(b, r, r->divisor, &from));
    to = resized(r, &from, r->size);
    return reshaped(b, x, &to);
}

/* The gradients of what reads an element, added up. */
static term add_repeats(struct build *b, const struct reads *r, term grad)
{
    const frit_axes taps = {.count = 1, .axis = {r->axis + 1}};
    struct op_type from = b_type(b, grad), all = split(r, &from, r->extent, r->repeats);
    struct op_type to = resized(r, &from, r->extent);

    return reshaped(b, b_reduce(b, FRIT_OP_sum, reshaped(b, grad, &all), &taps, true), &to);
}

/* The gradient by what was read, added up where it was read.  Taps that are not there get the
 * number -1, which writes nothing. */
static term spread_along(struct build *b, const struct reads *r, term grad)
{
    struct op_type from = b_type(b, grad), one = split(r, &from, r->size, 1);
    struct op_type taps = split(r, &from, r->size, r->taps);
    struct op_type line = resized(r, &from, r->size * r->taps), to = resized(r, &from, r->extent);
    struct op_type column = {.rank = from.rank};
    term index = r->index, in[3];

    if (r->repeats)
        return r->repeats == 1 ? grad : add_repeats(b, r, grad);
    for (uint32_t d = 0; d < from.rank; d++)
        column.dims[d] = d == r->axis ? r->size * r->taps : 1;
    grad = reshaped(b, grad, &one);
    if (is_there(r->divisor))
        grad = b_div(b, grad, beside(b, r, r->divisor, &from));
    if (is_there(r->weight))
        grad = b_mul(b, grad, beside(b, r, r->weight, &from));
    if (is_there(r->there))
        index = b_where(b, r->there, index, b_number(-1));
    in[0] = b_full(b, b->dtype, b_number(0).scalar, to.rank, to.dims);
    in[1] = b_expand(b, reshaped(b, flat(b, r, index), &column), line.rank, line.dims);
    in[2] = reshaped(b, b_expand(b, grad, taps.rank, taps.dims), &line);
    return b_scatter(b, in, r->axis, FRIT_CHOICE_update_add);
}

/* ---- tables ---- */

/* The places as a column; a * place + c. */
static term places(struct build *b, const struct reads *r, int64_t a, int64_t c)
{
    term i = b_reshape(b, b_arange(b, r->size), 2, (const int64_t[]){r->size, 1});

    return b_add(b, b_mul(b, i, b_number((double)a)), b_number((double)c));
}

static term at_most(struct build *b, term x, int64_t most)
{
    return b_minimum(b, x, b_number((double)most));
}

static term at_least(struct build *b, term x, int64_t least)
{
    return b_maximum(b, x, b_number((double)least));
}

/* Reads the elements from `start` up to `end`, two columns of integers that may lie outside of x.
 */
static void read_ranges(struct build *b, struct reads *r, term start, term end)
{
    term step = b_reshape(b, b_arange(b, r->taps), 2, (const int64_t[]){1, r->taps});
    term index = b_add(b, start, step), inside = b_lt(b, index, at_most(b, end, r->extent));

    r->there = b_and(b, inside, b_le(b, b_number(0), index));
    r->index = at_least(b, at_most(b, index, r->extent - 1), 0);
}

static void adaptive_reads(struct build *b, struct reads *r, uint32_t i)
{
    int64_t size = r->size ? r->size : 1; /* of nothing: no place, but a divisor */
    term start = b_div(b, places(b, r, r->extent, 0), b_number((double)size));
    term end = b_div(b, places(b, r, r->extent, r->extent + size - 1), b_number((double)size));

    (void)i;
    r->taps = r->extent / size + 2;
    read_ranges(b, r, start, end);
    r->divisor = b_cast(b, b_sub(b, end, start), b->dtype);
}

static void window_reads(struct build *b, struct reads *r, uint32_t i)
{
    const frit_attrs_avg_pool *a = b->call->attrs;
    int64_t padding = a->padding[i];
    term start = places(b, r, a->stride[i], -padding), end;

    r->taps = a->kernel[i];
    end = at_most(b, b_add(b, start, b_number((double)r->taps)), r->extent + padding);
    read_ranges(b, r, start, end);
    if (a->exclude_pad) {
        start = at_least(b, start, 0);
        end = at_most(b, end, r->extent);
    }
    r->divisor = b_cast(b, b_sub(b, end, start), b->dtype);
}

/* The point of place i is a fraction; its whole part and the rest are taken apart in integers. */
static void point_reads(struct build *b, struct reads *r, int64_t mode, bool align_corners)
{
    int64_t size = r->size, n = r->extent;
    int64_t below = !align_corners ? 2 * size : size > 1 ? size - 1 : 1;
    term above = align_corners ? places(b, r, n - 1, 0) : places(b, r, 2 * n, n - size);
    term rest, whole, step = taps_places(b, mode, 2);

    if (mode == FRIT_CHOICE_resample_bilinear)
        above = at_least(b, above, 0);
    rest = b_rem(b, above, b_number((double)below));
    whole = b_div(b, b_sub(b, above, rest), b_number((double)below));
    r->taps = taps_count(mode);
    r->index = at_least(b, at_most(b, b_add(b, whole, step), n - 1), 0);
    rest = b_div(b, b_cast(b, rest, b->dtype), b_number((double)below));
    r->weight = taps_weights(b, mode, rest, step);
}

static void interpolate_reads(struct build *b, struct reads *r, uint32_t i)
{
    const frit_attrs_interpolate *a = b->call->attrs;
    int64_t half = a->mode == FRIT_CHOICE_resample_nearest_exact ? r->extent : 0;

    (void)i;
    if (taps_count(a->mode) > 1) {
        point_reads(b, r, a->mode, a->align_corners);
        return;
    }
    r->taps = 1;
    if (r->size % r->extent == 0)
        r->repeats = r->size / r->extent;
    else
        r->index = b_div(b, places(b, r, 2 * r->extent, half), b_number(2 * (double)r->size));
}

/* ---- rows ---- */

/* Fills the tables for spatial dim i. */
typedef void (*reads_fn)(struct build *b, struct reads *r, uint32_t i);

static term forward(struct build *b, reads_fn fn)
{
    term x = b_in(b, 0);

    for (uint32_t axis = 2; axis < b->out.rank; axis++) {
        struct reads r = {
            .axis = axis, .extent = b->call->in[0].type.dims[axis], .size = b->out.dims[axis]};

        fn(b, &r, axis - 2);
        x = read_along(b, &r, x);
    }
    return x;
}

static term backward(struct build *b, reads_fn fn)
{
    term grad = b_in(b, 1);

    for (uint32_t axis = 2; axis < b->out.rank; axis++) {
        struct reads r = {
            .axis = axis, .extent = b->out.dims[axis], .size = b->call->in[1].type.dims[axis]};

        fn(b, &r, axis - 2);
        grad = spread_along(b, &r, grad);
    }
    return grad;
}

term decompose_adaptive_avg_pool(struct build *b)
{
    return forward(b, adaptive_reads);
}

term decompose_adaptive_avg_pool_backward(struct build *b)
{
    return backward(b, adaptive_reads);
}

term decompose_avg_pool_backward(struct build *b)
{
    return backward(b, window_reads);
}

term decompose_interpolate(struct build *b)
{
    return forward(b, interpolate_reads);
}

term decompose_interpolate_backward(struct build *b)
{
    return backward(b, interpolate_reads);
}

/* The index counts the elements of a plane. */
term decompose_max_pool_backward(struct build *b)
{
    const struct op_type *x = &b->out, *grad = &b->call->in[1].type;
    int64_t plane[3] = {x->dims[0], x->dims[1], 1}, windows[3] = {x->dims[0], x->dims[1], 1};
    term in[3];

    for (uint32_t d = 2; d < x->rank; d++) {
        plane[2] *= x->dims[d];
        windows[2] *= grad->dims[d];
    }
    in[0] = b_full(b, b->dtype, b_number(0).scalar, 3, plane);
    in[1] = b_reshape(b, b_in(b, 2), 3, windows);
    in[2] = b_reshape(b, b_in(b, 1), 3, windows);
    return b_reshape(b, b_scatter(b, in, 2, FRIT_CHOICE_update_add), x->rank, x->dims);
}
