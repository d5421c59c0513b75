/* SPDX-License-Identifier: Apache-2.0 */
/* Plans are saved under a text that names everything they follow from (space.h).
 *
 * A note starts a job that waits until a second has passed without one; then it saves. */
#include "device/plan_saver.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"
#include "device/space.h"
#include "exec/worker.h"
#include "plan/blob.h"
#include "plan/store.h"
#include "search/fuser.h"

enum {
    CALM_S = 1,
    MAX_WAITS = 10, /* a device that is never calm is saved all the same */
    RENEW_DAYS = 7  /* plans that are used say so in their file that often */
};

struct plan_saver {
    frit_device *device;
    struct store_context context;
    struct str space;
    struct worker *worker;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t closed;
    uint64_t n_noted, n_saved;
    bool scheduled, closing;
    atomic_bool ending; /* somebody waits for the worker */
    bool warned;        /* that the file cannot be written; used by the saving thread only */
};

/* ---- saving ---- */

/* False: nothing can be kept. */
static bool name_space(struct plan_saver *saver)
{
    if (space_of_plans(saver->device, &saver->space))
        return true;
    log_write(FRIT_LOG_DEBUG, "plan", "%s: plans are not kept: a library has no file",
              saver->device->name);
    return false;
}

/* A warning, once, if the user named the file; the default cache folder may well be read-only. */
static void log_unsaved(struct plan_saver *saver, const char *what, const char *why)
{
    uint32_t level =
        saver->device->config.store_named && !saver->warned ? FRIT_LOG_WARN : FRIT_LOG_DEBUG;

    log_write(level, "plan", "%s: plans are not kept: %s%s", saver->device->name, what, why);
    saver->warned = true;
}

static void save(struct plan_saver *saver)
{
    const char *path = saver->context.path;
    frit_err err = ERR_INIT;
    struct store_saved saved;
    struct stat st;

    if (store_save(&saver->context, saver->device->automaton, &saved, &err))
        log_unsaved(saver, "", err.text);
    else if (stat(path, &st) || access(path, R_OK | W_OK))
        log_unsaved(saver, path, errno == EACCES ? " cannot be written" : " cannot be made");
    else if (!S_ISREG(st.st_mode))
        log_unsaved(saver, path, " is not a file");
    else
        log_write(FRIT_LOG_DEBUG, "plan", "%s: %llu answers saved, %llu rows", saver->device->name,
                  (unsigned long long)saved.n_nodes, (unsigned long long)saved.n_rows);
}

/* Until nothing was noted for a while; false: the device closes.  Inside the lock. */
static bool await_calm(struct plan_saver *saver)
{
    struct timespec until;
    uint64_t before = saver->n_noted - 1;

    clock_gettime(CLOCK_MONOTONIC, &until);
    for (int i = 0; i < MAX_WAITS && before != saver->n_noted && !saver->closing; i++) {
        before = saver->n_noted;
        until.tv_sec += CALM_S;
        while (!saver->closing && pthread_cond_timedwait(&saver->closed, &saver->lock, &until) == 0)
            ;
    }
    return !saver->closing;
}

static void save_when_calm(void *ctx)
{
    struct plan_saver *saver = ctx;
    bool calm;

    pthread_mutex_lock(&saver->lock);
    calm = await_calm(saver);
    saver->scheduled = false;
    if (calm)
        saver->n_saved = saver->n_noted;
    pthread_mutex_unlock(&saver->lock);
    if (calm)
        save(saver);
}

frit_status plan_saver_rebuild(const struct plan_saver *saver, const struct plan *saved,
                               const struct relative *relative, uint32_t n_ops, struct plan **out,
                               frit_err *err)
{
    *out = NULL;
    if (!saver)
        return fail(err, FRIT_INCOMPATIBLE, "no plans are kept");
    return blob_rebuild(saved, &saver->context, relative, n_ops, out, err);
}

void plan_saver_note(struct plan_saver *saver)
{
    bool spawn;

    if (!saver)
        return;
    pthread_mutex_lock(&saver->lock);
    saver->n_noted++;
    spawn = !saver->scheduled;
    saver->scheduled = true;
    pthread_mutex_unlock(&saver->lock);
    if (!spawn || !worker_spawn(saver->worker, save_when_calm, saver, NULL))
        return;
    pthread_mutex_lock(&saver->lock);
    saver->scheduled = false; /* saved at the next note, or at the end */
    pthread_mutex_unlock(&saver->lock);
}

/* ---- life ---- */

static void destroy(struct plan_saver *saver)
{
    worker_destroy(saver->worker);
    pthread_cond_destroy(&saver->closed);
    pthread_mutex_destroy(&saver->lock);
    free((void *)saver->context.fusers);
    str_fini(&saver->space);
    free(saver);
}

static frit_status list_fusers(struct plan_saver *saver, frit_err *err)
{
    const struct fusers *fusers = saver->device->fusers;
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
    saver->context.fusers = list;
    saver->context.n_fusers = fusers->count;
    return FRIT_OK;
}

static frit_status load(struct plan_saver *saver, frit_err *err)
{
    frit_device *device = saver->device;
    struct store_loaded loaded;

    if (saver->space.failed)
        return fail_memory(err, PATH_MAX);
    saver->context.path = device->config.store;
    saver->context.wait_ms = device->config.store_wait_ms;
    saver->context.space = saver->space.text;
    saver->context.ending = &saver->ending;
    TRY(list_fusers(saver, err));
    TRY(worker_create(&saver->worker, err));
    TRY(store_load(&saver->context, device->automaton, &loaded, err));
    atomic_store(&device->count.store_loaded, loaded.n_plans);
    if (loaded.days_unused >= RENEW_DAYS)
        saver->n_noted++; /* that it is used is saved at the end */
    return FRIT_OK;
}

static struct plan_saver *create(frit_device *device)
{
    struct plan_saver *saver = calloc(1, sizeof(*saver));
    pthread_condattr_t attr;

    if (!saver)
        return NULL;
    saver->device = device;
    pthread_mutex_init(&saver->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&saver->closed, &attr);
    pthread_condattr_destroy(&attr);
    return saver;
}

frit_status plan_saver_open(frit_device *device, struct plan_saver **out, frit_err *err)
{
    struct plan_saver *saver;
    frit_status st;

    *out = NULL;
    if (!device->config.store)
        return FRIT_OK;
    saver = create(device);
    if (!saver)
        return fail_memory(err, sizeof(*saver));
    if (name_space(saver)) {
        st = load(saver, err);
        if (!st)
            *out = saver;
    } else {
        st = saver->space.failed ? fail_memory(err, PATH_MAX) : FRIT_OK;
    }
    if (!*out)
        destroy(saver);
    return st;
}

void plan_saver_close(struct plan_saver *saver)
{
    if (!saver)
        return;
    pthread_mutex_lock(&saver->lock);
    saver->closing = true;
    pthread_cond_broadcast(&saver->closed);
    pthread_mutex_unlock(&saver->lock);
    atomic_store(&saver->ending, true);
    worker_wait(saver->worker);
    saver->context.ending = NULL; /* from here on the program waits */
    if (saver->n_noted != saver->n_saved)
        save(saver);
    destroy(saver);
}
