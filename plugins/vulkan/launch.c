/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: the addresses of the arguments and the numbers of the launch, then a dispatch for each
 * phase, with a barrier between two. */
#include "launch.h"

#include <inttypes.h>
#include <string.h>

#include "plugin.h"
#include "queue.h"
#include "record.h"

enum { MOST_TABLE = 1 << 14 /* entries: 64 KiB written for a launch */ };

/* ---- checks ---- */

static const frit_arg *arg_at(const frit_launch *launch, uint32_t i)
{
    return (const frit_arg *)(const void *)((const char *)launch->args +
                                            (size_t)i * launch->arg_stride);
}

frit_status launch_check_ranges(struct device *device, const frit_launch *launch, frit_err *err)
{
    uint64_t workspace = launch->spec->workspace_bytes;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < launch->n_args && !status; i++) {
        const frit_arg *arg = arg_at(launch, i);

        if (arg->memory)
            status = queue_check_range(device, arg->memory, arg->offset, arg->extent, err);
    }
    if (!status && workspace)
        status =
            queue_check_range(device, launch->workspace, launch->workspace_offset, workspace, err);
    return status;
}

frit_status launch_check(struct device *device, const frit_launch *launch, frit_err *err)
{
    if (!kernels_owns(launch->program))
        return plug_fail(&device->instance->plug, err, FRIT_INVALID, "a program of another driver");
    return launch_check_ranges(device, launch, err);
}

/* ---- the block ---- */

/* Of element 0; 0 for an operand that is absent or has no elements. */
static uint64_t address_of(const frit_launch *launch, uint32_t number)
{
    const frit_memory *buffer = launch->workspace;
    const frit_arg *arg;

    if (number == KERNELS_WORKSPACE)
        return buffer->address + launch->workspace_offset;
    arg = arg_at(launch, number);
    buffer = arg->memory;
    return buffer ? buffer->address + arg->offset + arg->origin : 0;
}

/* What stands in push constants behind the workgroup's base: the block, or its address. */
struct push {
    uint64_t words[(MOST_PUSH - SPIRV_HEAD) / 8];
};

/* Addresses, then parameters, of each space; whether all addresses are aligned. */
static bool fill_records(const struct kernels_launch *kernel, const frit_launch *launch,
                         uint64_t *words)
{
    const uint32_t *args = kernel->args;
    const uint64_t *params = kernel->words;
    uint64_t bits = 0;

    for (uint32_t space = 0; space < kernel->n_spaces; space++) {
        for (uint32_t i = 0; i < kernel->n_args; i++) {
            words[i] = address_of(launch, args[i]);
            bits |= words[i];
        }
        memcpy(words + kernel->n_args, params, kernel->n_words * sizeof *words);
        words += kernel->n_args + kernel->n_words;
        args += kernel->n_args;
        params += kernel->n_words;
    }
    return bits % SPIRV_ALIGN == 0;
}

struct block block_of(const struct kernels_launch *kernel)
{
    uint32_t groups = kernel->first ? kernel->first[kernel->n_spaces] : 0;
    struct block b = {.n_first = kernel->first ? kernel->n_spaces + 1 : 0};

    b.n_words = kernel->n_spaces * (kernel->n_args + kernel->n_words);
    while (groups >> b.shift > MOST_TABLE)
        b.shift++;
    b.n_table = (groups + (1u << b.shift) - 1) >> b.shift;
    b.bytes = b.n_words * sizeof(uint64_t) + (b.n_first + b.n_table) * sizeof(uint32_t);
    return b;
}

static void fill_tables(const struct kernels_launch *kernel, const struct block *b, uint32_t *to)
{
    uint32_t *table = to + b->n_first;
    uint32_t space = 0;

    memcpy(to, kernel->first, b->n_first * sizeof *to);
    for (uint32_t i = 0; i < b->n_table; i++) {
        while (kernel->first[space + 1] <= i << b->shift)
            space++;
        table[i] = space;
    }
}

bool block_fill(const struct block *b, const struct kernels_launch *kernel,
                const frit_launch *launch, void *to)
{
    uint64_t *words = to;

    if (kernel->first)
        fill_tables(kernel, b, (uint32_t *)(void *)(words + b->n_words));
    return fill_records(kernel, launch, words);
}

/* Of a block at an address; how many words are pushed. */
static uint32_t push_address(const struct block *b, const struct kernels_launch *kernel,
                             uint64_t address, struct push *push)
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

