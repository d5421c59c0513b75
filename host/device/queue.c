/* SPDX-License-Identifier: Apache-2.0 */
#include "device/queue.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/profile.h"
#include "device/retired.h"
#include "exec/team.h"

enum { MOST_FAILURES = 4096 }; /* that are told one by one in a wait */

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

/* Whether more is known of the queue than a caller knew, by whichever thread, and not all up to
 * `value`. */
static bool more_may_have_failed(const frit_device *device, uint32_t queue,
                                 const struct lineage_place *before, uint64_t value)
{
    struct lineage_place now = lineage_known(device->lineage, queue);

    return (now.value > before->value || now.command > before->command) &&
           (now.value < value || (now.value == value && now.command != FRIT_ALL_COMMANDS));
}

/* Of what the driver says behind the place that is known: the commands that it may mean.  A driver
 * that does not say which failed may mean any that is not known. */
static struct lineage_report report_of(const frit_failure *failure,
                                       const struct lineage_place *known, uint64_t reached,
                                       uint64_t value)
{
    struct lineage_report report = {.from = failure->value,
                                    .to = failure->value,
                                    .command =
                                        failure->command ? failure->command : FRIT_ALL_COMMANDS};

    if (failure->value < known->value || failure->value > value ||
        (failure->value == known->value && failure->command <= known->command)) {
        report.from = (known->value > reached ? known->value : reached) + 1;
        report.to = value;
        report.command = FRIT_ALL_COMMANDS;
    }
    return report;
}

/* One call of the driver's wait; what it says of failed commands is reported. */
static frit_status call_wait(frit_device *device, uint64_t point, uint64_t timeout_ns,
                             frit_err *detail, bool *more)
{
    uint32_t queue = point_queue(point);
    const struct device_queue *own = &device->queues[queue];
    uint64_t value = point_value(point);
    struct lineage_place known = lineage_known(device->lineage, queue);
    uint64_t reached = atomic_load(&own->reached);
    frit_failure failure = {
        .struct_size = sizeof(failure), .value = known.value, .command = known.command};
    frit_status st =
        device->backend->wait(device->self, own->handle, value, timeout_ns, &failure, detail);
    struct lineage_report report;

    *more = false;
    if (st > 0)
        st = fail_from(detail, st, "wait");
    if (failure.status > 0)
        failure.status = fail_from(detail, failure.status, "a command");
    if (failure.status >= 0 && st != FRIT_DEVICE_LOST)
        return st;
    report = report_of(&failure, &known, reached, value);
    if (report.from > report.to && st != FRIT_DEVICE_LOST) /* told again what is known */
        return st;
    report.cookie = failure.cookie;
    if (st == FRIT_DEVICE_LOST) /* what is not reached never will be */
        report = (struct lineage_report){
            .from = report.from, .to = atomic_load(&own->last_value), .command = FRIT_ALL_COMMANDS};
    report.from = point_of(queue, report.from);
    report.to = point_of(queue, report.to);
    detail->status = failure.status < 0 ? failure.status : st;
    report.reason = detail;
    (void)lineage_report(device->lineage, &report);
    *more = st >= 0 && more_may_have_failed(device, queue, &known, value);
    return st;
}

/* Takes all that is not known yet for failed: a driver that has so much to tell is taken for one
 * that does not know. */
static void give_up(frit_device *device, uint64_t point, const frit_err *reason)
{
    uint32_t queue = point_queue(point);
    const struct lineage_report rest = {
        .from = point_of(queue, lineage_known(device->lineage, queue).value),
        .to = point,
        .command = FRIT_ALL_COMMANDS,
        .reason = reason};

    (void)lineage_report(device->lineage, &rest);
}

