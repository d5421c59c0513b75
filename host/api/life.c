/* SPDX-License-Identifier: Apache-2.0 */
/* How long tensors live, and what they are. */
#include <string.h>

#include "api/host.h"
#include "base/fail.h"

frit_scope frit_scope_begin(frit_device *device)
{
    struct stream *stream;
    frit_scope scope = {.device = device};

    if (device && !stream_current(device, &stream, NULL))
        scope.depth = scope_begin(stream);
    return scope;
}

void frit_scope_end(frit_scope scope)
{
    struct stream *stream = scope.device ? stream_peek(scope.device) : NULL;

    if (stream)
        scope_end(stream, scope.depth);
}

frit_tensor *frit_keep(frit_tensor *tensor)
{
    struct slot *slot = slot_use(tensor, NULL);
    struct stream *scope = slot ? atomic_load_explicit(&slot->scope, memory_order_relaxed) : NULL;

    if (scope && stream_is_mine(scope))
        scope_keep(scope, slot);
    if (slot)
        slot_unuse(slot);
    return tensor;
}

void frit_release(frit_tensor *tensor)
{
    slot_disown(tensor);
}

frit_tensor *frit_ref(frit_tensor *tensor)
{
    slot_own(tensor);
    return tensor;
}

frit_tensor *frit_take(frit_tensor *tensor)
{
    return handle_take(tensor);
}

void frit_persistent_begin(frit_device *device)
{
    struct stream *stream;

    if (device && !stream_current(device, &stream, NULL))
        stream->persistent++;
}

void frit_persistent_end(frit_device *device)
{
    struct stream *stream = device ? stream_peek(device) : NULL;

    if (stream && stream->persistent > 0)
        stream->persistent--;
}

/* ---- asking ---- */

frit_status frit_tensor_status(frit_tensor *tensor)
{
    struct slot *slot = slot_use(tensor, NULL);
    frit_status st = FRIT_INVALID;

    if (slot) {
        st = slot_state(slot) == SLOT_FAILED ? slot->failure->status : FRIT_OK;
        slot_unuse(slot);
    }
    return st;
}

const char *frit_tensor_error(frit_tensor *tensor)
{
    struct slot *slot = slot_use(tensor, NULL);
    const char *text = "not a tensor: NULL, or released or taken before";

    if (slot) {
        text = slot_state(slot) == SLOT_FAILED ? slot->failure->text : "";
        slot_unuse(slot);
    }
    return text;
}

/* The type, all zero on an error tensor. */
static struct op_type type_of(frit_tensor *tensor)
{
    struct slot *slot = slot_use(tensor, NULL);
    struct op_type type = {0};

    if (slot) {
        if (slot_state(slot) != SLOT_FAILED)
            type = slot->value.type;
        slot_unuse(slot);
    }
    return type;
}

uint32_t frit_dtype(frit_tensor *tensor)
{
    return type_of(tensor).dtype;
}

frit_dims frit_dims_of(frit_tensor *tensor)
{
    struct op_type type = type_of(tensor);
    frit_dims dims = {.rank = type.rank};

    memcpy(dims.dim, type.dims, sizeof(dims.dim));
    return dims;
}

uint64_t frit_bytes(frit_tensor *tensor)
{
    struct op_type type = type_of(tensor);

    return type.dtype ? frit_storage_bytes(type.dtype, op_elements(&type)) : 0;
}

frit_status frit_strides_of(frit_tensor *tensor, frit_dims *out)
{
    struct value value;
    frit_err err = ERR_INIT;
    struct slot *slot;
    frit_status st = tensor_settle(tensor, "strides_of", &slot, &err);

    if (!out || st) {
        if (!st)
            slot_unuse(slot);
        return st ? tensor_report(tensor, st, &err) : FRIT_INVALID;
    }
    slot_pin_value(slot, &value);
    buffer_unpin(value.buffer);
    slot_unuse(slot);
    *out = (frit_dims){.rank = value.type.rank};
    memcpy(out->dim, value.layout.strides, sizeof(out->dim));
    return FRIT_OK;
}

frit_device *frit_device_of(frit_tensor *tensor)
{
    struct slot *slot = slot_use(tensor, NULL);
    frit_device *device = slot ? atomic_load(&slot->device) : NULL;

    if (slot)
        slot_unuse(slot);
    return device;
}
