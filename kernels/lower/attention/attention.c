/* SPDX-License-Identifier: Apache-2.0 */
/* The attention schedule: what it takes, the space, and how lanes share it. */
#include "lower/attention/attention.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "lower/rows/rows.h"

enum {
    QUALITY = 860,
    MOST_OUTS = 256,  /* of a group */
    FEW_ROWS = 8,     /* of which a group has all, with threads along keys alone */
    GROUP_ROWS = 64,  /* of a group, at most */
    DOWN = 16,        /* threads along rows where tiles hold parts of blocks */
    ACROSS = 16,      /* likewise along keys or results, of many rows; */
    FEW_ACROSS = 128, /* of few */
    LEAST_ACROSS = 32,
    MANY_KEYS = 4,           /* of a thread */
    AHEAD_BYTES = 112 << 10, /* of tiles whose groups still run two at a time */
    ACCESS_BYTES = 16,       /* of a thread */
    GROUPS_OF_UNITS = 4,     /* target.units for each multiprocessor */
    FULL_DEPTH = 32,
    FULL_VALUES = 16,
    LEAST_DEPTH = 16,
    MOST_DEPTH = 64, /* where not all is in tiles */
    LEAST_VALUES = 8,
    SPLIT_GROUPS = 256, /* with fewer, groups share keys; */
    WANTED_FEW = 2048,  /* likewise where a group has few rows, and reading keys takes the time */
    SPLIT_KEYS = 256,   /* each has as many, at least, */
    MOST_SPLITS = 32,
    TEAMS = 4,           /* of a group, */
    FRAGMENT_ROWS = 9,   /* with so many rows at least, */
    FRAGMENT_SIZE = 128, /* and at most so long queries, and results */
    LEAST_TEAM = 16,     /* whose threads have rows where scores go through tiles */
    MOST_TEAM = 64,
    LINE_LANES = 64, /* of a group where lanes are parts of vectors, */
    LEAST_LINE = 16,
    LINE_KEYS = 96, /* and keys of a block */
    LINE_SUMS = 6   /* of a lane: registers hold those of as many vectors as a chunk */
};

/* ---- matching ---- */

enum { Q, K, V, MASK, BIAS, OPERANDS };

static bool attends(const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];
    struct attention_ops ops;

    if (op->id == FRIT_OP_matmul)
        return attention_find_ops(block, number, &ops);
    if (op->id != FRIT_OP_attention || op->out[0] == BLOCK_NONE || op->n_in > OPERANDS)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind != FRIT_OPERAND_TENSOR &&
            (i < MASK || op->in[i].kind != FRIT_OPERAND_ABSENT))
            return false;
    return !attention_has_inner(block, number) && anchor_is_cheap(block, number, 0);
}

static bool attention_match(struct matcher *m, const struct block *block)
{
    return anchor_match_inner(m, block, attends, attention_is_inner);
}

/* What is inside of it is not there for others. */
static bool attention_fits(const struct matcher *m, const struct block *block)
{
    const struct anchor *anchor = m->state;

    if (!anchor_fits(m, block))
        return false;
    for (uint32_t i = 0; i < m->n_outputs && block->ops[anchor->op].id == FRIT_OP_matmul; i++)
        if (!anchor->lineage[m->outputs[i]])
            return false;
    return true;
}

/* ---- the space ---- */

/* An operand's element where the last two coordinates are given. */
static uint32_t plan_at(struct attention *a, uint32_t value, const struct space_map *full)
{
    struct space_map map;
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = a->e.s->block->values[value].rank;

    expr_dims(&a->e, value, dims);
    space_broadcast(full, rank, dims, &map);
    return expr_node(&a->e, value, &map);
}

static uint32_t plan_optional(struct attention *a, const struct block_op *op, uint32_t i,
                              const struct space_map *full)
{
    return op->n_in > i && op->in[i].kind == FRIT_OPERAND_TENSOR ? plan_at(a, op->in[i].value, full)
                                                                 : BLOCK_NONE;
}

/* Whether the queries of all heads that share keys are rows together: few ones. */
static bool joins_heads(int64_t queries)
{
    return queries < GROUP_ROWS;
}

