/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: one line along the axis after another.  The running value is kept in full width and
 * rounded only where it is stored. */
#include "combine.h"
#include "rows.h"

struct scan_line {
    const struct view *x, *y;
    int64_t extent, x_step, y_step;
};

static void scan_line(const struct scan_line *line, const char *from, char *to, enum combine how)
{
    enum value_kind kind = value_kind(line->x->dtype);
    union value running = combine_start(how, kind), lanes[VALUE_LANES];
    combine_fn combine = combine_of(how, kind);

    for (int64_t done = 0, n; done < line->extent; done += n) {
        n = line->extent - done < VALUE_LANES ? line->extent - done : VALUE_LANES;
        value_load(line->x->dtype, from + done * line->x_step, line->x_step, n, lanes);
        for (int64_t i = 0; i < n; i++)
            lanes[i] = running = combine(running, lanes[i]);
        value_store(line->y->dtype, to + done * line->y_step, line->y_step, n, lanes);
    }
}

static void scan(const struct call *call, enum combine how)
{
    const struct view x = call_in(call, 0), y = call_out(call, 0);
    uint32_t axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    const struct view y_lines = view_without(&y, axis), x_lines = view_without(&x, axis);
    const struct view *views[] = {&y_lines, &x_lines};
    const struct scan_line line = {&x, &y, x.dims[axis], x.strides[axis], y.strides[axis]};
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        scan_line(&line, x.data + walk.at[1], y.data + walk.at[0], how);
}

void ref_cumsum(const struct call *call)
{
    scan(call, COMBINE_ADD);
}

void ref_cumprod(const struct call *call)
{
    scan(call, COMBINE_MUL);
}

void ref_cummax(const struct call *call)
{
    scan(call, COMBINE_MAX);
}

void ref_cummin(const struct call *call)
{
    scan(call, COMBINE_MIN);
}
