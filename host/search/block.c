/* SPDX-License-Identifier: Apache-2.0 */
#include "search/block.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "graph/op.h"
#include "plan/program.h"
#include "search/score.h"

/* ---- clones ---- */

static struct fuser *fuser_of(const struct search_ctx *ctx, uint32_t k)
{
    return &ctx->config.fusers[k];
}

/* Resets a clone and keeps it for reuse; destroys it if out of memory. */
static void release(struct search_ctx *ctx, uint32_t k, struct block_fuser *f)
{
    struct spare *spare = &ctx->spares[k];

    if (!f->clone)
        return;
    if (array_grow(&spare->clones, &spare->capacity, spare->count, 1, sizeof(*spare->clones))) {
        fuser_of(ctx, k)->table->reset(f->clone);
        spare->clones[spare->count++] = f->clone;
    } else {
        fuser_of(ctx, k)->table->destroy(f->clone);
    }
    f->clone = NULL;
}

/* Logs a fault of the fuser, once per fuser and device. */
static void warn_once(struct fuser *fuser, const char *what)
{
    if (!atomic_exchange(&fuser->warned, true))
        log_write(FRIT_LOG_WARN, "fusion", "%s: fuser %s is not used for some ops: %s",
                  fuser->plugin, fuser->name, what);
}

static void drop(struct search_ctx *ctx, uint32_t k, struct block_fuser *f)
{
    fuser_of(ctx, k)->table->destroy(f->clone);
    *f = (struct block_fuser){0};
    ctx->stats.dropped++;
}

/* Gets a clone.  Fails only if out of memory; a fuser that fails otherwise is not used. */
static frit_status acquire(struct search_ctx *ctx, uint32_t k, struct block_fuser *f, frit_err *err)
{
    struct fuser *fuser = fuser_of(ctx, k);
    struct spare *spare = &ctx->spares[k];
    frit_err why = ERR_INIT;
    frit_status st;

    *f = (struct block_fuser){.state = {.open = 1}};
    if (spare->count) {
        f->clone = spare->clones[--spare->count];
        return FRIT_OK;
    }
    st = fail_from(&why, fuser->table->clone(fuser->prototype, &f->clone, &why), "clone");
    if (st == FRIT_NO_HOST_MEMORY)
        return fail(err, st, "fuser %s: no memory for a clone", fuser->name);
    if (st || !f->clone) {
        f->clone = NULL;
        ctx->stats.dropped++;
        warn_once(fuser, why.text[0] ? why.text : "clone returned no clone");
    }
    return FRIT_OK;
}

/* Queries the state after `pushed` ops; an invalid state drops the fuser. */
static void query_state(struct search_ctx *ctx, uint32_t k, struct block_fuser *f, uint32_t pushed)
{
    frit_fuser_state state = {.struct_size = sizeof(state)};

    fuser_of(ctx, k)->table->state(f->clone, &state);
    if (state.open > 1 || state.ready > 1 || state.quality > 1000 || state.accepted > pushed ||
        state.accepted < f->state.accepted) {
        warn_once(fuser_of(ctx, k), "state returns invalid numbers");
        drop(ctx, k, f);
    } else {
        f->state = state;
    }
}

static bool is_open(const struct block_fuser *f)
{
    return f->clone && f->state.open;
}

/* ---- life ---- */

static bool any_open(const struct search_ctx *ctx, const struct block *block)
{
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (is_open(&block->fusers[k]))
            return true;
    }
    return false;
}

/* Without clones. */
static frit_status create(const struct search_ctx *ctx, uint32_t number, struct block **out,
                          frit_err *err)
{
    struct block *block = calloc(1, sizeof(*block));

    *out = NULL;
    if (!block)
        return fail_memory(err, sizeof(*block));
    block->number = number;
    block->fusers = calloc((size_t)ctx->config.n_fusers + 1, sizeof(*block->fusers));
    if (!block->fusers) {
        free(block);
        return fail_memory(err, ctx->config.n_fusers * sizeof(*block->fusers));
    }
    *out = block;
    return FRIT_OK;
}

frit_status block_create(struct search_ctx *ctx, uint32_t number, struct block **out, frit_err *err)
{
    struct block *block;
    frit_status st = create(ctx, number, &block, err);

    *out = NULL;
    for (uint32_t k = 0; k < ctx->config.n_fusers && !st; k++)
        st = acquire(ctx, k, &block->fusers[k], err);
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
    for (uint32_t k = 0; k < ctx->config.n_fusers && block->fusers; k++)
        release(ctx, k, &block->fusers[k]);
    free(block->fusers);
    free(block->ops);
    free(block->tallies);
    free(block);
}

