/* SPDX-License-Identifier: Apache-2.0 */
/* interpolate and its gradient: each element of the result is a weighted sum over neighbours of its
 * place in x, along both spatial dims; the gradient goes back by the same weights.  Neighbours
 * outside of x are its border. */
#include <math.h>

#include "rows.h"
#include "taps.h"

struct resample {
    struct view x, y; /* x or dx as doubles; y or the gradient by it */
    int64_t mode;
    bool align_corners;
};

/* floor((i + half / 2) * from / to) without rounding. */
static int64_t nearest(int64_t i, int half, int64_t from, int64_t to)
{
    return (2 * i + half) * from / (2 * to);
}

static double point(const struct resample *r, int64_t i, int64_t from, int64_t to)
{
    double at;

    if (r->align_corners)
        return to > 1 ? (double)i * (double)(from - 1) / (double)(to - 1) : 0;
    at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    return r->mode == FRIT_CHOICE_resample_bilinear && at < 0 ? 0 : at;
}

/* Of place `i` of the result along spatial dim `d`. */
static struct taps taps_of(const struct resample *r, int64_t i, uint32_t d)
{
    int64_t from = r->x.dims[d], to = r->y.dims[d];

    if (r->mode == FRIT_CHOICE_resample_nearest)
        return taps_one(nearest(i, 0, from, to));
    if (r->mode == FRIT_CHOICE_resample_nearest_exact)
        return taps_one(nearest(i, 1, from, to));
    return taps_at(r->mode, point(r, i, from, to));
}

static int64_t inside(int64_t i, int64_t extent)
{
    if (i < 0)
        return 0;
    return i < extent ? i : extent - 1;
}

typedef double (*meet_fn)(const struct resample *r, char *x, double weight, double value);

static double read_x(const struct resample *r, char *x, double weight, double value)
{
    return value + weight * value_get(r->x.dtype, x).real;
}

static double add_to_x(const struct resample *r, char *x, double weight, double value)
{
    union value sum = value_get(r->x.dtype, x);

    sum.real += weight * value;
    value_put(r->x.dtype, x, sum);
    return value;
}

/* Every neighbour of one place in the plane `x` meets the value of the place. */
static double meet(const struct resample *r, meet_fn fn, char *x, const struct taps taps[2],
                   double value)
{
    for (int j = 0; j < taps[0].n; j++)
        for (int i = 0; i < taps[1].n; i++)
            value = fn(r,
                       x + inside(taps[0].first + j, r->x.dims[2]) * r->x.strides[2] +
                           inside(taps[1].first + i, r->x.dims[3]) * r->x.strides[3],
                       taps[0].weight[j] * taps[1].weight[i], value);
    return value;
}

/* One place of the result in every plane. */
static void resample_place(const struct resample *r, bool back, int64_t row, int64_t column)
{
    const struct taps taps[2] = {taps_of(r, row, 2), taps_of(r, column, 3)};

    for (int64_t n = 0; n < r->y.dims[0]; n++)
        for (int64_t c = 0; c < r->y.dims[1]; c++) {
            char *x = r->x.data + n * r->x.strides[0] + c * r->x.strides[1];
            char *y = r->y.data + n * r->y.strides[0] + c * r->y.strides[1] +
                      row * r->y.strides[2] + column * r->y.strides[3];
            double value = back ? value_get(r->y.dtype, y).real : 0;

            value = meet(r, back ? add_to_x : read_x, x, taps, value);
            if (!back)
                value_put(r->y.dtype, y, (union value){.real = value});
        }
}

static void resample_run(struct resample *r, const struct call *call, bool back)
{
    const frit_attrs_interpolate *attrs = call_attrs(call);

    r->mode = attrs->mode;
    r->align_corners = attrs->align_corners != 0;
    for (int64_t row = 0; row < r->y.dims[2]; row++)
        for (int64_t column = 0; column < r->y.dims[3]; column++)
            resample_place(r, back, row, column);
}

void ref_interpolate(const struct call *call)
{
    struct resample r = {.x = call_in(call, 0), .y = call_out(call, 0)};

    resample_run(&r, call, false);
}

void ref_interpolate_backward(const struct call *call)
{
    struct resample r = {.x = call_sums(call, 0), .y = call_in(call, 1)};

    resample_run(&r, call, true);
    call_round(call, 0, &r.x);
}
