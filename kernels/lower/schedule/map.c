/* SPDX-License-Identifier: Apache-2.0 */
/* The map schedule: elementwise ops, views, joins and reads by index.  Results that are made of
 * each other or of the same results of ops have one number of elements; others may have another,
 * and then a phase and a space of their own.
 *
 * A space is that of the last output of its number of elements.  An output of other dims is stored
 * at the map at which the last one needs it, where that takes each of its elements once, else at
 * the element of the same row-major number.
 *
 * A space is shared out by partition.h.  A group that is known to be full has no masks: known by
 * the numbers, or, where there are many groups, found out by the group.  Operands that lie across
 * go through tiles: map_tile.c. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lower/expr/partition.h"
#include "lower/rows/rows.h"
#include "lower/schedule/map.h"

enum {
    MANY_GROUPS = 64, /* from here on full groups have code of their own */
    QUALITY = 950
};

/* ---- matching ---- */

/* Values are of one class if they have as many elements, whatever the extents: those whose extents
 * are a permutation of each other, and what reshapes connect.  Values are of one part if ops of the
 * block connect them: what one is made of is what the other is made of, or one is made of the
 * other.  Both are forests of values, whose roots name the set. */
struct map_value {
    uint32_t class, part;  /* 1 + parent, 0: a root */
    uint32_t bucket, next; /* of values by their extents: 1 + the first, 1 + the next */
    bool first;            /* of those with its extents: it is in a bucket */
};

struct map_state {
    uint32_t n_buckets; /* of the values' `bucket` */
};

/* The extents that are not 1, in order.  Their number. */
static uint32_t sorted_extents(const struct block_value *value, uint32_t *sorted)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < value->rank; d++) {
        uint32_t at = n;

        if (value->extent[d] == 1)
            continue;
        for (; at > 0 && sorted[at - 1] > value->extent[d]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = value->extent[d];
        n++;
    }
    return n;
}

static bool same_count(const struct block_value *a, const struct block_value *b)
{
    uint32_t x[FRIT_MAX_RANK], y[FRIT_MAX_RANK], n = sorted_extents(a, x);

    return n == sorted_extents(b, y) && memcmp(x, y, n * sizeof(*x)) == 0;
}

static uint32_t *bucket_of(struct map_value *values, uint32_t n_buckets,
                           const struct block_value *value)
{
    uint32_t sorted[FRIT_MAX_RANK], n = sorted_extents(value, sorted), hash = n;

    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ sorted[i]) * 2654435769u;
    return &values[(hash ^ hash >> 15) % n_buckets].bucket;
}

static uint32_t class_of(const struct map_value *values, uint32_t value)
{
    while (values[value].class)
        value = values[value].class - 1;
    return value;
}

static uint32_t part_of(const struct map_value *values, uint32_t value)
{
    while (values[value].part)
        value = values[value].part - 1;
    return value;
}

/* Roots are older than what hangs below them. */
static void join_classes(struct map_value *values, uint32_t a, uint32_t b)
{
    a = class_of(values, a);
    b = class_of(values, b);
    if (a != b)
        values[a > b ? a : b].class = 1 + (a > b ? b : a);
}

/* The path from `b` becomes short. */
static void join_parts(struct map_value *values, uint32_t a, uint32_t b)
{
    uint32_t old = part_of(values, a), other = part_of(values, b);

    if (other < old) {
        values[old].part = other + 1;
        old = other;
    } else if (old != other) {
        values[other].part = old + 1;
    }
    while (b != old) {
        other = values[b].part - 1;
        values[b].part = old + 1;
        b = other;
    }
}

/* As many buckets as there is room for values; what was in fewer is put in again. */
static void grow_buckets(struct matcher *m, const struct block *block)
{
    struct map_state *state = m->state;
    struct map_value *values = m->values;

    if (state->n_buckets == m->n_states)
        return;
    for (uint32_t v = 0; v < state->n_buckets; v++)
        values[v].bucket = 0;
    state->n_buckets = m->n_states;
    for (uint32_t v = 0; v < m->n_values; v++) {
        uint32_t *bucket;

        if (!values[v].first)
            continue;
        bucket = bucket_of(values, state->n_buckets, &block->values[v]);
        values[v].next = *bucket;
        *bucket = v + 1;
    }
}

/* The first value of some extents stands in a bucket for all of them. */
static void add_class(struct matcher *m, const struct block *block, uint32_t value)
{
    const struct map_state *state = m->state;
    struct map_value *values = m->values;
    uint32_t *bucket = bucket_of(values, state->n_buckets, &block->values[value]), other = *bucket;

    while (other && !same_count(&block->values[other - 1], &block->values[value]))
        other = values[other - 1].next;
    if (other) {
        join_classes(values, other - 1, value);
        return;
    }
    values[value].first = true;
    values[value].next = *bucket;
    *bucket = value + 1;
}

