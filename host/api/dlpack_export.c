/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors for other libraries by DLPack. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/data.h"
#include "api/dlpack.h"
#include "api/report.h"
#include "api/tensor.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/exports.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "device/watch.h"
#include "graph/dtype.h"
#include "graph/op.h"
#include "memory/memory.h"
#include "run/mirror.h"
#include "run/transfer.h"
#include "tensor/failure.h"
#include "tensor/slot.h"
#include "tensor/value.h"

enum { COPY_ALIGN = 64 };

/* What an importer gets, and what it keeps: one of both. */
struct export
{
    union {
        frit_dl_managed managed;
        frit_dl_managed_old old;
    } as;
    struct exported held; /* in place */
    void *copy;           /* else, in the host's memory */
    bool copied;
    int64_t dims[FRIT_MAX_RANK], strides[FRIT_MAX_RANK];
};

static void export_end(struct export *export)
{
    exports_drop(&export->held);
    free(export->copy);
    free(export);
}

static void delete_managed(frit_dl_managed *self)
{
    export_end(self->owner);
}

static void delete_old(frit_dl_managed_old *self)
{
    export_end(self->owner);
}

/* A tensor on its way out. */
struct outgoing {
    struct export *export;
    frit_dl_tensor *out; /* to be filled */
    bool on_device;      /* in the device's memory, not the host's */
    frit_device *device;
    struct value value; /* of the tensor; its buffer pinned */
    bool done;
};

/* ---- in place ---- */

/* Waits until the elements of a pinned value are there.  The address of the buffer's first byte, in
 * the host's memory or the device's; 0, without an error, where it has none; 0, with an error,
 * where they are invalid. */
static uint64_t find_elements(frit_device *device, const struct value *pinned, bool on_device,
                              frit_err *err)
{
    struct failure *failure;
    uint64_t address;

    pending_wait(device->pending, pinned->buffer);
    if (buffer_is_away(pinned->buffer) && (!on_device || mirror_fetch(device, pinned->buffer, err)))
        return 0;
    address = on_device ? transfer_device_address(device, pinned->buffer)
                        : (uintptr_t)transfer_host_bytes(device, pinned->buffer);
    failure = address ? lineage_failure_of(device->lineage, pinned->buffer) : NULL;
    if (!failure)
        return address;
    fail(err, failure->status, "%s", failure->text);
    failure_unref(failure);
    return 0;
}

static void describe(struct export *export, const struct op_type *type, const struct layout *layout,
                     frit_dl_tensor *out)
{
    memcpy(export->dims, type->dims, sizeof(export->dims));
    memcpy(export->strides, layout->strides, sizeof(export->strides));
    *out = (frit_dl_tensor){.device = {.type = FRIT_DL_CPU},
                            .rank = (int32_t)type->rank,
                            .dims = export->dims,
                            .strides = export->strides};
    dlpack_type(type->dtype, &out->dtype);
}

/* A value where it is.  Leaves `done` false, without an error, if it has to be copied. */
static void export_in_place(struct outgoing *a, frit_err *err)
{
    const struct value *value = &a->value;
    uint64_t address = value->buffer && op_elements(&value->type)
                           ? find_elements(a->device, value, a->on_device, err)
                           : 0;

    if (!address)
        return;
    describe(a->export, &value->type, &value->layout, a->out);
    if (a->on_device)
        a->out->device = dlpack_place(a->device);
    a->out->data = (void *)(uintptr_t)(address + frit_storage_bytes(value->type.dtype, 1) *
                                                     (uint64_t)value->layout.offset);
    exports_add(&a->export->held, a->device, value->buffer);
    a->done = true;
}

/* The value of a tensor, its buffer pinned. */
static frit_status pin_value(frit_tensor *tensor, frit_device **device, struct value *out,
                             frit_err *err)
{
    struct slot *slot = tensor_enter(tensor, "to_dlpack", err);

    if (!slot)
        return err->status;
    *out = slot->value;
    *device = slot->device;
    if (out->buffer)
        buffer_pin(out->buffer);
    if (watch_is_on(&slot->device->watch))
        watch_taken(&slot->device->watch, slot);
    slot_leave(slot);
    return FRIT_OK;
}

/* ---- by a copy ---- */

static frit_status export_copy(struct export *export, frit_tensor *tensor,
                               const struct op_type *type, frit_dl_tensor *out, frit_err *err)
{
    const uint64_t bytes = frit_storage_bytes(type->dtype, op_elements(type));
    frit_read_item item = {.tensor = tensor, .bytes = bytes};
    struct transfer_read read;
    struct layout layout;

    export->copy = aligned_alloc(COPY_ALIGN, (bytes / COPY_ALIGN + 1) * COPY_ALIGN);
    if (!export->copy)
        return fail_memory(err, bytes);
    item.data = export->copy;
    TRY(data_read(&item, 1, &read, err));
    layout_dense(type, &layout);
    describe(export, type, &layout, out);
    out->data = export->copy;
    return FRIT_OK;
}

/* ---- the calls ---- */

