/* SPDX-License-Identifier: Apache-2.0 */
/* What this driver has of its own: the loader, mapped memory, the pipeline cache. */
#include <string.h>

#include "add.h"

static int open_rig(void **state)
{
    static struct rig rig;

    rig = (struct rig){0};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int open_staging(void **state)
{
    static struct rig rig;

    rig = (struct rig){.staging = "force"};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    return 0;
}

/* ---- devices ---- */

static void llvmpipe_is_software(void **state)
{
    struct rig *rig = *state;
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    if (!strstr(info.name.ptr, "llvmpipe"))
        skip();
    assert_int_equal(info.type, FRIT_DEVICE_SOFTWARE);
    assert_int_equal(info.caps & FRIT_CAP_HOST_VISIBLE, FRIT_CAP_HOST_VISIBLE);
}

static void no_loader(void **state)
{
    struct rig rig = {.loader = "libvulkan-that-is-not-there.so.1"};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 7;

    (void)state;
    rig_open_plugin(&rig);
    assert_int_equal(rig.backend->enumerate(rig.instance, NULL, 0, 0, &count, &driver, &rig.err),
                     FRIT_OK);
    assert_int_equal(count, 0);
    assert_int_equal(driver.reason, FRIT_REASON_NO_RUNTIME);
    assert_non_null(strstr(driver.detail.ptr, "libvulkan-that-is-not-there.so.1"));
    rig_close(&rig);
}

/* A library that is not a Vulkan loader. */
static void wrong_loader(void **state)
{
    struct rig rig = {.loader = "libc.so.6"};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 7;

    (void)state;
    rig_open_plugin(&rig);
    assert_int_equal(rig.backend->enumerate(rig.instance, NULL, 0, 0, &count, &driver, &rig.err),
                     FRIT_OK);
    assert_int_equal(count, 0);
    assert_int_equal(driver.reason, FRIT_REASON_RUNTIME_TOO_OLD);
    assert_non_null(strstr(driver.detail.ptr, "vkGetInstanceProcAddr"));
    rig_close(&rig);
}

/* ---- memory ---- */

static void memory_is_mapped(void **state)
{
    struct rig *rig = *state;
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver};
    frit_allocation memory = rig_alloc(rig, 64);
    uint32_t count;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(memory.host_pointer != NULL, (info.caps & FRIT_CAP_HOST_VISIBLE) != 0);
    if (rig->staging)
        assert_null(memory.host_pointer);
    rig->backend->free(rig->device, memory.memory);
}

/* ---- kernels ---- */

/* The pipeline cache is saved when a device is closed and loaded when it opens again; bytes that
 * are no pipeline cache are ignored. */
static void pipelines_are_cached(void **state)
{
    struct rig *rig = *state;

    add_run(rig, 1);
    assert_int_equal(rig->gets, 1);
    assert_int_equal(rig->puts, 0);
    rig->backend->device_close(rig->device);
    assert_int_equal(rig->puts, 1);
    rig_open_device(rig);
    assert_int_equal(rig->gets, 2);
    add_run(rig, 1);
    rig->backend->device_close(rig->device);
    assert_int_equal(rig->puts, 1);
    memset(rig->cached, 0x5a, rig->n_cached);
    rig_open_device(rig);
    add_run(rig, 1);
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
#define STAGING_TEST(test)                                   \
    {                                                        \
        "staged " #test, test, open_staging, close_rig, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(llvmpipe_is_software), cmocka_unit_test(no_loader),
        cmocka_unit_test(wrong_loader), RIG_TEST(memory_is_mapped),
        STAGING_TEST(memory_is_mapped), RIG_TEST(pipelines_are_cached),
    };
    const int skips = rig_skips();

    return skips ? skips : cmocka_run_group_tests(tests, NULL, NULL);
}
