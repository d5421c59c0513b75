/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of elements: from and to the program, files and other devices. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/data.h"
#include "api/report.h"
#include "api/source.h"
#include "api/tensor.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/watch.h"
#include "file/npy.h"
#include "graph/dtype.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/binding.h"
#include "run/carry.h"
#include "run/drain.h"
#include "run/run.h"
#include "run/transfer.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

/* Checks the arguments; `value` gets the type of the tensor. */
static frit_status begin(frit_device *device, uint32_t dtype, const frit_dims *dims,
                         struct source *source, struct binding **binding, struct value *value,
                         frit_err *err)
{
    if (!device)
        return fail(err, FRIT_INVALID, "the device is NULL");
    TRY(binding_current(device, binding, err));
    TRY(source_type(dtype, dims, &value->type, err));
    return source_begin(source, &value->type, source->data, source->bytes, err);
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
    HOLD_CANCEL;
    struct source source = {.data = data, .bytes = bytes};
    struct binding *binding = NULL;
    struct value value = {0};
    frit_err err = ERR_INIT;
    frit_status st = begin(device, dtype, &dims, &source, &binding, &value, &err);

    if (!st)
        st = transfer_in(device, source.data, binding->persistent > 0, &value, &err);
    source_end(&source);
    return publish(device, st, "from_host", &value, &err);
}

frit_tensor *data_wrap(frit_device *device, const struct op_type *type,
                       const struct lent_bytes *lent, const char *call)
{
    struct source source = {0};
    struct binding *binding = NULL;
    struct value value = {.type = *type};
    frit_err err = ERR_INIT;
    frit_status st = device ? binding_current(device, &binding, &err)
                            : fail(&err, FRIT_INVALID, "the device is NULL");
    bool adopted = false;

    if (!st)
        st = source_begin(&source, type, lent->data, lent->bytes, &err);
    if (!st) {
        st = source.own ? FRIT_UNSUPPORTED : transfer_adopt(device, lent, &value, &err);
        adopted = st == FRIT_OK;
        if (st == FRIT_UNSUPPORTED)
            st = transfer_in(device, source.data, binding->persistent > 0, &value, &err);
    }
    source_end(&source);
    if (lent->release && !adopted)
        lent->release(lent->ctx);
    return publish(device, st, call, &value, &err);
}

frit_tensor *frit_wrap_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes, void (*release)(void *ctx), void *ctx)
{
    HOLD_CANCEL;
    const struct lent_bytes lent = {.data = data, .bytes = bytes, .release = release, .ctx = ctx};
    struct op_type type;
    frit_err err = ERR_INIT;
    frit_status st = device ? source_type(dtype, &dims, &type, &err)
                            : fail(&err, FRIT_INVALID, "the device is NULL");

    if (!st)
        return data_wrap(device, &type, &lent, "wrap_host");
    if (release)
        release(ctx);
    return publish(device, st, "wrap_host", NULL, &err);
}

/* ---- reading and writing ---- */

/* Resolves the tensor of an item, pins its buffer and prepares the copy. */
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
    return transfer_prepare(device, &value, item->data, read, err);
}

/* Marks the tensor as failed if the device failed only now, so that frit_tensor_error reports it.
 */
static void mark_read_failed(const frit_read_item *item, const frit_err *err)
{
    struct slot *slot = slot_enter(item->tensor, NULL);

    if (!slot)
        return;
    if (slot->state == SLOT_READY && err->status != FRIT_INVALID &&
        err->status != FRIT_NO_HOST_MEMORY)
        slot_set_failed(slot, failure_create(err));
    slot_leave(slot);
}

