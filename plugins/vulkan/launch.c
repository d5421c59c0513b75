/* SPDX-License-Identifier: Apache-2.0 */
/* Launches.  A kernel is recorded as push constants and one dispatch for each of its phases, with
 * barriers between them. */
#include "launch.h"

#include <string.h>

#include "kernels.h"

#include "adapter.h"
#include "gpu/arg_block.h"
#include "compile.h"
#include "device.h"
#include "plugin.h"
#include "record.h"
#include "target.h"

/* ---- checks ---- */

frit_status launch_check_ranges(struct device *device, const frit_launch *launch, frit_err *err)
{
    uint64_t workspace = launch->spec->workspace_bytes;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < launch->n_args && !status; i++) {
        const frit_arg *arg = launch_arg(launch, i);

        if (arg->memory)
            status = buffer_check_range(device, arg->memory, arg->offset, arg->extent, err);
    }
    if (!status && workspace)
        status =
            buffer_check_range(device, launch->workspace, launch->workspace_offset, workspace, err);
    return status;
}

frit_status launch_check(struct device *device, const frit_launch *launch, frit_err *err)
{
    if (!kernels_owns(launch->program))
        return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                         "launch of a program of another driver");
    return launch_check_ranges(device, launch, err);
}

/* ---- push constants ---- */

/* Push constants behind the index of the first workgroup: the argument block, or its address. */
struct push_constants {
    uint64_t words[(MAX_PUSH_BYTES - SPIRV_HEAD) / 8];
};

/* Sets `push` for an argument block at `address`; returns the number of words. */
static uint32_t push_block_address(const struct arg_block *b, const struct kernels_launch *kernel,
                                   uint64_t address, struct push_constants *push)
{
    const uint64_t tables = address + b->n_words * sizeof(uint64_t);

    push->words[SPIRV_RECORDS] = address;
    if (!kernel->first)
        return 1;
    push->words[SPIRV_FIRST] = tables;
    push->words[SPIRV_TABLE] = tables + b->n_first * sizeof(uint32_t);
    push->words[SPIRV_SHIFT] = b->shift;
    return SPIRV_SPACE_WORDS;
}

/* Writes the argument block to `push`, or to the parameter ring and its address to `push`; `n` is
 * set to the number of words in `push`. */
static frit_status write_block(struct recorder *r, const struct kernels_launch *kernel,
                               const frit_launch *launch, struct push_constants *push, uint32_t *n,
                               bool *aligned, frit_err *err)
{
    const frit_memory *params = &r->device->queue.params;
    const struct kernel_code *code = kernel->code;
    const struct arg_block b = arg_block_layout(kernel);
    uint64_t offset;
    frit_status status;

    if (code->block_is_pushed) {
        *n = b.n_words;
        *aligned = arg_block_write(&b, kernel, launch, push->words);
        return FRIT_OK;
    }
    status = record_reserve(r, b.bytes, &offset, err);
    if (status)
        return status;
    *aligned = arg_block_write(&b, kernel, launch, params->mapped + offset);
    *n = push_block_address(&b, kernel, params->address + offset, push);
    return FRIT_OK;
}

/* ---- dispatches ---- */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void launch_record_grid(struct recorder *r, const uint32_t grid[3])
{
    const struct device_api *api = &r->device->api;
    const uint32_t *max = r->device->adapter->limits.maxComputeWorkGroupCount;
    uint32_t base[4] = {0}; /* the fourth word must be 0, see spirv.h */

    for (base[2] = 0; base[2] < grid[2]; base[2] += min_u32(max[2], grid[2] - base[2]))
        for (base[1] = 0; base[1] < grid[1]; base[1] += min_u32(max[1], grid[1] - base[1]))
            for (base[0] = 0; base[0] < grid[0]; base[0] += min_u32(max[0], grid[0] - base[0])) {
                api->CmdPushConstants(r->batch->cmds, r->device->pipeline_layout,
                                      VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof base, base);
                api->CmdDispatch(r->batch->cmds, min_u32(max[0], grid[0] - base[0]),
                                 min_u32(max[1], grid[1] - base[1]),
                                 min_u32(max[2], grid[2] - base[2]));
            }
}

