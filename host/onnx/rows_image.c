/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions at other places, pools backwards, columns of images, determinants. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/taps.h"
#include "onnx/window.h"

void onnx_row_deform_conv(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *w = e_in(n, 1);
    frit_attrs_deform attrs = E_ATTRS(deform);
    struct window window;

    (void)arg;
    if (!window_read(n, x, w, &window))
        return;
    if (window_is_symmetric(&window))
        memcpy(attrs.padding, window.low, sizeof(attrs.padding));
    else
        x = window_pad(n, x, &window, e_num(n, 0));
    memcpy(attrs.stride, window.stride, sizeof(attrs.stride));
    memcpy(attrs.dilation, window.dilation, sizeof(attrs.dilation));
    attrs.groups = attr_int(n, "group", 1);
    attrs.offset_groups = attr_int(n, "offset_group", 1);
    e_out(n, 0,
          E_OP(n, FRIT_OP_deform_conv, &attrs, x, e_in(n, 2), w,
               e_has(n, 4) ? e_in(n, 4) : e_none(n), e_has(n, 3) ? e_in(n, 3) : e_none(n)));
}

/* Columns added where they came from: a transposed convolution whose kernel k has its one at k. */
void onnx_row_col2im(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *w;
    frit_attrs_conv_transpose attrs = E_ATTRS(conv_transpose);
    frit_dims lines = {.rank = 2}, kernel = {.rank = 2}, out = {.rank = 2};
    int64_t pads[6], low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0}, taps = 1;
    struct ints image, block;

    (void)arg;
    if (!x || !e_ints(n, 1, &image) || !e_ints(n, 2, &block))
        return;
    if (image.count != block.count || image.count < 1 || image.count > 3 || x->type.rank != 3) {
        problem_node(n, "an image of %u dims from blocks of %u", image.count, block.count);
        return;
    }
    for (uint32_t i = 0; i < image.count; i++) {
        if (image.at[i] < 1 || image.at[i] > INT32_MAX || block.at[i] < 1 || block.at[i] > 1 << 10)
            problem_node(n, "an image or a block has an extent that is not possible");
    }
    attr_numbers(n, "strides", image.count, 1, 1, attrs.stride);
    attr_numbers(n, "dilations", image.count, 1, 1, attrs.dilation);
    attr_numbers(n, "pads", 2 * image.count, 0, 0, pads);
    for (uint32_t i = 0; i < image.count && !n->failed; i++) {
        int64_t reach = (block.at[i] - 1) * attrs.dilation[i] + 1;
        int64_t padded = image.at[i] + pads[i] + pads[image.count + i];

        taps *= block.at[i];
        kernel.dim[kernel.rank++] = block.at[i];
        lines.dim[lines.rank] = attrs.stride[i] > 0 ? (padded - reach) / attrs.stride[i] + 1 : 0;
        low[2 + i] = -pads[i];
        high[2 + i] = image.at[i] + pads[i] - (lines.dim[lines.rank] - 1) * attrs.stride[i] - reach;
        lines.rank++;
        out.dim[out.rank++] = image.at[i];
    }
    if (n->failed || taps < 1 || x->type.dims[1] % taps) {
        problem_node(n, "blocks do not divide the columns");
        return;
    }
    kernel.dim[0] = lines.dim[1] = taps;
    kernel.dim[1] = 1;
    lines.dim[0] = x->type.dims[0] * x->type.dims[1] / taps;
    out.dim[0] = x->type.dims[0];
    out.dim[1] = x->type.dims[1] / taps;
    w = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), taps);
    w = e_reshape(n, e_like(n, e_one_hot(n, w, 1, taps), x), kernel);
    x = E_OP(n, FRIT_OP_conv_transpose, &attrs, e_reshape(n, x, lines), w, e_none(n));
    e_out(n, 0, e_reshape(n, e_pad(n, x, e_num(n, 0), low, high), out));
}

