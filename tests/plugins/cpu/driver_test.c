/* SPDX-License-Identifier: Apache-2.0 */
/* The built plugin through its tables alone: its device, its options, its memory, and a launch with
 * and without threads. */
#include <stdio.h>
#include <string.h>

#include <frit/fuser.h>

#include "addition.h"

enum { ITEMS = 100003, LARGE = 2 << 20 };

static int open_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);

    assert_non_null(rig);
    rig->threads = 3;
    rig_open(rig);
    *state = rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    free(*state);
    return 0;
}

/* ---- the device ---- */

static frit_device_info device_info(struct rig *rig)
{
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver, .reason = 99};
    uint32_t count = 0;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 1);
    assert_int_equal(driver.reason, 0);
    return info;
}

static void one_device(void **state)
{
    struct rig *rig = *state;
    const frit_device_info info = device_info(rig);
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;
    void *other;

    assert_int_equal(info.type, FRIT_DEVICE_PROCESSOR);
    assert_true(info.n_heaps > 0 && info.heaps->bytes > 0 && info.name.len > 0);
    assert_int_equal(info.dtype_use[FRIT_BF16], FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
    assert_int_equal(info.dtype_use[FRIT_Q4], FRIT_DTYPE_STORAGE);
    assert_int_equal(rig->backend->device_open(rig->instance, 1, &rig_params, &other, &rig->err),
                     FRIT_INVALID);
    assert_null(other);
    assert_int_equal(rig->backend->enumerate(rig->instance, NULL, 0, 0, &count, &driver, &rig->err),
                     FRIT_OK);
    assert_int_equal(count, 1);
}

/* Compiled code of one instruction set is none of another's. */
static void instruction_sets(void **state)
{
    static const char *const sets[] = {"baseline", "avx2", "avx512"};
    char seen[3][64];
    int n = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rig rig = {.isa = sets[i]};
        frit_device_info info;
        frit_status status = rig_load(&rig);

        if (i > 0 && status) { /* a smaller machine */
            assert_int_equal(status, FRIT_UNSUPPORTED);
            assert_non_null(strstr(rig.err.text, sets[i]));
            assert_int_equal(rig.live, 0);
            continue;
        }
        assert_int_equal(status, FRIT_OK);
        rig.backend = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_BACKEND));
        info = device_info(&rig);
        snprintf(seen[n], sizeof seen[n], "%.*s", (int)info.fingerprint.len, info.fingerprint.ptr);
        for (int k = 0; k < n; k++)
            assert_string_not_equal(seen[k], seen[n]);
        n++;
        rig.plugin->close(rig.instance);
    }
}

/* ---- memory ---- */

static void large_memory_begins_at_a_large_page(void **state)
{
    struct rig *rig = *state;
    frit_allocation allocations[3];

    for (int i = 0; i < 3; i++) {
        const frit_alloc_desc desc = {sizeof desc, 0, LARGE + (uint64_t)i * 100, 64};

        allocations[i].struct_size = sizeof allocations[i];
        assert_int_equal(rig->backend->alloc(rig->device, &desc, &allocations[i], &rig->err),
                         FRIT_OK);
        assert_int_equal(allocations[i].address % LARGE, 0);
        memset(allocations[i].host_pointer, 1, desc.bytes);
    }
    for (int i = 0; i < 3; i++)
        rig->backend->free(rig->device, allocations[i].memory);
}

/* ---- launches ---- */

static void open_addition(struct addition *a, struct rig *rig, uint64_t n)
{
    if (addition_open(a, rig, n))
        fail_msg("%s", rig->err.text);
}

/* One of the two arguments has too short a range: nothing outside of it is touched, and the launch
 * fails. */
static void check_short_argument(struct rig *rig, int arg, uint64_t lacks, float last)
{
    frit_failure failure = {.struct_size = sizeof failure};
    frit_err err = {.struct_size = sizeof err};
    struct addition a;
    float *y;
    uint64_t value;

    open_addition(&a, rig, ITEMS);
    y = a.y.host_pointer;
    y[ITEMS - 1] = -1;
    a.args[arg].extent -= lacks * sizeof(float);
    assert_int_equal(addition_run(&a, &value), FRIT_OK);
    failure.value = value - 1; /* earlier ones are known */
    assert_int_equal(rig->backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &err),
                     FRIT_OK);
    assert_int_equal(failure.status, lacks ? FRIT_INTERNAL : FRIT_OK);
    if (lacks) {
        char text[64];

        snprintf(text, sizeof text, ": %d elements outside of its arguments", (int)lacks);
        assert_int_equal(failure.cookie, 77);
        if (!strstr(err.text, text))
            fail_msg("%s", err.text);
    }
    assert_true(y[ITEMS - 1] == last && y[0] == 3);
    assert_true(y[ITEMS - 1 - 16] == (float)((ITEMS - 1 - 16) % 1000) + 3);
    addition_close(&a);
}

