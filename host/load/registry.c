/* SPDX-License-Identifier: Apache-2.0 */
/* Loads every candidate in turn.  One that fails leaves a reason and changes nothing for the
 * others. */
#include "load/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/conf.h"
#include "exec/job_queue.h"
#include "exec/team.h"
#include "load/breadcrumb.h"
#include "load/device.h"
#include "load/elf.h"
#include "load/find.h"
#include "load/load.h"
#include "load/probe.h"
#include "load/quarantine.h"
#include "load/reason.h"

/* A tenth of what a thread of the program gets: the scheduler weighs ten steps by a factor of 9.3.
 * With less a compile would hold its locks for long where all processors compute. */
enum { YIELDING_NICENESS = 10 };

/* ---- plugins ---- */

static void log_plugin(const struct plugin *plugin)
{
    uint32_t level = plugin->reason == FRIT_REASON_NONE       ? FRIT_LOG_INFO
                     : plugin->reason == FRIT_REASON_DISABLED ? FRIT_LOG_DEBUG
                     : plugin->reason == FRIT_REASON_SHADOWED ? FRIT_LOG_INFO
                                                              : FRIT_LOG_WARN;

    if (plugin->reason)
        log_write(level, "load", "plugin %s (%s) is not used: %s: %s",
                  plugin->path[0] ? plugin->path : plugin->id, plugin->origin,
                  reason_name(plugin->reason),
                  plugin->detail[0] ? plugin->detail : reason_meaning(plugin->reason));
    else if (!plugin->driver[0])
        log_write(level, "load", "plugin %s %s from %s: %s", plugin->id, plugin->version,
                  plugin->path, plugin->driver_detail);
    else
        log_write(level, "load", "plugin %s %s from %s: driver %s%s", plugin->id, plugin->version,
                  plugin->path, plugin->driver, plugin->fusers.push ? " and fusers" : "");
}

/* A plugin entry for each section that names no library and met no plugin. */
static void add_missing(struct registry *registry)
{
    for (uint32_t i = 0; i < conf_n_plugins(registry->conf); i++) {
        const struct conf_plugin *section = conf_plugin_at(registry->conf, i);
        struct plugin *missing = &registry->plugins[registry->n_plugins];
        bool found = section->library != NULL;

        for (uint32_t k = 0; !found && k < registry->n_plugins; k++)
            found = strcmp(registry->plugins[k].id, section->id) == 0;
        if (found)
            continue;
        missing->path = "";
        missing->origin = section->origin;
        plugin_text(str_of(section->id), missing->id, sizeof(missing->id));
        if (section->enabled)
            (void)plugin_refuse(missing, FRIT_REASON_NOT_FOUND,
                                "no file in the plugin directories has the id of [plugin.%s]",
                                section->id);
        else
            (void)plugin_refuse(missing, FRIT_REASON_DISABLED, "%s", section->origin);
        registry->n_plugins++;
        log_plugin(missing);
    }
}

/* Those that may be loaded, before any is: a probe may crash, and does so elsewhere. */
static void probe_candidates(struct registry *registry, const struct elf_facts *facts)
{
    struct probe_subject *subjects = calloc(registry->n_candidates + 1u, sizeof(*subjects));
    uint32_t n = 0;

    for (uint32_t i = 0; subjects && i < registry->n_candidates; i++)
        if (!registry->plugins[i].reason)
            subjects[n++] = (struct probe_subject){&registry->plugins[i], &facts[i].identity,
                                                   registry->candidates[i].section};
    if (n)
        probe_all(registry->conf, subjects, n);
    free(subjects);
}

static frit_status inspect(struct registry *registry, uint32_t i, struct elf_facts *facts)
{
    struct plugin *plugin = &registry->plugins[i];

    TRY(plugin_inspect(registry->conf, &registry->candidates[i], plugin, facts));
    return quarantine_check(&registry->arena, registry->conf, &facts->identity, plugin);
}

