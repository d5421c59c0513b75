/* SPDX-License-Identifier: Apache-2.0 */
#include "device/queue_parts.h"

#include "base/err.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/effects.h"
#include "device/lineage.h"
#include "device/profile.h"
#include "device/retired.h"
#include "device/submit_after.h"
#include "device/wait.h"
#include "exec/team.h"
#include "load/breadcrumb.h"
#include "load/quarantine.h"
#include "load/registry.h"
#include "memory/memory.h"

enum { FIRST_SUBMITS = 4 };

/* Held for less than it takes to sleep, as a rule. */
static void mutex_init_spinning(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t adaptive;

    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
}

/* ---- life ---- */

/* Where submit computes, streams on other queues use the other processors. */
static uint32_t wanted_queues(const frit_device *device)
{
    uint32_t n = device->config.queues;

    if (!n)
        n = device->info->type == FRIT_DEVICE_PROCESSOR ? team_processors() : 1;
    return n < QUEUES_MAX ? n : QUEUES_MAX;
}

void queues_open(frit_device *device)
{
    const frit_queue_desc desc = {.struct_size = sizeof(desc), .kind = FRIT_QUEUE_COMPUTE};
    const frit_backend *backend = device->backend;
    bool more = backend->queue_create; /* the host's table is whole */
    uint32_t wanted = wanted_queues(device);

    for (uint32_t q = 0; q < QUEUES_MAX; q++)
        mutex_init_spinning(&device->queues[q].lock);
    device->n_queues = 1;
    while (more && device->n_queues < wanted) {
        frit_err err = ERR_INIT;
        frit_queue **out = &device->queues[device->n_queues].handle;
        frit_status st =
            fail_from(&err, backend->queue_create(device->self, &desc, out, &err), "queue_create");

        if (!st && !*out)
            st = fail(&err, FRIT_INTERNAL, "queue_create gave no queue and no error");
        if (st && st != FRIT_UNSUPPORTED)
            log_write(FRIT_LOG_WARN, "stream", "%s: no more queues than %u: %s", device->name,
                      device->n_queues, err.text);
        more = !st;
        device->n_queues += more;
    }
}

void queues_close(frit_device *device)
{
    for (uint32_t q = 1; q < device->n_queues; q++)
        device->backend->queue_destroy(device->self, device->queues[q].handle);
    for (uint32_t q = 0; q < QUEUES_MAX; q++)
        pthread_mutex_destroy(&device->queues[q].lock);
}

uint32_t queue_of_stream(const frit_device *device, uint32_t ordinal)
{
    return device->n_queues == 1 ? 0 : ordinal % device->n_queues;
}

void device_submitted(const frit_device *device, struct points *out)
{
    *out = (struct points){0};
    for (uint32_t q = 0; q < device->n_queues; q++)
        out->at[q] = atomic_load(&device->queues[q].last_value);
}

uint64_t device_submits(const frit_device *device)
{
    uint64_t sum = 0;

    for (uint32_t q = 0; q < device->n_queues; q++)
        sum += atomic_load(&device->queues[q].submits);
    return sum;
}

bool device_is_idle(frit_device *device)
{
    struct points all;

    for (uint32_t q = 0; q < device->n_queues; q++)
        if (atomic_load_explicit(&device->queues[q].inside, memory_order_relaxed))
            return false;
    device_submitted(device, &all);
    return device_has_reached_points(device, &all);
}

/* ---- locks ---- */

static void enter(struct device_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    atomic_store_explicit(&queue->inside, (uint64_t)pthread_self(), memory_order_relaxed);
}

static void leave(struct device_queue *queue)
{
    atomic_store_explicit(&queue->inside, 0, memory_order_relaxed);
    pthread_mutex_unlock(&queue->lock);
}

/* ---- submitting ---- */

