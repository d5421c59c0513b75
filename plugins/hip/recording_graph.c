/* SPDX-License-Identifier: Apache-2.0 */
#include "recording_graph.h"

#include <string.h>

#include "compile.h"
#include "device.h"
#include "gpu/arg_block.h"
#include "launch.h"
#include "plugin.h"
#include "product.h"
#include "queue.h"
#include "submit.h"

bool graph_is_changing(const struct captured_kernel *kernel)
{
    const struct kernel_code *code = kernel->launch.code;

    if (kernel->launch.product)
        return false;
    return kernel->addresses_change || kernel->params_change || !code->by_value;
}

static uint32_t form_of(const struct captured_kernel *kernel)
{
    return (kernel->aligned ? FORM_ALIGNED : 0) | (graph_is_changing(kernel) ? FORM_BY_ADDRESS : 0);
}

static bool is_moving(const struct captured_kernel *kernel)
{
    return kernel->launch.product && kernel->addresses_change;
}

/* ---- commands ---- */

/* Enqueues a kernel on the stream that is captured.  `region_word` counts through the region. */
static frit_status capture_kernel(const struct launch_target *target,
                                  const frit_recording *recording,
                                  const struct captured_kernel *kernel,
                                  const struct changing_block *changing, frit_err *err)
{
    const uint64_t *words = recording->capture.words + kernel->first_word;
    const struct arg_block block = arg_block_layout(&kernel->launch);
    uint64_t reference[ARG_BLOCK_REFERENCE];
    const struct code_form *form;
    uint32_t n = block.n_words;
    frit_status status =
        compile_form(target->device, kernel->launch.code, form_of(kernel), &form, err);

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

/* What is captured at present. */
struct capturing {
    struct launch_target target;
    frit_recording *recording;
    bool whole;          /* moving products are part of the graph, at their present addresses */
    uint32_t n_captured; /* commands of the open graph */
};

static frit_status begin_graph(struct capturing *c, frit_err *err)
{
    struct device *device = c->target.device;
    gpu_result result = device->api->StreamBeginCapture(c->target.stream, GPU_CAPTURE_RELAXED);

    c->n_captured = 0;
    return result ? device_fail(device, result, "capturing a stream", err) : FRIT_OK;
}

/* Ends the open graph; *out is NULL if it is empty or `status` is a failure. */
static frit_status end_graph(struct capturing *c, frit_status status, gpu_graph_exec *out,
                             frit_err *err)
{
    struct device *device = c->target.device;
    gpu_graph graph = NULL;
    gpu_result result = device->api->StreamEndCapture(c->target.stream, &graph);

    *out = NULL;
    if (!status && !result && c->n_captured)
        result = device->api->GraphInstantiate(out, graph, 0);
    if (graph)
        (void)device->api->GraphDestroy(graph);
    return status || !result ? status : device_fail(device, result, "making a graph", err);
}

static frit_status end_segment(struct capturing *c, frit_status status, frit_err *err)
{
    frit_recording *recording = c->recording;
    gpu_graph_exec *graph = &recording->segments[recording->n_segments].graph;

    status = end_graph(c, status, graph, err);
    recording->n_segments += *graph != NULL;
    return status;
}

/* A product with moving operands stands between two graphs. */
static frit_status add_product_segment(struct capturing *c, const struct captured_kernel *kernel,
                                       frit_err *err)
{
    frit_recording *recording = c->recording;
    frit_status status = end_segment(c, FRIT_OK, err);

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
        const bool changes = graph_is_changing(kernel);

        if (is_moving(kernel) && !c->whole) {
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

frit_status graph_make_forms(struct device *device, const struct capture *capture, frit_err *err)
{
    const struct code_form *form;
    frit_status status = FRIT_OK;
    bool pending = false;

    for (uint32_t i = 0; i < capture->n_kernels; i++) {
        const struct captured_kernel *kernel = &capture->kernels[i];

        if (!kernel->launch.product)
            pending |= compile_is_pending(device, kernel->launch.code, form_of(kernel));
    }
    if (pending)
        return plug_fail(&device->instance->plug, err, FRIT_BUSY,
                         "kernels of the recording are being compiled");
    for (uint32_t i = 0; i < capture->n_kernels && !status; i++) {
        const struct captured_kernel *kernel = &capture->kernels[i];

        if (!kernel->launch.product)
            status = compile_form(device, kernel->launch.code, form_of(kernel), &form, err);
    }
    return status;
}

/* A stream that is captured, from begin to end. */
static frit_status capturing_begin(struct capturing *c, frit_err *err)
{
    struct device *device = c->target.device;
    gpu_result result = device->api->StreamCreate(&c->target.stream, GPU_STREAM_NON_BLOCKING);
    frit_status status;

    if (result)
        return device_fail(device, result, "creating a stream", err);
    status = begin_graph(c, err);
    if (status)
        (void)device->api->StreamDestroy(c->target.stream);
    return status;
}

/* ---- segments ---- */

frit_status graph_make_segments(struct device *device, frit_recording *recording, frit_err *err)
{
    struct capturing c = {.target = {.device = device}, .recording = recording};
    frit_status status;

    for (uint32_t i = 0; i < recording->capture.n_kernels; i++)
        recording->n_moving += is_moving(&recording->capture.kernels[i]);
    recording->segments =
        hip_alloc(device->instance,
                  (2 * (uint64_t)recording->capture.n_kernels + 2) * sizeof *recording->segments);
    if (!recording->segments)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    status = capturing_begin(&c, err);
    if (status)
        return status;
    status = end_segment(&c, capture_commands(&c, err), err);
    (void)device->api->StreamDestroy(c.target.stream);
    return status;
}

/* ---- graphs for addresses ---- */

/* A failure is not a fault: the segments do the same. */
static void make_placed(struct device *device, frit_recording *recording,
                        struct placed_graph *placed)
{
    struct capturing c = {.target = {.device = device}, .recording = recording, .whole = true};

    placed->is_tried = true;
    if (capturing_begin(&c, NULL))
        return;
    (void)end_graph(&c, capture_commands(&c, NULL), &placed->exec, NULL);
    (void)device->api->StreamDestroy(c.target.stream);
}

static bool has_words(const frit_recording *recording, const struct placed_graph *placed)
{
    const uint64_t *words = placed->words;

    for (uint32_t i = 0; words && i < recording->capture.n_kernels; i++) {
        const struct captured_kernel *kernel = &recording->capture.kernels[i];

        if (!is_moving(kernel))
            continue;
        if (memcmp(words, recording->capture.words + kernel->first_word,
                   PRODUCT_WORDS * sizeof *words) != 0)
            return false;
        words += PRODUCT_WORDS;
    }
    return words != NULL;
}

/* Remembers the present addresses in the place of others for which there is no graph. */
static void remember(const struct device *device, frit_recording *recording)
{
    struct placed_graph *placed = &recording->placed[recording->next_placed];
    uint64_t *words;

    for (uint32_t i = 0; i < MAX_PLACED_GRAPHS && placed->exec; i++) {
        recording->next_placed = (recording->next_placed + 1) % MAX_PLACED_GRAPHS;
        placed = &recording->placed[recording->next_placed];
    }
    if (placed->exec)
        return;
    recording->next_placed = (recording->next_placed + 1) % MAX_PLACED_GRAPHS;
    placed->is_tried = false;
    if (!placed->words)
        placed->words =
            hip_alloc(device->instance, recording->n_moving * PRODUCT_WORDS * sizeof *words);
    words = placed->words;
    for (uint32_t i = 0; words && i < recording->capture.n_kernels; i++) {
        const struct captured_kernel *kernel = &recording->capture.kernels[i];

        if (!is_moving(kernel))
            continue;
        memcpy(words, recording->capture.words + kernel->first_word, PRODUCT_WORDS * sizeof *words);
        words += PRODUCT_WORDS;
    }
}

gpu_graph_exec graph_find_placed(struct device *device, frit_recording *recording)
{
    if (!recording->n_moving)
        return NULL;
    for (uint32_t i = 0; i < MAX_PLACED_GRAPHS; i++) {
        struct placed_graph *placed = &recording->placed[i];

        if (!has_words(recording, placed))
            continue;
        if (!placed->is_tried)
            make_placed(device, recording, placed);
        return placed->exec;
    }
    remember(device, recording);
    return NULL;
}

void graph_destroy_all(struct device *device, frit_recording *recording)
{
    for (uint32_t i = 0; i < recording->n_segments; i++)
        if (recording->segments[i].graph)
            (void)device->api->GraphExecDestroy(recording->segments[i].graph);
    for (uint32_t i = 0; i < MAX_PLACED_GRAPHS; i++) {
        if (recording->placed[i].exec)
            (void)device->api->GraphExecDestroy(recording->placed[i].exec);
        hip_free(device->instance, recording->placed[i].words);
    }
    hip_free(device->instance, recording->segments);
}
