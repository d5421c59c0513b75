/* SPDX-License-Identifier: Apache-2.0 */
/* Custom ops in text and in traces: parsed, printed, parsed again, with every kind of attribute. */
#include <sys/stat.h>
#include <unistd.h>

#include <frit/inspect.h>

#include "api/custom_rig.h"

static frit_graph *parse(const char *text)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph;

    if (frit_graph_parse("test", text, strlen(text), &graph, &err) ||
        frit_graph_bind(graph, NULL, 0, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void expect_refused(const char *text, const char *part)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph = NULL;

    assert_int_equal(frit_graph_parse("test", text, strlen(text), &graph, &err), FRIT_INVALID);
    if (!strstr(err.text, part))
        fail_msg("'%s' does not contain '%s'", err.text, part);
}

/* Runs a program without inputs whose only output has `n` floats. */
static void run(frit_device *device, const frit_graph *graph, float *out, size_t n)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *result;

    if (frit_graph_run(graph, device, NULL, 0, &result, 1, &err))
        fail_msg("%s", err.text);
    if (frit_read(result, out, n * sizeof(*out), NULL))
        fail_msg("%s", frit_tensor_error(result));
    frit_release(result);
}

/* ---- programs ---- */

static const char every_kind[] =
    "x = full 2.0, dtype=f32, dims=[2, 3]\n"
    "y = org.frit.test.axpby/1 x, x, alpha=0.5, beta=-1.5\n"
    "output z = org.frit.test.crop/1 y, dims=[4], dtype=f32, order=[-1, 0], where=[1::, :], "
    "window=[0, 0, 3], along=-1, wrap=true\n";

static void every_kind_of_attribute_goes_both_ways(void **state)
{
    struct plugin_rig rig = {0};
    frit_graph *graph, *again;
    char *printed, *reprinted;
    float out[4];

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    graph = parse(every_kind);
    printed = frit_graph_print(graph);
    assert_string_equal(printed,
                        "x = full 2.0, dtype=f32, dims=[2, 3]\n"
                        "y = org.frit.test.axpby/1 x, x, alpha=0.5, beta=-1.5\n"
                        "output z = org.frit.test.crop/1 y, dims=[4], dtype=f32, order=[1, 0], "
                        "where=[1:2, 0:3], window=[0, 0, 3], along=1, wrap=1\n");
    again = parse(printed);
    reprinted = frit_graph_print(again);
    assert_string_equal(printed, reprinted);
    for (int i = 0; i < 2; i++) {
        run(rig.dev, i ? again : graph, out, 4);
        for (int k = 0; k < 4; k++) /* the sum of y, then what the attributes add */
            assert_float_equal(out[k], -12 + 1 + 2 * 1 + 4 * 3 + 100 * 1 + 1000 * 2, 0);
    }
    frit_free(printed);
    frit_free(reprinted);
    frit_graph_free(graph);
    frit_graph_free(again);
    rig_close(&rig);
}

static void many_operands_and_results_on_demand(void **state)
{
    struct plugin_rig rig = {0};
    frit_graph *graph;
    char *printed;
    float out[2];

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    graph = parse("a = full 1.0, dtype=f32, dims=[2]\n"
                  "s, n = org.frit.test.fold/1 a, a, a\n"
                  "m = cast n, dtype=f32\n"
                  "u = org.frit.test.scale/1 m, 2\n"
                  "output t = org.frit.test.fold/1 s, u\n");
    printed = frit_graph_print(graph);
    assert_non_null(strstr(printed, "s, n = org.frit.test.fold/1 a, a, a\n"));
    run(rig.dev, graph, out, 2);
    assert_non_null(strstr(printed, "u = org.frit.test.scale/1 m, 2.0\n"));
    assert_float_equal(out[0], 9, 0);
    assert_float_equal(out[1], 9, 0);
    frit_free(printed);
    frit_graph_free(graph);
    rig_close(&rig);
}

static void effects_run_without_results(void **state)
{
    struct plugin_rig rig = {0};
    static struct logged logged;
    frit_graph *graph;
    float out[2];

    (void)state;
    rig_set(&rig, "frit", "fallback", "reference:0");
    custom_open(&rig, "custom:0", &logged);
    graph = parse("a = full 7.0, dtype=f32, dims=[2]\n"
                  "org.frit.test.note/1 a\n"
                  "b = org.frit.test.tick/1 a\n"
                  "org.frit.test.note/1 b\n"
                  "output c = neg a\n");
    for (int i = 0; i < 3; i++) {
        logged.effects[0] = '\0';
        run(rig.dev, graph, out, 2);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        assert_string_equal(logged.effects, "note 7\ntick 7\nnote 7\n");
    }
    frit_graph_free(graph);
    rig_close(&rig);
}

