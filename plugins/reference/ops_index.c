/* SPDX-License-Identifier: Apache-2.0 */
/* Reading at index operands: select, gather, gather_nd, embedding.  Elements are moved as they are.
 *
 * An index outside reads the nearest element that exists.  Where an extent of 0 leaves none, the
 * host has seen to it that the result is empty. */
#include "rows.h"

static int64_t index_get(const struct view *index, int64_t at)
{
    return value_get(index->dtype, index->data + at).sint;
}

static int64_t nearest(int64_t i, int64_t extent)
{
    if (i < 0)
        return 0;
    return i < extent ? i : extent - 1;
}

void ref_select(const struct call *call)
{
    const struct view x = call_in(call, 0), index = call_in(call, 1), y = call_out(call, 0);
    uint32_t axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    struct view from = view_without(&x, axis), to = view_without(&y, axis);

    for (int64_t i = 0; i < index.dims[0]; i++) {
        from.data = x.data + nearest(index_get(&index, i * index.strides[0]), x.dims[axis]) *
                                 x.strides[axis];
        to.data = y.data + i * y.strides[axis];
        view_copy(&to, &from);
    }
}

void ref_gather(const struct call *call)
{
    const struct view x = call_in(call, 0), index = call_in(call, 1), y = call_out(call, 0);
    uint32_t axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    const struct view x_lines = view_without(&x, axis), index_lines = view_without(&index, axis);
    const struct view y_lines = view_without(&y, axis);
    const struct view *views[] = {&y_lines, &x_lines, &index_lines};
    int64_t size = value_size(x.dtype);
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t i = 0; i < index.dims[axis]; i++) {
            int64_t at =
                nearest(index_get(&index, walk.at[2] + i * index.strides[axis]), x.dims[axis]);

            value_move(size, y.data + walk.at[0] + i * y.strides[axis], 0,
                       x.data + walk.at[1] + at * x.strides[axis], 0, 1);
        }
}

/* The last dim of index counts the coordinates; those before it are y's first dims. */
void ref_gather_nd(const struct call *call)
{
    const struct view x = call_in(call, 0), index = call_in(call, 1), y = call_out(call, 0);
    uint32_t last = index.rank - 1, n = (uint32_t)index.dims[last];
    const struct view points = view_without(&index, last);
    struct view from = view_tail(&x, n), to = view_tail(&y, last), heads = y;
    const struct view *views[] = {&points, &heads};
    struct walk walk;

    heads.rank = last;
    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        from.data = x.data;
        for (uint32_t d = 0; d < n; d++)
            from.data +=
                nearest(index_get(&index, walk.at[0] + d * index.strides[last]), x.dims[d]) *
                x.strides[d];
        to.data = y.data + walk.at[1];
        view_copy(&to, &from);
    }
}

void ref_embedding(const struct call *call)
{
    const struct view table = call_in(call, 0), index = call_in(call, 1), y = call_out(call, 0);
    struct view heads = y;
    const struct view *views[] = {&index, &heads};
    int64_t size = value_size(table.dtype), width = table.dims[1];
    struct walk walk;

    heads.rank--;
    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        int64_t row = nearest(index_get(&index, walk.at[0]), table.dims[0]);

        value_move(size, y.data + walk.at[1], y.strides[index.rank],
                   table.data + row * table.strides[0], table.strides[1], width);
    }
}
