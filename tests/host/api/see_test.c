/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen from outside: the inspector, what is left, traces. */
#include "api/rig.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <frit/inspect.h>

#include "failing_alloc.h"

/* With fusers and the settings of one test. */
static void open_fused(struct rig *rig, const frit_setting *more)
{
    static char path[4096];
    frit_setting settings[3] = {{"plugin.org.frit.blocks", "library", path},
                                {"fusion", "store", "none"}};
    const char *build = getenv("FRIT_TEST_BUILD");

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/outside/libfrit-blocks.so", build);
    if (more)
        settings[2] = *more;
    rig_open(rig, settings, more ? 3 : 2);
}

static frit_tensor *some(struct rig *rig)
{
    return rig_f32(rig, FRIT_SHAPE(2, 3), (const float[]){1, 2, 3, 4, 5, 6});
}

/* ---- the inspector ---- */

/* (x + 1) * 2, and 3 * x that nobody keeps. */
static frit_tensor *record_chain(struct rig *rig, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *y = frit_keep(frit_mul_f(frit_add_f(x, 1), 2));

    frit_scope_end(scope);
    return y;
}

static void test_a_block_is_seen(void **state)
{
    frit_inspection_desc about = {.struct_size = sizeof(about)};
    frit_run_desc run = {.struct_size = sizeof(run)};
    frit_step_desc step = {.struct_size = sizeof(step)};
    frit_inspection *seen;
    frit_tensor *x, *y;
    struct rig rig;
    char *text;

    (void)state;
    open_fused(&rig, NULL);
    x = some(&rig);
    assert_int_equal(frit_inspect_start(rig.dev, NULL), FRIT_OK);
    y = record_chain(&rig, x);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, NULL), FRIT_OK);
    frit_release(record_chain(&rig, x)); /* after the inspection */

    assert_int_equal(frit_inspection_about(seen, &about), FRIT_OK);
    assert_int_equal(about.n_runs, 1);
    assert_int_equal(about.tensors_before, 1);
    assert_int_equal(about.tensors_after, 2);
    assert_int_equal(about.buffers_after - about.buffers_before, 1);
    assert_int_equal(about.bytes_after - about.bytes_before, 64);
    assert_int_equal(frit_inspection_run_at(seen, 0, &run), FRIT_OK);
    assert_int_equal(run.stream, 0);
    assert_int_equal(run.n_calls, 2);
    assert_int_equal(run.n_ops, 2);
    assert_int_equal(run.n_steps, 1);
    assert_int_equal(run.bytes_in, 24);
    assert_int_equal(run.bytes_out, 24);
    assert_int_equal(frit_inspection_run_at(seen, 1, &run), FRIT_INVALID);
    assert_int_equal(frit_inspection_step_at(seen, 0, 0, &step), FRIT_OK);
    assert_string_equal(step.label, "map: add mul");
    assert_string_equal(step.fuser, "org.frit.blocks/map");
    assert_string_equal(step.end, "all");
    assert_true(step.score > 0);
    assert_int_equal(step.flags, 0);
    assert_int_equal(step.n_ops, 2);
    assert_int_equal(step.ops[1], 1);
    assert_string_equal(step.op_names[1], "mul");
    assert_string_equal(step.op_texts[1], "%2 = mul %1, 2.0");
    assert_int_equal(step.n_in, 1);
    assert_int_equal(step.in[0], 0);
    assert_int_equal(step.n_out, 1);
    assert_int_equal(step.out[0], 2);
    assert_string_equal(step.out_types[0], "f32[2, 3]");
    assert_int_equal(frit_inspection_step_at(seen, 0, 1, &step), FRIT_INVALID);
    assert_int_equal(frit_inspection_step_at(seen, 1, 0, &step), FRIT_INVALID);
    text = frit_inspection_text(seen);
    assert_string_equal(text, "run 0, stream 0: 2 ops, 1 steps, 24 bytes read, 24 bytes stored\n"
                              "  0: map: add mul | org.frit.blocks/map, score 168, all"
                              " | reads %0 f32[2, 3] | stores %2 f32[2, 3]\n"
                              "     %1 = add %0, 1.0\n"
                              "     %2 = mul %1, 2.0\n"
                              "tensors 1 before, 2 after; buffers 1 before, 2 after\n");
    frit_free(text);
    frit_inspection_free(seen);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
}

