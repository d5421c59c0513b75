/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of values by bounds of the launch: slices, and what lies in a part of its result.
 *
 * Bounds of few values are known by their class, and then are as good as attributes; any other is a
 * variable of the space whose range is known.  A step that is not known keeps its product with a
 * coordinate, or a quotient by it, as one variable. */
#include <string.h>

#include "lower/rows/rows.h"
#include "lower/sched.h"

/* Where steps along one dim begin, `n` of them in a dim of `extent`, all in range. */
struct steps {
    struct space_expr start;
    int64_t step; /* 0: not known */
    uint32_t start_bound, step_bound;
};

static bool steps_init(const struct view *view, uint32_t d, int64_t n, int64_t extent,
                       struct steps *out)
{
    uint32_t bound = view->first_bound + 3 * d;
    int64_t least = 0, most = extent - 1, start;

    *out = (struct steps){.step = 1, .start_bound = bound, .step_bound = bound + 2};
    if (n == 0)
        return true;
    if (n > 1 && !sched_bound_known(view->s, bound + 2, &out->step))
        out->step = 0;
    if (n > extent || (n > 1 && out->step * (n - 1) > most) || out->step * (n - 1) < -most)
        return false;
    if (out->step > 0)
        most -= out->step * (n - 1);
    else
        least -= out->step * (n - 1);
    if (sched_bound_known(view->s, bound, &start) && start >= least && start <= most)
        out->start.c = start;
    else
        out->start = space_bound(view->space, least, most, bound);
    return true;
}

bool view_slice(const struct view *view, const struct space_map *of, struct space_map *in)
{
    if (view->out_rank != view->in_rank)
        return false;
    in->rank = view->in_rank;
    for (uint32_t d = 0; d < view->in_rank; d++) {
        struct steps steps;

        if (!steps_init(view, d, view->out[d], view->in[d], &steps))
            return false;
        if (steps.step == 0) {
            in->at[d] = space_steps(view->space, &of->at[d], view->in[d], steps.start_bound,
                                    steps.step_bound);
            continue;
        }
        in->at[d] = steps.start;
        space_add(&in->at[d], &of->at[d], steps.step);
    }
    return true;
}

/* Coordinate `d` of the operand is (of - start) / step, where that has no rest. */
static void unstep(const struct view *view, const struct space_expr *of,
                   const struct space_expr *start, int64_t step, struct space_expr *in,
                   struct space_map *zero)
{
    struct space_expr from = {0}, rest;

    space_add(&from, of, step < 0 ? -1 : 1);
    space_add(&from, start, step < 0 ? 1 : -1);
    step = step < 0 ? -step : step;
    *in = step == 1 ? from : space_div(view->space, &from, step);
    rest = from;
    space_add(&rest, in, -step);
    if (step > 1)
        zero->at[zero->rank++] = rest;
}

/* The same where only the launch knows the step: a bound plus `more`. */
static void unstep_late(const struct view *view, const struct space_expr *of,
                        const struct space_expr *start, uint32_t bound, int64_t more,
                        struct space_expr *in, struct space_map *zero)
{
    struct space_expr from = *of;

    space_add(&from, start, -1);
    space_ratio(view->space, &from, bound, more, in, &zero->at[zero->rank++]);
}

bool part_slice_assign(const struct view *view, const struct space_map *of, struct space_map *in,
                       struct space_map *zero)
{
    if (view->out_rank != view->in_rank)
        return false;
    in->rank = view->in_rank;
    for (uint32_t d = 0; d < view->in_rank; d++) {
        struct steps steps;

        if (!steps_init(view, d, view->in[d], view->out[d], &steps))
            return false;
        if (steps.step)
            unstep(view, &of->at[d], &steps.start, steps.step, &in->at[d], zero);
        else
            unstep_late(view, &of->at[d], &steps.start, steps.step_bound, 0, &in->at[d], zero);
    }
    return true;
}

/* Element i of the operand lies at low + i * (inner + 1). */
bool part_pad(const struct view *view, const struct space_map *of, struct space_map *in,
              struct space_map *zero)
{
    const int64_t far = (int64_t)1 << 40; /* beyond any element */

    if (view->out_rank != view->in_rank)
        return false;
    in->rank = view->in_rank;
    for (uint32_t d = 0; d < view->in_rank; d++) {
        uint32_t low_bound = view->first_bound + d, inner_bound = low_bound + 2 * view->in_rank;
        int64_t inner = 0, low, n = view->in[d];
        bool late = n > 1 && !sched_bound_known(view->s, inner_bound, &inner);
        struct space_expr start = {0};

        if (sched_bound_known(view->s, low_bound, &low))
            start.c = low;
        else if (late)
            start = space_bound(view->space, -far, far, low_bound);
        else
            start = space_bound(view->space, -n * (inner + 1), view->out[d], low_bound);
        if (late)
            unstep_late(view, &of->at[d], &start, inner_bound, 1, &in->at[d], zero);
        else
            unstep(view, &of->at[d], &start, inner + 1, &in->at[d], zero);
    }
    return true;
}
