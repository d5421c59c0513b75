/* SPDX-License-Identifier: Apache-2.0 */
/* The copy runs on the stream of the device that gets the bytes.  With access to the other one's
 * memory the runtime copies over the link between them, without it through the host's memory. */
#include "peer.h"

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "scope.h"
#include "vendor.h"

/* Once each time the other device is opened, since closing it ends the access.  A failure does not
 * matter: access is enabled already, or the copy works without, or the copy reports the error. */
static void enable_access(struct device *to, const struct device *from)
{
    _Atomic uint64_t *place = &to->peers.open_numbers[from->adapter->handle % PEER_PLACES];
    int can_access = 0;

    if (atomic_load(place) == from->open_number)
        return;
    if (!to->api->DeviceCanAccessPeer(&can_access, to->adapter->handle, from->adapter->handle) &&
        can_access)
        (void)vendor.enable_peer(to, from);
    atomic_store(place, from->open_number);
}

static frit_status enqueue(struct frit_queue *queue, const frit_transfer *to,
                           const frit_peer_source *from, uint64_t *value, frit_err *err)
{
    struct device *device = queue->device;
    const gpu_result result =
        vendor.copy_peer(device, to->memory->address + to->offset, from->device,
                         from->memory->address + from->offset, to->bytes, queue->stream);

    if (result)
        return device_fail(device, result, "copying from another device", err);
    return queue_signal(queue, NULL, value, err);
}

static frit_status check(struct device *device, const frit_transfer *to,
                         const frit_peer_source *from, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    frit_status status = memory_check_range(plug, to->memory, to->offset, to->bytes, err);

    if (!status)
        status = memory_check_range(plug, from->memory, from->offset, to->bytes, err);
    if (status)
        return status;
    if (to->memory->is_pinned || from->memory->is_pinned)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "a copy between devices of pinned memory");
    if (device_is_lost(from->device))
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "a copy from a lost device");
    return FRIT_OK;
}

static frit_status copy_entered(struct frit_queue *queue, const frit_transfer *to,
                                const frit_peer_source *from, uint64_t *value, frit_err *err)
{
    frit_status status = queue_add_waits(queue, to->waits, to->n_waits, err);

    if (!status)
        status = device_check(queue->device, err);
    if (status)
        return status;
    enable_access(queue->device, from->device);
    pthread_mutex_lock(&queue->lock);
    queue_poll(queue);
    status = enqueue(queue, to, from, value, err);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

frit_status peer_copy(void *self, const frit_transfer *to, const frit_peer_source *from,
                      uint64_t *value, frit_err *err)
{
    struct device *device = self;
    struct scope scope;
    frit_queue *queue;
    frit_status status = queue_find(device, to->queue, &queue, err);

    if (!status)
        status = check(device, to, from, err);
    if (!status)
        status = scope_enter(device, &scope, err);
    if (status)
        return status;
    status = copy_entered(queue, to, from, value, err);
    scope_leave(device, &scope);
    device_settle(device);
    return status;
}