static bool map_match(struct matcher *m, const struct block *block)
{
    const struct block_op *op = &block->ops[m->n_ops];
    const struct view_row *view = view_row_of(op->id);
    struct map_value *values = m->values;
    uint32_t n = m->n_values;

    if (!expr_knows(block, m->n_ops))
        return false;
    grow_buckets(m, block);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR && op->in[i].value == n)
            add_class(m, block, n++);
    for (uint32_t i = 0; i < op->n_out; i++) {
        if (op->out[i] == BLOCK_NONE)
            continue;
        if (op->out[i] == n)
            add_class(m, block, n++);
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k].kind == FRIT_OPERAND_TENSOR &&
                block->values[op->in[k].value].maker != BLOCK_NONE)
                join_parts(values, op->in[k].value, op->out[i]);
    }
    if (view && view->count == VIEW_SAME)
        join_classes(values, op->in[0].value, op->out[0]);
    return true;
}

/* Outputs of one part are of one class, and all of them of no more classes than there are phases.
 * The host does views at the end without a copy. */
static bool map_fits(const struct matcher *m, const struct block *block)
{
    const struct map_value *values = m->values;
    uint32_t classes[SCHED_OUTPUTS], parts[SCHED_OUTPUTS], n_classes = 0;

    if (frit_op_info_at(block->ops[m->n_ops - 1].id)->cls == FRIT_CLASS_VIEW)
        return false;
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        bool met = false;

        classes[i] = class_of(values, m->outputs[i]);
        parts[i] = part_of(values, m->outputs[i]);
        for (uint32_t k = 0; k < i; k++) {
            if (parts[k] == parts[i] && classes[k] != classes[i])
                return false;
            met = met || classes[k] == classes[i];
        }
        n_classes += !met;
    }
    return n_classes <= SCHED_PHASES;
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

/* Plans stores of the outputs that have as many elements as output `last`, the last of them. */
static void plan_stores(struct expr *e, uint32_t last_output)
{
    const struct block *block = e->s->block;
    uint32_t last = block->outputs[last_output];
    int64_t count = count_of(e, last);
    struct space_map root = {.rank = block->values[last].rank};
    int64_t dims[FRIT_MAX_RANK] = {0};
    struct space_expr number;

    expr_dims(e, last, dims);
    for (uint32_t d = 0; d < root.rank; d++)
        root.at[d] = space_dim(&e->space, dims[d], 0);
    number = space_linear(&root, dims);
    for (uint32_t i = last_output + 1; i-- > 0;)
        if (count_of(e, block->outputs[i]) == count)
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
static void find_pieces(struct expr *e, const struct partition *partition, const struct span *span,
                        struct pieces *pieces)
{
    struct kir_module *m = e->s->module;
    uint32_t inner = e->space.n_dims - 1, n_pieces, mark;
    const struct space_expr *at = expr_joined(e, 0, &n_pieces);

    if (!at || e->n_stores > 1 || partition->groups < MANY_GROUPS || partition->blocks == 1 ||
        (partition->inner == BLOCK_NONE && e->space.n_dims > 1) || at->k[inner] < 0 ||
        at->k[inner] > 1)
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
        pieces->to = kir_binary(m, KIR_add, pieces->from, kir_index(m, partition->lanes - 1));
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
        outside = kir_unary(m, KIR_not, has);
        several = several == KIR_NONE ? outside : kir_binary(m, KIR_and, several, outside);
    }
    if (several != KIR_NONE)
        kir_if(m, several);
    emit_all(e, mask);
    if (several != KIR_NONE)
        kir_end(m);
}

/* Stores, masked where the block may go beyond the end. */
static void emit_block(struct expr *e, const struct partition *partition, const struct span *span,
                       const struct pieces *pieces)
{
    struct kir_module *m = e->s->module;
    uint32_t last, lanes;

    if (partition->end == KIR_NONE) {
        emit_stores(e, pieces, KIR_NONE);
        return;
    }
    if (partition->groups >= MANY_GROUPS && partition->blocks > 1) {
        lanes = kir_index(m, partition->lanes);
        last = kir_binary(m, KIR_add, span->first, lanes);
        last = kir_binary(m, KIR_le, last, partition->end);
        kir_if(m, last);
        emit_stores(e, pieces, KIR_NONE);
        kir_end(m);
        kir_if(m, kir_unary(m, KIR_not, last));
        emit_all(e, partition_mask(partition, e, span));
        kir_end(m);
        return;
    }
    emit_all(e, partition_mask(partition, e, span));
}

