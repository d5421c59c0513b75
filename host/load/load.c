/* SPDX-License-Identifier: Apache-2.0 */
/* From a file to an open plugin.  Nothing that a plugin returns is used before it is checked, and a
 * file that was mapped stays mapped whatever it answers. */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "conf/conf.h"
#include "graph/custom.h"
#include "load/driver.h"
#include "load/elf.h"
#include "load/guard.h"
#include "load/inspect.h"
#include "load/library.h"
#include "load/load.h"
#include "load/ops.h"
#include "load/service.h"
#include "load/table.h"

enum { MAX_ID = 40 };

frit_status plugin_refuse(struct plugin *plugin, uint32_t reason, const char *format, ...)
{
    va_list args;

    plugin->reason = reason;
    va_start(args, format);
    vsnprintf(plugin->detail, sizeof(plugin->detail), format, args);
    va_end(args);
    return FRIT_UNSUPPORTED;
}

void plugin_text(frit_str text, char *out, size_t size)
{
    text_clean(text.ptr, text.ptr ? (size_t)text.len : 0, out, size);
}

/* ---- the file ---- */

/* The loader names one library that is missing, in words that mix it with the file's name. */
static void refuse_unloadable(struct plugin *plugin, const struct elf_facts *facts,
                              const char *words)
{
    struct str missing = {0};

    if (library_list_missing(facts, plugin->path, &missing) && missing.text)
        (void)plugin_refuse(plugin, FRIT_REASON_LIBRARY_MISSING, "%s", missing.text);
    else
        (void)plugin_refuse(plugin, FRIT_REASON_LOAD_FAILED, "%s", words);
    str_fini(&missing);
}

/* NULL where the plugin is refused. */
static frit_plugin_entry map_file(struct plugin *plugin, const struct elf_facts *facts)
{
    frit_plugin_entry entry = NULL;
    struct guard guard;
    void *object;

    guard_enter(&guard, plugin, "load");
    object = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    guard_leave(&guard);
    if (!object) {
        char words[sizeof(plugin->detail)];

        snprintf(words, sizeof(words), "%s", dlerror());
        refuse_unloadable(plugin, facts, words);
        return NULL;
    }
    *(void **)(&entry) = dlsym(object, FRIT_PLUGIN_ENTRY); /* a function by contract */
    if (!entry)
        (void)plugin_refuse(plugin, FRIT_REASON_NO_ENTRY, "%s", plugin->path);
    return entry;
}

/* ---- negotiation ---- */

/* The choice must be the smaller of the maxima. */
static frit_status check_range(struct plugin *plugin, const frit_welcome *welcome)
{
    uint32_t high = welcome->abi_max < FRIT_ABI_MAX ? welcome->abi_max : FRIT_ABI_MAX;

    TRY(inspect_abi(plugin, welcome->abi_min, welcome->abi_max, welcome->sanitizer));
    if (welcome->abi_chosen && welcome->abi_chosen != high)
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME,
                             "the plugin chose ABI %u.%u, but its maximum %u.%u and this host's "
                             "%u.%u give %u.%u",
                             welcome->abi_chosen >> 16, welcome->abi_chosen & 0xffff,
                             welcome->abi_max >> 16, welcome->abi_max & 0xffff, FRIT_ABI_MAX >> 16,
                             FRIT_ABI_MAX & 0xffff, high >> 16, high & 0xffff);
    return FRIT_OK;
}

