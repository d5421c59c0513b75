/* SPDX-License-Identifier: Apache-2.0 */
/* A program as people write them: opens a host, computes, looks at what it gets, prints OK.  It is
 * compiled into abi/snapshots once per minor and runs with every later libfrit of the same soname.
 *
 * It uses whatever a program is likely to: each struct that the caller fills or gets filled, macros
 * that carry numbers into the binary, every family of functions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/frit.h>
#include <frit/inspect.h>

static void want(int ok, int line)
{
    if (ok)
        return;
    fprintf(stderr, "application.c:%d is not as it was\n", line);
    exit(1);
}

#define WANT(test) want(!!(test), __LINE__)

enum { ROWS = 3, COLUMNS = 4, N = ROWS * COLUMNS };

static frit_host *host;
static frit_device *device;
static float x[N];
static unsigned log_lines;

static void count_lines(void *ctx, uint32_t level, const char *topic, const char *text)
{
    WANT(ctx == &log_lines && level >= 1 && topic && text);
    log_lines++;
}

/* ---- host and devices ---- */

static void open_device(void)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"frit", "seed", "7"}, {"frit", "surely_unknown", "1"}};
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = settings,
                                     .n_settings = 1,
                                     .log = count_lines,
                                     .log_ctx = &log_lines};
    const frit_host_params wrong = {
        .struct_size = sizeof(wrong), .settings = settings + 1, .n_settings = 1};
    frit_device *none = NULL;

    WANT(strlen(frit_version()) >= 3);
    WANT(strcmp(frit_status_name(FRIT_OK), "ok") == 0);
    WANT(strcmp(frit_dtype_name(FRIT_F32), "f32") == 0 && frit_dtype_of_name("i64") == FRIT_I64);
    WANT(frit_host_open(&wrong, &host, &err) < 0 && strstr(err.text, "surely_unknown"));
    frit_host_close(host);
    WANT(frit_host_open(&params, &host, &err) == FRIT_OK);
    WANT(frit_device_open(host, "surely-unknown:0", &none, &err) < 0 && !none && err.text[0]);
    WANT(frit_device_open(host, "reference:0", &device, &err) == FRIT_OK);
    WANT(strcmp(frit_device_name(device), "reference:0") == 0);
}

static void look_around(void)
{
    frit_device_desc about = {.struct_size = sizeof(about)};
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};
    frit_config_desc value = {.struct_size = sizeof(value)};
    uint64_t seed = 0;
    char *why = NULL;

    WANT(frit_device_info_at(host, 0, &about) == FRIT_OK && about.name[0] && about.plugin[0]);
    WANT(frit_device_info_at(host, 100000, &about) == FRIT_INVALID);
    WANT(frit_plugin_at(host, 0, &plugin) == FRIT_OK && plugin.path[0] && plugin.reason_name);
    for (uint64_t i = 0; frit_config_at(host, i, &value) == FRIT_OK; i++)
        seed += strcmp(value.key, "seed") == 0 && strcmp(value.value, "7") == 0 &&
                strcmp(value.origin, "program") == 0;
    WANT(seed == 1);
    WANT(frit_why(host, "reference", &why, NULL) == FRIT_OK && why[0]);
    frit_free(why);
    WANT(frit_op_support(device, FRIT_OP_add) != FRIT_SUPPORT_NONE);
}

/* ---- ops ---- */

static frit_tensor *input(void)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), x, sizeof(x));
}

