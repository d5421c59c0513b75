/* SPDX-License-Identifier: Apache-2.0 */
/* A process that dies in a plugin's call leaves a note: the next one takes care, the one after a
 * second death does without the plugin.  Other ends leave none.  Calls that take long are named. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "host/load/rig.h"
#include "load/breadcrumb.h"
#include "load/find.h"
#include "load/quarantine.h"
#include "load/reason.h"

static char artefacts[64];
static const char *const good = "libfrit-fake-good.so";

static void link_plugin(const char *folder, const char *file)
{
    char source[700], target[700];

    snprintf(source, sizeof(source), "%s/%s/%s", getenv("FRIT_TEST_BUILD"), folder, file);
    snprintf(target, sizeof(target), "%s/%s", rig_dir(), file);
    assert_int_equal(symlink(source, target), 0);
}

static int begin(void **state)
{
    (void)state;
    snprintf(artefacts, sizeof(artefacts), "/tmp/frit-died-XXXXXX");
    return mkdtemp(artefacts) ? 0 : -1;
}

static int set_up(void **state)
{
    static char library[512];

    if (rig_setup(state))
        return -1;
    snprintf(library, sizeof(library), "%s/lib", getenv("FRIT_TEST_BUILD"));
    find_set_own_folder(library); /* of the program frit-probe */
    return 0;
}

static int end(void **state)
{
    char command[256];

    (void)state;
    breadcrumb_set_patience(0);
    snprintf(command, sizeof(command), "rm -rf %s %s/*.so", artefacts, rig_dir());
    return system(command);
}

static void open_all(struct rig *rig)
{
    const frit_setting settings[] = {
        {"search", "probe", "never"}, {"frit", "artefacts", artefacts}, {NULL, NULL, NULL}};

    assert_int_equal(rig_open(rig, settings), FRIT_OK);
}

/* Runs `body` in a process of its own, which ends with it; its wait status. */
static int in_child(void (*body)(void))
{
    const struct rlimit no_core = {0, 0};
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGSEGV, SIG_DFL); /* the test's own handler goes on */
        (void)freopen("/dev/null", "w", stderr);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void open_and_end(void)
{
    struct rig rig;

    open_all(&rig);
}

static const char *real_path(const char *file)
{
    static char path[700];

    snprintf(path, sizeof(path), "%s/%s", rig_dir(), file);
    return realpath(path, NULL);
}

/* ---- deaths ---- */

static void after_two_deaths_it_is_not_loaded(void **state)
{
    static const char *const bad = "libfrit-sin-open-crash.so";
    struct rig rig;

    (void)state;
    link_plugin("tests/probe", bad);
    link_plugin("tests/fake", good);
    assert_int_not_equal(in_child(open_and_end), 0);
    assert_int_not_equal(in_child(open_and_end), 0);
    for (int i = 0; i < 2; i++) {
        open_all(&rig);
        assert_int_equal(rig_plugin(&rig, bad)->reason, FRIT_REASON_DIED);
        rig_contains(rig_plugin(&rig, bad)->detail, "2 processes died in its open");
        rig_contains(rig_plugin(&rig, bad)->detail, "frit doctor forgive sin`");
        assert_int_equal(rig_plugin(&rig, "fake-good")->reason, FRIT_REASON_NONE);
        if (i)
            assert_int_equal(registry_forgive(rig.registry, "sin-open-crash", &rig.err), FRIT_OK);
        rig_close(&rig);
    }
    assert_int_not_equal(in_child(open_and_end), 0); /* it is tried again */
}

static void note_open_of_good(void)
{
    breadcrumb_start(artefacts);
    (void)breadcrumb_enter(real_path(good), "open", BREADCRUMB_BLAMED);
}

static void a_call_that_returns_clears_it(void **state)
{
    struct rig rig;

    (void)state;
    link_plugin("tests/fake", good);
    for (int i = 0; i < 4; i++) {
        if (i != 1)
            assert_int_equal(in_child(note_open_of_good), 0);
        open_all(&rig);
        assert_int_equal(rig_plugin(&rig, "fake-good")->reason, FRIT_REASON_NONE);
        if (i != 1)
            rig_contains(rig_log(), "a process died in its open");
        else
            assert_null(strstr(rig_log(), "died"));
        rig_close(&rig);
    }
    open_all(&rig);
    assert_int_equal(registry_forgive(rig.registry, "fake-good", &rig.err), FRIT_INVALID);
    assert_int_equal(registry_forgive(rig.registry, "nobody", &rig.err), FRIT_INVALID);
    rig_contains(rig.err.text, "nobody");
    rig_close(&rig);
}

