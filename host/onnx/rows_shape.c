/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that arrange elements in another way. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* ---- dims ---- */

/* 0 keeps an extent, -1 is computed. */
void onnx_row_reshape(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    bool zero = attr_int(n, "allowzero", 0) != 0;
    struct ints shape;
    frit_dims dims = {0};
    int64_t known = 1;
    int32_t open = -1;

    (void)arg;
    if (!x || !e_ints_or_attr(n, 1, "shape", &shape))
        return;
    if (shape.count > FRIT_MAX_RANK) {
        problem_node(n, "%u dims, Frit has at most %d", shape.count, FRIT_MAX_RANK);
        return;
    }
    dims.rank = shape.count;
    for (uint32_t i = 0; i < shape.count; i++) {
        dims.dim[i] = shape.at[i];
        if (dims.dim[i] == 0 && !zero)
            dims.dim[i] = i < x->type.rank ? x->type.dims[i] : 0;
        if (dims.dim[i] == -1)
            open = (int32_t)i;
        else if (__builtin_mul_overflow(known, dims.dim[i] > 0 ? dims.dim[i] : 1, &known)) {
            problem_node(n, "the extents of the shape multiply to more than 63 bits");
            return;
        }
    }
    if (open >= 0)
        dims.dim[open] = e_elements(x) / known;
    e_out(n, 0, e_reshape(n, x, dims));
}

void onnx_row_flatten(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    int64_t axis = attr_int(n, "axis", 1);

    (void)arg;
    axis = axis < 0 ? axis + e_rank(x) : axis;
    if (axis < 0 || axis > e_rank(x))
        problem_node(n, "axis %lld of %u dims", (long long)axis, e_rank(x));
    else
        e_out(n, 0, e_reshape(n, x, e_dims_2d(x, (uint32_t)axis)));
}

void onnx_row_squeeze(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    bool gone[FRIT_MAX_RANK] = {false};
    struct ints axes;
    frit_dims dims = {0};

    (void)arg;
    if (!x)
        return;
    if (e_ints_or_attr(n, 1, "axes", &axes)) {
        for (uint32_t i = 0; i < axes.count; i++)
            gone[e_axis(n, axes.at[i], x->type.rank)] = true;
    } else {
        for (uint32_t d = 0; d < x->type.rank; d++)
            gone[d] = x->type.dims[d] == 1;
    }
    for (uint32_t d = 0; d < x->type.rank; d++) {
        if (!gone[d])
            dims.dim[dims.rank++] = x->type.dims[d];
        else if (x->type.dims[d] != 1)
            problem_node(n, "dim %u is %lld and cannot be removed", d, (long long)x->type.dims[d]);
    }
    e_out(n, 0, e_reshape(n, x, dims));
}

void onnx_row_unsqueeze(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    bool added[FRIT_MAX_RANK] = {false};
    struct ints axes;
    frit_dims dims = {0};
    uint32_t rank, next = 0;

    (void)arg;
    if (!x || !e_ints_or_attr(n, 1, "axes", &axes))
        return;
    rank = x->type.rank + axes.count;
    if (rank > FRIT_MAX_RANK) {
        problem_node(n, "%u dims, Frit has at most %d", rank, FRIT_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < axes.count; i++)
        added[e_axis(n, axes.at[i], rank)] = true;
    for (uint32_t d = 0; d < rank; d++)
        dims.dim[dims.rank++] = added[d] || next == x->type.rank ? 1 : x->type.dims[next++];
    e_out(n, 0, e_reshape(n, x, dims));
}

void onnx_row_transpose(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    struct ints perm;

    (void)arg;
    if (!attr_ints(n, "perm", &perm)) {
        perm.count = e_rank(x);
        for (uint32_t i = 0; i < perm.count; i++)
            perm.at[i] = perm.count - 1 - i;
    }
    if (perm.count != e_rank(x))
        problem_node(n, "perm has %u axes, the operand %u", perm.count, e_rank(x));
    else
        e_out(n, 0, e_permute(n, x, perm.at));
}

/* Broadcasts both ways: an extent of 1 keeps that of the operand. */
void onnx_row_expand(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    struct ints shape;
    frit_dims dims = e_dims(x);
    uint32_t rank;

    (void)arg;
    if (!x || !e_ints(n, 1, &shape))
        return;
    rank = shape.count > x->type.rank ? shape.count : x->type.rank;
    if (rank > FRIT_MAX_RANK) {
        problem_node(n, "%u dims, Frit has at most %d", rank, FRIT_MAX_RANK);
        return;
    }
    dims.rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t skipped = rank - x->type.rank, missing = rank - shape.count;
        int64_t own = d < skipped ? 1 : x->type.dims[d - skipped];
        int64_t other = d < missing ? 1 : shape.at[d - missing];

        dims.dim[d] = own == 1 ? other : own;
    }
    e_out(n, 0, e_expand(n, x, dims));
}

