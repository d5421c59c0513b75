/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks by chance: views of all kinds, reads by index and joins between elementwise ops on
 * integers, operands in any layout, several outputs, against the same ops done one by one. */
#include <stdio.h>
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

#ifdef __SANITIZE_ADDRESS__
enum { BLOCKS = 6000 };
#else
enum { BLOCKS = 24000 };
#endif
enum { MOST = 600, OPS = 14 };

/* The rig's values once more, dense. */
struct model {
    struct rig rig;
    uint64_t chance;
    uint32_t n;
    int32_t *data[RIG_VALUES];
    frit_attrs_order orders[RIG_OPS];
    frit_attrs_axes axes[RIG_OPS];
    frit_attrs_unfold unfolds[RIG_OPS];
    frit_attrs_swap swaps[RIG_OPS];
    frit_attrs_axis axis[RIG_OPS];
    frit_attrs_slice slices[RIG_OPS];
    frit_attrs_pad pads[RIG_OPS];
    frit_attrs_repeat repeats[RIG_OPS];
};

static uint32_t chance(struct model *m, uint32_t n)
{
    return rig_random(&m->chance, n);
}

static void keep(struct model *m, uint32_t value)
{
    m->data[value] = malloc(sizeof(int32_t) * (size_t)(rig_count(&m->rig, value) + 1));
    assert_non_null(m->data[value]);
    m->n = value + 1;
}

static uint32_t input(struct model *m, uint32_t rank, const int64_t *dims)
{
    uint32_t order[FRIT_MAX_RANK], value;

    for (uint32_t d = 0; d < rank; d++) {
        uint32_t at = chance(m, d + 1);

        order[d] = order[at];
        order[at] = d;
    }
    if (chance(m, 2))
        value = rig_input(&m->rig, FRIT_I32, rank, dims);
    else
        value = rig_laid(&m->rig, FRIT_I32, rank, dims, order, chance(m, 4) ? 0 : chance(m, 256),
                         1 + chance(m, 2));
    keep(m, value);
    for (int64_t i = 0; i < rig_count(&m->rig, value); i++) {
        m->data[value][i] = (int32_t)(chance(m, 1u << 31) * 2654435761u);
        rig_set_int(&m->rig, value, i, m->data[value][i]);
    }
    return value;
}

static void coordinates(const struct rig_value *v, int64_t number, int64_t *at)
{
    for (uint32_t d = v->rank; d-- > 0;) {
        at[d] = number % v->dims[d];
        number /= v->dims[d];
    }
}

/* Row-major number of what a value of these coordinates broadcasts from. */
static int64_t number_in(const struct rig_value *v, const int64_t *at, uint32_t rank)
{
    int64_t number = 0;

    for (uint32_t d = 0; d < v->rank; d++)
        number = number * v->dims[d] + (v->dims[d] == 1 ? 0 : at[rank - v->rank + d]);
    return number;
}

/* ---- elementwise ---- */

static void add_map(struct model *m)
{
    static const uint32_t ids[] = {FRIT_OP_add, FRIT_OP_sub, FRIT_OP_mul, FRIT_OP_xor};
    uint32_t a = chance(m, m->n), which = chance(m, 4), b = a, y;
    struct rig_value shape = m->rig.values[a], *of = &m->rig.values[a];
    int64_t dims[FRIT_MAX_RANK], at[FRIT_MAX_RANK];

    for (uint32_t tries = 0; tries < 4; tries++) {
        uint32_t other = chance(m, m->n);

        if (m->rig.values[other].rank == of->rank &&
            !memcmp(m->rig.values[other].dims, of->dims, sizeof(of->dims)))
            b = other;
    }
    if (b == a) {
        uint32_t cut = chance(m, of->rank + 1);

        for (uint32_t d = cut; d < of->rank; d++)
            dims[d - cut] = chance(m, 4) ? of->dims[d] : 1;
        b = input(m, shape.rank - cut, dims);
    }
    y = rig_op(&m->rig, ids[which], 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
               FRIT_I32, shape.rank, shape.dims);
    keep(m, y);
    for (int64_t i = 0; i < rig_count(&m->rig, y); i++) {
        uint32_t left = (uint32_t)m->data[a][i], right;

        coordinates(&m->rig.values[y], i, at);
        right = (uint32_t)m->data[b][number_in(&m->rig.values[b], at, shape.rank)];
        m->data[y][i] = (int32_t)(which == 0   ? left + right
                                  : which == 1 ? left - right
                                  : which == 2 ? left * right
                                               : left ^ right);
    }
    if (chance(m, 8) == 0)
        rig_keep(&m->rig, y);
}

