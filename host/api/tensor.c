/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the entry points: publishing tensors, error tensors, resolving handles. */
#include "api/tensor.h"

#include "base/fail.h"
#include "device/device.h"
#include "graph/op.h"
#include "memory/buffer.h"
#include "record/binding.h"
#include "record/scope.h"
#include "record/stream.h"
#include "run/drain.h"
#include "tensor/failure.h"
#include "tensor/slot.h"
#include "tensor/value.h"

/* The calling thread's binding to the device; for an error without a device any binding of the
 * thread, NULL if it has none. */
static struct binding *binding_for(frit_device *device)
{
    struct binding *binding = NULL;

    if (!device)
        return binding_any();
    return binding_current(device, &binding, NULL) ? NULL : binding;
}

/* Inside the lock: the handle of a new slot, added to the scope; NULL if memory is short. */
static frit_tensor *publish(struct binding *binding, struct slot *slot)
{
    if (scope_add(&binding->scopes, slot))
        return slot_handle(slot);
    slot_disown(slot);
    slot_end(slot);
    return NULL;
}

frit_tensor *tensor_failed_in(struct binding *binding, frit_device *device, struct failure *failure)
{
    struct slot *slot = slot_create(&binding->stream->home, device);
    frit_tensor *handle = NULL;

    if (slot) {
        slot->value.type = (struct op_type){0};
        slot->made_by = FRIT_OP_none;
        slot_set_failed(slot, failure_ref(failure));
        handle = publish(binding, slot);
    }
    return handle ? handle : handle_immortal(failure->status);
}

frit_tensor *tensor_failed(frit_device *device, struct failure *failure)
{
    struct binding *binding = binding_for(device);
    frit_tensor *tensor;

    if (!binding)
        return handle_immortal(failure->status);
    if (device)
        stream_note_error(binding->stream, failure);
    home_enter(&binding->stream->home);
    tensor = tensor_failed_in(binding, device, failure);
    home_leave_drop(&binding->stream->home);
    return tensor;
}

frit_tensor *tensor_error(frit_device *device, const frit_err *err)
{
    struct failure *failure = failure_create(err);
    frit_tensor *tensor = tensor_failed(device, failure);

    failure_unref(failure);
    return tensor;
}

frit_tensor *tensor_ready(frit_device *device, struct value *value, frit_err *err)
{
    frit_tensor *tensor = NULL;
    struct binding *binding;

    if (!binding_current(device, &binding, err)) {
        struct slot *slot;

        home_enter(&binding->stream->home);
        slot = slot_create(&binding->stream->home, device);
        if (slot) {
            slot->value.type = value->type;
            slot->made_by = FRIT_OP_none;
            slot_set_ready(slot, value);
            tensor = publish(binding, slot);
        } else {
            fail(err, FRIT_NO_HOST_MEMORY, "no memory for another tensor");
        }
        home_leave_drop(&binding->stream->home);
        if (slot)
            return tensor ? tensor : handle_immortal(FRIT_NO_HOST_MEMORY);
    }
    buffer_disown(value->buffer);
    return tensor_error(device, err);
}

struct slot *tensor_enter(frit_tensor *tensor, const char *what, frit_err *err)
{
    struct slot *slot = stream_enter_settled(tensor, DRAIN_READ, err);

    if (!slot) {
        fail_context(err, "%s: the tensor", what);
        return NULL;
    }
    if (slot->state == SLOT_READY)
        return slot;
    if (slot->state == SLOT_FAILED)
        fail(err, slot->failure->status, "%s", slot->failure->text);
    else
        fail(err, FRIT_INVALID, "%s: the tensor's device is closed", what);
    slot_leave(slot);
    return NULL;
}

void tensor_consume(frit_tensor *tensor)
{
    if (handle_taken(tensor))
        stream_disown(tensor);
}

frit_status tensor_check_data(const struct op_type *type, const void *data, uint64_t bytes,
                              frit_err *err)
{
    uint64_t need = frit_storage_bytes(type->dtype, op_elements(type));
    char text[128];

    if (bytes != need)
        return fail(err, FRIT_INVALID, "%llu bytes given, %s has %llu", (unsigned long long)bytes,
                    op_type_text(type, text, sizeof(text)), (unsigned long long)need);
    if (!data && need)
        return fail(err, FRIT_INVALID, "the data is NULL");
    return FRIT_OK;
}
