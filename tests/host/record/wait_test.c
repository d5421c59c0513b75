/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that wait tells: every thread that waited knows of them, once. */
#include <pthread.h>
#include <semaphore.h>

#include "base/fail.h"
#include "run/driver.h"

/* ---- two threads ---- */

static atomic_uint n_told;
static sem_t first_told, other_done;

/* The first one to be told stays inside the driver until the other has come out. */
static void hold_the_first(struct driver *driver)
{
    (void)driver;
    if (atomic_fetch_add(&n_told, 1) == 0) {
        sem_post(&first_told);
        sem_wait(&other_done);
    }
}

static void *wait_for_one(void *arg)
{
    frit_err err = ERR_INIT;

    return device_wait(arg, 1, &err) ? "wait failed" : NULL;
}

static void expect_poison(frit_device *device, uint64_t written_at, bool expected)
{
    struct failure *failure = device_poison_of(device, written_at);

    assert_int_equal(failure != NULL, expected);
    failure_unref(failure);
}

static void a_failure(struct driver *driver, frit_device *device, uint64_t value, uint64_t newest)
{
    driver->timeline = newest;
    driver->failure = (frit_failure){.status = FRIT_IO, .value = value};
    device_reached(device, newest);
}

static void two_threads_both_know(void **state)
{
    struct driver driver = {.on_tell = hold_the_first};
    frit_device *device = driver_device(&driver, 16);
    pthread_t thread;
    void *trouble = NULL;

    (void)state;
    sem_init(&first_told, 0, 0);
    sem_init(&other_done, 0, 0);
    a_failure(&driver, device, 1, 1);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, device), 0);
    sem_wait(&first_told);
    assert_null(wait_for_one(device));
    expect_poison(device, 1, true);
    sem_post(&other_done);
    assert_int_equal(pthread_join(thread, &trouble), 0);
    assert_null(trouble);
    assert_int_equal(atomic_load(&n_told), 2);
    assert_int_equal(atomic_load(&device->n_poisons), 1); /* one failure is one */
    device_close(device);
    sem_destroy(&first_told);
    sem_destroy(&other_done);
}

/* ---- what is told ---- */

static void count_tells(struct driver *driver)
{
    (void)driver;
    atomic_fetch_add(&n_told, 1);
}

static void only_what_is_not_known(void **state)
{
    struct driver driver = {.on_tell = count_tells};
    frit_device *device = driver_device(&driver, 16);
    frit_err err = ERR_INIT;

    (void)state;
    atomic_store(&n_told, 0);
    a_failure(&driver, device, 3, 5);
    assert_int_equal(device_wait(device, 2, &err), FRIT_OK);
    expect_poison(device, 3, false);
    assert_int_equal(device_wait(device, 3, &err), FRIT_OK);
    expect_poison(device, 2, false);
    expect_poison(device, 3, true);
    expect_poison(device, 5, true); /* may depend on it */
    expect_poison(device, 6, false);
    assert_int_equal(device_wait(device, 5, &err), FRIT_OK);
    assert_int_equal(atomic_load(&device->n_poisons), 1);
    assert_int_equal(atomic_load(&n_told), 1); /* nobody asks again */

    a_failure(&driver, device, 7, 8);
    assert_int_equal(device_wait(device, 8, &err), FRIT_OK);
    expect_poison(device, 6, false);
    expect_poison(device, 7, true);
    assert_int_equal(atomic_load(&device->n_poisons), 2);
    device_close(device);
}

/* A driver that does not say which command it was may mean any. */
static void failures_without_a_value(void **state)
{
    struct driver driver = {.nameless = true};
    frit_device *device = driver_device(&driver, 16);
    frit_err err = ERR_INIT;

    (void)state;
    a_failure(&driver, device, 3, 5);
    assert_int_equal(device_wait(device, 4, &err), FRIT_OK);
    expect_poison(device, 1, true);
    expect_poison(device, 5, true);
    assert_int_equal(device_wait(device, 5, &err), FRIT_OK);
    assert_int_equal(atomic_load(&device->n_poisons), 1);
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
