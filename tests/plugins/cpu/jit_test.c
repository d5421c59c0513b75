/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code: cached and loaded again, compiled in the background, and a device that is closed
 * during the compile.  The host of these tests has its cache in memory and runs a task when the
 * test calls for it. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "addition.h"
#include "plugins/cpu/maker.h"

/* SHORT: so many take less than the time between two raised priorities, with sanitizers too. */
enum {
    ITEMS = 3 << 20,
    SHORT = ITEMS / 64,
    LONG = 48 << 20,
    FEW = 1000,
    MOST = 8,
    KEY = 16,
    RUNS = 10000,
    LIVES = 20
};

#define NOWHERE "/nonexistent/libLLVM.so"

struct entry {
    char space[160];
    unsigned char key[KEY];
    void *bytes;
    uint64_t n_bytes;
};

struct job {
    frit_task task;
    uint64_t id;
};

/* Outlives the rigs that are opened in it, as folders outlive processes. */
struct host {
    struct rig rig; /* first: it is `self` */
    pthread_mutex_t lock;
    uint32_t n_entries, n_jobs, compiled, found;
    uint32_t raised, dropped;
    uint64_t last_id, running;
    frit_cancel cancel;         /* of the one that runs */
    struct entry entries[MOST]; /* code */
    struct entry maker;         /* which LLVM made it */
    struct job jobs[MOST];
};

/* ---- tables ---- */

static struct entry *entry_of(struct host *host, frit_str space, const void *key)
{
    if (space.len == 4 && strncmp(space.ptr, "llvm", 4) == 0)
        return &host->maker;
    for (uint32_t i = 0; i < host->n_entries; i++)
        if (strncmp(host->entries[i].space, space.ptr, space.len) == 0 &&
            memcmp(host->entries[i].key, key, KEY) == 0)
            return &host->entries[i];
    return NULL;
}

static frit_status cache_get(void *self, frit_str space, const void *key, uint64_t n_key,
                             void **bytes, uint64_t *n_bytes, frit_err *err)
{
    struct host *host = self;
    const struct entry *entry = entry_of(host, space, key);
    const frit_host_core *core =
        host->rig.root.get_interface(host->rig.root.self, FRIT_STR(FRIT_HOST_CORE));

    (void)err;
    assert_int_equal(n_key, KEY);
    *bytes = entry && entry->bytes ? core->mem_alloc(self, entry->n_bytes, 16) : NULL;
    *n_bytes = *bytes ? entry->n_bytes : 0;
    if (*bytes)
        memcpy(*bytes, entry->bytes, entry->n_bytes);
    return FRIT_OK;
}

static frit_status cache_put(void *self, frit_str space, const void *key, uint64_t n_key,
                             const void *bytes, uint64_t n_bytes, frit_err *err)
{
    struct host *host = self;
    struct entry *entry = entry_of(host, space, key);

    (void)err;
    assert_int_equal(n_key, KEY);
    if (!entry) {
        assert_true(host->n_entries < MOST && space.len < sizeof entry->space);
        entry = &host->entries[host->n_entries++];
        memcpy(entry->space, space.ptr, space.len);
        memcpy(entry->key, key, KEY);
    }
    free(entry->bytes);
    entry->bytes = malloc(n_bytes);
    assert_non_null(entry->bytes);
    memcpy(entry->bytes, bytes, n_bytes);
    entry->n_bytes = n_bytes;
    return FRIT_OK;
}

static uint64_t begin_span(void *self)
{
    (void)self;
    return 0;
}

static void count(void *self, frit_str name, double value)
{
    struct host *host = self;

    pthread_mutex_lock(&host->lock);
    if (name.len == strlen("kernels compiled") && strncmp(name.ptr, "kernels c", 9) == 0)
        host->compiled = (uint32_t)value;
    if (name.len == strlen("kernels from the cache") && strncmp(name.ptr, "kernels f", 9) == 0)
        host->found = (uint32_t)value;
    pthread_mutex_unlock(&host->lock);
}

static uint32_t one_thread(void *self)
{
    (void)self;
    return 1;
}

static void alone(void *self, uint64_t items, uint64_t grain,
                  void (*run)(void *ctx, uint64_t first, uint64_t end, uint32_t thread), void *ctx)
{
    (void)self;
    (void)grain;
    run(ctx, 0, items, 0);
}

