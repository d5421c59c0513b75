/* SPDX-License-Identifier: Apache-2.0 */
/* The scan schedule: one cumulative sum, product, maximum or minimum, with elementwise ops and
 * views around.
 *
 * Many rows get a lane each if they are short or if neighbouring lanes access neighbouring
 * elements; otherwise a group scans a row.  Few long rows are split into chunks: a first phase
 * stores the total of each chunk, the second scans each chunk starting with the totals before it,
 * which reads elements twice.  The order of sums depends only on sizes and on facts of the target
 * other than its number of units, so results do not depend on how many groups run at once.
 *
 * Sums and products of narrower floats accumulate in F64 if the target has it: since every partial
 * sum is a result, there is no cheaper way to round each only once. */
#include "lower/schedule/scan.h"

#include <frit/op_table.h>

#include "base/fail.h"
#include "lower/rows/rows.h"

enum { QUALITY = 900 };

/* ---- matching ---- */

/* The fold whose partial results are the results of the scan. */
static const struct fold_kind *fold_of_scan(uint32_t id)
{
    static const struct {
        uint32_t scan, fold;
    } rows[] = {{FRIT_OP_cumsum, FRIT_OP_sum},
                {FRIT_OP_cumprod, FRIT_OP_prod},
                {FRIT_OP_cummax, FRIT_OP_max},
                {FRIT_OP_cummin, FRIT_OP_min}};

    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].scan == id)
            return fold_kind_of(rows[i].fold);
    return NULL;
}

static bool takes(const struct block *block, uint32_t op)
{
    const struct block_op *o = &block->ops[op];
    int64_t axis;

    if (!fold_of_scan(o->id) || o->n_in != 1 || o->in[0].kind != FRIT_OPERAND_TENSOR)
        return false;
    axis = ((const frit_attrs_axis *)o->attrs)->axis;
    return axis >= 0 && axis < block->values[o->in[0].value].rank;
}

static bool scan_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, takes);
}

/* ---- planning ---- */

/* The type in which results are accumulated. */
static uint32_t accumulated_as(const struct scan *scan, uint32_t dtype)
{
    bool rounds = scan->fold.kind->id == FRIT_OP_sum || scan->fold.kind->id == FRIT_OP_prod;

    return rounds && lower_is_float(dtype) && scan->e.s->target->f64 ? FRIT_F64 : dtype;
}

static void plan(struct scan *scan)
{
    const struct block *block = scan->e.s->block;
    const struct block_op *op = &block->ops[scan->anchor.op];
    uint32_t x = op->in[0].value, axis = (uint32_t)((const frit_attrs_axis *)op->attrs)->axis;
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&scan->e, x, dims);
    scan->n_row = dims[axis];
    scan->root.rank = block->values[x].rank;
    for (uint32_t d = 0; d < scan->root.rank; d++)
        scan->root.at[d] =
            space_dim(&scan->e.space, dims[d] ? dims[d] : 1, d == axis ? SCAN_INNER : SCAN_OUTER);
    scan->dtype = block->values[x].dtype;
    scan->fold = (struct fold){.kind = fold_of_scan(op->id), .m = scan->e.s->module};
    scan->fold.dtype = accumulated_as(scan, scan->dtype);
    scan->node = expr_node(&scan->e, x, &scan->root);
    anchor_stores(&scan->anchor, &scan->e, &scan->root);
    scan->result = anchor_result(&scan->anchor, &scan->e, 0);
    expr_settle(&scan->e);
}

static bool is_empty(const struct scan *scan)
{
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&scan->e, scan->e.s->block->ops[scan->anchor.op].in[0].value, dims);
    for (uint32_t d = 0; d < scan->root.rank; d++)
        if (dims[d] == 0)
            return true;
    return false;
}

/* ---- the form ---- */

static void choose_form(struct scan *scan)
{
    const struct space *space = &scan->e.space;
    const struct kir_target *target = scan->e.s->target;
    const struct kir_tuning tuning = sched_tuning(scan->e.s);
    bool across = space->n_dims && space->tag[space->n_dims - 1] == SCAN_OUTER;
    int64_t n_outer = scan->outer.count, pieces;

    scan->form = scan->n_row <= tuning.short_row || (n_outer >= tuning.many_rows && across)
                     ? SCAN_LANE
                     : SCAN_GROUP;
    scan->lanes = scan->form == SCAN_LANE
                      ? sched_spread_lanes(scan->e.s, sched_lanes(target->lanes, n_outer), n_outer)
                      : sched_lanes(target->lanes_per_row, scan->n_row);
    if (scan->form == SCAN_LANE) {
        partition_init(&scan->partition, &scan->e, &scan->outer, scan->lanes);
        scan->lanes = scan->partition.lanes;
    }
    scan->chunk_size = scan->form == SCAN_LANE ? tuning.scan_lane_chunk : tuning.scan_group_chunk;
    pieces = scan->form == SCAN_LANE ? n_outer / tuning.many_rows : n_outer;
    scan->n_chunks = 1;
    if (scan->n_row < 2 * scan->chunk_size || pieces >= tuning.scan_enough)
        return;
    while (scan->n_row / scan->chunk_size > tuning.scan_most_chunk)
        scan->chunk_size *= 2;
    scan->n_chunks = (scan->n_row + scan->chunk_size - 1) / scan->chunk_size;
}

/* An upper bound of a lane's loop rounds in one phase: each block of rounds and each total counts
 * as one more. */
static int64_t rounds_of(const struct scan *scan)
{
    int64_t lanes = scan->form == SCAN_GROUP ? scan->lanes : 1;
    int64_t n = scan->n_chunks > 1 ? scan->chunk_size : scan->n_row;

    return 2 * (n / lanes + 1) + scan->n_chunks;
}

/* ---- building ---- */

static frit_status build(struct scan *scan, frit_err *err)
{
    struct sched *s = scan->e.s;

    plan(scan);
    TRY(expr_status(&scan->e, err));
    expr_args(s);
    if (is_empty(scan)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&scan->e, err);
    }
    delinearize_init(&scan->outer, &scan->e, SCAN_OUTER);
    delinearize_init(&scan->inner, &scan->e, SCAN_INNER);
    choose_form(scan);
    if (scan->outer.count > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s has too many rows", s->module->name);
    TRY(sched_check_rounds(s, rounds_of(scan), err));
    scan_emit(scan);
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        s->numbers->alias[i] = expr_alias(&scan->e, i);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(scan->outer.count * scan->n_row) * s->block->n_ops;
    return expr_status(&scan->e, err);
}

static frit_status scan_build(struct sched *s, frit_err *err)
{
    struct scan scan = {0};
    frit_status status;

    expr_init(&scan.e, s);
    if (anchor_init(&scan.anchor, s->block, takes)) {
        status = scan.anchor.found && scan.anchor.n_ops == s->block->n_ops
                     ? build(&scan, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the scan schedule",
                            s->module->name);
        anchor_fini(&scan.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(*scan.anchor.lineage));
    }
    expr_fini(&scan.e);
    return status;
}

const struct schedule sched_scan = {
    .name = "scan",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = scan_match,
    .fits = anchor_fits,
    .build = scan_build,
};
