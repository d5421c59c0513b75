/* SPDX-License-Identifier: Apache-2.0 */
/* grid_sample: each position of the result samples x at the point that grid gives.  A point outside
 * x is first moved inside (edge, reflection) or reads zeros.  Bicubic sampling near an edge also
 * reads neighbours outside x; each of them is moved inside, or is zero, in the same way. */
#include <math.h>

#include "rows.h"
#include "taps.h"

struct grid {
    struct view x, grid, y;
    int64_t mode, border;
    bool align_corners;
};

/* From -1..1 to a coordinate among `extent` samples. */
static double unnormalised(const struct grid *g, double at, int64_t extent)
{
    if (g->align_corners)
        return (at + 1) / 2 * (double)(extent - 1);
    return ((at + 1) * (double)extent - 1) / 2;
}

/* Mirrored at `low` and `low + span` as often as it takes. */
static double reflected(double at, double low, double span)
{
    double away = fabs(at - low), flips;

    if (span == 0)
        return 0;
    flips = floor(away / span);
    away -= flips * span;
    return fmod(flips, 2) == 0 ? low + away : low + span - away;
}

/* The coordinate `at` along a dim, moved into x by the border mode; unchanged if the mode is zeros.
 * In the other modes NaN becomes the first sample. */
static double moved_inside(const struct grid *g, double at, int64_t extent)
{
    double last = (double)(extent - 1);

    if (g->border == FRIT_CHOICE_border_zeros)
        return at;
    if (g->border == FRIT_CHOICE_border_reflection)
        at = g->align_corners ? reflected(at, 0, last) : reflected(at, -0.5, (double)extent);
    return fmin(fmax(at, 0), last);
}

/* The value of an element of one plane, 0 outside x. */
static double sample(const struct grid *g, const char *plane, int64_t row, int64_t column)
{
    if (row < 0 || row >= g->x.dims[2] || column < 0 || column >= g->x.dims[3])
        return 0;
    return value_get(g->x.dtype, plane + row * g->x.strides[2] + column * g->x.strides[3]).real;
}

/* The samples around a coordinate and their weights.  None for NaN, or for a coordinate so far
 * outside that it reads only zeros. */
static struct taps taps_of(const struct grid *g, double at, int64_t extent)
{
    if (g->mode != FRIT_CHOICE_resample_bicubic)
        at = moved_inside(g, at, extent);
    if (!(at > -4 && at < (double)extent + 4) && g->border == FRIT_CHOICE_border_zeros)
        return (struct taps){.n = 0};
    if (g->mode == FRIT_CHOICE_resample_nearest)
        return taps_one((int64_t)nearbyint(at));
    if (fabs(at) < 0x1p52)
        return taps_at(g->mode, at);
    return taps_one((int64_t)moved_inside(g, at, extent));
}

static int64_t neighbour(const struct grid *g, int64_t i, int64_t extent)
{
    return (int64_t)moved_inside(g, (double)i, extent);
}

static double read_plane(const struct grid *g, const char *plane, const struct taps taps[2])
{
    double sum = 0;

    for (int j = 0; j < taps[0].n; j++)
        for (int i = 0; i < taps[1].n; i++)
            sum += taps[0].weight[j] * taps[1].weight[i] *
                   sample(g, plane, neighbour(g, taps[0].first + j, g->x.dims[2]),
                          neighbour(g, taps[1].first + i, g->x.dims[3]));
    return sum;
}

/* One position of the result in every channel. */
static void sample_position(const struct grid *g, int64_t item, int64_t row, int64_t column)
{
    const char *point = g->grid.data + item * g->grid.strides[0] + row * g->grid.strides[1] +
                        column * g->grid.strides[2];
    double right = value_get(g->grid.dtype, point).real;
    double down = value_get(g->grid.dtype, point + g->grid.strides[3]).real;
    int64_t height = g->x.dims[2], width = g->x.dims[3];
    const struct taps taps[2] = {taps_of(g, unnormalised(g, down, height), height),
                                 taps_of(g, unnormalised(g, right, width), width)};

    for (int64_t c = 0; c < g->y.dims[1]; c++) {
        const char *plane = g->x.data + item * g->x.strides[0] + c * g->x.strides[1];
        char *y = g->y.data + item * g->y.strides[0] + c * g->y.strides[1] + row * g->y.strides[2] +
                  column * g->y.strides[3];

        value_put(g->y.dtype, y, (union value){.real = read_plane(g, plane, taps)});
    }
}

void ref_grid_sample(const struct call *call)
{
    const frit_attrs_grid_sample *attrs = call_attrs(call);
    const struct grid g = {.x = call_in(call, 0),
                           .grid = call_in(call, 1),
                           .y = call_out(call, 0),
                           .mode = attrs->mode,
                           .border = attrs->border,
                           .align_corners = attrs->align_corners != 0};

    for (int64_t item = 0; item < g.y.dims[0]; item++)
        for (int64_t row = 0; row < g.y.dims[2]; row++)
            for (int64_t column = 0; column < g.y.dims[3]; column++)
                sample_position(&g, item, row, column);
}
