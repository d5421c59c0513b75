/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes with one file, processes that are killed, and files that cannot be used. */
#include "unit.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/log.h"
#include "host/tune/store_rig.h"

extern char **environ;

enum { LIMIT_MS = 100, TRIES = 25, NOBODY = 65534 };

static void pause_us(long us)
{
    const struct timespec pause = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&pause, NULL);
}

/* Another process of this program: main passes the words to run_child. */
static pid_t start(const char *what, const char *path, int out, const char *number)
{
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, (char *)what, (char *)path, (char *)number, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    assert_int_equal(posix_spawn(&child, self, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static void expect_success(pid_t child)
{
    int status = -1;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- a key is tuned once ---- */

enum { PROCESSES = 4, KEYS = 24 };

static int report(uint64_t key)
{
    char byte = (char)key;

    return write(STDOUT_FILENO, &byte, 1) == 1 ? 0 : 1;
}

/* Tunes what nobody has tuned, from key `first` on, until everything is known. */
static int tune_all(const char *path, uint64_t first)
{
    struct tune_store *store = tune_rig_open(path);
    uint32_t n_known = 0;
    int failed = 0;

    for (uint64_t i = 0; n_known < KEYS; i++) {
        const uint64_t key = (first + i) % KEYS;

        n_known = tune_rig_find(store, key) ? n_known + 1 : 0;
        if (n_known)
            continue;
        if (!tune_rig_claim(store, key)) {
            pause_us(1000);
            continue;
        }
        pause_us(500); /* the tuning */
        failed |= report(key);
        tune_rig_add(store, key, 1 + key);
    }
    tune_store_close(store);
    return failed;
}

static void test_processes_at_once(void **state)
{
    struct tune_rig rig = tune_rig_make();
    uint32_t n_tuned[KEYS] = {0};
    pid_t children[PROCESSES];
    unsigned char key;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int i = 0; i < PROCESSES; i++) {
        char first[8];

        snprintf(first, sizeof(first), "%d", 3 * i);
        children[i] = start("tune", rig.path, ends[1], first);
    }
    close(ends[1]);
    while (read(ends[0], &key, 1) == 1)
        n_tuned[key]++;
    close(ends[0]);
    for (int i = 0; i < PROCESSES; i++)
        expect_success(children[i]);
    for (uint64_t k = 0; k < KEYS; k++) {
        assert_int_equal(n_tuned[k], 1);
        assert_int_equal(tune_rig_read(rig.path, k), 1 + k);
    }
    tune_rig_remove(&rig);
}

/* ---- kill -9 ---- */

enum { KILLS = 12, BATCH = 200 };

/* Tunes keys from `first` on and reports each that was added. */
static int add_forever(const char *path, uint64_t first)
{
    struct tune_store *store = tune_rig_open(path);

    for (uint64_t i = 0; i < BATCH; i++) {
        if (!tune_rig_claim(store, first + i))
            return 1;
        tune_rig_add(store, first + i, 1 + i);
        if (report(i))
            return 1;
    }
    return 0;
}

/* Whatever a process was doing when it was killed: what it had added is there, and what it had
 * claimed is free. */
static void test_killed(void **state)
{
    struct tune_rig rig = tune_rig_make();

    (void)state;
    srand(1);
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        const uint64_t first = (uint64_t)kill_number * BATCH;
        const int n_read = rand() % 8;
        struct tune_store *store;
        uint64_t n_added = 0;
        char text[16], byte;
        siginfo_t info;
        int ends[2];
        pid_t child;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        snprintf(text, sizeof(text), "%d", (int)first);
        child = start("add", rig.path, ends[1], text);
        close(ends[1]);
        while ((int)n_added < n_read && read(ends[0], &byte, 1) == 1)
            n_added++;
        pause_us(rand() % 1500);
        assert_int_equal(kill(child, SIGKILL), 0);
        while (read(ends[0], &byte, 1) == 1)
            n_added++;
        close(ends[0]);
        assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
        store = tune_rig_open(rig.path);
        for (uint64_t i = 0; i < n_added; i++)
            assert_int_equal(tune_rig_find(store, first + i), 1 + i);
        assert_int_equal(tune_rig_find(store, first + n_added + 1), 0); /* one is under way */
        if (!tune_rig_find(store, first + n_added))
            assert_true(tune_rig_claim(store, first + n_added)); /* although it is a zombie */
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_true(tune_rig_claim(store, first + n_added + 1));
        tune_store_close(store);
    }
    assert_false(tune_rig_has(&rig, ".damaged"));
    tune_rig_remove(&rig);
}

/* ---- files that cannot be used ---- */

static uint32_t n_warnings;

static void count_warning(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    (void)topic;
    if (level == FRIT_LOG_WARN) {
        assert_non_null(strstr(text, "[tune] store"));
        n_warnings++;
    }
}

/* All that is needed without a file. */
static void expect_memory_only(const char *path, uint32_t wait_ms, uint32_t n_expected)
{
    const struct tune_store_params params = {
        .path = path, .space = "s", .wait_ms = wait_ms, .named = true};
    struct tune_store *store;

    n_warnings = 0;
    log_set_sink(count_warning, NULL);
    assert_int_equal(tune_store_open(&params, &store, NULL), FRIT_OK);
    for (uint64_t key = 100; key < 103; key++) {
        assert_int_equal(tune_rig_find(store, key), 0);
        assert_true(tune_rig_claim(store, key));
        assert_false(tune_rig_claim(store, key));
        tune_rig_add(store, key, 5 * key);
        assert_int_equal(tune_rig_find(store, key), 5 * key);
    }
    assert_false(tune_store_forget(store, NULL, 0));
    tune_store_close(store);
    log_set_sink(NULL, NULL);
    assert_int_equal(n_warnings, n_expected);
}

static void write_garbage(const char *path, long offset)
{
    char garbage[3000];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    memset(garbage, 'x', sizeof(garbage));
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, garbage, sizeof(garbage), offset), sizeof(garbage));
    close(fd);
}

