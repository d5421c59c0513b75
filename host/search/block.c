/* SPDX-License-Identifier: Apache-2.0 */
#include "search/block.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"

/* ---- clones ---- */

static struct fuser *fuser_of(const struct search_ctx *ctx, uint32_t k)
{
    return &ctx->config.fusers[k];
}

/* Gives a clone back; where it cannot be kept it is destroyed. */
static void release(struct search_ctx *ctx, uint32_t k, struct feed *feed)
{
    struct spare *spare = &ctx->spares[k];

    if (!feed->clone)
        return;
    if (array_grow(&spare->clones, &spare->room, spare->count, 1, sizeof(*spare->clones))) {
        fuser_of(ctx, k)->table->reset(feed->clone);
        spare->clones[spare->count++] = feed->clone;
    } else {
        fuser_of(ctx, k)->table->destroy(feed->clone);
    }
    feed->clone = NULL;
}

/* What its author has to mend, once per fuser and device. */
static void complain(struct fuser *fuser, const char *what)
{
    if (!atomic_exchange(&fuser->warned, true))
        log_write(FRIT_LOG_WARN, "fusion", "%s: fuser %s is not used for some ops: %s",
                  fuser->plugin, fuser->name, what);
}

static void drop(struct search_ctx *ctx, uint32_t k, struct feed *feed)
{
    fuser_of(ctx, k)->table->destroy(feed->clone);
    *feed = (struct feed){0};
    ctx->stats.dropped++;
}

/* Without memory the search fails; a fuser that cannot for another reason is left out. */
static frit_status acquire(struct search_ctx *ctx, uint32_t k, struct feed *feed, frit_err *err)
{
    struct fuser *fuser = fuser_of(ctx, k);
    struct spare *spare = &ctx->spares[k];
    frit_err why = ERR_INIT;
    frit_status st;

    *feed = (struct feed){.state = {.open = 1}};
    if (ctx->tired[k])
        return FRIT_OK;
    if (spare->count) {
        feed->clone = spare->clones[--spare->count];
        return FRIT_OK;
    }
    st = fuser->table->clone(fuser->prototype, &feed->clone, &why);
    if (st == FRIT_NO_HOST_MEMORY)
        return fail(err, st, "fuser %s: no memory for a clone", fuser->name);
    if (st || !feed->clone) {
        feed->clone = NULL;
        ctx->stats.dropped++;
        complain(fuser, why.text[0] ? why.text : "clone gave none");
    }
    return FRIT_OK;
}

/* Asks for the state after `pushed` ops; a state that cannot be drops the fuser. */
static void ask(struct search_ctx *ctx, uint32_t k, struct feed *feed, uint32_t pushed)
{
    frit_fuser_state state = {.struct_size = sizeof(state)};

    fuser_of(ctx, k)->table->state(feed->clone, &state);
    if (state.open > 1 || state.ready > 1 || state.quality > 1000 || state.accepted > pushed ||
        state.accepted < feed->state.accepted) {
        complain(fuser_of(ctx, k), "state gives numbers that cannot be");
        drop(ctx, k, feed);
    } else {
        feed->state = state;
    }
}

static bool is_open(const struct feed *feed)
{
    return feed->clone && feed->state.open;
}

/* ---- life ---- */

static bool any_open(const struct search_ctx *ctx, const struct block *block)
{
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (is_open(&block->feeds[k]))
            return true;
    }
    return false;
}

frit_status block_create(struct search_ctx *ctx, struct block **out, frit_err *err)
{
    struct block *block = calloc(1, sizeof(*block));
    frit_status st = FRIT_OK;

    *out = NULL;
    if (!block)
        return fail_memory(err, sizeof(*block));
    block->feeds = calloc((size_t)ctx->config.n_fusers + 1, sizeof(*block->feeds));
    if (!block->feeds)
        st = fail_memory(err, ctx->config.n_fusers * sizeof(*block->feeds));
    for (uint32_t k = 0; k < ctx->config.n_fusers && !st; k++)
        st = acquire(ctx, k, &block->feeds[k], err);
    if (st) {
        block_destroy(ctx, block);
        return st;
    }
    block->open = any_open(ctx, block);
    *out = block;
    return FRIT_OK;
}

