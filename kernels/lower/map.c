/* SPDX-License-Identifier: Apache-2.0 */
/* The map schedule: elementwise ops, views, joins and reads by index whose results all have one
 * number of elements.
 *
 * The space is that of the last output.  An output of other dims is stored at the map at which the
 * last one needs it, where that takes each of its elements once, else at the element of the same
 * row-major number.
 *
 * It is shared out by share.h.  A group that is known to be full has no masks: known by the
 * numbers, or, where there are many groups, found out by the group.  Operands that lie across go
 * through tiles: map_tile.c. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lower/map.h"
#include "lower/rows.h"
#include "lower/share.h"

enum {
    MANY_GROUPS = 64, /* from here on full groups have code of their own */
    QUALITY = 950
};

/* ---- accepting ---- */

static bool same_count(const struct block_value *a, const struct block_value *b)
{
    uint32_t left[FRIT_MAX_RANK], n = 0, matched = 0;

    for (uint32_t d = 0; d < a->rank; d++)
        if (a->extent[d] != 1)
            left[n++] = a->extent[d];
    for (uint32_t d = 0; d < b->rank; d++) {
        uint32_t i = 0;

        if (b->extent[d] == 1)
            continue;
        while (i < n && left[i] != b->extent[d])
            i++;
        if (i == n)
            return false;
        left[i] = left[--n];
        matched++;
    }
    return n == 0;
}

static uint32_t class_of(const uint32_t *parent, uint32_t value)
{
    while (parent[value] != value)
        value = parent[value];
    return value;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = class_of(parent, a);
    b = class_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* Classes of values that have as many elements, whatever the extents: those whose extents are a
 * permutation of each other, and what reshapes connect. */
static void find_classes(const struct block *block, uint32_t *parent)
{
    for (uint32_t v = 0; v < block->n_values; v++) {
        uint32_t u = 0;

        /* The first of each class stands for it; v itself is the last that is asked. */
        parent[v] = v;
        while (parent[u] != u || !same_count(&block->values[u], &block->values[v]))
            u++;
        parent[v] = u;
    }
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct view_row *view = view_row_of(block->ops[i].id);

        if (view && view->count == VIEW_SAME)
            join(parent, block->ops[i].in[0].value, block->ops[i].out[0]);
    }
}

/* Whether the first ops make outputs of one class, and end with one that is no view: the host does
 * views at the end without a copy. */
static bool prefix_fits(const struct block *block, uint32_t n_ops, const uint32_t *parent,
                        bool *seen)
{
    uint32_t n_outputs = 0, first = 0;

    if (frit_op_info_at(block->ops[n_ops - 1].id)->cls == FRIT_CLASS_VIEW)
        return false;
    for (uint32_t v = 0; v < block->n_values; v++) {
        if (!block_is_output(block, v, n_ops))
            continue;
        if (n_outputs == 0)
            first = class_of(parent, v);
        if (class_of(parent, v) != first || n_outputs++ == FRIT_MAX_OUTPUTS)
            return false;
    }
    return n_outputs > 0 && block_knows_extents(block, n_ops, seen);
}

static uint32_t map_accepts(const struct block *block, bool *open, uint32_t *quality)
{
    uint32_t *parent = malloc((block->n_values + 1u) * sizeof(*parent));
    bool *seen = malloc((block->n_extents + 2u) * sizeof(*seen));
    uint32_t n = 0;

    *open = false;
    *quality = QUALITY;
    if (parent && seen) {
        while (n < block->n_ops && expr_knows(block, n))
            n++;
        *open = n == block->n_ops;
        find_classes(block, parent);
        while (n > 0 && !prefix_fits(block, n, parent, seen))
            n--;
    }
    free(parent);
    free(seen);
    return n;
}

/* ---- planning ---- */

static int64_t count_of(const struct expr *e, uint32_t value)
{
    int64_t dims[FRIT_MAX_RANK], count = 1;

    expr_dims(e, value, dims);
    for (uint32_t d = 0; d < e->s->block->values[value].rank; d++)
        count *= dims[d];
    return count;
}

/* Whether a row-major number that is this sum takes each number below the space's count once: the
 * factors are the strides of the dims in some order, forwards or backwards. */
