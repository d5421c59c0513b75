/* SPDX-License-Identifier: Apache-2.0 */
/* Points are moved near x, taken apart into the sample before them and a fraction, and turned into
 * numbers and weights of neighbours. */
#include "graph/decompose/decompose_sample.h"

#include "graph/decompose/decompose_taps.h"

static bool is_zeros(const struct sampling *s)
{
    return s->border == FRIT_CHOICE_border_zeros;
}

static int64_t pairs_of(const struct sampling *s)
{
    return taps_count(s->mode) * taps_count(s->mode);
}

static term clamped(struct build *b, term x, double low, double high)
{
    return b_minimum(b, b_maximum(b, x, b_number(low)), b_number(high));
}

/* Mirrored at `low` and `low + span` as often as it takes. */
static term reflected(struct build *b, term at, double low, double span)
{
    term away, round;

    if (span == 0)
        return b_mul(b, at, b_number(0));
    away = b_rem(b, b_sub(b, at, b_number(low)), b_number(2 * span));
    round = b_sub(b, b_number(2 * span), away);
    return b_add(b, b_minimum(b, away, round), b_number(low));
}

/* NaN as another number. */
static term without_nan(struct build *b, term x, double instead)
{
    return b_where(b, b_eq(b, x, x), x, b_number(instead));
}

/* The place in a plane that stands for one along a dim. */
static term moved_inside(struct build *b, const struct sampling *s, term at, int64_t extent)
{
    double last = (double)(extent - 1);

    if (s->border == FRIT_CHOICE_border_reflection)
        at = s->align_corners ? reflected(b, at, 0, last) : reflected(b, at, -0.5, (double)extent);
    return clamped(b, without_nan(b, at, 0), 0, last);
}

/* Places so far away that only zeros are there come near enough to compute with. */
static term in_reach(struct build *b, const struct sampling *s, term at, int64_t extent)
{
    double far = (double)taps_count(FRIT_CHOICE_resample_lanczos3);

    if (is_zeros(s))
        return clamped(b, without_nan(b, at, -far), -far, (double)extent + far);
    return s->mode == FRIT_CHOICE_resample_bicubic ? without_nan(b, at, 0)
                                                   : moved_inside(b, s, at, extent);
}

struct sample_line sample_line(struct build *b, const struct sampling *s, term at, int dim)
{
    struct sample_line line = {0};
    int64_t extent = s->extent[dim];
    term first, near;

    at = in_reach(b, s, at, extent);
    if (taps_count(s->mode) == 1) {
        near = b_op(b, FRIT_OP_round, 1, &at, NULL);
    } else {
        term step = taps_places(b, s->mode, 3);

        first = b_floor(b, at);
        near = b_add(b, first, b_cast(b, step, b->dtype));
        line.weight = taps_weights(b, s->mode, b_sub(b, at, first), step);
    }
    if (is_zeros(s)) {
        line.there = b_lt(b, near, b_number((double)extent));
        line.there = b_and(b, line.there, b_le(b, b_number(0), near));
        near = clamped(b, near, 0, (double)(extent - 1));
    } else {
        near = moved_inside(b, s, near, extent);
    }
    line.index = b_cast(b, near, FRIT_I64);
    return line;
}

/* A table of one dim beside that of the other: taps of rows first, then of columns. */
static term beside(struct build *b, const struct sampling *s, term table, bool rows)
{
    int64_t taps = taps_count(s->mode);
    const int64_t dims[4] = {s->items, s->points, rows ? taps : 1, rows ? 1 : taps};

    return b_reshape(b, table, 4, dims);
}

term sample_pairs(struct build *b, const struct sampling *s,
                  term (*join)(struct build *b, term x, term y), term rows, term columns)
{
    const int64_t dims[4] = {s->items, 1, s->points, pairs_of(s)};

    rows = beside(b, s, rows, true);
    columns = beside(b, s, columns, false);
    return b_reshape(b, join(b, rows, columns), 4, dims);
}

term sample_index(struct build *b, const struct sampling *s, const struct sample_line line[2],
                  bool writing)
{
    int64_t all[3] = {s->items, 1, s->points * pairs_of(s)};
    term rows = b_mul(b, line[0].index, b_number((double)s->extent[1]));
    term index = sample_pairs(b, s, b_add, rows, line[1].index);

    if (writing && is_zeros(s))
        index = b_where(b, sample_pairs(b, s, b_and, line[0].there, line[1].there), index,
                        b_number(-1));
    index = b_reshape(b, index, 3, all);
    all[1] = s->channels;
    return b_expand(b, index, 3, all);
}

term sample_values(struct build *b, const struct sampling *s, term x,
                   const struct sample_line line[2])
{
    const frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = 2};
    const int64_t planes[3] = {s->items, s->channels, s->extent[0] * s->extent[1]};
    const int64_t dims[4] = {s->items, s->channels, s->points, pairs_of(s)};
    term values;

    if (planes[2] == 0)
        return b_full(b, b->dtype, b_number(0).scalar, 4, dims);
    x = b_reshape(b, x, 3, planes);
    values = b_op(b, FRIT_OP_gather, 2, (const term[]){x, sample_index(b, s, line, false)}, &attrs);
    values = b_reshape(b, values, 4, dims);
    if (!is_zeros(s))
        return values;
    return b_where(b, sample_pairs(b, s, b_and, line[0].there, line[1].there), values, b_number(0));
}

term sample_sum(struct build *b, const struct sampling *s, term values,
                const struct sample_line line[2])
{
    const frit_axes last = {.count = 1, .axis = {3}};

    if (taps_count(s->mode) > 1)
        values = b_mul(b, values, sample_pairs(b, s, b_mul, line[0].weight, line[1].weight));
    return b_reduce(b, FRIT_OP_sum, values, &last, false);
}

/* ---- grid_sample ---- */

/* Coordinate `k` of the grid, from -1 to 1, as places: [items, points, 1]. */
static term grid_places(struct build *b, const struct sampling *s, uint32_t k, int64_t extent)
{
    const int64_t dims[3] = {s->items, s->points, 1};
    term at = b_reshape(b, b_slice(b, b_in(b, 1), 3, k, k + 1), 3, dims);

    at = b_add(b, at, b_number(1));
    if (s->align_corners)
        return b_mul(b, at, b_number((double)(extent - 1) / 2));
    return b_mul(b, b_sub(b, b_mul(b, at, b_number((double)extent)), b_number(1)), b_number(0.5));
}

term decompose_grid_sample(struct build *b)
{
    const int64_t *x = b->call->in[0].type.dims, *y = b->out.dims;
    const frit_attrs_grid_sample *attrs = b->call->attrs;
    const struct sampling s = {.mode = attrs->mode,
                               .border = attrs->border,
                               .align_corners = attrs->align_corners,
                               .items = x[0],
                               .channels = x[1],
                               .points = y[2] * y[3],
                               .extent = {x[2], x[3]}};
    struct sample_line line[2];
    term values;

    for (int dim = 0; dim < 2; dim++) /* the grid names columns first */
        line[dim] = sample_line(b, &s, grid_places(b, &s, dim == 0, s.extent[dim]), dim);
    values = sample_values(b, &s, b_in(b, 0), line);
    return b_reshape(b, sample_sum(b, &s, values, line), 4, y);
}
