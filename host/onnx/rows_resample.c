/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing and reading at computed places. */
#include <math.h>
#include <string.h>

#include "onnx/emit.h"
#include "onnx/fold.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/taps.h"

enum { MAX_WEIGHTS = 1 << 24, MAX_TAPS = 1 << 12, MAX_EXTENT = 1 << 24 };

/* How a node resizes. */
struct resizing {
    const char *mode, *places, *rounding;
    double cubic; /* the coefficient a */
    bool exclude_outside, antialias;
    double extrapolation;
    double scale[FRIT_MAX_RANK]; /* per dim */
    int64_t size[FRIT_MAX_RANK];
    double roi[2][FRIT_MAX_RANK]; /* starts and ends, relative */
};

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

/* ---- what a node says ---- */

/* An operand's elements as reals; false: absent, empty or not known. */
static bool reals(struct import_node *n, uint32_t index, double *out, uint32_t *count)
{
    val *x = e_has(n, index) ? e_in(n, index) : NULL;

    *count = x ? (uint32_t)e_elements(x) : 0;
    if (!*count || *count > 2 * FRIT_MAX_RANK)
        return false;
    e_real(n, index, 0);
    for (uint32_t i = 0; !n->failed && i < *count; i++)
        out[i] = fold_get(x->type.dtype, x->data, i).real;
    return !n->failed;
}

static void keep_aspect(struct import_node *n, struct resizing *r, const val *x,
                        const uint32_t *axes, uint32_t count)
{
    const char *policy = attr_text(n, "keep_aspect_ratio_policy", "stretch");
    double best = 0;

    if (is(policy, "stretch"))
        return;
    for (uint32_t i = 0; i < count; i++) {
        double scale = (double)r->size[axes[i]] / (double)x->type.dims[axes[i]];

        best = i == 0 || (is(policy, "not_larger") ? scale < best : scale > best) ? scale : best;
    }
    for (uint32_t i = 0; i < count; i++) {
        r->scale[axes[i]] = best;
        r->size[axes[i]] = fold_whole(floor(best * (double)x->type.dims[axes[i]] + 0.5));
    }
}

/* Scales or sizes, of all dims or of some. */
static bool read_extents(struct import_node *n, struct resizing *r, const val *x, uint32_t scales,
                         uint32_t sizes)
{
    double given[2 * FRIT_MAX_RANK] = {0}, roi[2 * FRIT_MAX_RANK] = {0};
    struct ints some;
    uint32_t count, axes[FRIT_MAX_RANK], n_axes, n_roi;
    bool by_size, has_axes = attr_ints(n, "axes", &some);

    n_axes = has_axes && some.count <= FRIT_MAX_RANK ? some.count : x->type.rank;
    for (uint32_t i = 0; i < n_axes; i++)
        axes[i] = has_axes ? e_axis(n, some.at[i], x->type.rank) : i;
    by_size = sizes && reals(n, sizes, given, &count);
    if (!by_size && !reals(n, scales, given, &count)) {
        problem_node(n, "there are neither scales nor sizes");
        return false;
    }
    if (count != n_axes) {
        problem_node(n, "%u scales or sizes for %u dims", count, n_axes);
        return false;
    }
    for (uint32_t d = 0; d < x->type.rank; d++) {
        r->scale[d] = 1;
        r->size[d] = x->type.dims[d];
        r->roi[1][d] = 1;
    }
    for (uint32_t i = 0; i < n_axes; i++) {
        double in = (double)x->type.dims[axes[i]];

        r->scale[axes[i]] = by_size ? given[i] / in : given[i];
        r->size[axes[i]] = fold_whole(by_size ? given[i] : floor(in * given[i]));
    }
    if (by_size)
        keep_aspect(n, r, x, axes, n_axes);
    if (is(r->places, "tf_crop_and_resize") && reals(n, 1, roi, &n_roi) && n_roi == 2 * n_axes) {
        for (uint32_t i = 0; i < n_roi; i++)
            r->roi[i / n_axes][axes[i % n_axes]] = roi[i];
    }
    return !n->failed;
}

/* ---- where and how much ---- */

