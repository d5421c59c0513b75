/* SPDX-License-Identifier: Apache-2.0 */
/* Pushed ops go through one pass as they come.  finish makes programs of its blocks, searches the
 * ops again that their programs left, orders what was found, and goes on behind it if it is to
 * cover everything; whatever it found is given up for program order if the simulation finds fault
 * with it.
 *
 * Deaths stand at the last use, so one may be added to an op that was fed already: as where a scope
 * ends.  Its block is then fed again before anything is decided by it, and finish begins with a new
 * pass that knows of all deaths.  Ops that finish takes itself have all of theirs before the pass
 * sees the first. */
#include "search/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "search/order.h"
#include "search/pass.h"

struct search {
    struct search_ctx ctx;
    struct pass pass;
    uint32_t n_deaths; /* of the relative ops seen */
    bool late;         /* some of them came when the pass had taken their op */
    bool *found;       /* per op: it is in a chunk */
    uint32_t found_capacity;
    struct chunks chunks;
    bool failed;
    uint64_t n_dropped; /* of the stats, at the last reset */
};

/* ---- life ---- */

frit_status search_create(const struct search_config *config, struct search **out, frit_err *err)
{
    struct search *search = calloc(1, sizeof(*search));
    size_t n = (size_t)config->n_fusers + 1;

    *out = NULL;
    if (!search)
        return fail_memory(err, sizeof(*search));
    search->ctx.config = *config;
    if (!search->ctx.config.max_blocks)
        search->ctx.config.max_blocks = 1;
    search->ctx.spares = calloc(n, sizeof(*search->ctx.spares));
    if (!search->ctx.spares) {
        search->ctx.config.n_fusers = 0;
        search_destroy(search);
        return fail_memory(err, n * sizeof(*search->ctx.spares));
    }
    *out = search;
    return FRIT_OK;
}

void search_destroy(struct search *search)
{
    if (!search)
        return;
    pass_fini(&search->ctx, &search->pass);
    for (uint32_t k = 0; k < search->ctx.config.n_fusers; k++) {
        struct spare *spare = &search->ctx.spares[k];

        for (uint32_t i = 0; i < spare->count; i++)
            search->ctx.config.fusers[k].table->destroy(spare->clones[i]);
        free(spare->clones);
    }
    free(search->ctx.spares);
    free(search->ctx.values);
    relative_fini(&search->ctx.ops);
    arena_fini(&search->ctx.arena);
    free(search->found);
    free(search->chunks.items);
    free(search);
}

static void forget(struct search *search)
{
    struct search_ctx *ctx = &search->ctx;

    pass_reset(ctx, &search->pass);
    relative_reset(&ctx->ops);
    arena_reset(&ctx->arena);
    ctx->tally = ctx->tallied = 0;
    ctx->work = ctx->n_taken = 0;
    if (ctx->values_capacity)
        memset(ctx->values, 0, ctx->values_capacity * sizeof(*ctx->values));
    if (search->found_capacity)
        memset(search->found, 0, search->found_capacity * sizeof(*search->found));
    search->n_deaths = 0;
    search->late = false;
    search->chunks.count = 0;
}

void search_reset(struct search *search)
{
    forget(search);
    search->failed = false;
    search->n_dropped = search->ctx.stats.dropped;
}

void search_stats(const struct search *search, struct search_stats *out)
{
    *out = search->ctx.stats;
}

bool search_is_flawed(const struct search *search)
{
    return search->ctx.stats.dropped > search->n_dropped;
}

/* ---- taking ops ---- */

static frit_status grow(struct search *search, const struct relative *relative, frit_err *err)
{
    struct search_ctx *ctx = &search->ctx;
    uint32_t values = ctx->values_capacity, found = search->found_capacity;

    if (!array_grow(&ctx->values, &ctx->values_capacity, 0, relative->n_values,
                    sizeof(*ctx->values)) ||
        !array_grow(&search->found, &search->found_capacity, 0, relative->n_ops,
                    sizeof(*search->found)) ||
        !array_grow(&ctx->ops.ops, &ctx->ops.ops_room, 0, relative->n_ops, sizeof(*ctx->ops.ops)))
        return fail_memory(err, relative->n_ops * sizeof(*ctx->ops.ops));
    memset(ctx->values + values, 0, (ctx->values_capacity - values) * sizeof(*ctx->values));
    memset(search->found + found, 0, (search->found_capacity - found) * sizeof(*search->found));
    return FRIT_OK;
}

