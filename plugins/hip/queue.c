/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "scope.h"

/* How long a wait queries the event before the thread sleeps; about what a wakeup takes. */
enum { SPIN_NS = 50000 };
/* Pauses of a wait with a timeout, which the runtime's waits do not have: from the first to the
 * longest, each twice the one before. */
enum { FIRST_PAUSE_NS = 20000, LONGEST_PAUSE_NS = 500000 };

/* ---- open and close ---- */

static frit_status open_events(struct frit_queue *queue, frit_err *err)
{
    gpu_result result = GPU_SUCCESS;

    for (uint32_t i = 0; i < QUEUE_EVENTS && !result; i++)
        result = queue->device->api->EventCreate(&queue->events[i],
                                                 GPU_EVENT_BLOCKING_SYNC | GPU_EVENT_NO_TIMING);
    return result ? device_fail(queue->device, result, "creating events", err) : FRIT_OK;
}

static frit_status open_rings(struct frit_queue *queue, frit_err *err)
{
    struct device *device = queue->device;
    frit_status status = buffer_create(device, true, STAGING_BYTES, &queue->staging, err);

    ring_init(&queue->staging_ring, STAGING_BYTES);
    ring_init(&queue->params_ring, PARAMS_BYTES);
    if (!status)
        status = buffer_create(device, true, PARAMS_BYTES, &queue->params, err);
    return status ? status : buffer_create(device, false, PARAMS_BYTES, &queue->device_params, err);
}

static frit_status open_queue(struct device *device, gpu_stream adopted, frit_queue **out,
                              frit_err *err)
{
    struct frit_queue *queue = hip_alloc(device->instance, sizeof *queue);
    frit_status status = FRIT_OK;
    gpu_result result = GPU_SUCCESS;

    if (!queue)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a queue");
    if (pthread_mutex_init(&queue->lock, NULL)) {
        hip_free(device->instance, queue);
        return plug_fail(&device->instance->plug, err, FRIT_IO, "cannot create a mutex");
    }
    progress_init(&queue->progress, &device->instance->plug);
    queue->device = device;
    queue->buffer.plug = &device->instance->plug;
    queue->stream = adopted;
    queue->stream_is_adopted = adopted != NULL;
    if (!adopted)
        result = device->api->StreamCreate(&queue->stream, GPU_STREAM_NON_BLOCKING);
    if (result)
        status = device_fail(device, result, "creating a stream", err);
    if (!status)
        status = open_events(queue, err);
    if (!status)
        status = open_rings(queue, err);
    if (status)
        queue_close(queue);
    else
        *out = queue;
    return status;
}

frit_status queue_open_first(struct device *device, gpu_stream adopted, frit_err *err)
{
    return open_queue(device, adopted, &device->queues[0], err);
}

void queue_close(struct frit_queue *queue)
{
    const struct api *api = queue->device->api;

    if (queue->stream)
        (void)api->StreamSynchronize(queue->stream);
    for (uint32_t i = 0; i < QUEUE_EVENTS; i++)
        if (queue->events[i])
            (void)api->EventDestroy(queue->events[i]);
    if (queue->stream && !queue->stream_is_adopted)
        (void)api->StreamDestroy(queue->stream);
    buffer_destroy(queue->device, &queue->staging);
    buffer_destroy(queue->device, &queue->params);
    buffer_destroy(queue->device, &queue->device_params);
    launch_words_fini(&queue->buffer);
    progress_fini(&queue->progress);
    pthread_mutex_destroy(&queue->lock);
    hip_free(queue->device->instance, queue);
}

void queue_lose(struct frit_queue *queue, const frit_err *why)
{
    const struct fault fault = {.err = *why};

    pthread_mutex_lock(&queue->lock);
    ring_drop_copies(&queue->staging_ring, NULL, UINT64_MAX);
    pthread_mutex_unlock(&queue->lock);
    progress_lose(&queue->progress, &fault);
}

/* ---- the timeline ---- */

static gpu_event event_of(const struct frit_queue *queue, uint64_t value)
{
    return queue->events[value % QUEUE_EVENTS];
}

/* Frees the spans whose values are reached, oldest first, and copies the data of reads to the
 * host's memory. */
static void finish_reads(struct frit_queue *queue)
{
    struct ring_span span;

    while (ring_pop(&queue->params_ring, queue->reached, &span))
        ;
    while (ring_pop(&queue->staging_ring, queue->reached, &span))
        if (span.copy_to)
            memcpy(span.copy_to, queue->staging.mapped + span.offset, span.bytes);
}