/* A damaged file is renamed and a new one begun. */
static void test_damaged(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tune_rig rig = tune_rig_make();
        struct tune_store *store = tune_rig_open(rig.path);

        for (uint64_t key = 0; key < 20; key++)
            tune_rig_add(store, key, 10);
        for (long page = i; page < (i ? 3 : 1); page++)
            write_garbage(rig.path, page * 4096);
        tune_rig_add(store, 1, 20);
        tune_store_close(store);
        assert_true(tune_rig_has(&rig, ".damaged"));
        assert_int_equal(tune_rig_read(rig.path, 1), 20);
        write_garbage(rig.path, 0);
        assert_int_equal(tune_rig_read(rig.path, 1), 0);
        assert_false(tune_rig_has(&rig, ""));
        tune_rig_remove(&rig);
    }
}

static void execute(const char *path, const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A file of another program, of saved plans, or of a newer version stays as it is. */
static void test_foreign(void **state)
{
    static const char *const changes[] = {"PRAGMA application_id = 7",
                                          "PRAGMA application_id = 0x46524954",
                                          "PRAGMA user_version = 1000"};

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct tune_rig rig = tune_rig_make();
        struct tune_store *store = tune_rig_open(rig.path);
        struct stat before, after;

        tune_rig_add(store, 1, 10);
        tune_store_close(store);
        execute(rig.path, changes[i]);
        assert_int_equal(stat(rig.path, &before), 0);
        assert_int_equal(tune_rig_read(rig.path, 1), 0);
        expect_memory_only(rig.path, TUNE_RIG_PATIENCE_MS, 1);
        assert_int_equal(stat(rig.path, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
        tune_rig_remove(&rig);
    }
}

static void test_no_place(void **state)
{
    (void)state;
    expect_memory_only("/proc/no/such/place", TUNE_RIG_PATIENCE_MS, 1);
    expect_memory_only("/tmp", TUNE_RIG_PATIENCE_MS, 1); /* a folder is not a file */
}

/* Who may write everything becomes somebody who may not. */
static int read_only(void)
{
    struct tune_rig rig;
    struct tune_store *store;
    char folder[sizeof(rig.path)];

    if (geteuid() == 0 && (setgroups(0, NULL) || setegid(NOBODY) || seteuid(NOBODY)))
        return 1;
    rig = tune_rig_make();
    snprintf(folder, sizeof(folder), "%s/a", rig.folder);
    store = tune_rig_open(rig.path);
    tune_rig_add(store, 1, 10);
    tune_store_close(store);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(i ? chmod(folder, 0500) : chmod(rig.path, 0400), 0);
        expect_memory_only(rig.path, TUNE_RIG_PATIENCE_MS, 1);
        assert_int_equal(tune_rig_read(rig.path, 1), 10);
        assert_int_equal(tune_rig_read(rig.path, 100), 0);
        assert_int_equal(i ? chmod(folder, 0700) : chmod(rig.path, 0600), 0);
    }
    tune_rig_remove(&rig);
    return 0;
}

static void test_read_only(void **state)
{
    pid_t child;

    (void)state;
    fflush(NULL);
    child = fork();
    if (!child)
        _exit(read_only());
    expect_success(child);
}

/* ---- locked ---- */

/* Keeps the file locked until it is killed. */
static int hold(const char *path)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) || sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) ||
        report('x'))
        return 1;
    alarm(60); /* it does not outlive a test that failed by much */
    pause();
    return 1;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double memory_only_ms(const struct tune_rig *rig)
{
    double begun = now_ms();

    expect_memory_only(rig->path, LIMIT_MS - 20, 1);
    return now_ms() - begun;
}

/* Of several tries, since the machine may be busy. */
static void test_locked(void **state)
{
    double least = 1e9;

    (void)state;
    for (int i = 0; i < TRIES && least >= LIMIT_MS; i++) {
        struct tune_rig rig = tune_rig_make();
        struct tune_store *store = tune_rig_open(rig.path);
        int ends[2];
        char byte;
        pid_t child;
        double ms;

        tune_rig_add(store, 1, 10);
        tune_store_close(store);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        child = start("hold", rig.path, ends[1], "");
        assert_int_equal(read(ends[0], &byte, 1), 1);
        ms = memory_only_ms(&rig);
        least = ms < least ? ms : least;
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        close(ends[0]);
        close(ends[1]);
        assert_int_equal(tune_rig_read(rig.path, 1), 0); /* given up, although it is free now */
        tune_rig_remove(&rig);
    }
    if (least >= LIMIT_MS)
        fail_msg("a process was delayed by %.0f ms", least);
}

static int run_child(char **arguments)
{
    const uint64_t number = strtoull(arguments[3], NULL, 10);

    if (strcmp(arguments[1], "tune") == 0)
        return tune_all(arguments[2], number);
    if (strcmp(arguments[1], "add") == 0)
        return add_forever(arguments[2], number);
    return hold(arguments[2]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_at_once),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_locked),
    };

    if (argc == 4)
        return run_child(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