static void plan_operands(struct attention *a, const struct block_op *op, int64_t shared,
                          const int64_t *q_dims)
{
    struct space *space = &a->e.space;
    uint32_t rank = a->root.rank;
    struct space_map of_k, of_q = a->root, scores = a->root;
    struct space_expr head = {0}, share, key, size;

    for (uint32_t d = 0; d + 3 < rank; d++)
        a->root.at[d] = space_dim(space, q_dims[d], ATTENTION_BOTH);
    head = space_dim(space, q_dims[rank - 3] / shared, ATTENTION_BOTH);
    share = space_dim(space, shared, joins_heads(a->queries) ? ATTENTION_ROW : ATTENTION_BOTH);
    a->root.at[rank - 3] = share;
    space_add(&a->root.at[rank - 3], &head, shared);
    a->root.at[rank - 2] = space_dim(space, a->queries, ATTENTION_ROW);
    a->root.at[rank - 1] = space_dim(space, a->outs, ATTENTION_OUT);
    key = space_dim(space, a->keys, ATTENTION_KEY);
    size = space_dim(space, a->size, ATTENTION_SIZE);
    of_q = of_k = scores = a->root;
    of_q.at[rank - 1] = size;
    scores.at[rank - 1] = key;
    of_k.at[rank - 3] = head;
    of_k.at[rank - 2] = key;
    a->position = expr_coord(&a->e, &a->root.at[rank - 2]);
    a->mask = plan_optional(a, op, MASK, &scores);
    a->bias = plan_optional(a, op, BIAS, &scores);
    of_k.at[rank - 1] = a->root.at[rank - 1];
    a->v = expr_node(&a->e, op->in[V].value, &of_k);
    of_k.at[rank - 1] = size;
    a->k = expr_node(&a->e, op->in[K].value, &of_k);
    a->q = expr_node(&a->e, op->in[Q].value, &of_q);
}

/* Whether an attribute of the op may be other than 0. */
static bool has_scalar(const struct attention *a, uint32_t scalar)
{
    const frit_signature *sig = a->e.s->sig;

    return !sig->scalar_classes || sig->scalar_classes[scalar] != FRIT_SCALAR_CLASS_ZERO;
}

/* Scalars of a launch: scale, softcap. */
static void plan_attributes(struct attention *a, const struct block_op *op)
{
    const frit_attrs_attention *attrs = op->attrs;

    a->causal = attrs->causal != 0;
    a->scale_scalar = op->first_scalar;
    a->cap_scalar = op->first_scalar + 1;
    a->has_scale = has_scalar(a, a->scale_scalar);
    a->has_cap = has_scalar(a, a->cap_scalar);
}

bool attention_plan_row(struct attention *a, const struct block_op *op)
{
    const struct block_value *values = a->e.s->block->values;
    int64_t q[FRIT_MAX_RANK], k[FRIT_MAX_RANK], v[FRIT_MAX_RANK], shared;
    uint32_t rank = values[op->in[Q].value].rank;

    expr_dims(&a->e, op->in[Q].value, q);
    expr_dims(&a->e, op->in[K].value, k);
    expr_dims(&a->e, op->in[V].value, v);
    if (rank < 3 || k[rank - 3] < 1 || q[rank - 3] % k[rank - 3])
        return false;
    shared = q[rank - 3] / k[rank - 3];
    a->root.rank = rank;
    a->queries = q[rank - 2];
    a->keys = k[rank - 2];
    a->size = q[rank - 1];
    a->outs = v[rank - 1];
    if (a->keys < 1 || a->size < 1)
        return false;
    plan_attributes(a, op);
    plan_operands(a, op, shared, q);
    a->rows_are_queries = shared == 1 || !joins_heads(a->queries);
    return true;
}

/* ---- how lanes lie ---- */

static uint32_t element_bytes(const struct attention *a)
{
    return attention_dtype(a) == FRIT_F64 ? 8 : 4;
}

static uint64_t bytes_of(const struct attention *a)
{
    return attention_tile_elements(&a->sizes) * element_bytes(a);
}

/* Whether a group of few rows can have half of the lanes, and these twice as much each. */
static bool is_wide(const struct attention_sizes *s)
{
    return s->down == 1 && s->across > LEAST_ACROSS && 2 * s->outs <= ATTENTION_OUTS &&
           2 * s->outs * s->rows <= ATTENTION_SUMS;
}

static void halve_lanes(struct attention_sizes *s)
{
    s->across /= 2;
    s->outs *= 2;
}

