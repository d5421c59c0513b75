/* SPDX-License-Identifier: Apache-2.0 */
/* [fusion] store: a second start searches nothing, and groups as the first did.  Run with the name
 * of a file it is one of two processes that use that file at once. */
#include "api/plugin_rig.h"

#include <fcntl.h>
#include <frit/host.h>
#include <frit/inspect.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/digits.h"

enum { IMAGES = 3, PATIENCE_MS = 20000 };

extern char **environ;

static char folder[64];
static char store[128];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/frit-store-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(store, sizeof(store), "%s/cache/plans.db", folder);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* Reference with the fusers of another plugin, which take core rows. */
static void open_with(struct plugin_rig *rig, const char *path)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_set(rig, "fusion", "store", path);
    rig_set(rig, "frit", "decompose", "yes");
}

static void run_model(struct plugin_rig *rig, const char *name, int best)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct digits digits;
    int right;

    assert_int_equal(digits_open(name, rig->dev, IMAGES, &digits, &err), FRIT_OK);
    if (digits_run(&digits, rig->dev, IMAGES, &right, &err))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(right, best);
    digits_close(&digits);
}

static void run_models(struct plugin_rig *rig)
{
    run_model(rig, "digits-mlp", IMAGES);
    run_model(rig, "digits-cnn", IMAGES);
}

/* Both models with what ran, malloc'd. */
static char *seen_models(struct plugin_rig *rig)
{
    frit_inspection *inspection;
    char *text;

    assert_int_equal(frit_inspect_start(rig->dev, NULL), FRIT_OK);
    run_models(rig);
    assert_int_equal(frit_inspect_stop(rig->dev, &inspection, NULL), FRIT_OK);
    text = frit_inspection_text(inspection);
    assert_non_null(text);
    frit_inspection_free(inspection);
    return text;
}

static void save_plans(const char *path)
{
    struct plugin_rig rig;

    open_with(&rig, path);
    rig_open(&rig, "reference:0");
    run_models(&rig);
    assert_true(rig_stats(&rig).explorations > 0);
    rig_close(&rig);
}

static off_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? -1 : st.st_size;
}

/* The models run right; whether plans came, and whether there was something to search. */
static void expect(struct plugin_rig *rig, bool loaded)
{
    frit_stats stats;

    rig_open(rig, "reference:0");
    assert_int_equal(rig_stats(rig).store_loaded > 0, loaded);
    run_models(rig);
    stats = rig_stats(rig);
    assert_int_equal(stats.explorations == 0, loaded);
    rig_close(rig);
}

/* ---- kept ---- */

static void a_second_start_searches_nothing(void **state)
{
    struct plugin_rig rig;
    char *first, *second;
    frit_stats stats;
    struct stat before, after;

    (void)state;
    open_with(&rig, store);
    rig_open(&rig, "reference:0");
    first = seen_models(&rig);
    stats = rig_stats(&rig);
    assert_int_equal(stats.store_loaded, 0);
    assert_true(stats.explorations > 0);
    assert_true(stats.fused > 0);
    rig_close(&rig);
    assert_int_equal(stat(store, &before), 0);

    open_with(&rig, store);
    rig_open(&rig, "reference:0");
    second = seen_models(&rig);
    stats = rig_stats(&rig);
    assert_true(stats.store_loaded > 0);
    assert_int_equal(stats.explorations, 0);
    assert_int_equal(stats.plan_misses, 0);
    assert_string_equal(first, second);
    rig_close(&rig);
    free(first);
    free(second);
    assert_int_equal(stat(store, &after), 0); /* nothing is written where nothing is new */
    assert_int_equal(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

/* Without an end of the device: after a moment without new plans. */
static void it_is_saved_when_it_is_calm(void **state)
{
    static const struct timespec ms = {0, 1000000};
    struct plugin_rig rig, second;
    uint64_t loaded = 0;

    (void)state;
    open_with(&rig, store);
    rig_open(&rig, "reference:0");
    run_models(&rig);
    for (int i = 0; i < PATIENCE_MS && !loaded; i += 50) {
        for (int k = 0; k < 50; k++)
            nanosleep(&ms, NULL);
        if (size_of(store) < 0)
            continue;
        open_with(&second, store);
        rig_open(&second, "reference:0");
        loaded = rig_stats(&second).store_loaded;
        rig_close(&second);
    }
    assert_true(loaded > 0);
    rig_close(&rig);
}

static void none_keeps_nothing(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_with(&rig, "none");
    expect(&rig, false);
    open_with(&rig, "none");
    expect(&rig, false);
}

/* ---- not for this one ---- */

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(out, bytes, (size_t)n), n);
    close(in);
    close(out);
}

static void another_build_is_ignored(void **state)
{
    struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    char library[128];
    struct plugin_rig rig;

    (void)state;
    open_with(&rig, store);
    snprintf(library, sizeof(library), "%s/libfrit-blocks.so", folder);
    copy_file(rig.paths[0], library);
    strcpy(rig.paths[0], library);
    expect(&rig, false);
    open_with(&rig, store);
    strcpy(rig.paths[0], library);
    expect(&rig, true);
    assert_int_equal(utimensat(AT_FDCWD, library, times, 0), 0);
    open_with(&rig, store);
    strcpy(rig.paths[0], library);
    expect(&rig, false);
}

static void another_device_is_ignored(void **state)
{
    struct plugin_rig rig;

    (void)state;
    save_plans(store);
    open_with(&rig, store);
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", "option.max_fused_ops", "0");
    rig_open(&rig, "null:0");
    assert_int_equal(rig_stats(&rig).store_loaded, 0);
    rig_close(&rig);
}

