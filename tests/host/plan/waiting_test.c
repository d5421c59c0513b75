/* SPDX-License-Identifier: Apache-2.0 */
/* A file that another process has locked, that is slow, full or not ours: nothing fails, nobody
 * waits for it longer than he must, and one warning says what to do. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/log.h"
#include "host/plan/store_rig.h"

enum { SEQUENCES = 4, LIMIT_MS = 100, TRIES = 25 };

static uint32_t n_warnings;

static void count_warning(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    (void)topic;
    if (level == FRIT_LOG_WARN) {
        assert_non_null(strstr(text, "[fusion] store"));
        n_warnings++;
    }
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- another process ---- */

struct holder {
    pid_t pid;
    int to_end;
};

/* A process that has the file locked until the pipe is closed. */
static struct holder hold(const char *path)
{
    struct holder holder;
    int ready[2], end[2];
    char byte;

    assert_int_equal(pipe(ready) | pipe(end), 0);
    holder.pid = fork();
    assert_true(holder.pid >= 0);
    if (holder.pid == 0) {
        sqlite3 *db;

        close(end[1]);
        if (sqlite3_open(path, &db) || sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL))
            _exit(1);
        if (write(ready[1], "x", 1) == 1)
            (void)!read(end[0], &byte, 1);
        _exit(0); /* as a crash would leave it */
    }
    close(end[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    holder.to_end = end[1];
    return holder;
}

static void release(struct holder *holder)
{
    int end;

    close(holder->to_end);
    assert_int_equal(waitpid(holder->pid, &end, 0), holder->pid);
    assert_int_equal(end, 0);
}

/* ---- what a program does ---- */

/* A load, a save in the background while the program ends, and the last save: their time. */
static double run_ms(struct store_context *context, uint32_t *n_loaded)
{
    struct automaton *automaton = store_rig_automaton();
    const uint32_t wait_ms = context->wait_ms;
    atomic_bool ending = true;
    double begun = now_ms(), spent;

    context->wait_ms = LIMIT_MS; /* as in programs */
    *n_loaded = store_rig_load(context, automaton);
    spent = now_ms() - begun;
    store_rig_learn(automaton, 100, SEQUENCES);
    begun = now_ms();
    context->ending = &ending;
    store_rig_save(context, automaton);
    context->ending = NULL;
    store_rig_save(context, automaton);
    spent += now_ms() - begun;
    context->wait_ms = wait_ms;
    automaton_destroy(automaton);
    return spent;
}

/* Of several tries, since the machine may be busy. */
static void test_locked(void **state)
{
    double least = 1e9;

    (void)state;
    log_set_sink(count_warning, NULL);
    for (int i = 0; i < TRIES && least >= LIMIT_MS; i++) {
        struct store_rig rig = store_rig_open();
        struct store_context *context = store_rig_context(&rig);
        struct holder holder;
        uint32_t n_loaded;
        double ms;

        store_rig_save_anew(context, SEQUENCES);
        holder = hold(rig.path);
        n_warnings = 0;
        ms = run_ms(context, &n_loaded);
        assert_int_equal(n_loaded, 0);
        assert_int_equal(n_warnings, 1);
        release(&holder);
        assert_int_equal(store_rig_count(context), 0); /* given up, although it is free now */
        assert_int_equal(n_warnings, 1);
        least = ms < least ? ms : least;
        store_rig_close(&rig);
    }
    log_set_sink(NULL, NULL);
    if (least >= LIMIT_MS)
        fail_msg("a run was delayed by %.0f ms", least);
}

struct background {
    struct store_context context;
    struct automaton *automaton;
    struct store_saved saved;
};

static void *save_in_background(void *ctx)
{
    struct background *background = ctx;

    background->saved = store_rig_save(&background->context, background->automaton);
    return NULL;
}

/* In the background a save may wait, until the program ends. */
static void test_in_the_background(void **state)
{
    static const struct timespec some = {0, 60000000};

    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct store_rig rig = store_rig_open();
        struct background background = {.context = *store_rig_context(&rig),
                                        .automaton = store_rig_automaton()};
        atomic_bool ending = false;
        struct holder holder;
        pthread_t thread;

        store_rig_save_anew(&background.context, SEQUENCES);
        store_rig_learn(background.automaton, 100, SEQUENCES);
        background.context.wait_ms = LIMIT_MS;
        background.context.ending = &ending;
        holder = hold(rig.path);
        assert_int_equal(pthread_create(&thread, NULL, save_in_background, &background), 0);
        nanosleep(&some, NULL);
        if (ends)
            atomic_store(&ending, true); /* or it would be waited for */
        else
            release(&holder);
        pthread_join(thread, NULL);
        if (ends)
            release(&holder);
        assert_int_equal(background.saved.n_nodes > 0, !ends);
        background.context.wait_ms = rig.context.wait_ms;
        assert_int_equal(store_rig_count(&background.context), SEQUENCES * (ends ? 2 : 4));
        automaton_destroy(background.automaton);
        store_rig_close(&rig);
    }
}

/* ---- a slow disk ---- */

static sqlite3_vfs slow;
static sqlite3_io_methods slow_methods;
static const sqlite3_io_methods *disk_methods;
static bool is_slow;

