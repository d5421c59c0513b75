/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its instance, its counters, and the tables it offers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <frit/native.h>
#include <frit/plugin.h>

#include "null.h"
#include "stats.h"

frit_status null_fail(const struct instance *instance, frit_err *err, frit_status status,
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

void *null_alloc(const struct instance *instance, uint64_t bytes)
{
    return instance->core->mem_alloc(instance->host->self, bytes, NULL_ALIGN);
}

void null_free(const struct instance *instance, void *ptr)
{
    instance->core->mem_free(instance->host->self, ptr);
}

/* ---- counters ---- */

static const char *const counter_names[NULL_N_COUNTERS] = {
#define NULL_CALL(name) #name,
#include "calls.def"
#define NULL_COUNT(name, meaning) #name,
#include "counts.def"
};

uint32_t null_counter_find(frit_str name)
{
    uint32_t i = 0;

    while (i < NULL_N_COUNTERS && (strlen(counter_names[i]) != name.len ||
                                   memcmp(counter_names[i], name.ptr, name.len) != 0))
        i++;
    return i;
}

void null_count(struct instance *instance, enum null_counter counter, uint64_t n)
{
    atomic_fetch_add_explicit(&instance->counters[counter], n, memory_order_relaxed);
}

void null_uncount(struct instance *instance, enum null_counter counter, uint64_t n)
{
    atomic_fetch_sub_explicit(&instance->counters[counter], n, memory_order_relaxed);
}

frit_status null_count_call(struct instance *instance, uint32_t call, frit_err *err)
{
    const struct fault *fault = &instance->options.call;
    uint64_t n = atomic_fetch_add_explicit(&instance->counters[call], 1, memory_order_relaxed) + 1;

    if (fault->call != call || fault->nth != n)
        return FRIT_OK;
    return null_fail(instance, err, fault->status, "null: call %llu of %s fails on request",
                     (unsigned long long)n, counter_names[call]);
}

static uint64_t stats_get(void *self, frit_str name)
{
    struct instance *instance = self;
    uint32_t counter = null_counter_find(name);

    return counter < NULL_N_COUNTERS ? atomic_load(&instance->counters[counter]) : UINT64_MAX;
}

static void stats_open_gate(void *self, uint64_t n)
{
    struct instance *instance = self;
    uint64_t left = atomic_load(&instance->gate_left), more;

    do {
        more = n > UINT64_MAX - left ? UINT64_MAX : left + n;
    } while (!atomic_compare_exchange_weak(&instance->gate_left, &left, more));
}

/* ---- the plugin ---- */

/* A table of the host, NULL if it is absent or shorter than this plugin needs. */
static const void *host_table(const frit_host_root *host, frit_str id, uint32_t needed)
{
    const uint32_t *struct_size = host->get_interface(host->self, id);

    return struct_size && *struct_size >= needed ? struct_size : NULL;
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_core *core =
        host_table(host, FRIT_STR(FRIT_HOST_CORE), FRIT_END_OF(frit_host_core, now_ns));
    struct instance *instance;
    frit_status status;

    *out = NULL;
    if (!core)
        return FRIT_INCOMPATIBLE;
    if (!host_table(host, FRIT_STR(FRIT_HOST_OPTIONS), FRIT_END_OF(frit_host_options, get_bool)))
        return core->err_set(host->self, err, FRIT_INCOMPATIBLE, 0,
                             FRIT_STR("the host has no table " FRIT_HOST_OPTIONS));
    instance = core->mem_alloc(host->self, sizeof *instance, NULL_ALIGN);
    if (!instance)
        return core->err_set(host->self, err, FRIT_NO_HOST_MEMORY, 0,
                             FRIT_STR("no memory for the instance of plugin null"));
    memset(instance, 0, sizeof *instance);
    instance->host = host;
    instance->core = core;
    status = options_read(instance, err);
    if (status) {
        null_free(instance, instance);
        return status;
    }
    for (uint32_t i = 0; i < 2; i++)
        instance->heaps[i] = (frit_heap){.struct_size = sizeof instance->heaps[i],
                                         .kind = i ? FRIT_HEAP_PINNED : FRIT_HEAP_DEVICE,
                                         .bytes = instance->options.heap};
    *out = instance;
    return FRIT_OK;
}

static void plugin_close(void *self)
{
    null_free(self, self);
}

static const frit_backend backend = {
    .struct_size = FRIT_END_OF(frit_backend, kernel_unload),
    .driver_name = FRIT_STR_INIT("null"),
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
    .op_program = program_for_op,
    .kernel_load = kernel_load,
    .kernel_unload = kernel_unload,
};

static const frit_profile_table profile = {.struct_size = sizeof(frit_profile_table),
                                           .clock = device_clock};

static const frit_native_table native = {.struct_size = sizeof(frit_native_table),
                                         .get = native_get};

static const frit_extmem_table extmem = {.struct_size = sizeof(frit_extmem_table),
                                         .where = extmem_where,
                                         .address = extmem_address,
                                         .import = extmem_import};

static const frit_fuser_table fusers = {
    .struct_size = sizeof(frit_fuser_table),
    .prototypes = fuser_prototypes,
    .clone = fuser_clone,
    .destroy = fuser_destroy,
    .reset = fuser_reset,
    .push = fuser_push,
    .state = fuser_state,
    .finish = fuser_finish,
    .from_state = fuser_from_state,
};

static const null_stats stats = {
    .struct_size = sizeof(null_stats), .get = stats_get, .open_gate = stats_open_gate};

static const void *plugin_interface(void *instance, frit_str id)
{
    static const struct {
        frit_str id;
        const void *table;
    } tables[] = {
        {FRIT_STR_INIT(FRIT_BACKEND), &backend},       {FRIT_STR_INIT(FRIT_FUSER_TABLE), &fusers},
        {FRIT_STR_INIT(FRIT_NATIVE_TABLE), &native},   {FRIT_STR_INIT(NULL_STATS), &stats},
        {FRIT_STR_INIT(FRIT_PROFILE_TABLE), &profile}, {FRIT_STR_INIT(FRIT_EXTMEM_TABLE), &extmem},
    };

    const struct instance *self = instance;

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i].id.len == id.len && memcmp(tables[i].id.ptr, id.ptr, id.len) == 0)
            return tables[i].table == &profile && self->options.clock == CLOCK_NONE
                       ? NULL
                       : tables[i].table;
    return NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = NULL_N_OPTIONS,
    .option_stride = sizeof(frit_option),
    .id = FRIT_STR_INIT("null"),
    .version = FRIT_STR_INIT(NULL_VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = null_options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("null", NULL_VERSION, "", &plugin)