/* ---- views ---- */

/* The operand's element that element `i` of the result is. */
typedef int64_t (*from_fn)(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i);

/* An op that only moves elements; the second operand may be RIG_NONE. */
static void add_move(struct model *m, uint32_t id, struct rig_in in[2], const void *attrs,
                     uint32_t rank, const int64_t *dims, from_fn from)
{
    uint32_t op = m->rig.n_ops, x = in[0].value, n = in[1].value == RIG_NONE ? 1 : 2;
    uint32_t y = rig_op(&m->rig, id, n, in, attrs, FRIT_I32, rank, dims);

    keep(m, y);
    for (int64_t i = 0; i < rig_count(&m->rig, y); i++)
        m->data[y][i] = m->data[x][from(m, op, x, y, i)];
    if (chance(m, 10) == 0)
        rig_keep(&m->rig, y);
}

static void add_view(struct model *m, uint32_t id, uint32_t x, const void *attrs, uint32_t rank,
                     const int64_t *dims, from_fn from)
{
    add_move(m, id, (struct rig_in[]){rig_value(x), rig_value(RIG_NONE)}, attrs, rank, dims, from);
}

static int64_t from_same(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    (void)m, (void)op, (void)x, (void)y;
    return i;
}

static int64_t from_permuted(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    int64_t at[FRIT_MAX_RANK], to[FRIT_MAX_RANK];

    coordinates(&m->rig.values[y], i, at);
    for (uint32_t d = 0; d < m->rig.values[x].rank; d++)
        to[m->orders[op].order.axis[d]] = at[d];
    return number_in(&m->rig.values[x], to, m->rig.values[x].rank);
}

static int64_t from_flipped(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    int64_t at[FRIT_MAX_RANK];

    coordinates(&m->rig.values[y], i, at);
    for (int64_t k = 0; k < m->axes[op].axes.count; k++) {
        int64_t axis = m->axes[op].axes.axis[k];

        at[axis] = m->rig.values[x].dims[axis] - 1 - at[axis];
    }
    return number_in(&m->rig.values[x], at, m->rig.values[x].rank);
}

static int64_t from_expanded(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    int64_t at[FRIT_MAX_RANK];

    (void)op;
    coordinates(&m->rig.values[y], i, at);
    return number_in(&m->rig.values[x], at, m->rig.values[y].rank);
}

static int64_t from_unfolded(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    const frit_attrs_unfold *attrs = &m->unfolds[op];
    int64_t at[FRIT_MAX_RANK];

    coordinates(&m->rig.values[y], i, at);
    at[attrs->axis] = at[attrs->axis] * attrs->step + at[m->rig.values[x].rank];
    return number_in(&m->rig.values[x], at, m->rig.values[x].rank);
}

static int64_t from_swapped(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    const frit_attrs_swap *attrs = &m->swaps[op];
    int64_t at[FRIT_MAX_RANK], was;

    coordinates(&m->rig.values[y], i, at);
    was = at[attrs->axis];
    at[attrs->axis] = at[attrs->with];
    at[attrs->with] = was;
    return number_in(&m->rig.values[x], at, m->rig.values[x].rank);
}

static void add_reshape(struct model *m, uint32_t x)
{
    int64_t left = rig_count(&m->rig, x), dims[FRIT_MAX_RANK];
    uint32_t rank = 0;

    while (rank < 4 && left > 1) {
        int64_t extent = 1 + chance(m, 12);

        while (left % extent)
            extent--;
        if (extent > 1 || chance(m, 3) == 0)
            dims[rank++] = extent;
        left /= extent;
    }
    dims[rank++] = left;
    add_view(m, FRIT_OP_reshape, x, NULL, rank, dims, from_same);
}

