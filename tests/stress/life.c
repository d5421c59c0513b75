/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frit/inspect.h>

#include "census.h"
#include "program.h"

enum { HOSTS = 2, THREADS = 4, SETTINGS = 32, MIB = 1 << 20 };

/* A driver, and what a host sets for it. */
struct driver {
    const char *device;
    const char *section, *key, *value; /* or NULL */
    bool computes, may_fail;
};

static const struct driver drivers[] = {
    {"reference:0", NULL, NULL, NULL, true, false},
    {"reference:0", "plugin.reference", "option.memory_bytes", "600000", true, true},
    {"cpu:0", "plugin.cpu", "option.tier", "0", true, false},
    {"cpu:0", "plugin.cpu", "option.memory_bytes", "900000", true, true},
    {"cpu:0", "plugin.cpu", "option.tier", "auto", true, false},
    {"cpu:0", "plugin.cpu", "option.tier", "1", true, false},
    {"null:0", "plugin.null", "option.inline", "yes", false, false},
    {"null:0", "plugin.null", "option.fail_call", "submit:", false, true},
    {"null:0", "plugin.null", "option.fail_call", "alloc:", false, true},
    {"null:0", "plugin.null", "option.fail_call", "wait:", false, true},
    {"null:0", "plugin.null", "option.fail_launch", "", false, true},
    {"null:0", "plugin.null", "option.heap", "700000", false, true},
};
enum { N_DRIVERS = sizeof(drivers) / sizeof(drivers[0]) };

/* One pass: hosts, devices, threads. */
struct round {
    const struct life *life;
    uint64_t random;
    frit_setting settings[SETTINGS];
    uint64_t n_settings;
    char texts[4][64];
    uint32_t n_texts;
    const struct driver *driver;
    frit_host *host[HOSTS];
    frit_device *device[HOSTS];
    uint32_t n_hosts;
    atomic_bool wrong;
};

static atomic_ulong n_checked, n_failed, n_rounds, n_forgiven;

static uint32_t pick(struct round *r, uint32_t n)
{
    return soak_pick(&r->random, n);
}

/* ---- settings ---- */

static void set(struct round *r, const char *section, const char *key, const char *value)
{
    if (r->n_settings < SETTINGS)
        r->settings[r->n_settings++] = (frit_setting){section, key, value};
}

static const char *text_of(struct round *r, const char *before, uint32_t number)
{
    char *text = r->texts[r->n_texts++];

    snprintf(text, sizeof(r->texts[0]), "%s%u", before, number);
    return text;
}

static void set_one_of(struct round *r, const char *section, const char *key,
                       const char *const *values, uint32_t n)
{
    uint32_t at = pick(r, n + 1); /* or as it is */

    if (at < n)
        set(r, section, key, values[at]);
}

