/* SPDX-License-Identifier: Apache-2.0 */
/* Two code generators in one process: cpu with machine code by LLVM and vulkan, whose software
 * devices bring an LLVM of their own.  Each is loaded, computes, and computes again after the
 * other; which comes first FRIT_TEST_FIRST says.  A device is loaded when it is opened, not before.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>

enum { ROWS = 70, COLUMNS = 33, COUNT = ROWS * COLUMNS };

static const char *const names[] = {"cpu", "vulkan"};

/* How many files of this name are mapped. */
static int count_mapped(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], last[512] = "";
    int n = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        const char *path = strchr(line, '/');

        if (!path || !strstr(path, name) || strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", path);
        n++;
    }
    fclose(maps);
    return n;
}

static bool is_missing(const char *text)
{
    return strstr(text, "no machine code") || strstr(text, "no-device") ||
           strstr(text, "no-runtime");
}

/* Fused, and each op by itself; false: this machine lacks what the device needs. */
static bool compute(frit_device *device, float *out)
{
    static float numbers[COUNT];
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *x, *y;
    bool done = true;

    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i * i % 97) / 32 - 1;
    x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), numbers, sizeof numbers);
    y = frit_softmax(frit_exp(frit_mul(x, frit_neg(x))), 1);
    if (frit_read(y, out, COUNT * sizeof *out, NULL) != FRIT_OK) {
        done = !is_missing(frit_tensor_error(y));
        if (done)
            fail_msg("%s", frit_tensor_error(y));
        print_message("%s\n", frit_tensor_error(y));
    }
    frit_scope_end(scope);
    return done;
}

static frit_device *open(frit_host *host, const char *name)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *device = NULL;

    if (frit_device_open(host, name, &device, &err) == FRIT_OK)
        return device;
    if (!is_missing(err.text))
        fail_msg("%s", err.text);
    print_message("%s\n", err.text);
    return NULL;
}

static void close_all(frit_host *host, frit_device *const devices[2])
{
    for (int i = 0; i < 2; i++)
        if (devices[i])
            frit_device_close(devices[i]);
    frit_host_close(host);
}

static void both_in_one_process(void **state)
{
    static const frit_setting settings[] = {{"fusion", "compile", "wait"},
                                            {"plugin.cpu", "option.tier", "1"}};
    const frit_host_params params = {
        .struct_size = sizeof params, .settings = settings, .n_settings = 2};
    static float out[2][2][COUNT]; /* of each device, alone and beside the other */
    const char *wanted = getenv("FRIT_TEST_FIRST");
    const int first = wanted && strcmp(wanted, "vulkan") == 0;
    frit_device *devices[2] = {NULL, NULL};
    frit_host *host = NULL;
    bool there = true;

    (void)state;
    assert_int_equal(frit_host_open(&params, &host, NULL), FRIT_OK);
    for (int i = 0; i < 2 && there; i++) {
        const int which = i ^ first;

        devices[which] = open(host, names[which]);
        there = devices[which] && compute(devices[which], out[which][0]);
        if (i == 0 && which == 0)
            assert_int_equal(count_mapped("libvulkan"), 0);
    }
    for (int i = 0; i < 2 && there; i++)
        (void)compute(devices[i ^ first], out[i ^ first][1]);
    close_all(host, devices);
    if (!there)
        skip();
    assert_true(count_mapped("libLLVM") >= 1 && count_mapped("libvulkan") >= 1);
    print_message("%d libraries of LLVM\n", count_mapped("libLLVM"));
    for (int i = 0; i < 2; i++)
        assert_memory_equal(out[i][0], out[i][1], sizeof out[i][0]);
    for (int i = 0; i < COUNT; i++)
        assert_float_equal(out[0][0][i], out[1][0][i], 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_in_one_process)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
