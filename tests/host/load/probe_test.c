/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that crash, hang or end their process do so in a process of their own: the host loads the
 * others, and does not wait for them again.  sweep_test.c has all of them. */
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "host/load/rig.h"
#include "load/device.h"
#include "load/elf.h"
#include "load/find.h"
#include "load/probe.h"

static const double patience = 8; /* seconds of a probe, on a loaded machine with sanitizers too */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static const char *built(const char *folder)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", getenv("FRIT_TEST_BUILD"), folder);
    return path;
}

static char library[512];

static int set_up(void **state)
{
    if (rig_setup(state))
        return -1;
    snprintf(library, sizeof(library), "%s", built("lib"));
    find_set_own_folder(library);
    probe_set_limit(patience);
    return 0;
}

static struct elf_facts facts[2];
static char paths[2][600];

static struct conf *load_conf(const frit_setting *settings, size_t n)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct conf *conf = NULL;

    if (conf_load(settings, n, &conf, &err))
        fail_msg("%s", err.text);
    return conf;
}

/* ---- a program that finds some of them ---- */

static void link_into(const char *folder, const char *from, const char *file)
{
    char source[700], target[700];

    snprintf(source, sizeof(source), "%s/%s", built(from), file);
    snprintf(target, sizeof(target), "%s/%s", folder, file);
    assert_int_equal(symlink(source, target), 0);
}

static double open_and_check(const char *artefacts)
{
    const frit_setting settings[] = {
        {"search", "probe", "auto"}, {"frit", "artefacts", artefacts}, {NULL, NULL, NULL}};
    const double started = now();
    struct rig rig;
    double seconds;

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    seconds = now() - started;
    assert_int_equal(rig_plugin(&rig, "libfrit-sin-open-hang.so")->reason, FRIT_REASON_HANGS);
    assert_int_equal(rig_plugin(&rig, "libfrit-sin-load-exit.so")->reason, FRIT_REASON_EXITS);
    assert_int_equal(rig_plugin(&rig, "libfrit-sin-enumerate-crash.so")->reason,
                     FRIT_REASON_CRASHES);
    assert_int_equal(rig_plugin(&rig, "fake-good")->reason, FRIT_REASON_NONE);
    assert_int_equal(rig_plugin(&rig, "fake-good")->n_devices, 1);
    rig_close(&rig);
    return seconds;
}

static void the_second_start_does_not_wait(void **state)
{
    static const char *const files[] = {"libfrit-sin-open-hang.so", "libfrit-sin-load-exit.so",
                                        "libfrit-sin-enumerate-crash.so"};
    char artefacts[] = "/tmp/frit-probe-XXXXXX", command[128];

    (void)state;
    assert_non_null(mkdtemp(artefacts));
    for (size_t i = 0; i < 3; i++)
        link_into(rig_dir(), "tests/probe", files[i]);
    link_into(rig_dir(), "tests/fake", "libfrit-fake-good.so");
    assert_true(open_and_check(artefacts) >= patience);
    assert_true(open_and_check(artefacts) < patience / 2);
    snprintf(command, sizeof(command), "rm -r %s %s/*.so", artefacts, rig_dir());
    assert_int_equal(system(command), 0);
}

static void put(const char *folder, const char *from, const char *file)
{
    char command[1600];

    snprintf(command, sizeof(command), "cp %s/%s %s/libfrit-sin-load-crash.so", built(from), file,
             folder);
    assert_int_equal(system(command), 0);
}

static uint32_t reason_now(const char *artefacts)
{
    const frit_setting settings[] = {
        {"search", "probe", "auto"}, {"frit", "artefacts", artefacts}, {NULL, NULL, NULL}};
    uint32_t reason;
    struct rig rig;

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    reason = rig_plugin(&rig, "libfrit-sin-load-crash.so")->reason;
    rig_close(&rig);
    return reason;
}

/* What is known is known of a file as it was. */
static void a_file_that_changed_is_probed_again(void **state)
{
    char artefacts[] = "/tmp/frit-probe-XXXXXX", command[128];

    (void)state;
    assert_non_null(mkdtemp(artefacts));
    put(rig_dir(), "tests/probe", "libfrit-sin-load-crash.so");
    assert_int_equal(reason_now(artefacts), FRIT_REASON_CRASHES);
    snprintf(command, sizeof(command), "rm %s/*.so", rig_dir());
    assert_int_equal(system(command), 0);
    put(rig_dir(), "tests/fake", "libfrit-fake-good.so");
    assert_int_equal(reason_now(artefacts), FRIT_REASON_NONE);
    snprintf(command, sizeof(command), "rm -r %s %s/*.so", artefacts, rig_dir());
    assert_int_equal(system(command), 0);
}

