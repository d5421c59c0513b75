/* SPDX-License-Identifier: Apache-2.0 */
/* Plans are saved under a text that names everything they follow from: this library and the plugins
 * concerned, by version and file, with the options set for them; the device; the fusers in their
 * order; the options of the search.  Another text is another set of plans.
 *
 * A note starts a job that waits until a second has passed without one; then it saves. */
#include "stream/known.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/log.h"
#include "exec/worker.h"
#include "plan/store.h"

enum { CALM_S = 1, MOST_WAITS = 10 }; /* a device that is never calm is saved all the same */

struct known {
    frit_device *device;
    struct store_context context;
    struct str space;
    struct worker *worker;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t closed;
    uint64_t n_noted, n_saved;
    bool scheduled, closing;
    bool told; /* that nothing is kept; of who saves */
};

/* ---- what plans follow from ---- */

/* False: there is no telling one build from the next. */
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

static bool add_plugin(struct str *text, const struct registry *registry,
                       const struct plugin *plugin)
{
    const struct conf_plugin *section = registry_section(registry, plugin);

    str_addf(text, "plugin %s %s", plugin->id, plugin->version);
    if (!add_file(text, plugin->path))
        return false;
    for (uint32_t i = 0; section && i < section->n_options; i++)
        str_addf(text, "option %s = %s\n", section->options[i].key, section->options[i].value);
    return true;
}

static bool has_fusers(const struct fusers *fusers, const struct plugin *plugin)
{
    for (uint32_t i = 0; i < fusers->count; i++) {
        if (strcmp(fusers->list[i].plugin, plugin->id) == 0)
            return true;
    }
    return false;
}

static bool add_plugins(struct str *text, const frit_device *device)
{
    const struct registry *registry = device->config.registry;

    for (uint32_t i = 0; i < registry_n_plugins(registry); i++) {
        const struct plugin *plugin = registry_plugin_at(registry, i);

        if ((plugin == device->entry->plugin || plugin->n_ops ||
             has_fusers(&device->fusers, plugin)) &&
            !add_plugin(text, registry, plugin))
            return false;
    }
    return true;
}

static void add_device(struct str *text, const frit_device *device)
{
    const frit_device_info *info = device->info;
    const frit_str texts[] = {info->stable_id, info->fingerprint, info->driver_version,
                              info->runtime_version};

    str_addf(text, "device %s", device->entry->name);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        str_addf(text, " | %.*s", (int)texts[i].len, texts[i].ptr);
    str_addf(text, "\nfusion %d blocks %u decompose %d\n", device->config.fusion,
             device->config.max_blocks, device->config.decompose);
    for (uint32_t i = 0; i < device->fusers.count; i++) {
        const struct fuser *fuser = &device->fusers.list[i];

        str_addf(text, "fuser %s/%s %u\n", fuser->plugin, fuser->name, fuser->version);
    }
}

/* False: nothing can be kept. */
static bool name_space(struct known *known)
{
    struct str *text = &known->space;

    if (!add_host(text) || !add_plugins(text, known->device)) {
        log_write(FRIT_LOG_DEBUG, "plan", "%s: plans are not kept: a library has no file",
                  known->device->entry->name);
        return false;
    }
    add_device(text, known->device);
    return true;
}

/* ---- saving ---- */

/* Of a file that the user named it is told once; the cache folder may well be read-only. */
static void tell_lost(struct known *known, const char *what, const char *why)
{
    uint32_t level =
        known->device->config.store_named && !known->told ? FRIT_LOG_WARN : FRIT_LOG_DEBUG;

    log_write(level, "plan", "%s: plans are not kept: %s%s", known->device->entry->name, what, why);
    known->told = true;
}

static void save(struct known *known)
{
    const char *path = known->context.path;
    frit_err err = ERR_INIT;
    struct stat st;

    if (store_save(&known->context, known->device->automaton, &err))
        tell_lost(known, "", err.text);
    else if (stat(path, &st) || access(path, R_OK | W_OK))
        tell_lost(known, path, errno == EACCES ? " cannot be written" : " cannot be made");
    else if (!S_ISREG(st.st_mode))
        tell_lost(known, path, " is not a file");
}

