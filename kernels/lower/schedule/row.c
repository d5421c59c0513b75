/* SPDX-License-Identifier: Apache-2.0 */
/* The row schedule: folds over one set of dims, any number of them and depending on each other,
 * with elementwise ops and views around: reductions, softmax, norms. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lower/rows/rows.h"
#include "lower/schedule/row.h"
#include "lower/schedule/row_slab.h"

enum {
    QUALITY = 900,
    /* Elements of rows side by side that a group goes over several times: the most, and what is
     * wanted where groups can have fewer lanes. */
    STRIP_MOST = 1 << 18,
    STRIP_WANTED = 1 << 15,
    STRIPS_LEAST = 1 << 22 /* elements of all rows: fewer stay in caches anyway */
};

/* ---- accepting ---- */

/* A limit on folds closes the matcher, since ops are never removed from a block. */
static bool row_match(struct matcher *m, const struct block *block)
{
    struct labels *labels = m->state;

    labels->values = m->values;
    return labels_add(labels, block) && labels->n_folds <= ROW_FOLDS;
}

static bool row_fits(const struct matcher *m, const struct block *block)
{
    const struct labels *labels = m->state;

    if (!labels->n_folds || view_row_of(block->ops[m->n_ops - 1].id))
        return false;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        if (label_storage(labels, block, m->outputs[i]) == LABEL_NOWHERE)
            return false;
    return true;
}

/* ---- planning ---- */

static void plan_root(struct row_schedule *row)
{
    int64_t dims[FRIT_MAX_RANK];

    row->root.rank = row->e.s->block->values[row->labels.root].rank;
    expr_dims(&row->e, row->labels.root, dims);
    row->n_row = 1;
    for (uint32_t d = 0; d < row->root.rank; d++) {
        bool inner = row->labels.axes >> d & 1;

        if (inner)
            row->n_row *= dims[d];
        row->root.at[d] =
            space_dim(&row->e.space, dims[d] ? dims[d] : 1, inner ? ROW_INNER : ROW_OUTER);
    }
}

/* The map of a value in the space. */
static void map_of(const struct row_schedule *row, uint32_t value, struct space_map *map)
{
    const struct label *label = &row->labels.values[value];

    if (!label->folded) {
        *map = row->root;
        return;
    }
    *map = (struct space_map){.rank = row->e.s->block->values[value].rank};
    for (uint32_t d = 0; d < map->rank; d++)
        if (label->of[d] != LABEL_ONE)
            map->at[d] = row->root.at[label->of[d]];
}

static void plan_folds(struct row_schedule *row)
{
    const struct block *block = row->e.s->block;

    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct block_op *op = &block->ops[i];
        const struct fold_kind *fold = fold_kind_of(op->id);

        if (!fold)
            continue;
        row->folds[row->n_folds++] = (struct row_fold){
            .fold = {fold, row->e.s->module, block->values[op->in[0].value].dtype,
                     row->n_row < INT32_MAX ? KIR_I32 : KIR_I64, row->e.s->target},
            .computed_by = BLOCK_NONE,
            .node = expr_node(&row->e, op->in[0].value, &row->root),
            .value = op->out[0]};
    }
}

static void plan_stores(struct row_schedule *row)
{
    const struct block *block = row->e.s->block;

    row->whole_rows = arena_array(&row->e.arena, block->n_outputs + 1u, sizeof(*row->whole_rows));
    if (!row->whole_rows) {
        expr_fail(&row->e, FRIT_NO_HOST_MEMORY);
        return;
    }
    for (uint32_t i = 0; i < block->n_outputs; i++) {
        struct space_map map;
        uint32_t store;

        map_of(row, block->outputs[i], &map);
        store = expr_store(&row->e, block->outputs[i], &map);
        if (store != BLOCK_NONE)
            row->whole_rows[store] =
                label_storage(&row->labels, block, block->outputs[i]) == LABEL_FULL;
    }
}

