/* SPDX-License-Identifier: Apache-2.0 */
/* Search order, identity, order of devices, disabled and critical plugins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "host/load/rig.h"
#include "load/device.h"
#include "load/pick.h"
#include "load/reason.h"
#include "load/why.h"

#define END              \
    {                    \
        NULL, NULL, NULL \
    }

static char good[PATH_MAX], other[PATH_MAX], future[PATH_MAX], hollow[PATH_MAX], fusers[PATH_MAX];

static int setup(void **state)
{
    snprintf(good, sizeof(good), "%s", rig_fake("libfrit-fake-good.so"));
    snprintf(other, sizeof(other), "%s", rig_fake("libfrit-fake-other.so"));
    snprintf(future, sizeof(future), "%s", rig_fake("libfrit-fake-future.so"));
    snprintf(hollow, sizeof(hollow), "%s", rig_fake("libfrit-fake-no-devices.so"));
    snprintf(fusers, sizeof(fusers), "%s", rig_fake("libfrit-fake-fusers-alone.so"));
    return rig_setup(state);
}

static void expect_order(const frit_setting *settings, const char *const *names)
{
    struct rig rig;
    uint32_t count = 0;

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    while (names[count]) {
        assert_non_null(registry_device_at(rig.registry, count));
        assert_string_equal(registry_device_at(rig.registry, count)->name, names[count]);
        count++;
    }
    assert_int_equal(registry_n_devices(rig.registry), count);
    assert_null(registry_device_at(rig.registry, count));
    rig_close(&rig);
}

static void type_then_priority_then_id_then_number(void **state)
{
    const frit_setting by_id[] = {{"plugin.fake-other", "library", other},
                                  {"plugin.fake-good", "library", good},
                                  {"plugin.fake-good", "option.devices", "2"},
                                  END};
    const frit_setting by_priority[] = {{"plugin.fake-other", "library", other},
                                        {"plugin.fake-other", "priority", "5"},
                                        {"plugin.fake-good", "library", good},
                                        {"plugin.fake-good", "priority", "-5"},
                                        END};
    const frit_setting by_type[] = {{"plugin.fake-other", "library", other},
                                    {"plugin.fake-other", "option.type", "integrated"},
                                    {"plugin.fake-good", "library", good},
                                    {"plugin.fake-good", "priority", "99"},
                                    {"plugin.fake-future", "library", future},
                                    {"plugin.fake-future", "priority", "999"},
                                    END};

    (void)state;
    expect_order(by_id, (const char *[]){"fake:0", "fake:1", "other:0", NULL});
    expect_order(by_priority, (const char *[]){"other:0", "fake:0", NULL});
    /* A type that is not known comes last. */
    expect_order(by_type,
                 (const char *[]){"other:0", "fake:0", "fake-future:0", "fake-future:1", NULL});
}

/* In this process's own directory: names, once as a link to the same file, once as another file. */
static void directories(void **state)
{
    char names[4][128];
    struct rig rig;
    const frit_setting settings[] = {{"plugin.fake-other", "library", other}, END};

    (void)state;
    snprintf(names[0], sizeof(names[0]), "%s/libfrit-b.so", rig_dir());
    snprintf(names[1], sizeof(names[1]), "%s/libfrit-a.so", rig_dir());
    snprintf(names[2], sizeof(names[2]), "%s/libother.so", rig_dir());
    snprintf(names[3], sizeof(names[3]), "%s/libfrit-deep.so", rig_dir());
    assert_int_equal(symlink(good, names[0]), 0);
    assert_int_equal(symlink(other, names[1]), 0);
    assert_int_equal(symlink(future, names[2]), 0);
    assert_int_equal(mkdir(names[3], 0700), 0);

    assert_int_equal(rig_open(&rig, NULL), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), 3);
    assert_string_equal(registry_plugin_at(rig.registry, 0)->id, "fake-other");
    assert_string_equal(registry_plugin_at(rig.registry, 1)->id, "fake-good");
    assert_int_equal(registry_plugin_at(rig.registry, 2)->reason, FRIT_REASON_NOT_A_FILE);
    rig_contains(registry_plugin_at(rig.registry, 0)->origin, "FRIT_PLUGIN_PATH");
    assert_string_equal(registry_plugin_at(rig.registry, 1)->path, good);
    rig_close(&rig);

    /* A section's library comes first, and is not met a second time in the directory. */
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), 3);
    assert_string_equal(registry_plugin_at(rig.registry, 0)->origin, "program");
    assert_string_equal(registry_plugin_at(rig.registry, 1)->id, "fake-good");
    rig_close(&rig);

    assert_int_equal(rmdir(names[3]), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(unlink(names[i]), 0);
}