static frit_status spawn(void *self, const frit_task *task, uint64_t *id, frit_err *err)
{
    struct host *host = self;

    (void)err;
    assert_true(FRIT_HAS(task, frit_task, priority) && task->run && task->drop);
    pthread_mutex_lock(&host->lock);
    assert_true(host->n_jobs < MOST);
    *id = ++host->last_id;
    host->jobs[host->n_jobs++] = (struct job){*task, *id};
    pthread_mutex_unlock(&host->lock);
    return FRIT_OK;
}

static void raise_task(void *self, uint64_t id, uint64_t by)
{
    struct host *host = self;

    pthread_mutex_lock(&host->lock);
    for (uint32_t i = 0; i < host->n_jobs; i++)
        if (host->jobs[i].id == id)
            host->jobs[i].task.priority += by;
    host->raised++;
    pthread_mutex_unlock(&host->lock);
}

static void cancel_task(void *self, uint64_t id)
{
    struct host *host = self;
    struct job job = {0};

    pthread_mutex_lock(&host->lock);
    for (uint32_t i = 0; i < host->n_jobs; i++)
        if (host->jobs[i].id == id) {
            job = host->jobs[i];
            memmove(&host->jobs[i], &host->jobs[i + 1], (--host->n_jobs - i) * sizeof job);
            break;
        }
    if (host->running == id)
        __atomic_store_n(&host->cancel.requested, 1, __ATOMIC_RELAXED);
    host->dropped += job.id != 0;
    pthread_mutex_unlock(&host->lock);
    if (job.id)
        job.task.drop(job.task.ctx);
}

static const void *own_table(frit_str id)
{
    static const frit_host_cache cache = {
        .struct_size = sizeof cache, .get = cache_get, .put = cache_put};
    static const frit_host_trace trace = {
        .struct_size = sizeof trace, .span_begin = begin_span, .counter = count};
    static const frit_host_exec exec = {.struct_size = sizeof exec,
                                        .threads = one_thread,
                                        .parallel_for = alone,
                                        .task_spawn = spawn,
                                        .task_raise = raise_task,
                                        .task_cancel = cancel_task};
    const struct {
        const char *id;
        const void *table;
    } tables[] = {{FRIT_HOST_CACHE, &cache}, {FRIT_HOST_TRACE, &trace}, {FRIT_HOST_EXEC, &exec}};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (id.len == strlen(tables[i].id) && memcmp(id.ptr, tables[i].id, id.len) == 0)
            return tables[i].table;
    return NULL;
}

/* ---- hosts ---- */

/* The job that came first; false: there is none. */
static bool work(struct host *host)
{
    struct job job = {0};

    pthread_mutex_lock(&host->lock);
    if (host->n_jobs) {
        job = host->jobs[0];
        memmove(host->jobs, host->jobs + 1, --host->n_jobs * sizeof *host->jobs);
        host->running = job.id;
        host->cancel = (frit_cancel){.struct_size = sizeof host->cancel};
    }
    pthread_mutex_unlock(&host->lock);
    if (!job.id)
        return false;
    job.task.run(job.task.ctx, &host->cancel);
    pthread_mutex_lock(&host->lock);
    host->running = 0;
    pthread_mutex_unlock(&host->lock);
    return true;
}

static uint32_t jobs(struct host *host)
{
    uint32_t n;

    pthread_mutex_lock(&host->lock);
    n = host->n_jobs;
    pthread_mutex_unlock(&host->lock);
    return n;
}

static void live(struct host *host, const char *tier, const char *llvm)
{
    host->rig = (struct rig){.tier = tier, .llvm = llvm, .own_table = own_table};
    host->compiled = host->found = host->raised = host->dropped = 0;
    rig_open(&host->rig);
}

static int begin(void **state)
{
    struct host *host = calloc(1, sizeof *host);

    assert_non_null(host);
    pthread_mutex_init(&host->lock, NULL);
    *state = host;
    return 0;
}

static int end(void **state)
{
    struct host *host = *state;

    for (uint32_t i = 0; i < host->n_entries; i++)
        free(host->entries[i].bytes);
    free(host->maker.bytes);
    pthread_mutex_destroy(&host->lock);
    free(host);
    return 0;
}

/* Whether there is a library here; without one these tests have nothing to test. */
static void need_llvm(struct host *host)
{
    host->rig = (struct rig){.tier = "1", .own_table = own_table};
    if (rig_load(&host->rig))
        fail_msg("%s", host->rig.err.text);
    host->rig.backend = host->rig.plugin->get_interface(host->rig.instance, FRIT_STR(FRIT_BACKEND));
    if (host->rig.backend->device_open(host->rig.instance, 0, &rig_params, &host->rig.device,
                                       &host->rig.err)) {
        host->rig.plugin->close(host->rig.instance);
        skip();
    }
    rig_close(&host->rig);
}

