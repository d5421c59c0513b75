/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/plug.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const void *plug_table(const frit_host_root *host, frit_str id, uint32_t needed)
{
    const uint32_t *struct_size = host->get_interface(host->self, id);

    return struct_size && *struct_size >= needed ? struct_size : NULL;
}

frit_status plug_init(struct plug *plug, const char *name, const frit_host_root *host)
{
    *plug = (struct plug){
        .name = name,
        .host = host,
        .core = plug_table(host, FRIT_STR(FRIT_HOST_CORE), FRIT_END_OF(frit_host_core, now_ns)),
        .trace = plug_table(host, FRIT_STR(FRIT_HOST_TRACE), FRIT_END_OF(frit_host_trace, counter)),
    };
    return plug->core ? FRIT_OK : FRIT_INCOMPATIBLE;
}

frit_status plug_fail(const struct plug *plug, frit_err *err, frit_status status,
                      const char *format, ...)
{
    char text[sizeof err->text];
    int used = snprintf(text, sizeof text, "%s: ", plug->name);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    return plug->core->err_set(plug->host->self, err, status, 0, (frit_str){text, strlen(text)});
}

void plug_copy_err(const struct plug *plug, frit_err *err, const frit_err *from)
{
    (void)plug->core->err_set(plug->host->self, err, from->status, from->native_code,
                              (frit_str){from->text, strlen(from->text)});
}

void *plug_alloc(const struct plug *plug, uint64_t bytes, uint64_t align)
{
    return plug->core->mem_alloc(plug->host->self, bytes, align);
}

void plug_free(const struct plug *plug, void *memory)
{
    plug->core->mem_free(plug->host->self, memory);
}

void *plug_zalloc(const struct plug *plug, uint64_t bytes)
{
    void *memory = plug_alloc(plug, bytes, _Alignof(max_align_t));

    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void *plug_new(const struct plug *plug, uint64_t bytes, const char *what, frit_err *err)
{
    void *memory = plug_zalloc(plug, bytes);

    if (!memory)
        (void)plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for %s", what);
    return memory;
}

uint64_t plug_now_ns(const struct plug *plug)
{
    return plug->core->now_ns(plug->host->self);
}

uint64_t plug_begin(const struct plug *plug)
{
    return plug->trace ? plug->trace->span_begin(plug->host->self) : 0;
}

void plug_end(const struct plug *plug, uint64_t begun, frit_str name)
{
    plug->trace->span_end(plug->host->self, begun, name);
}

void plug_counter(const struct plug *plug, frit_str name, double value)
{
    if (plug->trace)
        plug->trace->counter(plug->host->self, name, value);
}

bool plug_is(frit_str id, frit_str name)
{
    return id.len == name.len && memcmp(id.ptr, name.ptr, name.len) == 0;
}

const void *plug_find_interface(const struct plug_interface *offered, size_t n, frit_str id)
{
    for (size_t i = 0; i < n; i++)
        if (plug_is(id, offered[i].id))
            return offered[i].table;
    return NULL;
}

const frit_host_options *plug_options(const struct plug *plug, uint32_t needed, frit_err *err)
{
    const void *table = plug_table(plug->host, FRIT_STR(FRIT_HOST_OPTIONS), needed);

    if (!table)
        (void)plug_fail(plug, err, FRIT_INCOMPATIBLE, "the host has no table " FRIT_HOST_OPTIONS);
    return table;
}

frit_status plug_open(const frit_host_root *host, const char *name, uint64_t bytes,
                      frit_status (*read)(void *instance, const frit_host_options *options,
                                          frit_err *err),
                      void **out, frit_err *err)
{
    const frit_host_options *options;
    struct plug plug, *instance;
    frit_status status = plug_init(&plug, name, host);

    *out = NULL;
    if (status)
        return status;
    options = plug_options(&plug, FRIT_END_OF(frit_host_options, get_bool), err);
    if (!options)
        return FRIT_INCOMPATIBLE;
    instance = plug_new(&plug, bytes, "the plugin's instance", err);
    if (!instance)
        return FRIT_NO_HOST_MEMORY;
    *instance = plug;
    status = read(instance, options, err);
    if (status)
        plug_free(&plug, instance);
    else
        *out = instance;
    return status;
}

frit_device_info *plug_info_at(const struct plug *plug, frit_device_info *out, uint64_t stride,
                               uint32_t i, frit_err *err)
{
    frit_device_info *info = (frit_device_info *)(void *)((char *)out + i * stride);

    if (FRIT_HAS(info, frit_device_info, dtype_use))
        return info;
    (void)plug_fail(plug, err, FRIT_INCOMPATIBLE, "device info of %u bytes, %zu needed",
                    info->struct_size, sizeof *info);
    return NULL;
}

frit_status plug_check_index(const struct plug *plug, uint32_t index, uint32_t n, frit_err *err)
{
    if (index < n)
        return FRIT_OK;
    return plug_fail(plug, err, FRIT_INVALID, "there is no device %u, only %u", index, n);
}

frit_status plug_check_open(const struct plug *plug, uint32_t index, uint32_t n,
                            const frit_open_params *params, frit_err *err)
{
    frit_status status = plug_check_index(plug, index, n, err);

    if (status || params->n_natives == 0)
        return status;
    return plug_fail(plug, err, FRIT_UNSUPPORTED,
                     "a device that uses an object '%.*s' of the application",
                     (int)(params->natives[0].name.len < 32 ? params->natives[0].name.len : 32),
                     params->natives[0].name.ptr ? params->natives[0].name.ptr : "");
}
