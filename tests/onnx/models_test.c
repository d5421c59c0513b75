/* SPDX-License-Identifier: Apache-2.0 */
/* The models of tests/data/onnx (make.py) on the configured device: each output is that of ONNX
 * Runtime. */
#include "host/api/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 8 };

/* A model with the tensors of its files. */
struct loaded {
    frit_graph *graph;
    frit_port ports[MOST];
    frit_tensor *inputs[MOST];
    int64_t known[64];
    uint64_t n_inputs;
};

static frit_device *open_device(frit_host **host)
{
    frit_device *device;
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_host_open(NULL, host, &err) || frit_device_open(*host, NULL, &device, &err))
        fail_msg("%s", err.text);
    return device;
}

/* Shapes that are inputs are given when the model is bound. */
static void load(frit_device *device, const char *name, struct loaded *out)
{
    frit_err err = {.struct_size = sizeof(err)};
    char path[128];

    *out = (struct loaded){0};
    snprintf(path, sizeof(path), "tests/data/onnx/%s.onnx", name);
    if (frit_graph_load(path, &out->graph, &err))
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < MOST; i++) {
        frit_port *port = &out->ports[i];

        port->struct_size = sizeof(*port);
        if (frit_graph_input_at(out->graph, i, port))
            break;
        snprintf(path, sizeof(path), "tests/data/onnx/%s.in%d.npy", name, (int)i);
        out->inputs[i] = frit_load_npy(device, path);
        if (frit_tensor_status(out->inputs[i]))
            fail_msg("%s", frit_tensor_error(out->inputs[i]));
        port->dtype = frit_tensor_dtype(out->inputs[i]);
        port->dims = frit_tensor_dims(out->inputs[i]);
        if (port->dtype == FRIT_I64 && frit_tensor_bytes(out->inputs[i]) <= sizeof(out->known)) {
            port->data = out->known;
            assert_int_equal(
                frit_read(out->inputs[i], out->known, frit_tensor_bytes(out->inputs[i]), &err),
                FRIT_OK);
        }
        out->n_inputs++;
    }
    if (frit_graph_bind(out->graph, out->ports, out->n_inputs, &err))
        fail_msg("%s", err.text);
}

static void compare(frit_tensor *have, frit_tensor *want, const char *name, uint64_t index)
{
    frit_dims a = frit_tensor_dims(have), b = frit_tensor_dims(want);
    frit_tensor *difference;
    float worst;

    assert_int_equal(frit_tensor_status(have), FRIT_OK);
    assert_int_equal(frit_tensor_dtype(have), frit_tensor_dtype(want));
    assert_int_equal(a.rank, b.rank);
    assert_memory_equal(a.dim, b.dim, (size_t)a.rank * sizeof(a.dim[0]));
    difference = frit_max_abs(frit_sub(frit_cast(have, FRIT_F32), frit_cast(want, FRIT_F32)));
    assert_int_equal(frit_read(frit_take(difference), &worst, sizeof(worst), NULL), FRIT_OK);
    if (!(worst <= 2e-5F))
        fail_msg("%s: output %d differs by up to %g", name, (int)index, (double)worst);
}

static void run(frit_device *device, const char *name, struct loaded *model)
{
    frit_tensor *outputs[MOST], *want;
    frit_port port = {.struct_size = sizeof(port)};
    frit_err err = {.struct_size = sizeof(err)};
    uint64_t n = 0;
    char path[128];

    while (frit_graph_output_at(model->graph, n, &port) == FRIT_OK)
        n++;
    assert_in_range(n, 1, MOST);
    if (frit_graph_run(model->graph, device, model->inputs, model->n_inputs, outputs, n, &err))
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < n; i++) {
        frit_scope scope = frit_scope_begin(device);

        snprintf(path, sizeof(path), "tests/data/onnx/%s.out%d.npy", name, (int)i);
        want = frit_load_npy(device, path);
        compare(outputs[i], want, name, i);
        frit_scope_end(scope);
        frit_release(outputs[i]);
    }
}

static void drop(struct loaded *model)
{
    for (uint64_t i = 0; i < model->n_inputs; i++)
        frit_release(model->inputs[i]);
    frit_graph_free(model->graph);
}

static const char *const names[] = {"mlp",     "cnn",      "old",     "lstm",       "quantised",
                                    "control", "function", "shapes",  "statistics", "tiles",
                                    "places",  "types",    "weights", "traces"};

static void test_models_give_what_they_should(void **state)
{
    frit_host *host;
    frit_device *device = open_device(&host);

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct loaded model;

        load(device, names[i], &model);
        run(device, names[i], &model);
        run(device, names[i], &model); /* with the constants that are there already */
        drop(&model);
    }
    frit_device_close(device);
    frit_host_close(host);
}

