/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <string.h>

#include "compile.h"
#include "device.h"
#include "gpu/arg_block.h"
#include "gpu/capture.h"
#include "launch.h"
#include "plugin.h"
#include "scope.h"
#include "submit.h"
#include "target.h"

/* The block of a kernel whose words change: where it lies in the words of the capture and in the
 * region. */
struct changing_block {
    uint64_t first_word, region_word, n_words;
};

/* A part of a recording: a graph, or a product whose operands move, which a graph cannot contain.
 */
struct segment {
    gpu_graph_exec graph; /* NULL: a product, or nothing */
    const struct captured_kernel *product;
};

struct frit_recording {
    struct capture capture;
    frit_queue *queue;
    struct segment *segments; /* owned */
    uint32_t n_segments;
    frit_memory region;              /* device memory; zeroed where nothing changes */
    uint64_t *region_words;          /* what a replay writes to it; owned */
    struct changing_block *changing; /* owned */
    uint32_t n_changing;
    uint64_t n_region_words;
};

/* Whether the kernel reads its block in the region. */
static bool is_changing(const struct captured_kernel *kernel)
{
    const struct kernel_code *code = kernel->launch.code;

    if (kernel->launch.product)
        return false;
    return kernel->addresses_change || kernel->params_change || !code->by_value;
}

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

        if (!is_changing(kernel))
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

/* Enqueues a kernel on the stream that is captured.  `region_word` counts through the region. */
static frit_status capture_kernel(const struct launch_target *target,
                                  const frit_recording *recording,
                                  const struct captured_kernel *kernel,
                                  const struct changing_block *changing, frit_err *err)
{
    const uint64_t *words = recording->capture.words + kernel->first_word;
    const struct arg_block block = arg_block_layout(&kernel->launch);
    const uint32_t aligned = kernel->aligned ? FORM_ALIGNED : 0;
    uint64_t reference[ARG_BLOCK_REFERENCE];
    const struct code_form *form;
    uint32_t n = block.n_words;
    frit_status status = compile_form(target->device, kernel->launch.code,
                                      aligned | (changing ? FORM_BY_ADDRESS : 0), &form, err);

    if (status)
        return status;
    if (changing) {
        n = arg_block_refer(&block, &kernel->launch,
                            recording->region.address + changing->region_word * sizeof(uint64_t),
                            reference);
        words = reference;
    }
    return launch_phases(target, &kernel->launch, form, words, n, err);
}

/* ---- segments ---- */

/* What is captured at present. */
struct capturing {
    struct launch_target target;
    frit_recording *recording;
    uint32_t n_captured; /* commands of the open graph */
};

static frit_status begin_graph(struct capturing *c, frit_err *err)
{
    struct device *device = c->target.device;
    gpu_result result = device->api->StreamBeginCapture(c->target.stream, GPU_CAPTURE_RELAXED);

    c->n_captured = 0;
    return result ? device_fail(device, result, "capturing a stream", err) : FRIT_OK;
}

/* Ends the open graph, which becomes a segment unless it is empty or `status` is a failure. */
static frit_status end_graph(struct capturing *c, frit_status status, frit_err *err)
{
    struct device *device = c->target.device;
    frit_recording *recording = c->recording;
    gpu_graph graph = NULL;
    gpu_result result = device->api->StreamEndCapture(c->target.stream, &graph);

    if (!status && !result && c->n_captured) {
        result = device->api->GraphInstantiate(&recording->segments[recording->n_segments].graph,
                                               graph, 0);
        recording->n_segments += !result;
    }
    if (graph)
        (void)device->api->GraphDestroy(graph);
    return status || !result ? status : device_fail(device, result, "making a graph", err);
}

/* A product with moving operands stands between two graphs. */
static frit_status add_product_segment(struct capturing *c, const struct captured_kernel *kernel,
                                       frit_err *err)
{
    frit_recording *recording = c->recording;
    frit_status status = end_graph(c, FRIT_OK, err);

    if (!status)
        recording->segments[recording->n_segments++].product = kernel;
    return status ? status : begin_graph(c, err);
}

