/* SPDX-License-Identifier: Apache-2.0 */
#include "device/queue.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/retired.h"
#include "exec/team.h"

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
        frit_status st = backend->queue_create(device->self, &desc,
                                               &device->queues[device->n_queues].handle, &err);

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

/* ---- waiting ---- */

static uint64_t reached_on(const frit_device *device, uint32_t queue)
{
    return atomic_load(&device->queues[queue].reached);
}

static bool is_reached(const frit_device *device, uint64_t point)
{
    return point_value(point) <= reached_on(device, point_queue(point));
}

bool device_knows_reached(const frit_device *device, const struct points *points)
{
    for (uint32_t q = 0; q < device->n_queues; q++) {
        if (points->at[q] > reached_on(device, q))
            return false;
    }
    return true;
}

/* One call of the driver's wait; what it says of failed commands is reported.  A driver that does
 * not say when the command failed may mean any that is not known. */
static frit_status call_wait(frit_device *device, uint64_t point, uint64_t timeout_ns,
                             frit_err *detail, bool *more)
{
    uint32_t q = point_queue(point);
    uint64_t value = point_value(point), reached = reached_on(device, q), from;
    struct lineage_place known = lineage_known(device->lineage, q);
    frit_failure failure = {
        .struct_size = sizeof(failure), .value = known.value, .command = known.command};
    frit_status st = device->backend->wait(device->self, device->queues[q].handle, value,
                                           timeout_ns, &failure, detail);
    struct lineage_report report = {.command = failure.command, .cookie = failure.cookie};

    *more = false;
    if (failure.status >= 0 && st != FRIT_DEVICE_LOST)
        return st;
    from = failure.value;
    if (failure.value < known.value || failure.value > value ||
        (failure.value == known.value && failure.command <= known.command)) {
        from = (known.value > reached ? known.value : reached) + 1;
        failure.value = value;
        report.command = FRIT_ALL_COMMANDS;
    }
    if (st == FRIT_DEVICE_LOST) { /* what is not reached never will be */
        failure.value = atomic_load(&device->queues[q].last_value);
        report.cookie = 0;
        report.command = FRIT_ALL_COMMANDS;
    }
    report.from = point_of(q, from);
    report.to = point_of(q, failure.value);
    detail->status = failure.status < 0 ? failure.status : st;
    report.reason = detail;
    *more = lineage_report(device->lineage, &report) && st >= 0 &&
            (report.to < point || report.command != FRIT_ALL_COMMANDS);
    return st;
}

/* Waits until there is nothing more to report; the first call says how the wait went. */
static frit_status wait_and_report(frit_device *device, uint64_t point, uint64_t timeout_ns,
                                   frit_err *detail)
{
    bool more;
    frit_status st = call_wait(device, point, timeout_ns, detail, &more);

    while (more) {
        frit_err again = ERR_INIT;

        (void)call_wait(device, point, timeout_ns, &again, &more);
    }
    return st;
}

static void raise_to(atomic_uint_least64_t *highest, uint64_t value)
{
    uint64_t now = atomic_load(highest);

    while (now < value && !atomic_compare_exchange_weak(highest, &now, value))
        ;
}

static void raise_reached(frit_device *device, const struct points *points)
{
    for (uint32_t q = 0; q < device->n_queues; q++)
        raise_to(&device->queues[q].reached, points->at[q]);
}

/* What the commands up to the points waited for on other queues.  Later commands of these queues
 * may have waited for more, which is added too. */
static void add_awaited(const frit_device *device, struct points *points)
{
    bool more = device->n_queues > 1;

    while (more) {
        more = false;
        for (uint32_t q = 0; q < device->n_queues; q++) {
            for (uint32_t r = 0; r < device->n_queues; r++) {
                uint64_t value = atomic_load(&device->queues[q].waited[r]);

                if (points->at[q] <= reached_on(device, q) || value <= points->at[r])
                    continue;
                points->at[r] = value;
                more = true;
            }
        }
    }
}

