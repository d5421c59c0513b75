/* SPDX-License-Identifier: Apache-2.0 */
/* Padding, blocks of space, and sequences in another order. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* ---- padding ---- */

/* Reads pads per dim: of all dims, or of the axes in operand 3. */
static bool read_pads(struct import_node *n, const val *x, int64_t *low, int64_t *high)
{
    struct ints pads, axes = {0};
    bool some = n->opset >= 18 && e_has(n, 3);
    uint32_t count;

    if (!x || !e_ints_or_attr(n, 1, "pads", &pads) || (some && !e_ints(n, 3, &axes)))
        return false;
    count = some ? axes.count : x->type.rank;
    if (pads.count != 2 * count) {
        problem_node(n, "%u pads for %u dims", pads.count, count);
        return false;
    }
    for (uint32_t i = 0; i < pads.count; i++) {
        if (pads.at[i] < -INT32_MAX || pads.at[i] > INT32_MAX)
            problem_node(n, "pads are %lld", (long long)pads.at[i]);
    }
    for (uint32_t i = 0; i < count && !n->failed; i++) {
        uint32_t axis = some ? e_axis(n, axes.at[i], x->type.rank) : i;

        low[axis] = pads.at[i];
        high[axis] = pads.at[count + i];
    }
    return !n->failed;
}

enum { MAX_EXTENT = 1 << 24 };
enum pad_mode { PAD_EDGE, PAD_REFLECT, PAD_WRAP };

/* The element of an axis that a place beyond its ends repeats. */
static int64_t source_of(int64_t place, int64_t extent, enum pad_mode mode)
{
    int64_t period = mode == PAD_REFLECT ? 2 * (extent - 1) : extent;

    if (mode == PAD_EDGE)
        return place < 0 ? 0 : place >= extent ? extent - 1 : place;
    if (period <= 0)
        return 0;
    place = (place % period + period) % period;
    return place < extent ? place : period - place;
}

static val *pad_axis(struct import_node *n, val *x, uint32_t axis, const int64_t ends[2],
                     enum pad_mode mode)
{
    int64_t extent = x->type.dims[axis], count = extent + ends[0] + ends[1];
    int64_t *places;

    if (!ends[0] && !ends[1])
        return x;
    if (!extent || count < 0 || count > MAX_EXTENT) {
        problem_node(n, "pads %lld and %lld of an extent of %lld", (long long)ends[0],
                     (long long)ends[1], (long long)extent);
        return NULL;
    }
    places = import_alloc(n->import, ((size_t)count + 1) * sizeof(*places));
    for (int64_t i = 0; places && i < count; i++)
        places[i] = source_of(i - ends[0], extent, mode);
    return places ? e_select(n, x, e_known_ints(n, FRIT_I64, places, count), axis) : NULL;
}

void onnx_row_pad(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *value;
    int64_t low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0};
    const char *mode = attr_text(n, "mode", "constant");
    bool edge = strcmp(mode, "edge") == 0, wrap = strcmp(mode, "wrap") == 0;

    (void)arg;
    if (!read_pads(n, x, low, high))
        return;
    if (strcmp(mode, "constant") == 0) {
        value = n->opset < 11 ? e_num(n, attr_float(n, "value", 0)) : e_scalar_in(n, 2, 0);
        e_out(n, 0, e_pad(n, x, value, low, high));
        return;
    }
    if (!edge && !wrap && strcmp(mode, "reflect") != 0) {
        problem_node(n, "mode %.40s", mode);
        return;
    }
    for (uint32_t d = 0; x && d < x->type.rank; d++)
        x = pad_axis(n, x, d, (int64_t[]){low[d], high[d]},
                     edge   ? PAD_EDGE
                     : wrap ? PAD_WRAP
                            : PAD_REFLECT);
    e_out(n, 0, x);
}