/* A stranger is refused, not the plugin that fails beside it and is not probed. */
static void the_stranger_of_a_set_is_refused(void **state)
{
    static const frit_setting settings[] = {{"search", "probe", "auto"},
                                            {"plugin.sin-enumerate-clash", "probe", "never"}};
    static const char *const files[] = {"libfrit-sin-open-clash.so",
                                        "libfrit-sin-enumerate-clash.so"};
    struct conf *conf = load_conf(settings, 2);
    struct plugin pair[2] = {{.id = "sin-open-clash"}, {.id = "sin-enumerate-clash"}};
    struct probe_subject subjects[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", built("tests/probe"), files[i]);
        pair[i].path = paths[i];
        assert_int_equal(elf_read(paths[i], &facts[i], pair[i].detail, sizeof(pair[i].detail)), 0);
        subjects[i] = (struct probe_subject){&pair[i], &facts[i].identity, NULL};
    }
    probe_all(conf, subjects, 2);
    assert_int_equal(pair[0].reason, FRIT_REASON_CLASHES);
    assert_int_equal(pair[1].reason, FRIT_REASON_NONE);
    conf_destroy(conf);
}

/* The plugins that the build vouches for are not probed unless that is configured. */
static void trusted_plugins_are_probed_on_demand(void **state)
{
    static const char *const modes[] = {"auto", "always"};
    char command[1200];

    (void)state;
    snprintf(command, sizeof(command), "mkdir %s/frit && cp %s/frit/trusted-plugins %s/frit",
             rig_dir(), library, rig_dir());
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < 2; i++) {
        const frit_setting settings[] = {{"search", "probe", modes[i]}, {"frit", "log", "info"}};
        struct conf *conf = load_conf(settings, 2);
        struct plugin plugin = {.path = paths[0]};
        struct probe_subject subject = {&plugin, &facts[0].identity, NULL};

        snprintf(paths[0], sizeof(paths[0]), "%s/libfrit-reference.so", built("lib/frit/plugins"));
        assert_int_equal(elf_read(paths[0], &facts[0], plugin.detail, sizeof(plugin.detail)), 0);
        find_set_own_folder(rig_dir()); /* the list, but no program */
        probe_all(conf, &subject, 1);
        assert_int_equal(plugin.reason, i ? FRIT_REASON_NOT_PROBED : FRIT_REASON_NONE);
        plugin.reason = FRIT_REASON_NONE;
        find_set_own_folder(library);
        probe_all(conf, &subject, 1);
        assert_int_equal(plugin.reason, FRIT_REASON_NONE);
        conf_destroy(conf);
    }
    snprintf(command, sizeof(command), "rm -r %s/frit", rig_dir());
    assert_int_equal(system(command), 0);
}

/* ---- what the probe cannot keep away ---- */

static void what_a_plugin_changes_is_restored(void **state)
{
    static const char *const files[] = {"libfrit-sin-open-round.so", "libfrit-sin-open-mask.so",
                                        "libfrit-sin-open-folder.so"};
    char command[128], before[512], after[512];
    sigset_t mask;
    struct rig rig;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        link_into(rig_dir(), "tests/probe", files[i]);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(rig_open(&rig, NULL), FRIT_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rig_plugin(&rig, files[i])->reason, FRIT_REASON_NONE);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGTERM));
    assert_string_equal(getcwd(after, sizeof(after)), before);
    rig_contains(rig_log(), "sin-open-round.so: open changed the floating-point modes");
    rig_contains(rig_log(), "sin-open-mask.so: open changed the signal mask");
    rig_contains(rig_log(), "sin-open-folder.so: open changed the current folder");
    rig_close(&rig);
    snprintf(command, sizeof(command), "rm %s/*.so", rig_dir());
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_start_does_not_wait),
        cmocka_unit_test(a_file_that_changed_is_probed_again),
        cmocka_unit_test(the_stranger_of_a_set_is_refused),
        cmocka_unit_test(trusted_plugins_are_probed_on_demand),
        cmocka_unit_test(what_a_plugin_changes_is_restored),
    };

    return cmocka_run_group_tests(tests, set_up, rig_teardown);
}