static void choose_settings(struct round *r)
{
    static const char *const chunks[] = {"4096", "65536", "1048576"};
    static const char *const keeps[] = {"0", "100000"};
    static const char *const ops[] = {"1", "7", "64"};
    static const char *const yes[] = {"yes"}, *const no[] = {"no"}, *const wait[] = {"wait"};
    static const char *const few[] = {"65536", "200000", "2000000"};
    const struct driver *driver = r->driver;
    static const char *const when[] = {"ahead", "first"};
    static char store[300], decisions[300], artefacts[300], dirs[1200];
    const struct soak *soak = r->life->soak;

    snprintf(store, sizeof(store), "%s/plans.db", soak->folder);
    snprintf(decisions, sizeof(decisions), "%s/tune.db", soak->folder);
    snprintf(artefacts, sizeof(artefacts), "%s/artefacts", soak->folder);
    snprintf(dirs, sizeof(dirs), "%s/lib/frit/plugins:%s/tests/fake/null:%s/bad", soak->build,
             soak->build, soak->folder);
    set(r, "search", "dirs", dirs);
    set(r, "search", "probe", "auto");
    /* Each set of a plugin's options has a part of the store of its own: without `null`, whose
     * options are random, there are some tens, each with its limit. */
    set(r, "fusion", "store", driver->computes && pick(r, 4) ? store : "none");
    set(r, "frit", "artefacts", pick(r, 6) ? artefacts : "none");
    /* Vendors' runtimes are not ours, and leak. */
    set(r, "plugin.hip", "enabled", "no");
    set(r, "plugin.cuda", "enabled", "no");
    set(r, "plugin.vulkan", "enabled", "no");
    set(r, "plugin.null", "enabled", driver->computes ? "no" : "yes");
    set(r, "frit", "artefact_bytes", "1048576");
    set(r, "tune", "store", driver->computes && pick(r, 4) ? decisions : "none");
    set(r, "tune", "when", when[pick(r, 2)]);
    set(r, "fusion", "store_bytes", few[pick(r, 3)]);
    set_one_of(r, "memory", "chunk_bytes", chunks, 3);
    set_one_of(r, "memory", "keep_bytes", keeps, 2);
    set_one_of(r, "stream", "max_ops", ops, 3);
    set_one_of(r, "stream", "single", yes, 1);
    set_one_of(r, "stream", "queues", (const char *const[]){"1", "2", "3"}, 3);
    set_one_of(r, "fusion", "enabled", no, 1);
    set_one_of(r, "fusion", "compile", wait, 1);
    set_one_of(r, "frit", "threads", (const char *const[]){"1", "3"}, 2);
    set_one_of(r, "frit", "poison", yes, 1);
    if (!driver->key)
        return;
    if (driver->value[0] == '\0' || driver->value[strlen(driver->value) - 1] == ':')
        set(r, driver->section, driver->key, text_of(r, driver->value, pick(r, 40) + 1));
    else
        set(r, driver->section, driver->key, driver->value);
}

/* ---- hosts and devices ---- */

static void ignore_log(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx, (void)level, (void)topic, (void)text;
}

/* Processes that are killed in a plugin make the host suspect it. */
static bool forgive(const struct soak *soak, const char *text)
{
    char program[300], artefacts[320], plugins[640], config[] = "FRIT_CONFIG=/dev/null";
    char *const environment[] = {artefacts, plugins, config, NULL};
    const char *names[] = {"reference", "cpu", "null"};

    if (!strstr(text, "processes died in its"))
        return false;
    snprintf(program, sizeof(program), "%s/bin/frit", soak->build);
    snprintf(artefacts, sizeof(artefacts), "FRIT_ARTEFACTS=%s/artefacts", soak->folder);
    snprintf(plugins, sizeof(plugins), "FRIT_PLUGIN_PATH=%s/lib/frit/plugins:%s/tests/fake/null",
             soak->build, soak->build);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *const args[] = {program, "doctor", "forgive", (char *)(uintptr_t)names[i], NULL};
        posix_spawn_file_actions_t quiet;
        int status = -1;
        pid_t child;

        posix_spawn_file_actions_init(&quiet);
        posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 0, 0);
        posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", 0, 0);
        if (!posix_spawn(&child, program, &quiet, NULL, args, environment))
            (void)waitpid(child, &status, 0);
        posix_spawn_file_actions_destroy(&quiet);
    }
    atomic_fetch_add(&n_forgiven, 1);
    return true;
}

static bool may_fail(const struct round *r)
{
    return r->driver->may_fail || r->life->is_scarce;
}

static void open_one(struct round *r, uint32_t i)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = r->settings,
                                     .n_settings = r->n_settings,
                                     .log = ignore_log};
    frit_status status = frit_host_open(&params, &r->host[i], &err);

    if (!status)
        status = frit_device_open(r->host[i], r->driver->device, &r->device[i], &err);
    if (!status)
        return;
    if (!err.text[0]) {
        soak_complain("open: %s without a text", frit_status_name(status));
        atomic_store(&r->wrong, true);
    } else if (!may_fail(r) && !forgive(r->life->soak, err.text)) {
        soak_complain("open: %s: %s", r->driver->device, err.text);
        atomic_store(&r->wrong, true);
    }
    frit_host_close(r->host[i]);
    r->host[i] = NULL;
    r->device[i] = NULL;
}