static bool takes_all(const struct space *space, const struct space_expr *number)
{
    int64_t stride = 1, low, high;

    for (uint32_t v = SPACE_DIMS; v < SPACE_VARS; v++)
        if (number->k[v])
            return false;
    for (uint32_t found = 0; found < space->n_dims; found++) {
        uint32_t d = 0;

        while (d < space->n_dims && number->k[d] != stride && number->k[d] != -stride)
            d++;
        if (d == space->n_dims)
            return false;
        stride *= space->extent[d];
    }
    space_range(space, number, &low, &high);
    return low == 0;
}

/* Stores an output over the space of the root, whose map is `root` and row-major number `number`.
 */
static void store_output(struct expr *e, uint32_t value, const struct space_map *root,
                         const int64_t *root_dims, const struct space_expr *number)
{
    const struct space_map *seen = expr_seen(e, value);
    struct space_map map = {0};
    int64_t dims[FRIT_MAX_RANK];
    struct space_expr own;
    uint32_t rank = e->s->block->values[value].rank;

    expr_dims(e, value, dims);
    if (rank == root->rank && memcmp(dims, root_dims, rank * sizeof(*dims)) == 0) {
        expr_store(e, value, root);
        return;
    }
    if (seen) {
        own = space_linear(seen, dims);
        if (takes_all(&e->space, &own)) {
            expr_store(e, value, seen);
            return;
        }
    }
    space_unlinear(&e->space, number, rank, dims, &map);
    expr_store(e, value, &map);
}

static void plan_stores(struct expr *e)
{
    const struct block *block = e->s->block;
    uint32_t last = block->outputs[block->n_outputs - 1];
    struct space_map root = {.rank = block->values[last].rank};
    int64_t dims[FRIT_MAX_RANK] = {0};
    struct space_expr number;

    expr_dims(e, last, dims);
    for (uint32_t d = 0; d < root.rank; d++)
        root.at[d] = space_dim(&e->space, dims[d], 0);
    number = space_linear(&root, dims);
    for (uint32_t i = block->n_outputs; i-- > 0;)
        store_output(e, block->outputs[i], &root, dims, &number);
    expr_settle(e);
}

/* ---- emitting ---- */

static void emit_all(struct expr *e, uint32_t mask)
{
    uint32_t mark = expr_mark(e);

    expr_mask(e, mask);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_value(e, e->stores[i].node);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_emit_store(e, i);
    expr_release(e, mark);
}

/* A join that is stored, where each block is likely in one piece. */
struct pieces {
    uint32_t n;
    uint32_t from, to; /* coordinates of a block along it */
};

/* Sets what of a join all elements of a block have: their places along it are one, or follow each
 * other.  Before the innermost dim is set. */
static void find_pieces(struct expr *e, const struct share *share, const struct span *span,
                        struct pieces *pieces)
{
    struct kir_module *m = e->s->module;
    uint32_t inner = e->space.n_dims - 1, n_pieces, mark;
    const struct space_expr *at = expr_joined(e, 0, &n_pieces);

    if (!at || e->n_stores > 1 || share->groups < MANY_GROUPS || share->blocks == 1 ||
        (share->inner == BLOCK_NONE && e->space.n_dims > 1) || at->k[inner] < 0 || at->k[inner] > 1)
        return;
    for (uint32_t v = SPACE_DIMS; v < SPACE_VARS; v++)
        if (at->k[v])
            return;
    mark = expr_mark(e);
    expr_set(e, inner, span->first);
    pieces->from = pieces->to = expr_joined_at(e, 0);
    expr_release(e, mark);
    pieces->n = n_pieces;
    if (at->k[inner])
        pieces->to =
            kir_emit(m, KIR_add, pieces->from,
                     kir_const_i(m, m->wide ? KIR_I64 : KIR_I32, share->lanes - 1), KIR_NONE);
}

