/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a whole digits run fails once in turn: from opening the host to closing it.
 * Each time the answer is right or the failure is FRIT_NO_HOST_MEMORY or FRIT_NO_DEVICE_MEMORY with
 * a text, nothing is left over, and the next run works.  Leaks are the address sanitizer's to find.
 * FRIT_TEST_EVERY: every how many-th allocation fails; each with FRIT_TEST_LONG=1. */
#include "api/digits.h"

#include "api/rig.h"
#include <frit/inspect.h>

#include "failing_alloc.h"

enum { IMAGES = 3 };

/* A plugin that could not start for want of memory is one more device that is not there. */
static bool memory_failure(frit_status status, const char *text)
{
    return status == FRIT_NO_HOST_MEMORY || status == FRIT_NO_DEVICE_MEMORY ||
           (status == FRIT_UNSUPPORTED && strstr(text, "no-host-memory"));
}

/* Runs one network inside an open host. */
static frit_status run_model(frit_device *device, const char *name, int *right, frit_err *err)
{
    struct digits digits;
    frit_status st = digits_open(name, device, IMAGES, &digits, err);

    if (!st)
        st = digits_run(&digits, device, IMAGES, right, err);
    digits_close(&digits);
    return st;
}

static frit_status whole_run(const char *name, int *right, frit_err *err)
{
    frit_host *host = NULL;
    frit_device *device = NULL;
    const frit_setting quiet = {"frit", "log", "off"};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = &quiet, .n_settings = 1};
    frit_status st = frit_host_open(&params, &host, err);

    if (!st)
        st = frit_device_open(host, "reference:0", &device, err);
    if (!st)
        st = run_model(device, name, right, err);
    if (device) {
        frit_stats stats = {.struct_size = sizeof(stats)};

        frit_sync(device, NULL);
        frit_stats_get(device, &stats);
        assert_int_equal(stats.tensors_now, 0);
        assert_int_equal(stats.buffers_now, 0);
    }
    frit_device_close(device);
    frit_host_close(host);
    return st;
}

static long every(void)
{
    const char *text = getenv("FRIT_TEST_EVERY");

    return text && !getenv("FRIT_TEST_LONG") ? atol(text) : 1;
}

static void fail_each(const char *name)
{
    const long step = every();
    int expected = 0;
    frit_err err = {.struct_size = sizeof(err)};
    long n = 0;

    assert_int_equal(whole_run(name, &expected, &err), FRIT_OK);
    for (bool hit = true; hit; n += step) {
        int right = -1;
        frit_status st;

        err.text[0] = '\0';
        failing_alloc_arm(n);
        st = whole_run(name, &right, &err);
        hit = failing_alloc_disarm();
        if (st && (!memory_failure(st, err.text) || !err.text[0]))
            fail_msg("allocation %ld: %s: %s", n, frit_status_name(st), err.text);
        if (!st)
            assert_int_equal(right, expected);
    }
    assert_true(n > 100);
    assert_int_equal(whole_run(name, &expected, &err), FRIT_OK);
}

static void test_every_allocation_of_mlp(void **state)
{
    (void)state;
    fail_each("digits-mlp");
}

static void test_every_allocation_of_cnn(void **state)
{
    (void)state;
    fail_each("digits-cnn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_of_mlp),
        cmocka_unit_test(test_every_allocation_of_cnn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