static void test_single_steps_say_what_became_of_them(void **state)
{
    const frit_setting unfused = {"fusion", "enabled", "no"};
    frit_step_desc step = {.struct_size = sizeof(step)};
    frit_tensor *x, *y;
    frit_inspection *seen;
    frit_scope scope;
    struct rig rig;

    (void)state;
    open_fused(&rig, &unfused);
    x = some(&rig);
    assert_int_equal(frit_inspect_start(rig.dev, NULL), FRIT_OK);
    scope = frit_scope_begin(rig.dev);
    y = frit_reshape(x, FRIT_SHAPE(3, 2));
    frit_exp(y);
    y = frit_keep(frit_neg(frit_add_f(y, 1)));
    frit_scope_end(scope);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, NULL), FRIT_OK);
    assert_int_equal(frit_inspection_step_at(seen, 0, 0, &step), FRIT_OK);
    assert_int_equal(step.flags, FRIT_STEP_VIEW);
    assert_int_equal(step.bytes_out, 0);
    assert_int_equal(frit_inspection_step_at(seen, 0, 1, &step), FRIT_OK);
    assert_string_equal(step.label, "exp");
    assert_int_equal(step.flags, FRIT_STEP_SKIPPED);
    assert_int_equal(step.bytes_out, 0);
    assert_int_equal(frit_inspection_step_at(seen, 0, 2, &step), FRIT_OK);
    assert_int_equal(step.flags, 0);
    assert_string_equal(step.fuser, "");
    assert_string_equal(step.end, "single");
    assert_int_equal(step.bytes_out, 24);
    assert_int_equal(frit_inspection_step_at(seen, 0, 3, &step), FRIT_OK);
    assert_string_equal(step.label, "neg");
    assert_int_equal(step.flags, FRIT_STEP_IN_PLACE);
    frit_inspection_free(seen);
    frit_release(x);
    frit_release(y);
    rig_close(&rig);
}

/* A known plan is replayed except under inspection. */
static void test_known_plans_are_seen(void **state)
{
    const frit_setting unfused = {"fusion", "enabled", "no"};
    frit_inspection_desc about = {.struct_size = sizeof(about)};
    frit_step_desc step = {.struct_size = sizeof(step)};
    frit_inspection *seen;
    frit_tensor *x;
    struct rig rig;

    (void)state;
    open_fused(&rig, &unfused);
    x = some(&rig);
    for (int i = 0; i < 6; i++) {
        if (i == 3)
            assert_int_equal(frit_inspect_start(rig.dev, NULL), FRIT_OK);
        frit_release(record_chain(&rig, x));
    }
    frit_release(frit_add(x, x));
    frit_sync(rig.dev, NULL);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, NULL), FRIT_OK);
    frit_inspection_about(seen, &about);
    assert_int_equal(about.n_runs, 4);
    assert_int_equal(frit_inspection_step_at(seen, 2, 0, &step), FRIT_OK);
    assert_string_equal(step.label, "add");
    assert_int_equal(frit_inspection_step_at(seen, 3, 0, &step), FRIT_OK);
    assert_int_equal(step.n_in, 1); /* an operand that occurs twice */
    frit_inspection_free(seen);
    frit_release(x);
    rig_close(&rig);
}

static void test_wrong_use_is_reported(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_inspection_desc about = {.struct_size = FRIT_END_OF(frit_inspection_desc, n_runs)};
    frit_inspection *seen;
    struct rig rig;

    (void)state;
    open_fused(&rig, NULL);
    assert_int_equal(frit_inspect_start(NULL, &err), FRIT_INVALID);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, &err), FRIT_INVALID);
    assert_null(seen);
    assert_string_equal(err.text, "inspect_stop: reference:0 is not being inspected");
    assert_int_equal(frit_inspect_start(rig.dev, &err), FRIT_OK);
    assert_int_equal(frit_inspect_start(rig.dev, &err), FRIT_BUSY);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, &err), FRIT_OK);
    about.tensors_before = 77;
    assert_int_equal(frit_inspection_about(seen, &about), FRIT_OK);
    assert_int_equal(about.n_runs, 0);
    assert_int_equal(about.tensors_before, 77); /* beyond what the caller knows */
    about.struct_size = 0;
    assert_int_equal(frit_inspection_about(seen, &about), FRIT_INVALID);
    assert_int_equal(frit_inspection_about(NULL, &about), FRIT_INVALID);
    assert_null(frit_inspection_text(NULL));
    frit_inspection_free(seen);
    frit_inspection_free(NULL);
    assert_int_equal(frit_trace_stop(rig.dev, &err), FRIT_INVALID);
    assert_string_equal(err.text, "trace_stop: reference:0 is not being traced");
    assert_int_equal(frit_trace_start(rig.dev, NULL, &err), FRIT_INVALID);
    assert_int_equal(frit_trace_start(rig.dev, "/no/such/folder", &err), FRIT_IO);
    assert_int_equal(frit_inspect_start(rig.dev, &err), FRIT_OK); /* the close ends it */
    rig_close(&rig);
}

