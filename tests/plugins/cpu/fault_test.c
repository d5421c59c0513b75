/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, uses and closes the driver again and again, each time with another allocation failing:
 * first those by the host's allocator, then those by the C library.  Each gives an error and leaks
 * nothing. */
#include <string.h>

#include "addition.h"
#include "failing_alloc.h"

enum { ITEMS = 3 << 20, LIVES = 1000 };

/* What a failed step said; the instance and the device are closed either way. */
static frit_status live(struct rig *rig, uint64_t n)
{
    frit_failure failure = {.struct_size = sizeof failure};
    struct addition a;
    uint64_t value = 0;
    frit_status status = rig_load(rig);

    if (status)
        return status;
    rig->backend = rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_BACKEND));
    status = rig->backend->device_open(rig->instance, 0, &rig_params, &rig->device, &rig->err);
    if (!status) {
        status = addition_open(&a, rig, n);
        if (!status) {
            assert_int_equal(addition_run(&a, &value), FRIT_OK); /* wait returns the failure */
            assert_int_equal(rig->backend->wait(rig->device, NULL, value, 0, &failure, &rig->err),
                             FRIT_OK);
            status = failure.status;
            if (!status)
                assert_true(((const float *)a.y.host_pointer)[n - 1] ==
                            (float)((n - 1) % 1000) + 3);
            addition_close(&a);
        }
        rig->backend->device_close(rig->device);
    }
    rig->plugin->close(rig->instance);
    return status;
}

/* Checks the status of a life in which allocation `n` failed (`hit`), or none.  A schedule without
 * memory to look at an op rejects it and another schedule may accept it, so a life may succeed
 * nevertheless.  Returns whether the status is that of a failed allocation. */
static bool check_life(const struct rig *rig, frit_status status, bool hit, long n)
{
    bool failed = status == FRIT_NO_HOST_MEMORY || status == FRIT_NO_DEVICE_MEMORY;

    if (!hit && status)
        fail_msg("no allocation was refused: status %d, %s", status, rig->err.text);
    if (failed ? !strstr(rig->err.text, "memory") : status && status != FRIT_UNSUPPORTED)
        fail_msg("allocation %ld: status %d, %s", n, status, rig->err.text);
    assert_int_equal(rig->live, 0);
    return failed;
}

static void each_of_the_hosts_fails_once(void **state)
{
    int64_t n = 0;
    bool hit = true;

    (void)state;
    while (hit) {
        struct rig rig = {.threads = 3, .refuse = ++n};
        frit_status status = live(&rig, ITEMS);

        hit = rig.refuse == 0;
        assert_int_equal(check_life(&rig, status, hit, (long)n), hit);
    }
    assert_true(n > 8); /* instance, device, two buffers of two pieces, room for the launch */
}

static void starve(const char *tier)
{
    bool hit = true;
    long failed = 0;

    for (long n = 0; hit; n++) {
        struct rig rig = {.threads = 3, .tier = tier};
        frit_status status;

        failing_alloc_arm(n);
        status = live(&rig, 100);
        hit = failing_alloc_disarm();
        failed += check_life(&rig, status, hit, n);
    }
    assert_true(failed > 40); /* codes, a block, a module, its tile code */
}

static void each_of_its_own_fails_once(void **state)
{
    (void)state;
    starve("0");
}

static bool has_tier(const char *tier)
{
    struct rig rig = {.threads = 3, .tier = tier};

    return live(&rig, 100) == FRIT_OK;
}

static void each_of_a_compiler_fails_once(void **state)
{
    (void)state;
    if (!has_tier("1")) /* no LLVM */
        skip();
    starve("1");
}

static void many_lives(void **state)
{
    (void)state;
    for (int i = 0; i < LIVES; i++) {
        struct rig rig = {.threads = 2};

        assert_int_equal(live(&rig, 100), FRIT_OK);
        assert_int_equal(rig.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_the_hosts_fails_once),
        cmocka_unit_test(each_of_its_own_fails_once),
        cmocka_unit_test(each_of_a_compiler_fails_once),
        cmocka_unit_test(many_lives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
