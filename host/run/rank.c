/* SPDX-License-Identifier: Apache-2.0 */
#include "run/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/thread.h"
#include "device/device.h"
#include "load/registry.h"
#include "run/drain.h"
#include "run/operation.h"

enum { MAX_BEGUN = 8 };        /* that the engine has at a time */
enum { MAX_OPERATIONS = 256 }; /* that wait for the thread, and keep their buffers */

/* ---- groups ---- */

static bool is_named(const struct frit_rank *rank, uint64_t number)
{
    return rank->number == number || (rank->user && rank->user->number == number);
}

static struct frit_rank *find(struct frit_rank *ranks, uint64_t number)
{
    while (ranks && !is_named(ranks, number))
        ranks = ranks->next;
    return ranks;
}

static frit_status check_number(struct stream *stream, uint64_t number, frit_err *err)
{
    bool taken;

    pthread_mutex_lock(&stream->baton);
    taken = find(stream->ranks, number);
    pthread_mutex_unlock(&stream->baton);
    return taken ? fail(err, FRIT_INVALID,
                        "this stream is in group %llu already; leave it first, or take another "
                        "number or stream",
                        (unsigned long long)number)
                 : FRIT_OK;
}

/* `native`: the device's object for that space, NULL for the host's memory. */
static frit_status create_in(struct frit_rank *rank, const struct rank_config *config,
                             frit_str space, void *native, frit_err *err)
{
    const frit_group_params params = {.struct_size = sizeof(params),
                                      .rank = config->rank,
                                      .size = config->size,
                                      .id = config->id,
                                      .timeout_ns = config->join_timeout_ns,
                                      .space = space,
                                      .device = native,
                                      .name = {rank->name, strlen(rank->name)},
                                      .store = config->store_ctx,
                                      .put = config->store ? config->store->put : NULL,
                                      .get = config->store ? config->store->get : NULL};

    TRY(fail_from(err, config->table->group_create(config->instance, &params, &rank->group, err),
                  "group_create"));
    return rank->group ? FRIT_OK
                       : fail(err, FRIT_INTERNAL, "group_create gave no group and no error");
}

/* The device's own memory, where its driver and the engine have a name for it; else the host's. */
static frit_status create_group(struct frit_rank *rank, const struct rank_config *config,
                                frit_err *err)
{
    const frit_device *device = rank->stream->device;
    const frit_native_table *native = &device->entry->plugin->native;
    void *object = native->space.len ? native->get(device->self, NULL, native->space) : NULL;
    frit_err first = ERR_INIT;
    frit_status st;

    if (!object)
        return create_in(rank, config, FRIT_STR("host.ptr"), NULL, err);
    st = create_in(rank, config, native->space, object, &first);
    if (!st)
        rank->space = native->space;
    else if (st == FRIT_UNSUPPORTED)
        st = create_in(rank, config, FRIT_STR("host.ptr"), NULL, err);
    else
        return fail(err, st, "%s", first.text);
    if (st == FRIT_UNSUPPORTED)
        fail_append(err, "; with the device's memory: %s", first.text);
    return st;
}

/* ---- the thread ---- */

enum step { STEP_BEGIN, STEP_FINISH, STEP_END };

/* Operations are begun in order, several at a time, but none that waits for the device, or that
 * will fail, while others are under way: these may end first. */
static enum step next_step(struct frit_rank *rank)
{
    struct operation *next;

    pthread_mutex_lock(&rank->lock);
    while (!rank->waiting && !rank->n_begun && !rank->ends)
        pthread_cond_wait(&rank->changed, &rank->lock);
    next = rank->waiting;
    pthread_mutex_unlock(&rank->lock);
    if (next && (!rank->n_begun || (rank->n_begun < MAX_BEGUN && operation_is_ready(next))))
        return STEP_BEGIN;
    return rank->n_begun ? STEP_FINISH : STEP_END;
}

/* Texts and hooks follow one operation at a time. */
static void follow_first(struct frit_rank *rank)
{
    rank->what = rank->first->what;
    if (rank->hooks)
        rank->hooks->begins(rank->hooks_ctx, rank->first->count);
}