/* ---- additions ---- */

static void open_addition(struct addition *a, struct host *host, uint64_t n)
{
    if (addition_open(a, &host->rig, n))
        fail_msg("%s", host->rig.err.text);
}

static void run(struct addition *a)
{
    const float *y = a->y.host_pointer;
    uint64_t value;

    memset(a->y.host_pointer, 0xff, a->n * sizeof(float));
    assert_int_equal(addition_run(a, &value), FRIT_OK);
    for (uint64_t i = 0; i < a->n; i++)
        if (y[i] != (float)(i % 1000) + 3)
            fail_msg("element %d is %g", (int)i, (double)y[i]);
}

static uint64_t generation(const struct addition *a)
{
    uint64_t generation = a->program.table->generation(a->program.self, 0, &a->variant);
    frit_program_info info = {.struct_size = sizeof info};

    assert_int_equal(a->program.table->describe(a->program.self, &info, NULL), FRIT_OK);
    assert_true(__atomic_load_n(info.serial, __ATOMIC_ACQUIRE) >= generation);
    return generation;
}

/* One life in which an addition runs once. */
static void run_once(struct host *host, const char *tier, const char *llvm)
{
    struct addition a;

    live(host, tier, llvm);
    open_addition(&a, host, FEW);
    run(&a);
    assert_int_equal(jobs(host), 0);
    addition_close(&a);
    rig_close(&host->rig);
}

static void run_until_hot(struct addition *a, struct host *host)
{
    for (int i = 0; i < RUNS && !jobs(host); i++)
        run(a);
    assert_int_equal(jobs(host), 1);
}

/* ---- tests ---- */

static void what_was_kept_needs_no_library(void **state)
{
    struct host *host = *state;

    need_llvm(host);
    run_once(host, "1", NULL);
    assert_int_equal(host->compiled, 1);
    assert_int_equal(host->found, 0);
    assert_int_equal(host->n_entries, 1);
    run_once(host, "auto", NOWHERE);
    assert_int_equal(host->compiled, 0);
    assert_int_equal(host->found, 1);
    run_once(host, "0", NULL);
    assert_int_equal(host->found, 0);
}

/* Where the library is another than the one that made the code, the code is made again. */
static void code_of_another_library_is_not_used(void **state)
{
    struct host *host = *state;
    struct maker *maker;

    need_llvm(host);
    run_once(host, "1", NULL);
    assert_int_equal(host->maker.n_bytes, sizeof *maker);
    maker = host->maker.bytes;
    assert_non_null(strstr(host->entries[0].space, maker->text));
    maker->text[strlen(maker->text) - 1] ^= 1; /* it is of another time now */
    run_once(host, "auto", NOWHERE);
    assert_int_equal(host->found, 0);
    run_once(host, "1", NULL);
    assert_int_equal(host->compiled + host->found, 1);
    assert_int_equal(host->n_entries, 1); /* it is the same after all */
    maker = host->maker.bytes;
    strcpy(maker->path, "/gone"); /* it is not installed any more */
    run_once(host, "auto", NOWHERE);
    assert_int_equal(host->found, 1);
    strcpy(maker->option, "another");
    run_once(host, "auto", "libc.so.6"); /* may lead to another */
    assert_int_equal(host->found, 0);
}

static void code_of_one_set_is_none_of_anothers(void **state)
{
    struct host *host = *state;
    struct addition a;

    need_llvm(host);
    run_once(host, "1", NULL);
    host->rig = (struct rig){.tier = "1", .isa = "baseline", .own_table = own_table};
    host->compiled = host->found = 0;
    rig_open(&host->rig);
    open_addition(&a, host, FEW);
    run(&a);
    addition_close(&a);
    rig_close(&host->rig);
    assert_int_equal(host->found + host->compiled, 1);
    assert_int_equal(host->n_entries, 1 + host->compiled);
    assert_int_equal(host->compiled, strncmp(host->entries[0].space, "x86-64-v2 quick ", 16) != 0);
}

static void damaged_code_is_made_again(void **state)
{
    struct host *host = *state;
    struct entry *entry = host->entries;
    unsigned char *whole;
    uint64_t n;

    need_llvm(host);
    run_once(host, "1", NULL);
    n = entry->n_bytes;
    whole = malloc(n);
    assert_non_null(whole);
    memcpy(whole, entry->bytes, n);
    for (uint64_t cut = 0; cut < n; cut += n / 7) {
        entry->n_bytes = cut;
        run_once(host, "1", NULL);
        assert_int_equal(host->compiled, 1);
        assert_int_equal(host->found, 0);
        assert_true(entry->n_bytes == n);
        assert_memory_equal(entry->bytes, whole, n);
    }
    memset(entry->bytes, 0, n);
    run_once(host, "auto", NOWHERE);
    assert_int_equal(host->found, 0);
    free(whole);
}

