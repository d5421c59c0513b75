/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for queues, and the failures that waits report. */
#include "device/wait.h"

#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/profile.h"
#include "device/queue_parts.h"
#include "load/breadcrumb.h"
#include "memory/memory.h"

enum {
    MAX_FAILURES = 4096, /* that one wait reports one by one */
    MAX_EARLY = 8        /* timeouts of a driver that does not wait */
};

bool device_knows_reached(const frit_device *device, const struct points *points)
{
    for (uint32_t q = 0; q < device->n_queues; q++) {
        if (points->at[q] > queue_reached(device, q))
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

/* Of what the driver says after the place that is known: the commands that it may mean.  A driver
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
    if (st != FRIT_TIMEOUT)
        st = fail_from(detail, st, "wait");
    if (!status_is_listed(failure.status))
        failure.status = fail_from(detail, failure.status, "a command");
    if (failure.status >= 0 && st != FRIT_DEVICE_LOST)
        return st;
    report = report_of(&failure, &known, reached, value);
    if (report.from > report.to && st != FRIT_DEVICE_LOST) /* it is known already */
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

/* Counts all that is not known yet as failed: a driver that reports more than MAX_FAILURES is
 * treated as one that cannot name the failed commands. */
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

        if (round == MAX_FAILURES) {
            give_up(device, point, detail);
            break;
        }
        (void)call_wait(device, point, timeout_ns, &again, &more);
    }
    return st;
}

static void raise_reached(frit_device *device, const struct points *points)
{
    for (uint32_t q = 0; q < device->n_queues; q++)
        queue_raise(&device->queues[q].reached, points->at[q]);
}

/* What the commands up to the points waited for on other queues.  Later commands of these queues
 * may have waited for more, which is added too. */
static void add_awaited(const frit_device *device, struct points *points)
{
    bool more = device->n_queues > 1;

    while (more) {
        more = false;
        for (uint32_t q = 0; q < device->n_queues; q++) {
            bool pending = points->at[q] > queue_reached(device, q);

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

/* Nothing but waiting is safe, since what the device is at work on is memory of callers too: a wait
 * that takes long has a warning, again when it took twice as long. */
static frit_status wait_patiently(frit_device *device, uint64_t point, frit_err *detail)
{
    const bool inside = device->info->caps & FRIT_CAP_INLINE_QUEUE; /* it is done, as a rule */
    uint64_t lasted = 0, step = breadcrumb_patience_ns(), begun = inside ? 0 : clock_ns();
    uint32_t n_early = 0;
    frit_status st;

    while ((st = wait_and_report(device, point, step, detail)) == FRIT_TIMEOUT &&
           lasted < UINT64_MAX / 4) {
        *detail = (frit_err)ERR_INIT;
        n_early += clock_ns() - begun < step / 2;
        if (n_early > MAX_EARLY)
            return fail(detail, FRIT_INTERNAL, "wait returned timeout before its time was over");
        begun = clock_ns();
        lasted += step;
        step = lasted;
        log_write(FRIT_LOG_WARN, "device", "%s: a wait has not returned for %.0f s", device->name,
                  (double)lasted * 1e-9);
    }
    return st;
}

/* A wait that fails leaves the queue at work, so it is tried again. */
frit_status queue_wait_one(frit_device *device, uint64_t point, frit_err *detail)
{
    frit_status st = wait_patiently(device, point, detail);

    if (st < 0 && st != FRIT_DEVICE_LOST) {
        *detail = (frit_err)ERR_INIT;
        st = wait_patiently(device, point, detail);
    }
    return st < 0 ? st : FRIT_OK;
}

/* Waits for what of the points is not known to be reached; the first wait that fails says how it
 * went.  The other queues are at work all the same. */
static frit_status wait_each(frit_device *device, const struct points *points, frit_err *detail)
{
    frit_status st = FRIT_OK;

    for (uint32_t q = 0; q < device->n_queues; q++) {
        frit_err again;

        if (points->at[q] <= queue_reached(device, q))
            continue;
        err_init(&again);
        if (st)
            (void)queue_wait_one(device, point_of(q, points->at[q]), &again);
        else
            st = queue_wait_one(device, point_of(q, points->at[q]), detail);
    }
    return st;
}

/* What the commands waited for is reached when they are, but for its failures, and for what later
 * commands wait for. */
frit_status queue_await(frit_device *device, const struct points *points, frit_err *err)
{
    uint64_t begun = timeline_begin();
    struct points all = *points;
    frit_err detail;
    frit_status st;

    err_init(&detail);
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
    TRY(queue_await(device, points, err));
    memory_poll(device->memory, PROGRESS_KNOWN);
    profile_poll(device->profile);
    return FRIT_OK;
}

frit_status device_wait(frit_device *device, uint64_t point, frit_err *err)
{
    struct points points = {0};

    if (queue_has_reached(device, point))
        return FRIT_OK;
    points_add(&points, point);
    return device_wait_points(device, &points, err);
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

        if (all.at[q] <= queue_reached(device, q))
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

    if (queue_has_reached(device, point))
        return true;
    points_add(&points, point);
    return device_has_reached_points(device, &points);
}
