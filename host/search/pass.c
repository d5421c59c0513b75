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

/* In time for the ops that the blocks have, not for all that the search knows. */
static void forget_block(struct search_ctx *ctx, struct pass *pass, const struct block *block)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[block->ops[i]];

        pass->place[block->ops[i]] = PASS_NO_BLOCK;
        for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
            const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

            if (operand->kind == FRIT_OPERAND_TENSOR)
                ctx->values[operand->value].readers = ctx->values[operand->value].maker = 0;
        }
    }
}

void pass_reset(struct search_ctx *ctx, struct pass *pass)
{
    for (uint32_t b = 0; b < DAG_BLOCKS; b++) {
        if (pass->blocks[b])
            forget_block(ctx, pass, pass->blocks[b]);
        block_destroy(ctx, pass->blocks[b]);
        pass->blocks[b] = NULL;
        pass->apart[b] = 0;
    }
    pass->dag = (struct dag){0};
    pass->ordered = 0;
    pass->stopped = false;
}

void pass_fini(struct search_ctx *ctx, struct pass *pass)
{
    pass_reset(ctx, pass);
    free(pass->place);
    *pass = (struct pass){0};
}

frit_status pass_reserve(struct pass *pass, uint32_t n_ops, frit_err *err)
{
    uint32_t before = pass->place_capacity;

    if (!array_grow(&pass->place, &pass->place_capacity, 0, n_ops, sizeof(*pass->place)))
        return fail_memory(err, n_ops * sizeof(*pass->place));
    memset(pass->place + before, PASS_NO_BLOCK, pass->place_capacity - before);
    return FRIT_OK;
}

/* ---- values ---- */

static bool is_ordered(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row && row->traits & FRIT_OP_ORDERED;
}

/* Blocks that must run before the op, and those that have one of its values. */
static uint64_t needs_of(const struct search_ctx *ctx, const struct pass *pass,
                         const frit_op_desc *op, uint64_t *shares)
{
    const struct search_value *values = ctx->values;
    uint64_t needs = is_ordered(op) ? pass->ordered : 0;

    *shares = 0;
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        needs |= values[op->in[k].value].maker;
        *shares |= values[op->in[k].value].maker | values[op->in[k].value].readers;
    }
    for (uint32_t k = 0; k < op->n_dead; k++)
        needs |= values[op->dead[k]].maker | values[op->dead[k]].readers;
    return needs;
}

/* What the blocks know of an op's values after it was put into one. */
static void note(struct search_ctx *ctx, struct pass *pass, const frit_op_desc *op, uint32_t block)
{
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind == FRIT_OPERAND_TENSOR)
            ctx->values[op->in[k].value].readers |= dag_bit(block);
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k].kind == FRIT_OPERAND_TENSOR)
            ctx->values[op->out[k].value].maker = dag_bit(block);
    }
    if (is_ordered(op))
        pass->ordered = dag_bit(block);
}

void pass_bury(const struct search_ctx *ctx, struct pass *pass, uint32_t op, uint32_t value)
{
    uint32_t block = pass->place[op];

    if (block == PASS_NO_BLOCK)
        return;
    pass->blocks[block]->stale = true;
    dag_order(&pass->dag, block, ctx->values[value].maker | ctx->values[value].readers);
}

/* ---- merging ---- */

/* b's ops and values now belong to a. */
static void rename_block(struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < pass->blocks[b]->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[pass->blocks[b]->ops[i]];

        pass->place[pass->blocks[b]->ops[i]] = (uint8_t)a;
        for (uint32_t k = 0; k < op->n_in; k++) {
            struct search_value *value = &ctx->values[op->in[k].value];

            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                value->readers = (value->readers & ~dag_bit(b)) | dag_bit(a);
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                ctx->values[op->out[k].value].maker = dag_bit(a);
        }
    }
    if (pass->ordered == dag_bit(b))
        pass->ordered = dag_bit(a);
}

/* a, with b's ops; b is gone. */
static void absorb(struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b)
{
    rename_block(ctx, pass, a, b);
    dag_merge(&pass->dag, a, b);
    block_destroy(ctx, pass->blocks[b]);
    pass->blocks[b] = NULL;
    pass->apart[a] = pass->apart[b] = 0;
    for (uint32_t c = 0; c < DAG_BLOCKS; c++)
        pass->apart[c] &= ~(dag_bit(a) | dag_bit(b));
}

static bool ends_before(const struct block *a, const struct block *b)
{
    return a->ops[a->n_ops - 1] < b->ops[0];
}

/* Two blocks on trial, and what came of it. */
struct trial {
    uint32_t a, b;
    bool strict;   /* nothing is known that joins them */
    uint32_t kept; /* the block that has the ops of both, or PASS_NO_BLOCK */
};

