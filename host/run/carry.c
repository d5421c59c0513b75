/* SPDX-License-Identifier: Apache-2.0 */
#include "run/carry.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "device/programs.h"
#include "device/queue.h"
#include "device/wait.h"
#include "load/registry.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/bind_args.h"
#include "run/launch_parts.h"
#include "run/mirror.h"
#include "tensor/failure.h"

/* ---- start ---- */

/* Whether the driver can lay the value out densely by itself. */
static bool copies(frit_device *device, const struct value *value)
{
    const struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = value->type};
    const struct program_call call = {
        .op = FRIT_OP_copy, .n_in = 1, .n_out = 1, .in = &in, .out = &value->type};
    bool yes;

    return !programs_have(device, &call, &yes, NULL) && yes;
}

/* Sets what to read.  A driver without a copy of its own would have it run on another device, which
 * the value would have to get to first: it goes as it lies. */
static frit_status prepare(struct carry *carry, const struct value *pinned, bool whole_buffer)
{
    struct extent extent;
    int64_t low, high;

    if (whole_buffer) {
        carry->as_it_lies = true;
        carry->read.bytes = pinned->buffer->bytes;
        return FRIT_OK;
    }
    if (op_elements(&pinned->type) == 0 || layout_is_dense(&pinned->type, &pinned->layout) ||
        copies(carry->read.device, pinned))
        return transfer_prepare(carry->read.device, pinned, NULL, &carry->read, &carry->err);
    extent = launch_extent(pinned);
    carry->as_it_lies = true;
    carry->read.first = extent.first;
    carry->read.bytes = extent.bytes;
    layout_span(&pinned->type, &pinned->layout, &low, &high);
    carry->source.layout.offset -= low;
    return FRIT_OK;
}

static bool can_copy(const struct carry *carry)
{
    const frit_device *from = carry->read.device, *to = carry->to;

    return to->backend->copy_from && to != from && to->entry->plugin == from->entry->plugin;
}

/* Where the host can write into the target's memory, the bytes are read into it. */
static frit_status start_read(struct carry *carry)
{
    struct transfer_read *read = &carry->read;

    read->data = transfer_host_bytes(carry->to, carry->target);
    if (!read->data)
        read->data = carry->staging = malloc(read->bytes);
    if (!read->data)
        return fail_memory(&carry->err, read->bytes);
    transfer_begin(read, 1);
    return FRIT_OK;
}

static frit_status start(struct carry *carry, const struct value *pinned,
                         const struct carry_how *how)
{
    pending_wait(carry->read.device->pending, pinned->buffer);
    TRY(prepare(carry, pinned, how->whole_buffer));
    if (!carry->read.bytes)
        return FRIT_OK;
    TRY(buffer_create(carry->to->memory, carry->read.bytes, how->persistent, &carry->target,
                      &carry->err));
    carry->is_direct = can_copy(carry);
    return carry->is_direct ? FRIT_OK : start_read(carry);
}

void carry_start(frit_device *from, const struct value *pinned, frit_device *to,
                 const struct carry_how *how, struct carry *carry)
{
    *carry = (struct carry){
        .read = {.device = from, .value = *pinned}, .to = to, .source = *pinned, .err = ERR_INIT};
    carry->status = start(carry, pinned, how);
}

/* ---- finish ---- */

/* The driver copies when the bytes are there; the target's point is in `at`. */
static frit_status copy(struct carry *carry, uint64_t *at)
{
    const struct transfer_read *read = &carry->read;
    const struct buffer *source = read->value.buffer, *target = carry->target;
    const frit_peer_source from = {.struct_size = sizeof(from),
                                   .device = read->device->self,
                                   .memory = source->handle,
                                   .offset = source->offset + read->first};
    frit_transfer to = {.struct_size = sizeof(to),
                        .memory = target->handle,
                        .offset = target->offset,
                        .bytes = read->bytes};
    struct points before = {0}, after = {0};

    buffer_add_waits(source, true, &before);
    TRY(device_wait_points(read->device, &before, &carry->err));
    buffer_add_waits(target, false, &after);
    return device_copy_from(carry->to, 0, &to, &from, &after, at, &carry->err);
}

/* The source's bytes are needed until the copy has ended. */
static frit_status copy_directly(struct carry *carry)
{
    struct buffer *target = carry->target;
    struct failure *failure;
    uint64_t at = 0;

    TRY(copy(carry, &at));
    buffer_use(target, at);
    atomic_store(&target->last_write, at);
    lineage_transferred(carry->to->lineage, target, at);
    TRY(device_wait(carry->to, at, &carry->err));
    failure = lineage_failure_of(carry->to->lineage, target);
    if (failure) {
        frit_status st = fail(&carry->err, failure->status, "%s", failure->text);

        failure_unref(failure);
        return st;
    }
    atomic_fetch_add(&carry->to->count.bytes_direct, carry->read.bytes);
    return FRIT_OK;
}

/* A driver that does not copy between these two leaves it to the host. */
static frit_status copy_or_read(struct carry *carry)
{
    frit_status st = copy_directly(carry);

    if (st != FRIT_UNSUPPORTED)
        return st;
    carry->is_direct = false;
    return start_read(carry);
}

static frit_status fill_target(struct carry *carry, uint64_t bytes, frit_err *err)
{
    if (!carry->target)
        return buffer_create(carry->to->memory, 0, false, &carry->target, err);
    if (carry->staging)
        return transfer_fill(carry->to, carry->target, carry->staging, err);
    if (!carry->is_direct)
        atomic_fetch_add(&carry->to->count.bytes_in, bytes);
    return FRIT_OK;
}

frit_status carry_finish(struct carry *carry, struct value *out, frit_err *err)
{
    frit_status st = carry->status;

    *out = (struct value){.type = carry->source.type, .layout = carry->source.layout};
    if (!st && carry->is_direct)
        st = copy_or_read(carry);
    st = transfer_finish(&carry->read, st, &carry->err);
    if (st && err)
        *err = carry->err;
    if (!st)
        st = fill_target(carry, carry->read.bytes, err);
    if (!carry->as_it_lies)
        layout_dense(&out->type, &out->layout);
    if (st)
        buffer_disown(carry->target);
    else
        out->buffer = carry->target;
    free(carry->staging);
    return st;
}

frit_status carry_across(frit_device *from, const struct value *pinned, frit_device *to,
                         bool persistent, struct value *out, frit_err *err)
{
    struct carry carry;
    struct value there;

    if (mirror_pin(pinned, &there)) {
        buffer_unpin(pinned->buffer);
        from = from->fallback;
        pinned = &there;
    }
    carry_start(from, pinned, to, &(struct carry_how){.persistent = persistent}, &carry);
    return carry_finish(&carry, out, err);
}
