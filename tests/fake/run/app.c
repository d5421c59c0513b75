/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has every slot of a plugin called, for as long as the plugin lets it:
 *
 *   app FILE ID DEVICE STORE [SECTION KEY VALUE]...
 *
 * It writes a line for each call that fails, "wrong: ..." for a result that is not right, and at
 * last "end".  FILE is the plugin of id ID; DEVICE the first device that it uses; STORE where plans
 * are kept, so that its second host finds those of the first. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/frit.h>
#include <frit/inspect.h>

enum { N = 64, ROUNDS = 12, SETTINGS = 16, FIRST_SETTING = 5 };

static const char *device_name, *plugin_id;
static _Alignas(4096) float mine[1024];

static void on_log(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    if (level <= 2)
        printf("log: %s: %s\n", topic, text);
    fflush(stdout);
}

static void report(const char *step, frit_status status, const char *text)
{
    if (status)
        printf("%s: %d: %s\n", step, status, text);
    fflush(stdout);
}

/* ---- work ---- */

/* Takes the tensor; `expected` of each element. */
static void check(const char *step, frit_tensor *tensor, float expected)
{
    float out[N] = {0};
    frit_err err = {.struct_size = sizeof(err)};
    const frit_status status = frit_read(tensor, out, sizeof(out), &err);
    const bool fake = strcmp(plugin_id, "null") == 0; /* which computes nothing */

    report(step, status,
           status && frit_tensor_error(tensor)[0] ? frit_tensor_error(tensor) : err.text);
    for (int i = 0; !status && !fake && i < N; i++) {
        if (fabsf(out[i] - expected) <= 1e-6f)
            continue;
        printf("wrong: %s: %g is %g\n", step, (double)expected, (double)out[i]);
        break;
    }
    frit_release(tensor);
}

static frit_tensor *filled(frit_device *device, float value)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = value;
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
}

/* neg(max(x + y, x)), which fuses. */
static void compute(frit_device *device, float value)
{
    frit_tensor *x = filled(device, value), *y = filled(device, 1);
    frit_tensor *sum = frit_add(x, frit_take(y));
    frit_tensor *most = frit_maximum(frit_take(sum), frit_take(x));

    check("compute", frit_neg(frit_take(most)), -value - 1);
}

static void compute_often(frit_device *device)
{
    frit_err err = {.struct_size = sizeof(err)};

    for (int i = 0; i < ROUNDS; i++)
        compute(device, (float)i);
    report("sync", frit_sync(device, &err), err.text);
}

static void wrap(frit_device *device)
{
    frit_tensor *x;

    for (int i = 0; i < 1024; i++)
        mine[i] = 2;
    x = frit_wrap_host(device, FRIT_F32, FRIT_SHAPE(N), mine, N * sizeof(float), NULL, NULL);
    check("wrap", frit_neg(frit_take(x)), -2);
}

static void carry(frit_host *host, frit_device *device)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *other = NULL;
    char name[32];

    if (strncmp(device_name, "wrong", 5) != 0)
        return;
    snprintf(name, sizeof(name), "wrong:1");
    report("open the other", frit_device_open(host, name, &other, &err), err.text);
    if (other)
        check("carry", frit_to_device(frit_take(filled(device, 3)), other), 3);
    frit_device_close(other);
}

static void measure(frit_device *device)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device_time time = {.struct_size = sizeof(time)};
    const frit_status status = frit_device_time_start(device, &err);

    report("measure", status, err.text);
    if (status)
        return;
    compute(device, 5);
    report("measured", frit_device_time_stop(device, &time, &err), err.text);
}

