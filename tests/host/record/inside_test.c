/* SPDX-License-Identifier: Apache-2.0 */
/* Calls out of a driver's submit: they find the lock of their queue their own, whichever queue they
 * are for, and do not hide what fails in the submit after them. */
#include "run/driver.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <frit/frit.h>

enum { PATIENCE_S = 60 };

static const float six[6] = {1, 2, 3, 4, 5, 6};

struct inside {
    struct driver driver; /* first */
    frit_device *device;
    frit_tensor *ready, *other; /* written by the first queue */
    pthread_t first;            /* the thread whose stream is on it */
    sem_t begun, read;
    bool was_met; /* the first thread, by the other's end, inside of its submit */
    frit_status status;
};

static struct timespec deadline(void)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += PATIENCE_S;
    return at;
}

static frit_status read_ready(const struct inside *in)
{
    float out[6];

    return frit_read(in->ready, out, sizeof(out), NULL);
}

/* The first queue's submit ends when the second one's has, which makes a read. */
static void meet(struct driver *driver)
{
    struct inside *in = (struct inside *)driver;
    const struct timespec end = deadline();

    if (pthread_equal(pthread_self(), in->first)) {
        sem_post(&in->begun);
        in->was_met = !sem_timedwait(&in->read, &end);
    } else {
        in->status = read_ready(in);
    }
}

static void *negate(void *arg)
{
    struct inside *in = arg;
    frit_tensor *result;

    sem_wait(&in->begun);
    result = frit_neg(in->other);
    frit_flush(in->device, NULL);
    frit_release(result);
    sem_post(&in->read);
    return NULL;
}

/* The read is of what the first queue wrote, whose lock is taken. */
static void a_read_takes_no_other_queue(void **state)
{
    struct inside in = {.driver = {.inline_queue = true, .more_queues = 1}};
    frit_tensor *result;
    pthread_t thread;

    (void)state;
    in.device = driver_device(&in.driver, 100);
    in.first = pthread_self();
    sem_init(&in.begun, 0, 0);
    sem_init(&in.read, 0, 0);
    in.ready = frit_from_host(in.device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
    in.other = frit_from_host(in.device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
    result = frit_neg(in.ready);
    in.driver.on_submit = meet;
    assert_int_equal(pthread_create(&thread, NULL, negate, &in), 0);
    assert_int_equal(frit_flush(in.device, NULL), FRIT_OK);
    pthread_join(thread, NULL);
    assert_true(in.was_met);
    assert_int_equal(in.status, FRIT_OK);
    frit_release(result), frit_release(in.ready), frit_release(in.other);
    sem_destroy(&in.begun);
    sem_destroy(&in.read);
    device_close(in.device);
}

static void read_once(struct driver *driver)
{
    struct inside *in = (struct inside *)driver;

    driver->on_submit = NULL;
    in->status = read_ready(in);
}

/* The read's value is after that of the submit that it is made in, and is reached before it. */
static void a_read_hides_no_failure(void **state)
{
    struct inside in = {.driver = {.inline_queue = true, .value_first = true}};
    frit_tensor *result;
    float out[6];

    (void)state;
    in.device = driver_device(&in.driver, 100);
    in.ready = frit_from_host(in.device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
    result = frit_neg(in.ready);
    in.driver.on_submit = read_once;
    in.driver.complete_status = FRIT_IO;
    assert_int_equal(frit_read(result, out, sizeof(out), NULL), FRIT_IO);
    assert_int_equal(in.status, FRIT_OK);
    frit_release(result), frit_release(in.ready);
    device_close(in.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_takes_no_other_queue),
        cmocka_unit_test(a_read_hides_no_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
