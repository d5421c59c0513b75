/* SPDX-License-Identifier: Apache-2.0 */
/* What is written op by op runs as one program that stores one tensor and nothing else. */
#include "device/rig.h"

#include <math.h>

#include <frit/inspect.h>

enum { ROWS = 48, COLS = 640, COUNT = ROWS * COLS };

enum { TAIL_BYTES = 256 }; /* what a device likes after a result */

/* ---- the functions, by the ops that they are made of ---- */

static frit_tensor *softmax(frit_tensor *x, frit_tensor *gamma, frit_tensor *beta)
{
    frit_tensor *most = frit_max(x, .axes = FRIT_AXES(1), .keep = true);
    frit_tensor *e = frit_exp(frit_sub(x, most));

    (void)gamma;
    (void)beta;
    return frit_div(e, frit_sum(e, .axes = FRIT_AXES(1), .keep = true));
}

static void softmax_row(const float *x, const float *gamma, const float *beta, double *y)
{
    double most = (double)x[0], sum = 0;

    (void)gamma;
    (void)beta;
    for (int j = 1; j < COLS; j++)
        most = fmax(most, (double)x[j]);
    for (int j = 0; j < COLS; j++)
        sum += y[j] = exp((double)x[j] - most);
    for (int j = 0; j < COLS; j++)
        y[j] /= sum;
}

static frit_tensor *layer_norm(frit_tensor *x, frit_tensor *gamma, frit_tensor *beta)
{
    frit_tensor *d = frit_sub(x, frit_mean(x, .axes = FRIT_AXES(1), .keep = true));
    frit_tensor *var = frit_mean(frit_mul(d, d), .axes = FRIT_AXES(1), .keep = true);
    frit_tensor *y = frit_div(d, frit_sqrt(frit_add_f(var, 1e-5)));

    return frit_add(frit_mul(y, gamma), beta);
}

static void layer_norm_row(const float *x, const float *gamma, const float *beta, double *y)
{
    double mean = 0, var = 0;

    for (int j = 0; j < COLS; j++)
        mean += (double)x[j] / COLS;
    for (int j = 0; j < COLS; j++)
        var += ((double)x[j] - mean) * ((double)x[j] - mean) / COLS;
    for (int j = 0; j < COLS; j++)
        y[j] = ((double)x[j] - mean) / sqrt(var + 1e-5) * (double)gamma[j] + (double)beta[j];
}

static frit_tensor *gelu(frit_tensor *x, frit_tensor *gamma, frit_tensor *beta)
{
    frit_tensor *erf = frit_erf(frit_mul_f(x, M_SQRT1_2));

    (void)gamma;
    (void)beta;
    return frit_mul(frit_mul_f(x, 0.5), frit_add_f(erf, 1));
}

static void gelu_row(const float *x, const float *gamma, const float *beta, double *y)
{
    (void)gamma;
    (void)beta;
    for (int j = 0; j < COLS; j++)
        y[j] = 0.5 * (double)x[j] * (1 + erf((double)x[j] * M_SQRT1_2));
}

/* 100 ops. */
static frit_tensor *chain(frit_tensor *x, frit_tensor *gamma, frit_tensor *beta)
{
    for (int k = 0; k < 20; k++) {
        x = frit_mul_f(frit_add(x, beta), 0.5);
        x = frit_abs(frit_sub_f(frit_mul(x, gamma), 0.25));
    }
    return x;
}

static void chain_row(const float *x, const float *gamma, const float *beta, double *y)
{
    for (int j = 0; j < COLS; j++) {
        y[j] = (double)x[j];
        for (int k = 0; k < 20; k++)
            y[j] = fabs((y[j] + (double)beta[j]) * 0.5 * (double)gamma[j] - 0.25);
    }
}

/* Half of the columns of a value gate the others. */
static frit_tensor *gated(frit_tensor *x, frit_tensor *gamma, frit_tensor *beta)
{
    frit_tensor *z = frit_add(frit_mul(x, gamma), beta);
    frit_tensor *a = frit_slice(z, FRIT_SLICES({0}, {0, COLS / 2, 1}));
    frit_tensor *b = frit_slice(z, FRIT_SLICES({0}, {COLS / 2, COLS, 1}));

    return frit_mul(a, frit_sigmoid(b));
}

static void gated_row(const float *x, const float *gamma, const float *beta, double *y)
{
    double z[COLS];

    for (int j = 0; j < COLS; j++)
        z[j] = (double)x[j] * (double)gamma[j] + (double)beta[j];
    for (int j = 0; j < COLS / 2; j++)
        y[j] = z[j] / (1 + exp(-z[j + COLS / 2]));
}

/* ---- counting ---- */

struct function {
    uint64_t n_ops;
    frit_tensor *(*record)(frit_tensor *x, frit_tensor *gamma, frit_tensor *beta);
    void (*row)(const float *x, const float *gamma, const float *beta, double *y);
    double scale; /* of what cancels out on the way */
    int cols;     /* of the result */
};

static void check_numbers(const struct function *f, const float *x, const float *vectors,
                          const float *y)
{
    double want[COLS];

    for (int i = 0; i < ROWS; i++) {
        f->row(x + i * COLS, vectors, vectors + COLS, want);
        for (int j = 0; j < f->cols; j++)
            if (!rig_near((double)y[i * f->cols + j], want[j], fmax(fabs(want[j]), f->scale), 16))
                fail_msg("%d, %d is %.9g, not %.9g", i, j, (double)y[i * f->cols + j], want[j]);
    }
}

