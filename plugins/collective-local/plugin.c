/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: its instance, its ids, and the one table that it offers. */
#include <string.h>
#include <unistd.h>

#include <frit/plugin.h>

#include "communicator.h"
#include "progress.h"

#define VERSION "0.1.0"

/* The first bytes of an id: the instance that made it, and its number. */
struct local_id {
    uint64_t process, opened_ns, instance;
    uint64_t number;
};

FRIT_STATIC_ASSERT(sizeof(struct local_id) <= FRIT_GROUP_ID_BYTES, "an id has that many bytes");

static struct local_id id_of(const struct local *local, uint64_t number)
{
    return (struct local_id){(uint64_t)getpid(), local->opened_ns, (uint64_t)(uintptr_t)local,
                             number};
}

static frit_status group_id(void *instance, frit_group_id *out, frit_err *err)
{
    struct local *local = instance;
    struct local_id id;

    (void)err;
    pthread_mutex_lock(&local->lock);
    id = id_of(local, ++local->n_ids);
    pthread_mutex_unlock(&local->lock);
    *out = (frit_group_id){{0}};
    memcpy(out->bytes, &id, sizeof(id));
    return FRIT_OK;
}

static bool made(const struct local *local, const frit_group_id *group)
{
    struct local_id id, own;

    memcpy(&id, group->bytes, sizeof(id));
    own = id_of(local, id.number);
    return memcmp(&id, &own, sizeof(id)) == 0;
}

static frit_status check_params(const struct local *local, const frit_group_params *params,
                                frit_err *err)
{
    const struct plug *plug = &local->plug;

    if (params->struct_size < FRIT_END_OF(frit_group_params, device))
        return plug_fail(plug, err, FRIT_INCOMPATIBLE, "parameters of %u bytes",
                         params->struct_size);
    if (params->size < 1 || params->rank >= params->size)
        return plug_fail(plug, err, FRIT_INVALID, "rank %u of %u", params->rank, params->size);
    if (params->size > LOCAL_MAX_RANKS)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "a group of %u ranks; at most %d",
                         params->size, LOCAL_MAX_RANKS);
    if (params->device || !plug_is(params->space, FRIT_STR("host.ptr")))
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "memory that is not the process's own");
    if (!made(local, params->id))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "the group's id is from elsewhere; ranks are threads of one process, with "
                         "devices of one host");
    return FRIT_OK;
}

static frit_status group_create(void *instance, const frit_group_params *params, frit_group **out,
                                frit_err *err)
{
    const frit_status status = check_params(instance, params, err);

    *out = NULL;
    return status ? status : communicator_join(instance, params, out, err);
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    struct local *local;
    struct plug plug;
    const frit_status status = plug_init(&plug, "collective-local", host);

    *out = NULL;
    if (status)
        return status;
    local = plug_new(&plug, sizeof *local, "the plugin's instance", err);
    if (!local)
        return FRIT_NO_HOST_MEMORY;
    local->plug = plug;
    local->opened_ns = plug_now_ns(&plug);
    pthread_mutex_init(&local->lock, NULL);
    *out = local;
    return FRIT_OK;
}

static void plugin_close(void *instance)
{
    struct local *local = instance;

    pthread_mutex_destroy(&local->lock);
    plug_free(&local->plug, local);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_collective_table table = {
        .struct_size = sizeof(frit_collective_table),
        .group_id = group_id,
        .group_create = group_create,
        .group_destroy = progress_destroy,
        .group_abort = progress_abort,
        .begin = progress_begin,
        .wait = progress_wait,
    };

    (void)instance;
    return plug_is(id, FRIT_STR(FRIT_COLLECTIVE_TABLE)) ? &table : NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .id = FRIT_STR_INIT("collective-local"),
    .version = FRIT_STR_INIT(VERSION),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("collective-local", VERSION, "", &plugin)
