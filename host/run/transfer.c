/* SPDX-License-Identifier: Apache-2.0 */
#include "run/transfer.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "device/queue.h"
#include "device/staging.h"
#include "device/wait.h"
#include "load/registry.h"
#include "memory/adopted.h"
#include "memory/buffer.h"
#include "run/mirror.h"
#include "run/run.h"
#include "tensor/failure.h"

static uint64_t value_bytes(const struct value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

frit_status transfer_fill(frit_device *device, struct buffer *buffer, const void *data,
                          frit_err *err)
{
    frit_transfer to = {.struct_size = sizeof(to),
                        .memory = buffer->handle,
                        .offset = buffer->offset,
                        .bytes = buffer->bytes};
    struct points after = {0};
    uint64_t at = 0;

    buffer_add_waits(buffer, false, &after);
    TRY(device_write(device, 0, &to, data, &after, &at, err));
    buffer_use(buffer, at);
    atomic_store(&buffer->last_write, at);
    lineage_transferred(device->lineage, buffer, at);
    atomic_fetch_add(&device->count.bytes_in, buffer->bytes);
    return FRIT_OK;
}

/* ---- through pinned memory ---- */

enum { STAGED_LEAST = 2 }; /* transfers; of one a driver takes care itself */

/* Without its pieces nothing is staged, and nothing is wrong. */
static struct staging_piece *begin_staging(frit_device *device, uint64_t n)
{
    struct staging_piece *pieces;

    if (n < STAGED_LEAST || !staging_enter(device->staging))
        return NULL;
    pieces = calloc(n, sizeof(*pieces));
    if (!pieces)
        staging_leave(device->staging);
    return pieces;
}

static frit_status fill_staged(frit_device *device, const struct transfer_write *writes, uint64_t n,
                               struct staging_piece *pieces, frit_err *err)
{
    uint64_t used = 0, bytes = 0;
    frit_status st;

    for (uint64_t i = 0; i < n; i++) {
        if (!writes[i].buffer->bytes)
            continue;
        pieces[used++] = (struct staging_piece){.buffer = writes[i].buffer,
                                                .bytes = writes[i].buffer->bytes,
                                                .data = (void *)(uintptr_t)writes[i].data};
        bytes += writes[i].buffer->bytes;
    }
    st = staging_write(device->staging, pieces, used, err);
    staging_leave(device->staging);
    if (!st)
        atomic_fetch_add(&device->count.bytes_in, bytes);
    free(pieces);
    return st;
}

frit_status transfer_fill_all(frit_device *device, const struct transfer_write *writes, uint64_t n,
                              frit_err *err)
{
    struct staging_piece *pieces = begin_staging(device, n);

    if (pieces)
        return fill_staged(device, writes, n, pieces, err);
    for (uint64_t i = 0; i < n; i++) {
        if (writes[i].buffer->bytes)
            TRY(transfer_fill(device, writes[i].buffer, writes[i].data, err));
    }
    return FRIT_OK;
}

/* A new buffer with `bytes` of `data`. */
static frit_status bytes_in(frit_device *device, const void *data, uint64_t bytes, bool persistent,
                            struct buffer **out, frit_err *err)
{
    frit_status st;

    TRY(buffer_create(device->memory, bytes, persistent, out, err));
    if (bytes == 0)
        return FRIT_OK;
    st = transfer_fill(device, *out, data, err);
    if (st) {
        buffer_disown(*out);
        *out = NULL;
    }
    return st;
}

frit_status transfer_in(frit_device *device, const void *data, bool persistent, struct value *value,
                        frit_err *err)
{
    layout_dense(&value->type, &value->layout);
    return bytes_in(device, data, value_bytes(value), persistent, &value->buffer, err);
}

frit_status transfer_adopt(frit_device *device, const struct lent_bytes *lent, struct value *value,
                           frit_err *err)
{
    frit_status st;

    if (lent->bytes == 0)
        return fail(err, FRIT_UNSUPPORTED, "there is nothing to adopt");
    layout_dense(&value->type, &value->layout);
    st = buffer_adopt(device->memory, lent, &value->buffer, err);
    if (st)
        device_explain_loss(device, err);
    return st;
}

/* Starts copying. */
static frit_status bytes_out(struct transfer_read *read, frit_err *err)
{
    const struct buffer *buffer = read->value.buffer;
    uint32_t queue = point_queue(atomic_load(&buffer->last_write));
    frit_device *device = read->device;
    struct points after = {0};
    frit_transfer from = {.struct_size = sizeof(from),
                          .memory = buffer->handle,
                          .offset = buffer->offset + read->first,
                          .bytes = read->bytes};

    buffer_add_waits(buffer, true, &after);
    TRY(device_read(device, queue, &from, read->data, &after, &read->at, err));
    buffer_use(buffer, read->at);
    atomic_fetch_add(&device->count.bytes_out, read->bytes);
    return FRIT_OK;
}

/* Reads what is away where it is. */
static void follow_mirror(struct transfer_read *read)
{
    struct value there;

    if (!mirror_pin(&read->value, &there))
        return;
    if (read->copied)
        buffer_disown(read->value.buffer);
    else
        buffer_unpin(read->value.buffer);
    *read = (struct transfer_read){.device = read->device->fallback, .value = there};
}

frit_status transfer_prepare(frit_device *device, const struct value *pinned, void *data,
                             struct transfer_read *read, frit_err *err)
{
    uint64_t bytes = value_bytes(pinned);

    *read = (struct transfer_read){.device = device, .value = *pinned};
    if (bytes == 0)
        return FRIT_OK;
    pending_wait(device->pending, pinned->buffer);
    follow_mirror(read);
    if (!layout_is_dense(&pinned->type, &pinned->layout)) {
        struct value from = read->value;
        frit_status st = run_relayout(read->device, &from, NULL, &read->value, err);

        buffer_unpin(from.buffer);
        read->copied = true;
        if (st)
            return st;
        follow_mirror(read);
    }
    read->first = frit_storage_bytes(pinned->type.dtype, read->value.layout.offset);
    read->bytes = bytes;
    read->data = data;
    return FRIT_OK;
}

frit_status transfer_start(frit_device *device, const struct value *pinned, void *data,
                           struct transfer_read *read, frit_err *err)
{
    frit_status st = transfer_prepare(device, pinned, data, read, err);

    return st || !read->bytes ? st : bytes_out(read, err);
}

/* All of one device. */
static void read_staged(struct transfer_read *reads, uint64_t n, struct staging_piece *pieces)
{
    frit_device *device = reads->device;
    frit_err err = ERR_INIT;
    frit_status st;

    for (uint64_t i = 0; i < n; i++)
        pieces[i] = (struct staging_piece){.buffer = reads[i].value.buffer,
                                           .first = reads[i].first,
                                           .bytes = reads[i].bytes,
                                           .data = reads[i].data};
    st = staging_read(device->staging, pieces, n, &err);
    staging_leave(device->staging);
    for (uint64_t i = 0; i < n; i++) {
        reads[i].at = pieces[i].at;
        reads[i].failure = pieces[i].failure;
        if (st && !reads[i].failure)
            reads[i].failure = failure_create(&err);
        if (!reads[i].failure)
            atomic_fetch_add(&device->count.bytes_out, reads[i].bytes);
    }
    free(pieces);
}

/* How many from the first on are of its device and have bytes. */
static uint64_t run_of(const struct transfer_read *reads, uint64_t n)
{
    uint64_t run = 0;

    while (run < n && reads[run].bytes && reads[run].device == reads->device)
        run++;
    return run;
}

void transfer_begin(struct transfer_read *reads, uint64_t n)
{
    for (uint64_t i = 0; i < n;) {
        uint64_t run = run_of(&reads[i], n - i);
        struct staging_piece *pieces = run ? begin_staging(reads[i].device, run) : NULL;

        if (pieces)
            read_staged(&reads[i], run, pieces);
        for (uint64_t k = i; k < i + run && !pieces; k++) {
            frit_err err = ERR_INIT;

            if (bytes_out(&reads[k], &err))
                reads[k].failure = failure_create(&err);
        }
        i += run ? run : 1;
    }
}

/* Why the elements are invalid: the read failed, or what it read was invalid before. */
static struct failure *read_failure(const struct transfer_read *read)
{
    struct lineage *lineage = read->device->lineage;
    struct failure *failure = NULL;

    if (lineage_knows(lineage, read->at))
        failure = lineage_failure_at(lineage, read->at);
    return failure ? failure : lineage_failure_of(lineage, read->value.buffer);
}

frit_status transfer_finish(struct transfer_read *read, frit_status started, frit_err *err)
{
    struct buffer *buffer = read->value.buffer;
    struct failure *failure = NULL;
    frit_status st = started;

    if (!st && !read->failure)
        st = device_wait(read->device, read->at, err);
    if (!st && read->failure)
        failure = read->failure;
    else if (!st && buffer)
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

/* ---- in the host's view ---- */

void *transfer_host_bytes(frit_device *device, const struct buffer *buffer)
{
    const frit_native_table *native = &device->entry->plugin->native;
    char *bytes;

    if (!native->get || !buffer->handle || !(device->info->caps & FRIT_CAP_INLINE_QUEUE))
        return NULL;
    bytes = native->get(device->self, buffer->handle, FRIT_STR("host.ptr"));
    /* A submit has run when it returns; transfers may not have. */
    if (!bytes || device_wait_all(device, NULL))
        return NULL;
    return bytes + buffer->offset;
}

uint64_t transfer_device_address(frit_device *device, const struct buffer *buffer)
{
    const frit_extmem_table *extmem = &device->entry->plugin->extmem;
    uint64_t address;

    if (!extmem->address || !buffer->handle)
        return 0;
    address = extmem->address(device->self, buffer->handle);
    return address && !device_wait_all(device, NULL) ? address + buffer->offset : 0;
}
