/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: queries of the batch that is recorded, in a pool of the batch's own.  What they gave
 * is copied to where it is wanted at the next barrier, or where the batch ends, so that the copies
 * do not run between two timestamps that stand close together. */
#include "stamp.h"

#include <string.h>

#include "driver.h"
#include "plugin.h"
#include "queue.h"

enum { STAMP_BYTES = sizeof(uint64_t), AGREE_NS = 1000000 };

struct stamps {
    VkQueryPool pool;
    uint32_t n, copied;
    struct {
        VkBuffer buffer;
        uint64_t offset;
    } to[BATCH_STAMPS];
};

static frit_status create(struct device *device, struct batch *batch, frit_err *err)
{
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = BATCH_STAMPS};
    struct stamps *stamps = vulkan_alloc(device->instance, sizeof *stamps);
    VkResult result;

    if (!stamps)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for timestamps");
    result = device->api.CreateQueryPool(device->handle, &info, NULL, &stamps->pool);
    if (result) {
        vulkan_free(device->instance, stamps);
        return vulkan_refused(device->instance, err, result, "a query pool on %s",
                              device->adapter->name);
    }
    batch->stamps = stamps;
    return FRIT_OK;
}

void stamps_destroy(struct device *device, struct batch *batch)
{
    if (!batch->stamps)
        return;
    device->api.DestroyQueryPool(device->handle, batch->stamps->pool, NULL);
    vulkan_free(device->instance, batch->stamps);
}

void stamps_reset(struct batch *batch)
{
    if (batch->stamps)
        batch->stamps->n = batch->stamps->copied = 0;
}

/* All that is recorded ends before the query is written, and nothing behind it begins earlier. */
frit_status stamps_add(struct device *device, struct batch *batch, VkBuffer to, uint64_t offset,
                       frit_err *err)
{
    frit_status status = batch->stamps ? FRIT_OK : create(device, batch, err);
    struct stamps *stamps = batch->stamps;

    if (status)
        return status;
    if (stamps->n == 0)
        device->api.CmdResetQueryPool(batch->cmds, stamps->pool, 0, BATCH_STAMPS);
    batch_barrier(device, batch);
    device->api.CmdWriteTimestamp(batch->cmds, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, stamps->pool,
                                  stamps->n);
    batch_barrier(device, batch);
    stamps->to[stamps->n].buffer = to;
    stamps->to[stamps->n++].offset = offset;
    return FRIT_OK;
}

bool stamps_copy(struct device *device, struct batch *batch)
{
    struct stamps *stamps = batch->stamps;
    const bool any = stamps && stamps->copied < stamps->n;

    for (; any && stamps->copied < stamps->n; stamps->copied++)
        device->api.CmdCopyQueryPoolResults(batch->cmds, stamps->pool, stamps->copied, 1,
                                            stamps->to[stamps->copied].buffer,
                                            stamps->to[stamps->copied].offset, STAMP_BYTES,
                                            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    return any;
}

/* ---- the clock ---- */

static uint64_t now_ns(const struct device *device)
{
    return device->instance->plug.core->now_ns(device->instance->plug.host->self);
}

/* Whether the device's clock was read without its queue, and close to one moment of the host's. */
static bool read_calibrated(struct device *device, frit_clock *out)
{
    const VkCalibratedTimestampInfoEXT info = {.sType =
                                                   VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
                                               .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT};
    uint64_t deviation = 0, before, after;

    if (!device->api.GetCalibratedTimestampsEXT)
        return false;
    before = now_ns(device);
    if (device->api.GetCalibratedTimestampsEXT(device->handle, 1, &info, &out->ticks, &deviation))
        return false;
    after = now_ns(device);
    out->host_ns = before + (after - before) / 2;
    return after - before < AGREE_NS;
}

/* One timestamp on an idle queue: it was taken between its submission and the end of a wait for it.
 * Under the lock. */
static frit_status read_queued(struct device *device, frit_clock *out, frit_err *err)
{
    struct queue *queue = &device->queue;
    uint64_t offset, value = 0, begun = 0;
    struct batch *batch;
    frit_status status = queue_await(device, queue->submitted, UINT64_MAX, err);

    if (!status)
        status = batch_begin(device, &batch, err);
    if (!status)
        status =
            queue_room(device, &queue->staging_ring, STAMP_BYTES, STAMP_BYTES, NULL, &offset, err);
    if (!status)
        status = stamps_add(device, batch, queue->staging.handle, offset, err);
    if (!status) {
        begun = now_ns(device);
        status = batch_end(device, batch, &value, err);
    }
    if (!status)
        status = queue_await(device, value, UINT64_MAX, err);
    if (status)
        return status;
    out->host_ns = begun + (now_ns(device) - begun) / 2;
    memcpy(&out->ticks, queue->staging.mapped + offset, STAMP_BYTES);
    return FRIT_OK;
}

frit_status device_clock(void *self, frit_clock *out, frit_err *err)
{
    struct device *device = self;
    frit_status status;

    if (!device->adapter->stamp_bits)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED, "%s has no timestamps",
                         device->adapter->name);
    out->valid_bits = device->adapter->stamp_bits;
    out->ns_per_tick = (double)device->adapter->limits.timestampPeriod;
    if (read_calibrated(device, out)) {
        out->ticks &= UINT64_MAX >> (64 - out->valid_bits);
        return FRIT_OK;
    }
    pthread_mutex_lock(&device->queue.lock);
    status = read_queued(device, out, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