static void reach(struct frit_queue *queue, uint64_t value)
{
    queue->reached = value;
    finish_reads(queue);
    progress_reach(&queue->progress, value, NULL);
}

/* Queries the last value first, since it decides for all. */
void queue_poll(struct frit_queue *queue)
{
    const struct api *api = queue->device->api;
    uint64_t value = queue->issued;
    gpu_result result;

    if (queue->reached == queue->issued || device_is_lost(queue->device))
        return;
    result = api->EventQuery(event_of(queue, value));
    if (result == GPU_NOT_READY) {
        value = queue->reached;
        do
            result = api->EventQuery(event_of(queue, value + 1));
        while (!result && ++value < queue->issued);
    }
    if (result && result != GPU_NOT_READY)
        (void)device_fail(queue->device, result, "waiting", NULL);
    else if (value > queue->reached)
        reach(queue, value);
}

/* Waits until a value is reached, with the lock held. */
static frit_status wait_locked(struct frit_queue *queue, uint64_t value, frit_err *err)
{
    gpu_result result = GPU_SUCCESS;

    if (value > queue->reached)
        result = queue->device->api->EventSynchronize(event_of(queue, value));
    if (result)
        return device_fail(queue->device, result, "waiting", err);
    if (value > queue->reached)
        reach(queue, value);
    return FRIT_OK;
}

frit_status queue_signal(struct frit_queue *queue, const struct fault *fault, uint64_t *value,
                         frit_err *err)
{
    frit_status status = FRIT_OK;
    gpu_result result;

    if (queue->issued >= QUEUE_EVENTS)
        status = wait_locked(queue, queue->issued + 1 - QUEUE_EVENTS, err);
    if (!status)
        status = progress_issue(&queue->progress, value, err);
    if (status)
        return status;
    result = queue->device->api->EventRecord(event_of(queue, *value), queue->stream);
    if (result && !hip_is_fatal(result)) /* then all is over, and the event may stay as it was */
        result = queue->device->api->StreamSynchronize(queue->stream);
    queue->issued = *value;
    if (fault)
        progress_fail(&queue->progress, *value, fault);
    ring_seal(&queue->staging_ring, *value);
    ring_seal(&queue->params_ring, *value);
    return result ? device_fail(queue->device, result, "recording an event", err) : FRIT_OK;
}

/* ---- other queues ---- */

frit_status queue_find(struct device *device, frit_queue *handle, frit_queue **out, frit_err *err)
{
    frit_queue *found = handle ? NULL : device->queues[0];

    if (!found) {
        pthread_mutex_lock(&device->queues_lock);
        for (uint32_t i = 1; i < MAX_QUEUES && !found; i++)
            if (device->queues[i] == handle)
                found = handle;
        pthread_mutex_unlock(&device->queues_lock);
    }
    *out = found;
    return found ? FRIT_OK
                 : plug_fail(&device->instance->plug, err, FRIT_INVALID,
                             "a queue that %s does not have", device->adapter->name);
}

/* An event of a value that is not reached was recorded for that value: it is used again only then.
 */
static frit_status wait_for_point(struct frit_queue *queue, struct frit_queue *other,
                                  uint64_t value, frit_err *err)
{
    gpu_result result = GPU_SUCCESS;

    pthread_mutex_lock(&other->lock);
    if (value > other->reached && value <= other->issued)
        result = queue->device->api->StreamWaitEvent(queue->stream, event_of(other, value), 0);
    pthread_mutex_unlock(&other->lock);
    return result ? device_fail(queue->device, result, "waiting for another queue", err) : FRIT_OK;
}

frit_status queue_add_waits(struct frit_queue *queue, const frit_point *waits, uint32_t n,
                            frit_err *err)
{
    frit_status status = FRIT_OK;
    frit_queue *other;

    for (uint32_t i = 0; i < n && !status; i++) {
        status = queue_find(queue->device, waits[i].queue, &other, err);
        if (!status)
            status = progress_check_value(&other->progress, waits[i].value, err);
    }
    for (uint32_t i = 0; i < n && !status; i++) {
        status = queue_find(queue->device, waits[i].queue, &other, err);
        if (!status && other != queue)
            status = wait_for_point(queue, other, waits[i].value, err);
    }
    return status;
}

/* ---- the rings ---- */

frit_status queue_reserve(struct frit_queue *queue, struct ring *ring, uint64_t bytes,
                          uint64_t align, void *copy_to, uint64_t *offset, frit_err *err)
{
    while ((*offset = ring_take(ring, bytes, align, copy_to)) == RING_FULL) {
        const uint64_t oldest = ring_oldest_value(ring);
        frit_status status;

        if (!oldest)
            return plug_fail(&queue->device->instance->plug, err, FRIT_BUSY,
                             "commands with more than %" PRIu64 " bytes of arguments", ring->bytes);
        status = wait_locked(queue, oldest, err);
        if (status)
            return status;
    }
    return FRIT_OK;
}