/* Whether each fold's result is needed only at the map at which the fold computes it. */
static bool externals_fit(const struct row_schedule *row)
{
    for (uint32_t i = 0; i < row->e.n_nodes; i++) {
        const struct expr_node *node = &row->e.nodes[i];
        struct space_map map;

        if (node->kind != EXPR_EXTERNAL)
            continue;
        map_of(row, node->value, &map);
        if (!row->labels.values[node->value].folded || map.rank != node->map->rank ||
            memcmp(map.at, node->map->at, map.rank * sizeof(*map.at)) != 0)
            return false;
    }
    return true;
}

/* ---- levels ---- */

static bool expr_varies(const struct space *space, const struct space_expr *at)
{
    for (uint32_t d = 0; d < space->n_dims; d++)
        if (at->k[d] && space->tag[d] == ROW_INNER)
            return true;
    for (uint32_t a = 0; a < space->n_leaves; a++)
        if (at->k[SPACE_DIMS + a] && expr_varies(space, &space->leaf[a].of))
            return true;
    return false;
}

static uint32_t fold_level(const struct row_schedule *row, uint32_t value)
{
    for (uint32_t i = 0; i < row->n_folds; i++)
        if (row->folds[i].value == value)
            return row->folds[i].level;
    return 0;
}

static void find_node(struct row_schedule *row, uint32_t number)
{
    const struct expr_node *node = &row->e.nodes[number];

    if (node->kind == EXPR_LOAD || node->indexed)
        row->varies[number] = expr_varies(&row->e.space, &node->at);
    if (node->kind == EXPR_EXTERNAL)
        row->level[number] = fold_level(row, node->value);
    for (uint32_t i = 0; node->kind == EXPR_OP && i < node->n_in; i++) {
        if (node->in[i] == BLOCK_NONE)
            continue;
        if (row->level[node->in[i]] > row->level[number])
            row->level[number] = row->level[node->in[i]];
        row->varies[number] |= row->varies[node->in[i]];
    }
}

/* The kind of op that computes the node of a float, F32 or F64; FRIT_OP_LIMIT: none does. */
static uint32_t float_op(const struct row_schedule *row, uint32_t node)
{
    const struct block *block = row->e.s->block;
    const struct block_value *value =
        node == BLOCK_NONE ? NULL : &block->values[row->e.nodes[node].value];

    if (!value || row->e.nodes[node].kind != EXPR_OP ||
        (value->dtype != FRIT_F32 && value->dtype != FRIT_F64))
        return FRIT_OP_LIMIT;
    return block->ops[value->maker].id;
}

/* The fold x_max = max(x) before fold number `i` where that is the sum of exp(x - x_max). */
static uint32_t max_beside(const struct row_schedule *row, uint32_t i)
{
    const struct expr_node *nodes = row->e.nodes;
    uint32_t exponential = row->folds[i].node, difference, x, most;

    if (row->folds[i].fold.kind->id != FRIT_OP_sum || float_op(row, exponential) != FRIT_OP_exp)
        return BLOCK_NONE;
    difference = nodes[exponential].in[0];
    if (float_op(row, difference) != FRIT_OP_sub)
        return BLOCK_NONE;
    x = nodes[difference].in[0];
    most = nodes[difference].in[1];
    for (uint32_t k = 0; k < i && most != BLOCK_NONE; k++)
        if (row->folds[k].fold.kind == fold_kind_of(FRIT_OP_max) && row->folds[k].node == x &&
            nodes[most].kind == EXPR_EXTERNAL && nodes[most].value == row->folds[k].value)
            return k;
    return BLOCK_NONE;
}

static void set_level(struct row_schedule *row, struct row_fold *fold)
{
    fold->level = row->level[fold->node] + 1;
    if (row->rescales)
        fold->computed_by = max_beside(row, (uint32_t)(fold - row->folds));
    if (fold->computed_by != BLOCK_NONE) {
        row->folds[fold->computed_by].fold.kind = &fold_max_exp_sum;
        fold->level = row->folds[fold->computed_by].level;
    }
    if (fold->level > row->n_levels)
        row->n_levels = fold->level;
}

