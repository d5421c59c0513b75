/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/label.h"
#include "device/lineage.h"
#include "device/plan_saver.h"
#include "device/profile.h"
#include "device/programs.h"
#include "device/retired.h"
#include "exec/job_queue.h"
#include "load/registry.h"
#include "plan/automaton.h"
#include "search/fuser.h"

enum { MOST_FAILURES = 4096 }; /* that are told one by one in a wait */

/* Tells a device from a closed one at the same address. */
static atomic_uint_least64_t last_id;

/* Held for less than it takes to sleep, as a rule. */
static void mutex_init_spinning(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t adaptive;

    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
}

/* Waits for everything submitted. */
static void wait_idle(frit_device *device)
{
    frit_err err = ERR_INIT;

    if (device_wait(device, atomic_load(&device->last_value), &err))
        log_write(FRIT_LOG_WARN, "memory", "%s: %s", device->name, err.text);
}

static uint64_t memory_submitted(void *ctx)
{
    return atomic_load(&((frit_device *)ctx)->last_value);
}

/* Nothing is pending on a lost device. */
static bool memory_is_done(void *ctx, uint64_t value, enum memory_progress how)
{
    frit_device *device = ctx;
    frit_err err = ERR_INIT;
    frit_status st;

    if (value <= atomic_load(&device->reached) || how == PROGRESS_KNOWN)
        return value <= atomic_load(&device->reached);
    if (how == PROGRESS_ASK)
        return device_has_reached(device, value);
    st = device_wait(device, value, &err);
    if (st)
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
    memory_set_queue(device->memory, &(struct memory_queue){memory_submitted, memory_is_done,
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

frit_status device_create(const struct device_entry *entry, const struct device_config *config,
                          frit_device **out, frit_err *err)
{
    frit_device *device = aligned_alloc(_Alignof(frit_device), sizeof(*device));
    frit_open_params params = {.struct_size = sizeof(params), .lost = note_lost, .ctx = device};
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
    mutex_init_spinning(&device->submit);
    pthread_mutex_init(&device->lock, NULL);
    cache_init(&device->cache, config->store_bytes / 2);
    atomic_init(&device->seed.number, config->seed);
    st = fail_from(err,
                   device->backend->device_open(entry->plugin->instance, entry->info->index,
                                                &params, &device->self, err),
                   "device_open");
    if (st) {
        fail_context(err, "%s", entry->name);
        goto out;
    }
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
        st = profile_create(device, &device->profile, err);
    if (!st)
        st = automaton_create(device->config.store_bytes / 2, &device->automaton, err);
    if (!st)
        st = fusers_create(&device->fusers, device->config.registry, entry, device->self, err);
    if (!st)
        st = plan_saver_open(device, &device->saver, err);
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
    if (device->compiler)
        job_queue_cancel_all(device->compiler, device);
    lineage_forget_programs(device->lineage);
    plan_saver_close(device->saver);
    automaton_destroy(device->automaton);
    programs_destroy(device->programs);
    retired_destroy(device->retired);
    fusers_destroy(device->fusers);
    cache_fini(&device->cache);
    memory_destroy(device->memory); /* may wait, and learn of a failure */
    lineage_destroy(device->lineage);
    labels_destroy(device->labels);
    if (device->self)
        device->backend->device_close(device->self);
    failure_unref(device->loss);
    failure_unref(device->error);
    pthread_mutex_destroy(&device->submit);
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

/* ---- the timeline ---- */

/* Whether more is known than a caller knew, by whichever thread, and not all up to `value`. */
static bool more_may_have_failed(const frit_device *device, const struct lineage_place *before,
                                 uint64_t value)
{
    struct lineage_place now = lineage_known(device->lineage);

    return (now.value > before->value || now.command > before->command) &&
           (now.value < value || (now.value == value && now.command != FRIT_ALL_COMMANDS));
}

/* One call of the driver's wait; what it says of failed commands is reported.  A driver that does
 * not say when the command failed may mean any that is not known. */
static frit_status call_wait(frit_device *device, uint64_t value, uint64_t timeout_ns,
                             frit_err *detail, bool *more)
{
    struct lineage_place known = lineage_known(device->lineage);
    uint64_t reached = atomic_load(&device->reached);
    frit_failure failure = {
        .struct_size = sizeof(failure), .value = known.value, .command = known.command};
    frit_status st = device->backend->wait(device->self, NULL, value, timeout_ns, &failure, detail);
    struct lineage_report report = {
        .from = failure.value, .to = failure.value, .command = failure.command};

    *more = false;
    if (st > 0)
        st = fail_from(detail, st, "wait");
    if (failure.status > 0)
        failure.status = fail_from(detail, failure.status, "a command");
    if (failure.status >= 0 && st != FRIT_DEVICE_LOST)
        return st;
    if (failure.value < known.value || failure.value > value ||
        (failure.value == known.value && failure.command <= known.command))
        report =
            (struct lineage_report){.from = (known.value > reached ? known.value : reached) + 1,
                                    .to = value,
                                    .command = FRIT_ALL_COMMANDS};
    if (!report.command) /* not numbered */
        report.command = FRIT_ALL_COMMANDS;
    if (report.from > report.to && st != FRIT_DEVICE_LOST) /* told again what is known */
        return st;
    report.cookie = failure.cookie;
    if (st == FRIT_DEVICE_LOST) /* what is not reached never will be */
        report = (struct lineage_report){.from = report.from,
                                         .to = atomic_load(&device->last_value),
                                         .command = FRIT_ALL_COMMANDS};
    detail->status = failure.status < 0 ? failure.status : st;
    report.reason = detail;
    (void)lineage_report(device->lineage, &report);
    *more = st >= 0 && more_may_have_failed(device, &known, value);
    return st;
}

/* Takes all that is not known yet for failed: a driver that has so much to tell is taken for one
 * that does not know. */
static void give_up(frit_device *device, uint64_t value, const frit_err *reason)
{
    const struct lineage_report rest = {.from = lineage_known(device->lineage).value,
                                        .to = value,
                                        .command = FRIT_ALL_COMMANDS,
                                        .reason = reason};

    (void)lineage_report(device->lineage, &rest);
}

/* Waits until there is nothing more to report; the first call says how the wait went. */
static frit_status wait_and_report(frit_device *device, uint64_t value, uint64_t timeout_ns,
                                   frit_err *detail)
{
    bool more;
    frit_status st = call_wait(device, value, timeout_ns, detail, &more);

    for (uint32_t round = 0; more; round++) {
        frit_err again = ERR_INIT;

        if (round == MOST_FAILURES) {
            give_up(device, value, detail);
            break;
        }
        (void)call_wait(device, value, timeout_ns, &again, &more);
    }
    return st;
}

static void raise_to(atomic_uint_least64_t *highest, uint64_t value)
{
    uint64_t now = atomic_load(highest);

    while (now < value && !atomic_compare_exchange_weak(highest, &now, value))
        ;
}

bool device_has_reached(frit_device *device, uint64_t value)
{
    frit_err detail = ERR_INIT;
    frit_status st;

    if (value <= atomic_load(&device->reached))
        return true;
    st = wait_and_report(device, value, 0, &detail);
    if (st >= 0)
        raise_to(&device->reached, value);
    return st >= 0 || st == FRIT_DEVICE_LOST;
}

/* A wait that fails leaves the queue at work, on memory of callers too, so it is tried again. */
frit_status device_wait(frit_device *device, uint64_t value, frit_err *err)
{
    frit_err detail = ERR_INIT;
    uint64_t begun;
    frit_status st;

    if (value <= atomic_load(&device->reached))
        return FRIT_OK;
    begun = timeline_begin();
    st = wait_and_report(device, value, UINT64_MAX, &detail);
    if (st < 0 && st != FRIT_DEVICE_LOST) {
        detail = (frit_err)ERR_INIT;
        st = wait_and_report(device, value, UINT64_MAX, &detail);
    }
    timeline_end(begun, "device", str_of("wait"));
    if (st >= 0) {
        raise_to(&device->reached, value);
        memory_poll(device->memory, PROGRESS_KNOWN);
        profile_poll(device->profile);
        return FRIT_OK;
    }
    if (detail.status != st)
        st = fail_from(&detail, st, "wait");
    device_explain_loss(device, &detail);
    if (!err)
        return st;
    *err = detail;
    return fail_context(err, "waiting for %s", device->name);
}

void device_reached(frit_device *device, uint64_t value)
{
    raise_to(&device->last_value, value);
}

/* Inside the baton, after a call that handed commands over. */
static void note_submit(frit_device *device, uint64_t value)
{
    frit_err detail = ERR_INIT;

    device_reached(device, value);
    atomic_store_explicit(&device->submits, atomic_load(&device->submits) + 1,
                          memory_order_relaxed);
    /* Work that ran inside submit has failed by now or never.  It has run in any case, so that a
     * wait that fails is a failure of the commands and not a refusal.  Asked while the driver's
     * queue is still this core's. */
    if (device->info->caps & FRIT_CAP_INLINE_QUEUE && device_wait(device, value, &detail))
        lineage_report(device->lineage, &(struct lineage_report){.from = value,
                                                                 .to = value,
                                                                 .command = FRIT_ALL_COMMANDS,
                                                                 .reason = &detail});
}

/* Outside of the baton, after such a call. */
static frit_status end_submit(frit_device *device, frit_status st, uint64_t begun, const char *slot,
                              frit_err *err)
{
    timeline_end(begun, "device", str_of(slot));
    profile_poll(device->profile);
    if (!(device->info->caps & FRIT_CAP_INLINE_QUEUE))
        memory_poll(device->memory, PROGRESS_ASK);
    retired_reap(device);
    if (st >= 0)
        return FRIT_OK;
    device_explain_loss(device, err);
    return st;
}

frit_status device_submit(frit_device *device, const frit_cmd *cmds, uint32_t count,
                          uint64_t *value, frit_err *err)
{
    uint64_t begun = timeline_begin();
    bool profiled = profile_is_on(device->profile) && profile_begin(device->profile, &cmds, &count);
    frit_status st;

    pthread_mutex_lock(&device->submit);
    st = fail_from(err,
                   device->backend->submit(device->self, NULL, cmds, count, sizeof(*cmds), NULL, 0,
                                           value, err),
                   "submit");
    if (st >= 0)
        note_submit(device, *value);
    pthread_mutex_unlock(&device->submit);
    if (profiled)
        profile_end(device->profile, st >= 0 ? *value : 0);
    return end_submit(device, st, begun, "submit", err);
}

frit_status device_replay(frit_device *device, frit_recording *recording, const void *block,
                          uint64_t *value, frit_err *err)
{
    uint64_t begun = timeline_begin();
    frit_status st;

    pthread_mutex_lock(&device->submit);
    st =
        fail_from(err, device->capture->replay(device->self, recording, block, NULL, 0, value, err),
                  "replay");
    if (st >= 0)
        note_submit(device, *value);
    pthread_mutex_unlock(&device->submit);
    return end_submit(device, st, begun, "replay", err);
}

frit_status device_record(frit_device *device, const frit_cmd *cmds, uint32_t count,
                          const frit_param *params, uint32_t n_params, frit_recording **out)
{
    uint64_t begun = timeline_begin();
    frit_err err = ERR_INIT;
    frit_status st;

    *out = NULL;
    pthread_mutex_lock(&device->submit);
    st = fail_from(&err,
                   device->capture->record(device->self, NULL, cmds, count, sizeof(*cmds), params,
                                           n_params, sizeof(*params), out, &err),
                   "record");
    pthread_mutex_unlock(&device->submit);
    timeline_end(begun, "device", str_of("record"));
    if (st < 0 && st != FRIT_UNSUPPORTED)
        log_write(FRIT_LOG_WARN, "stream", "%s: record: %s", device->name, err.text);
    return st < 0 ? st : FRIT_OK;
}
