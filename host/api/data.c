/* SPDX-License-Identifier: Apache-2.0 */
/* Elements from and to the program, files and other devices. */
#include <stdlib.h>
#include <string.h>

#include "api/host.h"
#include "base/fail.h"
#include "file/npy.h"
#include "stream/transfer.h"

static frit_status check_dims(uint32_t dtype, const frit_dims *dims, struct op_type *out,
                              frit_err *err)
{
    int64_t count = 1;
    uint32_t bits = frit_dtype_bits(dtype);

    *out = (struct op_type){.dtype = dtype, .rank = (uint32_t)dims->rank};
    if (!bits || dtype_class(dtype) == FRIT_DTYPE_PACKED)
        return fail(err, FRIT_INVALID, "%u is no element type that tensors can be made of", dtype);
    if (dims->rank < 0 || dims->rank > FRIT_MAX_RANK)
        return fail(err, FRIT_INVALID, "rank %lld is not within 0..%d", (long long)dims->rank,
                    FRIT_MAX_RANK);
    for (int64_t i = 0; i < dims->rank; i++) {
        if (dims->dim[i] < 0)
            return fail(err, FRIT_INVALID, "dim %lld is %lld, below 0", (long long)i,
                        (long long)dims->dim[i]);
        if (__builtin_mul_overflow(count, dims->dim[i], &count) ||
            count > INT64_MAX / (int64_t)bits)
            return fail(err, FRIT_INVALID,
                        "shape overflow: the dims multiply to more bytes than 63 bits hold");
        out->dims[i] = dims->dim[i];
    }
    return FRIT_OK;
}

frit_tensor *frit_from_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes)
{
    struct stream *stream = NULL;
    struct value value = {0};
    frit_err err = ERR_INIT;
    frit_status st = device ? FRIT_OK : fail(&err, FRIT_INVALID, "the device is NULL");

    if (!st)
        st = stream_current(device, &stream, &err);
    if (!st)
        st = check_dims(dtype, &dims, &value.type, &err);
    if (!st)
        st = tensor_check_data(&value.type, data, bytes, &err);
    if (!st)
        st = transfer_in(device, data, stream->persistent > 0, &value, &err);
    if (st) {
        fail_context(&err, "from_host");
        return tensor_error(device, &err);
    }
    return tensor_ready(device, &value, &err);
}

frit_tensor *frit_wrap_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes, void (*release)(void *ctx), void *ctx)
{
    frit_tensor *tensor = frit_from_host(device, dtype, dims, data, bytes);

    if (release)
        release(ctx);
    return tensor;
}

/* ---- reading and writing ---- */

static frit_status read_begin(frit_read_item *item, struct transfer_read *read, frit_err *err)
{
    struct value value;
    struct slot *slot;
    frit_status st;

    *read = (struct transfer_read){0};
    TRY(tensor_settle(item->tensor, "read", &slot, err));
    st = tensor_check_data(&slot->value.type, item->data, item->bytes, err);
    if (st) {
        fail_context(err, "read");
        slot_unuse(slot);
        return st;
    }
    slot_pin_value(slot, &value);
    st = transfer_start(atomic_load(&slot->device), &value, item->data, read, err);
    slot_unuse(slot);
    return st;
}

static void item_failed(const frit_read_item *item, const frit_err *err)
{
    struct slot *slot = slot_use(item->tensor, NULL);

    if (!slot)
        return;
    /* A device failure that was only found now stays with the tensor, so that frit_tensor_error
     * tells. */
    if (slot_state(slot) == SLOT_READY && err->status != FRIT_INVALID &&
        err->status != FRIT_NO_HOST_MEMORY)
        slot_set_failed(slot, failure_create(err));
    slot_unuse(slot);
}

static frit_status read_items(frit_read_item *items, uint64_t count, struct transfer_read *reads,
                              frit_err *err)
{
    frit_status first = FRIT_OK;

    for (uint64_t i = 0; i < count; i++) {
        frit_err own = ERR_INIT;

        items[i].status = read_begin(&items[i], &reads[i], &own);
        if (items[i].status) {
            item_failed(&items[i], &own);
            if (!first)
                *err = own;
            first = first ? first : items[i].status;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        frit_err own = ERR_INIT;
        frit_status started = items[i].status;

        items[i].status = transfer_finish(&reads[i], started, &own);
        if (items[i].status && !started)
            item_failed(&items[i], &own);
        if (items[i].status && !first) {
            first = items[i].status;
            *err = own;
        }
    }
    return first;
}

/* A tensor that stands twice is taken once. */
static void consume_items(const frit_read_item *items, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        bool again = !handle_taken(items[i].tensor);

        for (uint64_t k = 0; k < i && !again; k++)
            again = items[k].tensor == items[i].tensor;
        if (!again)
            tensor_consume(items[i].tensor);
    }
}

