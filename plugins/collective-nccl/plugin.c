/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its options, its instance and its interface table. */
#include "plugin.h"

#include <time.h>

#include <frit/plugin.h>

#include "group.h"

#define PLUGIN_NAME    "collective-nccl"
#define PLUGIN_VERSION "0.1.0"

enum { CLOSE_POLLS = 500, CLOSE_POLL_NS = 10000000 };

static frit_status configure(void *opened, const frit_host_options *table, frit_err *err)
{
    struct instance *instance = opened;
    void *self = instance->plug.host->self;
    frit_status status = FRIT_OK;

    for (int v = 0; v < VENDORS && !status; v++) {
        struct library_options *options = &instance->options[v];

        instance->libraries[v].vendor = &vendors[v];
        status = table->get_str(self, vendors[v].library_option, &options->library, err);
        if (!status)
            status = table->get_str(self, vendors[v].runtime_option, &options->runtime, err);
    }
    return status;
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_status status =
        plug_open(host, PLUGIN_NAME, sizeof(struct instance), configure, out, err);

    if (!status)
        pthread_mutex_init(&((struct instance *)*out)->lock, NULL);
    return status;
}

static bool has_threads(struct instance *instance)
{
    bool has;

    pthread_mutex_lock(&instance->lock);
    has = instance->n_threads > 0;
    pthread_mutex_unlock(&instance->lock);
    return has;
}

/* Threads that abort a communicator have 5 s more; what they use then stays. */
static void plugin_close(void *self)
{
    struct instance *instance = self;
    const struct timespec pause = {.tv_nsec = CLOSE_POLL_NS};

    for (int i = 0; i < CLOSE_POLLS && has_threads(instance); i++)
        nanosleep(&pause, NULL);
    if (has_threads(instance))
        return;
    pthread_mutex_destroy(&instance->lock);
    plug_free(&instance->plug, instance);
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

    (void)instance;
    return plug_is(id, FRIT_STR(FRIT_COLLECTIVE_TABLE)) ? &table : NULL;
}

#define LIBRARY_OPTION(option, text)                                       \
    {                                                                      \
        .struct_size = sizeof(frit_option), .type = FRIT_OPTION_STR,       \
        .name = FRIT_STR_INIT(option), .default_value = FRIT_STR_INIT(""), \
        .meaning = FRIT_STR_INIT("file name of " text),                    \
    }

static const frit_option options[] = {
    LIBRARY_OPTION("nccl", "NCCL; empty: the copy in this process, or the system's"),
    LIBRARY_OPTION("rccl", "RCCL; empty: the copy in this process, or the system's"),
    LIBRARY_OPTION("cuda", "CUDA's driver library; empty: the system's"),
    LIBRARY_OPTION("hip", "HIP's runtime; empty: the versions that are known"),
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

FRIT_DEFINE_PLUGIN(PLUGIN_NAME, PLUGIN_VERSION, "libnccl.so.2 librccl.so.1", &plugin)