/* The next op with the deaths that it is the last use of; other deaths go to earlier ops. */
static frit_status note_op(struct search *search, const frit_op_desc *op, frit_err *err)
{
    struct search_ctx *ctx = &search->ctx;
    uint32_t number = ctx->ops.n_ops;
    frit_op_desc copy = *op;

    copy.n_dead = 0;
    copy.dead = arena_array(&ctx->ops.arena, 1, sizeof(*copy.dead));
    if (!copy.dead)
        return fail_memory(err, sizeof(*copy.dead));
    ctx->ops.ops[ctx->ops.n_ops++] = copy;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

        if (operand->kind == FRIT_OPERAND_TENSOR)
            ctx->values[operand->value].last = number + 1;
    }
    for (uint32_t k = 0; k < op->n_dead; k++) {
        uint32_t value = op->dead[k];
        struct search_value *known = &ctx->values[value];

        if (value >= ctx->ops.n_values || !known->last || known->dead)
            continue;
        known->dead = true;
        TRY(relative_bury(&ctx->ops, known->last - 1, value, err));
        if (known->last <= ctx->n_taken) {
            pass_bury(ctx, &search->pass, known->last - 1, value);
            search->late = true;
        }
    }
    search->n_deaths += op->n_dead;
    return FRIT_OK;
}

/* Whether ops that were seen list deaths that they did not. */
static bool has_late_deaths(const struct search *search, const struct relative *relative)
{
    uint32_t n = search->n_deaths;

    for (uint32_t i = search->ctx.ops.n_ops; i < relative->n_ops; i++)
        n += relative->ops[i].n_dead;
    return n != relative->n_deaths;
}

/* Room for all ops.  What is found depends on the ops with their deaths alone, not on when it was
 * told: deaths that were added to ops seen mean to begin again. */
static frit_status begin(struct search *search, const struct relative *relative, frit_err *err)
{
    if (has_late_deaths(search, relative))
        forget(search);
    TRY(grow(search, relative, err));
    search->ctx.ops.n_values = relative->n_values;
    return pass_reserve(&search->pass, relative->n_ops, err);
}

static frit_status take_new(struct search *search, const struct relative *relative, frit_err *err)
{
    TRY(begin(search, relative, err));
    for (uint32_t i = search->ctx.ops.n_ops; i < relative->n_ops; i++) {
        TRY(note_op(search, &relative->ops[i], err));
        TRY(pass_take(&search->ctx, &search->pass, i, err));
    }
    return FRIT_OK;
}

frit_status search_push(struct search *search, const struct relative *relative, frit_err *err)
{
    frit_status st;

    if (search->failed)
        return fail(err, FRIT_INTERNAL, "a search that failed or finished goes on");
    st = take_new(search, relative, err);
    search->failed = st != FRIT_OK;
    return st;
}

bool search_open(const struct search *search)
{
    return !search->ctx.ops.n_ops || pass_open(&search->pass);
}

/* ---- finding ---- */

/* A block's program, or its first op by itself. */
static frit_status close_block(struct search *search, struct block *block, frit_err *err)
{
    struct search_ctx *ctx = &search->ctx;
    struct plan_block found = {.ops = block->ops, .n_ops = 1, .end = block->end};
    frit_status st;

    block_refresh(ctx, block);
    TRY(block_finish(ctx, block, &found.program, &found.n_ops, &found.score, err));
    if (!found.program) {
        found = (struct plan_block){.ops = block->ops, .n_ops = 1, .end = PLAN_END_SINGLE};
    } else if (found.n_ops < block->n_ops) {
        found.end = PLAN_END_SHORT;
    }
    for (uint32_t i = 0; i < found.n_ops; i++)
        search->found[found.ops[i]] = true;
    st = chunks_add(ctx, &search->chunks, &found, err);
    if (st)
        program_unref(found.program);
    return st;
}

/* Ends the pass; *end is one beyond the last op that it found a place for. */
static frit_status close_pass(struct search *search, uint32_t *end, frit_err *err)
{
    TRY(pass_merge_rest(&search->ctx, &search->pass, err));
    for (uint64_t rest = search->pass.dag.live; rest; rest &= rest - 1) {
        const struct plan_block *chunk;

        TRY(close_block(search, search->pass.blocks[dag_first(rest)], err));
        chunk = &search->chunks.items[search->chunks.count - 1];
        for (uint32_t i = 0; i < chunk->n_ops; i++) {
            if (chunk->ops[i] >= *end)
                *end = chunk->ops[i] + 1;
        }
    }
    pass_reset(&search->ctx, &search->pass);
    return FRIT_OK;
}

static uint32_t count_holes(const struct search *search, uint32_t first, uint32_t end)
{
    uint32_t n = 0;

    for (uint32_t i = first; i < end; i++)
        n += !search->found[i];
    return n;
}

/* Searches what blocks gave up, until nothing is left between `first` and `end`. */
static frit_status fill_holes(struct search *search, uint32_t first, uint32_t end, frit_err *err)
{
    search->ctx.stats.holes += count_holes(search, first, end);
    for (;;) {
        uint32_t last = 0;

        while (first < end && search->found[first])
            first++;
        if (first == end)
            return FRIT_OK;
        for (uint32_t i = first; i < end && !search->pass.stopped; i++) {
            if (!search->found[i])
                TRY(pass_take(&search->ctx, &search->pass, i, err));
        }
        TRY(close_pass(search, &last, err));
    }
}

