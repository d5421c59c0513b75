/* SPDX-License-Identifier: Apache-2.0 */
#include "run/collective.h"

#include <frit/collective.h>

#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/pending.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/drain.h"
#include "run/mirror.h"
#include "run/operation.h"
#include "run/rank.h"
#include "run/run.h"
#include "tensor/failure.h"

static uint64_t bytes_of(const struct value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

static struct operation_bytes dense_bytes(const struct value *value)
{
    return (struct operation_bytes){.buffer = value->buffer,
                                    .first =
                                        frit_storage_bytes(value->type.dtype, value->layout.offset),
                                    .bytes = bytes_of(value)};
}

static int64_t field_of(uint32_t op, const void *record, const char *name)
{
    const frit_record_info *info = op_record(op_row(op));
    int64_t value = 0;

    for (uint32_t i = 0; i < info->n_fields; i++) {
        if (strcmp(info->field[i].name, name) == 0)
            memcpy(&value, (const char *)record + info->field[i].offset, sizeof(value));
    }
    return value;
}

struct collective_attrs collective_attrs_of(uint32_t op, const void *record)
{
    if (!record)
        return (struct collective_attrs){0};
    return (struct collective_attrs){.combine = (uint32_t)field_of(op, record, "combine"),
                                     .group = field_of(op, record, "group"),
                                     .root = field_of(op, record, "root"),
                                     .ranks = field_of(op, record, "ranks")};
}

/* What the engine does for each row. */
static const struct {
    uint32_t row, kind;
} kinds[] = {{FRIT_OP_all_reduce, FRIT_COLLECTIVE_ALL_REDUCE},
             {FRIT_OP_all_reduce_coalesced, FRIT_COLLECTIVE_ALL_REDUCE},
             {FRIT_OP_all_gather, FRIT_COLLECTIVE_ALL_GATHER},
             {FRIT_OP_reduce_scatter, FRIT_COLLECTIVE_REDUCE_SCATTER},
             {FRIT_OP_broadcast_from, FRIT_COLLECTIVE_BROADCAST}};

static uint32_t kind_of(uint32_t op)
{
    uint32_t i = 0;

    while (kinds[i].row != op)
        i++;
    return kinds[i].kind;
}

static frit_status check_attrs(const struct collective_call *call, const struct frit_rank *rank,
                               frit_err *err)
{
    if (call->attrs.ranks && call->attrs.ranks != rank->size)
        return fail(err, FRIT_INVALID, "ranks is %lld, the group has %u",
                    (long long)call->attrs.ranks, rank->size);
    if (call->attrs.root < 0 || call->attrs.root >= rank->size)
        return fail(err, FRIT_INVALID, "root is %lld, the group has ranks 0..%u",
                    (long long)call->attrs.root, rank->size - 1);
    return FRIT_OK;
}

/* ---- operands ---- */

/* No operation uses it, and its bytes are on the device. */
static frit_status await(const struct collective_call *call, const struct value *in, frit_err *err)
{
    pending_wait(call->device->pending, in->buffer);
    return mirror_fetch(call->device, in->buffer, err);
}

/* The operand's elements, densely. */
static frit_status find_operand(const struct collective_call *call, struct operation *o,
                                frit_err *err)
{
    const struct value *in = &call->in[0];
    struct value copy;

    o->sources[0] = in->buffer;
    o->from = dense_bytes(in);
    if (o->from.bytes == 0)
        return FRIT_OK;
    TRY(await(call, in, err));
    if (layout_is_dense(&in->type, &in->layout))
        return FRIT_OK;
    TRY(run_relayout(call->device, in, NULL, &copy, err));
    o->copy = copy.buffer;
    o->from = dense_bytes(&copy);
    return FRIT_OK;
}

static bool is_at(const struct value *value, const struct buffer *buffer, uint64_t first)
{
    const struct operation_bytes at = dense_bytes(value);

    return layout_is_dense(&value->type, &value->layout) && at.buffer->handle == buffer->handle &&
           at.buffer->offset + at.first == buffer->offset + first;
}

/* Copies an operand to its place in the result. */
static frit_status place(const struct collective_call *call, const struct value *in, uint64_t first,
                         frit_err *err)
{
    struct buffer *part;
    frit_status st;

    TRY(await(call, in, err));
    TRY(buffer_part(call->out.buffer, first, bytes_of(in), &part, err));
    st = run_write_into(call->device, in, part, err);
    buffer_disown(part);
    if (!st)
        atomic_fetch_add(&call->device->count.bytes_coalesced, bytes_of(in));
    return st;
}

static frit_status place_operands(const struct collective_call *call, struct operation *o,
                                  frit_err *err)
{
    uint64_t first = dense_bytes(&call->out).first;

    for (uint32_t i = 0; i < call->n_in; i++) {
        const struct value *in = &call->in[i];

        o->sources[i] = in->buffer;
        if (bytes_of(in) && !is_at(in, call->out.buffer, first))
            TRY(place(call, in, first, err));
        first += bytes_of(in);
    }
    o->from = dense_bytes(&call->out);
    return FRIT_OK;
}

/* ---- beginning ---- */

static uint64_t count_of(const struct collective_call *call)
{
    const uint64_t in = (uint64_t)op_elements(&call->in[0].type);
    const uint64_t out = (uint64_t)op_elements(&call->out.type);

    return call->n_in > 1 || out < in ? out : in;
}

static frit_status make_operation(const struct collective_call *call, struct frit_rank *rank,
                                  struct operation **out, frit_err *err)
{
    struct operation *o = operation_create(call->n_in);

    *out = o;
    if (!o)
        return fail_memory(err, sizeof(*o));
    rank_describe(rank, call->attrs.group, o->note, o->what, sizeof(o->what));
    o->device = call->device;
    o->row = call->op;
    o->kind = kind_of(call->op);
    o->combine = call->attrs.combine;
    o->root = (uint32_t)call->attrs.root;
    o->dtype = call->out.type.dtype;
    o->count = count_of(call);
    TRY(check_attrs(call, rank, err));
    TRY(call->op == FRIT_OP_all_reduce_coalesced ? place_operands(call, o, err)
                                                 : find_operand(call, o, err));
    o->into = dense_bytes(&call->out);
    return FRIT_OK;
}

/* The operation ends the group, after what the rank has to run before it. */
static frit_status add_failed(struct frit_rank *rank, struct operation *o, const frit_err *why)
{
    frit_err err = *why;

    if (o) {
        o->device = NULL;
        o->into.buffer = NULL;
        o->failure = failure_create(why);
        rank_add(rank, o);
        return why->status;
    }
    (void)fail_context(&err, "it cannot begin");
    (void)rank_give_up(rank, "", &err);
    return why->status;
}

static frit_status begin(const struct collective_call *call, frit_err *err)
{
    struct frit_rank *rank = rank_find(call->ranks, call->attrs.group, err);
    struct operation *operation = NULL;

    if (!rank)
        return FRIT_INVALID;
    TRY(rank_check(rank, err));
    if (make_operation(call, rank, &operation, err))
        return add_failed(rank, operation, err);
    operation_start(operation);
    atomic_fetch_add(&call->device->count.collectives, 1);
    rank_add(rank, operation);
    return FRIT_OK;
}

frit_status collective_begin(const struct collective_call *call, frit_err *err)
{
    if (call->op && collective_is_awaited(call->op))
        return begin(call, err);
    if (call->op)
        return ranks_wait(call->ranks, err);
    pending_wait(call->device->pending, call->out.buffer);
    return FRIT_OK;
}

void collective_give_up(struct frit_rank *ranks, uint32_t op, int64_t group, frit_status status,
                        const char *why)
{
    struct frit_rank *rank = rank_find(ranks, group, NULL);
    struct operation *operation;
    frit_err err = ERR_INIT;

    if (!rank)
        return;
    operation = operation_create(0);
    if (operation) {
        operation->row = op;
        rank_describe(rank, group, operation->note, operation->what, sizeof(operation->what));
    }
    (void)fail(&err, status, "%s", why);
    (void)add_failed(rank, operation, &err);
}

void collective_refuse(struct stream *stream, uint32_t op, const void *record,
                       const struct failure *why)
{
    if (!atomic_load(&stream->n_ranks) || !stream_drain(stream, DRAIN_SYNC))
        return;
    pthread_mutex_lock(&stream->baton);
    collective_give_up(stream->ranks, op, collective_attrs_of(op, record).group, why->status,
                       why->text);
    pthread_mutex_unlock(&stream->baton);
}
