/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that wait reports: every thread that waited gets them, once. */
#include <pthread.h>
#include <semaphore.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "run/driver.h"
#include "tensor/failure.h"

/* ---- two threads ---- */

static atomic_uint n_reported;
static sem_t first_reported, other_done;

/* The first thread that gets the failure stays inside the driver until the other has left it. */
static void hold_the_first(struct driver *driver)
{
    (void)driver;
    if (atomic_fetch_add(&n_reported, 1) == 0) {
        sem_post(&first_reported);
        sem_wait(&other_done);
    }
}

static void *wait_for_one(void *arg)
{
    frit_err err = ERR_INIT;

    return device_wait(arg, 1, &err) ? "wait failed" : NULL;
}

/* What a transfer of this timeline value wrote. */
static struct buffer *written(frit_device *device, uint64_t at)
{
    struct buffer *buffer;

    assert_int_equal(buffer_create(device->memory, 4, false, &buffer, NULL), FRIT_OK);
    lineage_transferred(device->lineage, buffer, at);
    return buffer;
}

static void expect_spoiled(frit_device *device, const struct buffer *buffer, bool expected)
{
    struct failure *failure = lineage_failure_of(device->lineage, buffer);

    assert_int_equal(failure != NULL, expected);
    failure_unref(failure);
}

static void a_failure(struct driver *driver, frit_device *device, uint64_t value, uint64_t newest)
{
    driver->timeline = newest;
    driver_fails(driver, FRIT_IO, value, 1, 0);
    atomic_store(&device->queues[0].last_value, newest);
}

static void two_threads_both_know(void **state)
{
    struct driver driver = {.on_report = hold_the_first};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *buffer;
    pthread_t thread;
    void *trouble = NULL;

    (void)state;
    sem_init(&first_reported, 0, 0);
    sem_init(&other_done, 0, 0);
    buffer = written(device, 1);
    a_failure(&driver, device, 1, 1);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, device), 0);
    sem_wait(&first_reported);
    assert_null(wait_for_one(device));
    expect_spoiled(device, buffer, true);
    sem_post(&other_done);
    assert_int_equal(pthread_join(thread, &trouble), 0);
    assert_null(trouble);
    assert_int_equal(atomic_load(&n_reported), 2);
    assert_int_equal(atomic_load(&device->n_spoiled), 1); /* one failure is one */
    buffer_disown(buffer);
    assert_int_equal(atomic_load(&device->n_spoiled), 0); /* and ends with what it spoiled */
    device_close(device);
    sem_destroy(&first_reported);
    sem_destroy(&other_done);
}

/* ---- what is reported ---- */

static void count_reports(struct driver *driver)
{
    (void)driver;
    atomic_fetch_add(&n_reported, 1);
}

static void only_what_is_not_known(void **state)
{
    struct driver driver = {.on_report = count_reports};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *buffers[9];
    frit_err err = ERR_INIT;

    (void)state;
    for (uint64_t at = 1; at < 9; at++)
        buffers[at] = written(device, at);
    atomic_store(&n_reported, 0);
    a_failure(&driver, device, 3, 5);
    assert_int_equal(device_wait(device, 2, &err), FRIT_OK);
    expect_spoiled(device, buffers[3], false);
    assert_int_equal(device_wait(device, 3, &err), FRIT_OK);
    assert_int_equal(device_wait(device, 5, &err), FRIT_OK);
    assert_int_equal(atomic_load(&n_reported), 1); /* nobody waits again */
    a_failure(&driver, device, 7, 8);
    assert_int_equal(device_wait(device, 8, &err), FRIT_OK);
    for (uint64_t at = 1; at < 9; at++) {
        expect_spoiled(device, buffers[at], at == 3 || at == 7);
        buffer_disown(buffers[at]);
    }
    assert_int_equal(atomic_load(&device->n_spoiled), 0);
    device_close(device);
}

/* A driver that does not say which command it was may mean any. */
static void failures_without_a_value(void **state)
{
    struct driver driver = {.nameless = true};
    frit_device *device = driver_device(&driver, 16);
    struct buffer *buffers[6];
    frit_err err = ERR_INIT;

    (void)state;
    for (uint64_t at = 1; at < 6; at++)
        buffers[at] = written(device, at);
    a_failure(&driver, device, 3, 5);
    assert_int_equal(device_wait(device, 1, &err), FRIT_OK);
    assert_int_equal(device_wait(device, 4, &err), FRIT_OK);
    for (uint64_t at = 1; at < 6; at++) {
        expect_spoiled(device, buffers[at], at > 1 && at < 5);
        buffer_disown(buffers[at]);
    }
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_both_know),
        cmocka_unit_test(only_what_is_not_known),
        cmocka_unit_test(failures_without_a_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
