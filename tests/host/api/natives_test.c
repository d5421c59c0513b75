/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that use objects of the program: given to the driver, not shared by name, and refused in
 * words where the driver does not know them. */
#include "plugin_rig.h"

static void open_host(struct plugin_rig *rig)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_host(rig);
}

static frit_status open_with(const struct plugin_rig *rig, const char *device, const char *name,
                             void *object, frit_device **out, frit_err *err)
{
    const frit_native native = {name, object};
    const frit_device_options options = {
        .struct_size = sizeof(options), .natives = &native, .n_natives = 1};

    return frit_device_open_with(rig->host, device, &options, out, err);
}

static void run_one(frit_device *device)
{
    frit_tensor *x = frit_full(device, FRIT_F32, FRIT_SHAPE(7), 2);

    frit_release(frit_neg(frit_take(x)));
    assert_int_equal(frit_sync_all(device, NULL), FRIT_OK);
    x = frit_full(device, FRIT_F32, FRIT_SHAPE(7), 3);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    frit_release(x);
}

static void test_the_driver_uses_the_object(void **state)
{
    struct plugin_rig rig;
    frit_device *first, *second, *shared, *again;
    uint64_t mine = 0, other = 0, before;

    (void)state;
    open_host(&rig);
    assert_int_equal(frit_device_open(rig.host, "null:0", &shared, NULL), FRIT_OK);
    assert_int_equal(open_with(&rig, "null:0", "null.submits", &mine, &first, NULL), FRIT_OK);
    assert_int_equal(open_with(&rig, "null:0", "null.submits", &other, &second, NULL), FRIT_OK);
    assert_ptr_not_equal(first, shared);
    assert_ptr_not_equal(first, second);
    assert_int_equal(frit_device_open(rig.host, "null:0", &again, NULL), FRIT_OK);
    assert_ptr_equal(again, shared); /* by name as before */
    frit_device_close(again);
    run_one(shared);
    assert_int_equal(mine + other, 0);
    run_one(first);
    assert_true(mine > 0);
    assert_int_equal(other, 0);
    before = mine;
    frit_device_close(first);
    run_one(second);
    assert_true(other > 0);
    assert_int_equal(mine, before);
    frit_device_close(second);
    run_one(shared);
    frit_device_close(shared);
    frit_host_close(rig.host);
}

/* Neither order of opening makes a device with natives the shared one. */
static void test_it_is_not_found_by_name(void **state)
{
    struct plugin_rig rig;
    frit_device *own, *shared;
    uint64_t mine = 0;

    (void)state;
    open_host(&rig);
    assert_int_equal(open_with(&rig, "null:0", "null.submits", &mine, &own, NULL), FRIT_OK);
    assert_int_equal(frit_device_open(rig.host, "null:0", &shared, NULL), FRIT_OK);
    assert_ptr_not_equal(own, shared);
    run_one(shared);
    assert_int_equal(mine, 0);
    frit_host_close(rig.host); /* closes both */
}

static void test_what_is_not_known_is_refused(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct plugin_rig rig;
    frit_device_options options = {.struct_size = sizeof(options), .n_natives = 1};
    frit_device *device;
    int object;

    (void)state;
    open_host(&rig);
    assert_int_equal(open_with(&rig, "null:0", "vk.device", &object, &device, &err),
                     FRIT_UNSUPPORTED);
    assert_null(device);
    assert_non_null(strstr(err.text, "'vk.device'"));
    assert_int_equal(open_with(&rig, "reference:0", "vk.queue", &object, &device, &err),
                     FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'vk.queue'"));
    assert_int_equal(open_with(&rig, "null:0", "null.submits", NULL, &device, &err), FRIT_INVALID);
    assert_int_equal(frit_device_open_with(rig.host, "null:0", &options, &device, &err),
                     FRIT_INVALID);
    options.n_natives = 0;
    assert_int_equal(frit_device_open_with(rig.host, "null:0", &options, &device, &err), FRIT_OK);
    frit_device_close(device);
    frit_host_close(rig.host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_driver_uses_the_object),
        cmocka_unit_test(test_it_is_not_found_by_name),
        cmocka_unit_test(test_what_is_not_known_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
