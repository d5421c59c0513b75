/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <string.h>

#include "compile.h"
#include "device.h"
#include "gpu/arg_block.h"
#include "gpu/command.h"
#include "plugin.h"
#include "target.h"
#include "vendor.h"

enum { MAX_GRID_X = 0x7fffffff, MAX_GRID_YZ = 65535 };

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static gpu_result launch_part(const struct launch_target *target, gpu_function function,
                              const uint32_t grid[3], const uint32_t group[3],
                              uint32_t shared_bytes, uint64_t *params, uint32_t n_params)
{
    size_t bytes = n_params * sizeof *params;
    void *extra[] = {GPU_LAUNCH_BUFFER, params, GPU_LAUNCH_BUFFER_SIZE, &bytes, vendor.launch_end};

    return target->device->api->LaunchKernel(function, grid[0], grid[1], grid[2], group[0],
                                             group[1], group[2], shared_bytes, target->stream, NULL,
                                             extra);
}

frit_status launch_grid(const struct launch_target *target, gpu_function function,
                        const uint32_t grid[3], const uint32_t group[3], uint32_t shared_bytes,
                        uint64_t *params, uint32_t n_params, frit_err *err)
{
    gpu_result result = GPU_SUCCESS;

    if (grid[0] == 0 || grid[0] > MAX_GRID_X)
        return grid[0] ? plug_fail(&target->device->instance->plug, err, FRIT_UNSUPPORTED,
                                   "a grid of %u blocks along x", grid[0])
                       : FRIT_OK;
    for (uint32_t z = 0; z < grid[2] && !result; z += MAX_GRID_YZ)
        for (uint32_t y = 0; y < grid[1] && !result; y += MAX_GRID_YZ) {
            const uint32_t part[3] = {grid[0], min_u32(grid[1] - y, MAX_GRID_YZ),
                                      min_u32(grid[2] - z, MAX_GRID_YZ)};

            params[0] = y | (uint64_t)z << 32;
            result = launch_part(target, function, part, group, shared_bytes, params, n_params);
        }
    return result ? device_fail(target->device, result, "launching a kernel", err) : FRIT_OK;
}

frit_status launch_phases(const struct launch_target *target, const struct kernels_launch *kernel,
                          const struct code_form *form, const uint64_t *words, uint32_t n,
                          frit_err *err)
{
    uint64_t params[1 + TARGET_VALUE_WORDS];
    frit_status status = FRIT_OK;

    memcpy(params + 1, words, n * sizeof *words);
    for (uint32_t i = 0; i < kernel->n_phases && !status; i++) {
        const uint32_t group[3] = {form->phases[i].threads, 1, 1};

        status = launch_grid(target, form->functions[i], kernel->grid[i], group,
                             form->phases[i].shared_bytes, params, n + 1, err);
    }
    return status;
}

/* A kernel whose block is in its parameters. */
static frit_status enqueue_by_value(struct frit_queue *queue, const struct kernels_launch *kernel,
                                    const frit_launch *launch, const struct arg_block *block,
                                    frit_err *err)
{
    const struct launch_target target = {queue->device, queue->stream};
    uint64_t words[TARGET_VALUE_WORDS];
    const bool aligned = arg_block_write(block, kernel, launch, words);
    const struct code_form *form;
    frit_status status =
        compile_form(queue->device, kernel->code, aligned ? FORM_ALIGNED : 0, &form, err);

    return status ? status : launch_phases(&target, kernel, form, words, block->n_words, err);
}

static frit_status enqueue_by_address(struct frit_queue *queue, const struct kernels_launch *kernel,
                                      const frit_launch *launch, const struct arg_block *block,
                                      frit_err *err)
{
    const struct launch_target target = {queue->device, queue->stream};
    uint64_t words[ARG_BLOCK_REFERENCE];
    const struct code_form *form;
    struct queue_block at;
    bool aligned;
    frit_status status = queue_reserve_block(queue, block->bytes, &at, err);

    if (status)
        return status;
    aligned = arg_block_write(block, kernel, launch, at.host);
    status = compile_form(queue->device, kernel->code, aligned ? FORM_ALIGNED : 0, &form, err);
    if (!status)
        status = queue_send_block(queue, &at, err);
    return status ? status
                  : launch_phases(&target, kernel, form, words,
                                  arg_block_refer(block, kernel, at.address, words), err);
}

static frit_status enqueue_product(struct frit_queue *queue,
                                   const struct kernels_product_launch *product,
                                   const frit_launch *launch, frit_err *err)
{
    const struct launch_target target = {queue->device, queue->stream};
    uint64_t words[PRODUCT_WORDS];

    arg_block_write_product(product, launch, words);
    return product_enqueue(&target, product, words, err);
}

frit_status launch_enqueue(struct frit_queue *queue, const frit_launch *launch, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_words_first(&queue->buffer, launch, &kernel, err);

    if (status)
        return status;
    do {
        const struct kernel_code *code = kernel.code;
        const struct arg_block block = arg_block_layout(&kernel);

        if (kernel.product)
            status = enqueue_product(queue, kernel.product, launch, err);
        else
            status = code->by_value ? enqueue_by_value(queue, &kernel, launch, &block, err)
                                    : enqueue_by_address(queue, &kernel, launch, &block, err);
    } while (!status && kernels_next(&kernel));
    return status;
}