static frit_status load_candidates(struct registry *registry, struct elf_facts *facts)
{
    quarantine_collect(registry->conf);
    for (uint32_t i = 0; i < registry->n_candidates; i++)
        if (inspect(registry, i, &facts[i]) == FRIT_NO_HOST_MEMORY)
            return FRIT_NO_HOST_MEMORY;
    probe_candidates(registry, facts);
    for (uint32_t i = 0; i < registry->n_candidates; i++) {
        struct plugin *plugin = &registry->plugins[registry->n_plugins++];

        if (!plugin->reason && plugin_load(registry, &registry->candidates[i], plugin, &facts[i]) ==
                                   FRIT_NO_HOST_MEMORY)
            return FRIT_NO_HOST_MEMORY;
        log_plugin(plugin);
    }
    return FRIT_OK;
}

static frit_status load_all(struct registry *registry)
{
    size_t capacity = (size_t)registry->n_candidates + conf_n_plugins(registry->conf);
    struct elf_facts *facts;
    frit_status status;

    registry->plugins = arena_array(&registry->arena, capacity + 1, sizeof(*registry->plugins));
    facts = calloc(registry->n_candidates + 1u, sizeof(*facts));
    status = registry->plugins && facts ? load_candidates(registry, facts) : FRIT_NO_HOST_MEMORY;
    free(facts);
    if (!status)
        add_missing(registry);
    return status;
}

/* A section marked critical wants one plugin of its id that is loaded and, if it is a driver, has
 * devices. */
static frit_status check_critical(struct registry *registry, const struct conf_plugin *section,
                                  frit_err *err)
{
    const struct plugin *worst = NULL;
    uint32_t reason;

    for (uint32_t i = 0; i < registry->n_plugins; i++) {
        struct plugin *plugin = &registry->plugins[i];
        bool named = strcmp(plugin->origin, section->origin) == 0;

        if (!named && strcmp(plugin->id, section->id) != 0)
            continue;
        if (enumerate_plugin(registry, plugin))
            return fail(err, FRIT_NO_HOST_MEMORY, "no host memory to list devices");
        if (!plugin->reason && !plugin->driver_reason)
            return FRIT_OK;
        worst = worst ? worst : plugin;
    }
    if (!worst)
        return FRIT_OK;
    reason = worst->reason ? worst->reason : worst->driver_reason;
    return fail(err, FRIT_UNSUPPORTED, "%s: plugin '%s' is critical and not usable: %s: %s",
                section->origin, section->id, reason_name(reason),
                worst->reason && worst->detail[0]           ? worst->detail
                : !worst->reason && worst->driver_detail[0] ? worst->driver_detail
                                                            : reason_meaning(reason));
}

/* ---- the registry ---- */

/* `paths` NULL: candidates are searched. */
static frit_status fill(struct registry *registry, const char *const *paths, uint32_t n,
                        frit_err *err)
{
    frit_status status = paths ? find_files(registry, paths, n) : find_candidates(registry);

    if (status || load_all(registry))
        return fail(err, FRIT_NO_HOST_MEMORY, "no host memory to load plugins");
    for (uint32_t i = 0; i < conf_n_plugins(registry->conf); i++) {
        const struct conf_plugin *section = conf_plugin_at(registry->conf, i);

        if (section->critical && section->enabled)
            TRY(check_critical(registry, section, err));
    }
    return FRIT_OK;
}

static frit_status create_queues(struct registry *registry, frit_err *err)
{
    static const int niceness[REGISTRY_JOBS] = {[REGISTRY_YIELDING] = YIELDING_NICENESS};
    uint32_t limit = job_queue_limit(team_processors());

    for (uint32_t i = 0; i < REGISTRY_JOBS; i++)
        TRY(job_queue_create(limit, niceness[i], &registry->jobs[i], err));
    return FRIT_OK;
}

static frit_status open_registry(const struct conf *conf, const char *const *paths, uint32_t n,
                                 struct registry **out, frit_err *err)
{
    struct registry *registry = calloc(1, sizeof(*registry));
    frit_status status;

    *out = NULL;
    if (!registry)
        return fail_memory(err, sizeof(*registry));
    registry->conf = conf;
    pthread_mutex_init(&registry->lock, NULL);
    team_join();
    breadcrumb_start(conf_artefacts(conf));
    status = create_queues(registry, err);
    if (!status)
        status = fill(registry, paths, n, err);
    if (status) {
        registry_close(registry);
        return status;
    }
    *out = registry;
    return FRIT_OK;
}

