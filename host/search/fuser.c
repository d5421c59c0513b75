/* SPDX-License-Identifier: Apache-2.0 */
#include "search/fuser.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/log.h"
#include "load/registry.h"

enum { MAX_FUSERS = 64 }; /* per plugin */

struct fuser_device {
    frit_fuser_device info;
    const struct plugin *driver;
    void *self; /* the driver's device */
    struct fuser_device *next;
};

/* ---- services of the driver for fusers of other plugins ---- */

static frit_status load_kernel(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    const struct fuser_device *device = self;

    *kernel = NULL;
    TRY(fail_from(
        err, device->driver->backend.kernel_load(device->self, format, bytes, n_bytes, kernel, err),
        "kernel_load"));
    return *kernel ? FRIT_OK : fail(err, FRIT_INTERNAL, "kernel_load gave no kernel and no error");
}

static void unload_kernel(void *self, frit_kernel *kernel)
{
    const struct fuser_device *device = self;

    device->driver->backend.kernel_unload(device->self, kernel);
}

static void *get_native(void *self, void *object, frit_str name)
{
    const struct fuser_device *device = self;

    return device->driver->native.get(device->self, object, name);
}

static struct fuser_device *device_for(struct fusers *fusers, const struct plugin *plugin,
                                       const struct device_entry *entry, void *self)
{
    struct fuser_device *device = calloc(1, sizeof(*device));
    bool same = plugin == entry->plugin;

    if (!device)
        return NULL;
    device->driver = entry->plugin;
    device->self = self;
    device->info = (frit_fuser_device){.struct_size = FRIT_END_OF(frit_fuser_device, native_get),
                                       .same_plugin = same,
                                       .info = entry->info,
                                       .device = same ? self : NULL,
                                       .self = device};
    if (entry->plugin->backend.kernel_load) {
        device->info.kernel_load = load_kernel;
        device->info.kernel_unload = unload_kernel;
    }
    if (entry->plugin->native.get)
        device->info.native_get = get_native;
    device->next = fusers->devices;
    fusers->devices = device;
    return device;
}

/* ---- excluded fusers ---- */

/* The next entry of a list, without blanks; empty at its end. */
static frit_str next_entry(const char **list)
{
    frit_str entry;

    *list += strspn(*list, ", ");
    entry = (frit_str){*list, strcspn(*list, ", ")};
    *list += entry.len;
    return entry;
}

frit_status fusers_check_list(const char *exclude, frit_err *err)
{
    frit_str entry;

    if (strcmp(exclude, "none") == 0)
        return FRIT_OK;
    while ((entry = next_entry(&exclude)).len) {
        const char *slash = memchr(entry.ptr, '/', entry.len);

        if (!slash || slash == entry.ptr || slash + 1 == entry.ptr + entry.len)
            return fail(err, FRIT_INVALID,
                        "'%.*s' is no fuser; set PLUGIN/NAME, as `frit explain` shows them",
                        (int)entry.len, entry.ptr);
    }
    return FRIT_OK;
}

static bool is_excluded(const char *exclude, const struct plugin *plugin, frit_str name)
{
    const size_t length = strlen(plugin->id);
    frit_str entry;

    while (exclude && (entry = next_entry(&exclude)).len)
        if (entry.len == length + 1 + name.len && memcmp(entry.ptr, plugin->id, length) == 0 &&
            entry.ptr[length] == '/' && memcmp(entry.ptr + length + 1, name.ptr, name.len) == 0)
            return true;
    return false;
}

/* ---- prototypes ---- */

static void drop_prototypes(const struct plugin *plugin, const frit_fuser *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].prototype)
            plugin->fusers.destroy(list[i].prototype);
}

static bool is_word(frit_str name)
{
    if (!name.ptr || name.len == 0 || name.len >= sizeof(((struct fuser *)0)->name))
        return false;
    for (uint64_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return true;
}

static bool are_valid(const frit_fuser *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!list[i].prototype || !is_word(list[i].name))
            return false;
        for (uint32_t k = 0; k < i; k++) {
            if (list[k].name.len == list[i].name.len &&
                memcmp(list[k].name.ptr, list[i].name.ptr, list[i].name.len) == 0)
                return false;
        }
    }
    return true;
}