/* Cropped or padded with zeros around the middle. */
void onnx_row_center_crop_pad(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    int64_t low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0};
    struct ints shape, axes;
    bool some = attr_ints(n, "axes", &axes);

    (void)arg;
    if (!x || !e_ints(n, 1, &shape))
        return;
    if (shape.count != (some ? axes.count : x->type.rank)) {
        problem_node(n, "the shape has another number of dims");
        return;
    }
    for (uint32_t i = 0; i < shape.count; i++) {
        uint32_t axis = some ? e_axis(n, axes.at[i], x->type.rank) : i;
        int64_t more = shape.at[i] < 0 ? -x->type.dims[axis] : shape.at[i] - x->type.dims[axis];

        /* Rounded down in either direction. */
        low[axis] = more < 0 ? -(-more / 2) : more / 2;
        high[axis] = more - low[axis];
    }
    e_out(n, 0, e_pad(n, x, e_whole(n, 0), low, high));
}

/* ---- blocks ---- */

enum { MAX_BLOCK = 1 << 12 };

void onnx_row_depth_to_space(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    int64_t b = attr_int(n, "blocksize", 1);
    bool columns = attr_is(n, "mode", "DCR", "CRD");
    static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    const int64_t *d;

    (void)arg;
    if (!x || x->type.rank != 4 || b < 1 || b > MAX_BLOCK || x->type.dims[1] % (b * b)) {
        problem_node(n, "blocks of %lld do not divide the channels", (long long)b);
        return;
    }
    d = x->type.dims;
    x = columns ? e_reshape(n, x, FRIT_SHAPE(d[0], d[1] / (b * b), b, b, d[2], d[3]))
                : e_reshape(n, x, FRIT_SHAPE(d[0], b, b, d[1] / (b * b), d[2], d[3]));
    x = e_permute(n, x, columns ? crd : dcr);
    e_out(n, 0, e_reshape(n, x, FRIT_SHAPE(d[0], d[1] / (b * b), d[2] * b, d[3] * b)));
}

void onnx_row_space_to_depth(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    int64_t b = attr_int(n, "blocksize", 1);
    static const int64_t order[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
    const int64_t *d;

    (void)arg;
    if (!x || x->type.rank != 4 || b < 1 || b > MAX_BLOCK || x->type.dims[2] % b ||
        x->type.dims[3] % b) {
        problem_node(n, "blocks of %lld do not divide the space", (long long)b);
        return;
    }
    d = x->type.dims;
    x = e_reshape(n, x, FRIT_SHAPE(d[0], d[1], d[2] / b, b, d[3] / b, b));
    x = e_permute(n, x, attr_is(n, "mode", "DCR", "CRD") ? crd : order);
    e_out(n, 0, e_reshape(n, x, FRIT_SHAPE(d[0], d[1] * b * b, d[2] / b, d[3] / b)));
}

/* ---- sequences ---- */

void onnx_row_reverse_sequence(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *lengths = e_in(n, 1), *time, *index;
    uint32_t batch = x ? e_axis(n, attr_int(n, "batch_axis", 1), e_rank(x)) : 0;
    uint32_t axis = x ? e_axis(n, attr_int(n, "time_axis", 0), e_rank(x)) : 0;
    frit_dims line = {.rank = e_rank(x)}, column = line;

    (void)arg;
    if (n->failed || !x || !lengths)
        return;
    for (uint32_t d = 0; d < line.rank; d++) {
        line.dim[d] = d == axis ? x->type.dims[d] : 1;
        column.dim[d] = d == batch ? x->type.dims[d] : 1;
    }
    time = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), x->type.dims[axis]);
    time = e_reshape(n, time, line);
    lengths = e_reshape(n, e_cast(n, lengths, FRIT_I64), column);
    index = e_sub(n, e_sub(n, lengths, e_whole(n, 1)), time);
    index = e_where(n, e_bin(n, FRIT_OP_lt, time, lengths), index, time);
    e_out(n, 0, e_gather(n, x, e_expand(n, index, e_dims(x)), axis));
}
