/* SPDX-License-Identifier: Apache-2.0 */
/* The whole tuner where several want it at once: processes with one store, devices, threads. */
#include "unit.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <frit/frit.h>
#include <frit/inspect.h>
#include <frit/tune.h>

#include "base/clock.h"
#include "plugin_rig.h"

#define RIG_CANDIDATES "fake/candidates/libfrit-fake-candidates.so"
#define PLUGIN         "plugin.fake-candidates"

enum { MOST = 4096, NS_PER_MS = 1000000 };

static int at_length(int usual, int when_long)
{
    return getenv("FRIT_TEST_LONG") ? when_long : usual;
}

static void begin_rig(struct plugin_rig *rig, const char *candidates)
{
    memset(rig, 0, sizeof(*rig));
    rig_plugin(rig, PLUGIN, RIG_CANDIDATES);
    rig_set(rig, PLUGIN, "option.candidates", candidates);
    rig_set(rig, "fusion", "store", "none");
    rig_set(rig, "fusion", "store_wait", "600000");
    rig_set(rig, "tune", "when", "any");
    rig_set(rig, "frit", "log", "off");
}

/* Sums n elements of 1 .. n; whether the result is right. */
static bool add_once(frit_device *device, int64_t n)
{
    float data[MOST] = {0}, result[MOST] = {0};
    bool right;
    frit_tensor *a, *sum;

    for (int64_t i = 0; i < n; i++)
        data[i] = (float)i;
    a = frit_from_host(device, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * sizeof(*data));
    sum = frit_add(a, a);
    right = frit_read(sum, result, (uint64_t)n * sizeof(*result), NULL) == FRIT_OK;
    for (int64_t i = 0; i < n; i++)
        right &= result[i] == 2 * (float)i;
    frit_release(sum);
    frit_release(a);
    return right;
}

static uint64_t tuned(frit_device *device)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(device, &stats);
    return stats.tuned;
}

/* ---- processes ---- */

enum { PROCESSES = 2, KEYS = 12 };

/* Sizes of different keys: powers of two, and one less. */
static int64_t size_of_key(int key)
{
    return (INT64_C(1) << (6 + key / 2)) - key % 2;
}

/* In a child: all keys, from number `first` on; reports how many it has tuned. */
static int run_process(char *store, const char *first)
{
    struct plugin_rig rig;
    uint64_t n;
    bool right = true;

    begin_rig(&rig, "slow,fast");
    rig_set(&rig, PLUGIN, "option.clock", "none");
    rig_set(&rig, PLUGIN, "option.cost_ns", "20000");
    rig_set(&rig, "tune", "budget", "5000");
    rig_set(&rig, "tune", "store", store);
    rig_open(&rig, "candidates");
    for (int i = 0; i < KEYS; i++)
        right &= add_once(rig.dev, size_of_key((atoi(first) + i) % KEYS));
    n = tuned(rig.dev);
    rig_close(&rig);
    return right && write(STDOUT_FILENO, &n, sizeof(n)) == sizeof(n) ? 0 : 1;
}

