/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax family: three passes over each line along the axis, for its maximum, its sum of
 * exponentials, and the result. */
#include <math.h>

#include "rows.h"

struct softmax {
    struct view x, y;
    int64_t extent, x_step, y_step;
    double sign;  /* -1: of -x */
    bool of_logs; /* the logarithm of the result is wanted */
};

/* Elements done..done + n - 1 of the line at `from`, with the sign. */
static int64_t load_some(const struct softmax *s, const char *from, int64_t done,
                         union value *lanes)
{
    int64_t n = s->extent - done < VALUE_LANES ? s->extent - done : VALUE_LANES;

    value_load(s->x.dtype, from + done * s->x_step, s->x_step, n, lanes);
    for (int64_t i = 0; i < n; i++)
        lanes[i].real *= s->sign;
    return n;
}

static void softmax_line(const struct softmax *s, const char *from, char *to)
{
    union value lanes[VALUE_LANES];
    double max = -INFINITY, sum = 0, log_sum;

    for (int64_t done = 0, n; done < s->extent; done += n) {
        n = load_some(s, from, done, lanes);
        for (int64_t i = 0; i < n; i++)
            max = fmax(max, lanes[i].real); /* a NaN comes in with the sum */
    }
    for (int64_t done = 0, n; done < s->extent; done += n) {
        n = load_some(s, from, done, lanes);
        for (int64_t i = 0; i < n; i++)
            sum += exp(lanes[i].real - max);
    }
    log_sum = log(sum);
    for (int64_t done = 0, n; done < s->extent; done += n) {
        n = load_some(s, from, done, lanes);
        for (int64_t i = 0; i < n; i++)
            lanes[i].real =
                s->of_logs ? lanes[i].real - max - log_sum : exp(lanes[i].real - max) / sum;
        value_store(s->y.dtype, to + done * s->y_step, s->y_step, n, lanes);
    }
}

static void softmax_run(const struct call *call, double sign, bool of_logs)
{
    struct softmax s = {
        .x = call_in(call, 0), .y = call_out(call, 0), .sign = sign, .of_logs = of_logs};
    uint32_t axis = (uint32_t)((const frit_attrs_axis *)call_attrs(call))->axis;
    const struct view y_lines = view_without(&s.y, axis), x_lines = view_without(&s.x, axis);
    const struct view *views[] = {&y_lines, &x_lines};
    struct walk walk;

    s.extent = s.x.dims[axis];
    s.x_step = s.x.strides[axis];
    s.y_step = s.y.strides[axis];
    view_walk(&walk, WALK_ELEMENTS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        softmax_line(&s, s.x.data + walk.at[1], s.y.data + walk.at[0]);
}

void ref_softmax(const struct call *call)
{
    softmax_run(call, 1, false);
}

void ref_log_softmax(const struct call *call)
{
    softmax_run(call, 1, true);
}

void ref_softmin(const struct call *call)
{
    softmax_run(call, -1, false);
}