/* ---- feeding ---- */

static void count_pushes(struct search_ctx *ctx, uint32_t n)
{
    ctx->stats.pushes += n;
    ctx->work += n;
}

static void push_op(struct search_ctx *ctx, uint32_t k, struct block_fuser *f, uint32_t op)
{
    fuser_of(ctx, k)->table->push(f->clone, &ctx->ops.ops[op], 1, sizeof(frit_op_desc));
    count_pushes(ctx, 1);
}

static bool reserve(struct block *block, uint32_t more)
{
    uint32_t tallies = block->capacity;

    return array_grow(&block->tallies, &tallies, block->n_ops, more, sizeof(*block->tallies)) &&
           array_grow(&block->ops, &block->capacity, block->n_ops, more, sizeof(*block->ops));
}

frit_status block_create_placed(struct search_ctx *ctx, uint32_t number, const uint32_t *ops,
                                uint32_t n_ops, struct block **out, frit_err *err)
{
    struct block *block;

    TRY(create(ctx, number, &block, err));
    if (!reserve(block, n_ops)) {
        block_destroy(ctx, block);
        *out = NULL;
        return fail_memory(err, n_ops * sizeof(*ops));
    }
    memcpy(block->ops, ops, n_ops * sizeof(*ops));
    block->n_ops = n_ops;
    block->placed = true;
    *out = block;
    return FRIT_OK;
}

/* The number of the block's ops that the longest program would cover. */
static uint32_t covered(const struct search_ctx *ctx, const struct block *block)
{
    uint32_t max = 0;

    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        const frit_fuser_state *state = &block->fusers[k].state;

        if (block->fusers[k].clone && state->ready && state->quality && state->accepted > max)
            max = state->accepted;
    }
    return max;
}

/* Whether enough ops follow the covered ones that pushing more is not worth it, since they would be
 * searched again. */
static bool has_long_tail(struct search_ctx *ctx, struct block *block)
{
    enum { MAX_UNCOVERED = 32 };

    if (block->n_ops - covered(ctx, block) < MAX_UNCOVERED)
        return false;
    block_refresh(ctx, block);
    return block->n_ops - covered(ctx, block) >= MAX_UNCOVERED;
}

/* Whether the host runs the op itself: such an op has a block of its own and is pushed to no fuser.
 */
static bool runs_on_host(const struct search_ctx *ctx, uint32_t op)
{
    const frit_op_info *row = op_row(ctx->ops.ops[op].id);

    return row && row->cls == FRIT_CLASS_COLLECTIVE;
}

frit_status block_add(struct search_ctx *ctx, struct block *block, uint32_t op, bool *taken,
                      frit_err *err)
{
    bool wanted = !block->n_ops;

    *taken = false;
    if (!reserve(block, 1))
        return fail_memory(err, ((size_t)block->n_ops + 1) * sizeof(*block->ops));
    block->open = false;
    block->end = PLAN_END_CLOSED;
    if (has_long_tail(ctx, block))
        return FRIT_OK;
    for (uint32_t k = 0; k < ctx->config.n_fusers && !runs_on_host(ctx, op); k++) {
        struct block_fuser *f = &block->fusers[k];

        if (!is_open(f))
            continue;
        push_op(ctx, k, f, op);
        query_state(ctx, k, f, block->n_ops + 1);
        wanted |= f->clone && (f->state.open || f->state.accepted > block->n_ops);
        block->open |= is_open(f);
    }
    if (wanted) {
        block->ops[block->n_ops++] = op;
        block_tally(ctx, block, block->n_ops - 1);
    }
    block->end = block->open ? PLAN_END_ALL : PLAN_END_CLOSED;
    *taken = wanted;
    return FRIT_OK;
}

/* Pushes the ops from number `first` on to a fuser that has the ops before. */
static void push_from(struct search_ctx *ctx, const struct block *block, uint32_t k, uint32_t first)
{
    struct block_fuser *f = &block->fusers[k];
    uint32_t run;

    for (uint32_t i = first; i < block->n_ops; i += run) {
        for (run = 1; i + run < block->n_ops && block->ops[i + run] == block->ops[i] + run;)
            run++;
        fuser_of(ctx, k)->table->push(f->clone, &ctx->ops.ops[block->ops[i]], run,
                                      sizeof(frit_op_desc));
        count_pushes(ctx, run);
    }
    query_state(ctx, k, f, block->n_ops);
}