/* Inside the lock: what of `after` has to be waited for; returns how many. */
static uint32_t gather_waits(const frit_device *device, uint32_t queue, const struct points *after,
                             frit_point *out)
{
    uint32_t n = 0;

    for (uint32_t q = 0; after && q < device->n_queues; q++) {
        uint64_t value = after->at[q];

        if (q != queue && value > queue_reached(device, q) &&
            value > atomic_load(&device->queues[queue].waited[q]))
            out[n++] = (frit_point){device->queues[q].handle, value};
    }
    return n;
}

/* Inside the lock: the call with these waits reaches `value`, which nobody sees before what it
 * waited for. */
static void note_call(frit_device *device, uint32_t queue, const struct points *after, uint32_t n,
                      uint64_t value)
{
    struct device_queue *own = &device->queues[queue];

    for (uint32_t q = 0; n && q < device->n_queues; q++) {
        if (q != queue)
            queue_raise(&own->waited[q], after->at[q]);
    }
    queue_raise(&own->last_value, value);
}

/* Inside the lock, after a call that handed commands over. */
static void note_submit(frit_device *device, uint32_t queue, uint64_t value)
{
    struct device_queue *own = &device->queues[queue];
    uint64_t point = point_of(queue, value);
    struct points points = {0};
    frit_err detail;
    frit_status st;

    atomic_store_explicit(&own->submits, atomic_load(&own->submits) + 1, memory_order_relaxed);
    if (!(device->info->caps & FRIT_CAP_INLINE_QUEUE))
        return;
    err_init(&detail);
    /* Work that ran inside submit has failed by now or never.  It has run in any case, so that a
     * wait that fails is a failure of the commands and not a refusal.  Checked while the driver's
     * queue is still this core's; and where a read that the driver made inside reached more, since
     * the failures were not known then. */
    points_add(&points, point);
    if (queue_has_reached(device, point))
        st = queue_wait_one(device, point, &detail);
    else
        st = queue_await(device, &points, &detail);
    if (st)
        lineage_report(device->lineage, &(struct lineage_report){.from = point,
                                                                 .to = point,
                                                                 .command = FRIT_ALL_COMMANDS,
                                                                 .reason = &detail});
}

/* Outside of the lock, after such a call. */
static frit_status end_submit(frit_device *device, frit_status st, uint64_t begun, const char *slot,
                              frit_err *err)
{
    bool inside = device->info->caps & FRIT_CAP_INLINE_QUEUE;

    timeline_end(begun, "device", str_of(slot));
    profile_poll(device->profile);
    memory_poll(device->memory, inside ? PROGRESS_KNOWN : PROGRESS_QUERY);
    retired_reap(device);
    if (st >= 0)
        return FRIT_OK;
    device_explain_loss(device, err);
    return st;
}

/* A timeline that does not count up says nothing of what is done, so that the device is lost.
 * `least`: what it has to return; it may have made other calls meanwhile. */
static frit_status check_value(uint64_t value, uint64_t least, const char *slot, frit_err *err)
{
    if (value >= least && value >> POINT_SHIFT == 0)
        return FRIT_OK;
    return fail(err, FRIT_DEVICE_LOST,
                "%s returned the value %llu, at least %llu and less than 2^%d was expected: the "
                "driver does not count its timeline up",
                slot, (unsigned long long)value, (unsigned long long)least, POINT_SHIFT);
}

/* A call that hands commands over, between begin_call and end_call. */
struct submit_call {
    uint32_t queue;
    uint64_t least; /* value that the driver has to return */
    uint32_t n_waits;
    frit_point waits[QUEUES_MAX];
    const struct points *after;
    bool effects;
    struct points with_effects; /* with effects what `after` points to */
};

static void begin_call(struct submit_call *call, frit_device *device, uint32_t queue,
                       const struct submit_after *after)
{
    call->queue = queue;
    call->after = &after->points;
    call->effects = after->effects;
    if (after->effects) {
        call->with_effects = after->points;
        effects_begin(&device->effects, &call->with_effects);
        call->after = &call->with_effects;
    }
    enter(&device->queues[queue]);
    call->least = atomic_load(&device->queues[queue].last_value) + 1;
    call->n_waits = gather_waits(device, queue, call->after, call->waits);
}