/* Nodes are in topological order, and a fold's elements precede its result. */
static void find_levels(struct row_schedule *row)
{
    uint32_t next = 0;

    row->n_levels = 0;

    row->level = arena_array(&row->e.arena, row->e.n_nodes + 1u, sizeof(*row->level));
    row->varies = arena_array(&row->e.arena, row->e.n_nodes + 1u, sizeof(*row->varies));
    if (!row->level || !row->varies) {
        expr_fail(&row->e, FRIT_NO_HOST_MEMORY);
        return;
    }
    for (uint32_t i = 0; i <= row->n_folds; i++) {
        uint32_t end = i < row->n_folds ? row->folds[i].node + 1 : row->e.n_nodes;

        for (; next < end; next++)
            find_node(row, next);
        if (i == row->n_folds)
            break;
        set_level(row, &row->folds[i]);
    }
}

bool *row_needs(struct row_schedule *row, uint32_t pass)
{
    const struct expr *e = &row->e;
    bool *needed = arena_array(&row->e.arena, e->n_nodes + 1u, sizeof(*needed));

    for (uint32_t i = 0; needed && i < row->n_folds; i++)
        needed[row->folds[i].node] |=
            row->folds[i].level == pass + 1 && row->folds[i].computed_by == BLOCK_NONE;
    for (uint32_t i = 0; needed && i < e->n_stores; i++)
        needed[e->stores[i].node] |= row->whole_rows[i] && row->level[e->stores[i].node] == pass;
    for (uint32_t i = e->n_nodes; needed && i-- > 0;) {
        const struct expr_node *node = &e->nodes[i];

        for (uint32_t k = 0; needed[i] && node->kind == EXPR_OP && k < node->n_in; k++)
            if (node->in[k] != BLOCK_NONE)
                needed[node->in[k]] = true;
    }
    return needed;
}

/* ---- the form ---- */

static bool any_whole_rows(const struct row_schedule *row)
{
    for (uint32_t i = 0; i < row->e.n_stores; i++)
        if (row->whole_rows[i])
            return true;
    return false;
}

static bool all_whole_rows(const struct row_schedule *row)
{
    for (uint32_t i = 0; i < row->e.n_stores; i++)
        if (!row->whole_rows[i])
            return false;
    return true;
}

uint32_t row_passes(const struct row_schedule *row)
{
    return row->n_levels + any_whole_rows(row);
}

/* Elements of a chunk.  Where each lane has a row, every chunk leaves one partial result per lane
 * to fold: such rows are split into no more chunks than keep the device busy, and short rows are
 * not split.  Where rows stay in caches a chunk has what fits there. */
static int64_t choose_chunk(const struct row_schedule *row, int64_t blocks)
{
    const struct kir_target *target = row->e.s->target;
    const struct kir_tuning tuning = sched_tuning(row->e.s);
    int64_t chunk = row->form == ROW_LANE ? tuning.row_lane_chunk : tuning.row_group_chunk;

    if (row->form == ROW_LANE && tuning.short_column_chunk &&
        row->n_row <= tuning.short_column_chunk)
        return tuning.short_column_chunk;
    if (row->form == ROW_LANE)
        while (chunk < tuning.long_chunk && row->n_row / (2 * chunk) * blocks >= target->units / 2)
            chunk *= 2;
    while ((row->n_row / chunk + 1) * blocks > tuning.max_chunk && chunk < INT32_MAX / 2)
        chunk *= 2;
    return chunk;
}

/* Whether rows in lockstep, of as few lanes as a group has, stay in caches from pass to pass, and
 * there are enough of them. */
static bool stays_in_strips(const struct row_schedule *row)
{
    const struct kir_tuning tuning = sched_tuning(row->e.s);

    return row->in_lockstep && row_passes(row) > 1 && row->outer.count >= tuning.row_lane_enough &&
           row->n_row * tuning.many_rows <= STRIP_MOST &&
           row->outer.count * row->n_row >= STRIPS_LEAST;
}

/* Decides by sizes and by facts of the target that do not depend on the number of units, so that
 * results do not either.  Where rows stay in caches after the first pass, a group handles whole
 * rows, if there are enough of them. */
