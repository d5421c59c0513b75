/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that the host lends, as a plugin sees them, and schemas that break the contract. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/timeline.h"
#include "exec/job_queue.h"
#include "exec/team.h"
#include "host/load/rig.h"
#include "load/load.h"
#include "load/service.h"

static struct arena arena;
static struct lent lent;
static const char *build_id = "";

static int teardown(void **state)
{
    arena_fini(&arena);
    return rig_teardown(state);
}

/* The root for a plugin with this schema; NULL if it is refused. */
static const frit_host_root *lend(struct plugin *plugin, frit_plugin *root)
{
    *plugin = (struct plugin){.id = "test", .path = "/proc/self/exe", .root = root};
    snprintf(plugin->build_id, sizeof(plugin->build_id), "%s", build_id);
    if (service_create(&arena, plugin, NULL, &lent, &plugin->service) == FRIT_OK)
        return service_root(plugin->service);
    assert_int_equal(plugin->reason, FRIT_REASON_BAD_TABLE);
    return NULL;
}

static const frit_host_core *core_of(const frit_host_root *root)
{
    const frit_host_core *core = root->get_interface(root->self, FRIT_STR(FRIT_HOST_CORE));

    assert_non_null(core);
    assert_true(FRIT_HAS(core, frit_host_core, now_ns));
    return core;
}

static void interfaces(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend(&plugin, &schema);

    (void)state;
    assert_non_null(root);
    assert_non_null(root->get_interface(root->self, FRIT_STR(FRIT_HOST_OPTIONS)));
    assert_null(root->get_interface(root->self, FRIT_STR("frit.host.core/2")));
    assert_null(root->get_interface(root->self, FRIT_STR("frit.host.core/11")));
    assert_null(root->get_interface(root->self, (frit_str){NULL, 0}));
}

static void memory(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend(&plugin, &schema);
    const frit_host_core *core = core_of(root);

    (void)state;
    for (uint64_t align = 1; align <= 1u << 16; align *= 2) {
        char *bytes[8]; /* several, since one alone may be aligned by luck */

        for (int i = 0; i < 8; i++) {
            bytes[i] = core->mem_alloc(root->self, 3, align);
            assert_non_null(bytes[i]);
            assert_int_equal((uintptr_t)bytes[i] % align, 0);
            memset(bytes[i], 1, 3);
        }
        for (int i = 0; i < 8; i++)
            core->mem_free(root->self, bytes[i]);
    }
    assert_null(core->mem_alloc(root->self, UINT64_MAX, 64));
    assert_null(core->mem_alloc(root->self, UINT64_MAX, 1));
    assert_null(core->mem_alloc(root->self, 64, 3));
    core->mem_free(root->self, NULL);
}

static void errors_and_log(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend(&plugin, &schema);
    const frit_host_core *core = core_of(root);
    char longer[2000];
    frit_err err = {.struct_size = sizeof(err)};
    struct rig rig;

    (void)state;
    memset(longer, 'x', sizeof(longer));
    assert_int_equal(core->err_set(root->self, NULL, FRIT_IO, 5, FRIT_STR("lost")), FRIT_IO);
    assert_int_equal(core->err_set(root->self, &err, FRIT_IO, 5, (frit_str){longer, 2000}),
                     FRIT_IO);
    assert_int_equal(err.status, FRIT_IO);
    assert_int_equal(err.native_code, 5);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);

    assert_int_equal(rig_open(&rig, NULL), FRIT_OK); /* empties the log */
    assert_int_equal(core->log_enabled(root->self, FRIT_LOG_TRACE, FRIT_STR("gpu")), 0);
    assert_int_equal(core->log_enabled(root->self, FRIT_LOG_ERROR, FRIT_STR("gpu")), 1);
    core->log(root->self, FRIT_LOG_TRACE, FRIT_STR("gpu"), FRIT_STR("quiet"));
    core->log(root->self, 0, FRIT_STR("gpu"), FRIT_STR("two\nlines"));
    assert_string_equal(rig_log(), "1 gpu: test: two lines\n");
    core->log(root->self, FRIT_LOG_WARN, (frit_str){longer, 2000}, (frit_str){longer, 2000});
    rig_close(&rig);
}

