/* SPDX-License-Identifier: Apache-2.0 */
/* Every wait returns the failures that its caller does not know yet, also those that did not fit
 * into the list; asynchronous work is waited for until it is done or the device is lost. */
#include "plugins/util/progress.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- a host with error texts alone ---- */

static frit_status set_error(void *self, frit_err *err, frit_status status, int64_t native_code,
                             frit_str text)
{
    (void)self;
    err->status = status;
    err->native_code = native_code;
    snprintf(err->text, sizeof err->text, "%.*s", (int)text.len, text.ptr);
    return status;
}

static const frit_host_core core = {.struct_size = sizeof core, .err_set = set_error};
static const frit_host_root host = {.struct_size = sizeof host};
static const struct plug plug = {.name = "test", .host = &host, .core = &core};

/* ---- failures ---- */

static struct fault fault_of(uint64_t cookie)
{
    return (struct fault){.cookie = cookie,
                          .err = {.status = FRIT_IO, .native_code = 11, .text = "broken"}};
}

/* The failure that a caller gets that knows of failures up to `known`. */
static frit_failure failure_after(struct progress *progress, uint64_t known, uint64_t value)
{
    frit_failure failure = {
        .struct_size = sizeof failure, .status = 77, .value = known, .cookie = 78};
    frit_err err = {.struct_size = sizeof err};

    assert_int_equal(progress_wait(progress, value, 0, &failure, &err), FRIT_OK);
    if (failure.status) {
        assert_int_equal(failure.status, FRIT_IO);
        assert_string_equal(err.text, "broken");
        assert_int_equal(err.native_code, 11);
    } else {
        assert_int_equal(failure.value, known);
        assert_int_equal(failure.command, 0);
        assert_int_equal(failure.cookie, 78);
        assert_string_equal(err.text, "");
    }
    return failure;
}

static void again_and_again(void **state)
{
    struct fault fault = fault_of(5);
    struct progress progress;

    (void)state;
    progress_init(&progress, &plug);
    assert_int_equal(failure_after(&progress, 0, 0).status, FRIT_OK);
    assert_int_equal(progress_advance(&progress, NULL), 1);
    assert_int_equal(progress_advance(&progress, &fault), 2);
    assert_int_equal(progress_advance(&progress, NULL), 3);
    fault = fault_of(6);
    assert_int_equal(progress_advance(&progress, &fault), 4);

    assert_int_equal(failure_after(&progress, 0, 1).status, FRIT_OK); /* it failed after that */
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(failure_after(&progress, i / 2, 4).value, 2);
        assert_int_equal(failure_after(&progress, 0, 2).cookie, 5);
    }
    assert_int_equal(failure_after(&progress, 2, 3).status, FRIT_OK);
    assert_int_equal(failure_after(&progress, 2, 4).value, 4);
    assert_int_equal(failure_after(&progress, 3, 4).cookie, 6);
    assert_int_equal(failure_after(&progress, 4, 4).status, FRIT_OK);
    progress_fini(&progress);
}

/* Every value at which something failed is reported, whatever was reported in between. */
static void more_than_there_is_room_for(void **state)
{
    enum { COUNT = PROGRESS_FAULTS + 5 };
    struct progress progress;

    (void)state;
    progress_init(&progress, &plug);
    for (uint64_t i = 1; i <= COUNT; i++) {
        struct fault fault = fault_of(i);

        assert_int_equal(progress_advance(&progress, &fault), i);
    }
    for (uint64_t known = 0; known < COUNT; known++) {
        frit_failure failure = failure_after(&progress, known, COUNT);

        assert_int_equal(failure.value, known + 1);
        assert_int_equal(failure.cookie, known < PROGRESS_FAULTS ? known + 1 : PROGRESS_FAULTS);
    }
    assert_int_equal(failure_after(&progress, COUNT, COUNT).status, FRIT_OK);
    assert_int_equal(progress.n_faults, 0); /* room again */
    progress_fini(&progress);
}

/* ---- several of one value ---- */