static void begin_next(struct frit_rank *rank)
{
    struct operation *operation;

    pthread_mutex_lock(&rank->lock);
    operation = rank->waiting;
    rank->waiting = operation->next;
    rank->n_begun++;
    pthread_mutex_unlock(&rank->lock);
    if (rank->n_begun == 1)
        follow_first(rank);
    operation_begin(operation, rank);
}

static void finish_first(struct frit_rank *rank)
{
    struct operation *operation = rank->first;

    operation_finish(operation, rank);
    if (rank->hooks)
        rank->hooks->ended(rank->hooks_ctx);
    pthread_mutex_lock(&rank->lock);
    rank->first = operation->next;
    if (!rank->first)
        rank->last = &rank->first;
    rank->n_begun--;
    pthread_mutex_unlock(&rank->lock);
    rank->what = "";
    operation_end(operation);
    pthread_mutex_lock(&rank->lock);
    rank->n_operations--;
    rank->n_ended++;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    if (rank->n_begun)
        follow_first(rank);
}

static void *run_operations(void *ctx)
{
    struct frit_rank *rank = ctx;
    enum step step;

    while ((step = next_step(rank)) != STEP_END) {
        if (step == STEP_BEGIN)
            begin_next(rank);
        else
            finish_first(rank);
    }
    return NULL;
}

static frit_status start_thread(struct frit_rank *rank, frit_err *err)
{
    pthread_mutex_init(&rank->lock, NULL);
    pthread_cond_init(&rank->changed, NULL);
    rank->last = &rank->first;
    if (thread_start(&rank->thread, run_operations, rank) == 0)
        return FRIT_OK;
    rank->table->group_destroy(rank->group);
    return fail(err, FRIT_NO_HOST_MEMORY, "no thread for its operations");
}

/* After the operations that it has. */
static void end(struct frit_rank *rank)
{
    pthread_mutex_lock(&rank->lock);
    rank->ends = true;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    pthread_join(rank->thread, NULL);
    side_queue_close(&rank->side);
    if (rank->hooks)
        rank->hooks->leaves(rank->hooks_ctx);
    rank->table->group_destroy(rank->group);
    pthread_cond_destroy(&rank->changed);
    pthread_mutex_destroy(&rank->lock);
    free(rank);
}

/* ---- joining and leaving ---- */

static void link_rank(struct frit_rank *rank)
{
    struct stream *stream = rank->stream;

    pthread_mutex_lock(&stream->baton);
    pthread_mutex_lock(&stream->device->lock);
    rank->next = stream->ranks;
    stream->ranks = rank;
    pthread_mutex_unlock(&stream->device->lock);
    atomic_fetch_add(&stream->n_ranks, 1);
    pthread_mutex_unlock(&stream->baton);
}

frit_status rank_join(struct stream *stream, const struct rank_config *config,
                      struct frit_rank **out, frit_err *err)
{
    struct frit_rank *rank;
    frit_status st;

    *out = NULL;
    TRY(check_number(stream, config->number, err));
    rank = calloc(1, sizeof(*rank));
    if (!rank)
        return fail_memory(err, sizeof(*rank));
    *rank = (struct frit_rank){.stream = stream,
                               .table = config->table,
                               .timeout_ns = config->timeout_ns,
                               .failure = ERR_INIT,
                               .what = "",
                               .number = config->number,
                               .rank = config->rank,
                               .size = config->size,
                               .hooks = config->hooks,
                               .hooks_ctx = config->hooks_ctx};
    snprintf(rank->name, sizeof(rank->name), "%s", config->name);
    st = create_group(rank, config, err);
    if (!st)
        st = start_thread(rank, err);
    if (st) {
        free(rank);
        return fail_context(err, "group %s, rank %u of %u", config->name, config->rank,
                            config->size);
    }
    link_rank(rank);
    *out = rank;
    return FRIT_OK;
}

