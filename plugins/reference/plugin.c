/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance, and the tables it offers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <frit/native.h>
#include <frit/plugin.h>

#include "reference.h"

/* FRIT_STR for static storage. */
#define TEXT(literal)                  \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }

frit_status ref_fail(const struct instance *instance, frit_err *err, frit_status status,
                     const char *format, ...)
{
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return instance->core->err_set(instance->host->self, err, status, 0,
                                   (frit_str){text, strlen(text)});
}

/* A table of the host, NULL if it is absent or shorter than this plugin needs. */
static const void *host_table(const frit_host_root *host, frit_str id, uint32_t needed)
{
    const uint32_t *struct_size = host->get_interface(host->self, id);

    return struct_size && *struct_size >= needed ? struct_size : NULL;
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_core *core =
        host_table(host, FRIT_STR(FRIT_HOST_CORE), FRIT_END_OF(frit_host_core, mem_free));
    const frit_host_options *options =
        host_table(host, FRIT_STR(FRIT_HOST_OPTIONS), FRIT_END_OF(frit_host_options, get_i64));
    struct instance *instance;
    int64_t memory_bytes;
    frit_status status;

    *out = NULL;
    if (!core)
        return FRIT_INCOMPATIBLE;
    if (!options)
        return core->err_set(host->self, err, FRIT_INCOMPATIBLE, 0,
                             FRIT_STR("the host has no table " FRIT_HOST_OPTIONS));
    status = options->get_i64(host->self, FRIT_STR("memory_bytes"), &memory_bytes, err);
    if (status)
        return status;
    instance = core->mem_alloc(host->self, sizeof *instance, _Alignof(struct instance));
    if (!instance)
        return core->err_set(host->self, err, FRIT_NO_HOST_MEMORY, 0,
                             FRIT_STR("no memory for the instance of plugin reference"));
    *instance = (struct instance){
        .host = host,
        .core = core,
        .trace = host_table(host, FRIT_STR(FRIT_HOST_TRACE), FRIT_END_OF(frit_host_trace, counter)),
        .memory_bytes = (uint64_t)memory_bytes,
    };
    *out = instance;
    return FRIT_OK;
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    instance->core->mem_free(instance->host->self, instance);
}

static bool is(frit_str id, frit_str name)
{
    return id.len == name.len && memcmp(id.ptr, name.ptr, name.len) == 0;
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_backend backend = {
        .struct_size = sizeof(frit_backend),
        .driver_name = TEXT("reference"),
        .enumerate = device_enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .alloc = buffer_alloc,
        .free = buffer_free,
        .write = queue_write,
        .read = queue_read,
        .submit = queue_submit,
        .wait = queue_wait,
        .supports = program_supports,
        .op_program = program_create,
        .kernel_load = kernel_load,
        .kernel_unload = kernel_unload,
    };
    static const frit_native_table native = {
        .struct_size = sizeof(frit_native_table),
        .get = native_get,
    };

    (void)instance;
    if (is(id, FRIT_STR(FRIT_BACKEND)))
        return &backend;
    return is(id, FRIT_STR(FRIT_NATIVE_TABLE)) ? &native : NULL;
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