/* What convert writes runs as the model does. */
static void test_saved_models_are_text_programs(void **state)
{
    frit_host *host;
    frit_device *device = open_device(&host);
    char folder[] = "/tmp/frit-onnx-XXXXXX", path[128], command[128];
    frit_err err = {.struct_size = sizeof(err)};
    struct loaded model;
    frit_graph *text;
    char *a;

    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        load(device, names[i], &model);
        if (frit_graph_save(model.graph, folder, &err))
            fail_msg("%s", err.text);
        snprintf(path, sizeof(path), "%s/%s.frit", folder, names[i]);
        if (frit_graph_load(path, &text, &err))
            fail_msg("%s", err.text);
        a = frit_graph_print(model.graph);
        assert_non_null(a);
        assert_non_null(strstr(a, "output "));
        frit_free(a);
        frit_graph_free(text);
        drop(&model);
    }
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    frit_device_close(device);
    frit_host_close(host);
}

/* Known statistics of a normalisation are gone from what runs; those that are inputs are not. */
static void test_known_statistics_are_two_constants(void **state)
{
    frit_host *host;
    frit_device *device = open_device(&host);
    struct loaded known, given;
    char *text;

    (void)state;
    load(device, "cnn", &known);
    text = frit_graph_print(known.graph);
    assert_non_null(text);
    assert_null(strstr(text, "batch_norm"));
    assert_null(strstr(text, "sqrt"));
    frit_free(text);
    load(device, "statistics", &given);
    text = frit_graph_print(given.graph);
    assert_non_null(text);
    assert_non_null(strstr(text, "batch_norm"));
    frit_free(text);
    drop(&known);
    drop(&given);
    frit_device_close(device);
    frit_host_close(host);
}

static uint64_t count_ops(frit_device *device)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(device, &stats);
    return stats.ops;
}

/* Of eleven nodes three ops depend on the input and are none that another stands for: slice, mul
 * and matmul, with a reshape; the four of the weights alone run once. */
static void test_what_need_not_run_does_not(void **state)
{
    frit_host *host;
    frit_device *device = open_device(&host);
    struct loaded model;
    frit_tensor *y;
    uint64_t before, between;

    (void)state;
    load(device, "traces", &model);
    assert_int_equal(frit_graph_op_count(model.graph), 8);
    before = count_ops(device);
    assert_int_equal(frit_graph_run(model.graph, device, model.inputs, 1, &y, 1, NULL), FRIT_OK);
    frit_release(y);
    between = count_ops(device);
    assert_int_equal(between - before, 8);
    assert_int_equal(frit_graph_run(model.graph, device, model.inputs, 1, &y, 1, NULL), FRIT_OK);
    frit_release(y);
    assert_int_equal(count_ops(device) - between, 4);
    drop(&model);
    frit_device_close(device);
    frit_host_close(host);
}

/* They belong to no scope of the caller's. */
static void test_constants_outlive_scopes(void **state)
{
    frit_host *host;
    frit_device *device = open_device(&host);
    struct loaded model;
    frit_scope outer, inner;
    frit_tensor *y;

    (void)state;
    load(device, "traces", &model);
    outer = frit_scope_begin(device);
    inner = frit_scope_begin(device);
    assert_int_equal(frit_graph_run(model.graph, device, model.inputs, 1, &y, 1, NULL), FRIT_OK);
    frit_scope_end(inner);
    frit_scope_end(outer);
    run(device, "traces", &model);
    drop(&model);
    frit_device_close(device);
    frit_host_close(host);
}

static frit_status bind_cnn(const char *folder, frit_err *err)
{
    frit_port port = {
        .struct_size = sizeof(port), .dtype = FRIT_F32, .dims = FRIT_SHAPE(2, 3, 6, 7)};
    frit_graph *graph;
    frit_status st;
    char path[128];

    snprintf(path, sizeof(path), "%s/cnn.onnx", folder);
    if (frit_graph_load(path, &graph, err))
        fail_msg("%s", err->text);
    st = frit_graph_bind(graph, &port, 1, err);
    frit_graph_free(graph);
    return st;
}

/* A link to a file outside of the model's folder is refused, one to a file beside it is not. */
static void test_external_data_stay_in_the_folder(void **state)
{
    char folder[] = "/tmp/frit-onnx-XXXXXX", here[512], command[1200];
    frit_err err = {.struct_size = sizeof(err)};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(command, sizeof(command),
             "cp tests/data/onnx/cnn.onnx %s && ln -s %s/tests/data/onnx/cnn.bin %s/cnn.bin",
             folder, here, folder);
    assert_int_equal(system(command), 0);
    assert_int_not_equal(bind_cnn(folder, &err), FRIT_OK);
    assert_non_null(strstr(err.text, "outside of the folder of the model"));
    snprintf(command, sizeof(command),
             "rm %s/cnn.bin; cp tests/data/onnx/cnn.bin %s/weights && ln -s weights %s/cnn.bin",
             folder, folder, folder);
    assert_int_equal(system(command), 0);
    if (bind_cnn(folder, &err))
        fail_msg("%s", err.text);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_give_what_they_should),
        cmocka_unit_test(test_saved_models_are_text_programs),
        cmocka_unit_test(test_known_statistics_are_two_constants),
        cmocka_unit_test(test_what_need_not_run_does_not),
        cmocka_unit_test(test_constants_outlive_scopes),
        cmocka_unit_test(test_external_data_stay_in_the_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
