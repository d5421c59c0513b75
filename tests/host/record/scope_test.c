/* SPDX-License-Identifier: Apache-2.0 */
/* When things run: nothing inside a scope, what is counted under which cause, which stream a thread
 * gets and what becomes of it when the thread is gone. */
#include "run/driver.h"

#include <pthread.h>
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "memory/memory.h"
#include "record/binding.h"
#include "run/drain.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
}

static uint64_t drains(const frit_device *device, enum drain_cause cause)
{
    return atomic_load(&device->count.drains[cause]);
}

static struct stream *my_stream(frit_device *device)
{
    struct binding *binding;

    assert_int_equal(binding_current(device, &binding, NULL), FRIT_OK);
    return binding->stream;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
    pthread_join(thread, NULL);
}

/* ---- scopes ---- */

static void test_nothing_runs_inside_a_scope(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    struct stream *stream = my_stream(device);
    frit_tensor *x = make(device), *y = x;
    frit_scope outer = frit_scope_begin(device), inner;

    (void)state;
    assert_int_equal(stream->n_scopes, 1);
    for (int i = 0; i < 5; i++)
        y = frit_neg(y);
    inner = frit_scope_begin(device);
    assert_int_equal(stream->n_scopes, 1);
    for (int i = 0; i < 5; i++)
        y = frit_neg(y);
    frit_keep(frit_keep(y));
    assert_int_equal(driver.submits, 0);
    assert_int_equal(streams_queued(device), 10);
    frit_scope_end(inner); /* runs, but the outer one still holds later ops back */
    assert_int_equal(streams_queued(device), 0);
    frit_release(frit_neg(y)), frit_release(frit_neg(y));
    assert_int_equal(streams_queued(device), 2);
    frit_scope_end(outer);
    assert_int_equal(stream->n_scopes, 0);
    assert_int_equal(drains(device, DRAIN_SCOPE), 2);
    frit_scope_end(outer); /* is no more: nothing happens */
    assert_int_equal(stream->n_scopes, 0);
    frit_release(frit_neg(x)), frit_release(frit_neg(x));
    assert_int_equal(streams_queued(device), 1);
    frit_release(x), frit_release(y);
    device_close(device);
}

/* What was not kept is not stored: of ten ops nine die inside. */
static void test_only_kept_values_are_stored(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *kept;
    frit_scope scope = frit_scope_begin(device);
    struct memory_stats before, after;
    float out[6];

    (void)state;
    memory_stats(device->memory, &before);
    kept = frit_keep(frit_neg(x));
    frit_exp(frit_exp(x));
    frit_scope_end(scope);
    memory_stats(device->memory, &after);
    assert_int_equal(after.buffers_now, before.buffers_now + 1);
    assert_int_equal(driver.launches, 1);
    assert_int_equal(frit_read(kept, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[5] == -6);
    frit_release(x), frit_release(kept);
    device_close(device);
}

/* A read inside runs what is queued, at any depth. */
static void test_reads_end_the_wait(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_neg(make(device)), *z = frit_neg(y);
    float out[6];

    (void)state;
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
    assert_int_equal(streams_queued(device), 0);
    assert_int_equal(driver.launches, 2);
    assert_int_equal(frit_read(z, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[2] == 3);
    frit_scope_end(scope);
    assert_int_equal(streams_tensors(device), 0);
    device_close(device);
}

/* The scope is the thread's: ops of another thread on its own stream run at once. */
static void *two_ops(void *arg)
{
    frit_tensor *x = make(arg);

    frit_release(frit_neg(frit_take(frit_neg(x))));
    frit_release(frit_neg(x));
    frit_release(x);
    return NULL;
}

static void test_other_threads_are_not_held_back(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_scope scope = frit_scope_begin(device);

    (void)state;
    frit_neg(make(device));
    in_thread(two_ops, device);
    assert_true(driver.launches >= 1);
    assert_int_equal(my_stream(device)->segment->n_ops, 1);
    frit_scope_end(scope);
    device_close(device);
}

/* ---- causes ---- */

static void test_drains_are_counted_by_cause(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 4);
    frit_tensor *x = make(device), *y;
    frit_scope scope;
    float out[6];

    (void)state;
    y = frit_neg(x);
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK); /* nothing is queued */
    assert_int_equal(drains(device, DRAIN_READ), 1);
    frit_release(y);
    y = frit_neg(x);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(drains(device, DRAIN_SYNC), 1);
    frit_release(y);
    scope = frit_scope_begin(device);
    for (int i = 0; i < 5; i++)
        frit_neg(x);
    assert_int_equal(drains(device, DRAIN_FULL), 1);
    frit_scope_end(scope);
    assert_int_equal(drains(device, DRAIN_SCOPE), 1);
    assert_int_equal(drains(device, DRAIN_SHARE), 0);
    frit_release(x);
    device_close(device);
}

static void *neg_of(void *arg)
{
    frit_tensor **tensor = arg;

    *tensor = frit_neg(*tensor);
    return NULL;
}

/* Another thread's use, read or release: what is there leaves the home queue alone. */
static void test_others_do_not_cut_a_queue(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *there = x, *pending;
    struct stream *stream = my_stream(device);

    (void)state;
    pending = frit_exp(x);
    in_thread(neg_of, &there);
    assert_int_equal(stream->segment->n_ops, 1);
    assert_int_equal(drains(device, DRAIN_SHARE), 0);
    frit_release(there);
    there = pending;
    in_thread(neg_of, &there);
    assert_int_equal(stream->segment->n_ops, 0);
    assert_int_equal(drains(device, DRAIN_SHARE), 1);
    frit_release(there), frit_release(pending), frit_release(x);
    device_close(device);
}