static void expect(struct progress *progress, uint64_t known, uint32_t command, uint64_t value,
                   frit_failure expected)
{
    frit_failure failure = {.struct_size = sizeof failure, .value = known, .command = command};
    frit_err err = {.struct_size = sizeof err};

    assert_int_equal(progress_wait(progress, value, 0, &failure, &err), FRIT_OK);
    assert_int_equal(failure.status, expected.status);
    if (!expected.status)
        return;
    assert_int_equal(failure.value, expected.value);
    assert_int_equal(failure.command, expected.command);
    assert_int_equal(failure.cookie, expected.cookie);
}

static frit_failure failed(uint64_t value, uint32_t command, uint64_t cookie)
{
    return (frit_failure){.status = FRIT_IO, .value = value, .command = command, .cookie = cookie};
}

/* Commands 2, 4, 6 ... of value 1, one more than there is room for. */
static void each_command_is_reported(void **state)
{
    const frit_failure none = {.status = FRIT_OK};
    struct progress progress;
    uint64_t value = 0;
    frit_err err = {.struct_size = sizeof err};

    (void)state;
    progress_init(&progress, &plug);
    assert_int_equal(progress_issue(&progress, &value, &err), FRIT_OK);
    assert_int_equal(progress_issue(&progress, &value, &err), FRIT_OK);
    for (uint32_t i = 1; i <= PROGRESS_FAULTS + 1; i++) {
        struct fault fault = fault_of(i);

        fault.command = 2 * i;
        progress_fail(&progress, 1, &fault);
    }
    progress_reach(&progress, 1, NULL);
    progress_reach(&progress, 2, NULL);
    for (int again = 0; again < 2; again++)
        expect(&progress, 0, 0, 1, failed(1, 2, 1));
    expect(&progress, 1, 2, 2, failed(1, 4, 2));
    expect(&progress, 1, 5, 2, failed(1, 6, 3));
    expect(&progress, 1, 2 * PROGRESS_FAULTS - 2, 2, failed(1, FRIT_ALL_COMMANDS, PROGRESS_FAULTS));
    expect(&progress, 1, FRIT_ALL_COMMANDS, 2, none);
    expect(&progress, 1, 0, 2, none);
    progress_fini(&progress);
}

/* ---- queues that run on ---- */

static frit_status wait_for(struct progress *progress, uint64_t known, uint64_t value,
                            uint64_t timeout_ns, frit_failure *failure, frit_err *err)
{
    *failure = (frit_failure){.struct_size = sizeof *failure, .value = known};
    *err = (frit_err){.struct_size = sizeof *err};
    return progress_wait(progress, value, timeout_ns, failure, err);
}

