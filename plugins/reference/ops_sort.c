/* SPDX-License-Identifier: Apache-2.0 */
/* sort, argsort, topk: a bottom-up merge sort of the indices of each line, which compares the
 * elements at these indices; then the elements, the indices or both are written. */
#include <math.h>

#include "rows.h"

/* A line of x and how it is to be sorted. */
struct sort_line {
    const char *data;
    int64_t extent, step;
    uint32_t dtype;
    bool descending;
};

/* Whether element i must come before element j.  NaN comes last; equal elements keep their order.
 */
static bool comes_before(const struct sort_line *line, int64_t i, int64_t j)
{
    union value a = value_get(line->dtype, line->data + i * line->step);
    union value b = value_get(line->dtype, line->data + j * line->step);

    switch (value_kind(line->dtype)) {
    case VALUE_REAL:
        if (isnan(a.real) || isnan(b.real))
            return !isnan(a.real);
        return line->descending ? a.real > b.real : a.real < b.real;
    case VALUE_SINT:
        return line->descending ? a.sint > b.sint : a.sint < b.sint;
    default:
        return line->descending ? a.uint > b.uint : a.uint < b.uint;
    }
}

/* Merges two sorted runs of indices, bound[0]..bound[1] - 1 and bound[1]..bound[2] - 1. */
static void merge(const struct sort_line *line, const int64_t *from, int64_t *to,
                  const int64_t bound[3])
{
    int64_t left = bound[0], right = bound[1];

    for (int64_t i = bound[0]; i < bound[2]; i++) {
        bool take_right =
            left == bound[1] || (right < bound[2] && comes_before(line, from[right], from[left]));

        to[i] = take_right ? from[right++] : from[left++];
    }
}

/* The indices of the line in sorted order; they lie in `workspace`, which has room for two per
 * element. */
static const int64_t *sort_line(const struct sort_line *line, int64_t *workspace)
{
    int64_t n = line->extent, *from = workspace, *to = workspace + n;

    for (int64_t i = 0; i < n; i++)
        from[i] = i;
    for (int64_t run = 1; run < n; run *= 2) {
        int64_t *sorted = to;

        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t middle = i + run < n ? i + run : n, end = i + 2 * run < n ? i + 2 * run : n;

            merge(line, from, to, (const int64_t[]){i, middle, end});
        }
        to = from;
        from = sorted;
    }
    return from;
}

/* Sorts every line of x and writes as many elements of it as the results hold.  `values` may be
 * NULL, and `indices->data` is NULL if the indices are not wanted. */
static void sort_run(const struct call *call, uint32_t axis, bool descending,
                     const struct view *values, const struct view *indices)
{
    const struct view x = call_in(call, 0), none = {0}, x_lines = view_without(&x, axis);
    const struct view value_lines = values ? view_without(values, axis) : none;
    const struct view index_lines = indices->data ? view_without(indices, axis) : none;
    const struct view *views[] = {&x_lines, &value_lines, &index_lines};
    const struct view *result = values ? values : indices;
    int64_t size = value_size(x.dtype);
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        const struct sort_line line = {x.data + walk.at[0], x.dims[axis], x.strides[axis], x.dtype,
                                       descending};
        const int64_t *order = sort_line(&line, call_workspace(call));

        for (int64_t i = 0; i < result->dims[axis]; i++) {
            if (values)
                value_move(size, values->data + walk.at[1] + i * values->strides[axis], 0,
                           line.data + order[i] * line.step, 0, 1);
            if (indices->data)
                value_put(indices->dtype, indices->data + walk.at[2] + i * indices->strides[axis],
                          (union value){.sint = order[i]});
        }
    }
}

void ref_sort(const struct call *call)
{
    const frit_attrs_sort *attrs = call_attrs(call);
    const struct view y = call_out(call, 0), index = call_out(call, 1);

    sort_run(call, (uint32_t)attrs->axis, attrs->descending != 0, &y, &index);
}

void ref_argsort(const struct call *call)
{
    const frit_attrs_sort *attrs = call_attrs(call);
    const struct view y = call_out(call, 0);

    sort_run(call, (uint32_t)attrs->axis, attrs->descending != 0, NULL, &y);
}

void ref_topk(const struct call *call)
{
    const frit_attrs_topk *attrs = call_attrs(call);
    const struct view y = call_out(call, 0), index = call_out(call, 1);

    sort_run(call, (uint32_t)attrs->axis, true, &y, &index);
}