/* Finds chunks for ops from `first` on with the pass that holds `taken` of them; *end: up to where
 * there are. */
static frit_status close_range(struct search *search, uint32_t first, uint32_t *end, frit_err *err)
{
    uint32_t begin = search->chunks.count;

    *end = first;
    TRY(close_pass(search, end, err));
    TRY(fill_holes(search, first, *end, err));
    return order_chunks(&search->ctx, &search->chunks, begin, first, *end, err);
}

/* The next range: the pass takes what it can from `first` on. */
static frit_status take_range(struct search *search, uint32_t first, frit_err *err)
{
    for (uint32_t i = first; i < search->ctx.ops.n_ops && !search->pass.stopped; i++)
        TRY(pass_take(&search->ctx, &search->pass, i, err));
    return FRIT_OK;
}

/* The rest of the ops, with all their deaths known before the pass takes any of them; all ops again
 * if one that it has taken got a death since. */
static frit_status take_rest(struct search *search, const struct relative *relative, frit_err *err)
{
    TRY(begin(search, relative, err));
    for (uint32_t i = search->ctx.ops.n_ops; i < relative->n_ops; i++)
        TRY(note_op(search, &relative->ops[i], err));
    if (search->late) {
        pass_reset(&search->ctx, &search->pass);
        search->ctx.work = search->ctx.n_taken = 0;
    }
    return take_range(search, search->ctx.n_taken, err);
}

static frit_status find(struct search *search, bool all, uint32_t *end, frit_err *err)
{
    TRY(close_range(search, 0, end, err));
    while (all && *end < search->ctx.ops.n_ops) {
        uint32_t first = *end;

        TRY(take_range(search, first, err));
        TRY(close_range(search, first, end, err));
    }
    return FRIT_OK;
}

/* ---- results ---- */

static void drop_programs(struct search *search)
{
    for (uint32_t c = 0; c < search->chunks.count; c++)
        program_unref(search->chunks.items[c].program);
    search->chunks.count = 0;
}

/* Whether the chunks can run in their order. */
static frit_status simulate(struct search *search, uint32_t n_ops, bool *valid, frit_err *err)
{
    uint32_t *order = arena_array(&search->ctx.arena, n_ops, sizeof(*order));
    frit_err fault = ERR_INIT;
    uint32_t n = 0;
    frit_status st;

    if (!order)
        return fail_memory(err, n_ops * sizeof(*order));
    for (uint32_t c = 0; c < search->chunks.count; c++) {
        const struct plan_block *block = &search->chunks.items[c];

        for (uint32_t i = 0; i < block->n_ops && n < n_ops; i++)
            order[n++] = block->ops[i];
    }
    st = plan_simulate(search->ctx.ops.ops, n_ops, search->ctx.ops.n_values, order, &fault);
    if (st == FRIT_NO_HOST_MEMORY)
        return fail_memory(err, n_ops);
    *valid = !st;
    return FRIT_OK;
}

static frit_status use_program_order(struct search *search, uint32_t n_ops, frit_err *err)
{
    drop_programs(search);
    search->ctx.stats.in_order++;
    for (uint32_t i = 0; i < n_ops; i++) {
        struct plan_block one = {.n_ops = 1, .ops = &i, .end = PLAN_END_SINGLE};

        TRY(chunks_add(&search->ctx, &search->chunks, &one, err));
    }
    return FRIT_OK;
}

static frit_status finish(struct search *search, const struct relative *relative, bool all,
                          const struct plan_block **blocks, uint32_t *n_ops, frit_err *err)
{
    struct plan_block *result;
    bool valid;

    TRY(take_rest(search, relative, err));
    TRY(find(search, all, n_ops, err));
    TRY(simulate(search, *n_ops, &valid, err));
    if (!valid)
        TRY(use_program_order(search, *n_ops, err));
    result = arena_array(&search->ctx.arena, search->chunks.count, sizeof(*result));
    if (!result)
        return fail_memory(err, search->chunks.count * sizeof(*result));
    memcpy(result, search->chunks.items, search->chunks.count * sizeof(*result));
    *blocks = result;
    return FRIT_OK;
}

frit_status search_finish(struct search *search, const struct relative *relative, bool all,
                          const struct plan_block **blocks, uint32_t *n_blocks, uint32_t *n_ops,
                          frit_err *err)
{
    frit_status st;

    *blocks = NULL;
    *n_blocks = *n_ops = 0;
    if (search->failed)
        return fail(err, FRIT_INTERNAL, "a search that failed or finished goes on");
    search->failed = true;
    st = finish(search, relative, all, blocks, n_ops, err);
    if (st)
        drop_programs(search);
    *n_blocks = search->chunks.count;
    return st;
}
