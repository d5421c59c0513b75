/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "device/decisions.h"
#include "device/exports.h"
#include "device/label.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "device/plan_saver.h"
#include "device/profile.h"
#include "device/programs.h"
#include "device/retired.h"
#include "device/staging.h"
#include "device/wait.h"
#include "exec/job_queue.h"
#include "load/breadcrumb.h"
#include "load/elf.h"
#include "load/guard.h"
#include "load/quarantine.h"
#include "load/registry.h"
#include "load/trust.h"
#include "memory/memory.h"
#include "plan/automaton.h"
#include "search/fuser.h"
#include "tensor/failure.h"
#include "tune/store.h"

/* Distinguishes a device from a closed one at the same address. */
static atomic_uint_least64_t last_id;

/* Waits for everything submitted. */
static void wait_idle(frit_device *device)
{
    frit_err err = ERR_INIT;

    if (device_wait_all(device, &err))
        log_write(FRIT_LOG_WARN, "memory", "%s: %s", device->name, err.text);
}

static void memory_submitted(void *ctx, struct points *out)
{
    device_submitted(ctx, out);
}

/* Nothing is pending on a lost device. */
static bool memory_is_done(void *ctx, const struct points *points, enum memory_progress how)
{
    frit_device *device = ctx;
    frit_err err = ERR_INIT;

    if (device_knows_reached(device, points) || how == PROGRESS_KNOWN)
        return device_knows_reached(device, points);
    if (how == PROGRESS_QUERY)
        return device_has_reached_points(device, points);
    if (device_wait_points(device, points, &err))
        log_write(FRIT_LOG_WARN, "memory", "%s: %s", device->name, err.text);
    return true;
}

static void memory_explain(void *ctx, frit_err *err)
{
    device_explain_loss(ctx, err);
}

static void memory_forget(void *ctx, struct failure *failure)
{
    atomic_fetch_sub(&((frit_device *)ctx)->n_spoiled, 1);
    failure_unref(failure);
}

static frit_status memory_open(frit_device *device, frit_err *err)
{
    uint64_t align = device->info->align_bytes ? device->info->align_bytes : 64;
    const struct device_config *config = &device->config;
    struct memory_limits limits = {
        .chunk_bytes =
            memory_chunk_bytes(device->info, (uint64_t)config->chunk_bytes) / align * align,
        .keep_bytes =
            config->keep_bytes < 0 ? memory_keep_bytes(device->info) : (uint64_t)config->keep_bytes,
    };

    TRY(memory_create(device->backend, device->info, device->self, &limits, &device->memory, err));
    if (device->entry->plugin->extmem.import)
        memory_set_extmem(device->memory, &device->entry->plugin->extmem);
    memory_set_queue(device->memory,
                     &(struct memory_queue){device->n_queues, memory_submitted, memory_is_done,
                                            memory_explain, memory_forget, device});
    return FRIT_OK;
}

static bool computes_on_processors(const frit_device_info *info)
{
    return info->type == FRIT_DEVICE_PROCESSOR || info->type == FRIT_DEVICE_SOFTWARE;
}

/* The driver's notice, before any call has failed. */
static void note_lost(void *ctx, const frit_err *why)
{
    frit_err err = *why;

    err.status = FRIT_DEVICE_LOST;
    device_explain_loss(ctx, &err);
}

static frit_status open_in_plugin(frit_device *device, const frit_open_params *params,
                                  frit_err *err)
{
    const struct device_entry *entry = device->entry;
    struct guard guard;
    frit_status status;

    guard_enter(&guard, entry->plugin, "device_open");
    status = fail_from(err,
                       device->backend->device_open(entry->plugin->instance, entry->info->index,
                                                    params, &device->self, err),
                       "device_open");
    guard_leave(&guard);
    if (!status && !device->self)
        status = fail(err, FRIT_INTERNAL, "device_open gave no device and no error");
    if (status)
        fail_context(err, "%s", entry->name);
    return status;
}

static void close_in_plugin(frit_device *device)
{
    struct guard guard;

    guard_enter(&guard, device->entry->plugin, "device_close");
    device->backend->device_close(device->self);
    guard_leave(&guard);
    quarantine_clear(device->entry->plugin->suspect, BREADCRUMB_SUBMIT);
}

/* Whether the device's candidates may be tried in this process. */
static bool may_measure(const frit_device *device)
{
    const struct tune_config *config = &device->config.tune;
    const struct elf_identity *identity = device->entry->plugin->identity;
    bool trusted = config->tries;

    if (config->measures && !trusted && identity) {
        struct trust *trust = trust_open();

        trusted = trust && trust_has(trust, identity->build_id);
        trust_close(trust);
    }
    return config->measures && trusted;
}