struct opener {
    struct round *round;
    uint32_t index;
};

static void *open_in_thread(void *ctx)
{
    const struct opener *opener = ctx;

    open_one(opener->round, opener->index);
    return NULL;
}

static void open_all(struct round *r)
{
    struct opener opener = {r, 1};
    pthread_t thread;

    r->n_hosts = 1 + pick(r, HOSTS);
    if (r->n_hosts > 1 && !pthread_create(&thread, NULL, open_in_thread, &opener)) {
        open_one(r, 0);
        pthread_join(thread, NULL);
    } else {
        r->n_hosts = 1;
        open_one(r, 0);
    }
}

static void check_leaks(struct round *r, frit_device *device)
{
    char *text = NULL;

    (void)frit_sync_all(device, NULL);
    if (frit_leaks(device, &text) && !r->wrong) {
        soak_complain("left on %s: %s", r->driver->device, text ? text : "?");
        atomic_store(&r->wrong, true);
    }
    frit_free(text);
}

static void close_all(struct round *r)
{
    for (uint32_t i = 0; i < r->n_hosts; i++) {
        if (!r->host[i])
            continue;
        check_leaks(r, r->device[i]);
        if (pick(r, 3))
            frit_device_close(r->device[i]); /* else the host does */
        frit_host_close(r->host[i]);
        if (pick(r, 10) == 0 && r->n_hosts == 1)
            frit_host_close(r->host[i]); /* which is logged */
    }
}

/* ---- what happens meanwhile ---- */

struct player {
    struct round *round;
    struct program program;
    pthread_t thread;
};

static void *play(void *ctx)
{
    struct player *player = ctx;

    program_run(&player->program);
    return NULL;
}

static void add_up(struct round *r, const struct program *program)
{
    atomic_fetch_add(&n_checked, program->checked);
    atomic_fetch_add(&n_failed, program->failed);
    if (program->wrong)
        atomic_store(&r->wrong, true);
}

static void run_threads(struct round *r)
{
    struct player players[THREADS];
    uint32_t n = 1 + pick(r, THREADS), started = 0;

    for (uint32_t i = 0; i < n; i++) {
        frit_device *one = r->device[pick(r, r->n_hosts)], *two = r->device[pick(r, r->n_hosts)];
        struct player *player = &players[started];

        if (!one || !two)
            continue;
        *player = (struct player){.round = r,
                                  .program = {.random = r->random + i * 7919,
                                              .device = {one, two},
                                              .steps = pick(r, 200),
                                              .large = pick(r, 3) == 0,
                                              .computes = r->driver->computes,
                                              .may_fail = may_fail(r)}};
        started += !pthread_create(&player->thread, NULL, play, player);
    }
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(players[i].thread, NULL);
        add_up(r, &players[i].program);
    }
}

/* A child of a fork, with a host open: it can only close. */
static void fork_once(struct round *r)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        alarm(60);
        if (r->device[0] && frit_sync(r->device[0], NULL) != FRIT_UNSUPPORTED)
            _exit(2);
        close_all(r);
        _exit(0);
    }
    if (child > 0 && (waitpid(child, &status, 0) != child || status)) {
        soak_complain("the child of a fork ended with 0x%x", (unsigned)status);
        atomic_store(&r->wrong, true);
    }
}

/* ---- limits ---- */

struct limiter {
    uint64_t random;
    atomic_bool over;
};

static uint64_t used_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    (void)fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void *move_limit(void *ctx)
{
    struct limiter *limiter = ctx;

    while (!atomic_load(&limiter->over)) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

        (void)setrlimit(RLIMIT_AS, &limit);
        usleep(1000 * soak_pick(&limiter->random, 60));
        limit.rlim_cur = used_space() + (uint64_t)soak_pick(&limiter->random, 20) * MIB;
        if (limit.rlim_cur > MIB)
            (void)setrlimit(RLIMIT_AS, &limit);
        usleep(1000 * soak_pick(&limiter->random, 60));
    }
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    return NULL;
}

/* ---- rounds ---- */

