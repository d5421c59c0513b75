/* SPDX-License-Identifier: Apache-2.0 */
#include "run/mirror.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/stream.h"
#include "tensor/failure.h"

static uint64_t dense_bytes(const struct value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

static struct value moved(const struct value *value, struct buffer *buffer)
{
    return (struct value){.type = value->type, .layout = value->layout, .buffer = buffer};
}

/* Whether all of the buffer is copied: of a small view of a large buffer only the view is, and that
 * leaves no mirror. */
static bool goes_whole(const struct value *value)
{
    const struct buffer *buffer = value->buffer;

    return buffer->handle && !buffer->whole && buffer->bytes <= dense_bytes(value);
}

void mirror_start(frit_device *device, const struct value *value, struct mirror_read *read)
{
    *read = (struct mirror_read){.value = *value, .is_there = atomic_load(&value->buffer->mirror)};
    if (read->is_there)
        return;
    read->whole_buffer = goes_whole(value);
    buffer_pin(value->buffer);
    carry_start(device, value, device->fallback,
                &(struct carry_how){.whole_buffer = read->whole_buffer}, &read->carry);
}

frit_status mirror_finish(struct mirror_read *read, struct value *out, frit_err *err)
{
    struct buffer *mirror;

    if (!read->is_there) {
        TRY(carry_finish(&read->carry, out, err));
        if (!read->whole_buffer)
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
        return carry_across(device->fallback, there, device, persistent, out, err);
    }
    TRY(buffer_create(device->memory, bytes, persistent, &out->buffer, err));
    layout_dense(&out->type, &out->layout);
    buffer_own(there->buffer);
    buffer_set_mirror(out->buffer, there->buffer);
    atomic_store(&out->buffer->is_away, true);
    return FRIT_OK;
}

/* Reads the first `bytes` bytes of the mirror. */
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

/* Copies from the mirror's memory, which the host sees: the commands that write it have ended. */
static frit_status fill_from(frit_device *device, struct buffer *buffer, const void *bytes,
                             frit_err *err)
{
    struct failure *failure = mirror_failure(device, buffer);
    frit_status st = FRIT_OK;

    if (failure)
        st = fail(err, failure->status, "%s", failure->text);
    failure_unref(failure);
    if (st)
        return st;
    atomic_fetch_add(&device->fallback->count.bytes_out, buffer->bytes);
    return transfer_fill(device, buffer, bytes, err);
}

static frit_status fill_from_mirror(frit_device *device, struct buffer *buffer, frit_err *err)
{
    struct buffer *mirror = atomic_load(&buffer->mirror);
    const void *bytes = transfer_host_bytes(device->fallback, mirror);
    frit_status st;
    void *staging;

    if (bytes)
        return fill_from(device, buffer, bytes, err);
    staging = malloc(buffer->bytes);
    if (!staging)
        return fail_memory(err, buffer->bytes);
    st = read_mirror(device->fallback, mirror, buffer->bytes, staging, err);
    if (!st)
        st = transfer_fill(device, buffer, staging, err);
    free(staging);
    return st;
}

frit_status mirror_fetch(frit_device *device, struct buffer *buffer, frit_err *err)
{
    frit_status st;

    if (!buffer || !buffer_is_away(buffer))
        return FRIT_OK;
    st = fill_from_mirror(device, buffer, err);
    if (st)
        return fail_context(err, "from %s", device->fallback->name);
    atomic_store_explicit(&buffer->is_away, false, memory_order_release);
    return FRIT_OK;
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
    return lineage_failure_of(device->fallback->lineage, atomic_load(&buffer->mirror));
}

/* ---- a sync ---- */

static bool is_late(const frit_device *device)
{
    return device->fallback && !(device->fallback->info->caps & FRIT_CAP_INLINE_QUEUE);
}

frit_status mirror_wait(frit_device *device, frit_err *err)
{
    if (!is_late(device))
        return FRIT_OK;
    return device_wait_all(device->fallback, err);
}

struct finding {
    frit_device *device;
    struct failure *first;
};

/* Inside the lock. */
static void fail_tensor(struct slot *slot, void *ctx)
{
    struct finding *finding = ctx;
    struct failure *failure = NULL;

    if (slot->device == finding->device && slot->state == SLOT_READY && slot->value.buffer)
        failure = mirror_failure(finding->device, slot->value.buffer);
    if (!failure)
        return;
    if (!finding->first)
        finding->first = failure_ref(failure);
    slot_set_failed(slot, failure);
}

void mirror_fail_tensors(struct stream *stream)
{
    struct finding finding = {.device = stream->device};

    if (!is_late(stream->device))
        return;
    home_enter(&stream->home);
    slot_each(&stream->home, fail_tensor, &finding);
    home_leave_drop(&stream->home);
    if (finding.first)
        stream_note_error(stream, finding.first);
    failure_unref(finding.first);
}
