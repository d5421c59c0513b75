/* SPDX-License-Identifier: Apache-2.0 */
/* How far the failure of a launch reaches that wait reports when much has been submitted after it:
 * which tensors, whose sync, which programs, and for how long. */
#include <pthread.h>
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "run/drain.h"
#include "run/driver.h"

enum { N = 6 };
static const float six[N] = {1, 2, 3, 4, 5, 6};

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), six, sizeof(six));
}

static void expect(frit_tensor *tensor, float factor, float more)
{
    float out[N];

    assert_int_equal(frit_read(tensor, out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == factor * six[i] + more);
    frit_release(tensor);
}

static void expect_failed(frit_tensor *tensor)
{
    float out[N];

    assert_int_equal(frit_read(tensor, out, sizeof(out), NULL), FRIT_TIMEOUT);
    frit_release(tensor);
}

/* ---- which tensors ---- */

struct other {
    frit_device *device;
    frit_tensor *x, *y;
    frit_status sync;
};

static void *work_elsewhere(void *arg)
{
    struct other *other = arg;

    other->y = frit_add_f(other->x, 1);
    (void)frit_flush(other->device, NULL);
    other->sync = frit_sync(other->device, NULL);
    return NULL;
}

/* One thread's op fails while another thread's, which does not depend on it, is after it. */
static void test_other_threads_are_not_concerned(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    struct other other = {.device = device, .x = make(device)};
    frit_tensor *bad = frit_neg(other.x);
    pthread_t thread;

    (void)state;
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, &other), 0);
    pthread_join(thread, NULL);
    assert_int_equal(other.sync, FRIT_OK);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_sync_all(device, NULL), FRIT_OK);
    expect(other.y, 1, 1);
    expect_failed(bad);
    frit_release(other.x);
    device_close(device);
}

/* Another thread's op that reads what failed does fail. */
static void test_dependents_of_other_threads_fail(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *bad = frit_neg(x);
    struct other other = {.device = device, .x = bad};
    pthread_t thread;

    (void)state;
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, &other), 0);
    pthread_join(thread, NULL);
    expect_failed(other.y);
    expect_failed(bad);
    expect(frit_neg(x), -1, 0);
    frit_release(x);
    device_close(device);
}

/* Before and after the failed launch: in its submit, in later ones, through others. */
static void test_dependents_fail_and_nothing_else(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT, .complete_after = 1};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *earlier, *bad, *child, *grandchild, *later;
    frit_scope scope;

    (void)state;
    scope = frit_scope_begin(device);
    earlier = frit_keep(frit_add_f(x, 1));
    bad = frit_keep(frit_neg(x));
    frit_scope_end(scope);
    assert_int_equal(driver.submits, 1);
    child = frit_exp(bad);
    later = frit_add_f(earlier, 1);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    grandchild = frit_add(child, later);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    expect(earlier, 1, 1);
    expect(later, 1, 2);
    expect_failed(grandchild);
    expect_failed(child);
    expect_failed(bad);
    frit_release(x);
    device_close(device);
}

/* What lies where something failed lay before is right. */
static void test_memory_used_again_is_right(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y;

    (void)state;
    y = frit_neg(x);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    frit_release(y);
    y = frit_add_f(x, 1);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    expect(y, 1, 1);
    assert_int_equal(atomic_load(&device->n_spoiled), 0);
    frit_release(x);
    device_close(device);
}

static void test_several_launches_fail(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        driver.complete_status = i == 1 ? FRIT_OK : FRIT_TIMEOUT;
        y[i] = frit_add_f(x, i);
        assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    }
    assert_int_equal(driver.n_failures, 2);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    expect_failed(y[2]);
    expect(y[1], 1, 1);
    expect_failed(y[0]);
    frit_release(x);
    device_close(device);
}

/* ---- plans that run as before ---- */

static void test_replays_fail_one_by_one(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y[8], *z[8];

    (void)state;
    for (int i = 0; i < 4; i++)
        expect(frit_add_f(frit_take(frit_neg(x)), 1), -1, 1);
    for (int i = 0; i < 8; i++) {
        driver.complete_status = i == 3 ? FRIT_TIMEOUT : FRIT_OK;
        y[i] = frit_neg(x);
        z[i] = frit_add_f(y[i], 1);
        assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    }
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    for (int i = 0; i < 8; i++) {
        if (i == 3) {
            expect_failed(z[i]);
            expect_failed(y[i]);
        } else {
            expect(z[i], -1, 1);
            expect(y[i], -1, 0);
        }
    }
    frit_release(x);
    device_close(device);
}

/* Where work runs inside submit, with one submit for each launch. */
static void test_a_launch_in_the_middle_of_a_replay_fails(void **state)
{
    struct driver driver = {.inline_queue = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *y = NULL, *z = NULL, *other = NULL;

    (void)state;
    for (int i = 0; i < 8; i++) {
        frit_scope scope = frit_scope_begin(device);

        if (i == 7) {
            driver.complete_status = FRIT_TIMEOUT;
            driver.complete_after = 1;
        }
        y = frit_keep(frit_neg(x));
        z = frit_keep(frit_add_f(frit_add_f(y, 1), 1));
        other = frit_keep(frit_mul_f(y, 3));
        frit_scope_end(scope);
        if (i == 7)
            break;
        frit_release(y), frit_release(z), frit_release(other);
    }
    assert_int_equal(frit_tensor_status(z), FRIT_TIMEOUT);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    expect_failed(z);
    expect(y, -1, 0);
    expect(other, -3, 0);
    assert_int_equal(atomic_load(&device->n_spoiled), 0);
    frit_release(x);
    device_close(device);
}

/* ---- for how long ---- */

static void test_a_failure_ends_with_its_last_tensor(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *bad = frit_neg(x), *child, *twin;

    (void)state;
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    child = frit_add_f(bad, 1);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    twin = frit_neg(bad); /* recorded when the failure is known: no memory is spoiled for it */
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_tensor_status(twin), FRIT_TIMEOUT);
    assert_int_equal(atomic_load(&device->n_spoiled), 2);
    frit_release(twin);
    frit_release(bad);
    assert_int_equal(atomic_load(&device->n_spoiled), 1);
    frit_release(child);
    assert_int_equal(atomic_load(&device->n_spoiled), 0);
    expect(frit_neg(x), -1, 0);
    frit_release(x);
    device_close(device);
}

/* More launches in flight than are kept: what may depend on the failed one fails, the next does
 * not. */
static void test_too_many_in_flight(void **state)
{
    enum { MANY = 20000 };
    struct driver driver = {.complete_status = FRIT_TIMEOUT};
    frit_device *device = driver_device(&driver, 1);
    frit_tensor *x = make(device), *y = frit_add_f(x, 0);

    (void)state;
    for (int i = 0; i < MANY; i++) {
        frit_tensor *next = frit_add_f(frit_take(y), 0);

        y = next;
    }
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    expect_failed(y);
    expect(frit_neg(x), -1, 0);
    frit_release(x);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_threads_are_not_concerned),
        cmocka_unit_test(test_dependents_of_other_threads_fail),
        cmocka_unit_test(test_dependents_fail_and_nothing_else),
        cmocka_unit_test(test_memory_used_again_is_right),
        cmocka_unit_test(test_several_launches_fail),
        cmocka_unit_test(test_replays_fail_one_by_one),
        cmocka_unit_test(test_a_launch_in_the_middle_of_a_replay_fails),
        cmocka_unit_test(test_a_failure_ends_with_its_last_tensor),
        cmocka_unit_test(test_too_many_in_flight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
