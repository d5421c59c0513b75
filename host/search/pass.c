/* SPDX-License-Identifier: Apache-2.0 */
/* Edges between blocks: readers run after the maker of a value, and the op in which it dies after
 * all readers.  A use of a view counts only for the view: memory that it shares with its base is
 * kept while steps run, and no program stores into it before.  In program order an op depends only
 * on earlier blocks, so a new block never closes a cycle. */
#include "search/pass.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"
#include "graph/op.h"
#include "search/block.h"

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

/* Takes time proportional to the block's ops, not to all ops of the search. */
static void clear_block(struct search_ctx *ctx, struct pass *pass, const struct block *block)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[block->ops[i]];

        pass->block_of[block->ops[i]] = PASS_NO_BLOCK;
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
            clear_block(ctx, pass, pass->blocks[b]);
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
    free(pass->block_of);
    *pass = (struct pass){0};
}

frit_status pass_reserve(struct pass *pass, uint32_t n_ops, frit_err *err)
{
    uint32_t before = pass->block_of_capacity;

    if (!array_grow(&pass->block_of, &pass->block_of_capacity, 0, n_ops, sizeof(*pass->block_of)))
        return fail_memory(err, n_ops * sizeof(*pass->block_of));
    memset(pass->block_of + before, PASS_NO_BLOCK, pass->block_of_capacity - before);
    return FRIT_OK;
}

/* ---- values ---- */

static bool is_ordered(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row && row->traits & FRIT_OP_ORDERED;
}

/* Returns the blocks that must run before the op; *shares: those that use or make one of its
 * operands. */
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

/* Records the block of an op for its values. */
static void record_op(struct search_ctx *ctx, struct pass *pass, const frit_op_desc *op,
                      uint32_t block)
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

void pass_add_death(const struct search_ctx *ctx, struct pass *pass, uint32_t op, uint32_t value)
{
    uint32_t block = pass->block_of[op];

    if (block == PASS_NO_BLOCK)
        return;
    pass->blocks[block]->stale = true;
    dag_order(&pass->dag, block, ctx->values[value].maker | ctx->values[value].readers);
}

/* ---- refusals ---- */

/* Whether the first results of two blocks have equal type and shape. */
static bool are_alike(const struct search_ctx *ctx, const struct block *a, const struct block *b)
{
    const frit_op_desc *x = &ctx->ops.ops[a->ops[0]], *y = &ctx->ops.ops[b->ops[0]];

    return x->n_out && y->n_out && x->out[0].kind == y->out[0].kind &&
           x->out[0].dtype == y->out[0].dtype && x->out[0].rank == y->out[0].rank &&
           memcmp(x->out[0].extent, y->out[0].extent, x->out[0].rank * sizeof(*x->out[0].extent)) ==
               0;
}

static uint32_t first_class(const struct search_ctx *ctx, const struct block *block)
{
    const frit_op_info *row = op_row(ctx->ops.ops[block->ops[0]].id);

    return row ? row->cls : FRIT_CLASS_NONE;
}

static bool are_unordered(const struct pass *pass, uint32_t a, uint32_t b)
{
    return !(pass->dag.before[a] & dag_bit(b)) && !(pass->dag.before[b] & dag_bit(a));
}

/* Whether block a refused a block like b, so that a trial would be in vain. */
static bool has_refused(const struct search_ctx *ctx, const struct pass *pass, uint32_t a,
                        uint32_t b)
{
    const struct block *x = pass->blocks[a], *y = pass->blocks[b];
    const struct merge_refusal *refused = &x->refused;

    return refused->by == x->n_ops && !x->stale && y->n_ops >= refused->n_ops &&
           first_class(ctx, y) == refused->cls && (refused->alike || !are_alike(ctx, x, y)) &&
           are_unordered(pass, a, b);
}

/* Records in the larger block that merging with blocks like the smaller one does not pay. */
static void record_refusal(const struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b)
{
    bool first = pass->blocks[a]->n_ops >= pass->blocks[b]->n_ops;
    struct block *x = pass->blocks[first ? a : b], *y = pass->blocks[first ? b : a];

    if (are_unordered(pass, a, b))
        x->refused = (struct merge_refusal){.by = x->n_ops,
                                            .n_ops = y->n_ops,
                                            .cls = first_class(ctx, y),
                                            .alike = are_alike(ctx, x, y)};
}

/* ---- merging ---- */

/* Moves b's ops and values to a. */
static void rename_block(struct search_ctx *ctx, struct pass *pass, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < pass->blocks[b]->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[pass->blocks[b]->ops[i]];

        pass->block_of[pass->blocks[b]->ops[i]] = (uint8_t)a;
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

/* Merges b into a and destroys b. */
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

/* An attempt to merge two blocks. */
struct trial {
    uint32_t a, b;
    bool strict;   /* they are unrelated: merging must save something */
    uint32_t kept; /* the merged block, or PASS_NO_BLOCK */
};

/* Tries to append `second` to `first` unless that violates an edge. */
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

/* Tries orders of the ops of two blocks.  Program order is always legal; but if the blocks overlap
 * and are large, or are unrelated, one is appended to the other, so that only the smaller one is
 * pushed again. */
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

/* Whether the search may push more ops to try merging. */
static bool has_budget(const struct search_ctx *ctx)
{
    enum { ALWAYS = 256, PER_OP = 32 };

    return ctx->work < (uint64_t)ctx->config.n_fusers * (ALWAYS + PER_OP * ctx->n_taken);
}

/* Merges two blocks if that is legal and pays: then trial->kept is the merged block and the other
 * one is destroyed. */
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
        if (trial->strict)
            record_refusal(ctx, pass, a, b);
        return FRIT_OK;
    }
    absorb(ctx, pass, trial->kept, trial->kept == a ? b : a);
    return FRIT_OK;
}

