/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of groups. */
#include <string.h>

#include "api/copy_sized.h"
#include "api/host.h"
#include "api/job.h"
#include "api/open.h"
#include "api/report.h"
#include "base/fail.h"
#include "conf/conf.h"
#include "device/device.h"
#include "load/registry.h"
#include "record/binding.h"
#include "run/drain.h"
#include "run/rank.h"

static const uint64_t ms = 1000000;

/* The plugin with a collective engine; `id` NULL: the first one. */
static frit_status find_engine(const frit_host *host, const char *id, const struct plugin **out,
                               frit_err *err)
{
    const struct plugin *plugin;

    *out = NULL;
    for (uint32_t i = 0; host->registry && (plugin = registry_plugin_at(host->registry, i)); i++) {
        if (plugin->collective.struct_size && (!id || strcmp(plugin->id, id) == 0)) {
            *out = plugin;
            return FRIT_OK;
        }
    }
    if (id)
        return fail(err, FRIT_UNSUPPORTED,
                    "no plugin '%s' offers a collective engine; `frit doctor why %s` says more", id,
                    id);
    return fail(err, FRIT_UNSUPPORTED,
                "no plugin offers a collective engine; `frit devices` lists the plugins");
}

frit_status frit_group_id_create(frit_host *host, const char *engine, frit_group_id *out,
                                 frit_err *err)
{
    HOLD_CANCEL;
    const struct plugin *plugin;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "group_id_create");
    if (!host || !out)
        return report_null(err, "group_id_create", host ? "`out`" : "the host");
    st = find_engine(host, engine, &plugin, &own);
    if (!st)
        st = fail_from(&own, plugin->collective.group_id(plugin->instance, out, &own), "group_id");
    return report(err, st, &own);
}

/* ---- jobs ---- */

frit_status frit_job_info(frit_host *host, frit_job_desc *out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_job_desc desc;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "job_info");
    if (!host || !out)
        return report_null(err, "job_info", host ? "`out`" : "the host");
    st = host_job_desc(host, &desc, &own);
    if (!st && copy_sized(out, &desc, sizeof(desc)))
        st = fail(&own, FRIT_INVALID, "no struct_size");
    return report(err, st, &own);
}

/* ---- joining ---- */

static frit_status check_config(const frit_group_config *config, frit_err *err)
{
    if (!config || config->struct_size < FRIT_END_OF(frit_group_config, op_ns))
        return fail(err, FRIT_INVALID,
                    "struct_size of the configuration is not sizeof(frit_group_config)");
    if (config->size < 1 || config->rank >= config->size)
        return fail(err, FRIT_INVALID, "rank %u of %u; ranks are 0..size-1", config->rank,
                    config->size);
    if (config->number > INT64_MAX)
        return fail(err, FRIT_INVALID, "a group's number is below 2^63");
    return FRIT_OK;
}

/* `own` gets an id where the program gives none. */
static frit_status find_id(frit_device *device, const struct plugin *plugin,
                           const frit_group_config *config, struct rank_config *rank,
                           frit_group_id *own, frit_err *err)
{
    rank->id = config->id ? config->id : own;
    if (config->id)
        return FRIT_OK;
    if (config->size > 1)
        return host_job_join(device->config.host, config, rank->join_timeout_ns, own, err);
    return fail_from(err, plugin->collective.group_id(plugin->instance, own, err), "group_id");
}

static frit_status join_followed(struct binding *binding, frit_host *host, struct rank_config *rank,
                                 frit_rank **out, frit_err *err)
{
    struct host_rank *follower;
    frit_status st;

    TRY(host_job_follow(host, rank, &follower, err));
    st = rank_join(binding->stream, rank, out, err);
    host_job_joined(follower, *out, err);
    return st;
}

/* Joins with the calling thread's stream. */
static frit_status join(frit_device *device, const frit_group_config *config, frit_rank **out,
                        frit_err *err)
{
    frit_host *host = device->config.host;
    const struct conf_options *options = conf_options(host->conf);
    struct rank_config rank;
    const struct plugin *plugin;
    struct binding *binding;
    frit_group_id own;

    TRY(check_config(config, err));
    if (thread_is_executing())
        return stream_refuse_driver(err);
    TRY(find_engine(host, config->engine, &plugin, err));
    TRY(binding_current(device, &binding, err));
    rank = (struct rank_config){
        .table = &plugin->collective,
        .instance = plugin->instance,
        .number = config->number,
        .rank = config->rank,
        .size = config->size,
        .join_timeout_ns = config->join_ns ? config->join_ns : (uint64_t)options->dist_connect * ms,
        .timeout_ns = config->op_ns ? config->op_ns : (uint64_t)options->dist_limit * ms,
        .name = config->name ? config->name : "group"};
    TRY(find_id(device, plugin, config, &rank, &own, err));
    if (config->id || config->size == 1)
        return rank_join(binding->stream, &rank, out, err);
    return join_followed(binding, host, &rank, out, err);
}

frit_status frit_group_join(frit_device *device, const frit_group_config *config, frit_rank **out,
                            frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "group_join");
    if (!device || !out)
        return report_null(err, "group_join", device ? "`out`" : "the device");
    st = join(device, config, out, &own);
    if (!st && !open_add(*out, device)) {
        (void)rank_leave(*out, NULL);
        *out = NULL;
        st = fail_memory(&own, sizeof(*out));
    }
    if (st)
        (void)fail_context(&own, "group_join");
    return report(err, st, &own);
}

frit_status frit_group_leave(frit_rank *rank, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "group_leave");
    if (!rank)
        return FRIT_OK;
    if (!open_find(rank, NULL))
        return fail(err, FRIT_INVALID,
                    "group_leave: not a rank: it left before, or its device is closed");
    if (rank->user)
        return fail(err, FRIT_BUSY, "group_leave: the rank has a replica; destroy that first");
    st = rank_leave(rank, &own);
    if (!st)
        (void)open_remove(rank);
    return report(err, st, &own);
}

frit_status frit_group_barrier(frit_rank *rank, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "group_barrier");
    if (!rank)
        return report_null(err, "group_barrier", "the rank");
    if (!open_find(rank, NULL))
        return fail(err, FRIT_INVALID,
                    "group_barrier: not a rank: it left before, or its device is closed");
    st = rank_barrier(rank, &own);
    if (st)
        (void)fail_context(&own, "group_barrier");
    return report(err, st, &own);
}

frit_status frit_group_abort(frit_rank *rank, const char *why)
{
    HOLD_CANCEL;

    if (process_is_barred())
        return FRIT_UNSUPPORTED;
    if (!rank || !open_find(rank, NULL))
        return FRIT_INVALID;
    rank_fail(rank, FRIT_ABORTED, why ? why : "the program aborted the group");
    return FRIT_OK;
}
