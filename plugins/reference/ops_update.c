/* SPDX-License-Identifier: Apache-2.0 */
/* Writing at index operands: scatter, scatter_nd, select_assign, slice_assign.
 *
 * The result begins as a copy of x and is updated in the order of the values; an index outside
 * writes nothing. Narrow floats are gathered as doubles in the workspace, so that many updates of
 * an element round once. */
#include "combine.h"
#include "rows.h"

struct update {
    const struct call *call;
    struct view target; /* y in full width */
    struct view index;
    struct view values;
    combine_fn combine;
};

static void update_begin(struct update *update, const struct call *call, int64_t how)
{
    const struct view x = call_in(call, 0);

    update->call = call;
    update->index = call_in(call, 1);
    update->values = call_in(call, 2);
    update->target = call_wide(call, 0);
    update->combine = combine_of((enum combine)how, value_kind(x.dtype));
    if (update->target.dtype == x.dtype)
        view_copy(&update->target, &x);
    else
        view_convert(&update->target, &x);
}

static void update_end(const struct update *update)
{
    call_round(update->call, 0, &update->target);
}

static int64_t index_get(const struct update *update, int64_t at)
{
    return value_get(update->index.dtype, update->index.data + at).sint;
}

static bool inside(int64_t i, int64_t extent)
{
    return i >= 0 && i < extent;
}

/* Combines the element at `to` of the target with the one at `from` of the values. */
static void update_element(const struct update *update, int64_t to, int64_t from)
{
    char *at = update->target.data + to;
    union value value = value_get(update->values.dtype, update->values.data + from);

    value_put(update->target.dtype, at,
              update->combine(value_get(update->target.dtype, at), value));
}

/* The same for every element of two slices. */
static void update_slice(const struct update *update, const struct view *slice, int64_t to,
                         const struct view *values, int64_t from)
{
    const struct view *views[] = {slice, values};
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        update_element(update, to + walk.at[0], from + walk.at[1]);
}

/* Values for one target element all lie on one line along the axis, so their order is kept. */
void ref_scatter(const struct call *call)
{
    const frit_attrs_scatter *attrs = call_attrs(call);
    uint32_t axis = (uint32_t)attrs->axis;
    struct view value_lines, index_lines, target_lines;
    const struct view *views[] = {&value_lines, &index_lines, &target_lines};
    struct update update;
    struct walk walk;

    update_begin(&update, call, attrs->update);
    value_lines = view_without(&update.values, axis);
    index_lines = view_without(&update.index, axis);
    target_lines = view_without(&update.target, axis);
    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t i = 0; i < update.values.dims[axis]; i++) {
            int64_t at = index_get(&update, walk.at[1] + i * update.index.strides[axis]);

            if (inside(at, update.target.dims[axis]))
                update_element(&update, walk.at[2] + at * update.target.strides[axis],
                               walk.at[0] + i * update.values.strides[axis]);
        }
    update_end(&update);
}

/* The coordinates at `at` of the index as a position in the target; false if one lies outside. */
static bool position(const struct update *update, int64_t at, uint32_t n, int64_t *to)
{
    uint32_t last = update->index.rank - 1;

    *to = 0;
    for (uint32_t d = 0; d < n; d++) {
        int64_t i = index_get(update, at + d * update->index.strides[last]);

        if (!inside(i, update->target.dims[d]))
            return false;
        *to += i * update->target.strides[d];
    }
    return true;
}

void ref_scatter_nd(const struct call *call)
{
    struct view points, heads, slice, values;
    const struct view *views[] = {&points, &heads};
    struct update update;
    struct walk walk;
    uint32_t last, n;

    update_begin(&update, call, ((const frit_attrs_update *)call_attrs(call))->update);
    last = update.index.rank - 1;
    n = (uint32_t)update.index.dims[last];
    points = view_without(&update.index, last);
    heads = update.values;
    heads.rank = last;
    slice = view_tail(&update.target, n);
    values = view_tail(&update.values, last);
    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        int64_t to;

        if (position(&update, walk.at[0], n, &to))
            update_slice(&update, &slice, to, &values, walk.at[1]);
    }
    update_end(&update);
}

void ref_select_assign(const struct call *call)
{
    const frit_attrs_scatter *attrs = call_attrs(call);
    uint32_t axis = (uint32_t)attrs->axis;
    struct view slice, values;
    struct update update;

    update_begin(&update, call, attrs->update);
    slice = view_without(&update.target, axis);
    values = view_without(&update.values, axis);
    for (int64_t i = 0; i < update.index.dims[0]; i++) {
        int64_t at = index_get(&update, i * update.index.strides[0]);

        if (inside(at, update.target.dims[axis]))
            update_slice(&update, &slice, at * update.target.strides[axis], &values,
                         i * update.values.strides[axis]);
    }
    update_end(&update);
}

/* The slice has the dims of the values, so that its bounds need say only where it begins and how it
 * steps. */
void ref_slice_assign(const struct call *call)
{
    const struct view x = call_in(call, 0), values = call_in(call, 1), y = call_out(call, 0);
    const int64_t *bounds = call_bounds(call);
    struct view slice = y;

    view_copy(&y, &x);
    for (uint32_t d = 0; d < y.rank; d++) {
        const int64_t *range = bounds + 3 * d; /* start, stop, step */

        slice.dims[d] = values.dims[d];
        slice.data += range[0] * y.strides[d];
        slice.strides[d] = range[2] * y.strides[d];
    }
    view_copy(&slice, &values);
}
