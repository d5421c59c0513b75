/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors for other libraries by DLPack. */
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
    void *copy;           /* else */
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

/* ---- in place ---- */

/* Waits until the elements of a pinned value are there.  Their address in the host's memory; NULL,
 * without an error, where they have none; NULL, with an error, where they are invalid. */
static const char *find_elements(frit_device *device, const struct value *pinned, frit_err *err)
{
    struct failure *failure;
    const char *bytes;

    pending_wait(device->pending, pinned->buffer);
    if (buffer_is_away(pinned->buffer))
        return NULL;
    bytes = transfer_host_bytes(device, pinned->buffer);
    failure = bytes ? lineage_failure_of(device->lineage, pinned->buffer) : NULL;
    if (!failure)
        return bytes;
    fail(err, failure->status, "%s", failure->text);
    failure_unref(failure);
    return NULL;
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

/* A pinned value where it is.  False, without an error: it has to be copied. */
static bool export_in_place(struct export *export, frit_device *device, const struct value *pinned,
                            frit_dl_tensor *out, frit_err *err)
{
    const char *bytes =
        pinned->buffer && op_elements(&pinned->type) ? find_elements(device, pinned, err) : NULL;

    if (!bytes)
        return false;
    describe(export, &pinned->type, &pinned->layout, out);
    out->data = (void *)(uintptr_t)(bytes + (int64_t)frit_storage_bytes(pinned->type.dtype, 1) *
                                                pinned->layout.offset);
    exports_add(&export->held, device, pinned->buffer);
    return true;
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

static frit_status check_options(const frit_dl_options *options, uint64_t *copy, frit_err *err)
{
    if (!options)
        return FRIT_OK;
    if (options->struct_size < FRIT_END_OF(frit_dl_options, copy))
        return fail(err, FRIT_INVALID, "to_dlpack: struct_size of the options is not set");
    *copy = options->copy;
    if (*copy > FRIT_DL_COPY_NEVER)
        return fail(err, FRIT_INVALID, "to_dlpack: there is no way to copy %llu",
                    (unsigned long long)*copy);
    return FRIT_OK;
}

static frit_status fill(struct export *export, frit_tensor *tensor, uint64_t copy,
                        frit_dl_tensor *out, frit_err *err)
{
    frit_device *device = NULL;
    struct value pinned = {0};
    frit_dl_type its;
    bool done = false;

    TRY(pin_value(tensor, &device, &pinned, err));
    if (!dlpack_type(pinned.type.dtype, &its))
        fail(err, FRIT_UNSUPPORTED, "to_dlpack: DLPack has no type %s",
             dtype_name(pinned.type.dtype));
    else if (copy != FRIT_DL_COPY_ALWAYS)
        done = export_in_place(export, device, &pinned, out, err);
    if (pinned.buffer)
        buffer_unpin(pinned.buffer);
    if (err->status || done)
        return err->status;
    if (copy == FRIT_DL_COPY_NEVER && op_elements(&pinned.type))
        return fail(err, FRIT_UNSUPPORTED,
                    "to_dlpack: %s has no address in the host's memory for its elements; allow a "
                    "copy",
                    device->name);
    return export_copy(export, tensor, &pinned.type, out, err);
}

/* `old`: the struct to be filled. */
static frit_status export_tensor(frit_tensor *tensor, const frit_dl_options *options, bool old,
                                 struct export **out, frit_err *err)
{
    frit_err own = ERR_INIT;
    struct export *export = calloc(1, sizeof(*export));
    uint64_t copy = FRIT_DL_COPY_IF_NEEDED;
    frit_status st;

    st = export ? check_options(options, &copy, &own) : fail_memory(&own, sizeof(*export));
    if (!st && old && copy == FRIT_DL_COPY_IF_NEEDED)
        copy = FRIT_DL_COPY_ALWAYS;
    if (!st)
        st = fill(export, tensor, copy, old ? &export->as.old.tensor : &export->as.managed.tensor,
                  &own);
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
    export->as.managed.flags = export->copy ? FRIT_DL_COPIED : FRIT_DL_READ_ONLY;
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
