/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <string.h>

#include "device.h"
#include "gpu/arg_block.h"
#include "gpu/capture.h"
#include "launch.h"
#include "plugin.h"
#include "recording_graph.h"
#include "scope.h"
#include "submit.h"

/* ---- making ---- */

/* A recording holds no TIMESTAMP and no kernel of another plugin. */
static frit_status check(void *ctx, const frit_cmd *cmd, frit_err *err)
{
    struct device *device = ctx;
    frit_status status = submit_check_command(device, cmd, err);

    if (!status && (cmd->kind == FRIT_CMD_DISPATCH || cmd->kind == FRIT_CMD_TIMESTAMP))
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "cannot record a command of kind %u", cmd->kind);
    return status;
}

/* Lays out the region: blocks of all changing kernels, with their tables. */
static frit_status lay_out(struct device *device, frit_recording *recording, frit_err *err)
{
    const struct capture *capture = &recording->capture;
    const uint64_t align = BUFFER_ALIGN / sizeof(uint64_t);

    recording->changing = hip_alloc(device->instance, ((uint64_t)capture->n_kernels + 1) *
                                                          sizeof *recording->changing);
    if (!recording->changing)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    for (uint32_t i = 0; i < capture->n_kernels; i++) {
        const struct captured_kernel *kernel = &capture->kernels[i];
        const uint64_t end =
            i + 1 < capture->n_kernels ? capture->kernels[i + 1].first_word : capture->n_words;

        if (!graph_is_changing(kernel))
            continue;
        recording->changing[recording->n_changing++] = (struct changing_block){
            kernel->first_word, recording->n_region_words, end - kernel->first_word};
        recording->n_region_words += (end - kernel->first_word + align - 1) / align * align;
    }
    if (!recording->n_region_words)
        return FRIT_OK;
    recording->region_words =
        hip_alloc(device->instance, recording->n_region_words * sizeof(uint64_t));
    if (!recording->region_words)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    return buffer_create(device, false, recording->n_region_words * sizeof(uint64_t),
                         &recording->region, err);
}

static void destroy(struct device *device, frit_recording *recording)
{
    graph_destroy_all(device, recording);
    buffer_destroy(device, &recording->region);
    capture_fini(&recording->capture);
    hip_free(device->instance, recording->region_words);
    hip_free(device->instance, recording->changing);
    hip_free(device->instance, recording);
}

static frit_status create(struct device *device, frit_queue *queue,
                          const struct capture_source *source, frit_recording **out, frit_err *err)
{
    frit_recording *made = hip_alloc(device->instance, sizeof *made);
    frit_status status;

    if (!made)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    made->queue = queue;
    pthread_mutex_lock(&queue->lock);
    status = capture_init(&made->capture, &device->instance->plug, source, &queue->buffer, err);
    pthread_mutex_unlock(&queue->lock);
    if (!status)
        status = graph_make_forms(device, &made->capture, err);
    if (!status)
        status = lay_out(device, made, err);
    if (!status)
        status = graph_make_segments(device, made, err);
    if (status)
        destroy(device, made);
    else
        *out = made;
    return status;
}

frit_status recording_create(void *self, frit_queue *handle, const frit_cmd *cmds, uint32_t count,
                             uint32_t stride, const frit_param *params, uint32_t n_params,
                             uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct device *device = self;
    const struct capture_source source = {cmds,     count,        stride, params,
                                          n_params, param_stride, check,  device};
    struct scope scope;
    frit_queue *queue;
    frit_status status = queue_find(device, handle, &queue, err);

    *out = NULL;
    if (!status)
        status = scope_enter(device, &scope, err);
    if (status)
        return status;
    status = device_check(device, err);
    if (!status)
        status = create(device, queue, &source, out, err);
    scope_leave(device, &scope);
    device_settle(device);
    return status;
}

void recording_release(void *self, frit_recording *recording)
{
    struct device *device = self;
    struct scope scope;

    if (!recording)
        return;
    scope_try(device, &scope);
    destroy(device, recording);
    scope_leave(device, &scope);
}

/* ---- replay ---- */

/* Enqueues the write of the region's words. */
static frit_status write_region(struct frit_queue *queue, frit_recording *recording, frit_err *err)
{
    const uint64_t bytes = recording->n_region_words * sizeof(uint64_t);
    struct queue_block block;
    gpu_result result;
    frit_status status;

    for (uint32_t i = 0; i < recording->n_changing; i++) {
        const struct changing_block *changing = &recording->changing[i];

        memcpy(recording->region_words + changing->region_word,
               recording->capture.words + changing->first_word,
               changing->n_words * sizeof(uint64_t));
    }
    if (recording->n_region_words <= BUILTIN_STORE_WORDS)
        return builtin_store(queue, recording->region.address, recording->region_words,
                             (uint32_t)recording->n_region_words, err);
    status = queue_reserve_block(queue, bytes, &block, err);
    if (status)
        return status;
    memcpy(block.host, recording->region_words, bytes);
    result = queue->device->api->MemcpyHtoDAsync(recording->region.address, block.host, bytes,
                                                 queue->stream);
    return result ? device_fail(queue->device, result, "copying arguments", err) : FRIT_OK;
}

static frit_status enqueue_graph(struct frit_queue *queue, gpu_graph_exec graph, frit_err *err)
{
    gpu_result result = queue->device->api->GraphLaunch(graph, queue->stream);

    return result ? device_fail(queue->device, result, "launching a graph", err) : FRIT_OK;
}

static frit_status enqueue_segment(struct frit_queue *queue, const frit_recording *recording,
                                   const struct segment *segment, frit_err *err)
{
    const struct launch_target target = {queue->device, queue->stream};

    if (segment->product)
        return product_enqueue(&target, segment->product->launch.product,
                               recording->capture.words + segment->product->first_word, err);
    return enqueue_graph(queue, segment->graph, err);
}

/* Needs the lock.  A failure after the first segment is reported by wait, for the value. */
static frit_status replay(struct frit_queue *queue, frit_recording *recording, const void *params,
                          uint64_t *value, frit_err *err)
{
    struct fault fault = {.err = {.struct_size = sizeof fault.err}};
    frit_status status = capture_patch(&recording->capture, params, &queue->buffer, err);
    gpu_graph_exec whole = status ? NULL : graph_find_placed(queue->device, recording);

    if (!status && recording->n_region_words)
        status = write_region(queue, recording, err);
    if (status)
        return status;
    if (whole)
        status = enqueue_graph(queue, whole, &fault.err);
    for (uint32_t i = 0; i < recording->n_segments && !status && !whole; i++)
        status = enqueue_segment(queue, recording, &recording->segments[i], &fault.err);
    fault.err.status = status;
    return queue_signal(queue, status ? &fault : NULL, value, err);
}

frit_status recording_replay(void *self, frit_recording *recording, const void *params,
                             const frit_point *waits, uint32_t n_waits, uint64_t *value,
                             frit_err *err)
{
    struct device *device = self;
    frit_queue *queue = recording->queue;
    struct scope scope;
    frit_status status = scope_enter(device, &scope, err);

    if (status)
        return status;
    status = queue_add_waits(queue, waits, n_waits, err);
    if (!status)
        status = device_check(device, err);
    if (!status) {
        pthread_mutex_lock(&queue->lock);
        queue_poll(queue);
        status = replay(queue, recording, params, value, err);
        pthread_mutex_unlock(&queue->lock);
    }
    scope_leave(device, &scope);
    device_settle(device);
    return status;
}