static frit_status negotiate(struct plugin *plugin, frit_plugin_entry entry)
{
    const frit_hello hello = {.struct_size = sizeof(hello),
                              .magic = FRIT_HELLO_MAGIC,
                              .abi_min = FRIT_ABI_MIN,
                              .abi_max = FRIT_ABI_MAX,
                              .sanitizer = FRIT_SANITIZER};
    frit_welcome welcome = {.struct_size = sizeof(welcome)};
    struct guard guard;
    int32_t status;

    guard_enter(&guard, plugin, "entry");
    status = entry(&hello, &welcome);
    guard_leave(&guard);
    if (welcome.magic != FRIT_WELCOME_MAGIC)
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME,
                             "the entry answered with magic 0x%08" PRIx32 " and status %s",
                             welcome.magic, status_name(status));
    if (!FRIT_HAS(&welcome, frit_welcome, plugin))
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME,
                             "the entry answered with %" PRIu32 " bytes, not %zu",
                             welcome.struct_size, sizeof(welcome));
    TRY(check_range(plugin, &welcome));
    if (status > 0)
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME,
                             "the entry returned %" PRId32 ", which is not a status", status);
    if (status < 0 || !welcome.abi_chosen)
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME,
                             "the entry refused (%s) although the ABI ranges meet",
                             status_name(status));
    if (!welcome.plugin)
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME, "the entry gave no plugin");
    plugin->root = welcome.plugin;
    return FRIT_OK;
}

/* ---- who it is ---- */

static bool id_is_valid(frit_str id)
{
    if (!id.ptr || id.len == 0 || id.len > MAX_ID || id.ptr[0] == '.' || id.ptr[0] == '-')
        return false;
    for (uint64_t i = 0; i < id.len; i++) {
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", id.ptr[i]) || !id.ptr[i])
            return false;
    }
    return true;
}

static frit_status check_root(struct plugin *plugin)
{
    const frit_plugin *root = plugin->root;

    if (!FRIT_HAS(root, frit_plugin, get_interface))
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "the plugin's table has %" PRIu32 " bytes, needs %u",
                             root->struct_size, FRIT_END_OF(frit_plugin, get_interface));
    if (!root->open || !root->close || !root->get_interface)
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE, "the plugin's slot '%s' is NULL",
                             !root->open    ? "open"
                             : !root->close ? "close"
                                            : "get_interface");
    if (!id_is_valid(root->id)) {
        char id[MAX_ID + 8];

        plugin_text(root->id, id, sizeof(id));
        return plugin_refuse(
            plugin, FRIT_REASON_BAD_ID,
            "'%s' is not 1 to %d of a-z, 0-9, '.', '-' with a letter or digit first", id, MAX_ID);
    }
    plugin_text(root->id, plugin->id, sizeof(plugin->id));
    plugin_text(root->version, plugin->version, sizeof(plugin->version));
    return FRIT_OK;
}

static frit_status check_enabled(const struct conf *conf, struct plugin *plugin)
{
    const struct conf_plugin *section = conf_plugin_find(conf, str_of(plugin->id));

    return section && !section->enabled
               ? plugin_refuse(plugin, FRIT_REASON_DISABLED, "%s", section->origin)
               : FRIT_OK;
}

/* The loaded plugin before this one that has its id, or its driver name. */
static const struct plugin *taken_by(const struct registry *registry, const struct plugin *plugin)
{
    for (const struct plugin *other = registry->plugins; other < plugin; other++) {
        if (other->reason)
            continue;
        if (strcmp(other->id, plugin->id) == 0)
            return other;
        if (plugin->driver[0] && strcmp(other->driver, plugin->driver) == 0)
            return other;
    }
    return NULL;
}

static frit_status check_place(struct registry *registry, const struct candidate *candidate,
                               struct plugin *plugin)
{
    const struct conf_plugin *section = conf_plugin_find(registry->conf, str_of(plugin->id));
    const struct plugin *other;

    TRY(check_enabled(registry->conf, plugin));
    if (candidate->section && strcmp(candidate->section->id, plugin->id) != 0)
        return plugin_refuse(plugin, FRIT_REASON_BAD_ID,
                             "%s: the file is plugin '%s', its section is [plugin.%s]",
                             candidate->section->origin, plugin->id, candidate->section->id);
    if (section && section->has_priority)
        plugin->priority = section->priority;
    other = taken_by(registry, plugin);
    if (other)
        return plugin_refuse(plugin, FRIT_REASON_SHADOWED, "id '%s' is taken by %s", plugin->id,
                             other->path);
    return FRIT_OK;
}