/* Whatever allocation fails, there is an error or all of it, and nothing is lost. */
static void test_the_inspector_without_memory(void **state)
{
    frit_inspection *seen = NULL;
    frit_tensor *x;
    struct rig rig;
    bool done = false;

    (void)state;
    open_fused(&rig, NULL);
    x = some(&rig);
    frit_release(record_chain(&rig, x));
    for (long n = 0; !done; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = frit_inspect_start(rig.dev, NULL);
        if (!st) {
            frit_release(record_chain(&rig, x));
            st = frit_inspect_stop(rig.dev, &seen, NULL);
        }
        done = !failing_alloc_disarm();
        assert_true(st == FRIT_OK || st == FRIT_NO_HOST_MEMORY);
        assert_true(!done || st == FRIT_OK);
        frit_inspection_free(seen);
        seen = NULL;
        frit_sync(rig.dev, NULL);
    }
    frit_release(x);
    rig_close(&rig);
}

/* ---- what is left ---- */

static void test_leaks_are_listed(void **state)
{
    frit_tensor *x, *y;
    frit_scope scope;
    struct rig rig;
    char *text;

    (void)state;
    open_fused(&rig, NULL);
    assert_int_equal(frit_leaks(rig.dev, &text), 0);
    assert_null(text);
    x = some(&rig);
    scope = frit_scope_begin(rig.dev);
    y = frit_ref(frit_exp(x));
    assert_int_equal(frit_leaks(rig.dev, &text), 4);
    assert_string_equal(text, "stream 0: 1 op is queued\n"
                              "tensor f32[2, 3], ready, 1 owner, made by the program, of stream 0\n"
                              "tensor f32[2, 3], pending, 2 owners, made by exp, of stream 0\n"
                              "1 buffer with 64 bytes\n");
    frit_free(text);
    frit_scope_end(scope);
    assert_int_equal(frit_leaks(rig.dev, NULL), 4); /* two tensors, two buffers */
    frit_release(x);
    frit_release(y);
    assert_int_equal(frit_leaks(rig.dev, &text), 0);
    assert_null(text);
    rig_close(&rig);
}

/* ---- traces ---- */

struct folder {
    char path[64];
};