static void issue(struct progress *progress, uint64_t expected)
{
    frit_err err = {.struct_size = sizeof err};
    uint64_t value = 0;

    assert_int_equal(progress_issue(progress, &value, &err), FRIT_OK);
    assert_int_equal(value, expected);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void what_is_not_reached_is_waited_for(void **state)
{
    const uint64_t ms = 1000000;
    struct progress progress;
    frit_queue *other = (frit_queue *)(void *)&progress;
    frit_failure failure;
    uint64_t begun;
    frit_err err;

    (void)state;
    progress_init(&progress, &plug);
    issue(&progress, 1);
    issue(&progress, 2);
    assert_int_equal(wait_for(&progress, 0, 1, 0, &failure, &err), FRIT_TIMEOUT);
    assert_string_equal(err.text, "test: value 1 is not reached yet");
    begun = now_ns();
    assert_int_equal(wait_for(&progress, 0, 1, 5 * ms, &failure, &err), FRIT_TIMEOUT);
    assert_true(now_ns() - begun >= 5 * ms);
    assert_int_equal(failure.status, FRIT_OK);
    assert_int_equal(wait_for(&progress, 0, 3, UINT64_MAX, &failure, &err), FRIT_INVALID);
    assert_string_equal(err.text, "test: wait for value 3, but the queue is at 2");
    progress_reach(&progress, 1, NULL);
    assert_int_equal(wait_for(&progress, 0, 1, UINT64_MAX, &failure, &err), FRIT_OK);
    assert_int_equal(wait_for(&progress, 0, 2, 0, &failure, &err), FRIT_TIMEOUT);
    assert_int_equal(progress_check(&progress, (frit_point[]){{NULL, 2}, {NULL, 1}}, 2, &err),
                     FRIT_OK);
    assert_int_equal(progress_check(&progress, (frit_point[]){{NULL, 2}, {other, 1}}, 2, &err),
                     FRIT_INVALID);
    progress_fini(&progress);
}

/* A failure somewhere between two values counts for each value after the first.  One that is
 * reported for a value that was reached already is ignored. */
static void values_may_be_reached_together(void **state)
{
    const struct fault fault = fault_of(8);
    struct progress progress;

    (void)state;
    progress_init(&progress, &plug);
    for (uint64_t value = 1; value <= 5; value++)
        issue(&progress, value);
    progress_reach(&progress, 2, NULL);
    progress_reach(&progress, 4, &fault);
    progress_reach(&progress, 3, &fault);
    assert_int_equal(failure_after(&progress, 0, 2).status, FRIT_OK);
    assert_int_equal(failure_after(&progress, 0, 4).value, 3);
    assert_int_equal(failure_after(&progress, 3, 4).value, 4);
    assert_int_equal(failure_after(&progress, 4, 4).status, FRIT_OK);
    progress_reach(&progress, 5, NULL);
    assert_int_equal(failure_after(&progress, 4, 5).status, FRIT_OK);
    progress_fini(&progress);
}

static void a_lost_device_reaches_no_more(void **state)
{
    const struct fault io = fault_of(8);
    struct fault lost = {.cookie = 9, .err = {.text = "gone"}};
    struct progress progress;
    frit_failure failure;
    uint64_t value = 0;
    frit_err err;

    (void)state;
    progress_init(&progress, &plug);
    for (uint64_t i = 1; i <= 4; i++)
        issue(&progress, i);
    progress_reach(&progress, 1, NULL);
    progress_reach(&progress, 2, &io);
    assert_int_equal(progress_check_lost(&progress, &err), FRIT_OK);
    progress_lose(&progress, &lost);
    lost.err.text[0] = 'x';
    progress_lose(&progress, &lost);
    progress_reach(&progress, 4, NULL);
    assert_int_equal(failure_after(&progress, 0, 1).status, FRIT_OK);
    assert_int_equal(failure_after(&progress, 0, 2).cookie, 8);
    assert_int_equal(wait_for(&progress, 2, 4, UINT64_MAX, &failure, &err), FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    assert_int_equal(failure.value, 3);
    assert_int_equal(failure.cookie, 9);
    assert_string_equal(err.text, "gone");
    assert_int_equal(wait_for(&progress, 3, 4, 0, &failure, &err), FRIT_DEVICE_LOST);
    assert_int_equal(failure.value, 4);
    err = (frit_err){.struct_size = sizeof err};
    assert_int_equal(progress_issue(&progress, &value, &err), FRIT_DEVICE_LOST);
    assert_string_equal(err.text, "gone");
    assert_int_equal(value, 0);
    err = (frit_err){.struct_size = sizeof err};
    assert_int_equal(progress_check_lost(&progress, &err), FRIT_DEVICE_LOST);
    assert_string_equal(err.text, "gone");
    progress_fini(&progress);
}

/* The words are always those of the status that is returned. */
static void a_loss_is_reported_whatever_failed_before(void **state)
{
    const struct fault io = fault_of(8);
    const struct fault lost = {.cookie = 9, .err = {.native_code = 12, .text = "gone"}};
    struct progress progress;
    frit_failure failure;
    frit_err err;

    (void)state;
    progress_init(&progress, &plug);
    for (uint64_t i = 1; i <= 3; i++)
        issue(&progress, i);
    progress_reach(&progress, 1, &io);
    progress_lose(&progress, &lost);
    for (uint64_t known = 0; known <= 3; known++) { /* of the fault, the loss, of all */
        const frit_status expected[] = {FRIT_IO, FRIT_DEVICE_LOST, FRIT_DEVICE_LOST, FRIT_OK};

        assert_int_equal(wait_for(&progress, known, 3, 0, &failure, &err), FRIT_DEVICE_LOST);
        assert_int_equal(failure.status, expected[known]);
        assert_int_equal(failure.value, known < 3 ? known + 1 : 3);
        assert_int_equal(err.status, FRIT_DEVICE_LOST);
        assert_int_equal(err.native_code, 12);
        assert_string_equal(err.text, "gone");
    }
    progress_fini(&progress);
}

static void a_wait_for_nothing_reports_no_failure(void **state)
{
    const struct fault io = fault_of(8);
    frit_failure failure = {.struct_size = sizeof failure, .status = 77, .cookie = 78};
    frit_err err = {.struct_size = sizeof err};
    struct progress progress;

    (void)state;
    progress_init(&progress, &plug);
    progress_advance(&progress, &io);
    assert_int_equal(progress_wait(&progress, 2, 0, &failure, &err), FRIT_INVALID);
    assert_int_equal(failure.status, FRIT_OK);
    assert_int_equal(failure.value, 0);
    assert_int_equal(failure.cookie, 78);
    assert_int_equal(err.status, FRIT_INVALID);
    assert_string_equal(err.text, "test: wait for value 2, but the queue is at 1");
    progress_fini(&progress);
}

/* To a caller that knows of nothing what was reached before has not failed. */
static void what_was_reached_is_not_lost(void **state)
{
    const struct fault lost = {.err = {.text = "gone"}};
    struct progress progress;
    frit_failure failure;
    frit_err err;

    (void)state;
    progress_init(&progress, &plug);
    for (uint64_t i = 1; i <= 3; i++)
        issue(&progress, i);
    progress_reach(&progress, 2, NULL);
    progress_lose(&progress, &lost);
    assert_int_equal(failure_after(&progress, 0, 2).status, FRIT_OK);
    assert_int_equal(wait_for(&progress, 0, 3, UINT64_MAX, &failure, &err), FRIT_DEVICE_LOST);
    assert_int_equal(failure.value, 3);
    progress_fini(&progress);
}

/* Threads that wait, each for another value, until another thread comes so far. */
enum { WAITERS = 4 };

struct waiter {
    pthread_t thread;
    struct progress *progress;
    uint64_t value;
    frit_failure failure;
    frit_status status;
};

static void *wait_in_thread(void *arg)
{
    struct waiter *waiter = arg;
    frit_err err;

    waiter->status =
        wait_for(waiter->progress, 0, waiter->value, UINT64_MAX, &waiter->failure, &err);
    return NULL;
}

/* Most threads that wait do so by then. */
static void let_them_sleep(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void all_that_wait_are_woken(void **state)
{
    const struct fault fault = fault_of(3), lost = {.err = {.text = "gone"}};
    struct waiter waiters[WAITERS];
    struct progress progress;

    (void)state;
    progress_init(&progress, &plug);
    for (uint64_t i = 0; i < WAITERS; i++) {
        issue(&progress, i + 1);
        waiters[i] = (struct waiter){.progress = &progress, .value = i + 1};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_in_thread, &waiters[i]), 0);
    }
    let_them_sleep();
    progress_reach(&progress, 1, NULL);
    progress_reach(&progress, 2, &fault);
    pthread_join(waiters[0].thread, NULL);
    pthread_join(waiters[1].thread, NULL);
    let_them_sleep();
    progress_lose(&progress, &lost);
    pthread_join(waiters[2].thread, NULL);
    pthread_join(waiters[3].thread, NULL);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(waiters[i].status, i < 2 ? FRIT_OK : FRIT_DEVICE_LOST);
        assert_int_equal(waiters[i].failure.status, i == 0 ? FRIT_OK : FRIT_IO);
        assert_int_equal(waiters[i].failure.value, i == 0 ? 0 : 2);
    }
    progress_fini(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(again_and_again),
        cmocka_unit_test(more_than_there_is_room_for),
        cmocka_unit_test(each_command_is_reported),
        cmocka_unit_test(what_is_not_reached_is_waited_for),
        cmocka_unit_test(values_may_be_reached_together),
        cmocka_unit_test(a_lost_device_reaches_no_more),
        cmocka_unit_test(a_loss_is_reported_whatever_failed_before),
        cmocka_unit_test(a_wait_for_nothing_reports_no_failure),
        cmocka_unit_test(what_was_reached_is_not_lost),
        cmocka_unit_test(all_that_wait_are_woken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
