/* SPDX-License-Identifier: Apache-2.0 */
/* The map schedule: elementwise ops, views, joins and reads by index.  Outputs that depend on each
 * other, or on common results, must have the same number of elements.  Unrelated outputs may
 * differ, and then have a phase and a space of their own.
 *
 * The space of a phase has the dims of the last output with that number of elements.  An output
 * with other dims is stored at the map at which the last output needs it, if that visits each of
 * its elements once, else at the element with the same row-major number.
 *
 * partition.h divides a space among groups.  Full groups store without masks: groups are known to
 * be full from the sizes or, where there are many groups, each group checks at run time.  Operands
 * whose innermost dim has a large stride are read through tiles: map_tile.c. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lower/expr/partition.h"
#include "lower/rows/rows.h"
#include "lower/schedule/map.h"

enum { QUALITY = 950 };

/* ---- matching ---- */

/* A size class has values with equal numbers of elements for any sizes: their extents are
 * permutations of each other, or reshapes connect them.  A part has values that ops of the block
 * connect: one depends on the other, or both on a common result.  Both are union-find forests over
 * the values. */
struct map_value {
    uint32_t class, part; /* 1 + parent; 0: it is a root */
    uint32_t bucket,
        next; /* hash table by extents: 1 + first value of bucket i, 1 + next value of the bucket */
    bool first;              /* the first value with these extents, the one that is in a bucket */
    bool expanded, repeated; /* by the block; likewise, and reshaped after that */
};

struct map_state {
    uint32_t n_buckets;
};

/* Sorts the extents that are not 1; returns how many there are. */
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

/* The older root remains a root. */
static void join_classes(struct map_value *values, uint32_t a, uint32_t b)
{
    a = class_of(values, a);
    b = class_of(values, b);
    if (a != b)
        values[a > b ? a : b].class = 1 + (a > b ? b : a);
}

/* Also compresses the path from `b`. */
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

/* Grows the table to one bucket per value and inserts the values again. */
static void grow_buckets(struct matcher *m, const struct block *block)
{
    struct map_state *state = m->state;
    struct map_value *values = m->values;

    if (state->n_buckets == m->values_capacity)
        return;
    for (uint32_t v = 0; v < state->n_buckets; v++)
        values[v].bucket = 0;
    state->n_buckets = m->values_capacity;
    for (uint32_t v = 0; v < m->n_values; v++) {
        uint32_t *bucket;

        if (!values[v].first)
            continue;
        bucket = bucket_of(values, state->n_buckets, &block->values[v]);
        values[v].next = *bucket;
        *bucket = v + 1;
    }
}

/* Adds a value to the size class of its extents, which the first value with these extents
 * represents. */
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

/* Whether an operand that the block makes is expanded, or repeated. */
static bool reads_made(const struct matcher *m, const struct block *block, bool repeated)
{
    const struct map_value *values = m->values;
    const struct block_op *op = &block->ops[m->n_ops];

    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct block_input *in = &op->in[i];

        if (in->kind == FRIT_OPERAND_TENSOR && block->values[in->value].maker != BLOCK_NONE &&
            (repeated ? values[in->value].repeated : values[in->value].expanded))
            return true;
    }
    return false;
}

static void mark_repeats(const struct matcher *m, const struct block *block)
{
    struct map_value *values = m->values;
    const struct block_op *op = &block->ops[m->n_ops];
    bool reshapes = op->id == FRIT_OP_reshape;
    bool expanded = op->id == FRIT_OP_expand || (!reshapes && reads_made(m, block, false));
    bool repeated = reads_made(m, block, true) || (reshapes && reads_made(m, block, false));

    for (uint32_t i = 0; i < op->n_out; i++) {
        if (op->out[i] == BLOCK_NONE)
            continue;
        values[op->out[i]].expanded = expanded;
        values[op->out[i]].repeated = repeated;
    }
}

/* Whether an op is a join of repeated elements, whose number is made of quotients: on lanes that
 * are parts of vectors all pieces would be computed at all points. */
static bool joins_repeats(const struct matcher *m, const struct block *block)
{
    return m->target && m->target->lanes_interleaved &&
           join_row_of(block->ops[m->n_ops].id) != JOIN_NONE && reads_made(m, block, true);
}

static bool map_match(struct matcher *m, const struct block *block)
{
    const struct block_op *op = &block->ops[m->n_ops];
    const struct view_row *view = view_row_of(op->id);
    struct map_value *values = m->values;
    uint32_t n = m->n_values;

    if (!expr_supports(block, m->n_ops) || joins_repeats(m, block))
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
    mark_repeats(m, block);
    return true;
}

/* Outputs of one part must be of one class, and there must be no more classes than phases. Trailing
 * views are left to the host, which needs no copy for them. */