static int slow_read(sqlite3_file *file, void *bytes, int n, sqlite3_int64 offset)
{
    const struct timespec pause = {0, 4000000};

    if (is_slow)
        nanosleep(&pause, NULL);
    return disk_methods->xRead(file, bytes, n, offset);
}

static int slow_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    sqlite3_vfs *disk = vfs->pAppData;
    int rc = disk->xOpen(disk, name, file, flags, out);

    if (rc == SQLITE_OK && flags & SQLITE_OPEN_MAIN_DB) {
        disk_methods = file->pMethods;
        slow_methods = *disk_methods;
        slow_methods.iVersion = 1; /* no memory map */
        slow_methods.xRead = slow_read;
        file->pMethods = &slow_methods;
    }
    return rc;
}

static void test_slow(void **state)
{
    sqlite3_vfs *disk = sqlite3_vfs_find(NULL);
    double least = 1e9;

    (void)state;
    slow = *disk;
    slow.zName = "slow";
    slow.pAppData = disk;
    slow.xOpen = slow_open;
    assert_int_equal(sqlite3_vfs_register(&slow, 1), SQLITE_OK);
    log_set_sink(count_warning, NULL);
    for (int i = 0; i < TRIES && least >= LIMIT_MS; i++) {
        struct store_rig rig = store_rig_open();
        struct store_context *context = store_rig_context(&rig);
        uint32_t n_loaded;
        double ms;

        store_rig_save_anew(context, 100); /* more than 100 pages */
        is_slow = true;
        n_warnings = 0;
        ms = run_ms(context, &n_loaded);
        is_slow = false;
        assert_true(n_loaded < 200);
        assert_int_equal(n_warnings, 1);
        least = ms < least ? ms : least;
        store_rig_close(&rig);
    }
    log_set_sink(NULL, NULL);
    sqlite3_vfs_unregister(&slow);
    if (least >= LIMIT_MS)
        fail_msg("a run was delayed by %.0f ms", least);
}

/* ---- not ours ---- */

static const char *beside(const struct store_rig *rig, const char *suffix)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s%s", rig->path, suffix);
    return path;
}

static void expect_unused(const struct store_context *context, struct automaton *automaton)
{
    struct stat before, after;

    assert_int_equal(lstat(context->path, &before), 0);
    assert_int_equal(store_rig_count(context), 0);
    store_rig_save(context, automaton);
    assert_int_equal(lstat(context->path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

/* A file that others could have written, and what only stands in its place, is as if it were not
 * there. */
static void test_not_ours(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_learn(automaton, 1, SEQUENCES);
    char moved[256], inner[128];
    struct stat info;

    (void)state;
    snprintf(inner, sizeof(inner), "%s/a/b", rig.folder);
    snprintf(moved, sizeof(moved), "%s/moved", rig.folder);
    store_rig_save(context, automaton);
    assert_int_equal(stat(inner, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(stat(rig.path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(store_rig_count(context), n_plans);

    assert_int_equal(chmod(rig.path, 0666), 0);
    expect_unused(context, automaton);
    assert_int_equal(chmod(rig.path, 0644), 0); /* as older versions wrote it */
    assert_int_equal(store_rig_count(context), n_plans);
    assert_int_equal(chmod(inner, 0775), 0);
    expect_unused(context, automaton);
    assert_int_equal(chmod(inner, 0700), 0);
    assert_int_equal(store_rig_count(context), n_plans);
    assert_int_equal(mkfifo(beside(&rig, "-journal"), 0600), 0);
    expect_unused(context, automaton);
    unlink(beside(&rig, "-journal"));
    assert_int_equal(symlink(rig.path, beside(&rig, "-wal")), 0);
    expect_unused(context, automaton);
    unlink(beside(&rig, "-wal"));
    assert_int_equal(rename(rig.path, moved), 0);
    assert_int_equal(symlink(moved, rig.path), 0);
    expect_unused(context, automaton);
    unlink(rig.path);
    assert_int_equal(mkfifo(rig.path, 0600), 0);
    expect_unused(context, automaton);
    unlink(rig.path);
    assert_int_equal(rename(moved, rig.path), 0);
    assert_int_equal(store_rig_count(context), n_plans);
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

/* ---- no room ---- */

static volatile sig_atomic_t n_signals;

static void on_signal(int number)
{
    (void)number;
    n_signals++;
}

/* The process that may not write more gets no signal, and what was there stays. */
static void test_limit_of_sizes(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    uint32_t n_plans;
    pid_t child;
    int end;

    (void)state;
    store_rig_save_anew(context, SEQUENCES);
    n_plans = store_rig_count(context);
    child = fork();
    if (!child) {
        const struct rlimit few = {30000, 30000};
        struct automaton *automaton = store_rig_automaton();

        store_rig_learn(automaton, 1, 100);
        signal(SIGXFSZ, on_signal);
        setrlimit(RLIMIT_FSIZE, &few);
        store_rig_save(context, automaton);
        _exit(n_signals ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
    assert_int_equal(store_rig_count(context), n_plans);
    store_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locked),         cmocka_unit_test(test_in_the_background),
        cmocka_unit_test(test_slow),           cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_limit_of_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