/* Smaller tiles, until a group's fit. */
static bool shrink(struct attention *a)
{
    struct attention_sizes *s = &a->sizes;

    while (bytes_of(a) > a->e.s->target->group_bytes) {
        if (s->values > FULL_VALUES)
            s->values /= 2;
        else if (s->depth > FULL_DEPTH)
            s->depth /= 2;
        else if (s->keys > 2)
            s->keys /= 2;
        else if (s->values > LEAST_VALUES)
            s->values /= 2;
        else if (s->depth > LEAST_DEPTH)
            s->depth /= 2;
        else if (is_wide(s))
            halve_lanes(s);
        else if (s->rows > 1)
            s->rows /= 2;
        else
            return false;
        if (s->values > s->across * s->keys)
            s->values = s->across * s->keys;
    }
    return true;
}

/* Groups of threads and what each of these has where tiles hold whole blocks, those with much to
 * multiply between accesses of tiles first: where products of f32 have 51 TFLOP/s the first was
 * seen to have 35, half of the scores being hidden, that of 4 rows and 4 keys 30. */
static const struct attention_sizes shapes[] = {{.down = 8, .across = 16, .rows = 8, .keys = 4},
                                                {.down = 8, .across = 8, .rows = 8, .keys = 4},
                                                {.down = 8, .across = 16, .rows = 8, .keys = 2},
                                                {.down = 8, .across = 16, .rows = 4, .keys = 4},
                                                {.down = 8, .across = 16, .rows = 2, .keys = 4},
                                                {.down = 8, .across = 16, .rows = 2, .keys = 2}};

/* Lanes of a thread: a wide access of elements. */
static uint32_t chunk_of(const struct attention *a)
{
    uint32_t bytes = a->e.s->target->align_bytes;

    return bytes < ACCESS_BYTES ? 1 : ACCESS_BYTES / element_bytes(a);
}

/* Sets what follows from the grid and what a thread has of it; false: too much. */
static bool set_grid(struct attention *a, const struct attention_sizes *shape)
{
    struct attention_sizes *s = &a->sizes;
    int64_t outs = a->outs < MOST_OUTS ? a->outs : MOST_OUTS;

    *s = *shape;
    s->chunk = chunk_of(a);
    s->outs = (uint32_t)tiles_of(outs, s->across);
    a->n_outs = s->outs * s->across;
    s->depth = power_above(a->size < LEAST_DEPTH ? LEAST_DEPTH : a->size);
    s->values = s->across * s->keys;
    return s->outs <= ATTENTION_OUTS && s->rows * s->outs <= ATTENTION_SUMS &&
           s->down * s->across * s->chunk <= a->e.s->target->max_lanes;
}

static int64_t groups_of(const struct attention *a)
{
    return a->points[ATTENTION_BOTH].count * tiles_of(a->outs, a->n_outs) *
           tiles_of(a->points[ATTENTION_ROW].count, (int64_t)a->sizes.down * a->sizes.rows);
}

/* One for each multiprocessor. */
static int64_t wanted_groups(const struct attention *a)
{
    return a->e.s->target->units / GROUPS_OF_UNITS;
}

/* Memory of tiles that are loaded ahead. */
static uint64_t most_ahead(const struct attention *a)
{
    const struct kir_target *target = a->e.s->target;
    uint64_t most =
        target->fragment_bytes > target->group_bytes ? target->fragment_bytes : target->group_bytes;

    return (most < AHEAD_BYTES ? most : AHEAD_BYTES) / element_bytes(a);
}

/* Tiles that hold whole blocks, which are loaded ahead: the first with enough groups, else the one
 * with most. */
static bool choose_ahead(struct attention *a)
{
    uint32_t rows = power_above(a->points[ATTENTION_ROW].count);
    bool found = false;
    struct attention_sizes best;

    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!set_grid(a, &shapes[i]) || !attention_load_ahead(a, most_ahead(a)) ||
            (shapes[i].down * shapes[i].rows > rows && i + 1 < sizeof(shapes) / sizeof(shapes[0])))
            continue;
        found = true;
        best = a->sizes;
        if (groups_of(a) >= wanted_groups(a))
            break;
    }
    return found && set_grid(a, &best) && attention_load_ahead(a, most_ahead(a));
}

/* Few rows: all in a group, whose threads lie along keys. */
static struct attention_sizes few_rows(const struct attention *a)
{
    int64_t outs = a->outs < MOST_OUTS ? a->outs : MOST_OUTS;
    struct attention_sizes s = {.down = 1, .keys = 1};

