/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its option, its instance and its interface table. */
#include "plugin.h"

#include <stdio.h>
#include <sys/random.h>

#include <frit/plugin.h>

#include "group.h"

#define PLUGIN_NAME    "collective-mpi"
#define PLUGIN_VERSION "0.1.0"

static frit_status configure(void *opened, const frit_host_options *table, frit_err *err)
{
    struct instance *instance = opened;
    uint32_t shares_memory;
    frit_str library;
    frit_status status =
        table->get_str(instance->plug.host->self, FRIT_STR("library"), &library, err);

    if (!status)
        status = table->get_bool(instance->plug.host->self, FRIT_STR("shared_memory"),
                                 &shares_memory, err);
    if (status)
        return status;
    snprintf(instance->library, sizeof instance->library, "%.*s", (int)library.len,
             library.ptr ? library.ptr : "");
    instance->shares_memory = shares_memory;
    return FRIT_OK;
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    return plug_open(host, PLUGIN_NAME, sizeof(struct instance), configure, out, err);
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    plug_free(&instance->plug, instance);
}

/* Ranks are those of the MPI job, so that an id is just a number that no other group has. */
static frit_status group_id(void *opened, frit_group_id *out, frit_err *err)
{
    const struct instance *instance = opened;

    *out = (frit_group_id){{0}};
    if (getrandom(out->bytes, 32, 0) != 32)
        return plug_fail(&instance->plug, err, FRIT_IO, "no random numbers for an id");
    return FRIT_OK;
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_collective_table table = {
        .struct_size = sizeof(frit_collective_table),
        .group_id = group_id,
        .group_create = group_create,
        .group_destroy = group_destroy,
        .group_abort = group_abort,
        .begin = group_begin,
        .wait = group_wait,
    };
    static const struct plug_interface offered[] = {
        {FRIT_STR_INIT(FRIT_COLLECTIVE_TABLE), &table},
    };

    (void)instance;
    return plug_find_interface(offered, sizeof offered / sizeof *offered, id);
}

static const frit_option options[] = {
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("library"),
        .default_value = FRIT_STR_INIT(""),
        .meaning = FRIT_STR_INIT(
            "file name of the library of Open MPI or MPICH; empty: that of the launcher"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_BOOL,
        .name = FRIT_STR_INIT("shared_memory"),
        .default_value = FRIT_STR_INIT("yes"),
        .meaning = FRIT_STR_INIT("ranks on the same host pass data through /dev/shm"),
    },
};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = FRIT_STR_INIT(PLUGIN_NAME),
    .version = FRIT_STR_INIT(PLUGIN_VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN(PLUGIN_NAME, PLUGIN_VERSION, "libmpi.so.40 libmpich.so.12", &plugin)
