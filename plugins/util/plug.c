/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/plug.h"

#include <stdarg.h>
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

void *plug_alloc(const struct plug *plug, uint64_t bytes, uint64_t align)
{
    return plug->core->mem_alloc(plug->host->self, bytes, align);
}

void plug_free(const struct plug *plug, void *memory)
{
    plug->core->mem_free(plug->host->self, memory);
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

frit_status plug_refuse_natives(const struct plug *plug, const frit_open_params *params,
                                frit_err *err)
{
    if (params->n_natives == 0)
        return FRIT_OK;
    return plug_fail(plug, err, FRIT_UNSUPPORTED,
                     "a device that uses an object '%.*s' of the application",
                     (int)(params->natives[0].name.len < 32 ? params->natives[0].name.len : 32),
                     params->natives[0].name.ptr ? params->natives[0].name.ptr : "");
}
