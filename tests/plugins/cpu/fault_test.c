/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a life of the driver fails once: a clean error, nothing left behind; and many
 * lives in a row. */
#include <string.h>

#include "addition.h"

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
    status = rig->backend->device_open(rig->instance, 0, &rig->device, &rig->err);
    if (!status) {
        status = addition_open(&a, rig, n);
        if (!status) {
            assert_int_equal(addition_run(&a, &value), FRIT_OK); /* it is wait that tells */
            assert_int_equal(rig->backend->wait(rig->device, value, 0, &failure, &rig->err),
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

static void each_allocation_fails_once(void **state)
{
    int64_t n = 0;
    bool hit = true;

    (void)state;
    while (hit) {
        struct rig rig = {.threads = 3, .refuse = ++n};
        frit_status status = live(&rig, ITEMS);

        hit = rig.refuse == 0;
        if (hit)
            assert_true(status == FRIT_NO_HOST_MEMORY || status == FRIT_NO_DEVICE_MEMORY);
        else
            assert_int_equal(status, FRIT_OK);
        if (hit && !strstr(rig.err.text, "no memory"))
            fail_msg("allocation %d: %s", (int)n, rig.err.text);
        assert_int_equal(rig.live, 0);
    }
    assert_true(n > 8); /* instance, device, two buffers of two pieces, room for the launch */
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
        cmocka_unit_test(each_allocation_fails_once),
        cmocka_unit_test(many_lives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