static void add_permute(struct model *m, uint32_t x)
{
    frit_attrs_order *attrs = &m->orders[m->rig.n_ops];
    uint32_t rank = m->rig.values[x].rank;
    int64_t dims[FRIT_MAX_RANK];

    attrs->struct_size = sizeof(*attrs);
    attrs->order.count = rank;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t at = chance(m, d + 1);

        attrs->order.axis[d] = attrs->order.axis[at];
        attrs->order.axis[at] = d;
    }
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = m->rig.values[x].dims[attrs->order.axis[d]];
    add_view(m, FRIT_OP_permute, x, attrs, rank, dims, from_permuted);
}

static void add_flip(struct model *m, uint32_t x)
{
    frit_attrs_axes *attrs = &m->axes[m->rig.n_ops];
    const struct rig_value shape = m->rig.values[x];

    attrs->struct_size = sizeof(*attrs);
    for (uint32_t d = 0; d < shape.rank; d++)
        if (chance(m, 2))
            attrs->axes.axis[attrs->axes.count++] = d;
    add_view(m, FRIT_OP_flip, x, attrs, shape.rank, shape.dims, from_flipped);
}

static void add_expand(struct model *m, uint32_t x)
{
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK], count = rig_count(&m->rig, x);
    uint32_t more = shape.rank < 5 ? chance(m, 2) : 0;

    for (uint32_t d = 0; d < shape.rank + more; d++) {
        int64_t extent = d < more ? 1 : shape.dims[d - more];

        dims[d] = extent == 1 && count < MOST / 3 ? 1 + chance(m, 3) : extent;
        count *= dims[d] / extent;
    }
    add_view(m, FRIT_OP_expand, x, NULL, shape.rank + more, dims, from_expanded);
}

static void add_unfold(struct model *m, uint32_t x)
{
    frit_attrs_unfold *attrs = &m->unfolds[m->rig.n_ops];
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK], extent;

    if (shape.rank == 0 || shape.rank > 5 || rig_count(&m->rig, x) > MOST / 2)
        return;
    attrs->struct_size = sizeof(*attrs);
    attrs->axis = chance(m, shape.rank);
    extent = shape.dims[attrs->axis];
    attrs->size = 1 + chance(m, (uint32_t)extent);
    attrs->step = 1 + chance(m, 3);
    memcpy(dims, shape.dims, sizeof(dims));
    dims[attrs->axis] = (extent - attrs->size) / attrs->step + 1;
    dims[shape.rank] = attrs->size;
    add_view(m, FRIT_OP_unfold, x, attrs, shape.rank + 1, dims, from_unfolded);
}

static void add_transpose(struct model *m, uint32_t x)
{
    frit_attrs_swap *attrs = &m->swaps[m->rig.n_ops];
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK];

    if (shape.rank == 0)
        return;
    *attrs = (frit_attrs_swap){.struct_size = sizeof(*attrs),
                               .axis = chance(m, shape.rank),
                               .with = chance(m, shape.rank)};
    memcpy(dims, shape.dims, sizeof(dims));
    dims[attrs->axis] = shape.dims[attrs->with];
    dims[attrs->with] = shape.dims[attrs->axis];
    add_view(m, FRIT_OP_transpose, x, attrs, shape.rank, dims, from_swapped);
}

static void add_unsqueeze(struct model *m, uint32_t x)
{
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = 0, axis = chance(m, shape.rank + 1);

    if (shape.rank > 5)
        return;
    if (chance(m, 2)) { /* away with all of extent 1 */
        for (uint32_t d = 0; d < shape.rank; d++)
            if (shape.dims[d] != 1)
                dims[rank++] = shape.dims[d];
        add_view(m, FRIT_OP_squeeze, x, NULL, rank, dims, from_same);
        return;
    }
    for (uint32_t d = 0; d <= shape.rank; d++)
        dims[rank++] = d == axis ? 1 : shape.dims[d - (d > axis)];
    add_view(m, FRIT_OP_unsqueeze, x, NULL, rank, dims, from_same);
}