/* Puts the block into push constants, or into the ring; `n`: words that are pushed. */
static frit_status place_block(struct recording *r, const struct kernels_launch *kernel,
                               const frit_launch *launch, struct push *push, uint32_t *n,
                               bool *aligned, frit_err *err)
{
    const frit_memory *params = &r->device->queue.params;
    const struct code *code = kernel->code;
    const struct block b = block_of(kernel);
    uint64_t offset;
    frit_status status;

    if (code->inside) {
        *n = b.n_words;
        *aligned = block_fill(&b, kernel, launch, push->words);
        return FRIT_OK;
    }
    status = record_take(r, b.bytes, &offset, err);
    if (status)
        return status;
    *aligned = block_fill(&b, kernel, launch, params->mapped + offset);
    *n = push_address(&b, kernel, params->address + offset, push);
    return FRIT_OK;
}

/* ---- dispatches ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void record_grid(struct recording *r, const uint32_t grid[3])
{
    const struct device_api *api = &r->device->api;
    const uint32_t *most = r->device->adapter->limits.maxComputeWorkGroupCount;
    uint32_t at[4] = {0};

    for (at[2] = 0; at[2] < grid[2]; at[2] += smaller(most[2], grid[2] - at[2]))
        for (at[1] = 0; at[1] < grid[1]; at[1] += smaller(most[1], grid[1] - at[1]))
            for (at[0] = 0; at[0] < grid[0]; at[0] += smaller(most[0], grid[0] - at[0])) {
                api->CmdPushConstants(r->batch->cmds, r->device->layout,
                                      VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof at, at);
                api->CmdDispatch(r->batch->cmds, smaller(most[0], grid[0] - at[0]),
                                 smaller(most[1], grid[1] - at[1]),
                                 smaller(most[2], grid[2] - at[2]));
            }
}

/* `n` words of the push constants are meant. */
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
        record_grid(r, kernel->grid[i]);
    }
}

static frit_status record_kernel(struct recording *r, const struct kernels_launch *kernel,
                                 const frit_launch *launch, frit_err *err)
{
    const struct code *code = kernel->code;
    struct push push = {0};
    uint32_t n;
    bool aligned;
    frit_status status = place_block(r, kernel, launch, &push, &n, &aligned, err);

    if (!status)
        record_phases(r, kernel, &push, n, code->near, aligned);
    return status;
}

void record_pushed(struct recording *r, const struct kernels_launch *kernel, const uint64_t *words,
                   bool aligned)
{
    const struct code *code = kernel->code;
    const struct block b = block_of(kernel);
    struct push push = {0};

    memcpy(push.words, words, b.n_words * sizeof *words);
    record_phases(r, kernel, &push, b.n_words, code->near, aligned);
}

void record_by_address(struct recording *r, const struct kernels_launch *kernel, uint64_t address,
                       const uint64_t *params, bool aligned)
{
    const struct block b = block_of(kernel);
    const struct code *code = kernel->code;
    const enum far_kind kind = params ? FAR_ARGS : FAR_ALL;
    struct push push = {0};
    uint32_t n = push_address(&b, kernel, address, &push);

    if (params) {
        memcpy(push.words + n, params, kernel->n_words * sizeof *params);
        n += kernel->n_words;
    }
    record_phases(r, kernel, &push, n, code->inside ? code->far[kind] : code->near, aligned);
}

/* Room for so many words of a launch. */
static frit_status grow_words(struct device *device, uint32_t n, frit_err *err)
{
    struct queue *queue = &device->queue;
    uint64_t *words = vulkan_alloc(device->instance, n * sizeof *words);

    if (!words)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a launch of %u words", n);
    vulkan_free(device->instance, queue->words);
    queue->words = words;
    queue->n_words = n;
    return FRIT_OK;
}

frit_status launch_kernels(struct device *device, const frit_launch *launch,
                           struct kernels_launch *out, frit_err *err)
{
    struct queue *queue = &device->queue;
    frit_status status;

    *out = (struct kernels_launch){0};
    status = kernels_launch(launch, queue->words, queue->n_words, out, err);
    if (!status || out->total_words <= queue->n_words)
        return status;
    status = grow_words(device, out->total_words, err);
    return status ? status : kernels_launch(launch, queue->words, queue->n_words, out, err);
}

frit_status record_launch(struct recording *r, const frit_launch *launch, frit_err *err)
{
    struct kernels_launch kernel;
    frit_status status = launch_kernels(r->device, launch, &kernel, err);

    if (status)
        return status;
    do {
        status = record_kernel(r, &kernel, launch, err);
    } while (!status && kernels_next(&kernel));
    return status;
}