static void compute(void)
{
    frit_tensor *a = input(), *mean = NULL, *view, *kept;
    frit_scope scope = frit_scope_begin(device);
    float sums[ROWS], corner[2], all[N];
    frit_read_item items[2];
    frit_dims strides;

    view = frit_transpose(a, 0, 1);
    view = frit_slice(view, FRIT_SLICES({0, 2, 1}, {1, 2, 1}));
    kept = frit_keep(frit_sum(frit_add_f(frit_mul(a, a), 1), .axes = FRIT_AXES(1), .keep = 1));
    frit_keep(view);
    frit_scope_end(scope);
    WANT(frit_tensor_dtype(kept) == FRIT_F32 && frit_tensor_dims(kept).rank == 2 &&
         frit_tensor_bytes(kept) == 12);
    WANT(frit_tensor_device(kept) == device && frit_tensor_strides(a, &strides, NULL) == FRIT_OK);
    WANT(strides.dim[0] == COLUMNS && strides.dim[1] == 1);
    items[0] = (frit_read_item){.tensor = kept, .data = sums, .bytes = sizeof(sums)};
    items[1] = (frit_read_item){.tensor = view, .data = corner, .bytes = sizeof(corner)};
    WANT(frit_read_many(items, 2, NULL) == FRIT_OK && items[1].status == FRIT_OK);
    WANT(sums[0] == 18 && sums[1] == 130 && corner[0] == 4 && corner[1] == 5);
    frit_release(kept);
    frit_release(view);

    mean = frit_softmax(frit_ref(a), 1);
    frit_release(a);
    WANT(frit_read(mean, all, sizeof(all), NULL) == FRIT_OK);
    WANT(fabsf(all[0] + all[1] + all[2] + all[3] - 1) < 1e-6f);
    WANT(frit_write(mean, x, sizeof(x), NULL) == FRIT_OK &&
         frit_read(mean, all, sizeof(all), NULL) == FRIT_OK);
    WANT(memcmp(all, x, sizeof(x)) == 0);
    frit_release(frit_to_device(frit_take(mean), device));
    frit_release(a);
}

/* By number with a record of attributes, and by name. */
static void call_generically(void)
{
    frit_tensor *a = input(), *out[2] = {NULL, NULL};
    const frit_input in[2] = {{.tensor = a}, {.scalar = frit_scalar_f(2)}};
    const frit_attrs_axes attrs = {.struct_size = sizeof(attrs), .axes = FRIT_AXES(0, 1)};
    const frit_call sum = {
        .struct_size = sizeof(sum), .op = FRIT_OP_sum, .n_in = 1, .in = in, .attrs = &attrs};
    const int64_t order[] = {1, 0};
    const frit_attr attr = {.name = "order", .list = order, .n_list = 2};
    const frit_named_call permute = {.struct_size = sizeof(permute),
                                     .name = "permute",
                                     .in = in,
                                     .n_in = 1,
                                     .attrs = &attr,
                                     .n_attrs = 1};
    const frit_named_call twice = {
        .struct_size = sizeof(twice), .name = "mul", .in = in, .n_in = 2};
    float total = 0, all[N];

    frit_op(device, &sum, out, 1);
    WANT(frit_read(out[0], &total, sizeof(total), NULL) == FRIT_OK && total == 66);
    frit_release(out[0]);
    frit_op_named(device, &permute, out, 1);
    frit_op_named(device, &twice, out + 1, 1);
    WANT(frit_tensor_dims(out[0]).dim[0] == COLUMNS);
    WANT(frit_read(out[1], all, sizeof(all), NULL) == FRIT_OK && all[N - 1] == 2 * x[N - 1]);
    for (int i = 0; i < 2; i++)
        frit_release(out[i]);
    frit_release(a);
}

static void fail(void)
{
    frit_tensor *a = input(), *b = frit_full(device, FRIT_F32, FRIT_SHAPE(5), 1);
    frit_tensor *wrong = frit_neg(frit_take(frit_add(a, b)));
    float all[N];

    WANT(frit_tensor_status(a) == FRIT_OK && frit_tensor_error(a)[0] == '\0');
    WANT(frit_tensor_status(wrong) == FRIT_INVALID && strstr(frit_tensor_error(wrong), "add"));
    WANT(frit_tensor_dtype(wrong) == FRIT_NO_DTYPE &&
         frit_read(wrong, all, sizeof(all), NULL) == FRIT_INVALID);
    WANT(frit_sync(device, NULL) == FRIT_INVALID && frit_sync(device, NULL) == FRIT_OK);
    frit_release(wrong);
    frit_release(a);
    frit_release(b);
}

/* ---- streams, text programs, what happened ---- */