void block_destroy(struct search_ctx *ctx, struct block *block)
{
    if (!block)
        return;
    for (uint32_t k = 0; k < ctx->config.n_fusers && block->feeds; k++)
        release(ctx, k, &block->feeds[k]);
    free(block->feeds);
    free(block->ops);
    free(block);
}

/* ---- feeding ---- */

static void push_op(struct search_ctx *ctx, uint32_t k, struct feed *feed, uint32_t op)
{
    fuser_of(ctx, k)->table->push(feed->clone, &ctx->ops.ops[op], 1, sizeof(frit_op_desc));
    ctx->stats.pushes++;
}

frit_status block_add(struct search_ctx *ctx, struct block *block, uint32_t op, bool *taken,
                      frit_err *err)
{
    bool wanted = !block->n_ops;

    *taken = false;
    if (!array_grow(&block->ops, &block->room, block->n_ops, 1, sizeof(*block->ops)))
        return fail_memory(err, ((size_t)block->n_ops + 1) * sizeof(*block->ops));
    block->open = false;
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        struct feed *feed = &block->feeds[k];

        if (!is_open(feed))
            continue;
        push_op(ctx, k, feed, op);
        ask(ctx, k, feed, block->n_ops + 1);
        wanted |= feed->clone && (feed->state.open || feed->state.accepted > block->n_ops);
        block->open |= is_open(feed);
    }
    if (wanted)
        block->ops[block->n_ops++] = op;
    block->end = block->open ? PLAN_END_ALL : PLAN_END_CLOSED;
    *taken = wanted;
    return FRIT_OK;
}

/* Feeds all ops to a fuser in the prototype's state. */
static void feed_all(struct search_ctx *ctx, const struct block *block, uint32_t k)
{
    struct feed *feed = &block->feeds[k];
    uint32_t run;

    for (uint32_t i = 0; i < block->n_ops; i += run) {
        for (run = 1; i + run < block->n_ops && block->ops[i + run] == block->ops[i] + run;)
            run++;
        fuser_of(ctx, k)->table->push(feed->clone, &ctx->ops.ops[block->ops[i]], run,
                                      sizeof(frit_op_desc));
        ctx->stats.pushes += run;
    }
    ask(ctx, k, feed, block->n_ops);
}

void block_refresh(struct search_ctx *ctx, struct block *block)
{
    if (!block->stale)
        return;
    block->stale = false;
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (!block->feeds[k].clone)
            continue;
        fuser_of(ctx, k)->table->reset(block->feeds[k].clone);
        block->feeds[k].state = (frit_fuser_state){.open = 1};
        feed_all(ctx, block, k);
    }
}

/* ---- choosing ---- */

uint32_t block_best(struct search_ctx *ctx, const struct block *block, uint32_t *fuser)
{
    uint64_t best = 0;

    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        const frit_fuser_state *state = &block->feeds[k].state;
        uint64_t score;

        if (!block->feeds[k].clone || !state->ready || !state->quality)
            continue;
        score = block_score(ctx, block->ops, state->accepted) * state->quality / 1000;
        if (score > best) {
            best = score;
            *fuser = k;
        }
    }
    return best < UINT32_MAX ? (uint32_t)best : UINT32_MAX;
}

