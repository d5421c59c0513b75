/* SPDX-License-Identifier: Apache-2.0 */
/* Device lists, and the words for what is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/pick.h"
#include "load/why.h"

/* fake:0..3 software (ids a0c0 a0d1 b2 b23), other:0 discrete, fake-future:0 usable and :1 not,
 * fake-no-devices without any, fake-too-new refused. */
static struct rig rig;

static int setup(void **state)
{
    static char paths[5][600];
    static const char *const ids[5] = {"fake-good", "fake-other", "fake-future", "fake-no-devices",
                                       "fake-too-new"};
    static char sections[5][64];
    frit_setting settings[8] = {{"plugin.fake-good", "option.devices", "4"},
                                {"plugin.fake-other", "option.type", "discrete"}};

    if (rig_setup(state))
        return -1;
    for (int i = 0; i < 5; i++) {
        char file[64];

        snprintf(file, sizeof(file), "libfrit-%s.so", ids[i]);
        snprintf(paths[i], sizeof(paths[i]), "%s", rig_fake(file));
        snprintf(sections[i], sizeof(sections[i]), "plugin.%s", ids[i]);
        settings[2 + i] = (frit_setting){sections[i], "library", paths[i]};
    }
    return rig_open(&rig, settings);
}

static int teardown(void **state)
{
    rig_close(&rig);
    return rig_teardown(state);
}

static void expect(const char *list, const char *name)
{
    const struct device_entry *device = NULL;
    frit_err err = {.struct_size = sizeof(err)};

    if (registry_pick(rig.registry, list, &device, &err))
        fail_msg("'%s': %s", list, err.text);
    assert_string_equal(device->name, name);
}

static void expect_none(const char *list, frit_status status, const char *words)
{
    const struct device_entry *device = NULL;
    frit_err err = {.struct_size = sizeof(err)};

    assert_int_equal(registry_pick(rig.registry, list, &device, &err), status);
    assert_null(device);
    rig_contains(err.text, words);
    if (status == FRIT_UNSUPPORTED)
        rig_contains(err.text, "frit doctor why");
}

static void names(void **state)
{
    (void)state;
    expect("auto", "other:0");
    expect("fake", "fake:0");
    expect("fake:3", "fake:3");
    expect(" other:0 ", "other:0");
    expect("fake-future", "fake-future:0");
}

static void stable_ids(void **state)
{
    (void)state;
    expect("fake:uuid=a0d1", "fake:1");
    expect("fake:uuid=A0C", "fake:0");
    expect("fake:uuid=b2", "fake:2"); /* whole, though another begins with it */
    expect("fake:uuid=b23", "fake:3");
    expect_none("fake:uuid=a0", FRIT_UNSUPPORTED, "'a0' begins the ids of 2 devices");
    expect_none("fake:uuid=zz", FRIT_UNSUPPORTED, "no-device");
}

static void lists(void **state)
{
    (void)state;
    expect("nope, fake:9,fake:2, auto", "fake:2");
    rig_contains(rig_log(), "2 load: device 'nope' is skipped: no-driver");
    rig_contains(rig_log(), "2 load: device 'fake:9' is skipped: no-device");
    expect("nope,auto", "other:0");
}

static void what_is_not_there(void **state)
{
    (void)state;
    expect_none("nope:0", FRIT_UNSUPPORTED, "no-driver");
    expect_none("othr", FRIT_UNSUPPORTED, "did you mean 'other'?");
    expect_none("nope", FRIT_UNSUPPORTED,
                "drivers here: fake, other, fake-future, fake-no-devices");
    expect_none("fake:4", FRIT_UNSUPPORTED, "fake has 4 devices, fake:0 to fake:3");
    expect_none("other:1", FRIT_UNSUPPORTED, "other has one device, other:0");
    expect_none("fake-future:1", FRIT_UNSUPPORTED,
                "unknown: a reason that this host does not know (fake-future:1)");
    expect_none("fake-no-devices", FRIT_UNSUPPORTED, "libmoon.so.1 is missing");
    expect_none("fake-too-new:0", FRIT_UNSUPPORTED, "abi-mismatch");
    expect_none("nope,fake-too-new", FRIT_UNSUPPORTED, "; nope: no-driver");
    expect_none("nope,fake-too-new", FRIT_UNSUPPORTED, "; fake-too-new: abi-mismatch");
}

static void malformed_lists(void **state)
{
    static const char *const lists[] = {"",           " ",         ",",
                                        "fake,,auto", "fake:",     "Fake",
                                        "fake:x",     "fake:-1",   "fake:0:0",
                                        "auto:0",     "fa ke",     "0fake",
                                        "fake:uuid=", "fake:1 2",  "fake:99999999999",
                                        "fake:\t",    "fake,Fake", "fake,"};

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        expect_none(lists[i], FRIT_INVALID, "allowed are DRIVER, DRIVER:INDEX");
}

static void expect_why(const char *name, const char *words)
{
    struct str text = {0};

    registry_why(rig.registry, name, &text);
    assert_false(text.failed);
    rig_contains(text.text, words);
    assert_int_equal(text.text[text.length - 1], '\n');
    str_fini(&text);
}

static void why(void **state)
{
    (void)state;
    expect_why("fake-good", "libfrit-fake-good.so (program): usable\n");
    expect_why("fake", "plugin fake-good 1.0");
    expect_why("fake", "device fake:3, a piece of host memory: usable\n");
    expect_why("fake:2", "device fake:2, a piece of host memory: usable\n");
    expect_why("fake:7", "no-device");
    expect_why("fake-future:1", "fake-future:1: unknown");
    expect_why("fake-no-devices", "install the vendor's runtime");
    expect_why("fake-no-devices", "libmoon.so.1 is missing");
    expect_why("fake-too-new", "abi-mismatch");
    expect_why("fake-too-new", "same release");
    expect_why("fake-too-new:0", "7.0-7.3");
    expect_why("nope", "no-driver");
    expect_why("nope", "  install the driver's plugin");
    expect_why("nope", rig_dir());
    expect_why("auto", "other:0");
    expect_why("libfrit no such", "searched ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),           cmocka_unit_test(stable_ids),
        cmocka_unit_test(lists),           cmocka_unit_test(what_is_not_there),
        cmocka_unit_test(malformed_lists), cmocka_unit_test(why),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
