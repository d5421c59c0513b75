/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the arguments of a launch their memory: operands keep theirs; an output gets the memory
 * assigned to it, that of an operand whose last use this is, or a new buffer.  A workspace ends
 * with its launch, so that the next launch of the batch may use its memory after a BARRIER. */
#include "run/bind_args.h"

#include "run/assign.h"
#include "run/launch_parts.h"

#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/prepared.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/context.h"
#include "run/batch.h"
#include "run/bind_derived.h"
#include "run/bound_plan.h"
#include "run/frame.h"
#include "run/launch.h"
#include "run/mirror.h"

struct extent launch_extent(const struct value *value)
{
    int64_t low, high;

    layout_span(&value->type, &value->layout, &low, &high);
    if (op_elements(&value->type) == 0)
        return (struct extent){0};
    return (struct extent){.first = frit_storage_bytes(value->type.dtype, low),
                           .bytes = frit_storage_bytes(value->type.dtype, high - low + 1),
                           .origin =
                               frit_storage_bytes(value->type.dtype, value->layout.offset - low)};
}

/* ---- arguments ---- */

void launch_touch(struct launch *l, const void *memory, uint64_t begin, uint64_t bytes, bool write)
{
    l->ranges[l->n_ranges++] = (struct batch_range){memory, begin, begin + bytes, write};
}

/* A program may also write the tail, the bytes of the buffer after an output. */
static void bind(struct launch *l, uint32_t index, uint64_t flags)
{
    const struct value *value = launch_value(l, index);
    const struct buffer *buffer = value->buffer;
    struct extent extent = launch_extent(value);
    frit_arg *arg = &l->args[index];
    bool write = flags & FRIT_ARG_WRITE;

    *arg = (frit_arg){.memory = buffer->handle,
                      .offset = buffer->offset + extent.first,
                      .extent = extent.bytes,
                      .origin = extent.origin,
                      .dtype = value->type.dtype,
                      .rank = value->type.rank,
                      .align_log2 = launch_align_log2(l, buffer->offset + extent.first),
                      .tail = extent.first + extent.bytes == buffer->bytes ? buffer->tail : 0,
                      .flags = flags};
    if (buffer_starts(buffer, extent.first))
        arg->flags |= FRIT_ARG_START;
    memcpy(arg->dims, value->type.dims, sizeof(arg->dims));
    memcpy(arg->strides, value->layout.strides, sizeof(arg->strides));
    launch_touch(l, arg->memory, arg->offset, arg->extent + (write ? arg->tail : 0), write);
}

static frit_status bind_inputs(struct launch *l, frit_err *err)
{
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        if (l->in[i].type.dtype == FRIT_NO_DTYPE)
            continue;
        TRY(mirror_fetch(l->frame->device, l->in[i].buffer, err));
        TRY(batch_uses(l->batch, l->in[i].buffer, false, err));
        bind(l, i, FRIT_ARG_READ);
    }
    return FRIT_OK;
}

/* ---- outputs ---- */

/* How many arguments of the launch lie in a buffer: open addressing, `n_uses` a power of two. */
struct buffer_use {
    const struct buffer *buffer; /* NULL: the slot is empty */
    uint32_t n;
};

static struct buffer_use *use_of(const struct launch *l, const struct buffer *buffer)
{
    uint32_t at = (uint32_t)((uintptr_t)buffer >> 4) * 2654435769u >> (32 - l->log2_uses);

    while (l->uses[at].buffer && l->uses[at].buffer != buffer)
        at = (at + 1) & ((1u << l->log2_uses) - 1);
    return &l->uses[at];
}

static void count_use(const struct launch *l, const struct buffer *buffer)
{
    struct buffer_use *use = use_of(l, buffer);

    use->buffer = buffer;
    use->n++;
}

/* Operands, and outputs that have their memory already. */
static frit_status count_uses(struct launch *l, frit_err *err)
{
    uint32_t n = l->call->n_in + l->call->n_out;

    l->log2_uses = 1;
    while (1u << l->log2_uses < 2 * n)
        l->log2_uses++;
    l->uses = arena_array(&l->batch->arena, (size_t)1 << l->log2_uses, sizeof(*l->uses));
    if (!l->uses)
        return fail_memory(err, sizeof(*l->uses) << l->log2_uses);
    for (uint32_t i = 0; i < n; i++) {
        const struct value *value = launch_value(l, i);

        if (value->type.dtype != FRIT_NO_DTYPE && value->buffer)
            count_use(l, value->buffer);
    }
    return FRIT_OK;
}