static frit_status check_options(const frit_dl_options *given, frit_dl_options *out, frit_err *err)
{
    *out = (frit_dl_options){0};
    if (!given)
        return FRIT_OK;
    if (given->struct_size < FRIT_END_OF(frit_dl_options, copy))
        return fail(err, FRIT_INVALID, "to_dlpack: struct_size of the options is not set");
    out->copy = given->copy;
    if (FRIT_HAS(given, frit_dl_options, on_device))
        out->on_device = given->on_device;
    if (out->copy > FRIT_DL_COPY_NEVER || out->on_device > 1)
        return fail(err, FRIT_INVALID, "to_dlpack: there is no way %llu to copy to place %llu",
                    (unsigned long long)out->copy, (unsigned long long)out->on_device);
    return FRIT_OK;
}

static frit_status refuse_copy(const frit_device *device, bool on_device, frit_err *err)
{
    assert(device); /* of a tensor with a value */
    return fail(err, FRIT_UNSUPPORTED,
                "to_dlpack: %s has no address in the memory of the %s for its elements%s",
                device->name, on_device ? "device" : "host", on_device ? "" : "; allow a copy");
}

/* Reads the value of a tensor; with `in_place` tries to export it there. */
static frit_status try_value(struct outgoing *a, frit_tensor *tensor, bool in_place, frit_err *err)
{
    TRY(pin_value(tensor, &a->device, &a->value, err));
    if (in_place)
        export_in_place(a, err);
    if (a->value.buffer)
        buffer_unpin(a->value.buffer);
    return err->status;
}

/* A copy on the device, which nobody else has. */
static frit_status try_twin(struct outgoing *a, frit_tensor *tensor, frit_err *err)
{
    frit_tensor *twin = frit_copy(handle_plain(tensor));

    try_value(a, twin, true, err);
    frit_release(twin);
    return err->status;
}

static frit_status fill(struct export *export, frit_tensor *tensor, const frit_dl_options *options,
                        frit_dl_tensor *out, frit_err *err)
{
    const bool copies = options->copy == FRIT_DL_COPY_ALWAYS;
    struct outgoing a = {.export = export, .out = out, .device = frit_tensor_device(tensor)};
    uint32_t dtype = frit_tensor_dtype(tensor);
    frit_dl_type its;

    if (dtype != FRIT_NO_DTYPE && !dlpack_type(dtype, &its))
        return fail(err, FRIT_UNSUPPORTED, "to_dlpack: DLPack has no type %s", dtype_name(dtype));
    a.on_device = options->on_device && a.device && dlpack_place(a.device).type != FRIT_DL_CPU;
    TRY(copies && a.on_device ? try_twin(&a, tensor, err) : try_value(&a, tensor, !copies, err));
    export->copied = copies || !a.done;
    if (a.done)
        return FRIT_OK;
    if (op_elements(&a.value.type) && (a.on_device || options->copy == FRIT_DL_COPY_NEVER))
        return refuse_copy(a.device, a.on_device, err);
    return export_copy(export, tensor, &a.value.type, out, err);
}

/* `old`: the struct to be filled. */
static frit_status export_tensor(frit_tensor *tensor, const frit_dl_options *options, bool old,
                                 struct export **out, frit_err *err)
{
    frit_err own = ERR_INIT;
    struct export *export = calloc(1, sizeof(*export));
    frit_dl_options wanted = {0};
    frit_status st;

    st = export ? check_options(options, &wanted, &own) : fail_memory(&own, sizeof(*export));
    if (!st && old && wanted.copy == FRIT_DL_COPY_IF_NEEDED)
        wanted.copy = FRIT_DL_COPY_ALWAYS;
    if (!st)
        st = fill(export, tensor, &wanted,
                  old ? &export->as.old.tensor : &export->as.managed.tensor, &own);
    tensor_consume(tensor);
    if (st && export)
        export_end(export);
    *out = st ? NULL : export;
    return report(err, st, &own);
}

frit_status frit_to_dlpack(frit_tensor *tensor, const frit_dl_options *options,
                           frit_dl_managed **out, frit_err *err)
{
    HOLD_CANCEL;
    struct export *export;

    if (!out)
        return report_null(err, "to_dlpack", "`out`");
    *out = NULL;
    TRY(export_tensor(tensor, options, false, &export, err));
    export->as.managed.major = FRIT_DL_MAJOR;
    export->as.managed.minor = FRIT_DL_MINOR;
    export->as.managed.owner = export;
    export->as.managed.deleter = delete_managed;
    export->as.managed.flags = export->copied ? FRIT_DL_COPIED : FRIT_DL_READ_ONLY;
    *out = &export->as.managed;
    return FRIT_OK;
}

frit_status frit_to_dlpack_old(frit_tensor *tensor, const frit_dl_options *options,
                               frit_dl_managed_old **out, frit_err *err)
{
    HOLD_CANCEL;
    struct export *export;

    if (!out)
        return report_null(err, "to_dlpack", "`out`");
    *out = NULL;
    TRY(export_tensor(tensor, options, true, &export, err));
    export->as.old.owner = export;
    export->as.old.deleter = delete_old;
    *out = &export->as.old;
    return FRIT_OK;
}

frit_status frit_dlpack_place(frit_tensor *tensor, frit_dl_device *out, frit_err *err)
{
    frit_device *device = frit_tensor_device(tensor);

    if (!out)
        return report_null(err, "dlpack_place", "`out`");
    if (process_is_barred())
        return report_barred(err, "dlpack_place");
    if (!device)
        return fail(err, FRIT_INVALID, "dlpack_place: the tensor has no device");
    *out = dlpack_place(device);
    return FRIT_OK;
}