frit_status registry_open(const struct conf *conf, struct registry **out, frit_err *err)
{
    return open_registry(conf, NULL, 0, out, err);
}

frit_status registry_open_files(const struct conf *conf, const char *const *paths, uint32_t n,
                                struct registry **out, frit_err *err)
{
    return open_registry(conf, paths, n, out, err);
}

void registry_close(struct registry *registry)
{
    if (!registry)
        return;
    for (uint32_t i = registry->n_plugins; i > 0; i--)
        plugin_close(&registry->plugins[i - 1]);
    for (uint32_t i = 0; i < REGISTRY_JOBS; i++)
        job_queue_destroy(registry->jobs[i]);
    breadcrumb_stop();
    team_leave();
    arena_fini(&registry->arena);
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

struct job_queue *registry_jobs(const struct registry *registry, enum registry_jobs which)
{
    return registry->jobs[which];
}

uint32_t registry_n_plugins(const struct registry *registry)
{
    return registry->n_plugins;
}

const struct plugin *registry_plugin_at(const struct registry *registry, uint32_t index)
{
    return index < registry->n_plugins ? &registry->plugins[index] : NULL;
}

const struct search_dir *registry_dir_at(const struct registry *registry, uint32_t index)
{
    return index < registry->n_dirs ? &registry->dirs[index] : NULL;
}

const struct conf_plugin *registry_section(const struct registry *registry,
                                           const struct plugin *plugin)
{
    return conf_plugin_find(registry->conf, str_of(plugin->id));
}

bool registry_has_op(const struct registry *registry, uint32_t op)
{
    for (uint32_t i = 0; i < registry->n_plugins; i++) {
        const struct plugin *plugin = &registry->plugins[i];

        for (uint32_t k = 0; k < plugin->n_ops; k++) {
            if (plugin->ops[k].id == op)
                return true;
        }
    }
    return false;
}

struct plugin *driver_find(const struct registry *registry, const char *driver)
{
    for (uint32_t i = 0; i < registry->n_plugins; i++) {
        if (!registry->plugins[i].reason && strcmp(registry->plugins[i].driver, driver) == 0)
            return &registry->plugins[i];
    }
    return NULL;
}

/* Whether the section names the file of a plugin whose id is unknown, since it failed earlier. */
static bool is_named_by(const struct plugin *plugin, const struct conf_plugin *section)
{
    return section && section->library && !plugin->id[0] &&
           strcmp(plugin->origin, section->origin) == 0;
}

const struct plugin *plugin_next(const struct registry *registry, const char *name, uint32_t *index)
{
    const struct conf_plugin *section = conf_plugin_find(registry->conf, str_of(name));
    char file[96];

    snprintf(file, sizeof(file), "libfrit-%s.so", name);
    while (*index < registry->n_plugins) {
        const struct plugin *plugin = &registry->plugins[(*index)++];
        const char *slash = strrchr(plugin->path, '/');

        if (strcmp(plugin->id, name) == 0 || is_named_by(plugin, section) ||
            strcmp(slash ? slash + 1 : plugin->path, file) == 0)
            return plugin;
    }
    return NULL;
}

frit_status registry_forgive(const struct registry *registry, const char *name, frit_err *err)
{
    const struct plugin *plugin;
    uint32_t index = 0, found = 0, forgiven = 0;

    while ((plugin = plugin_next(registry, name, &index)) != NULL) {
        frit_err detail = ERR_INIT;
        frit_status status = plugin->identity
                                 ? quarantine_forgive(registry->conf, plugin->identity, &detail)
                                 : FRIT_INVALID;

        found++;
        forgiven += !status;
        if (status && status != FRIT_INVALID)
            return fail(err, status, "plugin %s: %s", plugin->path, detail.text);
    }
    if (!found)
        return fail(err, FRIT_INVALID, "there is no plugin '%.100s'", name);
    return forgiven ? FRIT_OK
                    : fail(err, FRIT_INVALID, "plugin '%.100s': no process died in it", name);
}