/* Of the outputs of persistent ops only those that are wanted after the run are persistent, which
 * get a chunk of their own. */
static void note_persistent(const struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_ops; i++) {
        const struct graph_op *op = &l->frame->graph->ops[l->call->ops[i]];

        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k] != GRAPH_NO_VALUE)
                l->frame->values[op->out[k]].persistent =
                    l->frame->values[op->out[k]].wanted &&
                    l->frame->ops[l->call->ops[i]].context & CONTEXT_PERSISTENT;
        }
    }
}

/* Whether an output of this many bytes may take the memory of input `index`: it is the input's last
 * use, nothing else owns the memory, no other argument lies in it, and the output can begin where
 * the input does. */
static bool may_take(const struct launch *l, uint32_t index, uint64_t bytes, bool persistent)
{
    uint32_t value = l->copy_of ? GRAPH_NO_VALUE : l->call->in[index];
    const struct buffer *buffer = l->in[index].buffer;
    struct extent extent;

    if (value == GRAPH_NO_VALUE || l->copied[index] || !buffer->handle ||
        l->frame->values[value].value.buffer != buffer)
        return false;
    extent = launch_extent(&l->in[index]);
    if (extent.bytes == 0 || extent.first % launch_align(l) ||
        bytes > buffer->bytes - extent.first || buffer_is_persistent(buffer) != persistent)
        return false;
    if (use_of(l, buffer)->n > 1)
        return false;
    return frame_dies(l->frame, value) && frame_is_sole_owner(l->frame, value);
}

/* How many elements lie in this many bytes; false if that is not a whole number. */
static bool elements_before(uint32_t dtype, uint64_t bytes, int64_t *count)
{
    uint64_t one = frit_storage_bytes(dtype, 1);

    *count = one ? (int64_t)(bytes / one) : 0;
    return frit_storage_bytes(dtype, *count) == bytes;
}

/* Places output `k` in the memory of the input, if it may; whether it did. */
static bool place_in_operand(struct launch *l, uint32_t k, uint32_t input, uint64_t bytes,
                             bool persistent)
{
    uint32_t dtype = l->out[k].type.dtype, reused;
    struct buffer *buffer;
    int64_t offset;

    if (!may_take(l, input, bytes, persistent) ||
        !elements_before(dtype, launch_extent(&l->in[input]).first, &offset))
        return false;
    buffer = frame_inherit(l->frame, l->call->in[input], &reused);
    l->out[k].layout.offset = offset;
    l->out[k].buffer = buffer;
    count_use(l, buffer);
    frame_add_made(l->frame, l->call->out[k], buffer, reused);
    bound_plan_add_made(l->frame->bound, l->call->out[k], buffer, l->call->in[input]);
    atomic_fetch_add(&l->frame->device->count.in_place, 1);
    frame_note_mark(l->frame, RUN_IN_PLACE);
    return true;
}

/* Tries the inputs whose memory the program allows for the output. */
static bool place_in_an_operand(struct launch *l, uint32_t k, const frit_output_spec *spec,
                                uint64_t bytes, bool persistent)
{
    for (uint32_t i = 0; i < spec->n_alias; i++) {
        if (place_in_operand(l, k, spec->alias[i], bytes, persistent))
            return true;
    }
    return false;
}

/* With the zones around it. */
static frit_status poison(struct launch *l, struct buffer *buffer, frit_err *err)
{
    if (l->frame->zone_bytes && buffer->whole)
        return batch_fill(l->batch, buffer->whole, 0, 0xff, err);
    return l->frame->device->config.poison ? batch_fill(l->batch, buffer, 0, 0xff, err) : FRIT_OK;
}

/* Places an output in memory assigned to it, of which the value becomes one more owner. */
static frit_status place_assigned(struct launch *l, uint32_t k, frit_err *err)
{
    struct buffer *memory = l->out[k].buffer;

    buffer_own(memory);
    frame_add_made(l->frame, l->call->out[k], memory, NO_CHANGE);
    if (!launch_reads(l, memory))
        TRY(poison(l, memory, err));
    atomic_store(&memory->last_write, 0);
    bind(l, l->call->n_in + k, FRIT_ARG_WRITE | FRIT_ARG_PREASSIGNED);
    bound_plan_add_assigned(l->frame->bound, l->call->out[k], &l->args[l->call->n_in + k], memory,
                            l->frame->values[l->call->out[k]].in_bucket);
    return batch_writes(l->batch, memory, err);
}