static bool uses_llvm(const struct driver *driver)
{
    return driver->key && strcmp(driver->key, "option.tier") == 0 &&
           strcmp(driver->value, "0") != 0;
}

static bool play_round(const struct life *life, uint64_t random)
{
    struct round r = {.life = life, .random = random};
    bool scarce = life->is_scarce && !life->soak->sanitized;
    struct limiter limiter = {.random = random};
    pthread_t thread;

    do
        r.driver = &drivers[pick(&r, N_DRIVERS)];
    while (scarce && uses_llvm(r.driver)); /* which ends a process where it finds no memory */
    choose_settings(&r);
    if (scarce && strncmp(r.driver->device, "cpu", 3) == 0)
        set(&r, "plugin.cpu", "option.tier", "0");
    if (scarce)
        scarce = !pthread_create(&thread, NULL, move_limit, &limiter);
    open_all(&r);
    for (uint32_t i = 1 + pick(&r, 3); i > 0 && !r.wrong; i--)
        run_threads(&r);
    if (pick(&r, 8) == 0 && !scarce)
        fork_once(&r);
    if (scarce) {
        atomic_store(&limiter.over, true);
        pthread_join(thread, NULL);
    }
    close_all(&r);
    atomic_fetch_add(&n_rounds, 1);
    return !r.wrong;
}

/* What the process holds when no host is open. */
struct growth {
    struct census first, last;
    unsigned long first_round, last_round;
    bool begun;
};

enum { HEAP_PER_ROUND = 128, RSS_SLACK = 24 * MIB };

static bool check_growth(struct growth *g, unsigned long round)
{
    const struct census *a = &g->first, *b = &g->last;
    unsigned long rounds = round - g->first_round;

    census_take(&g->last);
    g->last_round = round;
    if (!g->begun) {
        g->begun = true;
        g->first = g->last;
        g->first_round = round;
        return true;
    }
    if (b->descriptors <= a->descriptors && b->threads <= a->threads &&
        b->heap_bytes <= a->heap_bytes + MIB / 4 + rounds * HEAP_PER_ROUND &&
        b->rss_bytes <= a->rss_bytes + a->rss_bytes / 4 + RSS_SLACK)
        return true;
    soak_complain(
        "growth in %lu rounds: descriptors %u to %u, threads %u to %u, heap %llu to %llu, "
        "resident %llu to %llu",
        rounds, a->descriptors, b->descriptors, a->threads, b->threads,
        (unsigned long long)a->heap_bytes, (unsigned long long)b->heap_bytes,
        (unsigned long long)a->rss_bytes, (unsigned long long)b->rss_bytes);
    return false;
}

/* Libraries are loaded and tables have grown after this part of the time. */
static const double warm_up = 0.35;
enum { ROUNDS_PER_LOOK = 20 };

int life_lead(const struct life *life)
{
    double begin = soak_now(), warm = begin + life->seconds * warm_up;
    double end = begin + life->seconds;
    uint64_t random = life->random;
    struct growth growth = {0};
    bool good = true;

    for (unsigned long round = 1; good && soak_now() < end; round++) {
        good = play_round(life, random + round * 104729);
        if (life->is_counted && soak_now() > warm && round % ROUNDS_PER_LOOK == 0)
            good = check_growth(&growth, round) && good;
    }
    if (life->is_counted)
        fprintf(
            stderr,
            "soak %d: %lu rounds, %lu values checked, %lu failures provoked, %lu times forgiven; "
            "heap %+lld bytes per round, resident %llu MiB, from %llu\n",
            (int)getpid(), atomic_load(&n_rounds), atomic_load(&n_checked), atomic_load(&n_failed),
            atomic_load(&n_forgiven),
            growth.last_round > growth.first_round
                ? ((long long)growth.last.heap_bytes - (long long)growth.first.heap_bytes) /
                      (long long)(growth.last_round - growth.first_round)
                : 0,
            (unsigned long long)growth.last.rss_bytes / MIB,
            (unsigned long long)growth.first.rss_bytes / MIB);
    return good ? 0 : 1;
}
