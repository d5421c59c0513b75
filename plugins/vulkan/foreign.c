/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign kernels.  Each has a pipeline.  A DISPATCH writes the words that FRIT_FORMAT_SPIRV
 * defines to the parameter ring and puts their address into push constants. */
#include "foreign.h"

#include <inttypes.h>
#include <string.h>

#include "gpu/command.h"
#include "gpu/foreign_words.h"

#include "buffer.h"
#include "compile.h"
#include "device.h"
#include "launch.h"
#include "module.h"
#include "plugin.h"
#include "record.h"
#include "target.h"

struct frit_kernel {
    VkPipeline pipeline;
    uint32_t local_size[3];
};

const frit_str foreign_formats[1] = {{FRIT_FORMAT_SPIRV, sizeof FRIT_FORMAT_SPIRV - 1}};

_Static_assert(offsetof(frit_spirv_push, words) == SPIRV_HEAD,
               "the address is at the offset at which our kernels have theirs");

/* ---- load ---- */

static frit_status make_kernel(struct device *device, struct spirv_code *code, frit_kernel **kernel,
                               frit_err *err)
{
    frit_kernel made = {0};
    frit_status status = module_check(device, code->words, code->n_words, made.local_size, err);

    if (status)
        return status;
    *kernel = vulkan_alloc(device->instance, sizeof made);
    if (!*kernel)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a kernel");
    status = compile_pipeline(device, code, &made.pipeline, err);
    if (status) {
        vulkan_free(device->instance, *kernel);
        *kernel = NULL;
        return status;
    }
    **kernel = made;
    return FRIT_OK;
}

frit_status foreign_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                         frit_kernel **kernel, frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    struct spirv_code code = {.n_words = (uint32_t)(n_bytes / sizeof *code.words)};
    frit_status status;

    *kernel = NULL;
    if (!plug_is(format, foreign_formats[0]))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "kernel format '%.*s' is not supported; " FRIT_FORMAT_SPIRV " is",
                         (int)(format.len < 32 ? format.len : 32), format.ptr ? format.ptr : "");
    if (!bytes || n_bytes % sizeof *code.words || n_bytes > UINT32_MAX)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a " FRIT_FORMAT_SPIRV " module of %" PRIu64 " bytes, not a multiple of 4",
                         n_bytes);
    code.words = vulkan_alloc(device->instance, n_bytes + 1);
    if (!code.words)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a module of %" PRIu64 " bytes", n_bytes);
    memcpy(code.words, bytes, n_bytes); /* `bytes` may be unaligned */
    status = make_kernel(device, &code, kernel, err);
    vulkan_free(device->instance, code.words);
    return status;
}

void foreign_unload(void *self, frit_kernel *kernel)
{
    struct device *device = self;

    if (!kernel)
        return;
    device->api.DestroyPipeline(device->handle, kernel->pipeline, NULL);
    vulkan_free(device->instance, kernel);
}

/* ---- checks ---- */

frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const uint32_t *local_size;

    if (!FRIT_HAS(cmd, frit_cmd, group) || !cmd->kernel || !cmd->launch)
        return plug_fail(plug, err, FRIT_INVALID,
                         "DISPATCH (%u bytes) without a kernel or a launch", cmd->struct_size);
    local_size = cmd->kernel->local_size;
    if (memcmp(local_size, cmd->group, sizeof cmd->group) != 0)
        return plug_fail(plug, err, FRIT_INVALID,
                         "DISPATCH with workgroups of %u x %u x %u of a kernel whose LocalSize is "
                         "%u x %u x %u",
                         cmd->group[0], cmd->group[1], cmd->group[2], local_size[0], local_size[1],
                         local_size[2]);
    if (foreign_words_count(cmd->launch) > MAX_SPACE_WORDS)
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "DISPATCH with %" PRIu64 " words of arguments; the most are %d",
                         foreign_words_count(cmd->launch), MAX_SPACE_WORDS);
    return command_check_ranges(plug, cmd->launch, err);
}

/* ---- recording ---- */

frit_status foreign_record(struct recorder *r, const frit_cmd *cmd, frit_err *err)
{
    const struct device_api *api = &r->device->api;
    const frit_memory *params = &r->device->queue.params;
    uint64_t offset, address;
    frit_status status =
        record_reserve(r, foreign_words_count(cmd->launch) * sizeof(uint64_t), &offset, err);

    if (status)
        return status;
    foreign_words_write((uint64_t *)(void *)(params->mapped + offset), cmd->launch);
    address = params->address + offset;
    api->CmdBindPipeline(r->batch->cmds, VK_PIPELINE_BIND_POINT_COMPUTE, cmd->kernel->pipeline);
    api->CmdPushConstants(r->batch->cmds, r->device->pipeline_layout, VK_SHADER_STAGE_COMPUTE_BIT,
                          SPIRV_HEAD, sizeof address, &address);
    launch_record_grid(r, cmd->grid);
    return FRIT_OK;
}
