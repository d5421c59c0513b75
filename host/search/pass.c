/* SPDX-License-Identifier: Apache-2.0 */
/* Edges between blocks: a reader runs after the maker, and the op in which a value dies after all
 * readers.  A use of a view counts as one of the view alone: the memory that it shares with its
 * base is kept by its owners while steps run, and no program may store into it before.  An op in
 * program order needs earlier blocks only, so a new block never closes a cycle. */
#include "search/pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"

static bool is_open(const struct pass *pass, uint32_t block)
{
    return pass->blocks[block]->open;
}

static uint64_t open_blocks(const struct pass *pass)
{
    uint64_t open = 0;

    for (uint64_t rest = pass->dag.live; rest; rest &= rest - 1) {
        if (is_open(pass, dag_first(rest)))
            open |= dag_bit(dag_first(rest));
    }
    return open;
}

bool pass_open(const struct pass *pass)
{
    return !pass->stopped && open_blocks(pass);
}

/* ---- life ---- */

void pass_reset(struct search_ctx *ctx, struct pass *pass)
{
    for (uint32_t b = 0; b < DAG_BLOCKS; b++) {
        block_destroy(ctx, pass->blocks[b]);
        pass->blocks[b] = NULL;
        pass->apart[b] = 0;
    }
    pass->dag = (struct dag){0};
    pass->ordered = 0;
    pass->stopped = false;
    if (pass->values_room)
        memset(pass->values, 0, pass->values_room * sizeof(*pass->values));
    if (pass->place_room)
        memset(pass->place, PASS_NO_BLOCK, pass->place_room);
}

void pass_fini(struct search_ctx *ctx, struct pass *pass)
{
    pass_reset(ctx, pass);
    free(pass->values);
    free(pass->place);
    *pass = (struct pass){0};
}

frit_status pass_grow(const struct search_ctx *ctx, struct pass *pass, uint32_t n_ops,
                      frit_err *err)
{
    uint32_t values = pass->values_room, place = pass->place_room;

    if (!array_grow(&pass->values, &pass->values_room, 0, ctx->ops.n_values,
                    sizeof(*pass->values)) ||
        !array_grow(&pass->place, &pass->place_room, 0, n_ops, sizeof(*pass->place)))
        return fail_memory(err, ctx->ops.n_values * sizeof(*pass->values));
    memset(pass->values + values, 0, (pass->values_room - values) * sizeof(*pass->values));
    memset(pass->place + place, PASS_NO_BLOCK, pass->place_room - place);
    return FRIT_OK;
}

/* ---- values ---- */

static bool is_ordered(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row && row->traits & FRIT_OP_ORDERED;
}

/* Blocks that must run before the op, and those that have one of its values. */
static uint64_t needs_of(const struct pass *pass, const frit_op_desc *op, uint64_t *shares)
{
    uint64_t needs = is_ordered(op) ? pass->ordered : 0;

    *shares = 0;
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        needs |= pass->values[op->in[k].value].maker;
        *shares |= pass->values[op->in[k].value].maker | pass->values[op->in[k].value].readers;
    }
    for (uint32_t k = 0; k < op->n_dead; k++)
        needs |= pass->values[op->dead[k]].maker | pass->values[op->dead[k]].readers;
    return needs;
}

/* What the blocks know of an op's values after it was put into one. */
static void note(struct pass *pass, const frit_op_desc *op, uint32_t block)
{
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind == FRIT_OPERAND_TENSOR)
            pass->values[op->in[k].value].readers |= dag_bit(block);
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k].kind == FRIT_OPERAND_TENSOR)
            pass->values[op->out[k].value].maker = dag_bit(block);
    }
    if (is_ordered(op))
        pass->ordered = dag_bit(block);
}

void pass_bury(struct pass *pass, uint32_t op, uint32_t value)
{
    uint32_t block = pass->place[op];

    if (block == PASS_NO_BLOCK)
        return;
    pass->blocks[block]->stale = true;
    dag_order(&pass->dag, block, pass->values[value].maker | pass->values[value].readers);
}

/* ---- merging ---- */

/* b's ops and values now belong to a. */
static void rename_block(const struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < pass->blocks[b]->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[pass->blocks[b]->ops[i]];

        pass->place[pass->blocks[b]->ops[i]] = (uint8_t)a;
        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                pass->values[op->in[k].value].readers =
                    (pass->values[op->in[k].value].readers & ~dag_bit(b)) | dag_bit(a);
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                pass->values[op->out[k].value].maker = dag_bit(a);
        }
    }
    if (pass->ordered == dag_bit(b))
        pass->ordered = dag_bit(a);
}

/* Program order is always legal inside a block; one after the other where no edge is against it. */
static frit_status merge_somehow(struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b,
                                 struct block **merged, frit_err *err)
{
    struct block *x = pass->blocks[a], *y = pass->blocks[b];

    TRY(block_merge(ctx, x, y, BLOCK_MERGE_SORTED, merged, err));
    if (!*merged && !(pass->dag.before[a] & dag_bit(b)))
        TRY(block_merge(ctx, x, y, BLOCK_MERGE_AFTER, merged, err));
    if (!*merged && !(pass->dag.before[b] & dag_bit(a)))
        TRY(block_merge(ctx, x, y, BLOCK_MERGE_BEFORE, merged, err));
    return FRIT_OK;
}

