/* SPDX-License-Identifier: Apache-2.0 */
#include "run/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "run/drain.h"

/* ---- joining and leaving ---- */

static struct frit_rank *find(struct frit_rank *ranks, uint64_t number)
{
    while (ranks && ranks->number != number)
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

static frit_status create_group(struct frit_rank *rank, const struct rank_config *config,
                                frit_err *err)
{
    const frit_group_params params = {.struct_size = sizeof(params),
                                      .rank = config->rank,
                                      .size = config->size,
                                      .id = config->id,
                                      .timeout_ns = config->join_timeout_ns,
                                      .space = FRIT_STR("host.ptr"),
                                      .name = {rank->name, strlen(rank->name)},
                                      .store = config->store_ctx,
                                      .put = config->store ? config->store->put : NULL,
                                      .get = config->store ? config->store->get : NULL};

    TRY(fail_from(err, config->table->group_create(config->instance, &params, &rank->group, err),
                  "group_create"));
    return rank->group ? FRIT_OK
                       : fail(err, FRIT_INTERNAL, "group_create gave no group and no error");
}

static void link_rank(struct frit_rank *rank)
{
    struct stream *stream = rank->stream;

    pthread_mutex_lock(&stream->baton);
    rank->next = stream->ranks;
    stream->ranks = rank;
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
                               .number = config->number,
                               .rank = config->rank,
                               .size = config->size,
                               .hooks = config->hooks,
                               .hooks_ctx = config->hooks_ctx};
    snprintf(rank->name, sizeof(rank->name), "%s", config->name);
    st = create_group(rank, config, err);
    if (st) {
        free(rank);
        return fail_context(err, "group %s, rank %u of %u", config->name, config->rank,
                            config->size);
    }
    link_rank(rank);
    *out = rank;
    return FRIT_OK;
}

static void end(struct frit_rank *rank)
{
    if (rank->hooks)
        rank->hooks->leaves(rank->hooks_ctx);
    rank->table->group_destroy(rank->group);
    free(rank);
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
    *at = rank->next;
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

void ranks_abort(struct stream *stream, const char *why)
{
    pthread_mutex_lock(&stream->baton);
    for (struct frit_rank *rank = stream->ranks; rank; rank = rank->next) {
        if (rank->size > 1)
            rank_fail(rank, FRIT_ABORTED, why);
    }
    pthread_mutex_unlock(&stream->baton);
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

static frit_status pass_on(const frit_err *from, frit_err *err)
{
    return fail(err, from->status, "%s", from->text);
}

/* The group has ended, for this reason. */
static frit_status end_group(struct frit_rank *rank, const frit_err *why, frit_err *err)
{
    rank->failure = *why;
    (void)fail_context(&rank->failure, "group %s, rank %u of %u, operation %llu", rank->name,
                       rank->rank, rank->size, (unsigned long long)rank->begun + 1);
    return pass_on(&rank->failure, err);
}

frit_status rank_give_up(struct frit_rank *rank, frit_err *err)
{
    frit_err why = *err;

    if (rank->failure.status)
        return why.status;
    if (rank->hooks)
        rank->hooks->failed(rank->hooks_ctx, &why);
    end_group(rank, &why, err);
    rank_abort(rank, FRIT_ABORTED, rank->failure.text);
    return err->status;
}

static frit_status begin(struct frit_rank *rank, const frit_collective_op *op, frit_err *err)
{
    uint64_t value = 0;

    TRY(fail_from(err, rank->table->begin(rank->group, op, &value, err), "begin"));
    if (value != rank->begun + 1)
        return fail(err, FRIT_INTERNAL, "the engine gives it the value %llu",
                    (unsigned long long)value);
    return FRIT_OK;
}

static frit_status wait(const struct frit_rank *rank, uint64_t value, frit_err *err)
{
    frit_status st =
        fail_from(err, rank->table->wait(rank->group, value, rank->timeout_ns, err), "wait");

    if (st == FRIT_TIMEOUT)
        (void)fail_context(err, "not done after %llu ms",
                           (unsigned long long)(rank->timeout_ns / 1000000));
    return st;
}

/* After a wait that says how the group has ended the engine touches no buffer any more. */
static void wait_for_end(const struct frit_rank *rank, uint64_t value)
{
    frit_err err = ERR_INIT;

    while (rank->table->wait(rank->group, value, UINT64_MAX, &err) == FRIT_TIMEOUT)
        ;
}

frit_status rank_run(struct frit_rank *rank, const frit_collective_op *op, frit_err *err)
{
    frit_err why = ERR_INIT;
    frit_status st;

    if (rank->failure.status)
        return pass_on(&rank->failure, err);
    if (rank->hooks)
        rank->hooks->begins(rank->hooks_ctx, op->n_buffers ? op->buffers->count : 0);
    st = begin(rank, op, &why);
    if (st == FRIT_UNSUPPORTED) /* on each rank, as it depends on the operation alone */
        return pass_on(&why, err);
    if (!st)
        st = wait(rank, rank->begun + 1, &why);
    if (rank->hooks)
        rank->hooks->ended(rank->hooks_ctx);
    if (st) {
        *err = why;
        (void)rank_give_up(rank, err);
        if (st == FRIT_TIMEOUT)
            wait_for_end(rank, rank->begun + 1);
        return st;
    }
    rank->begun++;
    return FRIT_OK;
}

frit_status ranks_wait(struct frit_rank *ranks, frit_err *err)
{
    for (struct frit_rank *rank = ranks; rank; rank = rank->next) {
        if (rank->failure.status)
            return pass_on(&rank->failure, err);
    }
    return FRIT_OK;
}