static frit_status capture_launch(struct capturing *c, const struct captured_launch *launch,
                                  const struct changing_block **changing, frit_err *err)
{
    const struct capture *capture = &c->recording->capture;
    const struct captured_kernel *kernel = capture->kernels + launch->first_kernel;
    frit_status status = FRIT_OK;

    for (uint32_t k = 0; k < launch->n_kernels && !status; k++, kernel++) {
        const bool changes = is_changing(kernel);

        if (kernel->launch.product && kernel->addresses_change) {
            status = add_product_segment(c, kernel, err);
            continue;
        }
        if (kernel->launch.product)
            status = product_enqueue(&c->target, kernel->launch.product,
                                     capture->words + kernel->first_word, err);
        else
            status =
                capture_kernel(&c->target, c->recording, kernel, changes ? *changing : NULL, err);
        *changing += changes;
        c->n_captured++;
    }
    return status;
}

static frit_status capture_commands(struct capturing *c, frit_err *err)
{
    frit_recording *recording = c->recording;
    const struct changing_block *changing = recording->changing;
    const struct captured_launch *launch = recording->capture.launches;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < recording->capture.n_cmds && !status; i++) {
        const frit_cmd *cmd = &recording->capture.cmds[i];

        c->n_captured += cmd->kind == FRIT_CMD_COPY || cmd->kind == FRIT_CMD_FILL;
        if (cmd->kind == FRIT_CMD_COPY)
            status = submit_copy(recording->queue, c->target.stream, cmd, err);
        else if (cmd->kind == FRIT_CMD_FILL)
            status = submit_fill(recording->queue, c->target.stream, cmd, err);
        else if (cmd->kind == FRIT_CMD_LAUNCH)
            status = capture_launch(c, launch++, &changing, err);
    }
    return status;
}

/* Compiles what the kernels need before the capture begins, in which the runtime allows less. */
static frit_status make_forms(struct device *device, const frit_recording *recording, frit_err *err)
{
    const struct capture *capture = &recording->capture;
    const struct code_form *form;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < capture->n_kernels && !status; i++) {
        const struct captured_kernel *kernel = &capture->kernels[i];

        if (!kernel->launch.product)
            status = compile_form(device, kernel->launch.code,
                                  (kernel->aligned ? FORM_ALIGNED : 0) |
                                      (is_changing(kernel) ? FORM_BY_ADDRESS : 0),
                                  &form, err);
    }
    return status;
}

static frit_status make_segments(struct device *device, frit_recording *recording, frit_err *err)
{
    struct capturing c = {.target = {.device = device}, .recording = recording};
    gpu_result result;
    frit_status status;

    recording->segments =
        hip_alloc(device->instance,
                  (2 * (uint64_t)recording->capture.n_kernels + 2) * sizeof *recording->segments);
    if (!recording->segments)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    result = device->api->StreamCreate(&c.target.stream, GPU_STREAM_NON_BLOCKING);
    if (result)
        return device_fail(device, result, "creating a stream", err);
    status = begin_graph(&c, err);
    if (!status)
        status = end_graph(&c, capture_commands(&c, err), err);
    (void)device->api->StreamDestroy(c.target.stream);
    return status;
}

static void destroy(struct device *device, frit_recording *recording)
{
    for (uint32_t i = 0; i < recording->n_segments; i++)
        if (recording->segments[i].graph)
            (void)device->api->GraphExecDestroy(recording->segments[i].graph);
    buffer_destroy(device, &recording->region);
    capture_fini(&recording->capture);
    hip_free(device->instance, recording->region_words);
    hip_free(device->instance, recording->changing);
    hip_free(device->instance, recording->segments);
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
        status = lay_out(device, made, err);
    if (!status)
        status = make_forms(device, made, err);
    if (!status)
        status = make_segments(device, made, err);
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

static frit_status enqueue_segment(struct frit_queue *queue, const frit_recording *recording,
                                   const struct segment *segment, frit_err *err)
{
    const struct launch_target target = {queue->device, queue->stream};
    gpu_result result;

    if (segment->product)
        return product_enqueue(&target, segment->product->launch.product,
                               recording->capture.words + segment->product->first_word, err);
    result = queue->device->api->GraphLaunch(segment->graph, queue->stream);
    return result ? device_fail(queue->device, result, "launching a graph", err) : FRIT_OK;
}

/* Needs the lock.  A failure after the first segment is reported by wait, for the value. */
static frit_status replay(struct frit_queue *queue, frit_recording *recording, const void *params,
                          uint64_t *value, frit_err *err)
{
    struct fault fault = {.err = {.struct_size = sizeof fault.err}};
    frit_status status = capture_patch(&recording->capture, params, &queue->buffer, err);

    if (!status && recording->n_region_words)
        status = write_region(queue, recording, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < recording->n_segments && !status; i++)
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
