/* SPDX-License-Identifier: Apache-2.0 */
/* What the entry points share about tensors: publishing, errors, resolving handles. */
#include "api/host.h"

#include "base/fail.h"

/* The stream whose scope a new tensor belongs to: this thread's on the device, or for an error
 * without a device the one with the innermost scope; NULL if there is none. */
static struct stream *stream_for(frit_device *device)
{
    struct stream *stream = NULL;

    if (!device)
        return stream_scoped();
    return stream_current(device, &stream, NULL) ? NULL : stream;
}

frit_tensor *tensor_publish(struct stream *stream, struct slot *slot)
{
    frit_tensor *handle = slot_handle(slot);
    frit_err err = ERR_INIT;

    if (stream && scope_add(stream, slot, &err)) {
        slot_disown(handle);
        handle = handle_immortal(FRIT_NO_HOST_MEMORY);
    }
    slot_unuse(slot);
    return handle;
}

frit_tensor *tensor_failed(frit_device *device, struct failure *failure)
{
    struct stream *stream = stream_for(device);
    struct slot *slot;

    if (stream && device)
        stream_note_error(stream, failure);
    if (slot_create(device, stream, &slot, NULL))
        return handle_immortal(failure->status);
    slot_set_failed(slot, failure_ref(failure));
    return tensor_publish(stream, slot);
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
    struct stream *stream;
    struct slot *slot = NULL;
    frit_status st = stream_current(device, &stream, err);

    if (!st)
        st = slot_create(device, stream, &slot, err);
    if (st) {
        buffer_disown(value->buffer);
        return tensor_error(device, err);
    }
    slot->value.type = value->type;
    slot_set_ready(slot, value);
    return tensor_publish(stream, slot);
}

frit_status tensor_settle(frit_tensor *tensor, const char *what, struct slot **out, frit_err *err)
{
    struct slot *slot = slot_use(tensor, err);

    *out = slot;
    if (!slot) {
        fail_context(err, "%s: the tensor", what);
        return FRIT_INVALID;
    }
    stream_settle(slot, DRAIN_READ);
    if (slot_state(slot) == SLOT_READY)
        return FRIT_OK;
    if (slot_state(slot) == SLOT_FAILED)
        fail(err, slot->failure->status, "%s", slot->failure->text);
    else
        fail(err, FRIT_INVALID, "%s: the tensor's device is closed", what);
    slot_unuse(slot);
    *out = NULL;
    return err->status;
}

void tensor_consume(frit_tensor *tensor)
{
    if (handle_taken(tensor))
        slot_disown(tensor);
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

frit_status tensor_report(frit_tensor *tensor, frit_status st, const frit_err *err)
{
    struct slot *slot = st ? slot_use(tensor, NULL) : NULL;
    frit_device *device = slot ? atomic_load(&slot->device) : NULL;

    if (device)
        host_keep_error(device->config.host, st, err);
    if (slot)
        slot_unuse(slot);
    return st;
}