    s.rows = power_above(a->points[ATTENTION_ROW].count);
    s.across = power_above(a->keys > outs ? a->keys : outs);
    if (s.across > FEW_ACROSS)
        s.across = FEW_ACROSS;
    if (s.across < LEAST_ACROSS)
        s.across = LEAST_ACROSS;
    return s;
}

static struct attention_sizes many_rows(const struct attention *a)
{
    int64_t rows = a->points[ATTENTION_ROW].count;
    struct attention_sizes s = {.down = DOWN, .across = ACROSS, .keys = MANY_KEYS};

    s.rows = power_above(rows < GROUP_ROWS ? rows : GROUP_ROWS) / DOWN;
    if (!s.rows)
        s.rows = 1;
    return s;
}

/* Fewer threads, where a device has not as many in a group. */
static void limit_threads(const struct attention *a, struct attention_sizes *s)
{
    while (s->down * s->across * chunk_of(a) > a->e.s->target->max_lanes) {
        if (s->down > 1)
            s->down /= 2;
        else if (s->across > LEAST_ACROSS)
            s->across /= 2;
        else
            return;
    }
}

static bool choose_tiles(struct attention *a)
{
    const bool is_few = a->points[ATTENTION_ROW].count <= FEW_ROWS;
    struct attention_sizes s = is_few ? few_rows(a) : many_rows(a);

    a->form = ATTENTION_TILES;
    if (!is_few && choose_ahead(a))
        return true;
    limit_threads(a, &s);
    while (!set_grid(a, &s)) {
        if (s.rows == 1)
            return false;
        s.rows /= 2;
    }
    if (is_few && attention_load_ahead(a, most_ahead(a)))
        return true;
    a->sizes.depth = a->sizes.depth < MOST_DEPTH ? a->sizes.depth : MOST_DEPTH;
    return shrink(a);
}

bool attention_has_shape(const struct kir_target *target, uint32_t dtype)
{
    for (uint32_t i = 0; i < target->n_shapes; i++) {
        const struct kir_fragment_shape *s = &target->shapes[i];

        if (s->dtype == dtype && s->sum == FRIT_F32 && s->m == ATTENTION_SIDE &&
            s->n == ATTENTION_SIDE && s->k == ATTENTION_SIDE && !s->team)
            return true;
    }
    return false;
}

/* An operand's elements have that type, or are widened from it. */
static bool is_narrow(const struct attention *a, uint32_t node, uint32_t dtype)
{
    const struct expr_node *n = &a->e.nodes[node];
    const struct block *block = a->e.s->block;

    if (block->values[n->value].dtype == dtype)
        return true;
    return n->kind == EXPR_OP && n->in[0] != BLOCK_NONE &&
           block->ops[block->values[n->value].maker].id == FRIT_OP_cast &&
           block->values[a->e.nodes[n->in[0]].value].dtype == dtype;
}

static bool fits_fragments(const struct attention *a)
{
    const struct kir_target *target = a->e.s->target;
    uint32_t dtype = a->e.s->block->values[a->e.nodes[a->result].value].dtype;

    return attention_has_shape(target, dtype) && a->points[ATTENTION_ROW].count >= FRAGMENT_ROWS &&
           a->keys >= ATTENTION_SIDE && a->size <= FRAGMENT_SIZE && is_narrow(a, a->q, dtype) &&
           is_narrow(a, a->k, dtype) && is_narrow(a, a->v, dtype);
}

static bool choose_fragments(struct attention *a)
{
    const struct kir_target *target = a->e.s->target;
    uint32_t most = target->fragment_bytes ? target->fragment_bytes : target->group_bytes;
    const bool is_small = a->size <= 64 && a->outs <= 64;

    a->form = ATTENTION_FRAGMENTS;
    a->sizes = (struct attention_sizes){.down = TEAMS, .rows = ATTENTION_SIDE, .across = 1};
    a->sizes.keys = is_small ? 64 : 32;
    a->n_outs = (uint32_t)(a->outs < FRAGMENT_SIZE ? a->outs : FRAGMENT_SIZE);
    if (is_small && target->folds_fragments) {
        a->sizes.rows = 2 * ATTENTION_SIDE;
        if (groups_of(a) < wanted_groups(a))
            a->sizes.rows = ATTENTION_SIDE;
    }
    if (attention_fragment_bytes(a) > most)
        a->sizes.keys = 32;
    if (!target->folds_fragments && (target->team < LEAST_TEAM || target->team > MOST_TEAM))
        return false;
    return attention_fragment_bytes(a) <= most &&
           (uint64_t)TEAMS * target->team * 8 <= target->max_lanes;
}