/* The driver's slot returned `st` and, unless it failed, the value that the commands reach. */
static void end_call(const struct submit_call *call, frit_device *device, frit_status st,
                     uint64_t value, uint64_t *point)
{
    if (st >= 0) {
        *point = point_of(call->queue, value);
        note_call(device, call->queue, call->after, call->n_waits, value);
        note_submit(device, call->queue, value);
    }
    leave(&device->queues[call->queue]);
    if (call->effects)
        effects_end(&device->effects, st >= 0 ? *point : 0);
}

/* The first submits of a device are those that may show that it does not work at all. */
static unsigned begin_first(frit_device *device)
{
    return atomic_load_explicit(&device->n_first, memory_order_relaxed) < FIRST_SUBMITS
               ? breadcrumb_enter(device->entry->plugin->path, BREADCRUMB_SUBMIT, BREADCRUMB_LAUNCH)
               : BREADCRUMB_NONE;
}

static void end_first(frit_device *device, unsigned place)
{
    if (place == BREADCRUMB_NONE)
        return;
    breadcrumb_leave(place);
    if (atomic_fetch_add(&device->n_first, 1) + 1 == FIRST_SUBMITS)
        quarantine_clear(device->entry->plugin->suspect, BREADCRUMB_SUBMIT);
}

frit_status device_submit(frit_device *device, uint32_t queue, const frit_cmd *cmds, uint32_t count,
                          const struct submit_after *after, uint64_t *point, frit_err *err)
{
    uint64_t begun = timeline_begin(), value = 0;
    bool profiled = profile_is_on(device->profile) && profile_begin(device->profile, &cmds, &count);
    struct submit_call call;
    unsigned place;
    frit_status st;

    begin_call(&call, device, queue, after);
    place = begin_first(device);
    st = fail_from(err,
                   device->backend->submit(device->self, device->queues[queue].handle, cmds, count,
                                           sizeof(*cmds), call.waits, call.n_waits, &value, err),
                   "submit");
    end_first(device, place);
    if (!st)
        st = check_value(value, call.least, "submit", err);
    end_call(&call, device, st, value, point);
    if (profiled)
        profile_end(device->profile, st >= 0 ? *point : 0);
    return end_submit(device, st, begun, "submit", err);
}

/* ---- recordings ---- */

frit_status device_record(frit_device *device, uint32_t queue, const frit_cmd *cmds, uint32_t count,
                          const frit_param *params, uint32_t n_params, frit_recording **out)
{
    struct device_queue *own = &device->queues[queue];
    uint64_t begun = timeline_begin();
    frit_err err = ERR_INIT;
    frit_status st;

    *out = NULL;
    enter(own);
    st = fail_from(&err,
                   device->capture->record(device->self, own->handle, cmds, count, sizeof(*cmds),
                                           params, n_params, sizeof(*params), out, &err),
                   "record");
    if (!st && !*out)
        st = fail(&err, FRIT_INTERNAL, "record gave no recording and no error");
    leave(own);
    timeline_end(begun, "device", str_of("record"));
    if (st < 0 && st != FRIT_UNSUPPORTED && st != FRIT_BUSY)
        log_write(FRIT_LOG_WARN, "stream", "%s: record: %s", device->name, err.text);
    return st < 0 ? st : FRIT_OK;
}

frit_status device_replay(frit_device *device, const struct device_replay *replay,
                          const struct submit_after *after, uint64_t *point, frit_err *err)
{
    uint64_t begun = timeline_begin(), value = 0;
    struct submit_call call;
    frit_status st;

    begin_call(&call, device, replay->queue, after);
    st = fail_from(err,
                   device->capture->replay(device->self, replay->recording, replay->block,
                                           call.waits, call.n_waits, &value, err),
                   "replay");
    if (!st)
        st = check_value(value, call.least, "replay", err);
    end_call(&call, device, st, value, point);
    if (st && st != FRIT_UNSUPPORTED)
        log_write(FRIT_LOG_WARN, "stream", "%s: replay: %s", device->name, err ? err->text : "");
    return end_submit(device, st, begun, "replay", err);
}