/* The place in the operand that element i of the result is read at. */
static double place_of(const struct resizing *r, uint32_t d, int64_t in, int64_t i)
{
    double scale = r->scale[d], extent = (double)in, wide = scale * extent, at = (double)i;

    if (is(r->places, "align_corners"))
        return wide == 1 ? 0 : at * (extent - 1) / (wide - 1);
    if (is(r->places, "asymmetric"))
        return at / scale;
    if (is(r->places, "tf_crop_and_resize")) {
        double from = r->roi[0][d], length = r->roi[1][d] - from;

        return wide == 1 ? from * (extent - 1) + length * (extent - 1) / 2
                         : from * (extent - 1) + at * length * (extent - 1) / (wide - 1);
    }
    if (is(r->places, "pytorch_half_pixel") && wide == 1)
        return -0.5;
    at = (at + 0.5) / scale - 0.5;
    if (is(r->places, "half_pixel_symmetric"))
        at += extent / 2 * (1 - (double)r->size[d] / wide);
    return at;
}

static double round_place(const struct resizing *r, double at)
{
    if (at == floor(at) || is(r->rounding, "floor"))
        return floor(at);
    if (is(r->rounding, "ceil"))
        return ceil(at);
    return is(r->rounding, "round_prefer_ceil") ? floor(at + 0.5) : ceil(at - 0.5);
}

