/* SPDX-License-Identifier: Apache-2.0 */
/* Running text programs: who owns inputs and outputs afterwards. */
#include "api/rig.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const float two[2] = {1, 2};

/* y uses the input twice; the outputs are the input itself, and y twice. */
static frit_graph *make_graph(void)
{
    static const char text[] = "input x : f32[2]\n"
                               "y = add x, x\n"
                               "z = mul y, x\n"
                               "output x, y, y\n";
    const frit_port port = {.struct_size = sizeof(port), .dtype = FRIT_F32, .dims = FRIT_SHAPE(2)};
    frit_graph *graph;
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_graph_parse("test", text, sizeof(text) - 1, &graph, &err) ||
        frit_graph_bind(graph, &port, 1, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void test_outputs_are_tensors_of_their_own(void **state)
{
    frit_graph *graph = make_graph();
    frit_tensor *out[3];
    struct rig rig;
    float read[2];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2), two);

    assert_int_equal(frit_graph_run(graph, rig.dev, &x, 1, out, 3, NULL), FRIT_OK);
    assert_ptr_not_equal(out[0], x);
    assert_ptr_not_equal(out[1], out[2]);
    frit_release(x);
    assert_int_equal(frit_read(frit_take(out[0]), read, sizeof(read), NULL), FRIT_OK);
    assert_true(read[1] == 2);
    assert_int_equal(frit_read(frit_take(out[1]), read, sizeof(read), NULL), FRIT_OK);
    assert_int_equal(frit_read(frit_take(out[2]), read, sizeof(read), NULL), FRIT_OK);
    assert_true(read[1] == 4);
    frit_graph_free(graph);
    rig_close(&rig);
}

static void test_outputs_belong_to_the_open_scope(void **state)
{
    frit_graph *graph = make_graph();
    frit_tensor *out[3];
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_scope scope = frit_scope_begin(rig.dev);
    frit_tensor *x = rig_f32(&rig, FRIT_SHAPE(2), two);

    assert_int_equal(frit_graph_run(graph, rig.dev, &x, 1, out, 3, NULL), FRIT_OK);
    frit_scope_end(scope);
    assert_int_equal(rig_stats(&rig).tensors_now, 0);
    frit_graph_free(graph);
    rig_close(&rig);
}

/* Elements in the text, a renamed output, and what has no value. */
static void test_defaults_and_names(void **state)
{
    static const char text[] = "const k : f32[?] = [3, 4]\ninput x : f32[2]\n"
                               "y = mul x, k\noutput \"out:0\" = y\n";
    frit_port ports[2] = {{.struct_size = sizeof(ports[0])}, {.struct_size = sizeof(ports[0])}};
    frit_tensor *in[2], *out, *none;
    frit_graph *graph;
    struct rig rig;
    float read[2];

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_graph_parse("test", text, sizeof(text) - 1, &graph, NULL), FRIT_OK);
    assert_int_equal(frit_graph_bind(graph, ports, 2, NULL), FRIT_OK);
    assert_int_equal(frit_graph_input_at(graph, 0, &ports[0]), FRIT_OK);
    assert_true(ports[0].is_const && !ports[0].file && ports[0].dims.dim[0] == 2);
    assert_int_equal(frit_graph_output_at(graph, 0, &ports[0]), FRIT_OK);
    assert_string_equal(ports[0].name, "out:0");
    in[0] = frit_graph_default(graph, 0, rig.dev);
    in[1] = rig_f32(&rig, FRIT_SHAPE(2), two);
    assert_int_equal(frit_graph_run(graph, rig.dev, in, 2, &out, 1, NULL), FRIT_OK);
    assert_int_equal(frit_read(frit_take(out), read, sizeof(read), NULL), FRIT_OK);
    assert_true(read[0] == 3 && read[1] == 8);
    none = frit_graph_default(graph, 1, rig.dev);
    assert_string_equal(frit_tensor_error(none),
                        "graph_default: the input x has no value in the program");
    frit_release(none);
    none = frit_graph_default(graph, 2, rig.dev);
    assert_string_equal(frit_tensor_error(none), "graph_default: no such input");
    frit_release(none);
    frit_release(in[0]);
    frit_release(in[1]);
    frit_graph_free(graph);
    rig_close(&rig);
}

/* A taken input serves every op that uses it, and is released at the end, also on failure. */
static void test_inputs_may_be_taken(void **state)
{
    frit_graph *graph = make_graph();
    frit_tensor *out[3];
    struct rig rig;
    float read[2];

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_tensor *x = frit_take(rig_f32(&rig, FRIT_SHAPE(2), two));

    assert_int_equal(frit_graph_run(graph, rig.dev, &x, 1, out, 3, NULL), FRIT_OK);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    assert_int_equal(frit_read(out[1], read, sizeof(read), NULL), FRIT_OK);
    assert_true(read[1] == 4);
    for (int i = 0; i < 3; i++)
        frit_release(out[i]);
    x = frit_take(rig_f32(&rig, FRIT_SHAPE(2), two));
    assert_int_equal(frit_graph_run(graph, rig.dev, &x, 1, out, 2, NULL), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    frit_graph_free(graph);
    rig_close(&rig);
}

/* What is no file is refused, and a pipe that nobody writes is not waited for. */
static void test_a_program_is_a_file(void **state)
{
    char folder[] = "/tmp/frit-graph-XXXXXX", pipe[64];
    const char *const paths[] = {pipe, folder, "/dev/zero"};

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (int i = 0; i < 3; i++) {
        frit_err err = {.struct_size = sizeof(err)};
        char text[128];
        frit_graph *graph;

        assert_int_equal(frit_graph_load(paths[i], &graph, &err), FRIT_IO);
        assert_null(graph);
        snprintf(text, sizeof(text), "%s: cannot be opened: not a regular file", paths[i]);
        assert_string_equal(err.text, text);
    }
    unlink(pipe);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_are_tensors_of_their_own),
        cmocka_unit_test(test_outputs_belong_to_the_open_scope),
        cmocka_unit_test(test_defaults_and_names),
        cmocka_unit_test(test_inputs_may_be_taken),
        cmocka_unit_test(test_a_program_is_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
