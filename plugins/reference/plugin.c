/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance, and the tables it offers. */
#include <frit/plugin.h>

#include "device.h"
#include "program.h"
#include "reference.h"

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_options *options;
    struct instance *instance;
    int64_t memory_bytes;
    struct plug plug;
    frit_status status = plug_init(&plug, "reference", host);

    *out = NULL;
    if (status)
        return status;
    options = plug_options(&plug, FRIT_END_OF(frit_host_options, get_i64), err);
    if (!options)
        return FRIT_INCOMPATIBLE;
    status = options->get_i64(host->self, FRIT_STR("memory_bytes"), &memory_bytes, err);
    if (status)
        return status;
    instance = plug_new(&plug, sizeof *instance, "the plugin's instance", err);
    if (!instance)
        return FRIT_NO_HOST_MEMORY;
    *instance = (struct instance){.plug = plug, .memory_bytes = (uint64_t)memory_bytes};
    *out = instance;
    return FRIT_OK;
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    plug_free(&instance->plug, instance);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_backend backend = {.driver_name = FRIT_STR_INIT("reference"),
                                         .enumerate = device_enumerate,
                                         .device_open = device_open,
                                         .device_close = device_close,
                                         .alloc = hosted_alloc,
                                         .supports = program_supports,
                                         .op_program = program_create,
                                         .compute_info = device_compute_info,
                                         HOSTED_BACKEND_SLOTS};

    (void)instance;
    if (plug_is(id, FRIT_STR(FRIT_BACKEND)))
        return &backend;
    if (plug_is(id, FRIT_STR(FRIT_PROFILE_TABLE)))
        return &hosted_profile_table;
    return plug_is(id, FRIT_STR(FRIT_NATIVE_TABLE)) ? &hosted_native_table : NULL;
}

static const frit_option options[] = {{
    .struct_size = sizeof(frit_option),
    .type = FRIT_OPTION_I64,
    .name = FRIT_STR_INIT("memory_bytes"),
    .default_value = FRIT_STR_INIT("0"),
    .meaning = FRIT_STR_INIT("bytes that its device may hold; 0: no cap"),
    .min = 0,
    .max = INT64_MAX,
}};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = FRIT_STR_INIT("reference"),
    .version = FRIT_STR_INIT(REF_VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("reference", REF_VERSION, "", &plugin)