/* A wait that fails leaves the queue at work, on memory of callers too, so it is tried again. */
static frit_status wait_one(frit_device *device, uint64_t point, frit_err *detail)
{
    frit_status st = wait_and_report(device, point, UINT64_MAX, detail);

    if (st < 0 && st != FRIT_DEVICE_LOST) {
        *detail = (frit_err)ERR_INIT;
        st = wait_and_report(device, point, UINT64_MAX, detail);
    }
    return st < 0 ? st : FRIT_OK;
}

/* Waits for what of the points is not known to be reached. */
static frit_status wait_each(frit_device *device, const struct points *points, frit_err *detail)
{
    frit_status st = FRIT_OK;

    for (uint32_t q = 0; q < device->n_queues && !st; q++) {
        if (points->at[q] > reached_on(device, q))
            st = wait_one(device, point_of(q, points->at[q]), detail);
    }
    return st;
}

/* What the commands waited for is reached when they are, but for its failures, and for what later
 * commands wait for. */
frit_status device_wait_points(frit_device *device, const struct points *points, frit_err *err)
{
    uint64_t begun = timeline_begin();
    struct points all = *points;
    frit_err detail = ERR_INIT;
    frit_status st;

    add_awaited(device, &all);
    st = wait_each(device, points, &detail);
    if (!st && device->n_queues > 1)
        st = wait_each(device, &all, &detail);
    timeline_end(begun, "device", str_of("wait"));
    if (!st) {
        raise_reached(device, &all);
        memory_poll(device->memory, PROGRESS_KNOWN);
        return FRIT_OK;
    }
    fail_from(&detail, st, "wait");
    device_explain_loss(device, &detail);
    if (!err)
        return st;
    *err = detail;
    return fail_context(err, "waiting for %s", device->name);
}

frit_status device_wait(frit_device *device, uint64_t point, frit_err *err)
{
    struct points points = {0};

    if (is_reached(device, point))
        return FRIT_OK;
    points_add(&points, point);
    return device_wait_points(device, &points, err);
}

frit_status device_wait_queue(frit_device *device, uint32_t queue, frit_err *err)
{
    return device_wait(device, point_of(queue, atomic_load(&device->queues[queue].last_value)),
                       err);
}

frit_status device_wait_all(frit_device *device, frit_err *err)
{
    struct points all;

    device_submitted(device, &all);
    return device_knows_reached(device, &all) ? FRIT_OK : device_wait_points(device, &all, err);
}

bool device_has_reached_points(frit_device *device, const struct points *points)
{
    struct points all = *points;
    bool lost = false;

    if (device_knows_reached(device, points))
        return true;
    add_awaited(device, &all);
    for (uint32_t q = 0; q < device->n_queues; q++) {
        frit_err detail = ERR_INIT;
        frit_status st;

        if (all.at[q] <= reached_on(device, q))
            continue;
        st = wait_and_report(device, point_of(q, all.at[q]), 0, &detail);
        if (st < 0 && st != FRIT_DEVICE_LOST)
            return false;
        lost |= st == FRIT_DEVICE_LOST;
    }
    if (!lost)
        raise_reached(device, &all);
    return true;
}

