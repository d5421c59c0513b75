/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of other plugins' programs: a pipeline for each, and its launches as the words that
 * FRIT_FORMAT_SPIRV describes, which lie in the ring of parameters. */
#include "foreign.h"

#include <inttypes.h>
#include <string.h>

#include "compile.h"
#include "launch.h"
#include "module.h"
#include "plugin.h"
#include "queue.h"
#include "record.h"

struct frit_kernel {
    VkPipeline pipeline;
    uint32_t group[3];
};

const frit_str foreign_formats[1] = {{FRIT_FORMAT_SPIRV, sizeof FRIT_FORMAT_SPIRV - 1}};

_Static_assert(offsetof(frit_spirv_push, words) == SPIRV_HEAD, "pushed as our own block is");

/* ---- load ---- */

static frit_status make_kernel(struct device *device, struct spirv_code *code, frit_kernel **kernel,
                               frit_err *err)
{
    frit_kernel made = {0};
    frit_status status = module_check(device, code->words, code->n_words, made.group, err);

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
                         "kernels of format '%.*s'; it takes " FRIT_FORMAT_SPIRV,
                         (int)(format.len < 32 ? format.len : 32), format.ptr ? format.ptr : "");
    if (!bytes || n_bytes % sizeof *code.words || n_bytes > UINT32_MAX)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a " FRIT_FORMAT_SPIRV " of %" PRIu64 " bytes, which are no words",
                         n_bytes);
    code.words = vulkan_alloc(device->instance, n_bytes + 1);
    if (!code.words)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a module of %" PRIu64,
                         n_bytes);
    memcpy(code.words, bytes, n_bytes); /* which need not be aligned */
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

static const frit_arg *arg_at(const frit_launch *launch, uint32_t i)
{
    return (const frit_arg *)(const void *)((const char *)launch->args +
                                            (size_t)i * launch->arg_stride);
}

enum { DRIVER_WORDS = sizeof((frit_launch_spec *)0)->driver / sizeof(uint64_t) };

static uint64_t count_words(const frit_launch *launch)
{
    uint64_t n = DRIVER_WORDS + 1 + launch->n_args + 2 * (uint64_t)launch->n_derived +
                 launch->n_scalars + launch->n_bounds;

    for (uint32_t i = 0; i < launch->n_args; i++)
        n += 2 * (uint64_t)arg_at(launch, i)->rank;
    return n;
}

static frit_status check_derived(struct device *device, const frit_launch *launch, frit_err *err)
{
    const frit_launch_spec *spec = launch->spec;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < launch->n_derived && !status; i++) {
        const char *at = (const char *)spec->derived + (size_t)i * spec->derived_stride;
        const frit_derived_spec *wanted = (const frit_derived_spec *)(const void *)at;

        status = queue_check_range(device, launch->derived[i].memory, launch->derived[i].offset,
                                   wanted->bytes, err);
    }
    return status;
}

frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const uint32_t *group;
    frit_status status;

    if (!FRIT_HAS(cmd, frit_cmd, group) || !cmd->kernel || !cmd->launch)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a DISPATCH of %u bytes without its kernel or launch", cmd->struct_size);
    group = cmd->kernel->group;
    if (memcmp(group, cmd->group, sizeof cmd->group) != 0)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a DISPATCH in groups of %u x %u x %u of a kernel whose LocalSize is %u x "
                         "%u x %u",
                         cmd->group[0], cmd->group[1], cmd->group[2], group[0], group[1], group[2]);
    if (count_words(cmd->launch) > LAUNCH_WORDS)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "a launch of %" PRIu64 " words, of %d",
                         count_words(cmd->launch), LAUNCH_WORDS);
    status = launch_check_ranges(device, cmd->launch, err);
    return status ? status : check_derived(device, cmd->launch, err);
}

/* ---- launches ---- */

static uint64_t address_in(const frit_memory *memory, uint64_t offset)
{
    return memory ? memory->address + offset : 0;
}

/* Returns the end of what it wrote. */
static uint64_t *write_args(uint64_t *to, const frit_launch *launch)
{
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = arg_at(launch, i);

        *to++ = address_in(arg->memory, arg->offset + arg->origin);
    }
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = arg_at(launch, i);

        memcpy(to, arg->dims, arg->rank * sizeof *to);
        memcpy(to + arg->rank, arg->strides, arg->rank * sizeof *to);
        to += 2 * (size_t)arg->rank;
    }
    return to;
}

static void write_words(uint64_t *to, const frit_launch *launch)
{
    memcpy(to, launch->spec->driver, sizeof launch->spec->driver);
    to += DRIVER_WORDS;
    *to++ = address_in(launch->workspace, launch->workspace_offset);
    to = write_args(to, launch);
    for (uint32_t i = 0; i < launch->n_derived; i++) {
        *to++ = address_in(launch->derived[i].memory, launch->derived[i].offset);
        *to++ = launch->derived[i].fill;
    }
    for (uint32_t i = 0; i < launch->n_scalars; i++)
        *to++ = launch->scalars[i].bits;
    if (launch->n_bounds)
        memcpy(to, launch->bounds, launch->n_bounds * sizeof *to);
}

frit_status record_foreign(struct recording *r, const frit_cmd *cmd, frit_err *err)
{
    const struct device_api *api = &r->device->api;
    const frit_memory *params = &r->device->queue.params;
    uint64_t offset, address;
    frit_status status = record_take(r, count_words(cmd->launch) * sizeof(uint64_t), &offset, err);

    if (status)
        return status;
    write_words((uint64_t *)(void *)(params->mapped + offset), cmd->launch);
    address = params->address + offset;
    api->CmdBindPipeline(r->batch->cmds, VK_PIPELINE_BIND_POINT_COMPUTE, cmd->kernel->pipeline);
    api->CmdPushConstants(r->batch->cmds, r->device->layout, VK_SHADER_STAGE_COMPUTE_BIT,
                          SPIRV_HEAD, sizeof address, &address);
    record_grid(r, cmd->grid);
    return FRIT_OK;
}