frit_status data_read(frit_read_item *items, uint64_t count, struct transfer_read *reads,
                      frit_err *err)
{
    frit_status first = FRIT_OK, late = FRIT_OK;

    for (uint64_t i = 0; i < count; i++) {
        frit_err own = ERR_INIT;

        items[i].status = read_begin(&items[i], &reads[i], &own);
        if (items[i].status) {
            mark_read_failed(&items[i], &own);
            if (!first)
                *err = own;
            first = first ? first : items[i].status;
            reads[i].bytes = 0;
        }
    }
    transfer_begin(reads, count);
    /* From the last one: waiting for it also covers the copies that were started before it. */
    for (uint64_t i = count; i-- > 0;) {
        frit_err own = ERR_INIT;
        frit_status started = items[i].status;

        items[i].status = transfer_finish(&reads[i], started, &own);
        if (items[i].status && !started) {
            mark_read_failed(&items[i], &own);
            late = items[i].status;
            if (!first)
                *err = own;
        }
    }
    return first ? first : late;
}

void data_consume(const void *items, size_t item_bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        frit_tensor *tensor = *(frit_tensor *const *)((const char *)items + i * item_bytes);
        bool again = !handle_taken(tensor);

        for (uint64_t k = 0; k < i && !again; k++)
            again = *(frit_tensor *const *)((const char *)items + k * item_bytes) == tensor;
        if (!again)
            tensor_consume(tensor);
    }
}

frit_status frit_read(frit_tensor *tensor, void *data, uint64_t bytes, frit_err *err)
{
    HOLD_CANCEL;
    frit_read_item item = {.tensor = tensor, .data = data, .bytes = bytes};
    struct transfer_read read;
    frit_err own = ERR_INIT;
    frit_status st = data_read(&item, 1, &read, &own);

    tensor_consume(tensor);
    return report(err, st, &own);
}

frit_status frit_read_many(frit_read_item *items, uint64_t count, frit_err *err)
{
    HOLD_CANCEL;
    struct transfer_read *reads;
    frit_err own = ERR_INIT;
    frit_status st;

    if (count == 0)
        return FRIT_OK;
    if (!items)
        return report_null(err, "read_many", "`items`");
    reads = calloc(count, sizeof(*reads));
    st = reads ? data_read(items, count, reads, &own) : fail_memory(&own, count * sizeof(*reads));
    data_consume(items, sizeof(*items), count);
    free(reads);
    return report(err, st, &own);
}

/* Resolves the handle once no pending op uses the tensor, so that ops recorded before have run with
 * the old elements. */
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

/* The destination of a write: device, type, and whether its memory is persistent; and what is
 * written there, to be ended. */
struct target {
    frit_device *device;
    struct value value;
    bool persistent;
    struct source source;
};

static frit_status find_target(const frit_write_item *item, struct target *out, frit_err *err)
{
    struct slot *slot = enter_unheld(item->tensor, err);

    if (!slot)
        return err->status;
    *out = (struct target){.device = slot->device,
                           .value = {.type = slot->value.type},
                           .persistent = buffer_is_persistent(slot->value.buffer)};
    slot_leave(slot);
    if (source_begin(&out->source, &out->value.type, item->data, item->bytes, err))
        return fail_context(err, "write");
    return FRIT_OK;
}

/* Replaces the buffer of the tensor by `filled`, taking it over. */
static frit_status swap_in(frit_tensor *tensor, struct buffer *filled, frit_err *err)
{
    struct slot *slot = enter_unheld(tensor, err);
    struct buffer *old = slot ? slot_swap_buffer(slot, filled) : filled;

    if (slot)
        slot_leave(slot);
    buffer_disown(old);
    return slot ? FRIT_OK : err->status;
}

static frit_status write_tensor(const frit_write_item *item, frit_err *err)
{
    struct target target = {0};
    frit_status st = find_target(item, &target, err);

    if (!st)
        st = transfer_in(target.device, target.source.data, target.persistent, &target.value, err);
    source_end(&target.source);
    return st ? st : swap_in(item->tensor, target.value.buffer, err);
}

frit_status frit_write(frit_tensor *tensor, const void *data, uint64_t bytes, frit_err *err)
{
    HOLD_CANCEL;
    const frit_write_item item = {.tensor = tensor, .data = data, .bytes = bytes};
    frit_err own = ERR_INIT;
    frit_status st = write_tensor(&item, &own);

    tensor_consume(tensor);
    return report(err, st, &own);
}

/* Limits of a group of writes, whose tensors have old and new memory at the same time: large enough
 * to keep the device busy, small compared with its memory. */