/* Merges b into a if that is legal and hides nothing. */
static frit_status try_merge(struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b,
                             bool *done, frit_err *err)
{
    struct block *merged;

    *done = false;
    if (pass->apart[a] & dag_bit(b) || !dag_can_merge(&pass->dag, a, b))
        return FRIT_OK;
    TRY(merge_somehow(ctx, pass, a, b, &merged, err));
    if (!merged) {
        pass->apart[a] |= dag_bit(b);
        pass->apart[b] |= dag_bit(a);
        return FRIT_OK;
    }
    rename_block(ctx, pass, a, b);
    dag_merge(&pass->dag, a, b);
    block_destroy(ctx, pass->blocks[a]);
    block_destroy(ctx, pass->blocks[b]);
    pass->blocks[a] = merged;
    pass->blocks[b] = NULL;
    pass->apart[a] = pass->apart[b] = 0;
    for (uint32_t c = 0; c < DAG_BLOCKS; c++)
        pass->apart[c] &= ~(dag_bit(a) | dag_bit(b));
    *done = true;
    return FRIT_OK;
}

/* Merges what can be merged among these open blocks, each into the first that takes it. */
static frit_status merge_all(struct search_ctx *ctx, struct pass *pass, uint64_t blocks,
                             frit_err *err)
{
    for (; blocks; blocks &= blocks - 1) {
        uint32_t a = dag_first(blocks);

        for (uint64_t others = blocks & (blocks - 1); others; others &= others - 1) {
            uint32_t b = dag_first(others);
            bool done = false;

            if (is_open(pass, a))
                TRY(try_merge(ctx, pass, a, b, &done, err));
            if (done)
                blocks &= ~dag_bit(b);
        }
    }
    return FRIT_OK;
}

/* ---- placing ---- */

static frit_status put(struct search_ctx *ctx, struct pass *pass, uint32_t block, uint32_t op,
                       uint64_t needs, bool *taken, frit_err *err)
{
    TRY(block_add(ctx, pass->blocks[block], op, taken, err));
    if (!*taken)
        return FRIT_OK;
    dag_order(&pass->dag, block, needs);
    note(pass, &ctx->ops.ops[op], block);
    pass->place[op] = (uint8_t)block;
    return FRIT_OK;
}

static void stop(struct pass *pass)
{
    for (uint64_t rest = open_blocks(pass); rest; rest &= rest - 1)
        pass->blocks[dag_first(rest)]->end = PLAN_END_BLOCKS;
    pass->stopped = true;
}

static bool is_full(const struct search_ctx *ctx, const struct pass *pass)
{
    return (uint32_t)__builtin_popcountll(open_blocks(pass)) >= ctx->config.max_blocks;
}

static frit_status begin_block(struct search_ctx *ctx, struct pass *pass, uint32_t op,
                               uint64_t needs, bool *taken, frit_err *err)
{
    uint64_t shares;
    uint32_t block;

    if (is_full(ctx, pass)) {
        TRY(merge_all(ctx, pass, open_blocks(pass), err));
        needs = needs_of(pass, &ctx->ops.ops[op], &shares);
    }
    if (is_full(ctx, pass) || !~pass->dag.live) {
        stop(pass);
        return FRIT_OK;
    }
    block = dag_first(~pass->dag.live);
    TRY(block_create(ctx, &pass->blocks[block], err));
    pass->dag.live |= dag_bit(block);
    return put(ctx, pass, block, op, needs, taken, err);
}

/* Of the blocks that share a value with the op, after merging, the one that it joins. */
static frit_status choose(struct search_ctx *ctx, struct pass *pass, uint32_t op, uint64_t *needs,
                          uint32_t *block, frit_err *err)
{
    uint64_t shares;

    *block = PASS_NO_BLOCK;
    *needs = needs_of(pass, &ctx->ops.ops[op], &shares);
    shares &= open_blocks(pass);
    if (!shares && ctx->config.max_blocks == 1)
        shares = open_blocks(pass); /* the only one takes what it can */
    if (shares & (shares - 1)) {
        TRY(merge_all(ctx, pass, shares, err));
        *needs = needs_of(pass, &ctx->ops.ops[op], &shares);
        shares &= open_blocks(pass);
    }
    for (; shares; shares &= shares - 1) {
        struct block *other = pass->blocks[dag_first(shares)];

        if (!dag_can_join(&pass->dag, dag_first(shares), *needs))
            other->end = PLAN_END_SPLIT;
        else if (*block == PASS_NO_BLOCK ||
                 pass->blocks[*block]->ops[pass->blocks[*block]->n_ops - 1] <
                     other->ops[other->n_ops - 1])
            *block = dag_first(shares);
    }
    return FRIT_OK;
}

frit_status pass_take(struct search_ctx *ctx, struct pass *pass, uint32_t op, frit_err *err)
{
    uint64_t needs;
    uint32_t block;
    bool taken = false;

    if (pass->stopped)
        return FRIT_OK;
    TRY(choose(ctx, pass, op, &needs, &block, err));
    if (block != PASS_NO_BLOCK)
        TRY(put(ctx, pass, block, op, needs, &taken, err));
    if (taken)
        return FRIT_OK;
    return begin_block(ctx, pass, op, needs, &taken, err);
}