static frit_status place_output(struct launch *l, uint32_t k, frit_err *err)
{
    const frit_output_spec *spec = prepared_output(l->prepared, k);
    bool persistent = !l->copy_of && l->frame->values[l->call->out[k]].persistent;
    struct value *out = &l->out[k];
    uint64_t bytes;
    uint32_t reused;

    if (spec->strided)
        memcpy(out->layout.strides, spec->strides, out->type.rank * sizeof(int64_t));
    bytes = launch_extent(out).bytes;
    if (spec->bytes > bytes)
        bytes = spec->bytes;
    if (!place_in_an_operand(l, k, spec, bytes, persistent)) {
        TRY(frame_claim(l->frame, bytes, persistent, &out->buffer, &reused, err));
        if (l->copy_of)
            frame_add_workspace(l->frame, out->buffer, reused);
        else
            frame_add_made(l->frame, l->call->out[k], out->buffer, reused);
        if (!l->copy_of)
            bound_plan_add_made(l->frame->bound, l->call->out[k], out->buffer, GRAPH_NO_VALUE);
        TRY(poison(l, out->buffer, err));
    }
    atomic_store(&out->buffer->last_write, 0);
    bind(l, l->call->n_in + k, FRIT_ARG_WRITE);
    return batch_writes(l->batch, out->buffer, err);
}

frit_status launch_workspace(struct launch *l, uint64_t bytes, bool zeroed, struct buffer **out,
                             frit_err *err)
{
    uint32_t reused;

    TRY(frame_claim(l->frame, bytes, false, out, &reused, err));
    frame_add_workspace(l->frame, *out, reused);
    TRY(batch_uses(l->batch, *out, true, err));
    launch_touch(l, (*out)->handle, (*out)->offset, bytes, true);
    l->workspaces[l->n_workspaces++] = *out;
    if (!zeroed || l->frame->zone_bytes)
        TRY(poison(l, *out, err));
    return zeroed ? batch_fill(l->batch, *out, bytes, 0, err) : FRIT_OK;
}

/* What ORDERED ops do to the world counts as one byte that each of them writes, so that a BARRIER
 * keeps them in order; submits are kept in order by points (device/effects.h). */
static bool has_effects(const struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_ops; i++) {
        if (op_row(l->frame->graph->ops[l->call->ops[i]].op)->traits & FRIT_OP_ORDERED)
            return true;
    }
    return false;
}

frit_status launch_bind_args(struct launch *l, frit_err *err)
{
    const frit_launch_spec *spec = &l->prepared->spec;
    struct buffer *space;

    l->workspaces = arena_array(&l->batch->arena, spec->n_derived + 1u, sizeof(struct buffer *));
    l->ranges = arena_array(&l->batch->arena, l->call->n_in + l->call->n_out + 2u + spec->n_derived,
                            sizeof(*l->ranges));
    if (!l->workspaces || !l->ranges)
        return fail_memory(err, sizeof(*l->ranges));
    TRY(bind_inputs(l, err));
    TRY(count_uses(l, err));
    if (!l->copy_of)
        note_persistent(l);
    TRY(frame_reserve(l->frame, 2 * l->call->n_out + 1 + spec->n_derived, err));
    for (uint32_t k = 0; k < l->call->n_out; k++) {
        if (l->out[k].type.dtype == FRIT_NO_DTYPE)
            continue;
        TRY(l->out[k].buffer ? place_assigned(l, k, err) : place_output(l, k, err));
    }
    if (has_effects(l)) {
        launch_touch(l, l->frame->device, 0, 1, true);
        l->batch->after.effects = true;
    }
    if (spec->workspace_bytes) {
        TRY(launch_workspace(l, spec->workspace_bytes, spec->workspace_zeroed, &space, err));
        l->launch->workspace = space->handle;
        l->launch->workspace_offset = space->offset;
    }
    return spec->n_derived ? launch_bind_derived(l, err) : FRIT_OK;
}
