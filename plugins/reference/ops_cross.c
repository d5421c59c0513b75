/* SPDX-License-Identifier: Apache-2.0 */
/* cross: all three results of a line are computed before the first is stored. */
#include "rows.h"

/* Element i of the vector product; signed and unsigned wrap alike. */
static union value cross_element(enum value_kind kind, const union value *a, const union value *b,
                                 int i)
{
    int j = (i + 1) % 3, k = (i + 2) % 3;

    if (kind == VALUE_REAL)
        return (union value){.real = a[j].real * b[k].real - a[k].real * b[j].real};
    return (union value){.uint = a[j].uint * b[k].uint - a[k].uint * b[j].uint};
}

void ref_cross(const struct call *call)
{
    struct view view[] = {call_out(call, 0), call_in(call, 0), call_in(call, 1)};
    uint32_t rank = view[0].rank,
             axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    enum value_kind kind = value_kind(view[0].dtype);
    union value a[3], b[3], y[3];
    struct walk walk;

    walk_init(&walk, WALK_ELEMENTS, 3);
    for (uint32_t d = 0; d < rank; d++)
        if (d != axis)
            walk_push(&walk, view[0].dims[d],
                      (int64_t[]){view_stride(&view[0], rank, d), view_stride(&view[1], rank, d),
                                  view_stride(&view[2], rank, d)});
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        value_load(view[1].dtype, view[1].data + walk.at[1], view_stride(&view[1], rank, axis), 3,
                   a);
        value_load(view[2].dtype, view[2].data + walk.at[2], view_stride(&view[2], rank, axis), 3,
                   b);
        for (int i = 0; i < 3; i++)
            y[i] = cross_element(kind, a, b, i);
        value_store(view[0].dtype, view[0].data + walk.at[0], view[0].strides[axis], 3, y);
    }
}