/* Records all phases of a kernel, after the first `n` words of `push`. */
static void record_phases(struct recorder *r, const struct kernels_launch *kernel,
                          struct push_constants *push, uint32_t n,
                          const struct pipelines *pipelines, bool aligned)
{
    const struct device_api *api = &r->device->api;

    if (n)
        api->CmdPushConstants(r->batch->cmds, r->device->pipeline_layout,
                              VK_SHADER_STAGE_COMPUTE_BIT, SPIRV_HEAD,
                              n * (uint32_t)sizeof(uint64_t), push->words);
    for (uint32_t i = 0; i < kernel->n_phases; i++) {
        if (i > 0)
            batch_barrier(r->device, r->batch);
        api->CmdBindPipeline(r->batch->cmds, VK_PIPELINE_BIND_POINT_COMPUTE,
                             aligned ? pipelines[i].aligned : pipelines[i].any);
        launch_record_grid(r, kernel->grid[i]);
    }
}

static frit_status record_kernel(struct recorder *r, const struct kernels_launch *kernel,
                                 const frit_launch *launch, frit_err *err)
{
    const struct kernel_code *code = kernel->code;
    struct push_constants push = {0};
    uint32_t n;
    bool aligned;
    frit_status status = write_block(r, kernel, launch, &push, &n, &aligned, err);

    if (!status)
        record_phases(r, kernel, &push, n, code->submit, aligned);
    return status;
}

void launch_record_pushed(struct recorder *r, const struct kernels_launch *kernel,
                          const uint64_t *words, bool aligned)
{
    const struct kernel_code *code = kernel->code;
    const struct arg_block b = arg_block_layout(kernel);
    struct push_constants push = {0};

    memcpy(push.words, words, b.n_words * sizeof *words);
    record_phases(r, kernel, &push, b.n_words, code->submit, aligned);
}

void launch_record_by_address(struct recorder *r, const struct kernels_launch *kernel,
                              uint64_t address, const uint64_t *params, bool aligned)
{
    const struct arg_block b = arg_block_layout(kernel);
    const struct kernel_code *code = kernel->code;
    const enum block_mode mode = params ? BLOCK_SPLIT : BLOCK_BY_ADDRESS;
    struct push_constants push = {0};
    uint32_t n = push_block_address(&b, kernel, address, &push);

    if (params) {
        memcpy(push.words + n, params, kernel->n_words * sizeof *params);
        n += kernel->n_words;
    }
    record_phases(r, kernel, &push, n, code->block_is_pushed ? code->capture[mode] : code->submit,
                  aligned);
}

/* Makes the queue's buffer for launches as large as `n` words; the contents are lost. */
static frit_status grow_launch_words(struct device *device, uint32_t n, frit_err *err)
{
    struct queue *queue = &device->queue;
    uint64_t *words = vulkan_alloc(device->instance, n * sizeof *words);

    if (!words)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a launch of %u words", n);
    vulkan_free(device->instance, queue->launch_words);
    queue->launch_words = words;
    queue->launch_words_capacity = n;
    return FRIT_OK;
}

frit_status launch_first_kernel(struct device *device, const frit_launch *launch,
                                struct kernels_launch *out, frit_err *err)
{
    struct queue *queue = &device->queue;
    frit_status status;

    *out = (struct kernels_launch){0};
    status = kernels_launch(launch, queue->launch_words, queue->launch_words_capacity, out, err);
    if (!status || out->total_words <= queue->launch_words_capacity)
        return status;
    status = grow_launch_words(device, out->total_words, err);
    return status ? status
                  : kernels_launch(launch, queue->launch_words, queue->launch_words_capacity, out,
                                   err);
}

frit_status launch_record(struct recorder *r, const frit_launch *launch, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_first_kernel(r->device, launch, &kernel, err);

    if (status)
        return status;
    do {
        status = record_kernel(r, &kernel, launch, err);
    } while (!status && kernels_next(&kernel));
    return status;
}
