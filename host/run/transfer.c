/* SPDX-License-Identifier: Apache-2.0 */
#include "run/transfer.h"

#include <stdlib.h>

#include "base/fail.h"
#include "run/launch_parts.h"

static uint64_t value_bytes(const struct value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

/* A new buffer with `bytes` of `data`. */
static frit_status bytes_in(frit_device *device, const void *data, uint64_t bytes, bool persistent,
                            struct buffer **out, frit_err *err)
{
    frit_transfer to = {.struct_size = sizeof(to), .bytes = bytes};
    uint64_t at = 0;
    frit_status st;

    TRY(buffer_create(device->memory, bytes, persistent, out, err));
    if (bytes == 0)
        return FRIT_OK;
    to.memory = (*out)->handle;
    to.offset = (*out)->offset;
    st = device->backend->write(device->self, &to, data, &at, err);
    if (st < 0) {
        buffer_disown(*out);
        *out = NULL;
        fail_from(err, st, "write");
        device_explain_loss(device, err);
        return st;
    }
    device_reached(device, at);
    atomic_store(&(*out)->last_write, at);
    lineage_transferred(device->lineage, *out, at);
    atomic_fetch_add(&device->count.bytes_in, bytes);
    return FRIT_OK;
}

frit_status transfer_in(frit_device *device, const void *data, bool persistent, struct value *value,
                        frit_err *err)
{
    layout_dense(&value->type, &value->layout);
    return bytes_in(device, data, value_bytes(value), persistent, &value->buffer, err);
}

/* Starts copying what lies `offset` bytes behind the start of the value's buffer. */
static frit_status bytes_out(struct transfer_read *read, uint64_t offset, uint64_t bytes,
                             void *data, frit_err *err)
{
    const struct buffer *buffer = read->value.buffer;
    frit_device *device = read->device;
    const frit_transfer from = {.struct_size = sizeof(from),
                                .memory = buffer->handle,
                                .offset = buffer->offset + offset,
                                .bytes = bytes};
    frit_status st = device->backend->read(device->self, &from, data, &read->at, err);

    if (st < 0) {
        fail_from(err, st, "read");
        device_explain_loss(device, err);
        return st;
    }
    device_reached(device, read->at);
    atomic_fetch_add(&device->count.bytes_out, bytes);
    return FRIT_OK;
}

frit_status transfer_start(frit_device *device, const struct value *pinned, void *data,
                           struct transfer_read *read, frit_err *err)
{
    uint64_t bytes = value_bytes(pinned);
    frit_status st;

    *read = (struct transfer_read){.device = device, .value = *pinned};
    if (bytes == 0)
        return FRIT_OK;
    if (!layout_is_dense(&pinned->type, &pinned->layout)) {
        st = run_relayout(device, pinned, NULL, &read->value, err);
        buffer_unpin(pinned->buffer);
        read->copied = true;
        if (st)
            return st;
    }
    return bytes_out(read, frit_storage_bytes(pinned->type.dtype, read->value.layout.offset), bytes,
                     data, err);
}

/* Why the elements are no good: the read failed, or they were none before. */
static struct failure *read_failure(const struct transfer_read *read)
{
    struct lineage *lineage = read->device->lineage;
    struct failure *failure = NULL;

    if (lineage_known(lineage) >= read->at)
        failure = lineage_failure_at(lineage, read->at);
    return failure ? failure : lineage_failure_of(lineage, read->value.buffer);
}

frit_status transfer_finish(struct transfer_read *read, frit_status started, frit_err *err)
{
    struct buffer *buffer = read->value.buffer;
    struct failure *failure = NULL;
    frit_status st = started;

    if (!st)
        st = device_wait(read->device, read->at, err);
    if (!st && buffer)
        failure = read_failure(read);
    if (failure) {
        st = fail(err, failure->status, "%s", failure->text);
        failure_unref(failure);
    }
    if (buffer && read->copied)
        buffer_disown(buffer);
    else if (buffer)
        buffer_unpin(buffer);
    read->value.buffer = NULL;
    return st;
}

/* ---- between devices ---- */

/* Whether the driver can lay the value out densely by itself. */
static bool copies(frit_device *device, const struct value *value)
{
    const struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = value->type};
    const struct program_call call = {
        .op = FRIT_OP_copy, .n_in = 1, .n_out = 1, .in = &in, .out = &value->type};
    const struct op_program *program;

    return !programs_get(device, &call, &program, NULL) && program->program.table;
}

static frit_status dense_across(frit_device *from, const struct value *pinned, frit_device *to,
                                bool persistent, void *staging, struct value *out, frit_err *err)
{
    struct transfer_read read;
    frit_status st = transfer_start(from, pinned, staging, &read, err);

    TRY(transfer_finish(&read, st, err));
    return transfer_in(to, staging, persistent, out, err);
}

/* All bytes that the elements lie among, in the layout that they have. */
static frit_status whole_across(frit_device *from, const struct value *pinned, frit_device *to,
                                bool persistent, void *staging, struct value *out, frit_err *err)
{
    const struct extent extent = launch_extent(pinned);
    struct transfer_read read = {.device = from, .value = *pinned};
    frit_status st = bytes_out(&read, extent.first, extent.bytes, staging, err);
    int64_t low, high;

    TRY(transfer_finish(&read, st, err));
    layout_span(&pinned->type, &pinned->layout, &low, &high);
    out->layout = pinned->layout;
    out->layout.offset -= low;
    return bytes_in(to, staging, extent.bytes, persistent, &out->buffer, err);
}

/* A driver without a copy of its own would have it run on another device, which the value would
 * have to get to first: it goes as it lies. */
frit_status transfer_across(frit_device *from, const struct value *pinned, frit_device *to,
                            bool persistent, struct value *out, frit_err *err)
{
    uint64_t bytes = value_bytes(pinned);
    bool whole = bytes && !layout_is_dense(&pinned->type, &pinned->layout) && !copies(from, pinned);
    void *staging;
    frit_status st;

    *out = (struct value){.type = pinned->type};
    if (whole)
        bytes = launch_extent(pinned).bytes;
    staging = malloc(bytes ? bytes : 1);
    if (!staging) {
        buffer_unpin(pinned->buffer);
        return fail_memory(err, bytes);
    }
    st = whole ? whole_across(from, pinned, to, persistent, staging, out, err)
               : dense_across(from, pinned, to, persistent, staging, out, err);
    free(staging);
    return st;
}
