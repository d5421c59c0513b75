/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of rows that work along axes: reductions, scans, sorting, normalisation. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "graph/scalar.h"
#include "graph/shape/shape.h"

/* Drops the axes, or keeps them with extent 1. */
static frit_status without_axes(struct shape_call *s, const frit_axes *axes, bool keep)
{
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK], next = 0;
    uint32_t rank = 0;

    for (uint32_t i = 0; i < x->rank; i++) {
        bool reduced = next < axes->count && axes->axis[next] == (int64_t)i;

        next += reduced;
        if (!reduced || keep)
            dims[rank++] = reduced ? 1 : x->dims[i];
    }
    return shape_set(s, 0, rank, dims);
}

frit_status shape_rule_reduce(struct shape_call *s)
{
    frit_attrs_reduce *a = s->call->attrs;

    TRY(shape_axes_or_all(s, &a->axes, shape_in(s, 0)->rank));
    return without_axes(s, &a->axes, a->keep);
}

frit_status shape_rule_reduce_some(struct shape_call *s)
{
    TRY(shape_rule_reduce(s));
    if (shape_empty(shape_in(s, 0)) && !shape_empty(&s->out[0]))
        return shape_fail(s, "a reduced axis is empty, there is nothing to choose from");
    return FRIT_OK;
}

frit_status shape_rule_arg_reduce(struct shape_call *s)
{
    const frit_attrs_reduce *a = s->call->attrs;

    TRY(shape_rule_reduce_some(s));
    if (a->axes.count > 1 && a->axes.count != (int64_t)shape_in(s, 0)->rank)
        return shape_fail(s, "%lld axes, it takes one or all", (long long)a->axes.count);
    return FRIT_OK;
}

frit_status shape_rule_scan(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;

    TRY(shape_axis(s, &a->axis, shape_in(s, 0)->rank));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_sort(struct shape_call *s)
{
    frit_attrs_sort *a = s->call->attrs;

    TRY(shape_axis(s, &a->axis, shape_in(s, 0)->rank));
    for (uint32_t k = 0; s->row->out[k].name; k++)
        TRY(shape_set_like(s, k, 0));
    return FRIT_OK;
}

frit_status shape_rule_topk(struct shape_call *s)
{
    frit_attrs_topk *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);

    TRY(shape_axis(s, &a->axis, x->rank));
    if (a->k > x->dims[a->axis])
        return shape_fail(s, "k is %lld, axis %lld has %lld elements", (long long)a->k,
                          (long long)a->axis, (long long)x->dims[a->axis]);
    for (uint32_t k = 0; k < 2; k++) {
        TRY(shape_set_like(s, k, 0));
        s->out[k].dims[a->axis] = a->k;
    }
    return FRIT_OK;
}

/* ---- normalisation ---- */

/* 0 means 1e-5; it is added in f32 or f64. */
static frit_status fill_eps(const struct shape_call *s, double *eps)
{
    uint32_t dtype = shape_in(s, 0)->dtype;

    if (*eps == 0)
        *eps = 1e-5;
    if (*eps < 0 || !isfinite(scalar_round(*eps, dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32)))
        return shape_fail(s, "eps is %g, it must be positive and in the range of %s", *eps,
                          dtype == FRIT_F64 ? "f64" : "f32");
    return FRIT_OK;
}

frit_status shape_rule_norm_axes(struct shape_call *s)
{
    frit_attrs_norm_axes *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK];

    TRY(shape_rank(s, 0, 1, FRIT_MAX_RANK));
    if (a->axes.count == 0)
        a->axes = (frit_axes){.count = 1, .axis = {-1}};
    TRY(shape_axes(s, &a->axes, x->rank));
    TRY(fill_eps(s, &a->eps));
    for (int64_t i = 0; i < a->axes.count; i++)
        dims[i] = x->dims[a->axes.axis[i]];
    for (uint32_t i = 1; i < s->call->n_in; i++)
        TRY(shape_dims(s, i, (uint32_t)a->axes.count, dims));
    return shape_set_like(s, 0, 0);
}

/* Operands after the first hold one number per channel, axis 1 of the first. */
static frit_status per_channel(struct shape_call *s)
{
    TRY(shape_rank(s, 0, 2, FRIT_MAX_RANK));
    for (uint32_t i = 1; i < s->call->n_in; i++)
        TRY(shape_dims(s, i, 1, &shape_in(s, 0)->dims[1]));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_batch_norm(struct shape_call *s)
{
    frit_attrs_norm *a = s->call->attrs;

    TRY(fill_eps(s, &a->eps));
    return per_channel(s);
}

frit_status shape_rule_group_norm(struct shape_call *s)
{
    frit_attrs_norm_groups *a = s->call->attrs;

    TRY(fill_eps(s, &a->eps));
    TRY(per_channel(s));
    a->groups = a->groups ? a->groups : 1;
    if (shape_in(s, 0)->dims[1] % a->groups)
        return shape_fail(s, "%lld groups do not divide %lld channels", (long long)a->groups,
                          (long long)shape_in(s, 0)->dims[1]);
    return FRIT_OK;
}

frit_status shape_rule_channels(struct shape_call *s)
{
    TRY(shape_rank(s, 0, 2, FRIT_MAX_RANK));
    return shape_set(s, 0, 1, &shape_in(s, 0)->dims[1]);
}

frit_status shape_rule_last_dim(struct shape_call *s)
{
    const struct op_type *x = shape_in(s, 0);

    TRY(shape_rank(s, 0, 1, FRIT_MAX_RANK));
    return shape_set(s, 0, 1, &x->dims[x->rank - 1]);
}