frit_status rank_leave(struct frit_rank *rank, frit_err *err)
{
    struct stream *stream = rank->stream;
    struct frit_rank **at = &stream->ranks;

    if (!stream_drain(stream, DRAIN_SYNC))
        return stream_refuse_driver(err);
    pthread_mutex_lock(&stream->baton);
    while (*at != rank)
        at = &(*at)->next;
    pthread_mutex_lock(&stream->device->lock);
    *at = rank->next;
    pthread_mutex_unlock(&stream->device->lock);
    atomic_fetch_sub(&stream->n_ranks, 1);
    pthread_mutex_unlock(&stream->baton);
    end(rank);
    return FRIT_OK;
}

void rank_abort(struct frit_rank *rank, frit_status status, const char *why)
{
    frit_err err = ERR_INIT;

    (void)fail(&err, status, "%s", why);
    rank->table->group_abort(rank->group, &err);
}

void rank_fail(struct frit_rank *rank, frit_status status, const char *why)
{
    frit_err err = ERR_INIT;

    (void)fail(&err, status, "%s", why);
    if (rank->hooks)
        rank->hooks->failed(rank->hooks_ctx, &err);
    rank->table->group_abort(rank->group, &err);
}

/* Without the baton, which may be held by who waits for what only this ends. */
void ranks_abort(struct stream *stream, const char *why)
{
    pthread_mutex_lock(&stream->device->lock);
    for (struct frit_rank *rank = stream->ranks; rank; rank = rank->next) {
        if (rank->size > 1)
            rank_fail(rank, FRIT_ABORTED, why);
    }
    pthread_mutex_unlock(&stream->device->lock);
}

void ranks_leave(struct stream *stream)
{
    while (stream->ranks) {
        struct frit_rank *rank = stream->ranks;

        stream->ranks = rank->next;
        end(rank);
    }
    atomic_store(&stream->n_ranks, 0);
}

/* ---- operations ---- */

struct frit_rank *rank_find(struct frit_rank *ranks, int64_t number, frit_err *err)
{
    struct frit_rank *rank = find(ranks, (uint64_t)number);

    if (!rank)
        (void)fail(err, FRIT_INVALID,
                   "its stream is in no group %lld; frit_group_join, called by the thread that "
                   "records into the stream, makes it a rank of one",
                   (long long)number);
    return rank;
}

void rank_describe(struct frit_rank *rank, int64_t number, char note[FRIT_COLLECTIVE_NOTE],
                   char *what, size_t size)
{
    struct rank_user *user = rank->user;

    *note = *what = '\0';
    if (user && user->number == (uint64_t)number)
        user->describe(user->ctx, atomic_fetch_add(&user->n_begun, 1), note, what, size);
}

static frit_status pass_on(const frit_err *from, frit_err *err)
{
    return fail(err, from->status, "%s", from->text);
}

/* Inside the lock. */
static void make_room(struct frit_rank *rank)
{
    while (rank->n_operations >= MAX_OPERATIONS)
        pthread_cond_wait(&rank->changed, &rank->lock);
}

void rank_add(struct frit_rank *rank, struct operation *operation)
{
    pthread_mutex_lock(&rank->lock);
    make_room(rank);
    *rank->last = operation;
    rank->last = &operation->next;
    if (!rank->waiting)
        rank->waiting = operation;
    rank->n_operations++;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
}

static void wait_until_idle(struct frit_rank *rank)
{
    pthread_mutex_lock(&rank->lock);
    while (rank->n_operations)
        pthread_cond_wait(&rank->changed, &rank->lock);
    pthread_mutex_unlock(&rank->lock);
}

frit_status rank_barrier(struct frit_rank *rank, frit_err *err)
{
    struct operation *operation;

    if (!stream_drain(rank->stream, DRAIN_SYNC))
        return stream_refuse_driver(err);
    operation = operation_create(0);
    if (!operation)
        return fail_memory(err, sizeof(*operation));
    operation->kind = FRIT_COLLECTIVE_BARRIER;
    pthread_mutex_lock(&rank->stream->baton);
    rank_add(rank, operation);
    pthread_mutex_unlock(&rank->stream->baton);
    wait_until_idle(rank);
    return rank_check(rank, err);
}