static int64_t from_sliced(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    const frit_range *range = m->slices[op].slices.dim;
    int64_t at[FRIT_MAX_RANK];

    coordinates(&m->rig.values[y], i, at);
    for (uint32_t d = 0; d < m->rig.values[x].rank; d++)
        at[d] = range[d].start + at[d] * range[d].step;
    return number_in(&m->rig.values[x], at, m->rig.values[x].rank);
}

static int64_t from_repeated(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    int64_t at[FRIT_MAX_RANK];

    coordinates(&m->rig.values[y], i, at);
    at[m->repeats[op].axis] %= m->rig.values[x].dims[m->repeats[op].axis];
    return number_in(&m->rig.values[x], at, m->rig.values[x].rank);
}

/* Steps within a dim, as the host resolves them; how many elements they take. */
static int64_t some_range(struct model *m, int64_t extent, frit_range *out)
{
    int64_t step, n, span;

    if (chance(m, 3) == 0) {
        *out = (frit_range){0, extent, 1};
        return extent;
    }
    step = chance(m, 2) ? 1 : 1 + chance(m, 4);
    n = 1 + chance(m, (uint32_t)((extent - 1) / step + 1));
    if (n == 1)
        step = 1;
    span = (n - 1) * step;
    out->start = chance(m, (uint32_t)(extent - span));
    out->step = step;
    if (n > 1 && chance(m, 3) == 0) {
        out->start += span;
        out->step = -step;
    }
    out->stop = out->start + (n - 1) * out->step + (out->step < 0 ? -1 : 1);
    out->stop = out->stop < 0 ? FRIT_SLICE_END : out->stop;
    return n;
}

static void some_slices(struct model *m, const struct rig_value *x, frit_attrs_slice *attrs,
                        int64_t *dims)
{
    attrs->struct_size = sizeof(*attrs);
    attrs->slices.count = x->rank;
    for (uint32_t d = 0; d < x->rank; d++)
        dims[d] = some_range(m, x->dims[d], &attrs->slices.dim[d]);
}

static void add_slice(struct model *m, uint32_t x)
{
    frit_attrs_slice *attrs = &m->slices[m->rig.n_ops];
    int64_t dims[FRIT_MAX_RANK];

    some_slices(m, &m->rig.values[x], attrs, dims);
    add_view(m, FRIT_OP_slice, x, attrs, m->rig.values[x].rank, dims, from_sliced);
}

static void add_repeat(struct model *m, uint32_t x)
{
    frit_attrs_repeat *attrs = &m->repeats[m->rig.n_ops];
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK];

    if (shape.rank == 0 || rig_count(&m->rig, x) > MOST / 3)
        return;
    *attrs = (frit_attrs_repeat){
        .struct_size = sizeof(*attrs), .axis = chance(m, shape.rank), .times = 1 + chance(m, 3)};
    memcpy(dims, shape.dims, sizeof(dims));
    dims[attrs->axis] *= attrs->times;
    add_view(m, FRIT_OP_repeat, x, attrs, shape.rank, dims, from_repeated);
}

/* ---- reads by index ---- */

/* An index operand for a dim of this extent, some elements beyond it; most as they are, some made
 * by an op. */
static uint32_t index_input(struct model *m, uint32_t rank, const int64_t *dims, int64_t extent)
{
    uint32_t index = input(m, rank, dims), made;

    for (int64_t i = 0; i < rig_count(&m->rig, index); i++) {
        m->data[index][i] = (int32_t)chance(m, (uint32_t)extent + 4) - 2;
        rig_set_int(&m->rig, index, i, m->data[index][i]);
    }
    if (chance(m, 3))
        return index;
    made = rig_op(&m->rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(index)}, NULL, FRIT_I32,
                  rank, dims);
    keep(m, made);
    for (int64_t i = 0; i < rig_count(&m->rig, made); i++)
        m->data[made][i] = -m->data[index][i];
    return made;
}

/* Brought into the dim. */
static int64_t nearest(int64_t at, int64_t extent)
{
    return at < 0 ? 0 : at < extent ? at : extent - 1;
}

