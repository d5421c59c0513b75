/* SPDX-License-Identifier: Apache-2.0 */
/* Ops go through one pass as they are pushed.  search_finish makes programs of its blocks, searches
 * ops that these do not cover again, orders the results and, if everything is to be covered,
 * continues with the next range.  If the simulation finds a fault, the result is replaced by single
 * ops in program order.
 *
 * Deaths are moved to the last use, so one may be added to an op that was pushed already, for
 * instance at the end of a scope.  Its block is then pushed again before it is scored, and
 * search_finish begins a new pass that has all deaths.  Ops that only search_finish takes have all
 * their deaths from the start. */
#include "search/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "plan/verify.h"
#include "search/order.h"
#include "search/pass.h"

struct search {
    struct search_ctx ctx;
    struct pass pass;
    uint32_t n_deaths; /* number of deaths of the ops taken */
    bool late;         /* a death was added to an op that the pass had taken */
    bool *found;       /* per op: it is in a chunk */
    uint32_t found_capacity;
    struct chunks chunks;
    bool failed;
    uint64_t n_dropped; /* stats.dropped at the last reset */
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

static void clear(struct search *search)
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
    clear(search);
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
        !array_grow(&ctx->ops.ops, &ctx->ops.ops_capacity, 0, relative->n_ops,
                    sizeof(*ctx->ops.ops)))
        return fail_memory(err, relative->n_ops * sizeof(*ctx->ops.ops));
    memset(ctx->values + values, 0, (ctx->values_capacity - values) * sizeof(*ctx->values));
    memset(search->found + found, 0, (search->found_capacity - found) * sizeof(*search->found));
    return FRIT_OK;
}

/* Appends an op; each of its deaths is moved to the value's last use. */
static frit_status append_op(struct search *search, const frit_op_desc *op, frit_err *err)
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
        struct search_value *state = &ctx->values[value];

        if (value >= ctx->ops.n_values || !state->last || state->dead)
            continue;
        state->dead = true;
        TRY(relative_add_death(&ctx->ops, state->last - 1, value, err));
        if (state->last <= ctx->n_taken) {
            pass_add_death(ctx, &search->pass, state->last - 1, value);
            search->late = true;
        }
    }
    search->n_deaths += op->n_dead;
    return FRIT_OK;
}

/* Whether deaths were added to ops that were taken already. */
static bool has_late_deaths(const struct search *search, const struct relative *relative)
{
    uint32_t n = search->n_deaths;

    for (uint32_t i = search->ctx.ops.n_ops; i < relative->n_ops; i++)
        n += relative->ops[i].n_dead;
    return n != relative->n_deaths;
}

/* Reserves memory for all ops.  Starts again if deaths were added to ops taken already, since the
 * result must not depend on when they were added. */
static frit_status begin(struct search *search, const struct relative *relative, frit_err *err)
{
    if (has_late_deaths(search, relative))
        clear(search);
    TRY(grow(search, relative, err));
    search->ctx.ops.n_values = relative->n_values;
    return pass_reserve(&search->pass, relative->n_ops, err);
}

static frit_status take_new(struct search *search, const struct relative *relative, frit_err *err)
{
    TRY(begin(search, relative, err));
    for (uint32_t i = search->ctx.ops.n_ops; i < relative->n_ops; i++) {
        TRY(append_op(search, &relative->ops[i], err));
        TRY(pass_take(&search->ctx, &search->pass, i, err));
    }
    return FRIT_OK;
}

frit_status search_push(struct search *search, const struct relative *relative, frit_err *err)
{
    frit_status st;

    if (search->failed)
        return fail(err, FRIT_INTERNAL, "a search was used after it failed or finished");
    st = take_new(search, relative, err);
    search->failed = st != FRIT_OK;
    return st;
}

bool search_open(const struct search *search)
{
    return !search->ctx.ops.n_ops || pass_open(&search->pass);
}

/* ---- finding ---- */

