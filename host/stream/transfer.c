/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/transfer.h"

#include <stdlib.h>

#include "base/fail.h"

static uint64_t value_bytes(const struct value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

frit_status transfer_in(frit_device *device, const void *data, bool persistent, struct value *value,
                        frit_err *err)
{
    uint64_t bytes = value_bytes(value), at = 0;
    frit_transfer to = {.struct_size = sizeof(to), .bytes = bytes};
    frit_status st;

    layout_dense(&value->type, &value->layout);
    TRY(buffer_create(device->memory, bytes, persistent, &value->buffer, err));
    if (bytes == 0)
        return FRIT_OK;
    to.memory = value->buffer->handle;
    to.offset = value->buffer->offset;
    st = device->backend->write(device->self, &to, data, &at, err);
    if (st < 0) {
        buffer_disown(value->buffer);
        value->buffer = NULL;
        return fail_from(err, st, "write");
    }
    device_reached(device, at);
    atomic_store(&value->buffer->last_write, at);
    atomic_fetch_add(&device->count.bytes_in, bytes);
    return FRIT_OK;
}

frit_status transfer_start(frit_device *device, const struct value *pinned, void *data,
                           struct transfer_read *read, frit_err *err)
{
    frit_transfer from = {.struct_size = sizeof(from), .bytes = value_bytes(pinned)};
    frit_status st;

    *read = (struct transfer_read){.device = device, .value = *pinned};
    if (from.bytes == 0)
        return FRIT_OK;
    if (!layout_is_dense(&pinned->type, &pinned->layout)) {
        st = run_relayout(device, pinned, NULL, &read->value, err);
        buffer_unpin(pinned->buffer);
        read->copied = true;
        if (st)
            return st;
    }
    from.memory = read->value.buffer->handle;
    from.offset = read->value.buffer->offset +
                  frit_storage_bytes(pinned->type.dtype, read->value.layout.offset);
    st = device->backend->read(device->self, &from, data, &read->at, err);
    if (st < 0)
        return fail_from(err, st, "read");
    device_reached(device, read->at);
    atomic_fetch_add(&device->count.bytes_out, from.bytes);
    return FRIT_OK;
}

frit_status transfer_finish(struct transfer_read *read, frit_status started, frit_err *err)
{
    struct buffer *buffer = read->value.buffer;
    struct failure *failure = NULL;
    frit_status st = started;

    if (!st)
        st = device_wait(read->device, read->at, err);
    if (!st && buffer)
        failure = device_poison_of(read->device, atomic_load(&buffer->last_write));
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

frit_status transfer_across(frit_device *from, const struct value *pinned, frit_device *to,
                            bool persistent, struct value *out, frit_err *err)
{
    uint64_t bytes = value_bytes(pinned);
    struct transfer_read read;
    void *staging = malloc(bytes ? bytes : 1);
    frit_status st;

    if (!staging) {
        buffer_unpin(pinned->buffer);
        return fail_memory(err, bytes);
    }
    st = transfer_start(from, pinned, staging, &read, err);
    st = transfer_finish(&read, st, err);
    *out = (struct value){.type = pinned->type};
    if (!st)
        st = transfer_in(to, staging, persistent, out, err);
    free(staging);
    return st;
}