static int64_t from_selected(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    const int32_t *index = m->data[m->rig.ops[op].in[1].value];
    int64_t at[FRIT_MAX_RANK], axis = m->axis[op].axis;

    coordinates(&m->rig.values[y], i, at);
    at[axis] = nearest(m->rig.ops[op].id == FRIT_OP_gather ? index[i] : index[at[axis]],
                       m->rig.values[x].dims[axis]);
    return number_in(&m->rig.values[x], at, m->rig.values[x].rank);
}

static int64_t from_embedded(const struct model *m, uint32_t op, uint32_t x, uint32_t y, int64_t i)
{
    const int32_t *index = m->data[m->rig.ops[op].in[1].value];
    int64_t width = m->rig.values[x].dims[1];

    (void)y;
    return nearest(index[i / width], m->rig.values[x].dims[0]) * width + i % width;
}

static void add_select(struct model *m, uint32_t x)
{
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK];
    bool gather = chance(m, 2);
    uint32_t axis, index;

    if (shape.rank == 0)
        return;
    axis = chance(m, shape.rank);
    memcpy(dims, shape.dims, sizeof(dims));
    for (uint32_t d = 0; gather && d < shape.rank; d++)
        dims[d] -= chance(m, 3) == 0 && dims[d] > 1;
    dims[axis] = 1 + chance(m, 6);
    index = gather ? index_input(m, shape.rank, dims, shape.dims[axis])
                   : index_input(m, 1, &dims[axis], shape.dims[axis]);
    m->axis[m->rig.n_ops] = (frit_attrs_axis){.struct_size = sizeof(frit_attrs_axis), .axis = axis};
    add_move(m, gather ? FRIT_OP_gather : FRIT_OP_select,
             (struct rig_in[]){rig_value(x), rig_value(index)}, &m->axis[m->rig.n_ops], shape.rank,
             dims, from_selected);
}

static void add_embedding(struct model *m, uint32_t x)
{
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = chance(m, 3), index;

    if (shape.rank != 2)
        return;
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = 1 + chance(m, 4);
    dims[rank] = shape.dims[1];
    index = index_input(m, rank, dims, shape.dims[0]);
    add_move(m, FRIT_OP_embedding, (struct rig_in[]){rig_value(x), rig_value(index)}, NULL,
             rank + 1, dims, from_embedded);
}

/* ---- joins ---- */

static void add_cat(struct model *m, uint32_t x)
{
    const struct rig_value shape = m->rig.values[x];
    uint32_t axis, n = 1 + chance(m, 3), y;
    int64_t dims[FRIT_MAX_RANK], extent, at[FRIT_MAX_RANK];
    struct rig_in in[3];

    if (shape.rank == 0 || rig_count(&m->rig, x) > MOST / 3)
        return;
    axis = chance(m, shape.rank);
    extent = 0;
    memcpy(dims, shape.dims, sizeof(dims));
    for (uint32_t i = 0; i < n; i++) {
        in[i] = rig_value(x);
        if (chance(m, 3)) {
            dims[axis] = 1 + chance(m, 4);
            in[i] = rig_value(input(m, shape.rank, dims));
        }
        extent += m->rig.values[in[i].value].dims[axis];
    }
    dims[axis] = extent;
    m->axis[m->rig.n_ops] = (frit_attrs_axis){.struct_size = sizeof(frit_attrs_axis), .axis = axis};
    y = rig_op(&m->rig, FRIT_OP_cat, n, in, &m->axis[m->rig.n_ops], FRIT_I32, shape.rank, dims);
    keep(m, y);
    for (int64_t i = 0; i < rig_count(&m->rig, y); i++) {
        uint32_t piece = 0;

        coordinates(&m->rig.values[y], i, at);
        while (at[axis] >= m->rig.values[in[piece].value].dims[axis])
            at[axis] -= m->rig.values[in[piece++].value].dims[axis];
        m->data[y][i] =
            m->data[in[piece].value][number_in(&m->rig.values[in[piece].value], at, shape.rank)];
    }
    if (chance(m, 10) == 0)
        rig_keep(&m->rig, y);
}