/* Waits until there is nothing more to report; the first call says how the wait went. */
static frit_status wait_and_report(frit_device *device, uint64_t point, uint64_t timeout_ns,
                                   frit_err *detail)
{
    bool more;
    frit_status st = call_wait(device, point, timeout_ns, detail, &more);

    for (uint32_t round = 0; more; round++) {
        frit_err again = ERR_INIT;

        if (round == MOST_FAILURES) {
            give_up(device, point, detail);
            break;
        }
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
            bool pending = points->at[q] > reached_on(device, q);

            for (uint32_t r = 0; r < device->n_queues && pending; r++) {
                uint64_t value = atomic_load(&device->queues[q].waited[r]);

                if (value <= points->at[r])
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

/* Waits for what of the points is not known to be reached; the first wait that fails says how it
 * went.  The other queues are at work all the same. */
static frit_status wait_each(frit_device *device, const struct points *points, frit_err *detail)
{
    frit_status st = FRIT_OK;

    for (uint32_t q = 0; q < device->n_queues; q++) {
        frit_err again = ERR_INIT;

        if (points->at[q] <= reached_on(device, q))
            continue;
        if (st)
            (void)wait_one(device, point_of(q, points->at[q]), &again);
        else
            st = wait_one(device, point_of(q, points->at[q]), detail);
    }
    return st;
}

/* What the commands waited for is reached when they are, but for its failures, and for what later
 * commands wait for.  Calls the driver's wait alone, so that it may be called inside a queue's
 * lock.
 */
static frit_status await_points(frit_device *device, const struct points *points, frit_err *err)
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

frit_status device_wait_points(frit_device *device, const struct points *points, frit_err *err)
{
    TRY(await_points(device, points, err));
    memory_poll(device->memory, PROGRESS_KNOWN);
    profile_poll(device->profile);
    return FRIT_OK;
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

/* ---- submitting; inside the queue's lock ---- */

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

/* The call with these waits reaches `value`, which nobody sees before what it waited for. */
static void note_call(frit_device *device, uint32_t queue, const struct points *after, uint32_t n,
                      uint64_t value)
{
    struct device_queue *own = &device->queues[queue];

    for (uint32_t q = 0; n && q < device->n_queues; q++) {
        if (q != queue)
            raise_to(&own->waited[q], after->at[q]);
    }
    raise_to(&own->last_value, value);
}

/* Inside the lock, after a call that handed commands over. */
static void note_submit(frit_device *device, uint32_t queue, uint64_t value)
{
    struct device_queue *own = &device->queues[queue];
    uint64_t point = point_of(queue, value);
    struct points points = {0};
    frit_err detail = ERR_INIT;
    frit_status st;

    atomic_store_explicit(&own->submits, atomic_load(&own->submits) + 1, memory_order_relaxed);
    if (!(device->info->caps & FRIT_CAP_INLINE_QUEUE))
        return;
    /* Work that ran inside submit has failed by now or never.  It has run in any case, so that a
     * wait that fails is a failure of the commands and not a refusal.  Asked while the driver's
     * queue is still this core's; and where a read that the driver made inside reached more, since
     * the failures were not known then. */
    points_add(&points, point);
    if (is_reached(device, point))
        st = wait_one(device, point, &detail);
    else
        st = await_points(device, &points, &detail);
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
    memory_poll(device->memory, inside ? PROGRESS_KNOWN : PROGRESS_ASK);
    retired_reap(device);
    if (st >= 0)
        return FRIT_OK;
    device_explain_loss(device, err);
    return st;
}

frit_status device_submit(frit_device *device, uint32_t queue, const frit_cmd *cmds, uint32_t count,
                          const struct points *after, uint64_t *point, frit_err *err)
{
    struct device_queue *own = &device->queues[queue];
    uint64_t begun = timeline_begin(), value;
    bool profiled = profile_is_on(device->profile) && profile_begin(device->profile, &cmds, &count);
    frit_point waits[QUEUES_MAX];
    frit_status st;
    uint32_t n;

    enter(own);
    n = gather_waits(device, queue, after, waits);
    st = fail_from(err,
                   device->backend->submit(device->self, own->handle, cmds, count, sizeof(*cmds),
                                           waits, n, &value, err),
                   "submit");
    if (st >= 0) {
        *point = point_of(queue, value);
        note_call(device, queue, after, n, value);
        note_submit(device, queue, value);
    }
    leave(own);
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
    leave(own);
    timeline_end(begun, "device", str_of("record"));
    if (st < 0 && st != FRIT_UNSUPPORTED)
        log_write(FRIT_LOG_WARN, "stream", "%s: record: %s", device->name, err.text);
    return st < 0 ? st : FRIT_OK;
}

frit_status device_replay(frit_device *device, const struct device_replay *replay,
                          const struct points *after, uint64_t *point, frit_err *err)
{
    struct device_queue *own = &device->queues[replay->queue];
    uint64_t begun = timeline_begin(), value;
    frit_point waits[QUEUES_MAX];
    frit_status st;
    uint32_t n;

    enter(own);
    n = gather_waits(device, replay->queue, after, waits);
    st = fail_from(err,
                   device->capture->replay(device->self, replay->recording, replay->block, waits, n,
                                           &value, err),
                   "replay");
    if (st >= 0) {
        *point = point_of(replay->queue, value);
        note_call(device, replay->queue, after, n, value);
        note_submit(device, replay->queue, value);
    }
    leave(own);
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
    st = fail_from(err, device->backend->write(device->self, to, from, point, err), "write");
    return end_transfer(&call, device, st, point, err);
}

frit_status device_read(frit_device *device, uint32_t queue, frit_transfer *from, void *into,
                        const struct points *after, uint64_t *point, frit_err *err)
{
    struct transfer_call call;
    frit_status st;

    begin_transfer(&call, device, queue, from, after);
    st = fail_from(err, device->backend->read(device->self, from, into, point, err), "read");
    return end_transfer(&call, device, st, point, err);
}