static void stream(void)
{
    frit_stream *other = NULL, *before = NULL;
    float all[N];
    frit_tensor *a, *b;

    WANT(frit_stream_open(device, &other, NULL) == FRIT_OK);
    WANT(other && frit_stream_enter(device, other, &before, NULL) == FRIT_OK && !before);
    a = frit_neg(frit_take(input()));
    WANT(frit_stream_close(other, NULL) == FRIT_BUSY);
    WANT(frit_stream_enter(device, before, &before, NULL) == FRIT_OK && before == other);
    b = frit_neg(frit_take(a));
    WANT(frit_flush(device, NULL) == FRIT_OK && frit_sync_all(device, NULL) == FRIT_OK);
    WANT(frit_read(b, all, sizeof(all), NULL) == FRIT_OK && memcmp(all, x, sizeof(x)) == 0);
    frit_release(b);
    WANT(frit_stream_close(other, NULL) == FRIT_OK);
}

static void text_program(void)
{
    static const char text[] = "input x: f32[n, 4]\n"
                               "y = mul x, x\n"
                               "output y\n";
    frit_err err = {.struct_size = sizeof(err)};
    frit_port port = {.struct_size = sizeof(port)};
    frit_graph *graph = NULL;
    frit_tensor *a = input(), *y = NULL;
    float all[N];

    WANT(frit_graph_parse("broken", "input", 5, &graph, &err) < 0 && strstr(err.text, "broken:1"));
    WANT(frit_graph_parse("square", text, sizeof(text) - 1, &graph, &err) == FRIT_OK);
    WANT(frit_graph_input_at(graph, 0, &port) == FRIT_OK && port.dims.rank == 2);
    port.dims.dim[0] = ROWS;
    WANT(frit_graph_bind(graph, &port, 1, &err) == FRIT_OK && frit_graph_op_count(graph) == 1);
    WANT(frit_graph_output_at(graph, 0, &port) == FRIT_OK && port.dims.dim[0] == ROWS);
    WANT(frit_graph_run(graph, device, &a, 1, &y, 1, &err) == FRIT_OK);
    WANT(frit_read(y, all, sizeof(all), NULL) == FRIT_OK && all[3] == 9);
    frit_graph_free(graph);
    frit_release(a);
    frit_release(y);
}

static void look_back(void)
{
    frit_stats stats = {.struct_size = sizeof(stats)};
    frit_inspection_desc about = {.struct_size = sizeof(about)};
    frit_run_desc run = {.struct_size = sizeof(run)};
    frit_step_desc step = {.struct_size = sizeof(step)};
    frit_inspection *seen = NULL;
    float all[N];
    frit_tensor *a;

    WANT(frit_inspect_start(device, NULL) == FRIT_OK &&
         frit_inspect_start(device, NULL) == FRIT_BUSY);
    a = frit_exp(frit_take(input()));
    WANT(frit_read(a, all, sizeof(all), NULL) == FRIT_OK && all[0] == 1);
    frit_release(a);
    WANT(frit_inspect_stop(device, &seen, NULL) == FRIT_OK);
    WANT(frit_inspection_about(seen, &about) == FRIT_OK && about.n_runs == 1);
    WANT(frit_inspection_run_at(seen, 0, &run) == FRIT_OK && run.n_ops == 1);
    WANT(frit_inspection_step_at(seen, 0, 0, &step) == FRIT_OK);
    WANT(strcmp(step.op_names[0], "exp") == 0 && strstr(step.out_types[0], "f32"));
    frit_inspection_free(seen);
    frit_trim(device);
    frit_stats_get(device, &stats);
    WANT(stats.ops > 5 && stats.launches > 5 && stats.bytes_in >= sizeof(x));
    WANT(stats.tensors_now == 0 && stats.queued_now == 0 && stats.buffers_now == 0);
    WANT(frit_leaks(device, NULL) == 0);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    open_device();
    look_around();
    compute();
    call_generically();
    fail();
    stream();
    text_program();
    look_back();
    frit_device_close(device);
    frit_host_close(host);
    puts("OK");
    return 0;
}
