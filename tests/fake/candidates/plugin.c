/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its instance, its statistics, and the tables it offers. */
#include <unistd.h>

#include "candidates.h"
#include "stats.h"

const struct kind_info kinds[N_KINDS] = {
#define FAKE_CANDIDATE(name, class, percent, priority) \
    {FRIT_STR_INIT(#name), FRIT_NUMERIC_##class, percent, priority},
#include "candidates.def"
};

uint32_t kind_find(frit_str name)
{
    uint32_t kind = 0;

    while (kind < N_KINDS && !plug_is(kinds[kind].name, name))
        kind++;
    return kind;
}

/* ---- statistics ---- */

static uint64_t count_of(atomic_uint_least64_t *counts, frit_str name)
{
    uint32_t kind = kind_find(name);

    return kind < N_KINDS ? atomic_load(&counts[kind]) : UINT64_MAX;
}

static uint64_t stats_launches(void *instance, frit_str name)
{
    return count_of(((struct instance *)instance)->launches, name);
}

static uint64_t stats_prepares(void *instance, frit_str name)
{
    return count_of(((struct instance *)instance)->prepares, name);
}

static uint64_t stats_compiles(void *instance, frit_str name)
{
    return count_of(((struct instance *)instance)->compiles, name);
}

static uint64_t stats_replays(void *instance)
{
    return atomic_load(&((struct instance *)instance)->replays);
}

static const candidates_stats stats = {
    .struct_size = sizeof(candidates_stats),
    .launches = stats_launches,
    .prepares = stats_prepares,
    .compiles = stats_compiles,
    .replays = stats_replays,
};

/* ---- the plugin ---- */

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    static atomic_uint_least32_t instances;
    frit_status status =
        plug_open(host, "candidates", sizeof(struct instance), options_read, out, err);

    if (!status)
        ((struct instance *)*out)->number = atomic_fetch_add(&instances, 1);
    return status;
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    if (instance->log >= 0)
        close(instance->log);
    plug_free(&instance->plug, instance);
}

static const void *plugin_interface(void *self, frit_str id)
{
    const struct options *options = &((const struct instance *)self)->options;

    if (plug_is(id, FRIT_STR(FRIT_BACKEND)))
        return &device_backend;
    if (plug_is(id, FRIT_STR(FRIT_FUSER_TABLE)))
        return options->fuses > 1 ? &fuser_table : NULL;
    if (plug_is(id, FRIT_STR(CANDIDATES_STATS)))
        return &stats;
    if (plug_is(id, FRIT_STR(FRIT_CAPTURE_TABLE)))
        return options->captures ? &capture_table : NULL;
    if (plug_is(id, FRIT_STR(FRIT_PROFILE_TABLE)))
        return options->clock == CLOCK_NONE ? NULL : &device_profile;
    return plug_is(id, FRIT_STR(FRIT_NATIVE_TABLE)) && options->host_pointers ? &hosted_native_table
                                                                              : NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = N_OPTIONS,
    .option_stride = sizeof *options_list,
    .id = FRIT_STR_INIT("fake-candidates"),
    .version = FRIT_STR_INIT("1.0"),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options_list,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("fake-candidates", "1.0", "", &plugin)