static void emit_map(struct expr *e, struct partition *partition)
{
    struct kir_module *m = e->s->module;
    struct pieces pieces = {0};
    struct span span;
    uint32_t group;

    kir_phase(m, partition->lanes);
    expr_phase(e);
    partition_phase(partition, e);
    group = sched_wide(e->s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    span = partition_span(partition, e, group,
                          sched_wide(e->s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    partition_set_common(partition, e, &span);
    if (e->space.n_dims)
        find_pieces(e, partition, &span, &pieces);
    if (partition->inner == BLOCK_NONE)
        expr_set_number(e, span.element);
    partition_set_own(partition, e, &span);
    expr_hoist(e);
    emit_block(e, partition, &span, &pieces);
}

static int64_t emit_cut(struct expr *e)
{
    struct delinearizer all;
    struct partition partition;

    delinearize_init(&all, e, 0);
    partition_init(&partition, e, &all, e->s->target->lanes);
    emit_map(e, &partition);
    return partition.groups;
}

/* ---- building ---- */

/* A phase for the outputs of each number of elements. */
struct phases {
    uint32_t n;
    struct expr e[SCHED_PHASES];
    uint32_t last[SCHED_PHASES]; /* output */
};

/* Whether a later output has as many elements. */
static bool has_later(const struct expr *e, uint32_t output)
{
    const struct block *block = e->s->block;

    for (uint32_t i = output + 1; i < block->n_outputs; i++)
        if (count_of(e, block->outputs[i]) == count_of(e, block->outputs[output]))
            return true;
    return false;
}

/* Outputs without elements have no phase. */
static frit_status plan_phases(struct sched *s, struct phases *phases, frit_err *err)
{
    const struct block *block = s->block;
    bool wide = false;

    for (uint32_t i = 0; i < block->n_outputs; i++) {
        struct expr *e = &phases->e[phases->n];

        if (phases->n == SCHED_PHASES)
            return fail(err, FRIT_UNSUPPORTED, "kernels: outputs of %s have too many sizes",
                        s->module->name);
        expr_init(e, s);
        if (has_later(e, i) || !count_of(e, block->outputs[i])) {
            expr_fini(e);
            continue;
        }
        phases->last[phases->n++] = i;
        plan_stores(e, i);
        TRY(expr_status(e, err));
        wide = wide || s->module->wide;
    }
    s->module->wide = wide;
    return FRIT_OK;
}

/* The inputs that a phase reads. */
static uint64_t reads_of(const struct expr *e)
{
    uint64_t inputs = 0;

    for (uint32_t i = 0; i < e->n_stores; i++)
        inputs |= e->nodes[e->stores[i].node].inputs;
    return inputs;
}

/* An output may not overwrite what another phase reads. */
static void find_aliases(struct sched *s, const struct phases *phases)
{
    for (uint32_t p = 0; p < phases->n; p++) {
        uint64_t others = 0;

        for (uint32_t q = 0; q < phases->n; q++)
            others |= q == p ? 0 : reads_of(&phases->e[q]);
        for (uint32_t i = 0; i < phases->e[p].n_stores; i++) {
            uint32_t output = phases->e[p].stores[i].output;

            s->numbers->alias[output] = expr_alias(&phases->e[p], output) & ~others;
        }
    }
}

static frit_status emit_phases(struct sched *s, struct phases *phases, frit_err *err)
{
    for (uint32_t p = 0; p < phases->n; p++) {
        struct expr *e = &phases->e[p];
        int64_t groups = map_tiled(e);

        if (!groups)
            groups = emit_cut(e);
        if (groups > INT32_MAX)
            return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups",
                        s->module->name);
        TRY(expr_status(e, err));
        s->numbers->flops +=
            (uint64_t)count_of(e, s->block->outputs[phases->last[p]]) * s->block->n_ops / phases->n;
        memcpy(s->numbers->grid[p], (const uint32_t[3]){(uint32_t)groups, 1, 1},
               sizeof(s->numbers->grid[p]));
    }
    return FRIT_OK;
}

static frit_status build(struct sched *s, struct phases *phases, frit_err *err)
{
    expr_args(s);
    TRY(plan_phases(s, phases, err));
    if (!phases->n) {
        kir_phase(s->module, s->target->lanes);
        return FRIT_OK;
    }
    TRY(emit_phases(s, phases, err));
    find_aliases(s, phases);
    s->numbers->bytes = sched_bytes(s);
    return FRIT_OK;
}

static frit_status map_build(struct sched *s, frit_err *err)
{
    struct phases *phases = calloc(1, sizeof(*phases));
    frit_status status;

    if (!phases)
        return fail_memory(err, sizeof(*phases));
    status = build(s, phases, err);
    for (uint32_t p = 0; p < phases->n; p++)
        expr_fini(&phases->e[p]);
    free(phases);
    return status;
}

const struct schedule sched_map = {
    .name = "map",
    .quality = QUALITY,
    .state_bytes = sizeof(struct map_state),
    .value_bytes = sizeof(struct map_value),
    .match = map_match,
    .fits = map_fits,
    .build = map_build,
};