enum { WRITE_GROUP = 1024, WRITE_GROUP_BYTES = 16 << 20 };

struct write_group {
    frit_device *device; /* of all; NULL: it is empty */
    uint32_t n;
    uint64_t bytes;
    frit_write_item *items[WRITE_GROUP];
    struct source sources[WRITE_GROUP];
    struct transfer_write writes[WRITE_GROUP];
};

/* Sets the status of an item; `first` keeps the error of the first failed one. */
static void note_write_error(frit_write_item *item, const frit_err *err, frit_err *first)
{
    item->status = err->status;
    if (!first->status)
        *first = *err;
}

static void end_group(struct write_group *group, frit_err *first)
{
    frit_err err = ERR_INIT;
    frit_status st = transfer_fill_all(group->device, group->writes, group->n, &err);

    for (uint32_t i = 0; i < group->n; i++) {
        frit_err own = err;

        source_end(&group->sources[i]);
        if (st)
            buffer_disown(group->writes[i].buffer);
        if (st || swap_in(group->items[i]->tensor, group->writes[i].buffer, &own))
            note_write_error(group->items[i], &own, first);
    }
    group->device = NULL;
    group->n = 0;
    group->bytes = 0;
}

/* Allocates the new memory.  If memory is short, ends the group, which frees its old memory, and
 * tries again. */
static frit_status target_memory(struct write_group *group, struct target *target, uint64_t bytes,
                                 frit_err *first, frit_err *err)
{
    struct buffer **out = &target->value.buffer;
    frit_status st;

    assert(target->device);
    st = buffer_create(target->device->memory, bytes, target->persistent, out, err);
    if (st != FRIT_NO_DEVICE_MEMORY || !group->n)
        return st;
    end_group(group, first);
    return buffer_create(target->device->memory, bytes, target->persistent, out, err);
}

static void add_to_group(struct write_group *group, frit_write_item *item, frit_err *first)
{
    frit_err err = ERR_INIT;
    struct target target = {0};
    frit_status st = find_target(item, &target, &err);

    if (!st && group->n &&
        (group->device != target.device || group->n == WRITE_GROUP ||
         group->bytes + item->bytes > WRITE_GROUP_BYTES))
        end_group(group, first);
    if (!st)
        st = target_memory(group, &target, item->bytes, first, &err);
    item->status = st;
    if (st) {
        source_end(&target.source);
        note_write_error(item, &err, first);
        return;
    }
    group->device = target.device;
    group->bytes += item->bytes;
    group->sources[group->n] = target.source;
    group->writes[group->n] = (struct transfer_write){target.value.buffer, target.source.data};
    group->items[group->n++] = item;
}

frit_status frit_write_many(frit_write_item *items, uint64_t count, frit_err *err)
{
    HOLD_CANCEL;
    struct write_group *group;
    frit_err first = ERR_INIT;

    if (count == 0)
        return FRIT_OK;
    if (!items)
        return report_null(err, "write_many", "`items`");
    group = calloc(1, sizeof(*group));
    if (!group)
        return fail_memory(err, sizeof(*group));
    for (uint64_t i = 0; i < count; i++)
        add_to_group(group, &items[i], &first);
    if (group->n)
        end_group(group, &first);
    free(group);
    data_consume(items, sizeof(*items), count);
    return report(err, first.status, &first);
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
    return carry_across(from, &pinned, device, binding->persistent > 0, out, err);
}

frit_tensor *frit_to_device(frit_tensor *tensor, frit_device *device)
{
    HOLD_CANCEL;
    struct value value;
    frit_err err = ERR_INIT;
    frit_status st;

    if (!device) {
        fail(&err, FRIT_INVALID, "to_device: the device is NULL");
        tensor_consume(tensor);
        return tensor_error(NULL, &err);
    }
    if (frit_tensor_device(tensor) == device)
        return frit_copy(tensor);
    st = move_value(tensor, device, &value, &err);
    tensor_consume(tensor);
    return st ? tensor_error(device, &err) : tensor_ready(device, &value, &err);
}

/* ---- bytes as packed values ---- */