frit_status ranks_wait(struct frit_rank *ranks, frit_err *err)
{
    frit_status st = FRIT_OK;

    for (struct frit_rank *rank = ranks; rank; rank = rank->next) {
        wait_until_idle(rank);
        if (!st)
            st = rank_check(rank, err);
    }
    return st;
}

frit_status rank_check(struct frit_rank *rank, frit_err *err)
{
    frit_status st;

    pthread_mutex_lock(&rank->lock);
    st = rank->failure.status ? pass_on(&rank->failure, err) : FRIT_OK;
    pthread_mutex_unlock(&rank->lock);
    return st;
}

void rank_note_error(struct frit_rank *rank, struct failure *failure)
{
    stream_note_error(rank->stream, failure);
}

/* Keeps the reason unless there is one; true: there was none. */
static bool keep_failure(struct frit_rank *rank, const frit_err *why)
{
    frit_err own = *why;
    bool is_first;

    pthread_mutex_lock(&rank->lock);
    (void)fail_context(&own, "group %s, rank %u of %u, operation %llu", rank->name, rank->rank,
                       rank->size, (unsigned long long)rank->n_ended + 1);
    is_first = !rank->failure.status;
    if (is_first)
        rank->failure = own;
    pthread_mutex_unlock(&rank->lock);
    return is_first;
}

frit_status rank_give_up(struct frit_rank *rank, const char *what, frit_err *err)
{
    frit_err why = *err, kept = ERR_INIT;
    bool is_first;

    if (rank_check(rank, &kept)) {
        *err = kept;
        return kept.status;
    }
    if (rank->hooks)
        rank->hooks->failed(rank->hooks_ctx, &why);
    if (*what)
        (void)fail_context(&why, "%s", what);
    is_first = keep_failure(rank, &why);
    (void)rank_check(rank, &kept);
    if (is_first)
        rank_abort(rank, FRIT_ABORTED, kept.text);
    *err = kept;
    return err->status;
}

struct side_queue *rank_side_queue(struct frit_rank *rank)
{
    if (!rank->side.device)
        side_queue_open(&rank->side, rank->stream->device);
    return &rank->side;
}

/* ---- operations of the engine ---- */

/* After a wait that says how the group has ended the engine touches no buffer any more. */
static void wait_for_end(const struct frit_rank *rank, uint64_t value)
{
    frit_err err = ERR_INIT;

    while (rank->table->wait(rank->group, value, UINT64_MAX, &err) == FRIT_TIMEOUT)
        ;
}

frit_status rank_begin(struct frit_rank *rank, const frit_collective_op *op, uint64_t *value,
                       frit_err *err)
{
    frit_status st = fail_from(err, rank->table->begin(rank->group, op, value, err), "begin");

    if (!st && *value != rank->begun + 1)
        st = fail(err, FRIT_INTERNAL, "the engine gives it the value %llu",
                  (unsigned long long)*value);
    if (!st)
        rank->begun++;
    if (!st || st == FRIT_UNSUPPORTED)
        return st;
    st = rank_give_up(rank, rank->what, err);
    if (rank->begun > rank->reached)
        wait_for_end(rank, rank->begun);
    return st;
}

frit_status rank_wait_for(struct frit_rank *rank, uint64_t value, frit_err *err)
{
    frit_status st =
        fail_from(err, rank->table->wait(rank->group, value, rank->timeout_ns, err), "wait");
    bool is_late;

    if (!st) {
        rank->reached = value;
        return FRIT_OK;
    }
    if (st == FRIT_TIMEOUT)
        (void)fail_context(err, "not done after %llu ms",
                           (unsigned long long)(rank->timeout_ns / 1000000));
    is_late = st == FRIT_TIMEOUT;
    st = rank_give_up(rank, rank->what, err);
    if (is_late)
        wait_for_end(rank, value);
    return st;
}
