/* SPDX-License-Identifier: Apache-2.0 */
/* The same bits whatever the threads: large tensors on FRIT_TEST_DEVICE, by default cpu, with one
 * thread and with several. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"
#include "unit.h"

#include <frit/frit.h>

enum { ROWS = 512, COLUMNS = 2053, COUNT = ROWS * COLUMNS, MOST = 3 };
enum { STEPS = 30, SEQUENCES = 200, CLASSES = 12, LABELS = 9, PATHS = STEPS * SEQUENCES * CLASSES };

struct result {
    float *all;                /* of a chain over all elements */
    float rows[ROWS];          /* sums along rows */
    float columns[COLUMNS];    /* and columns */
    float whole;               /* of everything */
    float *softmax, *cumsum;   /* along rows */
    float transposed[COLUMNS]; /* maxima of a transposed view */
    int64_t places[COLUMNS];   /* of the largest in each column */
    float paths[PATHS];        /* gradient of ctc_loss */
};

static void result_init(struct result *result)
{
    memset(result, 0, sizeof(*result));
    result->all = calloc(COUNT, sizeof(float));
    result->softmax = calloc(COUNT, sizeof(float));
    result->cumsum = calloc(COUNT, sizeof(float));
    assert_true(result->all && result->softmax && result->cumsum);
}

static void result_fini(struct result *result)
{
    free(result->all);
    free(result->softmax);
    free(result->cumsum);
}

static void read_all(frit_tensor *tensor, void *into, size_t bytes)
{
    if (frit_read(tensor, into, bytes, NULL) != FRIT_OK)
        fail_msg("%s", frit_tensor_error(tensor));
}

/* Of sequences of all lengths. */
static frit_tensor *gradient(frit_device *device)
{
    static int32_t targets[SEQUENCES * LABELS], steps[SEQUENCES], labels[SEQUENCES];
    frit_tensor *logits =
        frit_random_uniform(device, FRIT_F32, FRIT_SHAPE(STEPS, SEQUENCES, CLASSES), -3, 3);

    for (int i = 0; i < SEQUENCES; i++) {
        steps[i] = i % (STEPS + 1);
        labels[i] = i / 7 % (LABELS + 1);
    }
    for (int i = 0; i < SEQUENCES * LABELS; i++)
        targets[i] = 1 + i * i % (CLASSES - 1);
    return frit_ctc_loss_backward(
        frit_log_softmax(logits, -1),
        frit_from_host(device, FRIT_I32, FRIT_SHAPE(SEQUENCES, LABELS), targets, sizeof(targets)),
        frit_from_host(device, FRIT_I32, FRIT_SHAPE(SEQUENCES), steps, sizeof(steps)),
        frit_from_host(device, FRIT_I32, FRIT_SHAPE(SEQUENCES), labels, sizeof(labels)),
        frit_ones(device, FRIT_F32, FRIT_SHAPE(SEQUENCES)), 0);
}

static void compute(frit_device *device, struct result *result)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *x = frit_random_uniform(device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), -1, 3);
    frit_tensor *y = frit_add_f(frit_mul(x, x), 0.25), *z = frit_sub(y, x);

    read_all(frit_maximum_f(z, 0.5), result->all, COUNT * sizeof(float));
    read_all(frit_sum(x, .axes = FRIT_AXES(1)), result->rows, sizeof(result->rows));
    read_all(frit_sum(y, .axes = FRIT_AXES(0)), result->columns, sizeof(result->columns));
    read_all(frit_sum(x), &result->whole, sizeof(result->whole));
    read_all(frit_softmax(x, 1), result->softmax, COUNT * sizeof(float));
    read_all(frit_cumsum(x, 1), result->cumsum, COUNT * sizeof(float));
    read_all(frit_max(frit_permute(y, FRIT_AXES(1, 0)), .axes = FRIT_AXES(1)), result->transposed,
             sizeof(result->transposed));
    read_all(frit_argmax(x, .axes = FRIT_AXES(0)), result->places, sizeof(result->places));
    read_all(gradient(device), result->paths, sizeof(result->paths));
    frit_scope_end(scope);
}

/* Threads that came while it was computed. */
static uint32_t run_with(int threads, struct result *result)
{
    frit_err err = {.struct_size = sizeof(err)};
    const char *name = getenv("FRIT_TEST_DEVICE");
    char text[16];
    const frit_setting settings[] = {{"frit", "threads", text}, {"fusion", "compile", "wait"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 2};
    frit_host *host = NULL;
    frit_device *device = NULL;
    uint32_t before, after;

    snprintf(text, sizeof(text), "%d", threads);
    if (frit_host_open(&params, &host, &err) != FRIT_OK ||
        frit_device_open(host, name ? name : "cpu", &device, &err) != FRIT_OK)
        fail_msg("%s", err.text);
    frit_seed(host, 5);
    before = count_threads();
    compute(device, result);
    after = count_threads();
    frit_device_close(device);
    frit_host_close(host);
    return after - before;
}

static void *nothing(void *ctx)
{
    return ctx;
}

/* A sanitizer begins its own thread with the first of the process; it is not to be counted. */
static void begin_threads(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void threads_change_nothing(void **state)
{
    enum { COMPILING = 9 }; /* as many more may compile kernels in the background */
    struct result alone, together;

    (void)state;
    begin_threads();
    result_init(&alone);
    assert_in_range(run_with(1, &alone), 0, COMPILING);
    for (int threads = 2; threads <= MOST; threads++) {
        result_init(&together);
        assert_in_range(run_with(threads, &together), threads - 1, threads - 1 + COMPILING);
        assert_memory_equal(together.all, alone.all, COUNT * sizeof(float));
        assert_memory_equal(together.rows, alone.rows, sizeof(alone.rows));
        assert_memory_equal(together.columns, alone.columns, sizeof(alone.columns));
        assert_memory_equal(&together.whole, &alone.whole, sizeof(alone.whole));
        assert_memory_equal(together.softmax, alone.softmax, COUNT * sizeof(float));
        assert_memory_equal(together.cumsum, alone.cumsum, COUNT * sizeof(float));
        assert_memory_equal(together.transposed, alone.transposed, sizeof(alone.transposed));
        assert_memory_equal(together.paths, alone.paths, sizeof(alone.paths));
        assert_memory_equal(together.places, alone.places, sizeof(alone.places));
        result_fini(&together);
    }
    result_fini(&alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_change_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