static void add_stack(struct model *m, uint32_t x)
{
    const struct rig_value shape = m->rig.values[x];
    uint32_t axis = chance(m, shape.rank + 1), n = 1 + chance(m, 3), y;
    int64_t dims[FRIT_MAX_RANK], at[FRIT_MAX_RANK], inner[FRIT_MAX_RANK];
    struct rig_in in[3];

    if (shape.rank > 4 || rig_count(&m->rig, x) > MOST / 3)
        return;
    for (uint32_t d = 0; d <= shape.rank; d++)
        dims[d] = d == axis ? n : shape.dims[d - (d > axis)];
    for (uint32_t i = 0; i < n; i++)
        in[i] = rig_value(chance(m, 2) ? x : input(m, shape.rank, shape.dims));
    m->axis[m->rig.n_ops] = (frit_attrs_axis){.struct_size = sizeof(frit_attrs_axis), .axis = axis};
    y = rig_op(&m->rig, FRIT_OP_stack, n, in, &m->axis[m->rig.n_ops], FRIT_I32, shape.rank + 1,
               dims);
    keep(m, y);
    for (int64_t i = 0; i < rig_count(&m->rig, y); i++) {
        uint32_t from;

        coordinates(&m->rig.values[y], i, at);
        for (uint32_t d = 0; d < shape.rank; d++)
            inner[d] = at[d + (d >= axis)];
        from = in[at[axis]].value;
        m->data[y][i] = m->data[from][number_in(&m->rig.values[from], inner, shape.rank)];
    }
    if (chance(m, 10) == 0)
        rig_keep(&m->rig, y);
}

/* ---- parts ---- */

static void add_slice_assign(struct model *m, uint32_t x)
{
    frit_attrs_slice *attrs = &m->slices[m->rig.n_ops];
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK], at[FRIT_MAX_RANK];
    uint32_t values, y;

    some_slices(m, &shape, attrs, dims);
    values = input(m, shape.rank, dims);
    y = rig_op(&m->rig, FRIT_OP_slice_assign, 2, (struct rig_in[]){rig_value(x), rig_value(values)},
               attrs, FRIT_I32, shape.rank, shape.dims);
    keep(m, y);
    memcpy(m->data[y], m->data[x], (size_t)rig_count(&m->rig, y) * sizeof(*m->data[y]));
    for (int64_t i = 0; i < rig_count(&m->rig, values); i++) {
        const frit_range *range = attrs->slices.dim;

        coordinates(&m->rig.values[values], i, at);
        for (uint32_t d = 0; d < shape.rank; d++)
            at[d] = range[d].start + at[d] * range[d].step;
        m->data[y][number_in(&m->rig.values[y], at, shape.rank)] = m->data[values][i];
    }
}

/* Extents that padding gives are those of some argument now and then: a pad that keeps most of them
 * is what fuses. */
static void some_pad(struct model *m, const struct rig_value *x, frit_attrs_pad *attrs,
                     int64_t *dims)
{
    *attrs = (frit_attrs_pad){.struct_size = sizeof(*attrs)};
    attrs->low.rank = attrs->high.rank = attrs->inner.rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t span = x->dims[d];

        if (chance(m, 2)) {
            attrs->inner.dim[d] = x->dims[d] > 1 && chance(m, 3) == 0 ? chance(m, 5) : 0;
            attrs->low.dim[d] = (int64_t)chance(m, 9) - 4;
        }
        span += (x->dims[d] - 1) * attrs->inner.dim[d] + attrs->low.dim[d];
        dims[d] = chance(m, 2) ? x->dims[d] : 1 + chance(m, 8);
        attrs->high.dim[d] = dims[d] - span;
    }
}