static void push_all_again(struct search_ctx *ctx, struct block *block, uint32_t k)
{
    fuser_of(ctx, k)->table->reset(block->fusers[k].clone);
    block->fusers[k].state = (frit_fuser_state){.open = 1};
    push_from(ctx, block, k, 0);
}

void block_refresh(struct search_ctx *ctx, struct block *block)
{
    if (!block->stale)
        return;
    block->stale = false;
    if (block->n_ops && runs_on_host(ctx, block->ops[0]))
        return;
    block->refused = (struct merge_refusal){0};
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (block->fusers[k].clone)
            push_all_again(ctx, block, k);
    }
    block_tally(ctx, block, 0);
}

/* ---- choosing ---- */

uint32_t block_best(const struct search_ctx *ctx, const struct block *block, uint32_t *fuser)
{
    uint64_t best = 0;

    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        const frit_fuser_state *state = &block->fusers[k].state;
        uint64_t score;

        if (!block->fusers[k].clone || !state->ready || !state->quality)
            continue;
        score = block_score(block, state->accepted) * state->quality / 1000;
        if (score > best) {
            best = score;
            *fuser = k;
        }
    }
    return best < UINT32_MAX ? (uint32_t)best : UINT32_MAX;
}

/* Returns why the program cannot be used, or NULL. */
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
        return "describe of its program fails, or n_ops is not the number of accepted ops";
    if (!program_runs(program, fuser->device))
        return "its program has no slot `record`, which is required unless the driver's plugin "
               "made it";
    return NULL;
}

static void program_discard(const frit_program *program)
{
    if (program->table && FRIT_HAS(program->table, frit_program_table, destroy) &&
        program->table->destroy)
        program->table->destroy(program->self);
}

frit_status block_finish(struct search_ctx *ctx, struct block *block, struct program **program,
                         uint32_t *n_ops, uint32_t *score, frit_err *err)
{
    uint32_t k = 0;

    *program = NULL;
    while ((*score = block_best(ctx, block, &k))) {
        struct block_fuser *f = &block->fusers[k];
        frit_program made = {.struct_size = sizeof(made)};
        frit_err why = ERR_INIT;
        const frit_status said = fuser_of(ctx, k)->table->finish(f->clone, &made, &why);
        const frit_status st = fail_from(&why, said, "finish");
        const char *fault;

        *n_ops = f->state.accepted;
        if (st == FRIT_NO_HOST_MEMORY)
            return fail(err, st, "fuser %s: no memory for a program", fuser_of(ctx, k)->name);
        if (st) {
            if (!status_is_listed(said))
                warn_once(fuser_of(ctx, k), why.text);
            drop(ctx, k, f);
            continue;
        }
        fault = program_fault(fuser_of(ctx, k), &made, *n_ops);
        if (fault) {
            warn_once(fuser_of(ctx, k), fault);
            program_discard(&made);
            drop(ctx, k, f);
            continue;
        }
        fuser_of(ctx, k)->table->destroy(f->clone);
        f->clone = NULL;
        *program = program_create(&made, k);
        if (*program)
            return FRIT_OK;
        program_discard(&made);
        return fail_memory(err, sizeof(**program));
    }
    return FRIT_OK;
}

/* ---- other blocks of these ops ---- */

static void update_open(struct search_ctx *ctx, struct block *block)
{
    block->open = any_open(ctx, block);
    block->end = block->open ? PLAN_END_ALL : PLAN_END_CLOSED;
}

/* Pushes all ops of a block whose clones have none yet. */
static void push_all(struct search_ctx *ctx, struct block *block)
{
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (block->fusers[k].clone)
            push_from(ctx, block, k, 0);
    }
    update_open(ctx, block);
    block_tally(ctx, block, 0);
}

/* Whether an op of the block makes the operand; ctx->values[].made has the number `tally` for those
 * that do. */
static bool reads_made(const struct search_ctx *ctx, const frit_op_desc *op, uint32_t tally)
{
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind == FRIT_OPERAND_TENSOR && ctx->values[op->in[k].value].made == tally)
            return true;
    }
    return false;
}

/* Copies the ops to `to`, which has room for them, but the views of values from outside. */
static void copy_without_views(struct search_ctx *ctx, const struct block *from, struct block *to)
{
    uint32_t tally = ++ctx->tally;

    for (uint32_t i = 0; i < from->n_ops; i++) {
        const frit_op_desc *op = &ctx->ops.ops[from->ops[i]];

        if (op_is_view(op->id) && !reads_made(ctx, op, tally))
            continue;
        to->ops[to->n_ops++] = from->ops[i];
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                ctx->values[op->out[k].value].made = tally;
        }
    }
}