/* ---- transfers ---- */

/* The queue whose lock this thread has, n_queues: none. */
static uint32_t find_inside(const frit_device *device)
{
    uint32_t q = 0;

    while (q < device->n_queues &&
           atomic_load_explicit(&device->queues[q].inside, memory_order_relaxed) !=
               (uint64_t)pthread_self())
        q++;
    return q;
}

/* Takes the lock of a queue: this one, or one that is free.  A driver's submit may call back: its
 * thread has a lock, of whichever queue, and waits for no other; then *again is true. */
static uint32_t enter_any(frit_device *device, uint32_t queue, bool *again)
{
    uint32_t inside;

    *again = false;
    for (uint32_t i = 0; i < device->n_queues && device->n_queues > 1; i++) {
        uint32_t q = (queue + i) % device->n_queues;

        if (!pthread_mutex_trylock(&device->queues[q].lock)) {
            atomic_store_explicit(&device->queues[q].inside, (uint64_t)pthread_self(),
                                  memory_order_relaxed);
            return q;
        }
    }
    inside = find_inside(device);
    *again = inside < device->n_queues;
    if (*again)
        return inside;
    enter(&device->queues[queue]);
    return queue;
}

/* A transfer that is made, and what is known of it. */
struct transfer_call {
    frit_transfer *transfer;
    const struct points *after;
    uint32_t queue;
    bool again;
    frit_point waits[QUEUES_MAX];
};

static void begin_transfer(struct transfer_call *call, frit_device *device, uint32_t queue,
                           frit_transfer *transfer, const struct points *after)
{
    call->transfer = transfer;
    call->after = after;
    call->queue = enter_any(device, queue, &call->again);
    transfer->queue = device->queues[call->queue].handle;
    transfer->waits = call->waits;
    transfer->n_waits = gather_waits(device, call->queue, after, call->waits);
}

static frit_status end_transfer(const struct transfer_call *call, frit_device *device,
                                frit_status st, uint64_t *point, frit_err *err)
{
    if (!st) {
        note_call(device, call->queue, call->after, call->transfer->n_waits, *point);
        *point = point_of(call->queue, *point);
    }
    if (!call->again)
        leave(&device->queues[call->queue]);
    if (st)
        device_explain_loss(device, err);
    return st;
}

frit_status device_write(frit_device *device, uint32_t queue, frit_transfer *to, const void *from,
                         const struct points *after, uint64_t *point, frit_err *err)
{
    struct transfer_call call;
    frit_status st;

    begin_transfer(&call, device, queue, to, after);
    *point = 0;
    st = fail_from(err, device->backend->write(device->self, to, from, point, err), "write");
    if (!st) /* a value of before, where nothing is pending any more */
        st = check_value(*point, 0, "write", err);
    return end_transfer(&call, device, st, point, err);
}

frit_status device_read(frit_device *device, uint32_t queue, frit_transfer *from, void *into,
                        const struct points *after, uint64_t *point, frit_err *err)
{
    struct transfer_call call;
    frit_status st;

    begin_transfer(&call, device, queue, from, after);
    *point = 0;
    st = fail_from(err, device->backend->read(device->self, from, into, point, err), "read");
    if (!st) /* a value of before, where nothing is pending any more */
        st = check_value(*point, 0, "read", err);
    return end_transfer(&call, device, st, point, err);
}

frit_status device_copy_from(frit_device *device, uint32_t queue, frit_transfer *to,
                             const frit_peer_source *from, const struct points *after,
                             uint64_t *point, frit_err *err)
{
    struct transfer_call call;
    frit_status st;

    begin_transfer(&call, device, queue, to, after);
    *point = 0;
    st =
        fail_from(err, device->backend->copy_from(device->self, to, from, point, err), "copy_from");
    if (!st)
        st = check_value(*point, 0, "copy_from", err);
    return end_transfer(&call, device, st, point, err);
}