/* Adds a chunk for a block: its program, or its first op singly. */
static frit_status add_chunk(struct search *search, struct block *block, frit_err *err)
{
    struct search_ctx *ctx = &search->ctx;
    struct plan_block found = {.ops = block->ops, .n_ops = 1, .end = block->end};
    frit_status st;

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

/* Adds a chunk for the block, or for what is left without its first views if that saves more: then
 * these become holes.  No fuser depends on where views of unrelated values were recorded, nor needs
 * the sizes that only they have. */
static frit_status close_block(struct search *search, struct block *block, frit_err *err)
{
    struct search_ctx *ctx = &search->ctx;
    uint32_t fuser;
    struct block *bare;
    bool better;
    frit_status st;

    block_refresh(ctx, block);
    TRY(block_without_views(ctx, block, &bare, err));
    better = bare && block_best(ctx, bare, &fuser) > block_best(ctx, block, &fuser);
    st = add_chunk(search, better ? bare : block, err);
    block_destroy(ctx, bare);
    return st;
}

/* Ends the pass and adds chunks for its blocks; raises *end beyond their last op. */
static frit_status close_pass(struct search *search, uint32_t *end, frit_err *err)
{
    TRY(pass_merge_rest(&search->ctx, &search->pass, err));
    for (uint64_t rest = search->pass.dag.live; rest; rest &= rest - 1) {
        struct block *block = search->pass.blocks[dag_first(rest)];
        const struct plan_block *chunk;

        if (block->placed)
            continue;
        TRY(close_block(search, block, err));
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

/* The chunks from `begin` on and the holes, each by itself, in an order in which they can run.
 * *n_items 0: there is none. */
static frit_status order_holes(struct search *search, uint32_t begin, uint32_t first, uint32_t end,
                               struct arena *arena, struct plan_block **out, uint32_t *n_items,
                               frit_err *err)
{
    const uint32_t n_chunks = search->chunks.count - begin;
    const uint32_t n = n_chunks + count_holes(search, first, end);
    struct plan_block *items = arena_array(arena, n, sizeof(*items));
    uint32_t *holes = arena_array(arena, n - n_chunks + 1, sizeof(*holes));
    uint32_t count = n_chunks;
    bool is_sorted;

    if (!items || !holes)
        return fail_memory(err, n * sizeof(*items));
    memcpy(items, search->chunks.items + begin, n_chunks * sizeof(*items));
    for (uint32_t i = first; i < end; i++) {
        if (search->found[i])
            continue;
        *holes = i;
        items[count++] = (struct plan_block){.n_ops = 1, .ops = holes++};
    }
    TRY(order_items(&search->ctx, items, n, first, end, &is_sorted, err));
    *out = items;
    *n_items = is_sorted ? n : 0;
    return FRIT_OK;
}

/* One pass over the holes, which knows where programs that were found run: holes before and after
 * one of them do not become one program. */
static frit_status take_holes(struct search *search, uint32_t begin, uint32_t first, uint32_t end,
                              frit_err *err)
{
    struct arena arena = {0};
    struct plan_block *items;
    uint32_t n = 0;
    bool some = false;
    frit_status st = order_holes(search, begin, first, end, &arena, &items, &n, err);

    for (uint32_t i = 0; i < n && !st && !search->pass.stopped; i++) {
        if (!search->found[items[i].ops[0]]) {
            some = true;
            st = pass_take(&search->ctx, &search->pass, items[i].ops[0], err);
        } else if (some) {
            st = pass_place(&search->ctx, &search->pass, items[i].ops, items[i].n_ops, err);
        }
    }
    for (uint32_t i = first; i < end && !st && !n && !search->pass.stopped; i++) {
        if (!search->found[i])
            st = pass_take(&search->ctx, &search->pass, i, err);
    }
    arena_fini(&arena);
    return st;
}

/* Searches ops that are in no chunk yet, until all ops from `first` to `end` are.  `begin`: the
 * first chunk of the range. */
static frit_status fill_holes(struct search *search, uint32_t begin, uint32_t first, uint32_t end,
                              frit_err *err)
{
    const uint32_t start = first;

    search->ctx.stats.holes += count_holes(search, first, end);
    for (;;) {
        uint32_t last = 0;

        while (first < end && search->found[first])
            first++;
        if (first == end)
            return FRIT_OK;
        TRY(take_holes(search, begin, start, end, err));
        TRY(close_pass(search, &last, err));
    }
}

/* Makes chunks of the ops that the pass has taken from `first` on; *end: the first op that is in no
 * chunk. */
static frit_status close_range(struct search *search, uint32_t first, uint32_t *end, frit_err *err)
{
    uint32_t begin = search->chunks.count;

    *end = first;
    TRY(close_pass(search, end, err));
    TRY(fill_holes(search, begin, first, *end, err));
    return order_chunks(&search->ctx, &search->chunks, begin, first, *end, err);
}

/* The pass takes as many ops as it can from `first` on. */
static frit_status take_range(struct search *search, uint32_t first, frit_err *err)
{
    for (uint32_t i = first; i < search->ctx.ops.n_ops && !search->pass.stopped; i++)
        TRY(pass_take(&search->ctx, &search->pass, i, err));
    return FRIT_OK;
}

/* Takes the remaining ops, with all their deaths; all ops again if a death was added late. */
static frit_status take_rest(struct search *search, const struct relative *relative, frit_err *err)
{
    TRY(begin(search, relative, err));
    for (uint32_t i = search->ctx.ops.n_ops; i < relative->n_ops; i++)
        TRY(append_op(search, &relative->ops[i], err));
    if (search->late) {
        pass_reset(&search->ctx, &search->pass);
        search->ctx.work = search->ctx.n_taken = 0;
    }
    return take_range(search, search->ctx.n_taken, err);
}

static frit_status find_chunks(struct search *search, bool all, uint32_t *end, frit_err *err)
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

/* Simulates the chunks in their order. */
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
    TRY(find_chunks(search, all, n_ops, err));
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
        return fail(err, FRIT_INTERNAL, "a search was used after it failed or finished");
    search->failed = true;
    st = finish(search, relative, all, blocks, n_ops, err);
    if (st)
        drop_programs(search);
    *n_blocks = search->chunks.count;
    return st;
}