static void what_runs_for_long_is_compiled_in_the_background(void **state)
{
    struct host *host = *state;
    struct addition a;
    uint64_t priority;

    need_llvm(host);
    live(host, "auto", NULL);
    open_addition(&a, host, SHORT);
    run_until_hot(&a, host);
    priority = host->jobs[0].task.priority;
    assert_true(priority > 0);
    for (int i = 0; i < RUNS && host->raised < 2; i++)
        run(&a);
    assert_int_equal(host->raised, 2); /* as the time doubles that is lost */
    assert_true(host->jobs[0].task.priority >= 2 * priority);
    assert_int_equal(jobs(host), 1);
    assert_int_equal(generation(&a), 0);
    assert_true(work(host));
    assert_int_equal(host->compiled, 1);
    assert_int_equal(generation(&a), 1);
    for (int i = 0; i < 10; i++)
        run(&a);
    assert_int_equal(jobs(host), 0);
    addition_close(&a);
    rig_close(&host->rig);
    live(host, "auto", NOWHERE);
    open_addition(&a, host, SHORT);
    for (int i = 0; i < 10; i++)
        run(&a);
    assert_int_equal(host->found, 1);
    assert_int_equal(jobs(host), 0);
    assert_int_equal(generation(&a), 0);
    addition_close(&a);
    rig_close(&host->rig);
}

static void a_long_launch_is_compiled_first(void **state)
{
    struct host *host = *state;
    struct addition a;

    need_llvm(host);
    live(host, "auto", NULL);
    open_addition(&a, host, LONG);
    run(&a);
    assert_int_equal(jobs(host), 0);
    assert_int_equal(host->compiled, 1);
    assert_int_equal(generation(&a), 1);
    addition_close(&a);
    rig_close(&host->rig);
}

/* Another task compiles the same module already. */
static void a_long_launch_does_not_wait_for_others(void **state)
{
    struct host *host = *state;
    struct addition a, b;

    need_llvm(host);
    live(host, "auto", NULL);
    open_addition(&a, host, ITEMS);
    run_until_hot(&a, host);
    open_addition(&b, host, LONG);
    host->compiled = 0;
    run(&b);
    assert_int_equal(host->compiled, 1);
    assert_int_equal(generation(&b), 1);
    assert_true(work(host));
    assert_int_equal(host->compiled, 1);
    assert_int_equal(generation(&b), 1);
    addition_close(&a);
    addition_close(&b);
    rig_close(&host->rig);
}

static void without_a_library(void **state)
{
    struct host *host = *state;
    struct rig *rig = &host->rig;
    struct addition a;

    live(host, "auto", NOWHERE);
    open_addition(&a, host, ITEMS);
    run_until_hot(&a, host);
    assert_true(work(host));
    assert_int_equal(generation(&a), 0);
    run(&a);
    assert_int_equal(jobs(host), 0);
    addition_close(&a);
    rig_close(rig);
    *rig = (struct rig){.tier = "1", .llvm = NOWHERE, .own_table = own_table};
    assert_int_equal(rig_load(rig), FRIT_OK);
    rig->backend = rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_BACKEND));
    assert_int_equal(
        rig->backend->device_open(rig->instance, 0, &rig_params, &rig->device, &rig->err),
        FRIT_UNSUPPORTED);
    assert_non_null(strstr(rig->err.text, NOWHERE));
    rig->plugin->close(rig->instance);
    assert_int_equal(rig->live, 0);
}

