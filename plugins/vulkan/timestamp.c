/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps are queries in a query pool of the batch.  Their results are copied to their
 * destinations at the next BARRIER or at the end of the batch, so that no copy runs between two
 * adjacent timestamps. */
#include "timestamp.h"

#include <assert.h>
#include <string.h>

#include "adapter.h"
#include "batch.h"
#include "device.h"
#include "plugin.h"

enum { TIMESTAMP_BYTES = sizeof(uint64_t) };

/* The longest accepted read of the calibrated clock.  The clock was read at an unknown moment of
 * that time. */
enum { MAX_READ_NS = 1000000 };

struct timestamps {
    VkQueryPool pool;
    uint32_t n;      /* queries that are recorded */
    uint32_t copied; /* of them, those whose copies are recorded */
    struct {
        VkBuffer buffer;
        uint64_t offset;
    } to[BATCH_TIMESTAMPS];
};

static frit_status create_query_pool(struct device *device, struct batch *batch, frit_err *err)
{
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = BATCH_TIMESTAMPS};
    struct timestamps *timestamps = vulkan_alloc(device->instance, sizeof *timestamps);
    VkResult result;

    if (!timestamps)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for timestamps");
    result = device->api.CreateQueryPool(device->handle, &info, NULL, &timestamps->pool);
    if (result) {
        vulkan_free(device->instance, timestamps);
        return vulkan_fail(device->instance, err, result, "creating a query pool on %s",
                           device->adapter->name);
    }
    batch->timestamps = timestamps;
    return FRIT_OK;
}

void timestamps_destroy(struct device *device, struct batch *batch)
{
    if (!batch->timestamps)
        return;
    device->api.DestroyQueryPool(device->handle, batch->timestamps->pool, NULL);
    vulkan_free(device->instance, batch->timestamps);
}

void timestamps_reset(struct batch *batch)
{
    if (batch->timestamps)
        batch->timestamps->n = batch->timestamps->copied = 0;
}

/* The barriers make the query wait for the commands before it, and those after it for the query. */
frit_status timestamps_add(struct device *device, struct batch *batch, VkBuffer to, uint64_t offset,
                           frit_err *err)
{
    frit_status status = batch->timestamps ? FRIT_OK : create_query_pool(device, batch, err);
    struct timestamps *timestamps = batch->timestamps;

    if (status)
        return status;
    assert(timestamps);
    if (timestamps->n == 0)
        device->api.CmdResetQueryPool(batch->cmds, timestamps->pool, 0, BATCH_TIMESTAMPS);
    batch_barrier(device, batch);
    device->api.CmdWriteTimestamp(batch->cmds, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                  timestamps->pool, timestamps->n);
    batch_barrier(device, batch);
    timestamps->to[timestamps->n].buffer = to;
    timestamps->to[timestamps->n++].offset = offset;
    return FRIT_OK;
}

bool timestamps_copy(struct device *device, struct batch *batch)
{
    struct timestamps *timestamps = batch->timestamps;
    const bool any = timestamps && timestamps->copied < timestamps->n;

    for (; any && timestamps->copied < timestamps->n; timestamps->copied++)
        device->api.CmdCopyQueryPoolResults(
            batch->cmds, timestamps->pool, timestamps->copied, 1,
            timestamps->to[timestamps->copied].buffer, timestamps->to[timestamps->copied].offset,
            TIMESTAMP_BYTES, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    return any;
}

/* ---- the clock ---- */

/* Reads the device's clock without using the queue.  False: the device cannot, or the read took too
 * long to match it with the host's clock. */
static bool read_calibrated(struct device *device, frit_clock *out)
{
    const VkCalibratedTimestampInfoEXT info = {.sType =
                                                   VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
                                               .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT};
    uint64_t deviation = 0, before, after;

    if (!device->api.GetCalibratedTimestampsEXT)
        return false;
    before = plug_now_ns(&device->instance->plug);
    if (device->api.GetCalibratedTimestampsEXT(device->handle, 1, &info, &out->ticks, &deviation))
        return false;
    after = plug_now_ns(&device->instance->plug);
    out->host_ns = before + (after - before) / 2;
    return after - before < MAX_READ_NS;
}

/* Reads the device's clock by submitting a timestamp while the device is idle, and takes the middle
 * between the submission and the end of the wait as the host's time.  Needs the lock. */
static frit_status read_submitted(struct device *device, frit_clock *out, frit_err *err)
{
    struct queue *queue = &device->queue;
    uint64_t offset, submitted_ns = 0;
    struct batch *batch;
    frit_status status = gather_flush(device, err);

    if (!status)
        status = queue_wait_value(device, queue->submitted, UINT64_MAX, err);
    if (!status)
        status = batch_acquire(device, &batch, err);
    if (!status)
        status = queue_reserve(device, &queue->staging_ring, TIMESTAMP_BYTES, TIMESTAMP_BYTES, NULL,
                               &offset, err);
    if (!status)
        status = timestamps_add(device, batch, queue->staging.handle, offset, err);
    if (!status) {
        submitted_ns = plug_now_ns(&device->instance->plug);
        status = batch_flush(device, batch, queue->issued + 1, err);
    }
    if (!status)
        status = queue_wait_value(device, batch->value, UINT64_MAX, err);
    if (status)
        return status;
    out->host_ns = submitted_ns + (plug_now_ns(&device->instance->plug) - submitted_ns) / 2;
    memcpy(&out->ticks, queue->staging.mapped + offset, TIMESTAMP_BYTES);
    return FRIT_OK;
}

frit_status timestamps_clock(void *self, frit_clock *out, frit_err *err)
{
    struct device *device = self;
    frit_status status;

    if (!device->adapter->timestamp_bits)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "%s does not support timestamps", device->adapter->name);
    out->valid_bits = device->adapter->timestamp_bits;
    out->ns_per_tick = (double)device->adapter->limits.timestampPeriod;
    if (read_calibrated(device, out)) {
        out->ticks &= UINT64_MAX >> (64 - out->valid_bits);
        return FRIT_OK;
    }
    pthread_mutex_lock(&device->queue.lock);
    status = read_submitted(device, out, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