/* Merges these open blocks as far as possible, each into the first that accepts it. */
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

/* Selects the next untried pair of open blocks: first with equal result types, then of similar
 * size, so that sizes double until programs are full, then small ones. */
static bool next_pair(const struct search_ctx *ctx, const struct pass *pass, struct trial *trial)
{
    uint64_t best = UINT64_MAX;

    for (uint64_t rest = open_blocks(pass); rest; rest &= rest - 1) {
        uint32_t a = dag_first(rest);

        for (uint64_t others = rest & (rest - 1) & ~pass->apart[a]; others; others &= others - 1) {
            uint32_t b = dag_first(others);
            const struct block *x = pass->blocks[a], *y = pass->blocks[b];
            uint32_t more = x->n_ops > y->n_ops ? x->n_ops - y->n_ops : y->n_ops - x->n_ops;
            uint64_t rank = (uint64_t)!are_alike(ctx, x, y) << 62 | (uint64_t)more << 31 |
                            (x->n_ops + y->n_ops);

            if (rank >= best || !dag_can_merge(&pass->dag, a, b) || has_refused(ctx, pass, a, b) ||
                has_refused(ctx, pass, b, a))
                continue;
            best = rank;
            trial->a = a;
            trial->b = b;
        }
    }
    return best < UINT64_MAX;
}

/* Merges two unrelated open blocks if that saves something for any pair. */
static frit_status merge_unrelated(struct search_ctx *ctx, struct pass *pass, frit_err *err)
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
        TRY(merge_unrelated(ctx, pass, err));
    }
    return FRIT_OK;
}

/* ---- placing ---- */

static frit_status add_to_block(struct search_ctx *ctx, struct pass *pass, uint32_t block,
                                uint32_t op, uint64_t needs, bool *taken, frit_err *err)
{
    TRY(block_add(ctx, pass->blocks[block], op, taken, err));
    if (!*taken)
        return FRIT_OK;
    dag_order(&pass->dag, block, needs);
    record_op(ctx, pass, &ctx->ops.ops[op], block);
    pass->block_of[op] = (uint8_t)block;
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

/* Removes the latest block, which has one op, and stops the pass before that op. */
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
    pass->block_of[last->ops[0]] = PASS_NO_BLOCK;
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

/* Begins a block with the op; if there are too many open ones, merges two or stops. */
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
    TRY(add_to_block(ctx, pass, block, op, needs, &taken, err)); /* the first op is always taken */
    if (!has_too_many(ctx, pass))
        return FRIT_OK;
    TRY(merge_unrelated(ctx, pass, err));
    if (has_too_many(ctx, pass))
        withdraw(ctx, pass, block, ordered);
    return FRIT_OK;
}

/* Merges the blocks that share a value with the op, and chooses the one that it joins. */
static frit_status choose(struct search_ctx *ctx, struct pass *pass, uint32_t op, uint64_t *needs,
                          uint32_t *block, frit_err *err)
{
    uint64_t shares;

    *block = PASS_NO_BLOCK;
    *needs = needs_of(ctx, pass, &ctx->ops.ops[op], &shares);
    shares &= open_blocks(pass);
    if (!shares && ctx->config.max_blocks == 1)
        shares = open_blocks(pass); /* the only block gets every op */
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
    if (op >= ctx->n_taken)
        ctx->n_taken = op + 1;
    TRY(choose(ctx, pass, op, &needs, &block, err));
    if (block != PASS_NO_BLOCK)
        TRY(add_to_block(ctx, pass, block, op, needs, &taken, err));
    if (taken)
        return FRIT_OK;
    return begin_block(ctx, pass, op, needs, err);
}

frit_status pass_place(struct search_ctx *ctx, struct pass *pass, const uint32_t *ops,
                       uint32_t n_ops, frit_err *err)
{
    uint64_t needs = 0, shares;
    uint32_t block;

    if (pass->stopped || !~pass->dag.live) {
        stop(pass);
        return FRIT_OK;
    }
    block = dag_first(~pass->dag.live);
    TRY(block_create_placed(ctx, block, ops, n_ops, &pass->blocks[block], err));
    pass->dag.live |= dag_bit(block);
    for (uint32_t i = 0; i < n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[ops[i]];

        needs |= needs_of(ctx, pass, op, &shares);
        record_op(ctx, pass, op, block);
        pass->block_of[ops[i]] = (uint8_t)block;
    }
    dag_order(&pass->dag, block, needs);
    return FRIT_OK;
}