/* Values put where a pool found them, zeros elsewhere. */
void onnx_row_max_unpool(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *index = e_in(n, 1);
    frit_attrs_scatter attrs = E_ATTRS(scatter);
    frit_dims out = e_dims(x);
    struct window w;
    struct ints shape;
    int64_t count = 1, more[FRIT_MAX_RANK] = {0};

    (void)arg;
    if (!index || !window_read(n, x, NULL, &w))
        return;
    for (uint32_t i = 0; i < w.rank; i++)
        out.dim[2 + i] = (out.dim[2 + i] - 1) * w.stride[i] + w.kernel[i] - w.low[i] - w.high[i];
    for (uint32_t d = 0; d < out.rank; d++)
        count *= out.dim[d];
    if (n->failed || count < 1)
        return;
    x = E_OP(n, FRIT_OP_scatter, &attrs, e_full(n, e_dtype(x), e_num(n, 0), FRIT_SHAPE(count)),
             e_reshape(n, index, FRIT_SHAPE(e_elements(index))),
             e_reshape(n, x, FRIT_SHAPE(e_elements(x))));
    x = e_reshape(n, x, out);
    if (!e_has(n, 2) || !e_ints(n, 2, &shape) || shape.count != out.rank) {
        e_out(n, 0, x);
        return;
    }
    /* Indices count in the shape without the operand, which lies in the corner of the wanted one.
     */
    for (uint32_t d = 0; d < out.rank; d++)
        more[d] = shape.at[d] - out.dim[d];
    e_out(n, 0, e_pad(n, x, e_num(n, 0), NULL, more));
}

/* ---- regions ---- */

/* Regions of images, read at `ratio`^2 places per result. */
struct regions {
    val *x, *rois, *batch;
    int64_t size[2], ratio; /* of the results: height, width */
    double scale;
    bool half; /* the centre of an element is at its index, not half an element behind */
    bool largest;
};

static bool regions_read(struct import_node *n, struct regions *r)
{
    *r = (struct regions){.x = e_in(n, 0),
                          .rois = e_in(n, 1),
                          .batch = e_in(n, 2),
                          .size = {attr_int(n, "output_height", 1), attr_int(n, "output_width", 1)},
                          .ratio = attr_int(n, "sampling_ratio", 0),
                          .scale = attr_float(n, "spatial_scale", 1),
                          .largest = attr_is(n, "mode", "avg", "max")};
    r->half = n->opset >= 16 &&
              !attr_is(n, "coordinate_transformation_mode", "half_pixel", "output_half_pixel");
    if (r->ratio < 1)
        problem_node(n, "a sampling_ratio that depends on the regions");
    else if (r->ratio > 256 || r->size[0] < 1 || r->size[0] > INT32_MAX || r->size[1] < 1 ||
             r->size[1] > INT32_MAX || e_rank(r->x) != 4 || e_rank(r->rois) != 2 ||
             r->rois->type.dims[1] != 4)
        problem_node(n, "sizes that are not possible, or operands of other dims");
    return !n->failed;
}

/* Where the samples lie along height (0) or width (1): [regions, samples]. */
static val *region_places(struct import_node *n, const struct regions *r, uint32_t k)
{
    const int64_t steps = r->size[k] * r->ratio;
    val *start = e_mul(n, e_slice(n, r->rois, 1, 1 - k, 2 - k, 1), e_num(n, r->scale));
    val *end = e_mul(n, e_slice(n, r->rois, 1, 3 - k, 4 - k, 1), e_num(n, r->scale)), *length, *at;

    if (r->half) {
        start = e_sub(n, start, e_num(n, 0.5));
        end = e_sub(n, end, e_num(n, 0.5));
    }
    length = e_sub(n, end, start);
    if (!r->half)
        length = e_max(n, length, e_num(n, 1));
    at = e_arange(n, e_dtype(r->x), e_num(n, 0.5 / (double)steps), e_num(n, 1 / (double)steps),
                  steps);
    return e_add(n, start, e_mul(n, length, e_reshape(n, at, FRIT_SHAPE(1, steps))));
}

/* Samples along one dim as those of a table over both. */
static val *region_line(struct import_node *n, val *x, uint32_t k)
{
    return e_unsqueeze(n, x, k ? 1 : 2);
}

/* Samples further than an element outside are 0. */
static val *region_inside(struct import_node *n, val *at, int64_t extent)
{
    return e_bin(n, FRIT_OP_and, e_bin(n, FRIT_OP_ge, at, e_num(n, -1)),
                 e_bin(n, FRIT_OP_le, at, e_num(n, (double)extent)));
}

/* The sum of the four weighted neighbours of each sample. */
static val *region_samples(struct import_node *n, const struct regions *r, val *const *at,
                           val *images)
{
    frit_attrs_grid_sample sample = E_ATTRS(grid_sample);
    const int64_t count = r->rois->type.dims[0];
    val *places[2];

    for (uint32_t k = 0; k < 2; k++) {
        const double extent = (double)r->x->type.dims[2 + k];

        /* The centres of elements 0 and extent - 1 are at -1 + 1 / extent and 1 - 1 / extent. */
        places[k] =
            e_sub(n, e_mul(n, e_add(n, at[k], e_num(n, 0.5)), e_num(n, 2 / extent)), e_num(n, 1));
        places[k] = e_expand(n, region_line(n, places[k], k),
                             FRIT_SHAPE(count, r->size[0] * r->ratio, r->size[1] * r->ratio));
    }
    sample.mode = FRIT_CHOICE_resample_bilinear;
    sample.border = FRIT_CHOICE_border_edge;
    return E_OP(
        n, FRIT_OP_grid_sample, &sample, images,
        e_cat(n, 3, (val *[]){e_unsqueeze(n, places[1], 3), e_unsqueeze(n, places[0], 3)}, 2));
}