static bool map_fits(const struct matcher *m, const struct block *block)
{
    const struct map_value *values = m->values;
    uint32_t classes[SCHED_OUTPUTS], parts[SCHED_OUTPUTS], n_classes = 0;

    if (frit_op_info_at(block->ops[m->n_ops - 1].id)->cls == FRIT_CLASS_VIEW)
        return false;
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        bool seen = false;

        classes[i] = class_of(values, m->outputs[i]);
        parts[i] = part_of(values, m->outputs[i]);
        for (uint32_t k = 0; k < i; k++) {
            if (parts[k] == parts[i] && classes[k] != classes[i])
                return false;
            seen = seen || classes[k] == classes[i];
        }
        n_classes += !seen;
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

/* Whether the row-major number takes each value below the number of points once: its factors are
 * the strides of the dims in some order, positive or negative. */
static bool visits_all(const struct space *space, const struct space_expr *number)
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

/* Plans the store of an output in the space of the last output, which has the map `root` and the
 * row-major number `number`. */
static void store_output(struct expr *e, uint32_t value, const struct space_map *root,
                         const int64_t *root_dims, const struct space_expr *number)
{
    const struct space_map *seen = expr_first_map(e, value);
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
        if (visits_all(&e->space, &own)) {
            expr_store(e, value, seen);
            return;
        }
    }
    space_unlinear(&e->space, number, rank, dims, &map);
    expr_store(e, value, &map);
}

/* Plans stores of all outputs with as many elements as output `last_output`, the last of these. */
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

/* A stored join whose groups likely lie in one piece each. */
struct pieces {
    uint32_t n;
    uint32_t from, to; /* first and last coordinate of the block along the axis */
};

/* Emits the coordinates of a block along the axis of a stored join, if all elements have the same
 * one or consecutive ones.  Called before the innermost dim is set. */
static void find_block_pieces(struct expr *e, const struct partition *partition,
                              const struct span *span, struct pieces *pieces)
{
    struct kir_module *m = e->s->module;
    uint32_t inner = e->space.n_dims - 1, n_pieces, mark;
    const struct space_expr *at = expr_join_coord(e, 0, &n_pieces);

    if (!at || e->n_stores > 1 || partition->groups < sched_tuning(e->s).full_groups ||
        partition->blocks == 1 || partition->spans > 1 ||
        (partition->inner == BLOCK_NONE && e->space.n_dims > 1) || at->k[inner] < 0 ||
        at->k[inner] > 1)
        return;
    for (uint32_t v = SPACE_DIMS; v < SPACE_VARS; v++)
        if (at->k[v])
            return;
    mark = expr_mark(e);
    expr_set(e, inner, span->first);
    pieces->from = pieces->to = expr_join_value(e, 0);
    expr_release(e, mark);
    pieces->n = n_pieces;
    if (at->k[inner])
        pieces->to = kir_binary(m, KIR_add, pieces->from, kir_index(m, partition->lanes - 1));
}

/* Stores a block.  If the block is in one piece of a join, only that piece is computed. */
static void emit_stores(struct expr *e, const struct pieces *pieces, uint32_t mask)
{
    struct kir_module *m = e->s->module;
    uint32_t in_several = KIR_NONE;

    for (uint32_t piece = 0; piece < pieces->n; piece++) {
        uint32_t has = expr_piece_contains(e, 0, piece, pieces->from, pieces->to), mark, outside;

        if (has == KIR_NONE)
            continue;
        kir_if(m, has);
        mark = expr_mark(e);
        expr_mask(e, mask);
        expr_emit_piece(e, 0, piece);
        expr_release(e, mark);
        kir_end(m);
        outside = kir_unary(m, KIR_not, has);
        in_several = in_several == KIR_NONE ? outside : kir_binary(m, KIR_and, in_several, outside);
    }
    if (in_several != KIR_NONE)
        kir_if(m, in_several);
    emit_all(e, mask);
    if (in_several != KIR_NONE)
        kir_end(m);
}

/* Stores a block, masked if it may reach beyond the end. */
static void emit_block(struct expr *e, const struct partition *partition, const struct span *span,
                       const struct pieces *pieces)
{
    struct kir_module *m = e->s->module;
    uint32_t last, lanes;

    if (partition_is_full(partition)) {
        emit_stores(e, pieces, KIR_NONE);
        return;
    }
    if (partition->groups >= sched_tuning(e->s).full_groups && partition->blocks > 1 &&
        partition->spans == 1) {
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
    partition_set_uniform(partition, e, &span);
    if (e->space.n_dims)
        find_block_pieces(e, partition, &span, &pieces);
    if (partition->inner == BLOCK_NONE)
        expr_set_number(e, span.element);
    partition_set_varying(partition, e, &span);
    expr_hoist(e);
    emit_block(e, partition, &span, &pieces);
}

static int64_t emit_partitioned(struct expr *e)
{
    struct delinearizer all;
    struct partition partition;
    uint32_t n_pieces;

    delinearize_init(&all, e, 0);
    partition_init(&partition, e, &all, e->s->target->lanes);
    if (!expr_join_coord(e, 0, &n_pieces)) /* a piece is a group's */
        partition_gather(&partition, e);
    emit_map(e, &partition);
    return partition.groups;
}

/* ---- building ---- */

/* One phase per distinct number of elements of outputs. */
struct phases {
    uint32_t n;
    struct expr e[SCHED_PHASES];
    uint32_t last[SCHED_PHASES]; /* index of the phase's last output */
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

/* Plans a phase per distinct number of elements other than 0. */
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

/* The inputs that a phase reads, as bits. */
static uint64_t reads_of(const struct expr *e)
{
    uint64_t inputs = 0;

    for (uint32_t i = 0; i < e->n_stores; i++)
        inputs |= e->nodes[e->stores[i].node].inputs;
    return inputs;
}

/* An output may not overwrite an input that another phase reads. */
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
            groups = emit_partitioned(e);
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