/* Until nothing was noted for a while; false: the device closes.  Inside the lock. */
static bool await_calm(struct known *known)
{
    struct timespec until;
    uint64_t before = known->n_noted - 1;

    clock_gettime(CLOCK_MONOTONIC, &until);
    for (int i = 0; i < MOST_WAITS && before != known->n_noted && !known->closing; i++) {
        before = known->n_noted;
        until.tv_sec += CALM_S;
        while (!known->closing && pthread_cond_timedwait(&known->closed, &known->lock, &until) == 0)
            ;
    }
    return !known->closing;
}

static void save_when_calm(void *ctx)
{
    struct known *known = ctx;
    bool calm;

    pthread_mutex_lock(&known->lock);
    calm = await_calm(known);
    known->scheduled = false;
    if (calm)
        known->n_saved = known->n_noted;
    pthread_mutex_unlock(&known->lock);
    if (calm)
        save(known);
}

void known_note(struct known *known)
{
    bool spawn;

    if (!known)
        return;
    pthread_mutex_lock(&known->lock);
    known->n_noted++;
    spawn = !known->scheduled;
    known->scheduled = true;
    pthread_mutex_unlock(&known->lock);
    if (!spawn || !worker_spawn(known->worker, save_when_calm, known, NULL))
        return;
    pthread_mutex_lock(&known->lock);
    known->scheduled = false; /* saved at the next note, or at the end */
    pthread_mutex_unlock(&known->lock);
}

/* ---- life ---- */

static void destroy(struct known *known)
{
    worker_destroy(known->worker);
    pthread_cond_destroy(&known->closed);
    pthread_mutex_destroy(&known->lock);
    free((void *)known->context.fusers);
    str_fini(&known->space);
    free(known);
}

static frit_status list_fusers(struct known *known, frit_err *err)
{
    const struct fusers *fusers = &known->device->fusers;
    struct store_fuser *list = calloc((size_t)fusers->count + 1, sizeof(*list));

    if (!list)
        return fail_memory(err, fusers->count * sizeof(*list));
    for (uint32_t i = 0; i < fusers->count; i++) {
        const struct fuser *from = &fusers->list[i];

        list[i] = (struct store_fuser){.plugin = from->plugin,
                                       .name = from->name,
                                       .version = from->version,
                                       .table = from->table,
                                       .instance = from->instance,
                                       .device = from->device};
    }
    known->context.fusers = list;
    known->context.n_fusers = fusers->count;
    return FRIT_OK;
}

static frit_status load(struct known *known, frit_err *err)
{
    frit_device *device = known->device;
    uint32_t n_plans;

    if (known->space.failed)
        return fail_memory(err, PATH_MAX);
    known->context.path = device->config.store;
    known->context.space = known->space.text;
    TRY(list_fusers(known, err));
    TRY(worker_create(&known->worker, err));
    TRY(store_load(&known->context, device->automaton, &n_plans, err));
    atomic_store(&device->count.store_loaded, n_plans);
    return FRIT_OK;
}

static struct known *create(frit_device *device)
{
    struct known *known = calloc(1, sizeof(*known));
    pthread_condattr_t attr;

    if (!known)
        return NULL;
    known->device = device;
    pthread_mutex_init(&known->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&known->closed, &attr);
    pthread_condattr_destroy(&attr);
    return known;
}

frit_status known_open(frit_device *device, struct known **out, frit_err *err)
{
    struct known *known;
    frit_status st;

    *out = NULL;
    if (!device->config.store)
        return FRIT_OK;
    known = create(device);
    if (!known)
        return fail_memory(err, sizeof(*known));
    if (name_space(known)) {
        st = load(known, err);
        if (!st)
            *out = known;
    } else {
        st = known->space.failed ? fail_memory(err, PATH_MAX) : FRIT_OK;
    }
    if (!*out)
        destroy(known);
    return st;
}

void known_close(struct known *known)
{
    if (!known)
        return;
    pthread_mutex_lock(&known->lock);
    known->closing = true;
    pthread_cond_broadcast(&known->closed);
    pthread_mutex_unlock(&known->lock);
    worker_wait(known->worker);
    if (known->n_noted != known->n_saved)
        save(known);
    destroy(known);
}
