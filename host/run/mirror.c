/* SPDX-License-Identifier: Apache-2.0 */
#include "run/mirror.h"

#include <stdlib.h>

#include "base/fail.h"

static uint64_t dense_bytes(const struct value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

static struct value moved(const struct value *value, struct buffer *buffer)
{
    return (struct value){.type = value->type, .layout = value->layout, .buffer = buffer};
}

/* A small view of a large buffer goes over without the rest, and leaves no mirror. */
static bool goes_whole(const struct value *value)
{
    const struct buffer *buffer = value->buffer;

    return buffer->handle && !buffer->whole && buffer->bytes <= dense_bytes(value);
}

uint64_t mirror_distance(const struct value *value)
{
    if (atomic_load(&value->buffer->mirror))
        return 0;
    return goes_whole(value) ? value->buffer->bytes : dense_bytes(value);
}

void mirror_start(frit_device *device, const struct value *value, struct mirror_read *read)
{
    *read = (struct mirror_read){.value = *value, .is_there = atomic_load(&value->buffer->mirror)};
    if (read->is_there)
        return;
    read->whole = goes_whole(value);
    buffer_pin(value->buffer);
    transfer_carry_start(device, value, read->whole, &read->carry);
}

frit_status mirror_finish(frit_device *device, struct mirror_read *read, struct value *out,
                          frit_err *err)
{
    struct buffer *mirror;

    if (!read->is_there) {
        TRY(transfer_carry_finish(&read->carry, device->fallback, false, out, err));
        if (!read->whole)
            return FRIT_OK;
        /* Where another thread was first, its copy is as good. */
        buffer_set_mirror(read->value.buffer, out->buffer);
    }
    mirror = atomic_load(&read->value.buffer->mirror);
    buffer_own(mirror);
    *out = moved(&read->value, mirror);
    return FRIT_OK;
}

frit_status mirror_adopt(frit_device *device, const struct value *there, bool persistent,
                         struct value *out, frit_err *err)
{
    uint64_t bytes = dense_bytes(there);

    *out = (struct value){.type = there->type};
    if (!bytes || !layout_is_dense(&there->type, &there->layout) || there->layout.offset) {
        buffer_pin(there->buffer);
        return transfer_across(device->fallback, there, device, persistent, out, err);
    }
    TRY(buffer_create(device->memory, bytes, persistent, &out->buffer, err));
    layout_dense(&out->type, &out->layout);
    buffer_own(there->buffer);
    buffer_set_mirror(out->buffer, there->buffer);
    atomic_store(&out->buffer->is_away, true);
    return FRIT_OK;
}

/* As much of the mirror as the buffer has. */
static frit_status read_mirror(frit_device *device, struct buffer *mirror, uint64_t bytes,
                               void *data, frit_err *err)
{
    struct transfer_read read;
    struct value value = {.type = {.dtype = FRIT_U8, .rank = 1, .dims = {(int64_t)bytes}},
                          .buffer = mirror};
    frit_status st;

    layout_dense(&value.type, &value.layout);
    buffer_pin(mirror);
    st = transfer_start(device, &value, data, &read, err);
    return transfer_finish(&read, st, err);
}

frit_status mirror_fetch(frit_device *device, struct buffer *buffer, frit_err *err)
{
    frit_status st;
    void *staging;

    if (!buffer || !buffer_is_away(buffer))
        return FRIT_OK;
    staging = malloc(buffer->bytes);
    if (!staging)
        return fail_memory(err, buffer->bytes);
    st = read_mirror(device->fallback, atomic_load(&buffer->mirror), buffer->bytes, staging, err);
    if (st)
        fail_context(err, "on %s", device->fallback->entry->name);
    else
        st = transfer_fill(device, buffer, staging, err);
    if (!st)
        atomic_store_explicit(&buffer->is_away, false, memory_order_release);
    free(staging);
    return st;
}

bool mirror_pin(const struct value *value, struct value *there)
{
    if (!value->buffer || !buffer_is_away(value->buffer))
        return false;
    *there = moved(value, atomic_load(&value->buffer->mirror));
    buffer_pin(there->buffer);
    return true;
}

struct failure *mirror_failure(frit_device *device, const struct buffer *buffer)
{
    if (!buffer_is_away(buffer))
        return NULL;
    return device_poison_of(device->fallback,
                            atomic_load(&atomic_load(&buffer->mirror)->last_write));
}
