/* SPDX-License-Identifier: Apache-2.0 */
#include "run/collective.h"

#include <frit/collective.h>

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/effects.h"
#include "device/lineage.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/drain.h"
#include "run/mirror.h"
#include "run/rank.h"
#include "run/run.h"
#include "run/transfer.h"
#include "tensor/failure.h"

/* An all_reduce under way. */
struct reducing {
    const struct collective_call *call;
    uint64_t bytes;
    struct value from; /* dense; owned if `copied` */
    bool copied;
    void *staging; /* NULL: the device's memory itself */
    const void *source;
    void *into;
};

static frit_status operand_failure(const struct reducing *r, frit_err *err)
{
    struct failure *failure = lineage_failure_of(r->call->device->lineage, r->call->in.buffer);
    frit_status st = FRIT_OK;

    if (failure)
        st = fail(err, failure->status, "%s", failure->text);
    failure_unref(failure);
    return st;
}

/* Finds the elements of both where the host sees them; false: it does not. */
static frit_status find_bytes(struct reducing *r, bool *seen, frit_err *err)
{
    const struct collective_call *c = r->call;
    const struct value *in = &c->in;
    char *from;

    *seen = false;
    r->into = transfer_host_bytes(c->device, c->out);
    if (!r->into)
        return FRIT_OK;
    r->from = *in;
    if (!layout_is_dense(&in->type, &in->layout)) {
        TRY(run_relayout(c->device, in, NULL, &r->from, err));
        r->copied = true;
    }
    from = transfer_host_bytes(c->device, r->from.buffer);
    *seen = from;
    if (*seen)
        r->source = from + frit_storage_bytes(in->type.dtype, r->from.layout.offset);
    return operand_failure(r, err);
}

/* Copies the operand to host memory; waits for it, and fails if it failed. */
static frit_status stage(struct reducing *r, frit_err *err)
{
    const struct collective_call *c = r->call;
    struct transfer_read read;
    frit_status st;

    r->source = r->into = r->staging = malloc(r->bytes);
    if (!r->staging)
        return fail_memory(err, r->bytes);
    buffer_pin(c->in.buffer);
    st = transfer_start(c->device, &c->in, r->staging, &read, err);
    return transfer_finish(&read, st, err);
}

static frit_status prepare(struct reducing *r, frit_err *err)
{
    const struct collective_call *c = r->call;
    bool seen;

    TRY(effects_await(c->device, err));
    if (r->bytes == 0)
        return FRIT_OK;
    if (buffer_is_away(c->in.buffer))
        TRY(mirror_fetch(c->device, c->in.buffer, err));
    TRY(find_bytes(r, &seen, err));
    return seen ? FRIT_OK : stage(r, err);
}

/* The result is in the output's memory, which holds nothing of before. */
static frit_status finish(const struct reducing *r, frit_err *err)
{
    const struct collective_call *c = r->call;

    if (r->bytes == 0)
        return FRIT_OK;
    if (r->staging)
        return transfer_fill(c->device, c->out, r->staging, err);
    lineage_transferred(c->device->lineage, c->out, 0);
    buffer_changed(c->out);
    return FRIT_OK;
}

static frit_status reduce(struct reducing *r, struct frit_rank *rank, frit_err *err)
{
    const struct op_type *type = &r->call->in.type;
    frit_collective_buffer buffer = {.count = (uint64_t)op_elements(type), .dtype = type->dtype};
    const frit_collective_op op = {.struct_size = sizeof(op),
                                   .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                   .combine = (uint32_t)r->call->attrs.combine,
                                   .n_buffers = 1,
                                   .buffer_stride = sizeof(buffer),
                                   .buffers = &buffer};

    if (prepare(r, err)) {
        (void)fail_context(err, "it cannot begin");
        return rank_give_up(rank, err);
    }
    buffer.from = r->source;
    buffer.into = r->into;
    return rank_run(rank, &op, err);
}

static frit_status all_reduce(const struct collective_call *call, frit_err *err)
{
    struct frit_rank *rank = rank_find(call->ranks, call->attrs.group, err);
    struct reducing r = {.call = call,
                         .bytes =
                             frit_storage_bytes(call->in.type.dtype, op_elements(&call->in.type))};
    frit_err why = ERR_INIT;
    frit_status st;

    if (!rank)
        return FRIT_INVALID;
    st = rank->failure.status ? rank_run(rank, NULL, &why) : reduce(&r, rank, &why);
    if (!st)
        st = finish(&r, &why);
    if (r.copied)
        buffer_disown(r.from.buffer);
    free(r.staging);
    return st ? fail(err, st, "%s", why.text) : FRIT_OK;
}

frit_status collective_run(const struct collective_call *call, frit_err *err)
{
    return call->op == FRIT_OP_all_reduce ? all_reduce(call, err) : ranks_wait(call->ranks, err);
}

void collective_give_up(struct frit_rank *ranks, const frit_attrs_collective *attrs,
                        frit_status status, const char *why)
{
    struct frit_rank *rank = rank_find(ranks, attrs ? attrs->group : 0, NULL);
    frit_err err = ERR_INIT;

    if (!rank)
        return;
    (void)fail(&err, status, "it cannot begin: %s", why);
    (void)rank_give_up(rank, &err);
}

void collective_refuse(struct stream *stream, const frit_attrs_collective *attrs,
                       const struct failure *why)
{
    if (!atomic_load(&stream->n_ranks) || !stream_drain(stream, DRAIN_SYNC))
        return;
    pthread_mutex_lock(&stream->baton);
    collective_give_up(stream->ranks, attrs, why->status, why->text);
    pthread_mutex_unlock(&stream->baton);
}