static bool choose_lines(struct attention *a)
{
    struct attention_sizes *s = &a->sizes;
    int64_t rows = a->points[ATTENTION_ROW].count;

    a->form = ATTENTION_LINES;
    s->down = power_above(rows < LINE_LANES ? rows : LINE_LANES);
    if (s->down < LEAST_LINE)
        s->down = LEAST_LINE;
    s->across = s->rows = 1;
    s->keys = LINE_KEYS;
    s->depth = LINE_SUMS;
    s->outs = s->depth;
    a->n_outs = (uint32_t)a->outs;
    return true;
}

/* Few groups share the keys of a row. */
static void choose_splits(struct attention *a, int64_t groups)
{
    int64_t block = a->sizes.across * (int64_t)a->sizes.keys;
    int64_t wanted = a->sizes.down == 1 ? WANTED_FEW : SPLIT_GROUPS;

    a->n_splits = 1;
    while (groups * a->n_splits < wanted && a->n_splits < MOST_SPLITS &&
           a->keys / (2 * a->n_splits) >= SPLIT_KEYS)
        a->n_splits *= 2;
    if (a->n_splits == 1)
        return;
    a->part = tiles_of(tiles_of(a->keys, a->n_splits), block) * block;
    a->n_splits = (uint32_t)tiles_of(a->keys, a->part);
}

/* ---- building ---- */

static bool is_empty(const struct attention *a)
{
    const struct block *block = a->e.s->block;
    uint32_t value = block->ops[a->anchor.op].out[0];
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&a->e, value, dims);
    for (uint32_t d = 0; d < block->values[value].rank; d++)
        if (dims[d] == 0)
            return true;
    return false;
}

/* Whether nodes need no results of ops that elementwise code cannot compute, but node `computed`
 * (BLOCK_NONE: none at all). */
static bool needs_only(struct attention *a, const uint32_t *nodes, uint32_t n, uint32_t computed)
{
    const struct expr *e = &a->e;
    bool *needed = arena_array(&a->e.arena, e->n_nodes + 1u, sizeof(*needed));

    if (!needed) {
        expr_fail(&a->e, FRIT_NO_HOST_MEMORY);
        return false;
    }
    memset(needed, 0, e->n_nodes + 1u);
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] != BLOCK_NONE)
            needed[nodes[i]] = true;
    for (uint32_t i = e->n_nodes; i-- > 0;) {
        const struct expr_node *node = &e->nodes[i];

        if (!needed[i] || i == computed)
            continue;
        if (node->kind == EXPR_EXTERNAL)
            return false;
        for (uint32_t j = 0; j < node->n_in; j++)
            if (node->in[j] != BLOCK_NONE)
                needed[node->in[j]] = true;
    }
    return true;
}

/* Whether all that is emitted is computed here. */
static bool is_complete(struct attention *a)
{
    const uint32_t operands[] = {a->q, a->k, a->v, a->mask, a->bias};

    for (uint32_t i = 0; i < a->e.n_stores; i++)
        if (!needs_only(a, &a->e.stores[i].node, 1, a->result))
            return false;
    return needs_only(a, operands, sizeof(operands) / sizeof(operands[0]), BLOCK_NONE) &&
           needs_only(a, &a->score, 1, a->dot) && needs_only(a, &a->factor, 1, a->sum_of_weights);
}

static frit_status plan(struct attention *a, frit_err *err)
{
    const struct block_op *op = &a->e.s->block->ops[a->anchor.op];
    const bool is_row = op->id == FRIT_OP_attention;

    if (!(is_row ? attention_plan_row : attention_plan_ops)(a, op))
        expr_fail(&a->e, FRIT_UNSUPPORTED);
    if (!a->e.status && is_row)
        anchor_stores(&a->anchor, &a->e, &a->root);
    expr_settle(&a->e);
    TRY(expr_status(&a->e, err));
    a->result = anchor_result(&a->anchor, &a->e, 0);
    if (a->result == BLOCK_NONE)
        return fail(err, FRIT_UNSUPPORTED, "kernels: the result is not used");
    if ((!is_row && !attention_ops_fit(a)) || !is_complete(a))
        return fail(err, FRIT_UNSUPPORTED, "kernels: it is not attention with these sizes");
    for (uint32_t tag = 0; tag < ATTENTION_TAGS; tag++)
        delinearize_init(&a->points[tag], &a->e, tag);
    return FRIT_OK;
}