frit_status device_create(const struct device_entry *entry, const struct device_config *config,
                          frit_device **out, frit_err *err)
{
    frit_device *device = aligned_alloc(_Alignof(frit_device), sizeof(*device));
    frit_open_params params = {.struct_size = sizeof(params),
                               .n_natives = config->n_natives,
                               .natives = config->natives,
                               .lost = note_lost,
                               .ctx = device};
    frit_status st;

    *out = NULL;
    if (!device)
        return fail_memory(err, sizeof(*device));
    memset(device, 0, sizeof(*device));
    device->id = atomic_fetch_add(&last_id, 1) + 1;
    device->config = *config;
    device->entry = entry;
    device->name = entry->name;
    device->backend = &entry->plugin->backend;
    device->info = entry->info;
    if (config->capture && entry->plugin->capture.record)
        device->capture = &entry->plugin->capture;
    device->opens = 1;
    if (config->compile_ahead)
        device->compiler =
            registry_jobs(config->registry, computes_on_processors(device->info) ? REGISTRY_YIELDING
                                                                                 : REGISTRY_USUAL);
    pthread_mutex_init(&device->lock, NULL);
    effects_init(&device->effects);
    cache_init(&device->cache, config->store_bytes / 2);
    atomic_init(&device->seed.number, config->seed);
    st = open_in_plugin(device, &params, err);
    device->config.natives = NULL;
    if (st)
        goto out;
    queues_open(device);
    st = memory_open(device, err);
    if (!st)
        st = retired_create(&device->retired, err);
    if (!st)
        st = programs_create(device, &device->programs, err);
    if (!st)
        st = labels_create(&device->labels, err);
    if (!st)
        st = lineage_create(device, &device->lineage, err);
    if (!st)
        st = pending_create(&device->pending, err);
    if (!st)
        st = profile_create(device, &device->profile, err);
    if (!st)
        st = staging_create(device, &device->staging, err);
    if (!st)
        st = automaton_create(device->config.store_bytes / 2, &device->automaton, err);
    if (!st)
        st = fusers_create(&device->fusers, device->config.registry, entry, device->self,
                           device->config.exclude, err);
    if (!st)
        st = plan_saver_open(device, &device->saver, err);
    device->measures = may_measure(device);
    if (!st)
        st = decisions_open(device, &device->tune_store, err);
    if (!st)
        *out = device;
out:
    if (st)
        device_destroy(device);
    return st;
}

void device_destroy(frit_device *device)
{
    if (!device)
        return;
    if (device->self)
        wait_idle(device);
    profile_destroy(device->profile);
    device->profile = NULL;
    staging_destroy(device->staging);
    if (device->compiler)
        job_queue_cancel_all(device->compiler, device);
    lineage_forget_programs(device->lineage);
    plan_saver_close(device->saver);
    tune_store_close(device->tune_store);
    automaton_destroy(device->automaton);
    programs_destroy(device->programs);
    retired_destroy(device->retired);
    fusers_destroy(device->fusers);
    cache_fini(&device->cache);
    exports_end(device);
    memory_destroy(device->memory); /* may wait, and learn of a failure */
    lineage_destroy(device->lineage);
    labels_destroy(device->labels);
    if (device->self) {
        queues_close(device);
        close_in_plugin(device);
    }
    failure_unref(device->loss);
    failure_unref(device->error);
    effects_fini(&device->effects);
    pending_destroy(device->pending);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* ---- errors ---- */

void device_note_disabled(frit_device *device, const char *label, const char *why)
{
    atomic_fetch_add(&device->count.disabled, 1);
    log_write(FRIT_LOG_WARN, "stream", "%s: %s is not run any more: %s", device->name,
              label ? label : "a program", why);
}

void device_keep_error(frit_device *device, struct failure *failure)
{
    pthread_mutex_lock(&device->lock);
    if (failure && !device->error) {
        device->error = failure;
        failure = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    failure_unref(failure);
}

struct failure *device_take_error(frit_device *device)
{
    struct failure *failure;

    pthread_mutex_lock(&device->lock);
    failure = device->error;
    device->error = NULL;
    pthread_mutex_unlock(&device->lock);
    return failure;
}

/* Once set it stays as long as the device, so that it can be read outside of the lock. */
static const struct failure *loss_of(frit_device *device)
{
    const struct failure *loss;

    pthread_mutex_lock(&device->lock);
    loss = device->loss;
    pthread_mutex_unlock(&device->lock);
    return loss;
}

void device_explain_loss(frit_device *device, frit_err *err)
{
    const struct failure *loss;
    struct failure *mine;

    if (!err || err->status != FRIT_DEVICE_LOST)
        return;
    loss = loss_of(device);
    if (loss) {
        if (!strstr(err->text, loss->text))
            fail_append(err, " (%s is lost: %s)", device->name, loss->text);
        return;
    }
    mine = failure_create(err);
    pthread_mutex_lock(&device->lock);
    if (!device->loss) {
        device->loss = mine;
        mine = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    failure_unref(mine);
}

frit_status device_check_loss(frit_device *device, frit_err *err)
{
    const struct failure *loss = loss_of(device);

    return loss ? fail(err, FRIT_DEVICE_LOST, "%s is lost: %s", device->name, loss->text) : FRIT_OK;
}
