/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of the views, and of slice_assign, which shares the slices. */
#include <string.h>

#include "base/fail.h"
#include "graph/dtype.h"
#include "graph/shape/shape.h"

/* The product of extents; a zero among them gives 0 whatever the others are. */
static frit_status product(const struct shape_call *s, uint32_t rank, const int64_t *dims,
                           int64_t *out)
{
    *out = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0) {
            *out = 0;
            return FRIT_OK;
        }
    }
    for (uint32_t i = 0; i < rank; i++)
        TRY(shape_mul(s, *out, dims[i], out));
    return FRIT_OK;
}

/* -1 stands for what the other extents leave of `count` elements. */
static frit_status fill_open_dim(const struct shape_call *s, frit_dims *dims, int64_t count)
{
    int64_t open = -1, rest;

    for (int64_t i = 0; i < dims->rank; i++) {
        if (dims->dim[i] < -1)
            return shape_fail(s, "extent %lld in dims", (long long)dims->dim[i]);
        if (dims->dim[i] == -1 && open >= 0)
            return shape_fail(s, "only one extent in dims may be -1");
        if (dims->dim[i] == -1)
            open = i;
    }
    if (open < 0)
        return FRIT_OK;
    dims->dim[open] = 1;
    TRY(product(s, (uint32_t)dims->rank, dims->dim, &rest));
    if (rest == 0)
        return shape_fail(s, "-1 in dims is ambiguous beside an extent of 0");
    if (count % rest)
        return shape_fail(s, "%lld elements do not divide by the other extents' %lld",
                          (long long)count, (long long)rest);
    dims->dim[open] = count / rest;
    return FRIT_OK;
}

frit_status shape_rule_reshape(struct shape_call *s)
{
    frit_attrs_dims *a = s->call->attrs;
    int64_t count = op_elements(shape_in(s, 0)), wanted;

    TRY(fill_open_dim(s, &a->dims, count));
    TRY(product(s, (uint32_t)a->dims.rank, a->dims.dim, &wanted));
    if (wanted != count)
        return shape_fail(s, "%lld elements cannot become %lld", (long long)count,
                          (long long)wanted);
    return shape_set(s, 0, (uint32_t)a->dims.rank, a->dims.dim);
}

frit_status shape_rule_permute(struct shape_call *s)
{
    frit_attrs_order *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    bool used[FRIT_MAX_RANK] = {false};
    int64_t dims[FRIT_MAX_RANK];

    if (a->order.count != (int64_t)x->rank)
        return shape_fail(s, "order has %lld axes, it must name each of %u once",
                          (long long)a->order.count, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t *axis = &a->order.axis[i];

        TRY(shape_axis(s, axis, x->rank));
        if (used[*axis])
            return shape_fail(s, "order names axis %lld twice", (long long)*axis);
        used[*axis] = true;
        dims[i] = x->dims[*axis];
    }
    return shape_set(s, 0, x->rank, dims);
}

frit_status shape_rule_expand(struct shape_call *s)
{
    frit_attrs_dims *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    int64_t extra = a->dims.rank - x->rank;

    if (extra < 0)
        return shape_fail(s, "dims has %lld entries, fewer than the rank", (long long)a->dims.rank);
    for (int64_t i = 0; i < a->dims.rank; i++) {
        int64_t *dim = &a->dims.dim[i];

        if (*dim < -1 || (*dim == -1 && i < extra))
            return shape_fail(s, "extent %lld in dims; -1 keeps an extent that is there",
                              (long long)*dim);
        if (i < extra)
            continue;
        if (*dim == -1)
            *dim = x->dims[i - extra];
        if (x->dims[i - extra] != *dim && x->dims[i - extra] != 1)
            return shape_fail(s, "extent %lld of dim %lld cannot become %lld, only 1 stretches",
                              (long long)x->dims[i - extra], (long long)(i - extra),
                              (long long)*dim);
    }
    return shape_set(s, 0, (uint32_t)a->dims.rank, a->dims.dim);
}