bool device_has_reached(frit_device *device, uint64_t point)
{
    struct points points = {0};

    if (is_reached(device, point))
        return true;
    points_add(&points, point);
    return device_has_reached_points(device, &points);
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

/* ---- submitting; under the queue's lock ---- */

/* What of `after` has to be waited for; returns how many. */
static uint32_t gather_waits(const frit_device *device, uint32_t queue, const struct points *after,
                             frit_point *out)
{
    uint32_t n = 0;

    for (uint32_t q = 0; after && q < device->n_queues; q++) {
        uint64_t value = after->at[q];

        if (q != queue && value > reached_on(device, q) &&
            value > atomic_load(&device->queues[queue].waited[q]))
            out[n++] = (frit_point){device->queues[q].handle, value};
    }
    return n;
}

/* The call with these waits reaches `value`. */
static void note_call(frit_device *device, uint32_t queue, const struct points *after, uint32_t n,
                      uint64_t value)
{
    struct device_queue *own = &device->queues[queue];

    raise_to(&own->last_value, value);
    for (uint32_t q = 0; n && q < device->n_queues; q++) {
        if (q != queue)
            raise_to(&own->waited[q], after->at[q]);
    }
}

frit_status device_submit(frit_device *device, uint32_t queue, const frit_cmd *cmds, uint32_t count,
                          const struct points *after, uint64_t *point, frit_err *err)
{
    struct device_queue *own = &device->queues[queue];
    bool inside = device->info->caps & FRIT_CAP_INLINE_QUEUE;
    uint64_t begun = timeline_begin(), value;
    frit_point waits[QUEUES_MAX];
    frit_err detail = ERR_INIT;
    frit_status st;
    uint32_t n;

    pthread_mutex_lock(&own->lock);
    n = gather_waits(device, queue, after, waits);
    st = device->backend->submit(device->self, own->handle, cmds, count, sizeof(*cmds), waits, n,
                                 &value, err);
    if (st >= 0) {
        *point = point_of(queue, value);
        note_call(device, queue, after, n, value);
        atomic_store_explicit(&own->submits, atomic_load(&own->submits) + 1, memory_order_relaxed);
    }
    /* Work that ran inside submit has failed by now or never.  It has run in any case, so that a
     * wait that fails is a failure of the commands and not a refusal.  Asked while the driver's
     * queue is still this core's. */
    if (st >= 0 && inside && device_wait(device, *point, &detail))
        lineage_report(device->lineage, &(struct lineage_report){.from = *point,
                                                                 .to = *point,
                                                                 .command = FRIT_ALL_COMMANDS,
                                                                 .reason = &detail});
    pthread_mutex_unlock(&own->lock);
    timeline_end(begun, "device", str_of("submit"));
    if (!inside)
        memory_poll(device->memory, PROGRESS_ASK);
    retired_reap(device);
    if (st >= 0)
        return FRIT_OK;
    fail_from(err, st, "submit");
    device_explain_loss(device, err);
    return st;
}

/* ---- transfers ---- */

/* Takes the lock of a queue: this one, or one that is free. */
static uint32_t enter_any(frit_device *device, uint32_t queue)
{
    for (uint32_t i = 0; i < device->n_queues && device->n_queues > 1; i++) {
        uint32_t q = (queue + i) % device->n_queues;

        if (!pthread_mutex_trylock(&device->queues[q].lock))
            return q;
    }
    pthread_mutex_lock(&device->queues[queue].lock);
    return queue;
}

/* Of a call that has gathered its waits and taken the lock. */
static frit_status leave(frit_device *device, uint32_t queue, const frit_transfer *transfer,
                         const struct points *after, frit_status st, uint64_t *point)
{
    if (st >= 0) {
        note_call(device, queue, after, transfer->n_waits, *point);
        *point = point_of(queue, *point);
    }
    pthread_mutex_unlock(&device->queues[queue].lock);
    return st;
}

frit_status device_write(frit_device *device, uint32_t queue, frit_transfer *to, const void *from,
                         const struct points *after, uint64_t *point, frit_err *err)
{
    frit_point waits[QUEUES_MAX];
    frit_status st;

    queue = enter_any(device, queue);
    to->queue = device->queues[queue].handle;
    to->waits = waits;
    to->n_waits = gather_waits(device, queue, after, waits);
    st = device->backend->write(device->self, to, from, point, err);
    st = leave(device, queue, to, after, st, point);
    if (st >= 0)
        return FRIT_OK;
    fail_from(err, st, "write");
    device_explain_loss(device, err);
    return st;
}

frit_status device_read(frit_device *device, uint32_t queue, frit_transfer *from, void *into,
                        const struct points *after, uint64_t *point, frit_err *err)
{
    frit_point waits[QUEUES_MAX];
    frit_status st;

    queue = enter_any(device, queue);
    from->queue = device->queues[queue].handle;
    from->waits = waits;
    from->n_waits = gather_waits(device, queue, after, waits);
    st = device->backend->read(device->self, from, into, point, err);
    st = leave(device, queue, from, after, st, point);
    if (st >= 0)
        return FRIT_OK;
    fail_from(err, st, "read");
    device_explain_loss(device, err);
    return st;
}
