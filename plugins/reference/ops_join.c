/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and filling: copies into parts of the result. */
#include "rows.h"

void ref_cat(const struct call *call)
{
    const struct view y = call_out(call, 0);
    uint32_t axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    struct view part = y;

    for (uint32_t i = 0; i < call_n_in(call); i++) {
        const struct view x = call_in(call, i);

        part.dims[axis] = x.dims[axis];
        view_copy(&part, &x);
        part.data += x.dims[axis] * y.strides[axis];
    }
}

void ref_stack(const struct call *call)
{
    const struct view y = call_out(call, 0);
    uint32_t axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    struct view part = view_without(&y, axis);

    for (uint32_t i = 0; i < call_n_in(call); i++) {
        const struct view x = call_in(call, i);

        view_copy(&part, &x);
        part.data += y.strides[axis];
    }
}

void ref_repeat(const struct call *call)
{
    const struct view x = call_in(call, 0), y = call_out(call, 0);
    uint32_t axis = (uint32_t)((const frit_attrs_repeat *)call_attrs(call))->axis;
    struct view part = y;

    part.dims[axis] = x.dims[axis];
    for (int64_t done = 0; done < y.dims[axis]; done += x.dims[axis]) {
        part.data = y.data + done * y.strides[axis];
        view_copy(&part, &x);
    }
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

/* Element i of x goes to low + i * (inner + 1); what falls outside the result is cropped. */
void ref_pad(const struct call *call)
{
    const int64_t *bounds = call_bounds(call);
    struct view x = call_in(call, 0), y = call_out(call, 0);
    const int64_t *low = bounds, *inner = bounds + 2 * x.rank;

    view_fill(&y, call_scalar(call, 1));
    for (uint32_t d = 0; d < x.rank; d++) {
        int64_t step = inner[d] + 1;
        int64_t first = divide_up(-low[d], step), end = divide_up(y.dims[d] - low[d], step);

        if (end > x.dims[d])
            end = x.dims[d];
        x.data += first * x.strides[d];
        y.data += (low[d] + first * step) * y.strides[d];
        y.dims[d] = end > first ? end - first : 0;
        x.dims[d] = y.dims[d];
        y.strides[d] *= step;
    }
    view_copy(&y, &x);
}