/* ---- opening ---- */

static frit_status open_instance(struct registry *registry, struct plugin *plugin)
{
    const struct conf_plugin *section = conf_plugin_find(registry->conf, str_of(plugin->id));
    const struct conf_options *options = conf_options(registry->conf);
    const struct lent lent = {.threads = options->threads,
                              .jobs = registry->jobs[REGISTRY_YIELDING],
                              .artefacts = conf_artefacts(registry->conf),
                              .artefact_bytes = (uint64_t)options->artefact_bytes};
    struct guard guard;
    frit_err err = ERR_INIT;
    frit_status status;

    TRY(service_create(&registry->arena, plugin, section, &lent, &plugin->service));
    guard_enter(&guard, plugin, "open");
    status = fail_from(
        &err, plugin->root->open(service_root(plugin->service), &plugin->instance, &err), "open");
    guard_leave(&guard);
    if (status) {
        err.text[sizeof(err.text) - 1] = '\0';
        return plugin_refuse(plugin, FRIT_REASON_OPEN_FAILED, "%s%s%s", status_name(status),
                             err.text[0] ? ": " : "", err.text);
    }
    plugin->opened = true;
    return FRIT_OK;
}

/* A plugin's table, NULL if it does not offer it. */
static const void *table_of(const struct plugin *plugin, const char *id)
{
    return plugin->root->get_interface(plugin->instance, str_of(id));
}

static frit_status take_driver(struct registry *registry, struct plugin *plugin,
                               const void *backend)
{
    const void *native = table_of(plugin, FRIT_NATIVE_TABLE);
    const void *extmem = table_of(plugin, FRIT_EXTMEM_TABLE);
    const void *capture = table_of(plugin, FRIT_CAPTURE_TABLE);
    const void *profile = table_of(plugin, FRIT_PROFILE_TABLE);
    const struct plugin *other;

    TRY(driver_take(plugin, backend));
    if (native)
        TRY(table_take_native(plugin, native));
    if (extmem)
        TRY(table_take_extmem(plugin, extmem));
    if (capture)
        TRY(table_take_capture(plugin, capture));
    if (profile)
        TRY(table_take_profile(plugin, profile));
    other = taken_by(registry, plugin);
    if (other)
        return plugin_refuse(plugin, FRIT_REASON_SHADOWED,
                             "driver name '%s' is taken by plugin '%s'", plugin->driver, other->id);
    return FRIT_OK;
}

/* Adds the runtimes that its note names if none of them is installed: it opens the one that is
 * there. Its table does not say: an engine opens its library when the first group is made. */
static void add_missing_runtimes(struct plugin *plugin, const struct elf_facts *facts)
{
    const size_t used = strlen(plugin->driver_detail);
    char name[sizeof(facts->note.runtimes)], names[2 * sizeof(name)], path[PATH_MAX];
    const char *left = facts->note.runtimes;
    size_t length = 0;

    for (int read; sscanf(left, "%95s%n", name, &read) == 1; left += read) {
        if (library_find(name, facts->runpath, plugin->path, path, sizeof(path)))
            return;
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                                   length ? " or " : "", name);
    }
    if (length)
        snprintf(plugin->driver_detail + used, sizeof(plugin->driver_detail) - used,
                 ", but %s is not installed", names);
}

