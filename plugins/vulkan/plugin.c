/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance and its interface tables. */
#include "plugin.h"

#include <stdarg.h>
#include <stdio.h>

#include <frit/plugin.h>

#include "gpu/program.h"

#include "buffer.h"
#include "capture.h"
#include "device.h"
#include "foreign.h"
#include "loader.h"
#include "queue.h"
#include "replay.h"
#include "submit.h"
#include "timestamp.h"
#include "transfer.h"

#define VULKAN_VERSION "0.1.0"

/* The status and the text of an error of Vulkan. */
struct result_row {
    VkResult result;
    frit_status status;
    const char *name;
};

static const struct result_row *find_result(VkResult result)
{
    static const struct result_row rows[] = {
        {VK_ERROR_OUT_OF_HOST_MEMORY, FRIT_NO_HOST_MEMORY, "out of host memory"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, FRIT_NO_DEVICE_MEMORY, "out of device memory"},
        {VK_ERROR_TOO_MANY_OBJECTS, FRIT_NO_DEVICE_MEMORY, "too many objects"},
        {VK_ERROR_FRAGMENTATION, FRIT_NO_DEVICE_MEMORY, "memory is too fragmented"},
        {VK_ERROR_MEMORY_MAP_FAILED, FRIT_NO_HOST_MEMORY, "memory cannot be mapped"},
        {VK_ERROR_DEVICE_LOST, FRIT_DEVICE_LOST, "device lost"},
        {VK_ERROR_LAYER_NOT_PRESENT, FRIT_UNSUPPORTED, "a layer is not installed"},
        {VK_ERROR_EXTENSION_NOT_PRESENT, FRIT_UNSUPPORTED, "an extension is not available"},
        {VK_ERROR_FEATURE_NOT_PRESENT, FRIT_UNSUPPORTED, "a feature is not available"},
        {VK_ERROR_INCOMPATIBLE_DRIVER, FRIT_UNSUPPORTED, "no driver is installed"},
        {VK_ERROR_INITIALIZATION_FAILED, FRIT_IO, "initialization failed"},
    };
    static const struct result_row other = {0, FRIT_INTERNAL, "unexpected error"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result)
            return &rows[i];
    return &other;
}

frit_status vulkan_fail(const struct instance *instance, frit_err *err, VkResult result,
                        const char *format, ...)
{
    const struct result_row *row = find_result(result);
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return plug_fail(&instance->plug, err, row->status, "%s: %s (VkResult %d)", text, row->name,
                     result);
}

/* Sets what the instance has of its host. */
static frit_status configure(void *opened, const frit_host_options *table, frit_err *err)
{
    struct instance *instance = opened;
    struct options *out = &instance->options;
    const frit_host_root *host = instance->plug.host;
    frit_str staging = {0};
    uint32_t validate = 0, matrices = 1;
    frit_status status = table->get_str(host->self, FRIT_STR("loader"), &out->loader, err);

    instance->cache =
        plug_table(host, FRIT_STR(FRIT_HOST_CACHE), FRIT_END_OF(frit_host_cache, put));
    if (!status)
        status = table->get_str(host->self, FRIT_STR("staging"), &staging, err);
    if (!status)
        status = table->get_str(host->self, FRIT_STR("dump"), &out->dump, err);
    if (!status)
        status = table->get_bool(host->self, FRIT_STR("validate"), &validate, err);
    if (!status)
        status = table->get_bool(host->self, FRIT_STR("matrices"), &matrices, err);
    out->no_matrices = !matrices;
    out->force_staging = plug_is(staging, FRIT_STR("force"));
    out->validate = validate != 0;
    return status;
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    return plug_open(host, "vulkan", sizeof(struct instance), configure, out, err);
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    loader_close(instance);
    vulkan_free(instance, instance->adapters);
    vulkan_free(instance, instance);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_backend backend = {
        .struct_size = sizeof(frit_backend),
        .driver_name = FRIT_STR_INIT("vulkan"),
        .enumerate = device_enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .alloc = buffer_alloc,
        .free = buffer_free,
        .write = transfer_write,
        .read = transfer_read,
        .submit = submit_commands,
        .wait = queue_wait,
        .supports = program_supports,
        .op_program = program_for_op,
        .kernel_load = foreign_load,
        .kernel_unload = foreign_unload,
        .heap_budget = buffer_budget,
        .compute_info = device_compute_info,
    };
    static const frit_capture_table capture = {
        .struct_size = sizeof(frit_capture_table),
        .record = capture_record,
        .replay = replay_submit,
        .release = capture_release,
    };
    static const frit_profile_table profile = {.struct_size = sizeof(frit_profile_table),
                                               .clock = timestamps_clock};

    static const struct plug_interface offered[] = {
        {FRIT_STR_INIT(FRIT_BACKEND), &backend},
        {FRIT_STR_INIT(FRIT_FUSER_TABLE), &program_fuser_table},
        {FRIT_STR_INIT(FRIT_CAPTURE_TABLE), &capture},
        {FRIT_STR_INIT(FRIT_PROFILE_TABLE), &profile},
    };

    (void)instance;
    return plug_find_interface(offered, sizeof offered / sizeof *offered, id);
}

static const frit_option options[] = {
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("loader"),
        .default_value = FRIT_STR_INIT("libvulkan.so.1"),
        .meaning = FRIT_STR_INIT("file name of the Vulkan loader"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("staging"),
        .default_value = FRIT_STR_INIT("auto"),
        .meaning = FRIT_STR_INIT("force: never map device memory, copy through staging buffers"),
        .choices = FRIT_STR_INIT("auto force"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("dump"),
        .default_value = FRIT_STR_INIT(""),
        .meaning =
            FRIT_STR_INIT("folder to write the SPIR-V of each compiled kernel to; empty: none"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_BOOL,
        .name = FRIT_STR_INIT("matrices"),
        .default_value = FRIT_STR_INIT("yes"),
        .meaning = FRIT_STR_INIT("multiply matrices with the device's units for that"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_BOOL,
        .name = FRIT_STR_INIT("validate"),
        .default_value = FRIT_STR_INIT("no"),
        .meaning = FRIT_STR_INIT("enable the validation layers and log their messages"),
    },
};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = FRIT_STR_INIT("vulkan"),
    .version = FRIT_STR_INIT(VULKAN_VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("vulkan", VULKAN_VERSION, "libvulkan.so.1", &plugin)