/* `first` and then `second`, which no edge is against. */
static frit_status try_append(struct search_ctx *ctx, struct pass *pass, struct trial *trial,
                              uint32_t first, uint32_t second, frit_err *err)
{
    bool merged = false;

    if (trial->kept != PASS_NO_BLOCK || pass->dag.before[first] & dag_bit(second))
        return FRIT_OK;
    TRY(block_append(ctx, pass->blocks[first], pass->blocks[second], trial->strict, &merged, err));
    if (merged)
        trial->kept = first;
    return FRIT_OK;
}

/* Program order is always legal inside a block.  Where ops of two blocks lie between each other and
 * the blocks are not small, or nothing joins them, one is put behind the other: the larger is not
 * fed again then. */
static frit_status try_orders(struct search_ctx *ctx, struct pass *pass, struct trial *trial,
                              frit_err *err)
{
    enum { SMALL = 64 };
    uint32_t a = trial->a, b = trial->b;
    struct block *x = pass->blocks[a], *y = pass->blocks[b];
    bool swapped = x->n_ops < y->n_ops, merged = false;

    if (ends_before(x, y) || ends_before(y, x)) {
        swapped = ends_before(y, x);
    } else if (!trial->strict && x->n_ops + y->n_ops <= SMALL) {
        TRY(block_interleave(ctx, x, y, trial->strict, &merged, err));
        if (merged)
            trial->kept = a;
        swapped = false;
    }
    TRY(try_append(ctx, pass, trial, swapped ? b : a, swapped ? a : b, err));
    return try_append(ctx, pass, trial, swapped ? a : b, swapped ? b : a, err);
}

/* Whether the search has pushes left for trials. */
static bool has_budget(const struct search_ctx *ctx)
{
    enum { ALWAYS = 256, PER_OP = 32 };

    return ctx->work < (uint64_t)ctx->config.n_fusers * (ALWAYS + PER_OP * ctx->ops.n_ops);
}

/* Merges two blocks if that is legal and hides nothing: trial->kept has the ops of both then, the
 * other is gone. */
static frit_status try_merge(struct search_ctx *ctx, struct pass *pass, struct trial *trial,
                             frit_err *err)
{
    uint32_t a = trial->a, b = trial->b;

    trial->kept = PASS_NO_BLOCK;
    if (pass->apart[a] & dag_bit(b) || !dag_can_merge(&pass->dag, a, b) || !has_budget(ctx))
        return FRIT_OK;
    TRY(try_orders(ctx, pass, trial, err));
    if (trial->kept == PASS_NO_BLOCK) {
        pass->apart[a] |= dag_bit(b);
        pass->apart[b] |= dag_bit(a);
        return FRIT_OK;
    }
    absorb(ctx, pass, trial->kept, trial->kept == a ? b : a);
    return FRIT_OK;
}

/* Merges what can be merged among these open blocks, each into the first that takes it. */
static frit_status merge_all(struct search_ctx *ctx, struct pass *pass, uint64_t blocks,
                             frit_err *err)
{
    while (blocks) {
        struct trial trial = {.a = dag_first(blocks)};

        blocks &= blocks - 1;
        for (uint64_t others = blocks; others; others &= others - 1) {
            trial.b = dag_first(others);
            if (!is_open(pass, trial.a))
                break;
            TRY(try_merge(ctx, pass, &trial, err));
            if (trial.kept == PASS_NO_BLOCK)
                continue;
            trial.a = trial.kept;
            blocks &= ~dag_bit(trial.b);
        }
    }
    return FRIT_OK;
}

/* Whether the first results of two blocks are tensors of one type and shape. */
static bool are_alike(const struct search_ctx *ctx, const struct block *a, const struct block *b)
{
    const frit_op_desc *x = &ctx->ops.ops[a->ops[0]], *y = &ctx->ops.ops[b->ops[0]];

    return x->n_out && y->n_out && x->out[0].kind == y->out[0].kind &&
           x->out[0].dtype == y->out[0].dtype && x->out[0].rank == y->out[0].rank &&
           memcmp(x->out[0].extent, y->out[0].extent, x->out[0].rank * sizeof(*x->out[0].extent)) ==
               0;
}

/* Of the pairs of open blocks that were not tried the one to merge first: blocks alike, then such
 * of one size, so that sizes double until programs are full, then small ones. */