static void a_missing_directory_is_reported(void **state)
{
    struct rig rig;

    (void)state;
    setenv("FRIT_PLUGIN_PATH", "/no/such/directory", 1);
    assert_int_equal(rig_open(&rig, NULL), FRIT_OK);
    rig_contains(rig_log(), "2 load: plugin directory /no/such/directory");
    assert_int_equal(registry_n_plugins(rig.registry), 0);
    rig_close(&rig);
    setenv("FRIT_PLUGIN_PATH", rig_dir(), 1);
}

static int searches_builtin(void)
{
    struct rig rig;
    struct str text = {0};
    int found;

    assert_int_equal(rig_open(&rig, NULL), FRIT_OK);
    registry_why(rig.registry, "nope", &text);
    found = strstr(text.text, "/frit/plugins (built in)") != NULL;
    str_fini(&text);
    rig_close(&rig);
    return found;
}

/* Looked into, unless the environment names directories. */
static void the_builtin_directory(void **state)
{
    (void)state;
    assert_false(searches_builtin());
    unsetenv("FRIT_PLUGIN_PATH");
    assert_true(searches_builtin());
    setenv("FRIT_PLUGIN_PATH", rig_dir(), 1);
}

static void sections_and_ids(void **state)
{
    struct rig rig;
    const frit_setting settings[] = {{"plugin.org.example.npu", "library", good},
                                     {"plugin.fake-other", "library", other},
                                     {"plugin.fake-other", "enabled", "no"},
                                     {"plugin.typo", "priority", "3"},
                                     END};

    (void)state;
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), 3);
    assert_string_equal(reason_name(registry_plugin_at(rig.registry, 0)->reason), "bad-id");
    rig_contains(registry_plugin_at(rig.registry, 0)->detail, "[plugin.org.example.npu]");
    rig_contains(registry_plugin_at(rig.registry, 0)->detail, "'fake-good'");
    assert_string_equal(reason_name(rig_plugin(&rig, "fake-other")->reason), "disabled");
    assert_string_equal(reason_name(rig_plugin(&rig, "typo")->reason), "not-found");
    assert_int_equal(registry_n_devices(rig.registry), 0);
    rig_close(&rig);
}

/* Disabled by id where the file was found by searching. */
static void disabled_in_a_directory(void **state)
{
    char name[128];
    struct rig rig;
    const frit_setting settings[] = {{"plugin.fake-good", "enabled", "no"}, END};

    (void)state;
    snprintf(name, sizeof(name), "%s/libfrit-a.so", rig_dir());
    assert_int_equal(symlink(good, name), 0);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), 1);
    assert_string_equal(reason_name(rig_plugin(&rig, "fake-good")->reason), "disabled");
    assert_false(rig_plugin(&rig, "fake-good")->opened);
    rig_close(&rig);
    assert_int_equal(unlink(name), 0);
}

static void expect_critical(const frit_setting *settings, const char *words)
{
    struct rig rig;
    frit_status status = rig_open(&rig, settings);

    assert_int_equal(status, words ? FRIT_UNSUPPORTED : FRIT_OK);
    assert_int_equal(rig.registry == NULL, words != NULL);
    if (words) {
        rig_contains(rig.err.text, "is critical and not usable");
        rig_contains(rig.err.text, words);
    }
    rig_close(&rig);
}

static void critical_plugins(void **state)
{
    const frit_setting fine[] = {
        {"plugin.fake-good", "library", good}, {"plugin.fake-good", "critical", "yes"}, END};
    const frit_setting missing[] = {{"plugin.fake-good", "library", "/no/such/file.so"},
                                    {"plugin.fake-good", "critical", "yes"},
                                    END};
    const frit_setting nowhere[] = {{"plugin.nowhere", "critical", "yes"}, END};
    const frit_setting refused[] = {{"plugin.fake-good", "library", good},
                                    {"plugin.fake-good", "option.refuse", "yes"},
                                    {"plugin.fake-good", "critical", "yes"},
                                    END};
    const frit_setting empty[] = {{"plugin.fake-no-devices", "library", hollow},
                                  {"plugin.fake-no-devices", "critical", "yes"},
                                  END};
    const frit_setting off[] = {{"plugin.fake-good", "library", good},
                                {"plugin.fake-good", "enabled", "no"},
                                {"plugin.fake-good", "critical", "yes"},
                                END};

    (void)state;
    expect_critical(fine, NULL);
    expect_critical(missing, "not-found: /no/such/file.so");
    expect_critical(nowhere, "not-found: no file in the plugin directories");
    expect_critical(refused, "open-failed: unsupported: refuses on request");
    expect_critical(empty, "no-runtime: libmoon.so.1 is missing");
    expect_critical(off, NULL); /* the user's own wish */
}

