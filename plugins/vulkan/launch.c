/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: the addresses of the arguments and the numbers of the launch, then a dispatch for each
 * phase, with a barrier between two. */
#include <inttypes.h>
#include <string.h>

#include "record.h"

/* ---- checks ---- */

const frit_arg *launch_arg(const frit_launch *launch, uint32_t i)
{
    return (const frit_arg *)(const void *)((const char *)launch->args +
                                            (size_t)i * launch->arg_stride);
}

frit_status launch_check(struct device *device, const frit_launch *launch, frit_err *err)
{
    uint64_t workspace = launch->spec->workspace_bytes;
    frit_status status = FRIT_OK;

    if (!kernels_owns(launch->program))
        return plug_fail(&device->instance->plug, err, FRIT_INVALID, "a program of another driver");
    for (uint32_t i = 0; i < launch->n_args && !status; i++) {
        const frit_arg *arg = launch_arg(launch, i);

        if (arg->memory)
            status = queue_check_range(device, arg->memory, arg->offset, arg->extent, err);
    }
    if (!status && workspace)
        status =
            queue_check_range(device, launch->workspace, launch->workspace_offset, workspace, err);
    return status;
}

/* ---- the block ---- */

uint64_t launch_address(const frit_launch *launch, uint32_t number)
{
    const frit_memory *buffer = launch->workspace;
    const frit_arg *arg;

    if (number == KERNELS_WORKSPACE)
        return buffer->address + launch->workspace_offset;
    arg = launch_arg(launch, number);
    buffer = arg->memory;
    return buffer ? buffer->address + arg->offset + arg->origin : 0;
}

/* What stands in push constants: the workgroup's base, then the block or its address. */
struct push {
    uint32_t base[4];
    uint64_t words[(MOST_PUSH - SPIRV_HEAD) / 8];
};

_Static_assert(offsetof(struct push, words) == SPIRV_HEAD, "as spirv.h says");

/* Addresses, then parameters; whether all addresses are aligned. */
static bool fill_block(const struct kernels_launch *kernel, const frit_launch *launch,
                       uint64_t *words)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < kernel->n_args; i++) {
        words[i] = launch_address(launch, kernel->args[i]);
        bits |= words[i];
    }
    memcpy(words + kernel->n_args, kernel->words, kernel->n_words * sizeof *words);
    return bits % SPIRV_ALIGN == 0;
}

static frit_status place_block(struct recording *r, const struct kernels_launch *kernel,
                               const frit_launch *launch, struct push *push, bool *aligned,
                               frit_err *err)
{
    const frit_memory *params = &r->device->queue.params;
    const struct code *code = kernel->code;
    uint64_t offset;
    frit_status status;

    if (code->inside) {
        *aligned = fill_block(kernel, launch, push->words);
        return FRIT_OK;
    }
    status = record_take(r, (kernel->n_args + kernel->n_words) * sizeof(uint64_t), &offset, err);
    if (status)
        return status;
    *aligned = fill_block(kernel, launch, (uint64_t *)(void *)(params->mapped + offset));
    push->words[0] = params->address + offset;
    return FRIT_OK;
}

/* ---- dispatches ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A grid beyond the device's limits is several dispatches, each with its base. */
static void dispatch(struct recording *r, const uint32_t grid[3], struct push *push)
{
    const struct device_api *api = &r->device->api;
    const uint32_t *most = r->device->adapter->limits.maxComputeWorkGroupCount;
    uint32_t *at = push->base;

    for (at[2] = 0; at[2] < grid[2]; at[2] += smaller(most[2], grid[2] - at[2]))
        for (at[1] = 0; at[1] < grid[1]; at[1] += smaller(most[1], grid[1] - at[1]))
            for (at[0] = 0; at[0] < grid[0]; at[0] += smaller(most[0], grid[0] - at[0])) {
                api->CmdPushConstants(r->batch->cmds, r->device->layout,
                                      VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push->base,
                                      push->base);
                api->CmdDispatch(r->batch->cmds, smaller(most[0], grid[0] - at[0]),
                                 smaller(most[1], grid[1] - at[1]),
                                 smaller(most[2], grid[2] - at[2]));
            }
}

/* The block is in push constants, or its address: `n` words of `push`. */
static void record_phases(struct recording *r, const struct kernels_launch *kernel,
                          struct push *push, uint32_t n, const struct pipelines *pipelines,
                          bool aligned)
{
    const struct device_api *api = &r->device->api;

    if (n)
        api->CmdPushConstants(r->batch->cmds, r->device->layout, VK_SHADER_STAGE_COMPUTE_BIT,
                              SPIRV_HEAD, n * (uint32_t)sizeof(uint64_t), push->words);
    for (uint32_t i = 0; i < kernel->n_phases; i++) {
        if (i > 0)
            batch_barrier(r->device, r->batch);
        api->CmdBindPipeline(r->batch->cmds, VK_PIPELINE_BIND_POINT_COMPUTE,
                             aligned ? pipelines[i].aligned : pipelines[i].any);
        dispatch(r, kernel->grid[i], push);
    }
}

frit_status record_launch(struct recording *r, const frit_launch *launch, frit_err *err)
{
    struct queue *queue = &r->device->queue;
    struct kernels_launch kernel;
    struct push push = {0};
    const struct code *code;
    bool aligned;
    frit_status status = kernels_launch(launch, queue->words, LAUNCH_WORDS, &kernel, err);

    if (!status)
        status = place_block(r, &kernel, launch, &push, &aligned, err);
    if (status)
        return status;
    code = kernel.code;
    record_phases(r, &kernel, &push, code->inside ? kernel.n_args + kernel.n_words : 1, code->near,
                  aligned);
    return FRIT_OK;
}

void record_by_address(struct recording *r, const struct kernels_launch *kernel, uint64_t block,
                       bool aligned)
{
    const struct code *code = kernel->code;
    struct push push = {.words = {block}};

    record_phases(r, kernel, &push, 1, code->inside ? code->far : code->near, aligned);
}