static void check_one_step(const struct function *f, frit_inspection *inspection)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    frit_inspection_desc about = {.struct_size = sizeof(about)};
    uint32_t programs = 0;

    assert_int_equal(frit_inspection_about(inspection, &about), FRIT_OK);
    assert_int_equal(about.n_runs, 1);
    assert_int_equal(about.buffers_after, about.buffers_before + 1);
    assert_int_equal(frit_inspection_run_at(inspection, 0, &run), FRIT_OK);
    for (uint32_t s = 0; s < run.n_steps; s++) {
        frit_step_desc step = {.struct_size = sizeof(step)};

        assert_int_equal(frit_inspection_step_at(inspection, 0, s, &step), FRIT_OK);
        if (step.flags & FRIT_STEP_VIEW)
            continue;
        programs++;
        assert_int_equal(step.flags, 0);
        assert_int_equal(step.n_out, 1);
        assert_int_equal(step.bytes_out, (uint64_t)(ROWS * f->cols) * sizeof(float));
    }
    assert_int_equal(programs, 1);
    frit_inspection_free(inspection);
}

/* `x` lives on, so that the result cannot take its place. */
static void check_function(const struct function *f)
{
    float *numbers = rig_numbers(COUNT), *vectors = rig_numbers(2 * COLS), *got;
    frit_tensor *x, *gamma, *beta, *y;
    uint64_t bytes = (uint64_t)(ROWS * f->cols) * sizeof(float);
    frit_inspection *inspection;
    frit_stats before, after;
    frit_scope scope;
    struct rig rig;

    for (int j = 0; j < 2 * COLS; j++)
        vectors[j] /= 4; /* so that the chain keeps small */
    rig_open(&rig);
    x = rig_tensor(&rig, FRIT_SHAPE(ROWS, COLS), numbers);
    gamma = rig_tensor(&rig, FRIT_SHAPE(COLS), vectors);
    beta = rig_tensor(&rig, FRIT_SHAPE(COLS), vectors + COLS);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    before = rig_stats(&rig);
    assert_int_equal(frit_inspect_start(rig.dev, NULL), FRIT_OK);
    scope = frit_scope_begin(rig.dev);
    y = frit_keep(f->record(x, gamma, beta));
    frit_scope_end(scope);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(frit_inspect_stop(rig.dev, &inspection, NULL), FRIT_OK);
    after = rig_stats(&rig);
    check_one_step(f, inspection);
    assert_int_equal(after.ops - before.ops, f->n_ops);
    assert_int_equal(after.launches - before.launches, 1);
    assert_int_equal(after.fused - before.fused, 1);
    assert_int_equal(after.buffers_now - before.buffers_now, 1);
    assert_in_range(after.bytes_now - before.bytes_now, bytes, bytes + TAIL_BYTES);
    assert_in_range(after.bytes_peak - before.bytes_now, bytes, bytes + TAIL_BYTES);
    got = rig_read(y);
    check_numbers(f, numbers, vectors, got);
    frit_release(x);
    frit_release(gamma);
    frit_release(beta);
    rig_close(&rig);
    free(got);
    free(numbers);
    free(vectors);
}

static void test_softmax_is_one_program(void **state)
{
    (void)state;
    check_function(&(struct function){5, softmax, softmax_row, 0, COLS});
}

static void test_layer_norm_is_one_program(void **state)
{
    (void)state;
    check_function(&(struct function){9, layer_norm, layer_norm_row, 2, COLS});
}

static void test_gelu_is_one_program(void **state)
{
    (void)state;
    check_function(&(struct function){5, gelu, gelu_row, 2, COLS});
}

static void test_100_ops_are_one_program(void **state)
{
    (void)state;
    check_function(&(struct function){100, chain, chain_row, 2, COLS});
}

static void test_slices_are_one_program(void **state)
{
    (void)state;
    check_function(&(struct function){6, gated, gated_row, 2, COLS / 2});
}

/* Sums of nothing beside what has no elements, in memory that held something. */
static void test_rows_without_elements(void **state)
{
    frit_tensor *x, *y, *sum;
    float *numbers = rig_numbers(ROWS), *got;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    x = rig_tensor(&rig, FRIT_SHAPE(ROWS), numbers);
    y = frit_exp(x);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    frit_release(x);
    frit_release(y);
    x = rig_tensor(&rig, FRIT_SHAPE(ROWS, 0), numbers);
    y = frit_mul_f(x, 0.5);
    sum = frit_sum(frit_take(frit_add_f(x, 0.5)), .axes = FRIT_AXES(1));
    got = rig_read(sum);
    for (int i = 0; i < ROWS; i++)
        assert_true(got[i] == 0);
    frit_release(x);
    frit_release(y);
    free(got);
    free(numbers);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax_is_one_program),
        cmocka_unit_test(test_layer_norm_is_one_program),
        cmocka_unit_test(test_gelu_is_one_program),
        cmocka_unit_test(test_100_ops_are_one_program),
        cmocka_unit_test(test_slices_are_one_program),
        cmocka_unit_test(test_rows_without_elements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
