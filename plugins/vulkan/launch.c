/* SPDX-License-Identifier: Apache-2.0 */
/* Launches.  A kernel is recorded as push constants and one dispatch for each of its phases, with
 * barriers between them. */
#include "launch.h"

#include <string.h>

#include "kernels.h"

#include "adapter.h"
#include "compile.h"
#include "device.h"
#include "gpu/arg_block.h"
#include "plugin.h"
#include "record.h"
#include "target.h"

/* ---- push constants ---- */

/* Push constants after the index of the first workgroup: the argument block, or its address. */
struct push_constants {
    uint64_t words[(MAX_PUSH_BYTES - SPIRV_HEAD) / 8];
};

/* Sets `push` for an argument block at `address`; returns the number of words. */
static uint32_t push_block_address(const struct arg_block *b, const struct kernels_launch *kernel,
                                   uint64_t address, struct push_constants *push)
{
    return arg_block_refer(b, kernel, address, push->words);
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

    if (!status && !aligned)
        status = compile_for_any(r->device, kernel->code, err);
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

frit_status launch_record(struct recorder *r, const frit_launch *launch, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_words_first(&r->device->queue.launch_words, launch, &kernel, err);

    if (status)
        return status;
    do {
        status = record_kernel(r, &kernel, launch, err);
    } while (!status && kernels_next(&kernel));
    return status;
}
