/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of views, conversions and joins. */
#include "grad/rules_shape.h"

#include <string.h>

term rule_reshape(const struct grad_rule *r, uint32_t i)
{
    return t_reshape(r->g[0], &r->types[i].type);
}

term rule_permute(const struct grad_rule *r, uint32_t i)
{
    const frit_axes *order = &r->attrs->order.order;
    frit_axes inverse = {.count = order->count};

    (void)i;
    for (int64_t d = 0; d < order->count; d++)
        inverse.axis[order->axis[d]] = d;
    return t_permute(r->g[0], &inverse);
}

term rule_transpose(const struct grad_rule *r, uint32_t i)
{
    (void)i;
    return t_transpose(r->g[0], r->attrs->swap.axis, r->attrs->swap.with);
}

term rule_flip(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_axes attrs = r->attrs->axes;

    (void)i;
    return t_op(FRIT_OP_flip, 1, &r->g[0], &attrs);
}

/* Zeros of a type, with the elements of a slice from `values`. */
static term placed(const struct grad_rule *r, const struct op_type *type, const frit_slices *slices,
                   term values)
{
    frit_attrs_slice attrs = {.struct_size = sizeof(attrs), .slices = *slices};
    const term in[] = {t_full(r, type, 0), values};

    return t_op(FRIT_OP_slice_assign, 2, in, &attrs);
}

term rule_slice(const struct grad_rule *r, uint32_t i)
{
    return placed(r, &r->types[i].type, &r->attrs->slice.slices, r->g[0]);
}

term rule_slice_assign(const struct grad_rule *r, uint32_t i)
{
    const frit_slices *slices = &r->attrs->slice.slices;
    frit_attrs_slice attrs = {.struct_size = sizeof(attrs), .slices = *slices};

    if (i == 1)
        return t_slice(r->g[0], slices);
    return t_op(FRIT_OP_slice_assign, 2, (term[]){r->g[0], t_full(r, &r->types[1].type, 0)},
                &attrs);
}

/* Each element is added up over the windows that it is in. */
term rule_unfold(const struct grad_rule *r, uint32_t i)
{
    const frit_attrs_unfold *a = &r->attrs->unfold;
    const struct op_type *x = &r->types[i].type, *out = &r->out[0];
    const int64_t windows = out->dims[a->axis], n = windows * a->size;
    struct op_type grid = {.dtype = FRIT_I64, .rank = 2, .dims = {windows, a->size}};
    struct op_type line = {.dtype = FRIT_I64, .rank = 1, .dims = {n}};
    const term start = t_mul(t_iota(r, &grid, 0, FRIT_I64), api_i(a->step ? a->step : 1));
    const term index = t_reshape(t_add(start, t_iota(r, &grid, 1, FRIT_I64)), &line);
    frit_axes order = {.count = out->rank};
    struct op_type flat = *x;
    frit_attrs_scatter attrs = {
        .struct_size = sizeof(attrs), .axis = a->axis, .update = FRIT_CHOICE_update_add};

    /* The window's dim goes behind that of the windows. */
    for (int64_t d = 0, at = 0; d < out->rank; d++) {
        order.axis[d] = d == a->axis + 1 ? out->rank - 1 : at++;
    }
    flat.dims[a->axis] = n;
    return t_op(FRIT_OP_select_assign, 3,
                (term[]){t_full(r, x, 0), index, t_reshape(t_permute(r->g[0], &order), &flat)},
                &attrs);
}

term rule_cast(const struct grad_rule *r, uint32_t i)
{
    return t_cast(r->g[0], r->types[i].type.dtype);
}

/* ---- joins ---- */

/* The elements start .. stop along an axis. */
static term part(term x, int64_t axis, int64_t start, int64_t stop)
{
    frit_slices slices = {.count = axis + 1};

    slices.dim[axis] = (frit_range){start, stop, 1};
    return t_slice(x, &slices);
}

term rule_cat(const struct grad_rule *r, uint32_t i)
{
    const int64_t axis = r->attrs->axis.axis;
    int64_t start = 0;

    for (uint32_t k = 0; k < i; k++)
        start += r->types[k].type.dims[axis];
    return part(r->g[0], axis, start, start + r->types[i].type.dims[axis]);
}

