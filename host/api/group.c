/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of groups. */
#include <string.h>

#include "api/copy_sized.h"
#include "api/host.h"
#include "api/open.h"
#include "api/report.h"
#include "base/fail.h"
#include "conf/conf.h"
#include "device/device.h"
#include "load/registry.h"
#include "record/binding.h"
#include "run/drain.h"
#include "run/rank.h"

static const uint64_t default_join_ns = 30000000000u;
static const uint64_t default_op_ns = 60000000000u;

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

static frit_status job_of(const frit_host *host, frit_job_desc *out, frit_err *err)
{
    const struct conf_options *options = conf_options(host->conf);

    *out = (frit_job_desc){
        .rank = (uint32_t)options->dist_rank,
        .size = (uint32_t)options->dist_size,
        .store = strcmp(options->dist_store, "none") == 0 ? NULL : options->dist_store,
    };
    return out->rank < out->size ? FRIT_OK
                                 : fail(err, FRIT_INVALID,
                                        "[dist] rank %u of size %u; ranks are 0..size-1; `frit "
                                        "doctor config` says where they are from",
                                        out->rank, out->size);
}

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
    st = job_of(host, &desc, &own);
    if (!st && copy_sized(out, &desc, sizeof(desc)))
        st = fail(&own, FRIT_INVALID, "no struct_size");
    return report(err, st, &own);
}

/* The same on all processes of the job, where each joins its groups in the same order. */
static void make_job_id(frit_host *host, const frit_group_config *config, frit_group_id *out)
{
    uint64_t words[3] = {config->number, config->size};

    pthread_mutex_lock(&host->lock);
    words[2] = ++host->n_job_groups;
    pthread_mutex_unlock(&host->lock);
    *out = (frit_group_id){"frit job"};
    memcpy(out->bytes + 16, words, sizeof(words));
}

static bool is_whole_job(const frit_host *host, const frit_group_config *config)
{
    frit_job_desc job;

    return job_of(host, &job, NULL) == FRIT_OK && config->rank == job.rank &&
           config->size == job.size;
}

/* ---- joining ---- */

static frit_status make_id(frit_host *host, const struct plugin *plugin,
                           const frit_group_config *config, frit_group_id *out, frit_err *err)
{
    if (config->size == 1)
        return fail_from(err, plugin->collective.group_id(plugin->instance, out, err), "group_id");
    if (!is_whole_job(host, config))
        return fail(err, FRIT_INVALID,
                    "no id; frit_group_id_create makes one, which all ranks are given");
    make_job_id(host, config, out);
    return FRIT_OK;
}

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

/* Joins with the calling thread's stream. */
static frit_status join(frit_device *device, const frit_group_config *config, frit_rank **out,
                        frit_err *err)
{
    struct rank_config rank = {0};
    const struct plugin *plugin;
    struct binding *binding;
    frit_group_id own;

    TRY(check_config(config, err));
    if (thread_is_executing())
        return stream_refuse_driver(err);
    TRY(find_engine(device->config.host, config->engine, &plugin, err));
    TRY(binding_current(device, &binding, err));
    if (!config->id)
        TRY(make_id(device->config.host, plugin, config, &own, err));
    rank =
        (struct rank_config){.table = &plugin->collective,
                             .instance = plugin->instance,
                             .id = config->id ? config->id : &own,
                             .number = config->number,
                             .rank = config->rank,
                             .size = config->size,
                             .join_timeout_ns = config->join_ns ? config->join_ns : default_join_ns,
                             .timeout_ns = config->op_ns ? config->op_ns : default_op_ns,
                             .name = config->name ? config->name : "group"};
    return rank_join(binding->stream, &rank, out, err);
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
    rank_abort(rank, FRIT_ABORTED, why ? why : "the program aborted the group");
    return FRIT_OK;
}