static pid_t start(char *store, char *first, int out)
{
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, store, first, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    assert_int_equal(posix_spawn(&child, self, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

/* Both begin with the same key, or with different ones. */
static void processes_tune_each_key_once(void **state)
{
    (void)state;
    for (int round = 0; round < at_length(2, 40); round++) {
        char folder[] = "/tmp/frit-tune-XXXXXX", store[64];
        char firsts[PROCESSES][16];
        pid_t children[PROCESSES];
        uint64_t n, sum = 0;
        int ends[2];

        assert_non_null(mkdtemp(folder));
        snprintf(store, sizeof(store), "%s/tune.db", folder);
        assert_int_equal(pipe(ends), 0);
        for (int i = 0; i < PROCESSES; i++) {
            snprintf(firsts[i], sizeof(firsts[i]), "%d", round % 2 ? i * KEYS / PROCESSES : 0);
            children[i] = start(store, firsts[i], ends[1]);
        }
        for (int i = 0; i < PROCESSES; i++) {
            int status = -1;

            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
            assert_int_equal(read(ends[0], &n, sizeof(n)), sizeof(n));
            sum += n;
        }
        assert_int_equal(sum, KEYS);
        close(ends[0]);
        close(ends[1]);
        unlink(store);
        rmdir(folder);
    }
}

/* ---- devices ---- */

enum { DEVICES = 2, SLEEP_MS = 100 };

static void open_devices(struct plugin_rig *rig, frit_device *out[DEVICES])
{
    frit_err err = {.struct_size = sizeof(err)};

    rig_set(rig, PLUGIN, "option.devices", "2");
    rig_open(rig, "candidates:0");
    out[0] = rig->dev;
    if (frit_device_open(rig->host, "candidates:1", &out[1], &err))
        fail_msg("%s", err.text);
}

static void close_devices(struct plugin_rig *rig, frit_device *const *devices)
{
    frit_device_close(devices[1]);
    rig_close(rig);
}

static void *tune_one(void *device)
{
    return add_once(device, 1000) ? device : NULL;
}

static uint64_t elapsed_of(frit_device *const *devices, int n)
{
    const uint64_t begun = clock_ns();
    pthread_t threads[DEVICES];

    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tune_one, devices[i]), 0);
    for (int i = 0; i < n; i++) {
        void *result = NULL;

        pthread_join(threads[i], &result);
        assert_ptr_equal(result, devices[i]);
        assert_int_equal(tuned(devices[i]), 1);
    }
    return clock_ns() - begun;
}

/* Two take as long as one. */
static void devices_tune_side_by_side(void **state)
{
    uint64_t ns[DEVICES];
    int tries = 0;

    (void)state;
    do {
        for (int n = 1; n <= DEVICES; n++) {
            frit_device *devices[DEVICES];
            struct plugin_rig rig;

            begin_rig(&rig, "sleeps");
            rig_set(&rig, PLUGIN, "option.sleep_ms", "100");
            rig_set(&rig, PLUGIN, "option.clock", "none");
            rig_set(&rig, "tune", "budget", "150");
            rig_set(&rig, "tune", "idle", "0");
            open_devices(&rig, devices);
            ns[n - 1] = elapsed_of(devices, n);
            close_devices(&rig, devices);
        }
        assert_true(ns[0] >= SLEEP_MS * NS_PER_MS);
    } while (ns[1] * 2 > ns[0] * 3 && ++tries < 20); /* a machine that does other things */
    assert_true(tries < 20);
}

/* ---- threads ---- */

enum { THREADS = 8, SIZES = 8, STEPS_PER_ROUND = 20, REST_MS = 25 };

struct stress {
    frit_device *devices[DEVICES];
    atomic_uint number;
    atomic_int wrong;
    pthread_barrier_t rest;
    int steps;
};

/* All threads rest, so that contests go on; the devices get work again in the midst of them. */
static void rest(struct stress *s)
{
    const struct timespec time = {.tv_nsec = REST_MS * NS_PER_MS};

    pthread_barrier_wait(&s->rest);
    nanosleep(&time, NULL);
}

static void *run_thread(void *ctx)
{
    struct stress *s = ctx;
    const uint32_t number = atomic_fetch_add(&s->number, 1);
    uint32_t random = number + 1;

    for (int i = 0; i < s->steps; i++) {
        random = random * 1664525u + 1013904223u;
        if (i % STEPS_PER_ROUND == STEPS_PER_ROUND - 1)
            rest(s);
        if (!add_once(s->devices[number % DEVICES], 60 + 101 * (random >> 8) % SIZES))
            atomic_fetch_add(&s->wrong, 1);
        if (random >> 24 == 0)
            (void)frit_decisions_forget(s->devices[number % DEVICES], NULL, NULL, NULL);
    }
    return NULL;
}

static void threads_share_tuned_devices(void **state)
{
    struct stress s = {.steps = at_length(80, 4000)};
    struct plugin_rig rig;
    pthread_t threads[THREADS];

    (void)state;
    begin_rig(&rig, "slow,silent,refuses,fast");
    rig_set(&rig, PLUGIN, "option.cost_ns", "10000");
    rig_set(&rig, "tune", "budget", "1");
    open_devices(&rig, s.devices);
    assert_int_equal(pthread_barrier_init(&s.rest, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &s), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&s.rest);
    assert_int_equal(s.wrong, 0);
    for (int i = 0; i < DEVICES; i++)
        assert_true(tuned(s.devices[i]) >= 1);
    close_devices(&rig, s.devices);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_tune_each_key_once),
        cmocka_unit_test(devices_tune_side_by_side),
        cmocka_unit_test(threads_share_tuned_devices),
    };

    if (argc == 3)
        return run_process(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
