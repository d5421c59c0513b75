/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "device.h"
#include "gpu/command.h"
#include "gpu/foreign_words.h"
#include "launch.h"
#include "plugin.h"
#include "scope.h"

enum { MAX_WORDS = 4096 /* of the arguments of a DISPATCH */ };

struct frit_kernel {
    gpu_module module;
    gpu_function function;
};

_Static_assert(sizeof(frit_kernel_params) == 2 * sizeof(uint64_t) &&
                   offsetof(frit_kernel_params, words) == sizeof(uint64_t),
               "the words that foreign_enqueue passes");

static bool is_known(frit_str format)
{
    for (uint32_t i = 0; i < vendor.n_formats; i++)
        if (plug_is(format, vendor.formats[i]))
            return true;
    return false;
}

/* `image` ends with a 0, which a text needs. */
static frit_status make_kernel(struct device *device, const char *image, frit_kernel **kernel,
                               frit_err *err)
{
    frit_kernel made = {0};
    gpu_result result = device->api->ModuleLoadData(&made.module, image);

    if (!result)
        result = device->api->ModuleGetFunction(&made.function, made.module, FRIT_KERNEL_NAME);
    if (!result)
        *kernel = hip_alloc(device->instance, sizeof made);
    if (result || !*kernel) {
        if (made.module)
            (void)device->api->ModuleUnload(made.module);
        return result ? device_fail(device, result, "loading a kernel", err)
                      : plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                                  "no memory for a kernel");
    }
    **kernel = made;
    return FRIT_OK;
}

frit_status foreign_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                         frit_kernel **kernel, frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    struct scope scope;
    frit_status status;
    char *image;

    *kernel = NULL;
    if (!is_known(format))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "kernel format '%.*s' is not supported; %s is",
                         (int)(format.len < 32 ? format.len : 32), format.ptr ? format.ptr : "",
                         vendor.formats[0].ptr);
    if (!bytes || !n_bytes)
        return plug_fail(plug, err, FRIT_INVALID, "a kernel of %" PRIu64 " bytes", n_bytes);
    image = hip_alloc(device->instance, n_bytes + 1);
    if (!image)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a kernel of %" PRIu64 " bytes", n_bytes);
    memcpy(image, bytes, n_bytes);
    status = scope_enter(device, &scope, err);
    if (!status) {
        status = make_kernel(device, image, kernel, err);
        scope_leave(device, &scope);
    }
    hip_free(device->instance, image);
    return status;
}

void foreign_unload(void *self, frit_kernel *kernel)
{
    struct device *device = self;
    struct scope scope;

    if (!kernel)
        return;
    scope_try(device, &scope);
    (void)device->api->ModuleUnload(kernel->module);
    scope_leave(device, &scope);
    hip_free(device->instance, kernel);
}

frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;

    if (!FRIT_HAS(cmd, frit_cmd, group) || !cmd->kernel || !cmd->launch)
        return plug_fail(plug, err, FRIT_INVALID,
                         "DISPATCH (%u bytes) without a kernel or a launch", cmd->struct_size);
    if (foreign_words_count(cmd->launch) > MAX_WORDS)
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "DISPATCH with %" PRIu64 " words of arguments; the most are %d",
                         foreign_words_count(cmd->launch), MAX_WORDS);
    return command_check_ranges(plug, cmd->launch, err);
}

frit_status foreign_enqueue(struct frit_queue *queue, const frit_cmd *cmd, frit_err *err)
{
    const struct launch_target target = {queue->device, queue->stream};
    struct queue_block block;
    uint64_t params[2] = {0};
    frit_status status = queue_reserve_block(
        queue, foreign_words_count(cmd->launch) * sizeof(uint64_t), &block, err);

    if (status)
        return status;
    foreign_words_write(block.host, cmd->launch);
    params[1] = block.address;
    status = queue_send_block(queue, &block, err);
    return status ? status
                  : launch_grid(&target, cmd->kernel->function, cmd->grid, cmd->group, 0, params, 2,
                                err);
}
