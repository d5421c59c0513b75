/* SPDX-License-Identifier: Apache-2.0 */
/* Views as maps: from the coordinates of a result's element to those of the operand's. */
#include <string.h>

#include "lower/rows/rows.h"
#include "lower/sched.h"

static int64_t count_of(const int64_t *dims, uint32_t rank)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < rank; d++)
        count *= dims[d];
    return count;
}

/* Whether all dims but `except` (a set) are those of the operand. */
static bool dims_stay(const struct view *view, uint32_t except)
{
    for (uint32_t d = 0; d < view->in_rank; d++)
        if (!(except >> d & 1) && view->in[d] != view->out[d])
            return false;
    return true;
}

bool view_reshape(const struct view *view, const struct space_map *of, struct space_map *in)
{
    struct space_expr linear = space_linear(of, view->out);

    if (count_of(view->in, view->in_rank) != count_of(view->out, view->out_rank))
        return false;
    space_unlinear(view->space, &linear, view->in_rank, view->in, in);
    return true;
}

bool view_permute(const struct view *view, const struct space_map *of, struct space_map *in)
{
    const frit_attrs_order *attrs = view->attrs;
    uint32_t seen = 0;

    if (attrs->order.count != view->in_rank || view->out_rank != view->in_rank)
        return false;
    in->rank = view->in_rank;
    for (uint32_t d = 0; d < view->in_rank; d++) {
        int64_t axis = attrs->order.axis[d];

        if (axis < 0 || axis >= view->in_rank || view->in[axis] != view->out[d])
            return false;
        seen |= 1u << axis;
        in->at[axis] = of->at[d];
    }
    return seen == (1u << view->in_rank) - 1;
}

bool view_expand(const struct view *view, const struct space_map *of, struct space_map *in)
{
    if (view->in_rank > view->out_rank)
        return false;
    for (uint32_t d = 0; d < view->in_rank; d++)
        if (view->in[d] != 1 && view->in[d] != view->out[view->out_rank - view->in_rank + d])
            return false;
    space_broadcast(of, view->in_rank, view->in, in);
    return true;
}

bool view_flip(const struct view *view, const struct space_map *of, struct space_map *in)
{
    const frit_attrs_axes *attrs = view->attrs;

    if (view->out_rank != view->in_rank || attrs->axes.count > FRIT_MAX_RANK || !dims_stay(view, 0))
        return false;
    *in = *of;
    for (int64_t i = 0; i < attrs->axes.count; i++) {
        int64_t axis = attrs->axes.axis[i];
        struct space_expr turned = {0};

        if (axis < 0 || axis >= view->in_rank)
            return false;
        turned.c = view->in[axis] - 1;
        space_add(&turned, &of->at[axis], -1);
        in->at[axis] = turned;
    }
    return true;
}

bool view_unfold(const struct view *view, const struct space_map *of, struct space_map *in)
{
    const frit_attrs_unfold *attrs = view->attrs;
    int64_t axis = attrs->axis, step = attrs->step ? attrs->step : 1;
    struct space_expr at = {0};

    if (axis < 0 || axis >= view->in_rank || view->out_rank != view->in_rank + 1 || step < 0 ||
        !dims_stay(view, 1u << axis) ||
        (view->out[axis] - 1) * step + view->out[view->in_rank] > view->in[axis])
        return false;
    in->rank = view->in_rank;
    memcpy(in->at, of->at, view->in_rank * sizeof(*of->at));
    space_add(&at, &of->at[axis], step);
    space_add(&at, &of->at[view->in_rank], 1);
    in->at[axis] = at;
    return true;
}

bool view_transpose(const struct view *view, const struct space_map *of, struct space_map *in)
{
    const frit_attrs_swap *attrs = view->attrs;
    int64_t axis = attrs->axis, with = attrs->with;

    if (axis < 0 || with < 0 || axis >= view->in_rank || with >= view->in_rank ||
        view->out_rank != view->in_rank || view->in[axis] != view->out[with] ||
        view->in[with] != view->out[axis] || !dims_stay(view, 1u << axis | 1u << with))
        return false;
    *in = *of;
    in->at[axis] = of->at[with];
    in->at[with] = of->at[axis];
    return true;
}

/* Dims of extent 1 come and go: the others keep their order. */
static bool same_dims(const struct view *view, const struct space_map *of, struct space_map *in)
{
    uint32_t from = 0;

    in->rank = view->in_rank;
    for (uint32_t d = 0; d < view->in_rank; d++) {
        in->at[d] = (struct space_expr){0};
        if (view->in[d] == 1)
            continue;
        while (from < view->out_rank && view->out[from] == 1)
            from++;
        if (from == view->out_rank || view->out[from] != view->in[d])
            return false;
        in->at[d] = of->at[from++];
    }
    return true;
}

bool view_squeeze(const struct view *view, const struct space_map *of, struct space_map *in)
{
    return same_dims(view, of, in);
}

bool view_unsqueeze(const struct view *view, const struct space_map *of, struct space_map *in)
{
    return same_dims(view, of, in);
}

bool view_repeat(const struct view *view, const struct space_map *of, struct space_map *in)
{
    int64_t axis = ((const frit_attrs_repeat *)view->attrs)->axis;
    struct space_expr times;

    if (axis < 0 || axis >= view->in_rank || view->out_rank != view->in_rank ||
        !dims_stay(view, 1u << axis) ||
        (view->in[axis] ? view->out[axis] % view->in[axis] : view->out[axis]))
        return false;
    *in = *of;
    if (view->in[axis] == 0)
        return true;
    times = space_div(view->space, &of->at[axis], view->in[axis]);
    space_add(&in->at[axis], &times, -view->in[axis]);
    return true;
}