static void faults_are_reported_with_their_place(void **state)
{
    struct plugin_rig rig = {0};

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    expect_refused(
        "x = full 1, dtype=f32, dims=[2]\ny = org.frit.test.axpbi/1 x, x\n",
        "test:2:5: unknown op 'org.frit.test.axpbi/1': no plugin offers it; looked at: ");
    expect_refused("x = full 1, dtype=f32, dims=[2]\ny = org.frit.test.axpby/2 x, x\n",
                   "did you mean 'org.frit.test.axpby/1'?");
    expect_refused("x = full 1, dtype=f32, dims=[2]\norg.frit.other/1 x\n",
                   "test:2:1: unknown op 'org.frit.other/1'");
    expect_refused("x = full 1, dtype=f32, dims=[2]\norg.frit.test.tick/1 x\n",
                   "test:2:1: expected a name, found 'org.frit.test.tick/1'");
    expect_refused("a.b/1 = full 1, dtype=f32, dims=[2]\n", "test:1:1: unknown op 'a.b/1'");
    expect_refused("x = full 1, dtype=f32, dims=[2]\ny = neg a.b/1\n", "expected an operand");
    expect_refused("x = full 1, dtype=f32, dims=[2]\ny = org.frit.test.axpby/1 x, x\n",
                   "needs the attribute alpha: factor of x");
    rig_close(&rig);
}

/* ---- draws ---- */

static void draw(frit_device *device, uint32_t out[4])
{
    const int64_t dims[] = {4};
    const frit_attr attr = {.name = "dims", .list = dims, .n_list = 1};
    frit_tensor *noise = call_op(device, "org.frit.test.noise/1", NULL, NULL, &attr, 1);

    assert_int_equal(frit_tensor_dtype(noise), FRIT_U32);
    assert_int_equal(frit_read(frit_take(noise), out, 4 * sizeof(*out), NULL), FRIT_OK);
}

static void draws_take_counters_like_rows(void **state)
{
    struct plugin_rig rig = {0};
    uint32_t first[4], second[4], row[4];
    frit_tensor *raw;

    (void)state;
    custom_open(&rig, "reference:0", NULL);
    frit_seed(rig.host, 42);
    draw(rig.dev, first);
    draw(rig.dev, second);
    assert_memory_not_equal(first, second, sizeof(first));
    frit_seed(rig.host, 42);
    raw = frit_random_raw(rig.dev, FRIT_U32, FRIT_SHAPE(4));
    assert_int_equal(frit_read(frit_take(raw), row, sizeof(row), NULL), FRIT_OK);
    assert_memory_equal(first, row, sizeof(first));
    draw(rig.dev, row);
    assert_memory_equal(second, row, sizeof(second));
    rig_close(&rig);
}

/* ---- traces ---- */

static char *file_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");

    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void traces_have_them_by_name(void **state)
{
    char folder[] = "/tmp/frit-custom-XXXXXX", path[64], command[64];
    struct plugin_rig rig = {0};
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph;
    frit_tensor *x, *r;
    char *text;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/trace", folder);
    custom_open(&rig, "custom:0", NULL);
    x = filled(rig.dev, 2);
    assert_int_equal(frit_trace_start(rig.dev, path, NULL), FRIT_OK);
    r = axpby(rig.dev, 3, x, 0.25, x);
    note(r);
    expect_filled(tick(frit_take(r)), 6.5);
    assert_int_equal(frit_trace_stop(rig.dev, NULL), FRIT_OK);
    snprintf(path, sizeof(path), "%s/trace/trace.frit", folder);
    text = file_text(path);
    assert_non_null(strstr(text, "= " AXPBY " "));
    assert_non_null(strstr(text, ", alpha=3.0, beta=0.25\n"));
    assert_non_null(strstr(text, "\n" NOTE " "));
    assert_int_equal(frit_graph_load(path, &graph, &err), FRIT_OK);
    frit_graph_free(graph);
    frit_free(text);
    frit_release(x);
    rig_close(&rig);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_attribute_goes_both_ways),
        cmocka_unit_test(many_operands_and_results_on_demand),
        cmocka_unit_test(effects_run_without_results),
        cmocka_unit_test(faults_are_reported_with_their_place),
        cmocka_unit_test(draws_take_counters_like_rows),
        cmocka_unit_test(traces_have_them_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