static frit_status add(struct fusers *fusers, const struct plugin *plugin,
                       const frit_fuser_device *device, const frit_fuser *from, frit_err *err)
{
    struct fuser *fuser;

    if (!array_grow(&fusers->list, &fusers->capacity, fusers->count, 1, sizeof(*fusers->list)))
        return fail_memory(err, sizeof(*fusers->list));
    fuser = &fusers->list[fusers->count++];
    *fuser = (struct fuser){.table = &plugin->fusers,
                            .prototype = from->prototype,
                            .version = from->version,
                            .instance = plugin->instance,
                            .device = device};
    memcpy(fuser->name, from->name.ptr, from->name.len);
    memcpy(fuser->plugin, plugin->id, sizeof(fuser->plugin));
    return FRIT_OK;
}

static frit_status take(struct fusers *fusers, const struct plugin *plugin,
                        const struct device_entry *entry, void *self, const char *exclude,
                        frit_err *err)
{
    struct fuser_device *device = device_for(fusers, plugin, entry, self);
    frit_fuser list[MAX_FUSERS] = {{0}};
    frit_err why = ERR_INIT;
    uint32_t count = 0;
    frit_status st = FRIT_OK;

    if (!device)
        return fail_memory(err, sizeof(*device));
    st = plugin->fusers.prototypes(plugin->instance, &device->info, list, sizeof(list[0]),
                                   MAX_FUSERS, &count, &why);
    if (fail_from(&why, st, "prototypes")) {
        log_write(FRIT_LOG_WARN, "fusion", "%s: no fusers for %s: %s", plugin->id, entry->name,
                  why.text);
        return FRIT_OK;
    }
    if (count > MAX_FUSERS) {
        log_write(FRIT_LOG_WARN, "fusion", "%s: %u fusers for %s, the first %d are used",
                  plugin->id, count, entry->name, MAX_FUSERS);
        count = MAX_FUSERS;
    }
    if (!are_valid(list, count)) {
        log_write(FRIT_LOG_WARN, "fusion",
                  "%s: its fusers for %s lack a prototype or a name of their own; none is used",
                  plugin->id, entry->name);
        drop_prototypes(plugin, list, count);
        return FRIT_OK;
    }
    for (uint32_t i = 0; i < count && !st; i++) {
        if (is_excluded(exclude, plugin, list[i].name)) {
            log_write(FRIT_LOG_INFO, "fusion", "%s: fuser %s/%.*s is excluded", entry->name,
                      plugin->id, (int)list[i].name.len, list[i].name.ptr);
            drop_prototypes(plugin, &list[i], 1);
            continue;
        }
        st = add(fusers, plugin, &device->info, &list[i], err);
        if (st)
            drop_prototypes(plugin, list + i, count - i);
    }
    return st;
}

/* Highest priority first, then by id. */
static int by_preference(const void *a, const void *b)
{
    const struct plugin *x = *(const struct plugin *const *)a,
                        *y = *(const struct plugin *const *)b;

    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return strcmp(x->id, y->id);
}

frit_status fusers_create(struct fusers **out, const struct registry *registry,
                          const struct device_entry *entry, void *self, const char *exclude,
                          frit_err *err)
{
    uint32_t n = registry_n_plugins(registry), count = 0;
    const struct plugin **list = calloc((size_t)n + 1, sizeof(*list));
    frit_status st = FRIT_OK;

    *out = list ? calloc(1, sizeof(**out)) : NULL;
    if (!*out) {
        free(list);
        return fail_memory(err, n * sizeof(*list));
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct plugin *plugin = registry_plugin_at(registry, i);

        if (plugin->opened && plugin->fusers.prototypes)
            list[count++] = plugin;
    }
    qsort(list, count, sizeof(*list), by_preference);
    for (uint32_t i = 0; i < count && !st; i++)
        st = take(*out, list[i], entry, self, exclude, err);
    free(list);
    if (st) {
        fusers_destroy(*out);
        *out = NULL;
    }
    return st;
}

void fusers_destroy(struct fusers *fusers)
{
    if (!fusers)
        return;
    for (uint32_t i = 0; i < fusers->count; i++)
        fusers->list[i].table->destroy(fusers->list[i].prototype);
    free(fusers->list);
    while (fusers->devices) {
        struct fuser_device *next = fusers->devices->next;

        free(fusers->devices);
        fusers->devices = next;
    }
    free(fusers);
}