static int64_t clip(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Counts a bound from the front; the sentinel stays where it is. */
static int64_t from_front(int64_t bound, int64_t extent)
{
    return bound < 0 ? bound + extent : bound;
}

/* NumPy's slice.indices, then the form that op_check promises.  Returns how many elements it takes.
 */
static int64_t resolve_range(frit_range *range, int64_t extent)
{
    int64_t start = from_front(range->start, extent), stop = from_front(range->stop, extent);
    int64_t step = range->step, count;
    bool open = range->stop == FRIT_SLICE_END;

    if (step == 0) {
        start = 0;
        stop = extent;
        step = 1;
    } else if (step > 0) {
        start = clip(start, 0, extent);
        stop = clip(stop, 0, extent);
    } else {
        start = clip(start, -1, extent - 1);
        stop = open ? -1 : clip(stop, -1, extent - 1);
    }
    if (step > 0)
        count = start < stop ? (stop - start - 1) / step + 1 : 0;
    else
        count = start > stop ? -((start - stop - 1) / step) + 1 : 0;
    if (count == 0)
        *range = (frit_range){0, 0, 1};
    else if (count == 1)
        *range = (frit_range){start, start + 1, 1};
    else
        *range = (frit_range){start, stop < 0 ? FRIT_SLICE_END : stop, step};
    return count;
}

frit_status shape_slices(const struct shape_call *s, frit_slices *slices, int64_t *dims)
{
    const struct op_type *x = shape_in(s, 0);

    if (slices->count > (int64_t)x->rank)
        return shape_fail(s, "%lld slices for rank %u", (long long)slices->count, x->rank);
    slices->count = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = resolve_range(&slices->dim[i], x->dims[i]);
    return FRIT_OK;
}

frit_status shape_rule_slice(struct shape_call *s)
{
    frit_attrs_slice *a = s->call->attrs;
    int64_t dims[FRIT_MAX_RANK];

    TRY(shape_slices(s, &a->slices, dims));
    return shape_set(s, 0, shape_in(s, 0)->rank, dims);
}

frit_status shape_rule_slice_assign(struct shape_call *s)
{
    frit_attrs_slice *a = s->call->attrs;
    int64_t dims[FRIT_MAX_RANK];

    TRY(shape_slices(s, &a->slices, dims));
    TRY(shape_dims(s, 1, shape_in(s, 0)->rank, dims));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_flip(struct shape_call *s)
{
    frit_attrs_axes *a = s->call->attrs;

    TRY(shape_axes_or_all(s, &a->axes, shape_in(s, 0)->rank));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_unfold(struct shape_call *s)
{
    frit_attrs_unfold *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK + 1] = {0};

    TRY(shape_axis(s, &a->axis, x->rank));
    a->step = a->step ? a->step : 1;
    if (a->size < 1 || a->size > x->dims[a->axis])
        return shape_fail(s, "size is %lld, it must be 1 to the extent %lld of axis %lld",
                          (long long)a->size, (long long)x->dims[a->axis], (long long)a->axis);
    memcpy(dims, x->dims, sizeof(x->dims));
    dims[a->axis] = (x->dims[a->axis] - a->size) / a->step + 1;
    if (dims[a->axis] == 1) /* any step that leads out of the axis; the smallest */
        a->step = x->dims[a->axis] - a->size + 1;
    dims[x->rank] = a->size;
    return shape_set(s, 0, x->rank + 1, dims);
}

/* Bytes of a bool are 0 or 1, which other bits need not be. */
frit_status shape_rule_bitcast(struct shape_call *s)
{
    const frit_attrs_cast *a = s->call->attrs;
    const uint32_t from = shape_in(s, 0)->dtype, to = (uint32_t)a->dtype;
    const uint32_t bits = frit_dtype_info_of(from).bits, wanted = frit_dtype_info_of(to).bits;

    if (bits != wanted)
        return shape_fail(s, "%s has %u bits, %s has %u; they must have the same number",
                          dtype_name(from), bits, dtype_name(to), wanted);
    if (to == FRIT_BOOL && from != FRIT_BOOL)
        return shape_fail(s, "bits of %s are no bool; compare with `ne`", dtype_name(from));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_transpose(struct shape_call *s)
{
    frit_attrs_swap *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);

    TRY(shape_axis(s, &a->axis, x->rank));
    TRY(shape_axis(s, &a->with, x->rank));
    TRY(shape_set_like(s, 0, 0));
    s->out[0].dims[a->axis] = x->dims[a->with];
    s->out[0].dims[a->with] = x->dims[a->axis];
    return FRIT_OK;
}

frit_status shape_rule_squeeze(struct shape_call *s)
{
    frit_attrs_axes *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK], next = 0;
    uint32_t rank = 0;

    TRY(shape_axes(s, &a->axes, x->rank));
    for (uint32_t i = 0; a->axes.count == 0 && i < x->rank; i++) {
        if (x->dims[i] == 1)
            a->axes.axis[next++] = i;
    }
    a->axes.count += next;
    next = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (next == a->axes.count || a->axes.axis[next] != (int64_t)i) {
            dims[rank++] = x->dims[i];
            continue;
        }
        if (x->dims[i] != 1)
            return shape_fail(s, "dim %u has extent %lld, only 1 can go", i, (long long)x->dims[i]);
        next++;
    }
    return shape_set(s, 0, rank, dims);
}

frit_status shape_rule_unsqueeze(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK + 1];

    TRY(shape_axis(s, &a->axis, x->rank + 1));
    for (uint32_t i = 0; i <= x->rank; i++)
        dims[i] = i == a->axis ? 1 : x->dims[i - (i > a->axis)];
    return shape_set(s, 0, x->rank + 1, dims);
}
