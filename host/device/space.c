/* SPDX-License-Identifier: Apache-2.0 */
#include "device/space.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "conf/conf.h"
#include "device/device.h"
#include "exec/team.h"
#include "load/registry.h"
#include "search/fuser.h"

enum { DECISIONS = 1 /* another number makes all that was measured void */ };

static bool add_file(struct str *text, const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return false;
    str_addf(text, " %s %lld %lld.%09ld\n", path, (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    return true;
}

static bool add_host(struct str *text)
{
    static const char here; /* lies in the file that this code came from */
    char path[PATH_MAX];
    Dl_info info;

    str_addf(text, "frit %s abi %x", FRIT_VERSION, (unsigned)FRIT_ABI_MAX);
    return dladdr(&here, &info) && info.dli_fname && realpath(info.dli_fname, path) &&
           add_file(text, path);
}

/* ---- plugins ---- */

static void add_options(struct str *text, const struct registry *registry,
                        const struct plugin *plugin)
{
    const struct conf_plugin *section = registry_section(registry, plugin);

    for (uint32_t i = 0; section && i < section->n_options; i++)
        str_addf(text, "option %s = %s\n", section->options[i].key, section->options[i].value);
}

/* By its file, wherever the same build lies. */
static bool add_build(struct str *text, const struct plugin *plugin)
{
    str_addf(text, "plugin %s %s", plugin->id, plugin->version);
    if (!plugin->build_id[0])
        return add_file(text, plugin->path);
    str_addf(text, " %s\n", plugin->build_id);
    return true;
}

static bool add_path(struct str *text, const struct plugin *plugin)
{
    str_addf(text, "plugin %s %s", plugin->id, plugin->version);
    return add_file(text, plugin->path);
}

static bool has_fusers(const struct fusers *fusers, const struct plugin *plugin)
{
    for (uint32_t i = 0; i < fusers->count; i++) {
        if (strcmp(fusers->list[i].plugin, plugin->id) == 0)
            return true;
    }
    return false;
}

/* Those whose programs the device may run. */
static bool add_plugins(struct str *text, const frit_device *device,
                        bool (*add)(struct str *text, const struct plugin *plugin))
{
    const struct registry *registry = device->config.registry;

    for (uint32_t i = 0; i < registry_n_plugins(registry); i++) {
        const struct plugin *plugin = registry_plugin_at(registry, i);

        if (plugin != device->entry->plugin && !plugin->n_ops &&
            !has_fusers(device->fusers, plugin))
            continue;
        if (!add(text, plugin))
            return false;
        add_options(text, registry, plugin);
    }
    return true;
}

/* ---- plans ---- */

static void add_device(struct str *text, const frit_device *device)
{
    const frit_device_info *info = device->info;
    const frit_str texts[] = {info->stable_id, info->fingerprint, info->driver_version,
                              info->runtime_version};

    str_addf(text, "device %s", device->name);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        str_addf(text, " | %.*s", (int)texts[i].len, texts[i].ptr);
    str_addf(text, "\nfusion %d blocks %u decompose %d\n", device->config.fusion,
             device->config.max_blocks, device->config.decompose);
    for (uint32_t i = 0; i < device->fusers->count; i++) {
        const struct fuser *fuser = &device->fusers->list[i];

        str_addf(text, "fuser %s/%s %u\n", fuser->plugin, fuser->name, fuser->version);
    }
}

bool space_of_plans(const frit_device *device, struct str *out)
{
    if (!add_host(out) || !add_plugins(out, device, add_path))
        return false;
    add_device(out, device);
    return true;
}

/* ---- decisions ---- */

static void add_line(struct str *text, const char *word, frit_str value)
{
    str_addf(text, "%s %.*s\n", word, (int)value.len, value.ptr);
}

static void begin_decisions(struct str *out)
{
    str_addf(out, "decisions %d abi %x\n", DECISIONS, (unsigned)FRIT_ABI_MAX);
}

static void add_kind(struct str *out, const frit_device_info *info, uint32_t threads)
{
    add_line(out, "name", info->name);
    add_line(out, "fingerprint", info->fingerprint);
    add_line(out, "driver", info->driver_version);
    add_line(out, "runtime", info->runtime_version);
    str_addf(out, "cache %llu\n", (unsigned long long)info->cache_bytes);
    if (info->type == FRIT_DEVICE_PROCESSOR || info->type == FRIT_DEVICE_SOFTWARE)
        str_addf(out, "threads %u\n", (unsigned)(threads ? threads : team_processors()));
}

bool space_of_kind(const frit_device *device, struct str *out)
{
    begin_decisions(out);
    if (!add_plugins(out, device, add_build))
        return false;
    add_kind(out, device->info, device->config.threads);
    return true;
}

bool space_of_decisions(const frit_device *device, struct str *out)
{
    if (!space_of_kind(device, out))
        return false;
    add_line(out, "device", device->info->stable_id);
    return true;
}

/* Moves `*at` behind the text if it stands there.  Frees the text. */
static bool skip(const char **at, struct str *text)
{
    const bool stands =
        text->length && !text->failed && strncmp(*at, text->text, text->length) == 0;

    if (stands)
        *at += text->length;
    str_fini(text);
    return stands;
}

/* Moves `*at` behind the plugins; false: the device's own is not among them. */
static bool skip_plugins(const char **at, const struct space_subject *subject)
{
    bool has_own = false;

    for (uint32_t i = 0; i < registry_n_plugins(subject->registry); i++) {
        const struct plugin *plugin = registry_plugin_at(subject->registry, i);
        struct str text = {0};

        if (add_build(&text, plugin)) {
            add_options(&text, subject->registry, plugin);
            has_own |= skip(at, &text) && plugin == subject->entry->plugin;
        }
        str_fini(&text);
    }
    return has_own;
}

size_t space_fit_decisions(const struct space_subject *subject, const char *space)
{
    const char *at = space;
    struct str text = {0};

    begin_decisions(&text);
    if (!skip(&at, &text) || !skip_plugins(&at, subject))
        return 0;
    add_kind(&text, subject->entry->info, subject->threads);
    add_line(&text, "device", subject->entry->info->stable_id);
    return skip(&at, &text) && !*at ? strlen(space) : 0;
}