static void elements_outside_are_not_touched(void **state)
{
    struct rig rig = {.threads = 3, .tier = "1", .check = true};

    (void)state;
    rig_open(&rig);
    check_short_argument(&rig, 0, 0, (float)((ITEMS - 1) % 1000) + 3);
    check_short_argument(&rig, 0, 5, 3);
    check_short_argument(&rig, 2, 9, -1);
    rig_close(&rig);
}

/* Large ones are split, small ones are not worth it. */
static void launches(void **state)
{
    static const uint64_t sizes[] = {1, 7, 512, 513, ITEMS, 4 << 20};
    struct rig *rig = *state;

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct addition a;
        const float *y;
        uint64_t value;

        open_addition(&a, rig, sizes[k]);
        rig->n_split = 0;
        assert_int_equal(addition_run(&a, &value), FRIT_OK);
        assert_int_equal(rig->n_split, sizes[k] >= ITEMS);
        y = a.y.host_pointer;
        for (uint64_t i = 0; i < a.n; i++)
            assert_true(y[i] == (float)(i % 1000) + 3);
        addition_close(&a);
    }
}

static void without_threads(void **state)
{
    struct rig rig = {.threads = 0};
    struct addition a;
    uint64_t value;

    (void)state;
    rig_open(&rig);
    open_addition(&a, &rig, 4 << 20);
    assert_int_equal(addition_run(&a, &value), FRIT_OK);
    assert_true(((const float *)a.y.host_pointer)[a.n - 1] == (float)((a.n - 1) % 1000) + 3);
    addition_close(&a);
    rig_close(&rig);
}

static void what_cannot_be_launched(void **state)
{
    struct addition a;
    frit_program_table other;
    const frit_program_table *table;
    uint64_t value;

    open_addition(&a, *state, 100);
    a.args[2].extent++;
    assert_int_equal(addition_run(&a, &value), FRIT_INVALID);
    a.args[2].extent--;
    table = a.program.table;
    other = *table;
    a.program.table = &other;
    assert_int_equal(addition_run(&a, &value), FRIT_INVALID);
    assert_non_null(strstr(a.rig->err.text, "another driver"));
    a.program.table = table;
    assert_int_equal(addition_run(&a, &value), FRIT_OK);
    addition_close(&a);
}

/* Submit succeeds, the launch fails: wait returns the failure. */
static void no_memory_for_a_launch(void **state)
{
    struct rig *rig = *state;
    frit_failure failure = {.struct_size = sizeof failure};
    struct addition a;
    uint64_t value = 0;

    open_addition(&a, rig, 100);
    rig->refuse = 1;
    assert_int_equal(addition_run(&a, &value), FRIT_OK);
    assert_int_equal(rig->refuse, 0);
    assert_int_equal(rig->backend->wait(rig->device, NULL, value, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(failure.status, FRIT_NO_HOST_MEMORY);
    assert_int_equal(failure.cookie, 77);
    assert_int_equal(addition_run(&a, &value), FRIT_OK);
    failure = (frit_failure){.struct_size = sizeof failure, .value = value - 1};
    assert_int_equal(rig->backend->wait(rig->device, NULL, value, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    assert_true(((const float *)a.y.host_pointer)[99] == 102);
    addition_close(&a);
}

/* ---- fusers ---- */

static void fusers_are_for_this_device(void **state)
{
    struct rig *rig = *state;
    const frit_fuser_table *table =
        rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_FUSER_TABLE));
    frit_fuser_device device = {
        .struct_size = sizeof device, .same_plugin = 0, .device = rig->device};
    frit_fuser fusers[16] = {{0}};
    uint32_t count = 99;

    assert_non_null(table);
    assert_int_equal(
        table->prototypes(rig->instance, &device, fusers, sizeof *fusers, 16, &count, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 0);
    device.same_plugin = 1;
    assert_int_equal(
        table->prototypes(rig->instance, &device, fusers, sizeof *fusers, 16, &count, &rig->err),
        FRIT_OK);
    assert_true(count > 0 && count <= 16);
    for (uint32_t i = 0; i < count; i++)
        table->destroy(fusers[i].prototype);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device),
        cmocka_unit_test(instruction_sets),
        cmocka_unit_test(large_memory_begins_at_a_large_page),
        cmocka_unit_test(launches),
        cmocka_unit_test(elements_outside_are_not_touched),
        cmocka_unit_test(without_threads),
        cmocka_unit_test(what_cannot_be_launched),
        cmocka_unit_test_setup_teardown(no_memory_for_a_launch, open_rig, close_rig),
        cmocka_unit_test(fusers_are_for_this_device),
    };

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