/* The value of a tensor of bytes, dense, with an owner of its own. */
static frit_status own_bytes(frit_tensor *bytes, frit_device **device, struct value *out,
                             frit_err *err)
{
    struct slot *slot = tensor_enter(bytes, "as_packed", err);
    struct value pinned;
    frit_status st = FRIT_OK;

    if (!slot)
        return err->status;
    *device = slot->device;
    pinned = slot->value;
    buffer_pin(pinned.buffer);
    if (watch_is_on(&slot->device->watch))
        watch_taken(&slot->device->watch, slot);
    slot_leave(slot);
    *out = pinned;
    if (layout_is_dense(&pinned.type, &pinned.layout))
        buffer_own(pinned.buffer);
    else
        st = run_relayout(*device, &pinned, NULL, out, err);
    buffer_unpin(pinned.buffer);
    return st;
}

/* Checks the arguments; `type` gets the packed one. */
static frit_status packed_type(frit_tensor *bytes, uint32_t dtype, const frit_dims *dims,
                               struct op_type *type, frit_err *err)
{
    const uint32_t given = frit_tensor_dtype(bytes);
    uint64_t need;
    char text[128];

    TRY(source_type(dtype, dims, type, err));
    if (dtype_class(dtype) != FRIT_DTYPE_PACKED)
        return fail(err, FRIT_INVALID, "%s is not a packed type", dtype_name(dtype));
    if (frit_tensor_status(bytes)) /* what it failed with is reported instead */
        return FRIT_OK;
    if (frit_dtype_bits(given) != 8)
        return fail(err, FRIT_INVALID, "the elements have type %s, it must be one of 8 bits",
                    dtype_name(given));
    need = frit_storage_bytes(dtype, op_elements(type));
    if (frit_tensor_bytes(bytes) != need)
        return fail(err, FRIT_INVALID, "the tensor has %llu bytes, %s has %llu",
                    (unsigned long long)frit_tensor_bytes(bytes),
                    op_type_text(type, text, sizeof(text)), (unsigned long long)need);
    return FRIT_OK;
}

frit_tensor *frit_as_packed(frit_tensor *bytes, uint32_t dtype, frit_dims dims)
{
    HOLD_CANCEL;
    frit_device *device = frit_tensor_device(bytes);
    struct op_type type;
    struct value value = {0};
    frit_err err = ERR_INIT;
    int64_t first;
    frit_status st = packed_type(bytes, dtype, &dims, &type, &err);

    if (st)
        fail_context(&err, "as_packed");
    else
        st = own_bytes(bytes, &device, &value, &err);
    tensor_consume(bytes);
    if (st)
        return tensor_error(device, &err);
    first = value.layout.offset * 8 / frit_dtype_bits(dtype);
    layout_dense(&type, &value.layout);
    value.layout.offset = first;
    value.type = type;
    return tensor_ready(device, &value, &err);
}

/* ---- files ---- */

frit_tensor *frit_load_npy(frit_device *device, const char *path)
{
    HOLD_CANCEL;
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
    uint64_t bytes = frit_tensor_bytes(tensor);
    frit_dims dims = frit_tensor_dims(tensor);
    struct op_type type = {.dtype = frit_tensor_dtype(tensor), .rank = (uint32_t)dims.rank};
    frit_read_item item = {.tensor = tensor, .bytes = bytes};
    struct transfer_read read;
    frit_status st;

    if (!path)
        return fail(err, FRIT_INVALID, "save_npy: the path is NULL");
    memcpy(type.dims, dims.dim, sizeof(type.dims));
    if (dtype_class(type.dtype) == FRIT_DTYPE_PACKED)
        source_bytes_type(&type);
    item.data = malloc(bytes ? bytes : 1);
    if (!item.data)
        return fail_memory(err, bytes);
    st = data_read(&item, 1, &read, err);
    if (!st)
        st = npy_write_file(path, &type, item.data, err);
    free(item.data);
    return st;
}

frit_status frit_save_npy(frit_tensor *tensor, const char *path, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st = save_npy(tensor, path, &own);

    tensor_consume(tensor);
    return report(err, st, &own);
}