/* The weight of a sample at this distance. */
static double weight_at(const struct resizing *r, double distance)
{
    double x = fabs(distance), a = r->cubic;

    if (is(r->mode, "linear"))
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Adds the weights of the samples of element i to its column of `weights`, [in, out]. */
static void add_weights(const struct resizing *r, uint32_t d, int64_t in, int64_t i, float *weights)
{
    double at = place_of(r, d, in, i), sum = 0, stretch = 1;
    int64_t reach = is(r->mode, "linear") ? 1 : 2, first;

    if (is(r->places, "tf_crop_and_resize") && !(at >= 0 && at <= (double)(in - 1)))
        return;
    if (r->antialias && r->scale[d] < 1)
        stretch = r->scale[d];
    reach = fold_whole(fmin(ceil((double)reach / stretch), MAX_TAPS));
    at = fmax(fmin(at, 2.0 * (double)in), -2.0 * (double)in);
    first = fold_whole(floor(at)) - reach;
    for (int64_t k = first; k <= first + 2 * reach + 1; k++) {
        if (!r->exclude_outside || (k >= 0 && k < in))
            sum += weight_at(r, ((double)k - at) * stretch);
    }
    for (int64_t k = first; k <= first + 2 * reach + 1; k++) {
        double weight = weight_at(r, ((double)k - at) * stretch);
        int64_t from = k < 0 ? 0 : k >= in ? in - 1 : k;

        if (weight == 0 || (r->exclude_outside && from != k))
            continue;
        weights[from * r->size[d] + i] += (float)(sum == 0 ? weight : weight / sum);
    }
}

/* ---- one axis ---- */

static val *nearest_axis(struct import_node *n, const struct resizing *r, val *x, uint32_t d)
{
    int64_t in = x->type.dims[d],
            *index = import_alloc(n->import, ((size_t)r->size[d] + 1) * sizeof(*index));

    for (int64_t i = 0; index && i < r->size[d]; i++) {
        double at = round_place(r, place_of(r, d, in, i));

        index[i] = !(at > 0) ? 0 : at >= (double)in ? in - 1 : (int64_t)at;
    }
    return index ? e_select(n, x, e_known_ints(n, FRIT_I64, index, r->size[d]), d) : NULL;
}

/* The axis as the last one times a matrix of weights. */
static val *weighted_axis(struct import_node *n, const struct resizing *r, val *x, uint32_t d)
{
    const struct op_type type = {FRIT_F32, 2, {x->type.dims[d], r->size[d]}};
    uint32_t last = x->type.rank - 1;
    int64_t turn[FRIT_MAX_RANK];
    float *weights;
    val *w;

    if (type.dims[0] > MAX_WEIGHTS / (type.dims[1] ? type.dims[1] : 1)) {
        problem_node(n, "an axis is resized from %lld to %lld, which is too much",
                     (long long)type.dims[0], (long long)type.dims[1]);
        return NULL;
    }
    weights = import_elements(n->import, (size_t)op_elements(&type) * sizeof(float) + 1);
    for (int64_t i = 0; weights && i < r->size[d]; i++)
        add_weights(r, d, type.dims[0], i, weights);
    if (!weights)
        return NULL;
    for (uint32_t k = 0; k <= last; k++)
        turn[k] = k == d ? last : k == last ? d : k;
    w = e_like(n, import_constant(n->import, &type, weights, NULL), x);
    x = e_permute(n, x, turn);
    if (x && x->type.rank == 1)
        return e_squeeze(n, e_matmul(n, e_unsqueeze(n, x, 0), w), 0);
    return e_permute(n, e_matmul(n, x, w), turn);
}

/* Elements outside of the operand, of tf_crop_and_resize. */
static val *extrapolate(struct import_node *n, const struct resizing *r, val *y, const val *x,
                        uint32_t d)
{
    int64_t *outside = import_alloc(n->import, ((size_t)r->size[d] + 1) * sizeof(*outside));
    frit_dims line = {.rank = e_rank(y)};

    for (int64_t i = 0; outside && i < r->size[d]; i++) {
        double at = place_of(r, d, x->type.dims[d], i);

        outside[i] = !(at >= 0 && at <= (double)(x->type.dims[d] - 1));
    }
    for (uint32_t k = 0; k < line.rank; k++)
        line.dim[k] = k == d ? r->size[d] : 1;
    return outside ? e_where(n, e_reshape(n, e_known_ints(n, FRIT_BOOL, outside, r->size[d]), line),
                             e_num(n, r->extrapolation), y)
                   : NULL;
}

/* ---- the node ---- */

/* The table's op where it does just that: two spatial dims, exact scales. */
static val *interpolate(struct import_node *n, const struct resizing *r, val *x)
{
    frit_attrs_interpolate attrs = E_ATTRS(interpolate);
    bool half = is(r->places, "half_pixel"), corners = is(r->places, "align_corners");

    if (x->type.rank != 4 || !e_is_float(x) || r->antialias || r->exclude_outside ||
        r->size[0] != x->type.dims[0] || r->size[1] != x->type.dims[1] || r->size[2] < 1 ||
        r->size[3] < 1)
        return NULL;
    for (uint32_t d = 2; d < 4; d++) {
        if (r->scale[d] * (double)x->type.dims[d] != (double)r->size[d])
            return NULL;
    }
    if (is(r->mode, "nearest") && is(r->places, "asymmetric") && is(r->rounding, "floor"))
        attrs.mode = FRIT_CHOICE_resample_nearest;
    else if (is(r->mode, "linear") && (half || corners))
        attrs.mode = FRIT_CHOICE_resample_bilinear;
    else if (is(r->mode, "cubic") && r->cubic == -0.75 && (half || corners))
        attrs.mode = FRIT_CHOICE_resample_bicubic;
    else
        return NULL;
    attrs.align_corners = corners;
    attrs.size[0] = r->size[2];
    attrs.size[1] = r->size[3];
    return E_OP(n, FRIT_OP_interpolate, &attrs, x);
}

static val *resize(struct import_node *n, const struct resizing *r, val *x)
{
    uint32_t dtype = e_dtype(x);
    bool crops = is(r->places, "tf_crop_and_resize");
    val *y = interpolate(n, r, x);

    if (y || n->failed)
        return y;
    y = is(r->mode, "nearest") || e_is_float(x) ? x : e_cast(n, x, FRIT_F32);
    for (uint32_t d = 0; y && d < x->type.rank; d++) {
        if (r->size[d] < 0 || r->size[d] > MAX_EXTENT || !x->type.dims[d]) {
            problem_node(n, "dim %u becomes %lld", d, (long long)r->size[d]);
            return NULL;
        }
        if (r->scale[d] == 1 && r->size[d] == x->type.dims[d] && !crops)
            continue;
        y = is(r->mode, "nearest") ? nearest_axis(n, r, y, d) : weighted_axis(n, r, y, d);
    }
    for (uint32_t d = 0; y && crops && d < x->type.rank; d++)
        y = extrapolate(n, r, y, x, d);
    if (y && y->type.dtype != dtype)
        y = e_cast(n, e_un(n, FRIT_OP_round, y), dtype);
    return y;
}

void onnx_row_resize(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    bool old = n->opset < 11;
    struct resizing r = {
        .mode = attr_text(n, "mode", "nearest"),
        .places = old ? "asymmetric" : attr_text(n, "coordinate_transformation_mode", "half_pixel"),
        .rounding = old ? "floor" : attr_text(n, "nearest_mode", "round_prefer_floor"),
        .cubic = attr_float(n, "cubic_coeff_a", -0.75),
        .exclude_outside = attr_int(n, "exclude_outside", 0) != 0,
        .antialias = attr_int(n, "antialias", 0) != 0,
        .extrapolation = attr_float(n, "extrapolation_value", 0)};

    (void)arg;
    if (x && read_extents(n, &r, x, old ? 1 : 2, old ? 0 : 3))
        e_out(n, 0, resize(n, &r, x));
}

/* Scales are an attribute up to opset 8, then operand 1. */
void onnx_row_upsample(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    struct resizing r = {.mode = attr_text(n, "mode", "nearest"),
                         .places = "asymmetric",
                         .rounding = "floor",
                         .cubic = -0.75};
    const Onnx__AttributeProto *scales = n->opset < 9 ? attr_floats(n, "scales") : NULL;

    (void)arg;
    if (!x)
        return;
    if (n->opset >= 9) {
        if (!read_extents(n, &r, x, 1, 0))
            return;
    } else if (!scales || scales->n_floats != x->type.rank) {
        problem_node(n, "there is no scale per dim");
        return;
    }
    for (uint32_t d = 0; scales && d < x->type.rank; d++) {
        r.scale[d] = (double)scales->floats[d];
        r.size[d] = fold_whole(floor((double)x->type.dims[d] * r.scale[d]));
    }
    e_out(n, 0, resize(n, &r, x));
}

/* ---- grids ---- */

/* Mirrored at low and high until it is between them. */
static val *reflect(struct import_node *n, val *at, double low, double high)
{
    const double span = high - low;
    val *over;

    if (span <= 0)
        return e_mul(n, at, e_num(n, 0));
    over = e_bin(n, FRIT_OP_rem, e_sub(n, at, e_num(n, low)), e_num(n, 2 * span));
    over = e_min(n, over, e_sub(n, e_num(n, 2 * span), over));
    return e_add(n, over, e_num(n, low));
}

/* Where a grid's coordinates along one dim lie among its elements: [batch, places]. */
static val *grid_places(struct import_node *n, const frit_attrs_grid_sample *a, val *grid,
                        int64_t index, int64_t extent)
{
    const double corner = a->align_corners ? 0 : 0.5, last = (double)(extent - 1);
    val *at = e_take(n, grid, e_rank(grid) - 1, index);

    if (!at)
        return NULL;
    at = e_reshape(n, at, FRIT_SHAPE(at->type.dims[0], at->type.dims[0] ? -1 : 0));
    at = e_mul(n, e_add(n, at, e_num(n, 1)), e_num(n, (last + 2 * corner) / 2));
    at = e_sub(n, at, e_num(n, corner));
    if (a->border == FRIT_CHOICE_border_reflection)
        at = reflect(n, at, -corner, last + corner);
    if (a->border != FRIT_CHOICE_border_zeros)
        at = e_min(n, e_max(n, at, e_num(n, 0)), e_num(n, last));
    return at;
}

/* x [batch, channels, depth, height, width] at grid [batch, .., 3], by its neighbours. */
static val *grid_sample_3d(struct import_node *n, const frit_attrs_grid_sample *a, val *x,
                           val *grid)
{
    const bool zeros = a->border == FRIT_CHOICE_border_zeros;
    struct tap_line lines[TAPS_DIMS];
    frit_dims dims = e_dims(x);
    val *y;

    if (a->mode == FRIT_CHOICE_resample_bicubic || e_rank(grid) != 5 || grid->type.dims[4] != 3) {
        problem_node(n, "mode cubic of three dims, or a grid of other than three coordinates");
        return NULL;
    }
    for (uint32_t d = 0; d < TAPS_DIMS && !n->failed; d++) {
        const int64_t extent = x->type.dims[2 + d];
        val *at = grid_places(n, a, grid, TAPS_DIMS - 1 - d, extent);

        if (a->mode == FRIT_CHOICE_resample_nearest)
            taps_nearest(n, &lines[d], at, extent, zeros);
        else
            taps_linear(n, &lines[d], at, extent, zeros);
    }
    y = n->failed ? NULL : taps_read(n, x, lines, false);
    for (uint32_t d = 0; d < TAPS_DIMS && y; d++)
        dims.dim[2 + d] = grid->type.dims[1 + d];
    return e_reshape(n, y, dims);
}

void onnx_row_grid_sample(struct import_node *n, uint32_t arg)
{
    frit_attrs_grid_sample attrs = E_ATTRS(grid_sample);
    const char *mode = attr_text(n, "mode", "linear"),
               *border = attr_text(n, "padding_mode", "zeros");
    val *x = e_in(n, 0), *grid = e_like(n, e_in(n, 1), x);

    (void)arg;
    attrs.mode = is(mode, "nearest")                        ? FRIT_CHOICE_resample_nearest
                 : is(mode, "cubic") || is(mode, "bicubic") ? FRIT_CHOICE_resample_bicubic
                                                            : FRIT_CHOICE_resample_bilinear;
    attrs.border = is(border, "border")       ? FRIT_CHOICE_border_edge
                   : is(border, "reflection") ? FRIT_CHOICE_border_reflection
                                              : FRIT_CHOICE_border_zeros;
    attrs.align_corners = attr_int(n, "align_corners", 0) != 0;
    if (n->failed)
        return;
    e_out(n, 0,
          e_rank(x) == 5 ? grid_sample_3d(n, &attrs, x, grid)
                         : E_OP(n, FRIT_OP_grid_sample, &attrs, x, grid));
}

/* -1..1 over an extent, as a column for one spatial dim of `rank`, expanded over all. */
static val *grid_axis(struct import_node *n, uint32_t dtype, frit_dims space, uint32_t axis,
                      bool corners)
{
    int64_t extent = space.dim[axis];
    double step = corners ? (extent > 1 ? 2 / (double)(extent - 1) : 0) : 2 / (double)extent;
    double start = corners ? (extent > 1 ? -1 : 0) : -1 + 1 / (double)extent;
    frit_dims line = {.rank = space.rank};
    val *x = e_arange(n, dtype, e_num(n, start), e_num(n, step), extent);

    for (uint32_t d = 0; d < line.rank; d++)
        line.dim[d] = d == axis ? extent : 1;
    return e_expand(n, e_reshape(n, x, line), space);
}

/* theta [n, 2, 3] or [n, 3, 4] times the places of a grid, (x, y, 1) or (x, y, z, 1). */
void onnx_row_affine_grid(struct import_node *n, uint32_t arg)
{
    val *theta = e_in(n, 0), *parts[4], *grid;
    bool corners = attr_int(n, "align_corners", 0) != 0;
    frit_dims space = {0}, out = {0};
    struct ints size;
    int64_t count = 1;

    (void)arg;
    if (!theta || !e_ints(n, 1, &size))
        return;
    if (size.count < 4 || size.count > 5) {
        problem_node(n, "a size of %u numbers", size.count);
        return;
    }
    for (uint32_t i = 2; i < size.count; i++) {
        if (size.at[i] < 1 || size.at[i] > 1 << 20) {
            problem_node(n, "an extent of %lld", (long long)size.at[i]);
            return;
        }
        space.dim[space.rank++] = size.at[i];
        count *= size.at[i];
    }
    for (uint32_t i = 0; i < space.rank; i++)
        parts[i] = grid_axis(n, e_dtype(theta), space, (uint32_t)space.rank - 1 - i, corners);
    parts[space.rank] = e_full(n, e_dtype(theta), e_num(n, 1), space);
    for (uint32_t i = 0; i <= space.rank; i++)
        parts[i] = e_reshape(n, parts[i], FRIT_SHAPE(count, 1));
    grid = n->failed ? NULL : e_cat(n, 1, parts, (uint32_t)space.rank + 1);
    grid = e_matmul(n, grid, e_swap_last(n, theta));
    out.dim[out.rank++] = size.at[0];
    for (uint32_t i = 0; i < space.rank; i++)
        out.dim[out.rank++] = space.dim[i];
    out.dim[out.rank++] = space.rank;
    e_out(n, 0, e_reshape(n, grid, out));
}