/* The stores of a block.  One that is within a piece of a join costs what that piece costs. */
static void emit_stores(struct expr *e, const struct pieces *pieces, uint32_t mask)
{
    struct kir_module *m = e->s->module;
    uint32_t several = KIR_NONE;

    for (uint32_t piece = 0; piece < pieces->n; piece++) {
        uint32_t has = expr_piece_has(e, 0, piece, pieces->from, pieces->to), mark, outside;

        if (has == KIR_NONE)
            continue;
        kir_if(m, has);
        mark = expr_mark(e);
        expr_mask(e, mask);
        expr_emit_piece(e, 0, piece);
        expr_release(e, mark);
        kir_end(m);
        outside = kir_emit(m, KIR_not, has, KIR_NONE, KIR_NONE);
        several = several == KIR_NONE ? outside : kir_emit(m, KIR_and, several, outside, KIR_NONE);
    }
    if (several != KIR_NONE)
        kir_if(m, several);
    emit_all(e, mask);
    if (several != KIR_NONE)
        kir_end(m);
}

/* Stores, masked where the block may go beyond the end. */
static void emit_block(struct expr *e, const struct share *share, const struct span *span,
                       const struct pieces *pieces)
{
    struct kir_module *m = e->s->module;
    uint32_t last, lanes;

    if (share->n % share->lanes == 0) {
        emit_stores(e, pieces, KIR_NONE);
        return;
    }
    if (share->groups >= MANY_GROUPS && share->blocks > 1) {
        lanes = kir_const_i(m, m->wide ? KIR_I64 : KIR_I32, share->lanes);
        last = kir_emit(m, KIR_add, span->first, lanes, KIR_NONE);
        last = kir_emit(m, KIR_le, last, share->end, KIR_NONE);
        kir_if(m, last);
        emit_stores(e, pieces, KIR_NONE);
        kir_end(m);
        kir_if(m, kir_emit(m, KIR_not, last, KIR_NONE, KIR_NONE));
        emit_all(e, share_mask(share, e, span));
        kir_end(m);
        return;
    }
    emit_all(e, share_mask(share, e, span));
}

static void emit_map(struct expr *e, struct share *share)
{
    struct kir_module *m = e->s->module;
    struct pieces pieces = {0};
    struct span span;
    uint32_t group;

    kir_phase(m, share->lanes);
    expr_phase(e);
    share_phase(share, e);
    group = sched_wide(e->s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    span = share_span(share, e, group,
                      sched_wide(e->s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    share_set_common(share, e, &span);
    if (e->space.n_dims)
        find_pieces(e, share, &span, &pieces);
    if (share->inner == BLOCK_NONE)
        expr_set_number(e, span.element);
    share_set_own(share, e, &span);
    expr_hoist(e);
    emit_block(e, share, &span, &pieces);
}

static int64_t emit_cut(struct expr *e)
{
    struct walk all;
    struct share share;

    walk_init(&all, e, 0);
    share_init(&share, e, &all, e->s->target->lanes);
    emit_map(e, &share);
    return share.groups;
}

/* ---- building ---- */

static frit_status build(struct expr *e, frit_err *err)
{
    const struct block *block = e->s->block;
    struct sched_numbers *numbers = e->s->numbers;
    int64_t count = count_of(e, block->outputs[block->n_outputs - 1]);
    int64_t groups;

    for (uint32_t i = 0; i < block->n_outputs; i++)
        if (count_of(e, block->outputs[i]) != count)
            return fail(err, FRIT_UNSUPPORTED, "kernels: outputs of %s differ in size",
                        e->s->module->name);
    expr_args(e->s);
    if (count == 0) {
        kir_phase(e->s->module, e->s->target->lanes);
        return expr_status(e, err);
    }
    plan_stores(e);
    TRY(expr_status(e, err));
    groups = map_tiled(e);
    if (!groups)
        groups = emit_cut(e);
    if (groups > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", e->s->module->name);
    TRY(expr_status(e, err));
    memcpy(numbers->grid[0], (const uint32_t[3]){(uint32_t)groups, 1, 1}, sizeof(numbers->grid[0]));
    numbers->bytes = sched_bytes(e->s);
    numbers->flops = (uint64_t)count * block->n_ops;
    for (uint32_t i = 0; i < block->n_outputs; i++)
        numbers->alias[i] = expr_alias(e, i);
    return FRIT_OK;
}

static frit_status map_build(struct sched *s, frit_err *err)
{
    struct expr e;
    frit_status status;

    expr_init(&e, s);
    status = build(&e, err);
    expr_fini(&e);
    return status;
}

const struct schedule sched_map = {"map", map_accepts, map_build};