term rule_stack(const struct grad_rule *r, uint32_t i)
{
    return t_reshape(part(r->g[0], r->attrs->axis.axis, i, i + 1), &r->types[i].type);
}

term rule_repeat(const struct grad_rule *r, uint32_t i)
{
    const frit_attrs_repeat *a = &r->attrs->repeat;
    const struct op_type *x = &r->types[i].type;
    const frit_axes axes = {.count = 1, .axis = {a->axis}};
    struct op_type apart = {.dtype = x->dtype, .rank = x->rank + 1};

    if (x->rank == FRIT_MAX_RANK) { /* no dim is left: one part after another */
        term sum = t_full(r, x, 0);

        for (int64_t k = 0; k < a->times; k++)
            sum = t_add(sum,
                        part(r->g[0], a->axis, k * x->dims[a->axis], (k + 1) * x->dims[a->axis]));
        return sum;
    }
    memcpy(apart.dims, x->dims, (size_t)a->axis * sizeof(*x->dims));
    apart.dims[a->axis] = a->times;
    memcpy(apart.dims + a->axis + 1, x->dims + a->axis,
           (x->rank - (size_t)a->axis) * sizeof(*x->dims));
    return t_sum(t_reshape(r->g[0], &apart), &axes, false);
}

/* The places of the operand's elements in the result; what was cropped gets 0. */
term rule_pad(const struct grad_rule *r, uint32_t i)
{
    const frit_attrs_pad *a = &r->attrs->pad;
    const struct op_type *x = &r->types[i].type, *out = &r->out[0];
    frit_slices from = {.count = x->rank}, to = {.count = x->rank};
    bool cropped = false;

    for (uint32_t d = 0; d < x->rank; d++) {
        const int64_t step = a->inner.dim[d] + 1, low = a->low.dim[d];
        int64_t first = low < 0 ? (-low + step - 1) / step : 0, last = x->dims[d];

        if (last > 0 && low + (last - 1) * step >= out->dims[d])
            last = out->dims[d] > low ? (out->dims[d] - low + step - 1) / step : 0;
        if (last < first)
            first = last = 0;
        from.dim[d] =
            (frit_range){low + first * step,
                         last > first ? low + (last - 1) * step + 1 : low + first * step, step};
        if (last == first)
            from.dim[d] = (frit_range){0, 0, 1};
        to.dim[d] = (frit_range){first, last, 1};
        cropped |= first > 0 || last < x->dims[d];
    }
    return cropped ? placed(r, x, &to, t_slice(r->g[0], &from)) : t_slice(r->g[0], &from);
}

/* Sums of gradients over the same ranks. */
term rule_all_reduce(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_collective attrs = r->attrs->collective;

    (void)i;
    return t_op(FRIT_OP_all_reduce, 1, &r->g[0], &attrs);
}

term rule_all_reduce_coalesced(const struct grad_rule *r, uint32_t i)
{
    int64_t start = 0;

    if (!t_has(r->shared[0]))
        r->shared[0] = rule_all_reduce(r, 0);
    for (uint32_t k = 0; k < i; k++)
        start += op_elements(&r->types[k].type);
    return t_reshape(part(r->shared[0], 0, start, start + op_elements(&r->types[i].type)),
                     &r->types[i].type);
}

term rule_all_gather(const struct grad_rule *r, uint32_t i)
{
    const frit_attrs_all_gather *a = &r->attrs->all_gather;
    frit_attrs_reduce_scatter attrs = {
        .struct_size = sizeof(attrs), .ranks = a->ranks, .group = a->group};

    (void)i;
    return t_op(FRIT_OP_reduce_scatter, 1, &r->g[0], &attrs);
}

term rule_reduce_scatter(const struct grad_rule *r, uint32_t i)
{
    const frit_attrs_reduce_scatter *a = &r->attrs->reduce_scatter;
    frit_attrs_all_gather attrs = {
        .struct_size = sizeof(attrs), .ranks = a->ranks, .group = a->group};
    const term sum = t_op(FRIT_OP_all_gather, 1, &r->g[0], &attrs);

    (void)i;
    return a->combine == FRIT_CHOICE_combine_mean ? t_mul(sum, t_num(1.0 / (double)a->ranks)) : sum;
}