static void folder_make(struct folder *folder)
{
    strcpy(folder->path, "/tmp/frit-trace-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

static void folder_drop(const struct folder *folder)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", folder->path);
    assert_int_equal(system(command), 0);
}

/* Runs the recording; `out` gets the elements of its only output. */
static void run_again(struct rig *rig, const struct folder *folder, uint64_t n_ops,
                      uint64_t n_inputs, float *out, uint64_t bytes)
{
    frit_port ports[8] = {0}, port = {.struct_size = sizeof(port)};
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *inputs[8], *output;
    frit_graph *graph;
    char path[128];

    snprintf(path, sizeof(path), "%s/trace.frit", folder->path);
    if (frit_graph_load(path, &graph, &err))
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < n_inputs; i++) {
        ports[i].struct_size = sizeof(frit_port);
        assert_int_equal(frit_graph_input_at(graph, i, &ports[i]), FRIT_OK);
        inputs[i] = frit_load_npy(rig->dev, ports[i].file);
    }
    assert_int_equal(frit_graph_input_at(graph, n_inputs, &port), FRIT_INVALID);
    if (frit_graph_bind(graph, ports, n_inputs, &err) ||
        frit_graph_run(graph, rig->dev, inputs, n_inputs, &output, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(frit_graph_op_count(graph), n_ops);
    assert_int_equal(frit_read(frit_take(output), out, bytes, NULL), FRIT_OK);
    for (uint64_t i = 0; i < n_inputs; i++)
        frit_release(inputs[i]);
    frit_graph_free(graph);
}

/* A view from before, an op that was queued before, elements that are replaced on the way; what
 * dies with its use, whose buffer nobody may overwrite until its file is written. */
static void test_a_trace_has_what_was_used(void **state)
{
    float have[6], again[6];
    struct folder folder;
    frit_tensor *x, *t, *early, *y;
    struct rig rig;

    (void)state;
    folder_make(&folder);
    open_fused(&rig, NULL);
    x = some(&rig);
    t = frit_permute(x, FRIT_AXES(1, 0));
    early = frit_exp(t);
    assert_int_equal(frit_trace_start(rig.dev, folder.path, NULL), FRIT_OK);
    assert_int_equal(frit_trace_start(rig.dev, folder.path, NULL), FRIT_BUSY);
    y = frit_add(frit_take(t), frit_take(early));
    y = frit_mul(frit_take(y), frit_take(frit_reshape(x, FRIT_SHAPE(3, 2))));
    assert_int_equal(frit_write(x, (const float[]){6, 5, 4, 3, 2, 1}, 24, NULL), FRIT_OK);
    y = frit_sub(frit_take(y), frit_take(frit_reshape(x, FRIT_SHAPE(3, 2))));
    frit_release(x);
    assert_int_equal(frit_trace_stop(rig.dev, NULL), FRIT_OK);
    assert_int_equal(frit_read(frit_take(y), have, sizeof(have), NULL), FRIT_OK);
    run_again(&rig, &folder, 5, 4, again, sizeof(again));
    assert_memory_equal(have, again, sizeof(have));
    rig_close(&rig);
    folder_drop(&folder);
}

/* A result that was read and released is an output; one that was only released is none. */
static void test_what_was_read_is_an_output(void **state)
{
    float have[6], again[6];
    struct folder folder;
    frit_tensor *x, *y;
    struct rig rig;

    (void)state;
    folder_make(&folder);
    open_fused(&rig, NULL);
    x = some(&rig);
    assert_int_equal(frit_trace_start(rig.dev, folder.path, NULL), FRIT_OK);
    y = frit_neg(x);
    frit_release(frit_exp(y));
    assert_int_equal(frit_read(frit_take(y), have, sizeof(have), NULL), FRIT_OK);
    frit_release(x);
    assert_int_equal(frit_trace_stop(rig.dev, NULL), FRIT_OK);
    run_again(&rig, &folder, 2, 1, again, sizeof(again));
    assert_memory_equal(have, again, sizeof(have));
    rig_close(&rig);
    folder_drop(&folder);
}

struct task {
    struct rig *rig;
    frit_tensor *shared, *result;
};

static void *work(void *ctx)
{
    struct task *task = ctx;
    frit_tensor *y = frit_add_f(task->shared, 1);

    for (int i = 0; i < 50; i++)
        y = frit_mul_f(frit_take(y), 0.5);
    task->result = y;
    frit_flush(task->rig->dev, NULL);
    return NULL;
}

/* Two threads use a value that the first one has made, and theirs meet again. */
static void test_threads_are_one_program(void **state)
{
    float have[6], again[6];
    struct task tasks[2];
    struct folder folder;
    pthread_t threads[2];
    frit_tensor *x, *sum;
    struct rig rig;

    (void)state;
    folder_make(&folder);
    open_fused(&rig, NULL);
    x = some(&rig);
    assert_int_equal(frit_trace_start(rig.dev, folder.path, NULL), FRIT_OK);
    x = frit_neg(frit_take(x));
    for (int i = 0; i < 2; i++) {
        tasks[i] = (struct task){&rig, x, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &tasks[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    sum = frit_add(frit_take(tasks[0].result), frit_take(tasks[1].result));
    frit_release(x);
    assert_int_equal(frit_trace_stop(rig.dev, NULL), FRIT_OK);
    assert_int_equal(frit_read(frit_take(sum), have, sizeof(have), NULL), FRIT_OK);
    run_again(&rig, &folder, 104, 1, again, sizeof(again));
    assert_memory_equal(have, again, sizeof(have));
    rig_close(&rig);
    folder_drop(&folder);
}

/* A recording that lacked memory says so; it is never a wrong one. */
static void test_a_trace_without_memory(void **state)
{
    struct folder folder;
    frit_tensor *x;
    struct rig rig;
    bool done = false;

    (void)state;
    folder_make(&folder);
    open_fused(&rig, NULL);
    x = some(&rig);
    frit_release(record_chain(&rig, x));
    for (long n = 0; !done; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = frit_trace_start(rig.dev, folder.path, NULL);
        if (!st) {
            frit_tensor *y = record_chain(&rig, x);

            st = frit_trace_stop(rig.dev, NULL);
            frit_release(y);
        }
        done = !failing_alloc_disarm();
        assert_true(st == FRIT_OK || st == FRIT_NO_HOST_MEMORY);
        assert_true(!done || st == FRIT_OK);
        frit_sync(rig.dev, NULL);
    }
    frit_release(x);
    rig_close(&rig);
    folder_drop(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_is_seen),
        cmocka_unit_test(test_single_steps_say_what_became_of_them),
        cmocka_unit_test(test_known_plans_are_seen),
        cmocka_unit_test(test_wrong_use_is_reported),
        cmocka_unit_test(test_the_inspector_without_memory),
        cmocka_unit_test(test_leaks_are_listed),
        cmocka_unit_test(test_a_trace_has_what_was_used),
        cmocka_unit_test(test_what_was_read_is_an_output),
        cmocka_unit_test(test_threads_are_one_program),
        cmocka_unit_test(test_a_trace_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