/* The largest of the four weighted neighbours, which is what mode max means. */
static val *region_largest(struct import_node *n, const struct regions *r, val *const *at,
                           val *images)
{
    struct tap_line lines[2];
    val *y;

    for (uint32_t k = 0; k < 2; k++) {
        const int64_t extent = r->x->type.dims[2 + k];
        val *place = e_min(n, e_max(n, at[k], e_num(n, 0)), e_num(n, (double)(extent - 1)));

        taps_linear(n, &lines[k], region_line(n, place, k), extent, false);
    }
    y = n->failed ? NULL : taps_read(n, images, lines, true);
    return e_reshape(n, y,
                     FRIT_SHAPE(r->rois->type.dims[0], r->x->type.dims[1], r->size[0] * r->ratio,
                                r->size[1] * r->ratio));
}

/* The mean of the samples, or the largest. */
void onnx_row_roi_align(struct import_node *n, uint32_t arg)
{
    struct regions r;
    frit_attrs_avg_pool mean = E_ATTRS(avg_pool);
    frit_attrs_max_pool largest = E_ATTRS(max_pool);
    val *at[2], *inside[2], *images, *y;

    (void)arg;
    if (!regions_read(n, &r))
        return;
    for (uint32_t k = 0; k < 2; k++) {
        at[k] = region_places(n, &r, k);
        inside[k] = region_line(n, region_inside(n, at[k], r.x->type.dims[2 + k]), k);
    }
    images = e_select(n, r.x, e_cast(n, r.batch, FRIT_I64), 0);
    if (n->failed)
        return;
    y = r.largest ? region_largest(n, &r, at, images) : region_samples(n, &r, at, images);
    y = e_where(n, e_unsqueeze(n, e_bin(n, FRIT_OP_and, inside[0], inside[1]), 1), y, e_num(n, 0));
    mean.kernel[0] = mean.kernel[1] = largest.kernel[0] = largest.kernel[1] = r.ratio;
    e_out(n, 0,
          r.largest ? E_OP(n, FRIT_OP_max_pool, &largest, y) : E_OP(n, FRIT_OP_avg_pool, &mean, y));
}

/* ---- determinants, by the first row ---- */

static val *minor_of(struct import_node *n, val *x, int64_t column)
{
    uint32_t rank = e_rank(x);
    int64_t size = x ? x->type.dims[rank - 1] : 0;
    val *rest = e_slice(n, x, rank - 2, 1, size, 1);

    if (column == 0)
        return e_slice(n, rest, rank - 1, 1, size, 1);
    if (column == size - 1)
        return e_slice(n, rest, rank - 1, 0, size - 1, 1);
    return e_cat(n, rank - 1,
                 (val *[]){e_slice(n, rest, rank - 1, 0, column, 1),
                           e_slice(n, rest, rank - 1, column + 1, size, 1)},
                 2);
}

static val *determinant(struct import_node *n, val *x)
{
    uint32_t rank = e_rank(x);
    val *sum = NULL;

    if (!x)
        return NULL;
    if (x->type.dims[rank - 1] == 1)
        return e_squeeze(n, e_squeeze(n, x, rank - 1), rank - 2);
    for (int64_t k = 0; k < x->type.dims[rank - 1]; k++) {
        val *first = e_take(n, e_take(n, x, rank - 2, 0), rank - 2, k);
        val *term = e_mul(n, first, determinant(n, minor_of(n, x, k)));

        sum = !sum ? term : k % 2 ? e_sub(n, sum, term) : e_add(n, sum, term);
    }
    return sum;
}

void onnx_row_det(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    uint32_t rank = e_rank(x);

    (void)arg;
    if (rank < 2 || x->type.dims[rank - 1] != x->type.dims[rank - 2] ||
        x->type.dims[rank - 1] < 1 || x->type.dims[rank - 1] > 5)
        problem_node(n, "determinants are computed of up to 5 rows");
    else
        e_out(n, 0, determinant(n, x));
}