/* Options of the search, of a plugin, and which fusers there are. */
static void other_options_are_others_plans(void **state)
{
    static const char *const set[][3] = {{"fusion", "max_blocks", "4"},
                                         {"fusion", "enabled", "no"},
                                         {"plugin.org.frit.blocks", "enabled", "no"}};
    struct plugin_rig rig;

    (void)state;
    save_plans(store);
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        open_with(&rig, store);
        rig_set(&rig, set[i][0], set[i][1], set[i][2]);
        expect(&rig, false);
    }
    open_with(&rig, store);
    expect(&rig, true);
}

/* Of the driver. */
static void other_options_of_plugins_too(void **state)
{
    static const char *const values[] = {"-1", "0", "-1"};
    const float one = 1;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct plugin_rig rig = {0};

        rig_plugin(&rig, "plugin.null", RIG_NULL);
        rig_set(&rig, "plugin.null", "option.compile_ms", values[i]);
        rig_set(&rig, "fusion", "store", store);
        rig_open(&rig, "null:0");
        assert_int_equal(rig_stats(&rig).store_loaded > 0, i == 2);
        frit_release(frit_neg(
            frit_take(frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(1), &one, sizeof(one)))));
        rig_close(&rig);
    }
}

/* ---- not fit to be read or written ---- */

static void damaged_files_are_ignored(void **state)
{
    char bytes[4096], aside[160];
    struct plugin_rig rig;
    off_t size;
    int file;

    (void)state;
    memset(bytes, 0x5a, sizeof(bytes));
    save_plans(store);
    size = size_of(store);
    file = open(store, O_WRONLY | O_CLOEXEC);
    for (off_t at = 4096; at < size; at += 4096)
        assert_int_equal(pwrite(file, bytes, sizeof(bytes), at), sizeof(bytes));
    close(file);
    open_with(&rig, store);
    expect(&rig, false);
    snprintf(aside, sizeof(aside), "%s.damaged", store);
    assert_true(size_of(aside) > 0);
    open_with(&rig, store);
    expect(&rig, true);
}

static void cut_files_are_ignored(void **state)
{
    struct plugin_rig rig;

    (void)state;
    for (off_t part = 2; part < 20; part *= 3) {
        save_plans(store);
        assert_int_equal(truncate(store, size_of(store) / part + 7), 0);
        open_with(&rig, store);
        expect(&rig, false);
        assert_int_equal(unlink(store), 0);
    }
}

static void count_lost(void *ctx, uint32_t level, const char *topic, const char *text)
{
    *(int *)ctx += level == FRIT_LOG_WARN && strcmp(topic, "plan") == 0 &&
                   strstr(text, "plans are not kept") != NULL;
}

static void no_place_to_write_is_no_failure(void **state)
{
    const char *const places[] = {"/proc/self/nothing/plans.db", folder};
    struct plugin_rig rig;
    static int lost; /* the sink stays when the host is closed */

    (void)state;
    lost = 0;
    for (int i = 0; i < 2; i++) {
        open_with(&rig, places[i]);
        rig.log = count_lost;
        rig.log_ctx = &lost;
        expect(&rig, false);
        assert_int_equal(lost, i + 1); /* logged, as the file was named */
    }
    if (geteuid() == 0)
        return; /* may write everything */
    save_plans(store);
    assert_int_equal(chmod(store, 0444), 0);
    open_with(&rig, store);
    expect(&rig, true);
    open_with(&rig, store);
    rig_set(&rig, "fusion", "max_blocks", "3");
    expect(&rig, false);
}

/* ---- two at once ---- */

static int other_process(const char *path)
{
    for (int i = 0; i < 3; i++) {
        struct plugin_rig rig;

        open_with(&rig, path);
        rig_open(&rig, "reference:0");
        run_models(&rig);
        rig_close(&rig);
    }
    return 0;
}

static void two_processes_at_once(void **state)
{
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, store, NULL};
    struct plugin_rig rig;
    pid_t child[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(posix_spawn(&child[i], self, NULL, NULL, arguments, environ), 0);
    for (int i = 0; i < 2; i++) {
        int status = -1;

        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    open_with(&rig, store);
    expect(&rig, true);
}

/* -x or exp(x), twice. */
static void run_twice(struct plugin_rig *rig, bool neg)
{
    static const float four[4] = {1, 2, 3, 4};
    frit_tensor *x = frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(4), four, sizeof(four));

    for (int i = 0; i < 2; i++)
        x = neg ? frit_neg(frit_take(x)) : frit_exp(frit_take(x));
    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
    frit_release(x);
}

/* What a fuser that failed did not find is found by the next process. */
static void what_a_failure_made_is_not_kept(void **state)
{
    (void)state;
    for (int process = 0; process < 2; process++) {
        struct plugin_rig rig = {0};

        rig_plugin(&rig, "plugin.null", RIG_NULL);
        rig_set(&rig, "plugin.null", "option.fail_call", "finish:2:io");
        rig_set(&rig, "fusion", "store", store);
        rig_open(&rig, "null:0");
        if (process == 0)
            run_twice(&rig, true);
        run_twice(&rig, false);
        assert_int_equal(rig_stats(&rig).fused, 1);
        assert_int_equal(rig_stats(&rig).explorations, process == 0 ? 2 : 1);
        rig_close(&rig);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_second_start_searches_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_saved_when_it_is_calm, setup, teardown),
        cmocka_unit_test_setup_teardown(none_keeps_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(another_build_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(another_device_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(other_options_are_others_plans, setup, teardown),
        cmocka_unit_test_setup_teardown(other_options_of_plugins_too, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_files_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_files_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(no_place_to_write_is_no_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(two_processes_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_failure_made_is_not_kept, setup, teardown),
    };

    if (argc > 1)
        return other_process(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