static void the_clock_runs(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend(&plugin, &schema);
    const frit_host_core *core = core_of(root);
    uint64_t first = core->now_ns(root->self), second = first;

    (void)state;
    for (int i = 0; i < 1000000 && second == first; i++)
        second = core->now_ns(root->self);
    assert_true(second > first);
}

static void spans_and_counters(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend(&plugin, &schema);
    const frit_host_trace *trace = root->get_interface(root->self, FRIT_STR(FRIT_HOST_TRACE));
    struct str text = {0};

    (void)state;
    assert_non_null(trace);
    assert_int_equal(trace->span_begin(root->self), 0);
    assert_int_equal(timeline_start(8, NULL), FRIT_OK);
    trace->span_end(root->self, trace->span_begin(root->self), FRIT_STR("work"));
    trace->counter(root->self, FRIT_STR("level"), 0.5);
    timeline_stop(&text);
    rig_contains(text.text, "{\"name\":\"work\",\"cat\":\"test\",\"ph\":\"X\"");
    rig_contains(text.text, "{\"name\":\"level\",\"cat\":\"test\",\"ph\":\"C\"");
    str_fini(&text);
}

static void add_lengths(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    atomic_uint_least64_t *sums = ctx;

    atomic_fetch_add(&sums[thread], end - first);
}

static void threads(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_exec *exec;

    (void)state;
    team_join();
    for (lent.threads = 3; lent.threads >= 0; lent.threads--) {
        const frit_host_root *root = lend(&plugin, &schema);
        atomic_uint_least64_t sums[TEAM_MAX] = {0}, sum = 0;
        uint32_t n;

        exec = root->get_interface(root->self, FRIT_STR(FRIT_HOST_EXEC));
        assert_non_null(exec);
        n = exec->threads(root->self);
        assert_int_equal(n, lent.threads ? lent.threads : team_processors());
        exec->parallel_for(root->self, 1000, 0, add_lengths, sums);
        for (uint32_t i = 0; i < n; i++)
            sum += sums[i];
        assert_int_equal(sum, 1000);
    }
    lent.threads = 0;
    team_leave();
}

static const frit_host_exec *exec_of(const frit_host_root *root)
{
    const frit_host_exec *exec = root->get_interface(root->self, FRIT_STR(FRIT_HOST_EXEC));

    assert_true(exec && FRIT_HAS(exec, frit_host_exec, task_cancel));
    return exec;
}

/* What background calls did, in their order. */
struct calls {
    pthread_mutex_t lock;
    char seen[32];
    atomic_bool entered, leave;
};

static struct calls calls;

static void note_call(void *ctx)
{
    const char letter[] = {*(const char *)ctx, 0};

    pthread_mutex_lock(&calls.lock);
    strcat(calls.seen, letter);
    pthread_mutex_unlock(&calls.lock);
}

static void run_task(void *ctx, const frit_cancel *cancel)
{
    assert_true(FRIT_HAS(cancel, frit_cancel, requested));
    note_call(ctx);
}

static void drop_task(void *ctx)
{
    const char *letter = ctx;

    note_call((char[]){(char)(*letter - 'a' + 'A')});
}

/* Keeps the only thread busy until `cancel` or the test ends it. */
static void hold_thread(void *ctx, const frit_cancel *cancel)
{
    (void)ctx;
    atomic_store(&calls.entered, true);
    while (!atomic_load(&calls.leave) && !__atomic_load_n(&cancel->requested, __ATOMIC_RELAXED))
        sched_yield();
}

static void await_calls(size_t n)
{
    size_t seen = 0;

    while (seen < n) {
        sched_yield();
        pthread_mutex_lock(&calls.lock);
        seen = strlen(calls.seen);
        pthread_mutex_unlock(&calls.lock);
    }
}

static uint64_t add_task(const frit_host_root *root, const char *letter, uint64_t priority)
{
    frit_task task = {.struct_size = sizeof(task),
                      .run = *letter == '!' ? hold_thread : run_task,
                      .drop = drop_task,
                      .ctx = (void *)letter,
                      .priority = priority};
    uint64_t id = 0;

    assert_int_equal(exec_of(root)->task_spawn(root->self, &task, &id, NULL), FRIT_OK);
    assert_true(id);
    if (*letter == '!') {
        while (!atomic_load(&calls.entered))
            sched_yield();
    }
    return id;
}

