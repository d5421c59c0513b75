/* SPDX-License-Identifier: Apache-2.0 */
/* Options of plugins: typed, checked against the schema; wrong ones are reported with their origin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/device.h"
#include "load/reason.h"

static struct rig open_with(const char *key, const char *value)
{
    struct rig rig;
    const frit_setting settings[] = {
        {"plugin.fake-good", "library", rig_fake("libfrit-fake-good.so")},
        {"plugin.fake-good", key, value},
        {NULL, NULL, NULL}};

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    return rig;
}

static void expect_refused(const char *key, const char *value, const char *words)
{
    struct rig rig = open_with(key, value);
    const struct plugin *plugin = rig_plugin(&rig, "fake-good");

    assert_string_equal(reason_name(plugin->reason), "bad-option");
    rig_contains(plugin->detail, "program");
    rig_contains(plugin->detail, words);
    assert_false(plugin->opened);
    rig_close(&rig);
}

static void expect_devices(const char *value, uint32_t count)
{
    struct rig rig = open_with("option.devices", value);

    assert_string_equal(rig_plugin(&rig, "fake-good")->detail, "");
    assert_int_equal(registry_n_devices(rig.registry), count);
    rig_close(&rig);
}

static void whole_numbers(void **state)
{
    (void)state;
    expect_devices("1", 1);
    expect_devices("16", 16);
    expect_devices("0", 0);
    expect_refused("option.devices", "17", "a whole number from 0 to 16");
    expect_refused("option.devices", "-1", "option.devices = -1");
    expect_refused("option.devices", "two", "a whole number");
    expect_refused("option.devices", "3x", "a whole number");
    expect_refused("option.devices", "0x3", "a whole number");
    expect_refused("option.devices", "99999999999999999999", "a whole number");
}

static void words_of_a_list(void **state)
{
    struct rig rig = open_with("option.type", "accelerator");

    (void)state;
    assert_int_equal(registry_device_at(rig.registry, 0)->info->type, FRIT_DEVICE_ACCELERATOR);
    rig_close(&rig);
    expect_refused("option.type", "accel", "one of: unknown discrete accelerator");
    expect_refused("option.type", "discrete accelerator", "one of: unknown");
}

/* The plugin logs which of the two it met; its id is in the line. */
static void numbers(void **state)
{
    struct rig rig = open_with("option.speed", "0.25");

    (void)state;
    rig_contains(rig_log(), "2 fake: fake-good: slow");
    rig_close(&rig);
    rig = open_with("option.speed", "2.5e1");
    rig_contains(rig_log(), "2 fake: fake-good: fast");
    rig_close(&rig);
    expect_refused("option.speed", "quick", "a number");
    expect_refused("option.speed", "1,5", "a number");
    expect_refused("option.speed", "inf", "a number");
}

static void yes_and_no(void **state)
{
    struct rig rig = open_with("option.refuse", "no");

    (void)state;
    assert_int_equal(rig_plugin(&rig, "fake-good")->reason, FRIT_REASON_NONE);
    rig_close(&rig);
    rig = open_with("option.refuse", "yes");
    assert_int_equal(rig_plugin(&rig, "fake-good")->reason, FRIT_REASON_OPEN_FAILED);
    assert_string_equal(rig_plugin(&rig, "fake-good")->detail, "unsupported: refuses on request");
    rig_close(&rig);
    expect_refused("option.refuse", "maybe", "yes or no");
}

static void unknown_names(void **state)
{
    (void)state;
    expect_refused("option.device", "2", "did you mean 'devices'");
    expect_refused("option.colour", "2", "it has: devices, type, speed, refuse");
}

/* The message has the line of the file. */
static void file_and_line(void **state)
{
    char path[128], words[160];
    FILE *file;
    struct rig rig;

    (void)state;
    snprintf(path, sizeof(path), "%s/frit.ini", rig_dir());
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "[plugin.fake-good]\nlibrary = %s\n\noption.devices = many\n",
            rig_fake("libfrit-fake-good.so"));
    assert_int_equal(fclose(file), 0);
    setenv("FRIT_CONFIG", path, 1);
    assert_int_equal(rig_open(&rig, NULL), FRIT_OK);
    snprintf(words, sizeof(words), "%s:4: option.devices = many", path);
    assert_string_equal(reason_name(rig_plugin(&rig, "fake-good")->reason), "bad-option");
    rig_contains(rig_plugin(&rig, "fake-good")->detail, words);
    rig_close(&rig);
    setenv("FRIT_CONFIG", "/dev/null", 1);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers), cmocka_unit_test(words_of_a_list),
        cmocka_unit_test(numbers),       cmocka_unit_test(yes_and_no),
        cmocka_unit_test(unknown_names), cmocka_unit_test(file_and_line),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