static int64_t choose_splits(struct row_schedule *row)
{
    const struct kir_tuning tuning = sched_tuning(row->e.s);
    const int64_t enough = row->form == ROW_LANE ? tuning.row_lane_enough : tuning.row_group_enough;
    const struct kir_target *target = row->e.s->target;
    int64_t blocks = row->outer.count, splits;
    uint32_t passes = row_passes(row);

    if (row->form == ROW_LANE)
        blocks = (blocks + target->lanes - 1) / target->lanes;
    row->chunk_size = choose_chunk(row, blocks);
    splits = (row->n_row + row->chunk_size - 1) / row->chunk_size;
    if (splits < 2 || !target->i64 || row->n_levels + passes > SCHED_PHASES || stays_in_strips(row))
        return 1;
    return row->outer.count < enough ||
                   (target->rereads_are_cached && (passes == 1 || row->in_lockstep))
               ? splits
               : 1;
}

/* Rows per group where each lane has a row.  Lanes in lockstep read contiguous memory, the longer
 * the better while their states stay in caches, and best from full groups; but groups stay small if
 * passes read the memory again while it is in caches. */
static uint32_t lane_rows(const struct row_schedule *row)
{
    const struct kir_target *target = row->e.s->target;
    uint32_t most = row->in_lockstep && row->n_chunks > 1 ? target->max_lanes : target->lanes;
    uint32_t lanes = most;

    while (lanes > target->lanes && row->outer.count % lanes)
        lanes /= 2;
    lanes = row->outer.count % lanes ? most : lanes;
    while (stays_in_strips(row) && lanes > sched_tuning(row->e.s).many_rows &&
           lanes * row->n_row > STRIP_WANTED)
        lanes /= 2;
    return lanes;
}

void row_partition(struct row_schedule *row, uint32_t lanes)
{
    if (row->form == ROW_LANE) {
        partition_init(&row->partition, &row->e, &row->outer, lanes);
        lanes = row->partition.lanes;
    }
    row->lanes = lanes;
    row->lanes_per_row = row->form == ROW_LANE ? 1 : lanes;
}

/* Lanes of a group with a row.  Near ones combine what they have without a barrier: where all can
 * keep a row and there are rows for the whole device, they are enough. */
static uint32_t group_lanes(const struct row_schedule *row)
{
    const struct kir_target *target = row->e.s->target;
    const uint32_t near = target->near_lanes, resident = sched_tuning(row->e.s).resident;
    const bool enough = near && row->n_row <= (int64_t)near * resident && row->n_chunks == 1 &&
                        row->outer.count >= target->units;

    return sched_lanes(enough ? near : target->lanes_per_row, row->n_row);
}

static void choose_form(struct row_schedule *row)
{
    const struct space *space = &row->e.space;
    const struct kir_target *target = row->e.s->target;
    const struct kir_tuning tuning = sched_tuning(row->e.s);
    bool across = space->n_dims && space->tag[space->n_dims - 1] == ROW_OUTER;
    int64_t n_outer = row->outer.count;

    row->resident = 0;
    if (across && n_outer >= tuning.many_rows && row->n_row > tuning.short_row && slab_plan(row))
        return;
    row->form = n_outer >= tuning.many_rows && (across || row->n_row <= tuning.short_row)
                    ? ROW_LANE
                    : ROW_GROUP;
    row->in_lockstep = row->form == ROW_LANE && row->n_row > tuning.short_row && across &&
                       target->lanes_interleaved;
    row->n_chunks = choose_splits(row);
    row_partition(row, row->form == ROW_LANE
                           ? sched_spread_lanes(row->e.s, sched_lanes(lane_rows(row), n_outer),
                                                n_outer * row->n_chunks)
                           : group_lanes(row));
    if (row->form == ROW_GROUP && row->n_chunks == 1 &&
        row->n_row <= (int64_t)tuning.resident * row->lanes) {
        row->resident = (uint32_t)((row->n_row + row->lanes - 1) / row->lanes);
        row->unmasked = (uint32_t)(row->n_row / row->lanes);
    }
}

