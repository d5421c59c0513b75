/* SPDX-License-Identifier: Apache-2.0 */
/* Values that must end up in preassigned memory (FRIT_ARG_PREASSIGNED).
 *
 * A program writes into that memory itself if it can, and if no other value in it is still needed.
 * A value that was made elsewhere (a view, memory with a tail, a fallback, another device) is
 * copied there after all steps have run, so that steps that read the memory see its old contents.
 * Threads: one at a time. */
#include "run/assign.h"

#include "run/bind_args.h"
#include "run/bound_plan.h"
#include "run/launch_parts.h"

#include "base/fail.h"
#include "device/prepared.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/batch.h"
#include "run/frame_batch.h"
#include "run/item.h"
#include "run/launch.h"
#include "run/mirror.h"
#include "run/run_frame.h"
#include "tensor/failure.h"

/* ---- written by the launch ---- */

/* Whether any byte of the value lies in `memory`. */
static bool overlaps(const struct value *value, const struct buffer *memory)
{
    const struct buffer *buffer = value->buffer;
    struct extent extent = launch_extent(value);
    uint64_t begin = buffer->offset + extent.first;

    return buffer->handle == memory->handle && begin < memory->offset + memory->bytes &&
           memory->offset < begin + extent.bytes;
}

/* Whether `memory` holds no value of the frame that is needed after this launch; the result that it
 * is a part of is none yet.  Whether the
 * launch may overwrite its own operands is checked by may_overwrite. */
static bool is_unused(const struct frame *frame, const struct buffer *memory)
{
    for (uint32_t v = 0; v < frame->n_values; v++) {
        const struct run_value *value = &frame->values[v];

        if (!value->value.buffer || value->value.buffer == memory->whole ||
            !overlaps(&value->value, memory))
            continue;
        if (value->external ? frame_is_used_later(frame, v) : !frame_dies(frame, v))
            return false;
    }
    return true;
}

void launch_assign(struct launch *l)
{
    if (!l->frame->n_assigned && !l->frame->has_buckets)
        return;
    for (uint32_t k = 0; k < l->call->n_out && !l->copy_of; k++) {
        struct buffer *memory =
            l->call->out[k] == GRAPH_NO_VALUE ? NULL : l->frame->values[l->call->out[k]].assigned;

        if (!memory || !is_unused(l->frame, memory))
            continue;
        l->out[k].buffer = memory;
        l->n_assigned++;
    }
}

void launch_unassign(struct launch *l)
{
    for (uint32_t k = 0; k < l->call->n_out; k++)
        l->out[k].buffer = NULL;
    l->n_assigned = 0;
}

bool launch_reads(const struct launch *l, const struct buffer *memory)
{
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        if (l->in[i].type.dtype != FRIT_NO_DTYPE && overlaps(&l->in[i], memory))
            return true;
    }
    return false;
}

/* Whether the output may overwrite the operands that overlap its memory: the program must allow the
 * alias, and operand and memory must be the same bytes. */
static bool may_overwrite(const struct launch *l, const struct buffer *memory,
                          const frit_output_spec *spec)
{
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        const struct value *in = &l->in[i];
        struct extent extent;

        if (in->type.dtype == FRIT_NO_DTYPE || !overlaps(in, memory))
            continue;
        extent = launch_extent(in);
        if (!prepared_may_alias(spec, i) || in->buffer->offset + extent.first != memory->offset ||
            extent.bytes != memory->bytes)
            return false;
    }
    return true;
}

bool launch_assigned_fits(const struct launch *l)
{
    for (uint32_t k = 0; k < l->call->n_out; k++) {
        const frit_output_spec *spec = prepared_output(l->prepared, k);
        const struct buffer *memory = l->out[k].buffer;

        if (memory &&
            (spec->strided || spec->bytes > memory->bytes ||
             (spec->align && memory->offset % spec->align) || !may_overwrite(l, memory, spec)))
            return false;
    }
    return true;
}

/* ---- copied after the steps ---- */

/* Adds the copy of a value into its memory; by way of a dense copy if the value is not dense or
 * overlaps the memory. */
static frit_status add_copy(struct frame *frame, uint32_t number, frit_err *err)
{
    struct run_value *v = &frame->values[number];
    struct buffer *memory = v->assigned;
    struct run_scratch *s = frame->scratch;
    struct value from = v->value;

    TRY(mirror_fetch(frame->device, from.buffer, err));
    if (!layout_is_dense(&from.type, &from.layout) || overlaps(&from, memory))
        TRY(launch_copy(frame, number, NULL, &from, err));
    bound_plan_spoil(frame->bound); /* which cannot hold COPY commands */
    TRY(frame_reserve(frame, 2, err));
    TRY(batch_copy(&s->batch, from.buffer, launch_extent(&from).first, memory, err));
    TRY(batch_writes(&s->batch, memory, err));
    frame_bury(frame, number);
    buffer_own(memory);
    frame_add_made(frame, number, memory, NO_CHANGE);
    launch_enter_copy(frame, from.buffer, memory);
    return FRIT_OK;
}

/* Whether the value was written into its memory already. */
static bool is_in_place(const struct value *value, const struct buffer *memory)
{
    return value->buffer == memory ||
           (layout_is_dense(&value->type, &value->layout) &&
            value->buffer->handle == memory->handle &&
            value->buffer->offset + launch_extent(value).first == memory->offset);
}

static frit_status copy_item(struct frame *frame, uint32_t number, frit_err *err)
{
    struct frame_mark mark = frame_mark(frame);
    frit_status st = add_copy(frame, number, err);

    if (!st && !frame_note_item(frame))
        st = fail_memory(err, sizeof(struct cursor));
    if (st)
        frame_undo(frame, &mark);
    return st;
}

void item_run_assigned(struct frame *frame)
{
    uint32_t number = frame->assigned[frame->at.step - frame->n_steps];
    struct run_value *v = &frame->values[number];
    struct failure *failure = NULL;
    frit_err err = ERR_INIT;
    frit_status st = FRIT_OK;

    if (v->value.buffer && !is_in_place(&v->value, v->assigned)) {
        if (item_was_refused(frame)) {
            err = frame->refusal;
            st = frame->refusal.status;
        } else {
            st = copy_item(frame, number, &err);
        }
        if (st == FRIT_NO_DEVICE_MEMORY && frame->scratch->batch.n_cmds) {
            if (!run_settle(frame))
                return;
            st = copy_item(frame, number, &err);
        }
    }
    if (st) {
        fail_context(&err, "writing a value to its preassigned memory");
        failure = failure_create(&err);
        item_fail(frame, &frame->at, failure);
        failure_unref(failure);
    }
    frame->at.step++;
}