static void call_custom(frit_device *device)
{
    frit_tensor *x = filled(device, 2), *y = filled(device, 3), *out = NULL;
    const frit_input in[2] = {{.tensor = x}, {.tensor = y}};
    const frit_attr attrs[2] = {{.name = "alpha", .value = frit_scalar_f(2)},
                                {.name = "beta", .value = frit_scalar_f(1)}};
    const frit_named_call call = {.struct_size = sizeof(call),
                                  .name = "org.frit.test.axpby/1",
                                  .in = in,
                                  .n_in = 2,
                                  .attrs = attrs,
                                  .n_attrs = 2};

    frit_op_named(device, &call, &out, 1);
    check("custom", out, 7);
    frit_release(x);
    frit_release(y);
}

static void reduce(frit_host *host, frit_device *device)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_rank *rank = NULL;
    frit_group_id id;
    const frit_group_config config = {.struct_size = sizeof(config),
                                      .name = "test",
                                      .id = &id,
                                      .size = 1,
                                      .join_ns = 500000000,
                                      .op_ns = 500000000};
    frit_status status = frit_group_id_create(host, plugin_id, &id, &err);

    report("group id", status, err.text);
    if (!status)
        status = frit_group_join(device, &config, &rank, &err);
    report("join", status, err.text);
    if (status)
        return;
    check("reduce", frit_all_reduce(frit_take(filled(device, 4))), 4);
    report("abort", frit_group_abort(rank, "enough"), "");
    report("leave", frit_group_leave(rank, &err), err.text);
}

/* ---- hosts ---- */

static void describe(frit_host *host)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_compute_desc compute_desc = {.struct_size = sizeof(compute_desc)};
    frit_plugin_desc desc = {.struct_size = sizeof(desc)};

    for (uint64_t i = 0; frit_plugin_at(host, i, &desc) == FRIT_OK; i++)
        if (desc.reason)
            printf("refused: %s: %s\n", desc.reason_name, desc.detail);
    for (uint64_t i = 0; i < 2; i++) {
        const frit_status status = frit_device_compute(host, i, &compute_desc, &err);

        if (status && status != FRIT_INVALID)
            report("describe", status, err.text);
        else if (!status && compute_desc.text[0])
            printf("computes with: %s\n", compute_desc.text);
    }
}

static void use(frit_host *host)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *device = NULL;
    const frit_status status = frit_device_open(host, device_name, &device, &err);
    char *left = NULL;

    report("open", status, err.text);
    if (status)
        return;
    compute_often(device);
    wrap(device);
    carry(host, device);
    measure(device);
    if (strcmp(plugin_id, "fake-ops") == 0)
        call_custom(device);
    if (strcmp(plugin_id, "collective-local") == 0)
        reduce(host, device);
    compute_often(device);
    report("last sync", frit_sync(device, &err), err.text);
    frit_trim(device);
    if (frit_leaks(device, &left))
        printf("left: %s\n", left);
    free(left);
    frit_device_close(device);
}

int main(int argc, char **argv)
{
    frit_err err = {.struct_size = sizeof(err)};
    char section[64];
    frit_setting settings[SETTINGS] = {
        {section, "library", NULL},   {"fusion", "store", NULL},    {"fusion", "compile", "wait"},
        {"search", "probe", "never"}, {"frit", "fallback", "none"}, {"stream", "queues", "2"},
    };
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 6, .log = on_log};

    if (argc < FIRST_SETTING)
        return 2;
    snprintf(section, sizeof(section), "plugin.%s", argv[2]);
    plugin_id = argv[2];
    device_name = argv[3];
    settings[0].value = argv[1];
    settings[1].value = argv[4];
    for (int i = FIRST_SETTING; i + 2 < argc && params.n_settings < SETTINGS; i += 3)
        settings[params.n_settings++] = (frit_setting){argv[i], argv[i + 1], argv[i + 2]};
    for (int i = 0; i < 2; i++) {
        frit_host *host = NULL;
        const frit_status status = frit_host_open(&params, &host, &err);

        report("host", status, err.text);
        if (status)
            continue;
        describe(host);
        use(host);
        frit_host_close(host);
    }
    printf("end\n");
    return 0;
}