/* Other rows are read by other groups, at any time. */
static void find_aliases(const struct attention *a)
{
    const uint32_t read[] = {a->q, a->k, a->v, a->mask, a->bias, a->score};
    uint64_t inputs = 0;

    for (uint32_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
        if (read[i] != BLOCK_NONE)
            inputs |= a->e.nodes[read[i]].inputs;
    for (uint32_t i = 0; i < a->e.n_stores; i++) {
        uint32_t output = a->e.stores[i].output;

        a->e.s->numbers->alias[output] = expr_alias(&a->e, output) & ~inputs;
    }
}

static void reserve(struct attention *a)
{
    uint32_t dtype = attention_dtype(a);
    int64_t rows = a->n_splits * a->points[ATTENTION_BOTH].count * a->points[ATTENTION_ROW].count;

    if (a->n_splits == 1)
        return;
    a->partial = kir_arg(a->e.s->module, dtype, KIR_READ | KIR_WRITE);
    a->e.s->numbers->workspace_bytes = frit_storage_bytes(dtype, rows * (a->outs + 2));
}

static void estimate(const struct attention *a)
{
    int64_t rows = a->points[ATTENTION_BOTH].count * a->points[ATTENTION_ROW].count;
    uint64_t flops = 2 * (uint64_t)rows * (uint64_t)a->keys * (uint64_t)(a->size + a->outs);

    a->e.s->numbers->bytes = sched_bytes(a->e.s);
    a->e.s->numbers->flops = a->causal && a->queries == a->keys ? flops / 2 : flops;
}

static frit_status emit(struct attention *a, frit_err *err)
{
    static void (*const forms[])(struct attention *) = {[ATTENTION_FRAGMENTS] = attention_fragments,
                                                        [ATTENTION_TILES] = attention_tiles,
                                                        [ATTENTION_LINES] = attention_lines};
    struct sched *s = a->e.s;
    int64_t groups;
    bool is_lines = s->target->lanes_interleaved || !s->target->stages_tiles;

    if (!(is_lines ? choose_lines(a)
                   : (fits_fragments(a) && choose_fragments(a)) || choose_tiles(a)))
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s has a form for more rows alone",
                    s->module->name);
    groups = groups_of(a);
    a->n_splits = 1;
    if (!is_lines)
        choose_splits(a, groups);
    groups *= a->n_splits;
    if (groups > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    TRY(sched_check_rounds(s, a->keys / 8 * (2 + a->size / 8), err));
    reserve(a);
    s->numbers->grid[0][0] = (uint32_t)groups;
    s->numbers->grid[0][1] = s->numbers->grid[0][2] = 1;
    forms[a->form](a);
    if (a->n_splits > 1)
        attention_join(a);
    TRY(expr_status(&a->e, err));
    find_aliases(a);
    estimate(a);
    return FRIT_OK;
}

static frit_status build(struct attention *a, frit_err *err)
{
    struct sched *s = a->e.s;

    expr_args(s);
    if (is_empty(a)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&a->e, err);
    }
    TRY(plan(a, err));
    return emit(a, err);
}

static frit_status attention_build(struct sched *s, frit_err *err)
{
    struct attention a = {.mask = BLOCK_NONE,
                          .bias = BLOCK_NONE,
                          .dot = BLOCK_NONE,
                          .score = BLOCK_NONE,
                          .factor = BLOCK_NONE};
    frit_status status;

    expr_init(&a.e, s);
    a.e.separate_tags = (1u << ATTENTION_TAGS) - 1;
    if (anchor_init_inner(&a.anchor, s->block, attends, attention_is_inner)) {
        status =
            a.anchor.n_ops == s->block->n_ops && a.anchor.found
                ? build(&a, err)
                : fail(err, FRIT_UNSUPPORTED, "kernels: %s is not one attention", s->module->name);
        anchor_fini(&a.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(uint32_t));
    }
    expr_fini(&a.e);
    return status;
}

const struct schedule sched_attention = {
    .name = "attention",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = attention_match,
    .fits = attention_fits,
    .build = attention_build,
};
