/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetime and properties of tensors. */
#include <string.h>

#include "api/report.h"
#include "api/tensor.h"
#include "base/fail.h"
#include "base/process.h"
#include "device/device.h"
#include "device/lineage.h"
#include "graph/op.h"
#include "memory/memory.h"
#include "record/binding.h"
#include "record/scope.h"
#include "record/stream.h"
#include "run/drain.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

frit_scope frit_scope_begin(frit_device *device)
{
    struct binding *binding;
    frit_scope scope = {.device = device};

    if (device && !binding_current(device, &binding, NULL))
        scope.depth = scope_begin(binding);
    return scope;
}

void frit_scope_end(frit_scope scope)
{
    HOLD_CANCEL;
    struct binding *binding = scope.device ? binding_peek(scope.device) : NULL;

    if (binding)
        scope_end(binding, scope.depth);
}

frit_tensor *frit_keep(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);

    if (slot) {
        scope_keep(slot);
        slot_leave(slot);
    }
    return tensor;
}

void frit_release(frit_tensor *tensor)
{
    stream_disown(tensor);
}

frit_tensor *frit_ref(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);

    if (slot) {
        if (!slot_is_immortal(slot) && slot->owners < UINT32_MAX)
            slot->owners++;
        slot_leave(slot);
    }
    return tensor;
}

frit_tensor *frit_take(frit_tensor *tensor)
{
    return handle_take(tensor);
}

void frit_persistent_begin(frit_device *device)
{
    struct binding *binding;

    if (device && !binding_current(device, &binding, NULL))
        binding_persistent_begin(binding);
}

void frit_persistent_end(frit_device *device)
{
    struct binding *binding = device ? binding_peek(device) : NULL;

    if (binding)
        binding_persistent_end(binding);
}

frit_status frit_numeric_begin(uint32_t numeric_class, frit_err *err)
{
    if (process_is_barred())
        return process_refuse(err);
    if (numeric_class > FRIT_NUMERIC_RELAXED)
        return fail(err, FRIT_INVALID, "numeric_begin: there is no class %u", numeric_class);
    thread_numeric_begin(numeric_class);
    return FRIT_OK;
}

frit_status frit_numeric_end(frit_err *err)
{
    if (process_is_barred())
        return process_refuse(err);
    if (!thread_numeric_end())
        return fail(err, FRIT_INVALID, "numeric_end: this thread has no open section");
    return FRIT_OK;
}

/* ---- properties ---- */

/* The buffer of a tensor that may be invalid, pinned; NULL: it is not known to be. */
static struct buffer *pin_spoiled(frit_tensor *tensor, frit_device **device)
{
    struct slot *slot = slot_enter(tensor, NULL);
    struct buffer *buffer = NULL;

    if (slot && slot->state == SLOT_READY && slot->value.buffer &&
        atomic_load(&slot->value.buffer->failure)) {
        buffer = slot->value.buffer;
        *device = slot->device;
        buffer_pin(buffer);
    }
    if (slot)
        slot_leave(slot);
    return buffer;
}

/* As slot_enter; a tensor whose elements are known to be invalid fails. */
static struct slot *enter_known(frit_tensor *tensor)
{
    frit_device *device = NULL;
    struct buffer *buffer = pin_spoiled(tensor, &device);
    struct failure *failure = buffer ? lineage_failure_of(device->lineage, buffer) : NULL;
    struct slot *slot = slot_enter(tensor, NULL);

    if (slot && failure && slot->state == SLOT_READY && slot->value.buffer == buffer)
        slot_set_failed(slot, failure_ref(failure));
    failure_unref(failure);
    if (buffer)
        buffer_unpin(buffer);
    return slot;
}

frit_status frit_tensor_status(frit_tensor *tensor)
{
    struct slot *slot = enter_known(tensor);
    frit_status st = process_is_barred() ? FRIT_UNSUPPORTED : FRIT_INVALID;

    if (slot) {
        st = slot->state == SLOT_FAILED ? slot->failure->status : FRIT_OK;
        slot_leave(slot);
    }
    return st;
}

const char *frit_tensor_error(frit_tensor *tensor)
{
    struct slot *slot = enter_known(tensor);
    const char *text = process_is_barred() ? PROCESS_BARRED_TEXT
                                           : "not a tensor: NULL, or released or taken before";

    if (slot) {
        text = slot->state == SLOT_FAILED ? slot->failure->text : "";
        slot_leave(slot);
    }
    return text;
}

/* The type of a tensor; all zero for an error tensor. */
static struct op_type type_of(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);
    struct op_type type = {0};

    if (slot) {
        if (slot->state != SLOT_FAILED)
            type = slot->value.type;
        slot_leave(slot);
    }
    return type;
}

uint32_t frit_tensor_dtype(frit_tensor *tensor)
{
    return type_of(tensor).dtype;
}

frit_dims frit_tensor_dims(frit_tensor *tensor)
{
    struct op_type type = type_of(tensor);
    frit_dims dims = {.rank = type.rank};

    memcpy(dims.dim, type.dims, sizeof(dims.dim));
    return dims;
}

uint64_t frit_tensor_bytes(frit_tensor *tensor)
{
    struct op_type type = type_of(tensor);

    return type.dtype ? frit_storage_bytes(type.dtype, op_elements(&type)) : 0;
}

frit_status frit_tensor_strides(frit_tensor *tensor, frit_dims *out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    struct slot *slot;

    if (!out)
        return report_null(err, "tensor_strides", "`out`");
    slot = tensor_enter(tensor, "tensor_strides", &own);
    if (!slot)
        return report(err, own.status, &own);
    *out = (frit_dims){.rank = slot->value.type.rank};
    memcpy(out->dim, slot->value.layout.strides, sizeof(out->dim));
    slot_leave(slot);
    return FRIT_OK;
}

frit_device *frit_tensor_device(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);
    frit_device *device = slot ? slot->device : NULL;

    if (slot)
        slot_leave(slot);
    return device;
}