/* A plugin without devices of its own is usable, also where it is critical. */
static void fusers_alone(void **state)
{
    const frit_setting settings[] = {{"plugin.fake-fusers-alone", "library", fusers},
                                     {"plugin.fake-fusers-alone", "critical", "yes"},
                                     {"plugin.fake-good", "library", good},
                                     END};
    const struct plugin *plugin;
    struct str text = {0};
    struct rig rig;

    (void)state;
    assert_int_equal(log_configure("info", NULL), FRIT_OK);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(log_configure("warn", NULL), FRIT_OK);
    rig_contains(rig_log(), "libfrit-fake-fusers-alone.so: offers fusers");
    plugin = rig_plugin(&rig, "fake-fusers-alone");
    assert_non_null(plugin->fusers.prototypes);
    assert_null(plugin->fusers.from_state); /* past the end of the table */
    assert_int_equal(plugin->backend.struct_size, 0);
    assert_int_equal(plugin->n_devices, 0);
    assert_string_equal(plugin->driver, "");
    assert_int_equal(registry_n_devices(rig.registry), 1);
    registry_why(rig.registry, "fake-fusers-alone", &text);
    rig_contains(text.text, "usable, offers fusers");
    str_fini(&text);
    registry_why(rig.registry, "fake", &text);
    assert_null(strstr(text.text, "fusers"));
    str_fini(&text);
    rig_close(&rig);
}

/* By place: fake, of type software, then other and fake-no-devices. */
static void expect_enumerated(const struct rig *rig, bool fake, bool discrete, bool none)
{
    assert_int_equal(registry_plugin_at(rig->registry, 0)->enumerated, fake);
    assert_int_equal(registry_plugin_at(rig->registry, 1)->enumerated, discrete);
    assert_int_equal(registry_plugin_at(rig->registry, 2)->enumerated, none);
}

static void drivers_are_enumerated_when_needed(void **state)
{
    const frit_setting settings[] = {{"plugin.fake-good", "library", good},
                                     {"plugin.fake-good", "priority", "1"},
                                     {"plugin.fake-other", "library", other},
                                     {"plugin.fake-other", "priority", "2"},
                                     {"plugin.fake-other", "option.type", "discrete"},
                                     {"plugin.fake-no-devices", "library", hollow},
                                     END};
    const struct device_entry *device;
    struct rig rig;

    (void)state;
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    expect_enumerated(&rig, false, false, false);
    assert_int_equal(registry_pick(rig.registry, "other", &device, NULL), FRIT_OK);
    assert_string_equal(device->name, "other:0");
    expect_enumerated(&rig, false, true, false);
    assert_string_equal(registry_fallback(rig.registry)->name, "fake:0");
    assert_int_equal(registry_n_devices(rig.registry), 2);
    assert_ptr_equal(registry_device_at(rig.registry, 0), device);
    rig_close(&rig);

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_string_equal(registry_fallback(rig.registry)->name, "fake:0");
    expect_enumerated(&rig, true, false,
                      true); /* the least priority has no device, the most is after */
    assert_int_equal(registry_pick(rig.registry, "nope, auto", &device, NULL), FRIT_OK);
    expect_enumerated(&rig, true, true, true);
    assert_string_equal(device->name, "other:0");
    rig_close(&rig);
}

static void *open_and_close(void *arg)
{
    struct conf *conf = arg;

    for (int i = 0; i < 50; i++) {
        struct registry *registry = NULL;

        if (registry_open(conf, &registry, NULL) || registry_n_devices(registry) != 2)
            return "a registry differs";
        registry_close(registry);
    }
    return NULL;
}

/* Hosts of several threads do not meet. */
static void threads(void **state)
{
    const frit_setting settings[] = {
        {"plugin.fake-other", "library", other}, {"plugin.fake-good", "library", good}, END};
    pthread_t thread[4];
    struct rig rig;

    (void)state;
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(log_configure("off", NULL), FRIT_OK); /* the rig collects for one thread */
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, open_and_close, rig.conf), 0);
    for (int i = 0; i < 4; i++) {
        void *trouble = NULL;

        assert_int_equal(pthread_join(thread[i], &trouble), 0);
        assert_null(trouble);
    }
    assert_int_equal(log_configure("warn", NULL), FRIT_OK);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_then_priority_then_id_then_number),
        cmocka_unit_test(directories),
        cmocka_unit_test(a_missing_directory_is_reported),
        cmocka_unit_test(the_builtin_directory),
        cmocka_unit_test(sections_and_ids),
        cmocka_unit_test(disabled_in_a_directory),
        cmocka_unit_test(critical_plugins),
        cmocka_unit_test(fusers_alone),
        cmocka_unit_test(drivers_are_enumerated_when_needed),
        cmocka_unit_test(threads),
    };

    return cmocka_run_group_tests(tests, setup, rig_teardown);
}
