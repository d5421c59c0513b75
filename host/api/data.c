/* SPDX-License-Identifier: Apache-2.0 */
/* Elements from and to the program, files and other devices. */
#include <stdlib.h>
#include <string.h>

#include "api/host.h"
#include "base/fail.h"
#include "file/npy.h"
#include "run/transfer.h"

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

/* The type of a tensor of these elements, if they are right. */
static frit_status check_source(frit_device *device, uint32_t dtype, const frit_dims *dims,
                                const struct lent_bytes *data, struct binding **binding,
                                struct value *value, frit_err *err)
{
    if (!device)
        return fail(err, FRIT_INVALID, "the device is NULL");
    TRY(binding_current(device, binding, err));
    TRY(check_dims(dtype, dims, &value->type, err));
    return tensor_check_data(&value->type, data->data, data->bytes, err);
}

static frit_tensor *publish(frit_device *device, frit_status st, const char *call,
                            struct value *value, frit_err *err)
{
    if (!st)
        return tensor_ready(device, value, err);
    fail_context(err, "%s", call);
    return tensor_error(device, err);
}

frit_tensor *frit_from_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes)
{
    const struct lent_bytes source = {.data = data, .bytes = bytes};
    struct binding *binding = NULL;
    struct value value = {0};
    frit_err err = ERR_INIT;
    frit_status st = check_source(device, dtype, &dims, &source, &binding, &value, &err);

    if (!st)
        st = transfer_in(device, data, binding->persistent > 0, &value, &err);
    return publish(device, st, "from_host", &value, &err);
}

frit_tensor *frit_wrap_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes, void (*release)(void *ctx), void *ctx)
{
    const struct lent_bytes lent = {data, bytes, release, ctx};
    struct binding *binding = NULL;
    struct value value = {0};
    frit_err err = ERR_INIT;
    frit_status st = check_source(device, dtype, &dims, &lent, &binding, &value, &err);
    bool adopted = false;

    if (!st) {
        st = transfer_adopt(device, &lent, &value, &err);
        adopted = st == FRIT_OK;
    }
    if (st == FRIT_UNSUPPORTED)
        st = transfer_in(device, data, binding->persistent > 0, &value, &err);
    if (release && !adopted)
        release(ctx);
    return publish(device, st, "wrap_host", &value, &err);
}

/* ---- reading and writing ---- */

static frit_status read_begin(frit_read_item *item, struct transfer_read *read, frit_err *err)
{
    frit_device *device;
    struct value value;
    struct slot *slot;
    frit_status st;

    *read = (struct transfer_read){0};
    slot = tensor_enter(item->tensor, "read", err);
    if (!slot)
        return err->status;
    st = tensor_check_data(&slot->value.type, item->data, item->bytes, err);
    value = slot->value;
    device = slot->device;
    if (!st)
        buffer_pin(value.buffer);
    if (!st && watch_is_on(&device->watch))
        watch_taken(&device->watch, slot);
    slot_leave(slot);
    if (st)
        return fail_context(err, "read");
    return transfer_start(device, &value, item->data, read, err);
}

/* A device failure that was only found now stays with the tensor, so that frit_tensor_error tells.
 */
static void item_failed(const frit_read_item *item, const frit_err *err)
{
    struct slot *slot = slot_enter(item->tensor, NULL);

    if (!slot)
        return;
    if (slot->state == SLOT_READY && err->status != FRIT_INVALID &&
        err->status != FRIT_NO_HOST_MEMORY)
        slot_set_failed(slot, failure_create(err));
    slot_leave(slot);
}

static frit_status read_items(frit_read_item *items, uint64_t count, struct transfer_read *reads,
                              frit_err *err)
{
    frit_status first = FRIT_OK, late = FRIT_OK;

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
    /* The last one first: what was begun before it on the device is there then too. */
    for (uint64_t i = count; i-- > 0;) {
        frit_err own = ERR_INIT;
        frit_status started = items[i].status;

        items[i].status = transfer_finish(&reads[i], started, &own);
        if (items[i].status && !started) {
            item_failed(&items[i], &own);
            late = items[i].status;
            if (!first)
                *err = own;
        }
    }
    return first ? first : late;
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

/* Resolves the handle when no queue holds the tensor: whatever was recorded with the old elements
 * has run with them. */
static struct slot *enter_unheld(frit_tensor *tensor, frit_err *err)
{
    struct slot *slot;

    while ((slot = tensor_enter(tensor, "write", err)) && slot->holds) {
        struct stream *home = (struct stream *)atomic_load(&slot->home);

        slot_leave(slot);
        if (!stream_drain(home, DRAIN_READ)) {
            stream_refuse_driver(err);
            return NULL;
        }
    }
    return slot;
}

static frit_status write_tensor(frit_tensor *tensor, const void *data, uint64_t bytes,
                                frit_err *err)
{
    struct slot *slot = enter_unheld(tensor, err);
    struct buffer *old;
    struct value value;
    frit_device *device;
    bool persistent;
    frit_status st;

    if (!slot)
        return err->status;
    value = (struct value){.type = slot->value.type};
    device = slot->device;
    persistent = buffer_is_persistent(slot->value.buffer);
    slot_leave(slot);
    st = tensor_check_data(&value.type, data, bytes, err);
    if (st)
        return fail_context(err, "write");
    TRY(transfer_in(device, data, persistent, &value, err));
    slot = enter_unheld(tensor, err);
    old = slot ? slot_swap_buffer(slot, value.buffer) : value.buffer;
    if (slot)
        slot_leave(slot);
    buffer_disown(old);
    return slot ? FRIT_OK : err->status;
}

frit_status frit_write(frit_tensor *tensor, const void *data, uint64_t bytes)
{
    frit_err err = ERR_INIT;
    frit_status st = write_tensor(tensor, data, bytes, &err);

    st = tensor_report(tensor, st, &err);
    tensor_consume(tensor);
    return st;
}

static frit_status move_value(frit_tensor *tensor, frit_device *device, struct value *out,
                              frit_err *err)
{
    frit_device *from;
    struct value pinned;
    struct binding *binding;
    struct slot *slot;

    TRY(binding_current(device, &binding, err));
    slot = tensor_enter(tensor, "to_device", err);
    if (!slot)
        return err->status;
    pinned = slot->value;
    from = slot->device;
    buffer_pin(pinned.buffer);
    if (watch_is_on(&from->watch))
        watch_taken(&from->watch, slot);
    slot_leave(slot);
    return transfer_across(from, &pinned, device, binding->persistent > 0, out, err);
}

frit_tensor *frit_to_device(frit_tensor *tensor, frit_device *device)
{
    struct value value;
    frit_err err = ERR_INIT;
    frit_status st;

    if (!device) {
        fail(&err, FRIT_INVALID, "to_device: the device is NULL");
        tensor_consume(tensor);
        return tensor_error(NULL, &err);
    }
    if (frit_device_of(tensor) == device)
        return frit_copy(tensor);
    st = move_value(tensor, device, &value, &err);
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