/* Whether each pass reads the row from memory. */
static bool reads_again(const struct row_schedule *row)
{
    return !row->e.s->target->rereads_are_cached && !row->resident &&
           row->n_row > sched_tuning(row->e.s).short_row;
}

/* ---- aliases ---- */

/* The inputs that passes after this one load, as bits. */
static uint64_t inputs_of_later_passes(const struct row_schedule *row, uint32_t pass)
{
    uint64_t inputs = 0;

    for (uint32_t i = 0; i < row->n_folds; i++)
        if (row->folds[i].level - 1 > pass)
            inputs |= row->e.nodes[row->folds[i].node].inputs;
    for (uint32_t i = 0; i < row->e.n_stores; i++)
        if (!row->whole_rows[i] || row->level[row->e.stores[i].node] > pass)
            inputs |= row->e.nodes[row->e.stores[i].node].inputs;
    return inputs;
}

static void find_aliases(struct row_schedule *row)
{
    for (uint32_t i = 0; i < row->e.n_stores; i++) {
        const struct expr_store *store = &row->e.stores[i];
        uint64_t alias = expr_alias(&row->e, store->output);

        if (row->whole_rows[i])
            alias &= ~inputs_of_later_passes(row, row->level[store->node]);
        else if (row->form != ROW_LANE || row->n_chunks > 1)
            alias = 0; /* one lane stores what other lanes or groups may still load */
        row->e.s->numbers->alias[store->output] = alias;
    }
}

/* ---- building ---- */

/* Nothing is stored.  Folds of nothing are. */
static bool is_empty(const struct row_schedule *row)
{
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&row->e, row->labels.root, dims);
    for (uint32_t d = 0; d < row->root.rank; d++)
        if (dims[d] == 0 && (!(row->labels.axes >> d & 1) || all_whole_rows(row)))
            return true;
    return false;
}

/* An upper bound of a lane's loop rounds in one phase. */
static int64_t rounds_of(const struct row_schedule *row)
{
    int64_t lanes = row->lanes_per_row;
    int64_t n = row->n_chunks > 1 ? row->chunk_size : row->n_row;
    int64_t passes = row->n_chunks > 1 ? 1 : row_passes(row);

    return passes * ((n + lanes - 1) / lanes) + row->n_chunks;
}

static frit_status build(struct row_schedule *row, frit_err *err)
{
    struct sched *s = row->e.s;

    plan_root(row);
    plan_folds(row);
    plan_stores(row);
    TRY(expr_status(&row->e, err));
    if (!externals_fit(row))
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s uses a fold's result at other elements",
                    s->module->name);
    expr_settle(&row->e);
    find_levels(row);
    TRY(expr_status(&row->e, err));
    expr_args(s);
    delinearize_init(&row->outer, &row->e, ROW_OUTER);
    delinearize_init(&row->inner, &row->e, ROW_INNER);
    choose_form(row);
    if (reads_again(row)) {
        row->rescales = true;
        find_levels(row);
        TRY(expr_status(&row->e, err));
        choose_form(row);
    }
    if (row->outer.count * row->n_chunks > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s has too many rows", s->module->name);
    TRY(sched_check_rounds(s, rounds_of(row), err));
    if (is_empty(row)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&row->e, err);
    }
    row_emit(row);
    find_aliases(row);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(row->outer.count * row->n_row) * s->block->n_ops;
    return expr_status(&row->e, err);
}

static frit_status row_build(struct sched *s, frit_err *err)
{
    struct row_schedule row = {0};
    frit_status status;

    expr_init(&row.e, s);
    if (labels_init(&row.labels, s->block)) {
        status = row.labels.n_ops == s->block->n_ops && row.labels.n_folds <= ROW_FOLDS &&
                         row.labels.n_folds > 0
                     ? build(&row, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the row schedule",
                            s->module->name);
        labels_fini(&row.labels);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(struct label));
    }
    expr_fini(&row.e);
    return status;
}

const struct schedule sched_row = {
    .name = "row",
    .quality = QUALITY,
    .state_bytes = sizeof(struct labels),
    .value_bytes = sizeof(struct label),
    .match = row_match,
    .fits = row_fits,
    .build = row_build,
};