static void *release_it(void *arg)
{
    frit_release(arg);
    return NULL;
}

/* Released elsewhere, a value that this queue makes is dropped when the queue ran; the queue is
 * neither cut nor is its key another one. */
static void test_a_foreign_release_of_a_pending_value(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y = frit_neg(x);
    struct stream *stream = my_stream(device);
    struct memory_stats stats;

    (void)state;
    in_thread(release_it, y);
    assert_int_equal(stream->segment->n_ops, 1);
    assert_int_equal(stream->segment->ops[0]->n_dead, 0);
    assert_int_equal(frit_tensor_status(y), FRIT_INVALID);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    memory_stats(device->memory, &stats);
    assert_int_equal(stats.buffers_now, 1);
    frit_release(x);
    device_close(device);
}

/* ---- threads that are gone ---- */

static void *leave_one(void *arg)
{
    frit_device *device = *(frit_device **)arg;

    *(frit_tensor **)arg = frit_neg(frit_take(make(device)));
    return NULL;
}

static void test_pending_values_of_ended_threads_can_be_read(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    void *left = device;
    float out[6];

    (void)state;
    in_thread(leave_one, &left);
    assert_int_equal(streams_queued(device), 1);
    assert_int_equal(frit_read(left, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[0] == -1);
    frit_release(left);
    left = device;
    in_thread(leave_one, &left);
    assert_int_equal(frit_sync_all(device, NULL), FRIT_OK);
    assert_int_equal(streams_queued(device), 0);
    frit_release(left);
    left = device;
    in_thread(leave_one, &left);
    device_close(device); /* ops that nobody needs are dropped */
    assert_int_equal(driver.allocated, 0);
}

/* As many streams as threads at once. */
static void test_streams_do_not_grow_with_threads(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < 50; i++)
        in_thread(two_ops, device);
    assert_int_equal(streams_count(device), 1);
    device_close(device);
}

/* ---- whose ops they are ---- */

/* Run by another thread, an op still is its stream's: that one has its error. */
static void test_ops_run_for_their_stream(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y = frit_neg(x);
    void *left = device;
    float out[6];

    (void)state;
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    in_thread(leave_one, &left);
    driver.complete_status = FRIT_TIMEOUT;
    assert_int_equal(frit_read(left, out, sizeof(out), NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    assert_int_equal(frit_sync_all(device, NULL), FRIT_TIMEOUT);
    frit_release(left), frit_release(x), frit_release(y);
    device_close(device);
}

/* A read runs the stream of what it reads; the reader's own stays as it is. */
static void test_a_read_runs_one_stream(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y = frit_neg(x);
    void *left = device;
    float out[6];

    (void)state;
    in_thread(leave_one, &left);
    assert_int_equal(streams_queued(device), 2);
    assert_int_equal(frit_read(left, out, sizeof(out), NULL), FRIT_OK);
    assert_int_equal(my_stream(device)->segment->n_ops, 1);
    assert_int_equal(streams_queued(device), 1);
    frit_release(left), frit_release(x), frit_release(y);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    device_close(device);
}

/* ---- calls out of a driver ---- */

struct inside {
    struct driver driver; /* first */
    frit_device *device;
    frit_tensor *pending, *ready;
    frit_status read, sync, sync_all, flush, write, copy;
    uint32_t calls;
};

static void call_back(struct driver *driver)
{
    struct inside *in = (struct inside *)driver;
    float out[6];

    if (!in->device || in->calls++)
        return;
    in->read = frit_read(in->pending, out, sizeof(out), NULL);
    in->sync = frit_sync(in->device, NULL);
    in->sync_all = frit_sync_all(in->device, NULL);
    in->flush = frit_flush(in->device, NULL);
    in->write = frit_write(in->pending, six, sizeof(six), NULL);
    in->copy = frit_read(in->ready, out, sizeof(out), NULL);
}

/* What would have to wait for itself is refused; what needs no wait is done. */
static void test_calls_out_of_a_driver_do_not_wait(void **state)
{
    struct inside in = {.driver.on_submit = call_back};
    frit_device *device = driver_device(&in.driver, 100);
    float out[6];

    (void)state;
    in.ready = make(device);
    in.pending = frit_neg(in.ready);
    in.device = device;
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    assert_int_equal(in.calls, 1);
    assert_int_equal(in.read, FRIT_BUSY);
    assert_int_equal(in.sync, FRIT_BUSY);
    assert_int_equal(in.sync_all, FRIT_BUSY);
    assert_int_equal(in.flush, FRIT_BUSY);
    assert_int_equal(in.write, FRIT_BUSY);
    assert_int_equal(in.copy, FRIT_OK);
    assert_int_equal(frit_read(in.pending, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[5] == -6);
    frit_release(in.pending), frit_release(in.ready);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_runs_inside_a_scope),
        cmocka_unit_test(test_only_kept_values_are_stored),
        cmocka_unit_test(test_reads_end_the_wait),
        cmocka_unit_test(test_other_threads_are_not_held_back),
        cmocka_unit_test(test_drains_are_counted_by_cause),
        cmocka_unit_test(test_others_do_not_cut_a_queue),
        cmocka_unit_test(test_a_foreign_release_of_a_pending_value),
        cmocka_unit_test(test_pending_values_of_ended_threads_can_be_read),
        cmocka_unit_test(test_streams_do_not_grow_with_threads),
        cmocka_unit_test(test_ops_run_for_their_stream),
        cmocka_unit_test(test_a_read_runs_one_stream),
        cmocka_unit_test(test_calls_out_of_a_driver_do_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