/* ---- parts ---- */

void onnx_row_concat(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", 1), e_rank(x)) : 0;

    (void)arg;
    for (uint32_t i = 0; i < n->n_in; i++)
        e_in(n, i);
    e_out(n, 0, n->failed ? NULL : e_cat(n, axis, n->in, n->n_in));
}

/* Whether the sizes add up to the extent. */
static bool splits(const struct ints *sizes, int64_t extent)
{
    for (uint32_t i = 0; i < sizes->count; i++) {
        if (sizes->at[i] < 0 || sizes->at[i] > extent)
            return false;
        extent -= sizes->at[i];
    }
    return extent == 0;
}

/* Extents of the parts: given, or as equal as can be with the last one smaller. */
static bool split_sizes(struct import_node *n, int64_t extent, struct ints *sizes)
{
    int64_t parts = attr_int(n, "num_outputs", n->n_out), size;

    if (e_ints_or_attr(n, 1, "split", sizes))
        return sizes->count == n->n_out && splits(sizes, extent);
    if (n->failed || parts != n->n_out || !parts)
        return false;
    size = (extent + parts - 1) / parts;
    sizes->count = n->n_out;
    for (int64_t i = 0; i < parts; i++)
        sizes->at[i] = i < parts - 1 ? size : extent - size * (parts - 1);
    return splits(sizes, extent);
}

void onnx_row_split(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", 0), e_rank(x)) : 0;
    struct ints sizes;
    int64_t start = 0;

    (void)arg;
    if (n->failed || !x)
        return;
    if (!split_sizes(n, x->type.dims[axis], &sizes)) {
        problem_node(n, "the parts do not match the %u results and the extent", n->n_out);
        return;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        e_out(n, i, e_slice(n, x, axis, start, start + sizes.at[i], 1));
        start += sizes.at[i];
    }
}

/* ONNX's bounds, in which every negative number counts from the end, as the table's. */
static frit_range range_of(int64_t start, int64_t stop, int64_t step, int64_t extent)
{
    frit_range range = {.step = step};
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;

    start = start < 0 ? start + extent : start;
    stop = stop < 0 ? stop + extent : stop;
    range.start = start < 0 ? 0 : start > high ? high : start;
    range.stop = stop < low ? low : stop > high ? high : stop;
    if (!extent || (step < 0 ? range.start <= range.stop : range.start >= range.stop))
        return (frit_range){0, 0, 1};
    if (range.stop == -1)
        range.stop = FRIT_SLICE_END;
    return range;
}

/* Attributes up to opset 9, then operands. */
void onnx_row_slice(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    frit_attrs_slice attrs = E_ATTRS(slice);
    struct ints starts, ends, axes, steps;
    bool has_axes, has_steps;

    (void)arg;
    if (!x || !e_ints_or_attr(n, 1, "starts", &starts) || !e_ints_or_attr(n, 2, "ends", &ends))
        return;
    has_axes = e_ints_or_attr(n, 3, "axes", &axes);
    has_steps = e_ints_or_attr(n, 4, "steps", &steps);
    if (starts.count != ends.count || (has_axes && axes.count != starts.count) ||
        (has_steps && steps.count != starts.count) || starts.count > x->type.rank) {
        problem_node(n, "starts, ends, axes and steps have different lengths");
        return;
    }
    attrs.slices.count = x->type.rank;
    for (uint32_t i = 0; i < starts.count; i++) {
        uint32_t axis = e_axis(n, has_axes ? axes.at[i] : i, x->type.rank);
        int64_t step = has_steps ? steps.at[i] : 1;

        if (step == 0 || step == INT64_MIN)
            problem_node(n, "a step of 0");
        else
            attrs.slices.dim[axis] = range_of(starts.at[i], ends.at[i], step, x->type.dims[axis]);
    }
    e_out(n, 0, n->failed ? NULL : E_OP(n, FRIT_OP_slice, &attrs, x));
}

void onnx_row_tile(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    frit_attrs_repeat attrs = E_ATTRS(repeat);
    struct ints times;

    (void)arg;
    if (!x || !e_ints(n, 1, &times))
        return;
    if (times.count != x->type.rank) {
        problem_node(n, "%u repeats for %u dims", times.count, x->type.rank);
        return;
    }
    for (uint32_t d = 0; d < times.count; d++) {
        attrs.axis = d;
        attrs.times = times.at[d];
        if (times.at[d] != 1)
            x = E_OP(n, FRIT_OP_repeat, &attrs, x);
    }
    e_out(n, 0, x);
}

/* ---- indices ---- */

