/* SPDX-License-Identifier: Apache-2.0 */
#include "run/preassign.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/binding.h"
#include "run/drain.h"
#include "run/explore.h"
#include "run/run.h"
#include "tensor/failure.h"

static bool meet(const struct buffer *a, const struct buffer *b)
{
    return a->handle == b->handle && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static uint64_t bytes_of(const struct slot *slot)
{
    return frit_storage_bytes(slot->value.type.dtype, op_elements(&slot->value.type));
}

/* Inside the lock: whether the queue makes it, and has not been detached. */
static bool is_queued(const struct slot *slot)
{
    const struct stream *stream = (const struct stream *)slot_home_of(slot);
    const struct segment *segment = stream->segment;

    return slot->epoch == segment->epoch && segment->values[slot->index].maker != SEGMENT_EXTERNAL;
}

static frit_status check(const struct slot *slot, const struct buffer *buffer, uint64_t offset,
                         frit_err *err)
{
    uint64_t bytes = bytes_of(slot), one = frit_storage_bytes(slot->value.type.dtype, 1);

    if (slot->state == SLOT_FAILED)
        return fail(err, slot->failure->status, "%s", slot->failure->text);
    if (!slot->device || slot->device->memory != buffer->memory)
        return fail(err, FRIT_INVALID, "the memory assigned to a tensor is on another device");
    if (offset > buffer->bytes || bytes > buffer->bytes - offset)
        return fail(err, FRIT_INVALID,
                    "a tensor of %llu bytes is assigned to byte %llu of a buffer of %llu",
                    (unsigned long long)bytes, (unsigned long long)offset,
                    (unsigned long long)buffer->bytes);
    if (bytes && (buffer->offset + offset) % one)
        return fail(
            err, FRIT_INVALID,
            "a tensor is assigned to byte %llu, which is not a multiple of its element's %llu",
            (unsigned long long)offset, (unsigned long long)one);
    return FRIT_OK;
}

/* Inside the lock: joins the list of those that wait; the assignment comes with its memory. */
static frit_status enlist(struct slot *slot, struct assignment *assignment, frit_err *err)
{
    struct stream *stream = (struct stream *)slot_home_of(slot);

    for (const struct assignment *a = stream->assignments; a; a = a->next) {
        if (a->slot == slot)
            return fail(err, FRIT_INVALID, "the tensor has memory assigned already");
        if (meet(a->memory, assignment->memory))
            return fail(err, FRIT_INVALID, "two tensors are assigned to the same bytes");
    }
    slot->owners++;
    assignment->tensor = slot_handle(slot);
    assignment->slot = slot;
    assignment->next = stream->assignments;
    stream->assignments = assignment;
    return FRIT_OK;
}

/* Inside the lock, for a tensor that is there or will be.  *value: pinned, to be copied; its buffer
 * NULL: it waits now. */
static frit_status assign(struct slot *slot, struct buffer *buffer, uint64_t offset,
                          struct assignment *assignment, struct value *value, frit_err *err)
{
    TRY(check(slot, buffer, offset, err));
    *value = (struct value){.type = slot->value.type};
    if (bytes_of(slot) == 0)
        return FRIT_OK;
    TRY(buffer_part(buffer, offset, bytes_of(slot), &assignment->memory, err));
    if (slot->state != SLOT_READY)
        return enlist(slot, assignment, err);
    *value = slot->value;
    buffer_pin(value->buffer);
    return FRIT_OK;
}

/* Resolves like slot_enter, when the tensor waits in a queue or is there. */
static struct slot *enter(frit_tensor *tensor, frit_err *err)
{
    struct slot *slot;

    while ((slot = slot_enter(tensor, err)) && slot->state == SLOT_PENDING && !is_queued(slot)) {
        struct stream *home = (struct stream *)slot_home_of(slot);

        slot_leave(slot);
        if (!stream_drain(home, DRAIN_SHARE)) {
            stream_refuse_driver(err);
            return NULL;
        }
    }
    return slot;
}

frit_status stream_preassign(frit_tensor *tensor, struct buffer *buffer, uint64_t offset,
                             frit_err *err)
{
    struct assignment *assignment = calloc(1, sizeof(*assignment));
    struct value value = {0};
    frit_device *device;
    struct slot *slot;
    frit_status st;

    if (!assignment)
        return fail_memory(err, sizeof(*assignment));
    slot = enter(tensor, err);
    if (!slot) {
        free(assignment);
        return thread_is_executing() ? FRIT_BUSY : FRIT_INVALID;
    }
    device = slot->device;
    st = assign(slot, buffer, offset, assignment, &value, err);
    slot_leave(slot);
    if (value.buffer) {
        st = run_write_into(device, &value, assignment->memory, err);
        buffer_unpin(value.buffer);
    }
    if (!assignment->tensor) {
        buffer_disown(assignment->memory);
        free(assignment);
    }
    return st;
}

/* ---- for the stream ---- */

struct assignment *preassign_detach(struct stream *stream, const struct segment *rest)
{
    struct assignment *taken = NULL, **at = &stream->assignments;

    while (*at) {
        struct assignment *a = *at;

        if (a->slot->epoch == rest->epoch &&
            rest->values[a->slot->index].maker != SEGMENT_EXTERNAL) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        a->next = taken;
        taken = a;
    }
    return taken;
}

void preassign_bind(const struct assignment *list, const struct segment *segment,
                    const struct explorer *explorer, struct run_value *values)
{
    for (const struct assignment *a = list; a; a = a->next) {
        for (uint32_t i = 0; i < explorer->n_values; i++) {
            if (segment->values[i].slot == a->slot)
                values[explorer->value_of[i]].assigned = a->memory;
        }
    }
}

void preassign_end(struct assignment *list)
{
    while (list) {
        struct assignment *next = list->next;

        stream_disown(list->tensor);
        buffer_disown(list->memory);
        free(list);
        list = next;
    }
}

void preassign_forget(struct stream *stream)
{
    while (stream->assignments) {
        struct assignment *next = stream->assignments->next;

        buffer_disown(stream->assignments->memory);
        free(stream->assignments);
        stream->assignments = next;
    }
}