frit_status block_without_views(struct search_ctx *ctx, struct block *block, struct block **out,
                                frit_err *err)
{
    struct block *bare;

    *out = NULL;
    TRY(block_create(ctx, block->number, &bare, err));
    if (!reserve(bare, block->n_ops)) {
        block_destroy(ctx, bare);
        return fail_memory(err, block->n_ops * sizeof(*block->ops));
    }
    copy_without_views(ctx, block, bare);
    if (!bare->n_ops || bare->n_ops == block->n_ops) {
        block_destroy(ctx, bare);
        return FRIT_OK;
    }
    push_all(ctx, bare);
    *out = bare;
    return FRIT_OK;
}

/* ---- merging ---- */

static int compare_ops(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Whether a merged block is better than both separately, which score `apart`. */
static bool is_gain(const struct search_ctx *ctx, const struct block *block, uint64_t apart,
                    bool strict)
{
    uint32_t fuser;
    uint64_t together = block_best(ctx, block, &fuser);

    return together > apart || (together == apart && block->open && !strict);
}

static uint64_t score_apart(struct search_ctx *ctx, struct block *a, struct block *b)
{
    uint32_t fuser;

    block_refresh(ctx, a);
    block_refresh(ctx, b);
    return (uint64_t)block_best(ctx, a, &fuser) + block_best(ctx, b, &fuser);
}

/* Removes the ops from number `n_ops` on; fusers that were closed before have not received them. */
static void remove_tail(struct search_ctx *ctx, struct block *block, uint32_t n_ops,
                        const bool *was_open)
{
    block->n_ops = n_ops;
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        if (was_open[k] && block->fusers[k].clone)
            push_all_again(ctx, block, k);
    }
    update_open(ctx, block);
}

frit_status block_append(struct search_ctx *ctx, struct block *block, struct block *tail,
                         bool strict, bool *merged, frit_err *err)
{
    uint64_t apart = score_apart(ctx, block, tail);
    bool *was_open = calloc((size_t)ctx->config.n_fusers + 1, sizeof(*was_open));
    uint32_t n_ops = block->n_ops;

    *merged = false;
    if (!was_open || !reserve(block, tail->n_ops)) {
        free(was_open);
        return fail_memory(err, tail->n_ops * sizeof(*tail->ops));
    }
    memcpy(block->ops + n_ops, tail->ops, tail->n_ops * sizeof(*tail->ops));
    block->n_ops += tail->n_ops;
    for (uint32_t k = 0; k < ctx->config.n_fusers; k++) {
        was_open[k] = is_open(&block->fusers[k]);
        if (was_open[k])
            push_from(ctx, block, k, n_ops);
    }
    update_open(ctx, block);
    block_tally(ctx, block, n_ops);
    *merged = is_gain(ctx, block, apart, strict);
    if (!*merged)
        remove_tail(ctx, block, n_ops, was_open);
    ctx->stats.merges += *merged;
    free(was_open);
    return FRIT_OK;
}

/* Merges the ops of two blocks in program order. */
static void interleave(struct block *block, const struct block *a, const struct block *b)
{
    memcpy(block->ops, a->ops, a->n_ops * sizeof(*a->ops));
    memcpy(block->ops + a->n_ops, b->ops, b->n_ops * sizeof(*b->ops));
    block->n_ops = a->n_ops + b->n_ops;
    qsort(block->ops, block->n_ops, sizeof(*block->ops), compare_ops);
}

frit_status block_interleave(struct search_ctx *ctx, struct block *block, struct block *other,
                             bool strict, bool *merged, frit_err *err)
{
    uint64_t apart = score_apart(ctx, block, other);
    struct block *both, old;

    *merged = false;
    TRY(block_create(ctx, block->number, &both, err));
    if (!reserve(both, block->n_ops + other->n_ops)) {
        block_destroy(ctx, both);
        return fail_memory(err, block->n_ops * sizeof(*block->ops));
    }
    interleave(both, block, other);
    push_all(ctx, both);
    *merged = is_gain(ctx, both, apart, strict);
    if (*merged) {
        old = *block;
        *block = *both;
        *both = old;
    }
    ctx->stats.merges += *merged;
    block_destroy(ctx, both);
    return FRIT_OK;
}