frit_status queue_reserve_block(struct frit_queue *queue, uint64_t bytes, struct queue_block *out,
                                frit_err *err)
{
    uint64_t offset;
    frit_status status =
        queue_reserve(queue, &queue->params_ring, bytes, BUFFER_ALIGN, NULL, &offset, err);

    if (!status)
        *out = (struct queue_block){.host = queue->params.mapped + offset,
                                    .address = queue->device_params.address + offset,
                                    .bytes = bytes};
    return status;
}

frit_status queue_send_block(struct frit_queue *queue, const struct queue_block *block,
                             frit_err *err)
{
    gpu_result result = queue->device->api->MemcpyHtoDAsync(block->address, block->host,
                                                            block->bytes, queue->stream);

    return result ? device_fail(queue->device, result, "copying arguments", err) : FRIT_OK;
}

/* ---- slots ---- */

static frit_status add_queue(struct device *device, frit_queue *queue, frit_err *err)
{
    frit_status status = FRIT_UNSUPPORTED;

    pthread_mutex_lock(&device->queues_lock);
    for (uint32_t i = 1; i < MAX_QUEUES && status; i++) {
        if (device->queues[i])
            continue;
        device->queues[i] = queue;
        status = FRIT_OK;
    }
    pthread_mutex_unlock(&device->queues_lock);
    return status ? plug_fail(&device->instance->plug, err, status, "%s has %d queues already",
                              device->adapter->name, MAX_QUEUES)
                  : FRIT_OK;
}

frit_status queue_create(void *self, const frit_queue_desc *desc, frit_queue **out, frit_err *err)
{
    struct device *device = self;
    frit_queue *queue = NULL;
    struct scope scope;
    frit_status status = scope_enter(device, &scope, err);

    (void)desc; /* every stream copies and computes */
    *out = NULL;
    if (status)
        return status;
    status = open_queue(device, NULL, &queue, err);
    if (!status)
        status = add_queue(device, queue, err);
    if (status && queue)
        queue_close(queue);
    else
        *out = queue;
    scope_leave(device, &scope);
    return status;
}

void queue_destroy(void *self, frit_queue *queue)
{
    struct device *device = self;
    struct scope scope;

    if (!queue)
        return;
    pthread_mutex_lock(&device->queues_lock);
    for (uint32_t i = 1; i < MAX_QUEUES; i++)
        if (device->queues[i] == queue)
            device->queues[i] = NULL;
    pthread_mutex_unlock(&device->queues_lock);
    scope_try(device, &scope);
    queue_close(queue);
    scope_leave(device, &scope);
}

static void sleep_ns(uint64_t ns)
{
    const struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    (void)nanosleep(&pause, NULL);
}

/* Polls; true: the value is reached or never will be. */
static bool is_over(struct frit_queue *queue, uint64_t value)
{
    bool over;

    pthread_mutex_lock(&queue->lock);
    queue_poll(queue);
    over = value <= queue->reached;
    pthread_mutex_unlock(&queue->lock);
    return over || device_is_lost(queue->device);
}

static void wait_until(struct frit_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    struct device *device = queue->device;
    const uint64_t begun = plug_now_ns(&device->instance->plug);
    uint64_t pause = FIRST_PAUSE_NS, waited;

    while (!is_over(queue, value)) {
        waited = plug_now_ns(&device->instance->plug) - begun;
        if (waited >= timeout_ns)
            return;
        if (waited < SPIN_NS)
            continue;
        if (timeout_ns == UINT64_MAX) { /* an error shows in the next poll */
            (void)device->api->EventSynchronize(event_of(queue, value));
            continue;
        }
        sleep_ns(pause < timeout_ns - waited ? pause : timeout_ns - waited);
        pause = pause * 2 < LONGEST_PAUSE_NS ? pause * 2 : LONGEST_PAUSE_NS;
    }
}

frit_status queue_wait(void *self, frit_queue *handle, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err)
{
    struct device *device = self;
    struct scope scope;
    frit_queue *queue;
    frit_status status = queue_find(device, handle, &queue, err);

    if (!status)
        status = progress_check_value(&queue->progress, value, err);
    if (!status)
        status = scope_enter(device, &scope, err);
    if (status)
        return status;
    wait_until(queue, value, timeout_ns);
    scope_leave(device, &scope);
    device_settle(device);
    return progress_wait(&queue->progress, value, 0, failure, err);
}