/* Whether the device of a plugin with these options says that it is slow; `text` gets the words. */
/* The library's fatal error leaves the interpreter, and the process. */
static void after_a_fatal_error_kernels_are_interpreted(void **state)
{
    struct host *host = *state;
    struct addition a, b;
    char path[512];
    int status = -1;
    pid_t child;

    need_llvm(host);
    snprintf(path, sizeof path, "%s/tests/fake/libLLVM-defect.so", getenv("FRIT_TEST_BUILD"));
    child = fork(); /* machine code is off in a process from then on */
    if (child == 0) {
        alarm(60);
        live(host, "auto", path);
        open_addition(&a, host, ITEMS);
        run_until_hot(&a, host);
        if (!work(host) || host->compiled || generation(&a))
            _exit(2);
        run(&a);
        open_addition(&b, host, FEW);
        run(&b);
        addition_close(&b);
        addition_close(&a);
        rig_close(&host->rig);
        host->rig = (struct rig){.tier = "1", .own_table = own_table};
        if (rig_load(&host->rig))
            _exit(3);
        host->rig.backend =
            host->rig.plugin->get_interface(host->rig.instance, FRIT_STR(FRIT_BACKEND));
        if (!host->rig.backend->device_open(host->rig.instance, 0, &rig_params, &host->rig.device,
                                            &host->rig.err) ||
            !strstr(host->rig.err.text, "a planted defect"))
            _exit(4);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool is_slow(struct host *host, const char *tier, const char *llvm, char *text)
{
    frit_compute_info info = {.struct_size = sizeof info};
    struct rig *rig = &host->rig;

    live(host, tier, llvm);
    assert_int_equal(rig->backend->compute_info(rig->instance, 0, &info, &rig->err), FRIT_OK);
    snprintf(text, 300, "%.*s", (int)info.text.len, info.text.ptr);
    rig_close(rig);
    return info.is_slow;
}

static void it_says_what_it_computes_with(void **state)
{
    struct host *host = *state;
    char text[300];

    assert_true(is_slow(host, "auto", NOWHERE, text));
    assert_non_null(strstr(text, "interpreter: "));
    assert_non_null(strstr(text, NOWHERE));
    assert_false(is_slow(host, "0", NOWHERE, text)); /* as was wanted */
    assert_string_equal(text, "interpreter, as its options say");
    need_llvm(host);
    assert_false(is_slow(host, "auto", NULL, text));
    assert_int_equal(strncmp(text, "LLVM 1", 6), 0);
}

static void what_nobody_wants_is_not_compiled(void **state)
{
    struct host *host = *state;
    struct addition a;

    live(host, "auto", NULL);
    open_addition(&a, host, ITEMS);
    run_until_hot(&a, host);
    addition_close(&a);
    assert_int_equal(jobs(host), 0);
    assert_int_equal(host->dropped, 1);
    host->rig.backend->device_close(host->rig.device);
    assert_int_equal(host->compiled, 0);
    assert_int_equal(host->n_entries, 0);
    host->rig.plugin->close(host->rig.instance);
    assert_int_equal(host->rig.live, 0);
}

static void *background(void *ctx)
{
    struct host *host = ctx;

    bool dropped = false;

    while (!dropped && !work(host)) {
        sched_yield();
        pthread_mutex_lock(&host->lock);
        dropped = host->dropped > 0;
        pthread_mutex_unlock(&host->lock);
    }
    return NULL;
}

/* Launches beside the compile, and devices closed in each part of it. */
static void closed_while_it_compiles(void **state)
{
    struct host *host = *state;
    pthread_t thread;
    struct addition a;

    need_llvm(host);
    for (int i = 0; i < LIVES; i++) {
        live(host, "auto", NULL);
        host->n_entries = 0;
        open_addition(&a, host, ITEMS / 4);
        for (int k = 0; k < RUNS && !jobs(host); k++)
            run(&a);
        assert_int_equal(pthread_create(&thread, NULL, background, host), 0);
        for (int k = 0; k < i; k++)
            run(&a);
        addition_close(&a);
        host->rig.backend->device_close(host->rig.device);
        assert_int_equal(pthread_join(thread, NULL), 0);
        host->rig.plugin->close(host->rig.instance);
        assert_int_equal(host->rig.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_says_what_it_computes_with, begin, end),
        cmocka_unit_test_setup_teardown(what_was_kept_needs_no_library, begin, end),
        cmocka_unit_test_setup_teardown(code_of_another_library_is_not_used, begin, end),
        cmocka_unit_test_setup_teardown(code_of_one_set_is_none_of_anothers, begin, end),
        cmocka_unit_test_setup_teardown(damaged_code_is_made_again, begin, end),
        cmocka_unit_test_setup_teardown(what_runs_for_long_is_compiled_in_the_background, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_long_launch_is_compiled_first, begin, end),
        cmocka_unit_test_setup_teardown(a_long_launch_does_not_wait_for_others, begin, end),
        cmocka_unit_test_setup_teardown(after_a_fatal_error_kernels_are_interpreted, begin, end),
        cmocka_unit_test_setup_teardown(without_a_library, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_wants_is_not_compiled, begin, end),
        cmocka_unit_test_setup_teardown(closed_while_it_compiles, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