static void add_pad(struct model *m, uint32_t x)
{
    frit_attrs_pad *attrs = &m->pads[m->rig.n_ops];
    const struct rig_value shape = m->rig.values[x];
    int64_t dims[FRIT_MAX_RANK], at[FRIT_MAX_RANK];
    int32_t fill = (int32_t)chance(m, 1000) - 500;
    uint32_t y;

    if (rig_count(&m->rig, x) > MOST)
        return;
    some_pad(m, &shape, attrs, dims);
    y = rig_op(&m->rig, FRIT_OP_pad, 2, (struct rig_in[]){rig_value(x), rig_int(FRIT_I32, fill)},
               attrs, FRIT_I32, shape.rank, dims);
    keep(m, y);
    for (int64_t i = 0; i < rig_count(&m->rig, y); i++)
        m->data[y][i] = fill;
    for (int64_t i = 0; i < rig_count(&m->rig, x); i++) {
        bool inside = true;

        coordinates(&shape, i, at);
        for (uint32_t d = 0; d < shape.rank; d++) {
            at[d] = attrs->low.dim[d] + at[d] * (attrs->inner.dim[d] + 1);
            inside = inside && at[d] >= 0 && at[d] < dims[d];
        }
        if (inside)
            m->data[y][number_in(&m->rig.values[y], at, shape.rank)] = m->data[x][i];
    }
}

/* ---- blocks ---- */

static void add_any(struct model *m)
{
    static void (*const views[])(struct model * m, uint32_t x) = {
        add_reshape,   add_reshape,      add_permute,   add_flip,      add_expand, add_unfold,
        add_reshape,   add_permute,      add_transpose, add_unsqueeze, add_select, add_select,
        add_embedding, add_cat,          add_cat,       add_slice,     add_slice,  add_repeat,
        add_stack,     add_slice_assign, add_pad,       add_pad};

    if (chance(m, 2))
        add_map(m);
    else
        views[chance(m, sizeof(views) / sizeof(views[0]))](m, chance(m, 2) ? m->n - 1
                                                                           : chance(m, m->n));
}

/* What the block that was run last gave; how many outputs. */
static uint32_t check(const struct model *m)
{
    const struct block *block = &m->rig.block;

    for (uint32_t k = 0; k < block->n_outputs; k++) {
        uint32_t value = (block->values[block->outputs[k]].number - 100) / 2;

        for (int64_t i = 0; i < rig_count(&m->rig, value); i++)
            if (rig_get_int(&m->rig, value, i) != m->data[value][i])
                fail_msg("output %u of %u, element %d of %d", k, block->n_outputs, (int)i,
                         (int)rig_count(&m->rig, value));
    }
    return block->n_outputs;
}

/* `n_ops_of`: counts of ops in blocks that were run, by id. */
static bool try_block(uint64_t seed, uint32_t *n_outputs, uint32_t *n_ops_of)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 8, 12};
    static struct model m;
    int64_t dims[3];
    uint32_t rank, n_ops;
    bool done;

    memset(&m, 0, sizeof(m));
    m.chance = seed;
    rig_init(&m.rig);
    rank = chance(&m, 4);
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = extents[chance(&m, 8)];
    input(&m, rank, dims);
    m.rig.target.lanes = 16u << chance(&m, 4);
    m.rig.index_width = chance(&m, 4) ? 32 : 64;
    m.rig.no_classes = chance(&m, 3) == 0;
    n_ops = 1 + chance(&m, OPS);
    while (m.rig.n_ops < n_ops)
        add_any(&m);
    add_map(&m);
    done = rig_try(&m.rig, &sched_map) == FRIT_OK;
    if (done)
        *n_outputs = check(&m);
    for (uint32_t i = 0; done && i < m.rig.n_ops; i++)
        n_ops_of[m.rig.ops[i].id]++;
    for (uint32_t i = 0; i < m.n; i++)
        free(m.data[i]);
    rig_fini(&m.rig);
    return done;
}

static void test_blocks(void **state)
{
    static const uint32_t moves[] = {FRIT_OP_slice,       FRIT_OP_repeat, FRIT_OP_select,
                                     FRIT_OP_cat,         FRIT_OP_stack,  FRIT_OP_pad,
                                     FRIT_OP_slice_assign};
    uint32_t done = 0, several = 0, n = 0, n_ops_of[FRIT_OP_LIMIT] = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= BLOCKS; seed++)
        if (try_block(seed, &n, n_ops_of)) {
            done++;
            several += n > 1;
        }
    printf("%u blocks, %u of several outputs\n", done, several);
    assert_true(done > 1000 && several > 200);
    for (uint32_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        printf("%s %u\n", frit_op_info_at(moves[i])->name, n_ops_of[moves[i]]);
        assert_true(n_ops_of[moves[i]] > 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
