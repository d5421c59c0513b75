/* SPDX-License-Identifier: Apache-2.0 */
/* rfft and irfft by the definition: each value is a sum over the whole line.  The angle of a term
 * is taken from k * t modulo n, which is exact, and so are quarter turns. */
#include <math.h>

#include "rows.h"

static const double TAU = 6.28318530717958647692528676655900577;

/* Lines along the axis of one real and one complex tensor, and the length of the signal. */
struct spectrum {
    struct view real, re, im;
    uint32_t axis;
    int64_t n;
};

static double get(const struct view *view, int64_t line, uint32_t axis, int64_t i)
{
    return value_get(view->dtype, view->data + line + i * view->strides[axis]).real;
}

static void put(const struct view *view, int64_t line, uint32_t axis, int64_t i, double real)
{
    value_put(view->dtype, view->data + line + i * view->strides[axis],
              (union value){.real = real});
}

struct turn {
    double cos, sin;
};

/* By the angle k * t / n.  k is at most n / 2 and t below n: the products fit as long as n is below
 * 2^31. */
static struct turn turn_by(int64_t k, int64_t t, int64_t n)
{
    int64_t quarters = 4 * (k * t % n);
    double rest = TAU / 4 * (double)(quarters % n) / (double)n;
    double c = cos(rest), s = sin(rest);

    switch (quarters / n) {
    case 0:
        return (struct turn){c, s};
    case 1:
        return (struct turn){-s, c};
    case 2:
        return (struct turn){-c, -s};
    default:
        return (struct turn){s, -c};
    }
}

/* Of the first n elements; what the line lacks of them is 0. */
static void forward_line(const struct spectrum *s, const int64_t *at)
{
    int64_t have = s->real.dims[s->axis] < s->n ? s->real.dims[s->axis] : s->n;

    for (int64_t k = 0; k < s->re.dims[s->axis]; k++) {
        double re = 0, im = 0;

        for (int64_t t = 0; t < have; t++) {
            double x = get(&s->real, at[0], s->axis, t);
            struct turn turn = turn_by(k, t, s->n);

            re += x * turn.cos;
            im -= x * turn.sin;
        }
        put(&s->re, at[1], s->axis, k, re);
        put(&s->im, at[2], s->axis, k, im);
    }
}

/* The values beyond the middle are the conjugates of those before it: all but the first, and the
 * middle of an even n, count twice, and the imaginary parts of those two count for nothing. */
static void inverse_line(const struct spectrum *s, const int64_t *at)
{
    int64_t want = s->n / 2 + 1, extent = s->re.dims[s->axis];
    int64_t have = extent < want ? extent : want;

    for (int64_t t = 0; t < s->n; t++) {
        double sum = 0;

        for (int64_t k = 0; k < have; k++) {
            double re = get(&s->re, at[1], s->axis, k), im = get(&s->im, at[2], s->axis, k);
            bool alone = k == 0 || 2 * k == s->n;
            struct turn turn = turn_by(k, t, s->n);

            sum += alone ? re * turn.cos : 2 * (re * turn.cos - im * turn.sin);
        }
        put(&s->real, at[0], s->axis, t, sum / (double)s->n);
    }
}

static void spectrum_run(const struct spectrum *s,
                         void (*run)(const struct spectrum *s, const int64_t *at))
{
    const struct view real = view_without(&s->real, s->axis), re = view_without(&s->re, s->axis);
    const struct view im = view_without(&s->im, s->axis);
    const struct view *views[] = {&real, &re, &im};
    struct walk walk;

    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        run(s, walk.at);
}

void ref_rfft(const struct call *call)
{
    struct spectrum s = {
        .real = call_in(call, 0), .re = call_out(call, 0), .im = call_out(call, 1)};

    s.axis = (uint32_t)((const frit_attrs_fft *)call_attrs(call))->axis;
    s.n = ((const frit_attrs_fft *)call_attrs(call))->n;
    spectrum_run(&s, forward_line);
}

void ref_irfft(const struct call *call)
{
    struct spectrum s = {.re = call_in(call, 0), .im = call_in(call, 1), .real = call_out(call, 0)};

    s.axis = (uint32_t)((const frit_attrs_fft *)call_attrs(call))->axis;
    s.n = s.real.dims[s.axis];
    spectrum_run(&s, inverse_line);
}