static bool next_pair(const struct search_ctx *ctx, const struct pass *pass, struct trial *trial)
{
    uint64_t least = UINT64_MAX;

    for (uint64_t rest = open_blocks(pass); rest; rest &= rest - 1) {
        uint32_t a = dag_first(rest);

        for (uint64_t others = rest & (rest - 1) & ~pass->apart[a]; others; others &= others - 1) {
            uint32_t b = dag_first(others);
            const struct block *x = pass->blocks[a], *y = pass->blocks[b];
            uint32_t more = x->n_ops > y->n_ops ? x->n_ops - y->n_ops : y->n_ops - x->n_ops;
            uint64_t rank = (uint64_t)!are_alike(ctx, x, y) << 62 | (uint64_t)more << 31 |
                            (x->n_ops + y->n_ops);

            if (rank >= least || !dag_can_merge(&pass->dag, a, b))
                continue;
            least = rank;
            trial->a = a;
            trial->b = b;
        }
    }
    return least < UINT64_MAX;
}

/* Merges two open blocks that nothing joins, if any gain by it. */
static frit_status merge_two(struct search_ctx *ctx, struct pass *pass, frit_err *err)
{
    struct trial trial = {.strict = true, .kept = PASS_NO_BLOCK};

    while (trial.kept == PASS_NO_BLOCK && has_budget(ctx) && next_pair(ctx, pass, &trial))
        TRY(try_merge(ctx, pass, &trial, err));
    return FRIT_OK;
}

frit_status pass_merge_rest(struct search_ctx *ctx, struct pass *pass, frit_err *err)
{
    for (uint64_t before = 0; before != pass->dag.live;) {
        before = pass->dag.live;
        TRY(merge_two(ctx, pass, err));
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
    note(ctx, pass, &ctx->ops.ops[op], block);
    pass->place[op] = (uint8_t)block;
    return FRIT_OK;
}

static void stop(struct pass *pass)
{
    for (uint64_t rest = open_blocks(pass); rest; rest &= rest - 1)
        pass->blocks[dag_first(rest)]->end = PLAN_END_BLOCKS;
    pass->stopped = true;
}

static bool has_too_many(const struct search_ctx *ctx, const struct pass *pass)
{
    return (uint32_t)__builtin_popcountll(open_blocks(pass)) > ctx->config.max_blocks;
}

/* Takes back the latest block, which has one op, and stops the walk before it. */
static void withdraw(struct search_ctx *ctx, struct pass *pass, uint32_t block, uint64_t ordered)
{
    const struct block *last = pass->blocks[block];
    const frit_op_desc *op = &ctx->ops.ops[last->ops[0]];

    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind == FRIT_OPERAND_TENSOR)
            ctx->values[op->in[k].value].readers &= ~dag_bit(block);
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k].kind == FRIT_OPERAND_TENSOR)
            ctx->values[op->out[k].value].maker = 0;
    }
    pass->place[last->ops[0]] = PASS_NO_BLOCK;
    pass->ordered = ordered;
    pass->dag.live &= ~dag_bit(block);
    pass->dag.before[block] = 0;
    for (uint32_t c = 0; c < DAG_BLOCKS; c++)
        pass->apart[c] &= ~dag_bit(block);
    pass->apart[block] = 0;
    block_destroy(ctx, pass->blocks[block]);
    pass->blocks[block] = NULL;
    stop(pass);
}

/* A block for the op, where others can make place for it or take it in. */
static frit_status begin_block(struct search_ctx *ctx, struct pass *pass, uint32_t op,
                               uint64_t needs, frit_err *err)
{
    uint64_t ordered = pass->ordered;
    bool taken;
    uint32_t block;

    if (!~pass->dag.live) {
        stop(pass);
        return FRIT_OK;
    }
    block = dag_first(~pass->dag.live);
    TRY(block_create(ctx, block, &pass->blocks[block], err));
    pass->dag.live |= dag_bit(block);
    TRY(put(ctx, pass, block, op, needs, &taken, err)); /* it is the first: taken */
    if (!has_too_many(ctx, pass))
        return FRIT_OK;
    TRY(merge_two(ctx, pass, err));
    if (has_too_many(ctx, pass))
        withdraw(ctx, pass, block, ordered);
    return FRIT_OK;
}

/* Of the blocks that share a value with the op, after merging, the one that it joins. */
static frit_status choose(struct search_ctx *ctx, struct pass *pass, uint32_t op, uint64_t *needs,
                          uint32_t *block, frit_err *err)
{
    uint64_t shares;

    *block = PASS_NO_BLOCK;
    *needs = needs_of(ctx, pass, &ctx->ops.ops[op], &shares);
    shares &= open_blocks(pass);
    if (!shares && ctx->config.max_blocks == 1)
        shares = open_blocks(pass); /* the only one takes what it can */
    if (shares & (shares - 1)) {
        TRY(merge_all(ctx, pass, shares, err));
        *needs = needs_of(ctx, pass, &ctx->ops.ops[op], &shares);
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
    return begin_block(ctx, pass, op, needs, err);
}