void onnx_row_gather(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *index = e_in(n, 1), *y;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", 0), e_rank(x)) : 0;
    frit_dims dims = {0};

    (void)arg;
    if (n->failed || !x || !index)
        return;
    if (x->type.rank - 1 + index->type.rank > FRIT_MAX_RANK) {
        problem_node(n, "more than %d dims", FRIT_MAX_RANK);
        return;
    }
    for (uint32_t d = 0; d < axis; d++)
        dims.dim[dims.rank++] = x->type.dims[d];
    for (uint32_t d = 0; d < index->type.rank; d++)
        dims.dim[dims.rank++] = index->type.dims[d];
    for (uint32_t d = axis + 1; d < x->type.rank; d++)
        dims.dim[dims.rank++] = x->type.dims[d];
    index = e_index(n, index, x->type.dims[axis]);
    y = e_select(n, x, e_reshape(n, index, FRIT_SHAPE(e_elements(index))), axis);
    e_out(n, 0, e_reshape(n, y, dims));
}

void onnx_row_gather_elements(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *index = e_in(n, 1);
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", 0), e_rank(x)) : 0;

    (void)arg;
    if (!n->failed && x && index)
        e_out(n, 0, e_gather(n, x, e_index(n, index, x->type.dims[axis]), axis));
}

/* The coordinates of `index`, each counted from the front. */
static val *coordinates(struct import_node *n, const val *x, val *index, uint32_t first)
{
    int64_t extents[FRIT_MAX_RANK], k;
    val *extent, *negative;

    if (!index || !index->type.rank || !e_is_whole(n, index))
        return NULL;
    k = index->type.dims[index->type.rank - 1];
    if (k + first > x->type.rank) {
        problem_node(n, "%lld coordinates for %u dims", (long long)k, x->type.rank);
        return NULL;
    }
    for (int64_t i = 0; i < k; i++)
        extents[i] = x->type.dims[first + i];
    index = e_cast(n, index, FRIT_I64);
    extent = e_known_ints(n, FRIT_I64, extents, k);
    negative = e_bin(n, FRIT_OP_lt, index, e_whole(n, 0));
    return e_where(n, negative, e_add(n, index, extent), index);
}

/* Batch dims become coordinates of their own. */
static val *with_batch(struct import_node *n, val *index, uint32_t batch)
{
    val *parts[FRIT_MAX_RANK + 1];
    frit_dims dims = e_dims(index);
    uint32_t last = e_rank(index) - 1;

    dims.dim[last] = 1;
    for (uint32_t d = 0; d < batch; d++) {
        frit_dims line = {.rank = dims.rank};

        for (uint32_t k = 0; k < dims.rank; k++)
            line.dim[k] = k == d ? dims.dim[d] : 1;
        parts[d] = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), dims.dim[d]);
        parts[d] = e_expand(n, e_reshape(n, parts[d], line), dims);
    }
    parts[batch] = index;
    return e_cat(n, last, parts, batch + 1);
}

void onnx_row_gather_nd(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *index = e_in(n, 1);
    int64_t batch = attr_int(n, "batch_dims", 0);

    (void)arg;
    if (!x || !index)
        return;
    if (batch < 0 || batch >= x->type.rank || batch >= index->type.rank) {
        problem_node(n, "batch_dims %lld", (long long)batch);
        return;
    }
    index = coordinates(n, x, index, (uint32_t)batch);
    if (index && batch)
        index = with_batch(n, index, (uint32_t)batch);
    e_out(n, 0, index ? E_OP(n, FRIT_OP_gather_nd, NULL, x, index) : NULL);
}

static int64_t update_of(struct import_node *n)
{
    static const struct {
        const char *word;
        int64_t update;
    } words[] = {{"none", FRIT_CHOICE_update_assign},
                 {"add", FRIT_CHOICE_update_add},
                 {"mul", FRIT_CHOICE_update_mul},
                 {"min", FRIT_CHOICE_update_min},
                 {"max", FRIT_CHOICE_update_max}};
    const char *word = attr_text(n, "reduction", "none");

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].word, word) == 0)
            return words[i].update;
    }
    problem_node(n, "reduction %.40s", word);
    return 0;
}

void onnx_row_scatter_elements(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *index = e_in(n, 1);
    frit_attrs_scatter attrs = E_ATTRS(scatter);

    (void)arg;
    attrs.axis = x ? e_axis(n, attr_int(n, "axis", 0), e_rank(x)) : 0;
    attrs.update = update_of(n);
    if (!n->failed && x)
        e_out(n, 0,
              E_OP(n, FRIT_OP_scatter, &attrs, x, e_index(n, index, x->type.dims[attrs.axis]),
                   e_in(n, 2)));
}

void onnx_row_scatter_nd(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *index = e_in(n, 1);
    frit_attrs_update attrs = E_ATTRS(update);

    (void)arg;
    attrs.update = update_of(n);
    index = x ? coordinates(n, x, index, 0) : NULL;
    e_out(n, 0, index ? E_OP(n, FRIT_OP_scatter_nd, &attrs, x, index, e_in(n, 2)) : NULL);
}