frit_status frit_read(frit_tensor *tensor, void *data, uint64_t bytes)
{
    frit_read_item item = {.tensor = tensor, .data = data, .bytes = bytes};
    struct transfer_read read;
    frit_err err = ERR_INIT;
    frit_status st = tensor_report(tensor, read_items(&item, 1, &read, &err), &err);

    tensor_consume(tensor);
    return st;
}

frit_status frit_read_many(frit_read_item *items, uint64_t count)
{
    struct transfer_read *reads;
    frit_err err = ERR_INIT;
    frit_status st = FRIT_NO_HOST_MEMORY;

    if (count == 0)
        return FRIT_OK;
    if (!items)
        return FRIT_INVALID;
    reads = calloc(count, sizeof(*reads));
    if (reads)
        st = tensor_report(items[0].tensor, read_items(items, count, reads, &err), &err);
    consume_items(items, count);
    free(reads);
    return st;
}

static void run_stream(struct stream *stream, void *unused)
{
    (void)unused;
    stream_drain(stream, DRAIN_READ);
}

static frit_status write_slot(struct slot *slot, const void *data, uint64_t bytes, frit_err *err)
{
    frit_device *device = atomic_load(&slot->device);
    struct value old, value = {.type = slot->value.type};
    bool persistent;

    if (tensor_check_data(&value.type, data, bytes, err))
        return fail_context(err, "write");
    /* Whatever was recorded with the old elements runs with them. */
    if (slot_shared(slot))
        streams_each(device, run_stream, NULL);
    slot_pin_value(slot, &old);
    persistent = buffer_is_persistent(old.buffer);
    buffer_unpin(old.buffer);
    TRY(transfer_in(device, data, persistent, &value, err));
    slot_swap_buffer(slot, value.buffer);
    return FRIT_OK;
}

frit_status frit_write(frit_tensor *tensor, const void *data, uint64_t bytes)
{
    frit_err err = ERR_INIT;
    struct slot *slot;
    frit_status st = tensor_settle(tensor, "write", &slot, &err);

    if (!st) {
        st = write_slot(slot, data, bytes, &err);
        slot_unuse(slot);
    }
    st = tensor_report(tensor, st, &err);
    tensor_consume(tensor);
    return st;
}

frit_tensor *frit_to_device(frit_tensor *tensor, frit_device *device)
{
    struct value pinned, value;
    frit_err err = ERR_INIT;
    struct stream *stream;
    struct slot *slot;
    frit_status st;

    if (!device) {
        fail(&err, FRIT_INVALID, "to_device: the device is NULL");
        tensor_consume(tensor);
        return tensor_error(NULL, &err);
    }
    if (frit_device_of(tensor) == device)
        return frit_copy(tensor);
    st = stream_current(device, &stream, &err);
    if (!st)
        st = tensor_settle(tensor, "to_device", &slot, &err);
    if (!st) {
        slot_pin_value(slot, &pinned);
        st = transfer_across(atomic_load(&slot->device), &pinned, device, stream->persistent > 0,
                             &value, &err);
        slot_unuse(slot);
    }
    tensor_consume(tensor);
    return st ? tensor_error(device, &err) : tensor_ready(device, &value, &err);
}

/* ---- files ---- */

frit_tensor *frit_load_npy(frit_device *device, const char *path)
{
    struct op_type type;
    frit_err err = ERR_INIT;
    frit_tensor *tensor;
    frit_dims dims = {0};
    void *data = NULL;

    if (!path)
        fail(&err, FRIT_INVALID, "load_npy: the path is NULL");
    if (!path || npy_read_file(path, &type, &data, &err))
        return tensor_error(device, &err);
    dims.rank = type.rank;
    memcpy(dims.dim, type.dims, sizeof(dims.dim));
    tensor = frit_from_host(device, type.dtype, dims, data,
                            frit_storage_bytes(type.dtype, op_elements(&type)));
    free(data);
    return tensor;
}

static frit_status save_npy(frit_tensor *tensor, const char *path, frit_err *err)
{
    uint64_t bytes = frit_bytes(tensor);
    frit_dims dims = frit_dims_of(tensor);
    struct op_type type = {.dtype = frit_dtype(tensor), .rank = (uint32_t)dims.rank};
    frit_read_item item = {.tensor = tensor, .bytes = bytes};
    struct transfer_read read;
    frit_status st;

    if (!path)
        return fail(err, FRIT_INVALID, "save_npy: the path is NULL");
    memcpy(type.dims, dims.dim, sizeof(type.dims));
    item.data = malloc(bytes ? bytes : 1);
    if (!item.data)
        return fail_memory(err, bytes);
    st = read_items(&item, 1, &read, err);
    if (!st)
        st = npy_write_file(path, &type, item.data, err);
    free(item.data);
    return st;
}

frit_status frit_save_npy(frit_tensor *tensor, const char *path)
{
    frit_err err = ERR_INIT;
    frit_status st = tensor_report(tensor, save_npy(tensor, path, &err), &err);

    tensor_consume(tensor);
    return st;
}