static const frit_host_root *lend_queue(struct plugin *plugin, frit_plugin *schema)
{
    calls = (struct calls){.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(job_queue_create(1, 0, &lent.jobs, NULL), FRIT_OK);
    return lend(plugin, schema);
}

/* As a plugin's end does; then that of the host. */
static void end_queue(const struct plugin *plugin)
{
    service_end_tasks(plugin->service);
    job_queue_destroy(lent.jobs);
    lent.jobs = NULL;
}

static void work_for_later(void **state)
{
    static const char letters[] = "abcdefghij";
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend_queue(&plugin, &schema);

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(exec_of(root)->spawn(root->self, note_call, (void *)&letters[i], NULL),
                         FRIT_OK);
    end_queue(&plugin);
    assert_string_equal(calls.seen, letters);
}

static void tasks_by_priority(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend_queue(&plugin, &schema);
    uint64_t a, c;

    (void)state;
    add_task(root, "!", 1);
    a = add_task(root, "a", 1);
    add_task(root, "b", 5);
    c = add_task(root, "c", 9);
    add_task(root, "d", 6);
    exec_of(root)->task_raise(root->self, a, 7); /* 8 */
    exec_of(root)->task_cancel(root->self, c);
    assert_string_equal(calls.seen, "C");
    exec_of(root)->task_raise(root->self, c, 1);
    exec_of(root)->task_cancel(root->self, c);
    exec_of(root)->task_cancel(root->self, 0);
    atomic_store(&calls.leave, true);
    await_calls(4);
    assert_string_equal(calls.seen, "Cadb");
    exec_of(root)->task_cancel(root->self, a);
    end_queue(&plugin);
    assert_string_equal(calls.seen, "Cadb");
}

/* The running task is requested to stop, those that did not begin are dropped, and those spawned
 * meanwhile run all the same. */
static void the_end_cancels_tasks(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend_queue(&plugin, &schema);

    (void)state;
    add_task(root, "!", 1);
    add_task(root, "a", 1);
    assert_int_equal(exec_of(root)->spawn(root->self, note_call, (void *)"s", NULL), FRIT_OK);
    add_task(root, "b", 9);
    end_queue(&plugin);
    assert_string_equal(calls.seen, "AsB");
}

static void tasks_that_cannot_be(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend_queue(&plugin, &schema);
    const frit_task tasks[] = {
        {.struct_size = sizeof(frit_task), .drop = drop_task},
        {.struct_size = sizeof(frit_task), .run = run_task},
        {.struct_size = FRIT_END_OF(frit_task, ctx), .run = run_task, .drop = drop_task}};

    (void)state;
    for (size_t i = 0; i < sizeof(tasks) / sizeof(*tasks); i++) {
        uint64_t id = 1;

        assert_int_equal(exec_of(root)->task_spawn(root->self, &tasks[i], &id, NULL), FRIT_INVALID);
        assert_int_equal(id, 0);
    }
    end_queue(&plugin);
}

/* One option that is right, for the tests to break. */
static frit_option right(void)
{
    return (frit_option){.struct_size = sizeof(frit_option),
                         .type = FRIT_OPTION_STR,
                         .name = {"mode", 4},
                         .default_value = {"b", 1},
                         .choices = {"a b", 3}};
}

static void expect_schema(frit_option option, int is_right)
{
    frit_plugin schema = {.n_options = 1, .option_stride = sizeof(option), .options = &option};
    struct plugin plugin;

    assert_int_equal(lend(&plugin, &schema) != NULL, is_right);
}

static void schemas(void **state)
{
    frit_option option = right();
    frit_plugin schema = {.n_options = 1, .option_stride = sizeof(option), .options = NULL};
    struct plugin plugin;

    (void)state;
    expect_schema(option, 1);
    option.struct_size = FRIT_END_OF(frit_option, max);
    expect_schema(option, 0);
    option = right();
    option.type = 0;
    expect_schema(option, 0);
    option.type = FRIT_OPTION_BOOL + 1;
    expect_schema(option, 0);
    option = right();
    option.name = FRIT_STR("Mode");
    expect_schema(option, 0);
    option.name = FRIT_STR("");
    expect_schema(option, 0);
    option = right();
    option.default_value = FRIT_STR("c");
    expect_schema(option, 0);
    option.default_value = (frit_str){NULL, 1};
    expect_schema(option, 0);

    assert_null(lend(&plugin, &schema)); /* no array */
    option = right();
    schema.options = &option;
    schema.option_stride = sizeof(option) - 8;
    assert_null(lend(&plugin, &schema));
    schema.option_stride = sizeof(option);
    schema.n_options = UINT32_MAX;
    assert_null(lend(&plugin, &schema));
}

static void cache(void **state)
{
    char folder[] = "/tmp/frit-service-XXXXXX";
    const frit_str space = FRIT_STR("gpu"), key = FRIT_STR("kernel");
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_cache *table;
    const frit_host_root *root = lend(&plugin, &schema);
    frit_err err = {.struct_size = sizeof(frit_err)};
    char command[64];
    uint64_t n_bytes;
    void *bytes;

    (void)state;
    table = root->get_interface(root->self, FRIT_STR(FRIT_HOST_CACHE));
    assert_true(table && FRIT_HAS(table, frit_host_cache, put));
    assert_int_equal(table->put(root->self, space, key.ptr, key.len, "code", 4, &err),
                     FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "artefacts"));
    lent.artefacts = mkdtemp(folder);
    lent.artefact_bytes = 1 << 20;
    root = lend(&plugin, &schema);
    assert_int_equal(table->put(root->self, space, key.ptr, key.len, "code", 4, &err), FRIT_OK);
    assert_int_equal(table->get(root->self, space, key.ptr, key.len, &bytes, &n_bytes, &err),
                     FRIT_OK);
    assert_int_equal(n_bytes, 4);
    assert_memory_equal(bytes, "code", 4);
    core_of(root)->mem_free(root->self, bytes);
    build_id = "0123abcd"; /* another build */
    root = lend(&plugin, &schema);
    assert_int_equal(table->get(root->self, space, key.ptr, key.len, &bytes, &n_bytes, &err),
                     FRIT_OK);
    assert_null(bytes);
    build_id = "";
    assert_int_equal(table->get(root->self, space, "other", 5, &bytes, &n_bytes, &err), FRIT_OK);
    assert_null(bytes);
    lent = (struct lent){0};
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* A thread of the plugin may go on when it is closed; the next instance finds the same place. */
static void what_is_lent_stays_when_the_plugin_is_closed(void **state)
{
    frit_plugin schema = {0};
    struct plugin plugin;
    const frit_host_root *root = lend(&plugin, &schema);
    void *self = root->self;
    const frit_host_exec *exec = root->get_interface(self, FRIT_STR(FRIT_HOST_EXEC));
    const frit_host_cache *cache = root->get_interface(self, FRIT_STR(FRIT_HOST_CACHE));
    frit_err err = {.struct_size = sizeof(err)};
    uint64_t n = 1;
    void *bytes = &n;

    (void)state;
    service_end(plugin.service);
    assert_int_equal(core_of(root)->err_set(self, &err, FRIT_IO, 0, FRIT_STR("late")), FRIT_IO);
    core_of(root)->mem_free(self, core_of(root)->mem_alloc(self, 8, 8));
    assert_int_equal(exec->threads(self), 1);
    assert_int_equal(exec->spawn(self, note_call, NULL, &err), FRIT_INVALID);
    assert_string_equal(err.text, "plugin test is closed");
    exec->task_raise(self, 1, 1);
    exec->task_cancel(self, 1);
    assert_int_equal(cache->get(self, FRIT_STR("a"), "k", 1, &bytes, &n, &err), FRIT_OK);
    assert_null(bytes);
    assert_int_equal(cache->put(self, FRIT_STR("a"), "k", 1, "x", 1, &err), FRIT_UNSUPPORTED);
    assert_ptr_equal(lend(&plugin, &schema), root);
    service_end(plugin.service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_stays_when_the_plugin_is_closed),
        cmocka_unit_test(cache),
        cmocka_unit_test(interfaces),
        cmocka_unit_test(memory),
        cmocka_unit_test(errors_and_log),
        cmocka_unit_test(the_clock_runs),
        cmocka_unit_test(spans_and_counters),
        cmocka_unit_test(threads),
        cmocka_unit_test(work_for_later),
        cmocka_unit_test(tasks_by_priority),
        cmocka_unit_test(the_end_cancels_tasks),
        cmocka_unit_test(tasks_that_cannot_be),
        cmocka_unit_test(schemas),
    };

    return cmocka_run_group_tests(tests, rig_setup, teardown);
}
