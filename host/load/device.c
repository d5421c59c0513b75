/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: a driver's are enumerated when they are first needed; the registry keeps those of
 * all drivers in one order.  Entries never move; the list of pointers to them is made anew with
 * each driver. */
#include "load/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "load/driver.h"
#include "load/load.h"

/* ---- order ---- */

static int compare_devices(const void *left, const void *right)
{
    const struct device_entry *a = *(const struct device_entry *const *)left;
    const struct device_entry *b = *(const struct device_entry *const *)right;
    uint32_t a_type = a->info->type ? a->info->type : UINT32_MAX;
    uint32_t b_type = b->info->type ? b->info->type : UINT32_MAX;
    int by_id;

    if (a_type != b_type)
        return a_type < b_type ? -1 : 1;
    if (a->plugin->priority != b->plugin->priority)
        return a->plugin->priority > b->plugin->priority ? -1 : 1;
    by_id = strcmp(a->plugin->id, b->plugin->id);
    if (by_id)
        return by_id;
    return a->info->index < b->info->index ? -1 : a->info->index > b->info->index;
}

/* ---- enumerating ---- */

static frit_status list_devices(struct registry *registry, struct plugin *plugin)
{
    size_t total;
    const struct device_entry **all;

    if (driver_list(&registry->arena, plugin))
        return FRIT_NO_HOST_MEMORY;
    total = (size_t)registry->n_devices + plugin->n_devices;
    all = arena_array(&registry->arena, total + 1, sizeof(*all));
    plugin->entries =
        arena_array(&registry->arena, (size_t)plugin->n_devices + 1, sizeof(*plugin->entries));
    if (!all || !plugin->entries)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < registry->n_devices; i++)
        all[i] = registry->devices[i];
    for (uint32_t i = 0; i < plugin->n_devices; i++) {
        struct device_entry *device = &plugin->entries[i];

        device->plugin = plugin;
        device->info = &plugin->devices[i];
        snprintf(device->name, sizeof(device->name), "%s:%" PRIu32, plugin->driver, i);
        all[registry->n_devices + i] = device;
    }
    qsort(all, total, sizeof(*all), compare_devices);
    registry->devices = all;
    registry->n_devices = (uint32_t)total;
    return FRIT_OK;
}

frit_status enumerate_plugin(struct registry *registry, struct plugin *plugin)
{
    if (plugin->enumerated || plugin->reason || !plugin->driver[0])
        return FRIT_OK;
    if (list_devices(registry, plugin)) {
        plugin->n_devices = 0;
        return FRIT_NO_HOST_MEMORY;
    }
    plugin->enumerated = true;
    log_write(FRIT_LOG_INFO, "load", "driver %s has %" PRIu32 " devices%s%s", plugin->driver,
              plugin->n_devices, plugin->driver_detail[0] ? ": " : "", plugin->driver_detail);
    return FRIT_OK;
}

frit_status enumerate_all(struct registry *registry)
{
    for (uint32_t i = 0; i < registry->n_plugins; i++) {
        frit_status status = enumerate_plugin(registry, &registry->plugins[i]);

        if (status)
            return status;
    }
    return FRIT_OK;
}

frit_status registry_enumerate(struct registry *registry, uint32_t index)
{
    frit_status status = FRIT_OK;

    pthread_mutex_lock(&registry->lock);
    if (index < registry->n_plugins)
        status = enumerate_plugin(registry, &registry->plugins[index]);
    pthread_mutex_unlock(&registry->lock);
    return status;
}

/* ---- what is there ---- */

uint32_t registry_n_devices(struct registry *registry)
{
    uint32_t n;

    pthread_mutex_lock(&registry->lock);
    (void)enumerate_all(registry);
    n = registry->n_devices;
    pthread_mutex_unlock(&registry->lock);
    return n;
}

const struct device_entry *registry_device_at(struct registry *registry, uint32_t index)
{
    const struct device_entry *device = NULL;

    pthread_mutex_lock(&registry->lock);
    (void)enumerate_all(registry);
    if (index < registry->n_devices)
        device = registry->devices[index];
    pthread_mutex_unlock(&registry->lock);
    return device;
}

/* Earlier copies stay, since somebody may have them. */
const char *registry_keep_compute(struct registry *registry, uint32_t index, frit_str text)
{
    char clean[256];
    struct device_entry *device;
    const char *kept;

    plugin_text(text, clean, sizeof(clean));
    pthread_mutex_lock(&registry->lock);
    device = &registry->plugins[registry->devices[index]->plugin - registry->plugins]
                  .entries[registry->devices[index]->info->index];
    if (!device->compute || strcmp(device->compute, clean) != 0)
        device->compute = arena_text(&registry->arena, clean, strlen(clean));
    kept = device->compute;
    pthread_mutex_unlock(&registry->lock);
    return kept;
}

/* The driver after `last` (NULL: the first one) by ascending priority, then plugin id. */
static struct plugin *next_fallback_driver(const struct registry *registry,
                                           const struct plugin *last)
{
    struct plugin *next = NULL;

    for (uint32_t i = 0; i < registry->n_plugins; i++) {
        struct plugin *plugin = &registry->plugins[i];
        bool after = !last || plugin->priority > last->priority ||
                     (plugin->priority == last->priority && strcmp(plugin->id, last->id) > 0);

        if (plugin->reason || !plugin->driver[0] || !after)
            continue;
        if (!next || plugin->priority < next->priority ||
            (plugin->priority == next->priority && strcmp(plugin->id, next->id) < 0))
            next = plugin;
    }
    return next;
}

static const struct device_entry *software_of(const struct plugin *plugin)
{
    for (uint32_t i = 0; i < plugin->n_devices; i++)
        if (!plugin->devices[i].reason && plugin->devices[i].type == FRIT_DEVICE_SOFTWARE)
            return &plugin->entries[i];
    return NULL;
}

const struct device_entry *registry_fallback(struct registry *registry)
{
    const struct device_entry *device = NULL;
    struct plugin *plugin = NULL;

    pthread_mutex_lock(&registry->lock);
    while (!device && (plugin = next_fallback_driver(registry, plugin)) != NULL)
        if (!enumerate_plugin(registry, plugin))
            device = software_of(plugin);
    pthread_mutex_unlock(&registry->lock);
    return device;
}