/* Whoever vouches for it. */
static void after_one_death_it_is_probed(void **state)
{
    const frit_setting settings[] = {
        {"search", "probe", "auto"}, {"frit", "artefacts", artefacts}, {NULL, NULL, NULL}};
    static const char *const bad = "libfrit-sin-open-crash.so";
    struct rig rig;

    (void)state;
    link_plugin("tests/probe", bad);
    assert_int_not_equal(in_child(open_and_end), 0);
    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(rig_plugin(&rig, bad)->reason, FRIT_REASON_CRASHES);
    rig_close(&rig);
}

/* ---- other ends ---- */

static void expect_nobody_blamed(void)
{
    struct rig rig;

    open_all(&rig);
    assert_int_equal(rig_plugin(&rig, "fake-good")->reason, FRIT_REASON_NONE);
    assert_null(strstr(rig_log(), "died"));
    rig_close(&rig);
}

static void launch_for_long(void)
{
    breadcrumb_start(artefacts);
    (void)breadcrumb_enter(real_path(good), BREADCRUMB_SUBMIT, BREADCRUMB_LAUNCH);
    usleep(1300 * 1000);
}

static void launch_and_die(void)
{
    breadcrumb_start(artefacts);
    (void)breadcrumb_enter(real_path(good), BREADCRUMB_SUBMIT, BREADCRUMB_LAUNCH);
}

static void whoever_ends_a_long_launch_is_not_the_plugin(void **state)
{
    struct rig rig;

    (void)state;
    link_plugin("tests/fake", good);
    assert_int_equal(in_child(launch_for_long), 0);
    expect_nobody_blamed();
    assert_int_equal(in_child(launch_and_die), 0);
    open_all(&rig);
    rig_contains(rig_log(), "a process died in its submit");
    rig_close(&rig);
}

static atomic_int entered;

static void *open_for_ever(void *path)
{
    (void)breadcrumb_enter(path, "open", BREADCRUMB_BLAMED);
    atomic_store(&entered, 1);
    pause();
    return NULL;
}

static void end_in_order(void)
{
    pthread_t thread;

    breadcrumb_start(artefacts);
    (void)pthread_create(&thread, NULL, open_for_ever, (void *)(uintptr_t)real_path(good));
    while (!atomic_load(&entered))
        usleep(1000);
    exit(0);
}

static void end_in_the_call(void)
{
    breadcrumb_start(artefacts);
    (void)breadcrumb_enter(real_path(good), "open", BREADCRUMB_BLAMED);
    exit(0);
}

static void an_orderly_end_blames_whoever_calls_it(void **state)
{
    struct rig rig;

    (void)state;
    link_plugin("tests/fake", good);
    assert_int_equal(in_child(end_in_order), 0);
    expect_nobody_blamed();
    assert_int_equal(in_child(end_in_the_call), 0);
    open_all(&rig);
    rig_contains(rig_log(), "a process died in its open");
    rig_close(&rig);
}

/* ---- files of others ---- */

static void what_is_no_note_is_ignored(void **state)
{
    char path[256];
    int fd;

    (void)state;
    link_plugin("tests/fake", good);
    snprintf(path, sizeof(path), "%s/running", artefacts);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/running/process-fifo", artefacts);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof(path), "%s/running/process-link", artefacts);
    assert_int_equal(symlink("/dev/zero", path), 0);
    snprintf(path, sizeof(path), "%s/running/process-short", artefacts);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "FritRun1", 8), 8);
    close(fd);
    expect_nobody_blamed();
    assert_int_not_equal(access(path, F_OK), 0); /* it is swept */
}

/* ---- what takes long ---- */

static void a_slow_call_is_named(void **state)
{
    static const char text[] = "plugin /nowhere/libfrit-slow.so: compile has not returned for ";
    unsigned place;

    (void)state;
    breadcrumb_set_patience(0.02);
    breadcrumb_start(NULL);
    place = breadcrumb_enter("/nowhere/libfrit-slow.so", "compile", BREADCRUMB_WATCHED);
    assert_true(rig_wait_logged(text, 20000));
    breadcrumb_leave(place);
    breadcrumb_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(after_two_deaths_it_is_not_loaded, begin, end),
        cmocka_unit_test_setup_teardown(a_call_that_returns_clears_it, begin, end),
        cmocka_unit_test_setup_teardown(after_one_death_it_is_probed, begin, end),
        cmocka_unit_test_setup_teardown(whoever_ends_a_long_launch_is_not_the_plugin, begin, end),
        cmocka_unit_test_setup_teardown(an_orderly_end_blames_whoever_calls_it, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_note_is_ignored, begin, end),
        cmocka_unit_test_setup_teardown(a_slow_call_is_named, begin, end),
    };

    return cmocka_run_group_tests(tests, set_up, rig_teardown);
}
