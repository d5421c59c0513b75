/* SPDX-License-Identifier: Apache-2.0 */
#include "timestamp.h"

#include <string.h>

#include "device.h"
#include "plugin.h"
#include "scope.h"

static const double ns_per_tick_cuda = 1, ns_per_tick_hip = 10; /* see builtin.c */

frit_status timestamp_enqueue(struct frit_queue *queue, uint64_t address, frit_err *err)
{
    return builtin_clock(queue, address, err);
}

/* Reads the clock by a timestamp in pinned memory while the queue is idle, and takes the middle
 * between the launch and the end of the wait as the host's time.  Needs the lock. */
static frit_status read_clock(struct frit_queue *queue, frit_clock *out, frit_err *err)
{
    const struct instance *instance = queue->device->instance;
    struct queue_block block;
    uint64_t begun, value;
    gpu_result result;
    frit_status status = queue_reserve_block(queue, sizeof out->ticks, &block, err);

    for (uint32_t i = 0; i < 2 && !status; i++) { /* the first one compiles */
        result = queue->device->api->StreamSynchronize(queue->stream);
        if (result)
            return device_fail(queue->device, result, "waiting", err);
        begun = plug_now_ns(&instance->plug);
        status = builtin_clock(queue, (uintptr_t)block.host, err);
        result = queue->device->api->StreamSynchronize(queue->stream);
        if (result && !status)
            status = device_fail(queue->device, result, "waiting", err);
        out->host_ns = begun + (plug_now_ns(&instance->plug) - begun) / 2;
    }
    if (status)
        return status;
    memcpy(&out->ticks, block.host, sizeof out->ticks);
    return queue_signal(queue, NULL, &value, err);
}

frit_status timestamp_clock(void *self, frit_clock *out, frit_err *err)
{
    struct device *device = self;
    frit_queue *queue = device->queues[0];
    struct scope scope;
    frit_status status = scope_enter(device, &scope, err);

    if (status)
        return status;
    out->valid_bits = 64;
    out->ns_per_tick = vendor.dialect == CTEXT_HIP ? ns_per_tick_hip : ns_per_tick_cuda;
    pthread_mutex_lock(&queue->lock);
    status = device_check(device, err);
    if (!status)
        status = read_clock(queue, out, err);
    pthread_mutex_unlock(&queue->lock);
    scope_leave(device, &scope);
    device_settle(device);
    return status;
}