/* NULL if it can be used, else why not. */
static const char *program_fault(const struct fuser *fuser, const frit_program *program,
                                 uint32_t n_ops)
{
    const frit_program_table *table = program->table;
    frit_program_info info = {.struct_size = sizeof(info)};
    frit_err ignored = ERR_INIT;

    if (!table || !FRIT_HAS(table, frit_program_table, destroy) || !table->describe ||
        !table->prepare || !table->destroy)
        return "its program lacks a table or a required slot";
    if (table->describe(program->self, &info, &ignored) || info.n_ops != n_ops)
        return "describe of its program fails, or tells another n_ops than it had accepted";
    if (!plan_program_runs(program, fuser->device))
        return "its program has no record, which programs of another plugin than the driver's need";
    return NULL;
}

static void program_discard(const frit_program *program)
{
    if (program->table && FRIT_HAS(program->table, frit_program_table, destroy) &&
        program->table->destroy)
        program->table->destroy(program->self);
}

frit_status block_finish(struct search_ctx *ctx, struct block *block, struct plan_program **program,
                         uint32_t *n_ops, uint32_t *score, frit_err *err)
{
    uint32_t k = 0;

    *program = NULL;
    while ((*score = block_best(ctx, block, &k))) {
        struct feed *feed = &block->feeds[k];
        frit_program made = {.struct_size = sizeof(made)};
        frit_err why = ERR_INIT;
        frit_status st = fuser_of(ctx, k)->table->finish(feed->clone, &made, &why);
        const char *fault;

        *n_ops = feed->state.accepted;
        if (st == FRIT_NO_HOST_MEMORY)
            return fail(err, st, "fuser %s: no memory for a program", fuser_of(ctx, k)->name);
        if (st) {
            drop(ctx, k, feed);
            continue;
        }
        fault = program_fault(fuser_of(ctx, k), &made, *n_ops);
        if (fault) {
            complain(fuser_of(ctx, k), fault);
            program_discard(&made);
            drop(ctx, k, feed);
            continue;
        }
        fuser_of(ctx, k)->table->destroy(feed->clone);
        feed->clone = NULL;
        *program = plan_program_create(&made, k);
        if (*program)
            return FRIT_OK;
        program_discard(&made);
        return fail_memory(err, sizeof(**program));
    }
    return FRIT_OK;
}

/* ---- merging ---- */

static int compare_ops(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static bool join_ops(struct block *to, const struct block *a, const struct block *b, int how)
{
    const struct block *head = how == BLOCK_MERGE_BEFORE ? b : a;
    const struct block *tail = head == a ? b : a;

    if (!array_grow(&to->ops, &to->room, 0, a->n_ops + b->n_ops, sizeof(*to->ops)))
        return false;
    memcpy(to->ops, head->ops, head->n_ops * sizeof(*to->ops));
    memcpy(to->ops + head->n_ops, tail->ops, tail->n_ops * sizeof(*to->ops));
    to->n_ops = a->n_ops + b->n_ops;
    if (how == BLOCK_MERGE_SORTED)
        qsort(to->ops, to->n_ops, sizeof(*to->ops), compare_ops);
    return true;
}

frit_status block_merge(struct search_ctx *ctx, struct block *a, struct block *b, int how,
                        struct block **out, frit_err *err)
{
    uint64_t apart, together;
    struct block *merged;
    uint32_t fuser;

    *out = NULL;
    block_refresh(ctx, a);
    block_refresh(ctx, b);
    TRY(block_create(ctx, &merged, err));
    if (!join_ops(merged, a, b, how)) {
        block_destroy(ctx, merged);
        return fail_memory(err, a->n_ops * sizeof(*a->ops));
    }
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (merged->feeds[k].clone)
            feed_all(ctx, merged, k);
    }
    merged->open = any_open(ctx, merged);
    merged->end = merged->open ? PLAN_END_ALL : PLAN_END_CLOSED;
    apart = (uint64_t)block_best(ctx, a, &fuser) + block_best(ctx, b, &fuser);
    together = block_best(ctx, merged, &fuser);
    if (together < apart || (together == apart && !merged->open)) {
        block_destroy(ctx, merged);
        return FRIT_OK;
    }
    ctx->stats.merges++;
    *out = merged;
    return FRIT_OK;
}
