/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance, and the tables it offers. */
#include <frit/native.h>
#include <frit/plugin.h>

#include "device.h"
#include "program.h"
#include "reference.h"

/* FRIT_STR for static storage. */
#define TEXT(literal)                  \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_options *options =
        plug_table(host, FRIT_STR(FRIT_HOST_OPTIONS), FRIT_END_OF(frit_host_options, get_i64));
    struct instance *instance;
    int64_t memory_bytes;
    struct plug plug;
    frit_status status = plug_init(&plug, "reference", host);

    *out = NULL;
    if (status)
        return status;
    if (!options)
        return plug_fail(&plug, err, FRIT_INCOMPATIBLE, "the host has no table " FRIT_HOST_OPTIONS);
    status = options->get_i64(host->self, FRIT_STR("memory_bytes"), &memory_bytes, err);
    if (status)
        return status;
    instance = plug_alloc(&plug, sizeof *instance, _Alignof(struct instance));
    if (!instance)
        return plug_fail(&plug, err, FRIT_NO_HOST_MEMORY, "no memory for the plugin's instance");
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
    static const frit_backend backend = {
        .struct_size = sizeof(frit_backend),
        .driver_name = TEXT("reference"),
        .enumerate = device_enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .alloc = hosted_alloc,
        .free = hosted_free,
        .write = hosted_write,
        .read = hosted_read,
        .submit = hosted_submit,
        .wait = hosted_wait,
        .supports = program_supports,
        .op_program = program_create,
        .kernel_load = hosted_kernel_load,
        .kernel_unload = hosted_kernel_unload,
        .import_host = hosted_import,
    };
    static const frit_native_table native = {
        .struct_size = sizeof(frit_native_table),
        .get = hosted_native,
    };
    static const frit_profile_table profile = {
        .struct_size = sizeof(frit_profile_table),
        .clock = hosted_clock,
    };

    (void)instance;
    if (plug_is(id, FRIT_STR(FRIT_BACKEND)))
        return &backend;
    if (plug_is(id, FRIT_STR(FRIT_PROFILE_TABLE)))
        return &profile;
    return plug_is(id, FRIT_STR(FRIT_NATIVE_TABLE)) ? &native : NULL;
}

static const frit_option options[] = {{
    .struct_size = sizeof(frit_option),
    .type = FRIT_OPTION_I64,
    .name = TEXT("memory_bytes"),
    .default_value = TEXT("0"),
    .meaning = TEXT("bytes that its device may hold; 0: no cap"),
    .min = 0,
    .max = INT64_MAX,
}};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = TEXT("reference"),
    .version = TEXT(REF_VERSION),
    .license = TEXT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("reference", REF_VERSION, "", &plugin)