static frit_status take_tables(struct registry *registry, struct plugin *plugin,
                               const struct elf_facts *facts)
{
    const void *backend = table_of(plugin, FRIT_BACKEND);
    const void *fusers = table_of(plugin, FRIT_FUSER_TABLE);
    const void *ops = table_of(plugin, FRIT_OPS_TABLE);
    const void *collective = table_of(plugin, FRIT_COLLECTIVE_TABLE);

    if (!backend && !fusers && !ops && !collective)
        return plugin_refuse(plugin, FRIT_REASON_NO_INTERFACE, "%s", "");
    if (fusers)
        TRY(table_take_fusers(plugin, fusers));
    if (collective)
        TRY(table_take_collective(plugin, collective));
    if (backend)
        TRY(take_driver(registry, plugin, backend));
    else
        snprintf(plugin->driver_detail, sizeof(plugin->driver_detail), "%s",
                 fusers && ops ? "offers fusers and ops"
                 : fusers      ? "offers fusers"
                 : ops         ? "offers ops"
                 : collective  ? "offers a collective engine"
                               : "offers neither driver nor fusers nor ops");
    if (collective && !backend)
        add_missing_runtimes(plugin, facts);
    return ops ? ops_take(&registry->arena, plugin, ops) : FRIT_OK;
}

void plugin_close(struct plugin *plugin)
{
    struct guard guard;

    service_end_tasks(plugin->service);
    if (plugin->opened) {
        guard_enter(&guard, plugin, "close");
        plugin->root->close(plugin->instance);
        guard_leave(&guard);
    }
    service_end(plugin->service);
    plugin->service = NULL;
    plugin->opened = false;
    plugin->instance = NULL;
}

/* Where another library of the process wants a symbol of such a name, either may get the other's.
 */
static void warn_of_exports(const struct plugin *plugin, const struct elf_facts *facts)
{
    if (facts->n_extra)
        log_write(FRIT_LOG_WARN, "load",
                  "plugin %s exports %" PRIu32
                  " symbols beside its entry, such as '%s': link it by frit_plugin() of CMake, or "
                  "with a version script",
                  plugin->path, facts->n_exports - facts->has_entry, facts->extra[0]);
}

frit_status plugin_inspect(const struct conf *conf, const struct candidate *candidate,
                           struct plugin *plugin, struct elf_facts *facts)
{
    plugin->path = candidate->path;
    plugin->origin = candidate->origin;
    if (candidate->section)
        plugin_text(str_of(candidate->section->id), plugin->id, sizeof(plugin->id));
    if (candidate->section && !candidate->section->enabled)
        return plugin_refuse(plugin, FRIT_REASON_DISABLED, "%s", candidate->origin);
    plugin->id[0] = '\0';
    plugin->reason = elf_read(plugin->path, facts, plugin->detail, sizeof(plugin->detail));
    if (plugin->reason)
        return FRIT_UNSUPPORTED;
    snprintf(plugin->build_id, sizeof(plugin->build_id), "%s", facts->identity.build_id);
    TRY(inspect_file(plugin, facts));
    TRY(check_enabled(conf, plugin));
    warn_of_exports(plugin, facts);
    return FRIT_OK;
}

static frit_status load_stages(struct registry *registry, const struct candidate *candidate,
                               struct plugin *plugin, const struct elf_facts *facts)
{
    frit_plugin_entry entry = map_file(plugin, facts);

    if (!entry)
        return FRIT_UNSUPPORTED;
    TRY(negotiate(plugin, entry));
    TRY(check_root(plugin));
    TRY(check_place(registry, candidate, plugin));
    TRY(open_instance(registry, plugin));
    return take_tables(registry, plugin, facts);
}

frit_status plugin_load(struct registry *registry, const struct candidate *candidate,
                        struct plugin *plugin, const struct elf_facts *facts)
{
    frit_status status = load_stages(registry, candidate, plugin, facts);

    if (!status)
        custom_note_plugin(plugin->id);
    if (status) {
        plugin_close(plugin);
        plugin->backend = (frit_backend){0};
        plugin->fusers = (frit_fuser_table){0};
        plugin->native = (frit_native_table){0};
        plugin->extmem = (frit_extmem_table){0};
        plugin->capture = (frit_capture_table){0};
        plugin->profile = (frit_profile_table){0};
        plugin->collective = (frit_collective_table){0};
        plugin->n_ops = 0;
        plugin->driver[0] = '\0';
        plugin->n_devices = 0;
    }
    return status;
}
