/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that a driver records compute what they compute without: bit for bit, with what differs
 * from step to step, and with results that are kept.  Arguments: `records`, the device is one whose
 * driver records; `_staging`, of vulkan, without pointers to device memory. */
#include "device/rig.h"

#include <math.h>
#include <string.h>

enum { STEPS = 14, N = 96, MOST = 300 * N };

static bool records, staging;

static void open_rig(struct rig *rig, bool capture)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "compile", "wait"},
                                     {"fusion", "store", "none"},
                                     {"frit", "fallback", "none"},
                                     {"stream", "capture", capture ? "yes" : "no"},
                                     {"plugin.vulkan", "option.staging", "force"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = staging ? 5 : 4};
    const char *name = getenv("FRIT_TEST_DEVICE");

    if (frit_host_open(&params, &rig->host, &err) ||
        frit_device_open(rig->host, name ? name : "reference:0", &rig->dev, &err))
        fail_msg("%s", err.text);
}

/* What a program made: numbers in the order in which it gave them. */
struct output {
    float numbers[MOST];
    uint64_t count;
};

static void append_tensor(struct output *out, frit_tensor *tensor)
{
    uint64_t count = 1;
    frit_dims dims = frit_tensor_dims(tensor);
    float *numbers = rig_read(tensor);

    for (int64_t d = 0; d < dims.rank; d++)
        count *= (uint64_t)dims.dim[d];
    assert_true(out->count + count <= MOST);
    memcpy(out->numbers + out->count, numbers, count * sizeof(*numbers));
    out->count += count;
    free(numbers);
}

/* Runs it with recordings and without: the same numbers. */
static const struct output *compare(void (*program)(struct rig *rig, struct output *out))
{
    static struct output with, without;
    struct rig rig;

    with.count = without.count = 0;
    open_rig(&rig, false);
    program(&rig, &without);
    assert_int_equal(rig_stats(&rig).captured_launches, 0);
    rig_close(&rig);
    open_rig(&rig, true);
    program(&rig, &with);
    assert_int_equal(rig_stats(&rig).captured_launches > 0, records);
    rig_close(&rig);
    assert_int_equal(with.count, without.count);
    assert_memory_equal(with.numbers, without.numbers, with.count * sizeof(with.numbers[0]));
    return &with;
}

/* What `to` stands for becomes `by`. */
static void replace(frit_tensor **to, frit_tensor *by)
{
    frit_release(*to);
    *to = by;
}

/* ---- what differs from step to step ---- */

/* Adam, with the number of the step in two scalars, and a gradient with dropout; what was dropped
 * is kept for the end. */
static void learn(struct rig *rig, struct output *out)
{
    float *numbers = rig_numbers(3 * N);
    frit_tensor *p = rig_tensor(rig, FRIT_SHAPE(N), numbers);
    frit_tensor *m = rig_tensor(rig, FRIT_SHAPE(N), numbers + N), *v = frit_mul(m, m);
    frit_tensor *kept[STEPS];

    for (int t = 1; t <= STEPS; t++) {
        double left = 1 / (1 - pow(0.9, t)), right = 1 / (1 - pow(0.99, t));
        frit_scope scope = frit_scope_begin(rig->dev);
        frit_tensor *mask = frit_random_bernoulli(rig->dev, FRIT_F32, FRIT_SHAPE(N), 0.75);
        frit_tensor *g = frit_mul(p, mask);
        frit_tensor *m2 = frit_keep(frit_add(frit_mul_f(m, 0.9), frit_mul_f(g, 0.1)));
        frit_tensor *v2 =
            frit_keep(frit_add(frit_mul_f(v, 0.99), frit_mul_f(frit_mul(g, g), 0.01)));
        frit_tensor *down = frit_add_f(frit_sqrt(frit_mul_f(v2, right)), 1e-6);
        frit_tensor *p2 =
            frit_keep(frit_sub(p, frit_mul_f(frit_div(frit_mul_f(m2, left), down), 0.01)));

        kept[t - 1] = frit_keep(frit_add_f(mask, 0.5 * t));
        frit_scope_end(scope);
        replace(&p, p2);
        replace(&m, m2);
        replace(&v, v2);
        assert_int_equal(frit_flush(rig->dev, NULL), FRIT_OK);
    }
    for (int t = 0; t < STEPS; t++)
        append_tensor(out, kept[t]);
    append_tensor(out, p);
    frit_release(m);
    frit_release(v);
    free(numbers);
}

static void test_masks_and_counters_differ(void **state)
{
    const struct output *out = compare(learn);

    (void)state;
    for (int t = 1; t < STEPS; t++) {
        int equal = 0;

        for (int i = 0; i < N; i++)
            equal += out->numbers[t * N + i] - 0.5f == out->numbers[(t - 1) * N + i];
        assert_true(equal > N / 4 && equal < N);
    }
}

/* ---- several plans ---- */

/* An optimiser's state. */
struct state {
    frit_tensor *p, *m, *v;
};

/* A step of Adam without a scope. */
static void advance(struct state *s, frit_tensor *mask, int t)
{
    double left = 1 / (1 - pow(0.9, t)), right = 1 / (1 - pow(0.99, t));
    frit_tensor *g = frit_mul(s->p, mask), *down, *up;

    s->m = frit_add(frit_take(frit_mul_f(frit_take(s->m), 0.9)), frit_take(frit_mul_f(g, 0.1)));
    g = frit_mul(frit_take(g), g);
    s->v = frit_add(frit_take(frit_mul_f(frit_take(s->v), 0.99)),
                    frit_take(frit_mul_f(frit_take(g), 0.01)));
    down = frit_sqrt(frit_take(frit_mul_f(s->v, right)));
    down = frit_add_f(frit_take(down), 1e-6);
    up = frit_div(frit_take(frit_mul_f(s->m, left)), frit_take(down));
    s->p = frit_sub(frit_take(s->p), frit_take(frit_mul_f(frit_take(up), 0.01)));
}

/* Several plans in each step, with masks and counters in all; what was dropped is kept for the end.
 */
static void learn_openly(struct rig *rig, struct output *out)
{
    enum { TENSORS = 8, LEARNT = 24, ALL = 30 };
    struct state states[TENSORS];
    float *numbers = rig_numbers(3 * N + TENSORS);
    frit_tensor *kept[ALL];
    uint64_t submits = 0;

    for (int k = 0; k < TENSORS; k++) {
        states[k].p = rig_tensor(rig, FRIT_SHAPE(N), numbers + k);
        states[k].m = rig_tensor(rig, FRIT_SHAPE(N), numbers + N + k);
        states[k].v = frit_mul(states[k].m, states[k].m);
    }
    for (int t = 1; t <= ALL; t++) {
        frit_tensor *loss;

        submits = t == LEARNT + 1 ? rig_stats(rig).submits : submits;
        for (int k = 0; k < TENSORS; k++) {
            frit_tensor *mask = frit_random_bernoulli(rig->dev, FRIT_F32, FRIT_SHAPE(N), 0.75);

            advance(&states[k], mask, t);
            if (k == TENSORS / 2)
                kept[t - 1] = mask;
            else
                frit_release(mask);
        }
        loss = frit_sum(states[0].p);
        append_tensor(out, loss);
    }
    submits = rig_stats(rig).submits - submits;
    if (rig_stats(rig).captured_launches)
        assert_int_equal(submits, ALL - LEARNT);
    else
        assert_true(submits > ALL - LEARNT || !records);
    for (int t = 0; t < ALL; t++)
        append_tensor(out, kept[t]);
    for (int k = 0; k < TENSORS; k++) {
        append_tensor(out, states[k].p);
        frit_release(states[k].m);
        frit_release(states[k].v);
    }
    free(numbers);
}

static void test_steps_of_several_plans(void **state)
{
    (void)state;
    compare(learn_openly);
}

/* ---- sizes ---- */

static void change_sizes(struct rig *rig, struct output *out)
{
    static const int64_t sizes[2][3] = {{5, 33, 8}, {8, 33, 5}};
    float *numbers = rig_numbers(64 * 64);

    for (int i = 0; i < 6 * STEPS; i++) {
        int64_t n = sizes[i >= 3 * STEPS][i % 3];
        frit_tensor *x = rig_tensor(rig, FRIT_SHAPE(n, n), numbers + i);
        frit_scope scope = frit_scope_begin(rig->dev);
        frit_tensor *y =
            frit_keep(frit_matmul(frit_add_f(x, 0.25 * i), frit_exp(frit_mul_f(x, 0.1))));

        frit_scope_end(scope);
        frit_release(x);
        if (i % STEPS == STEPS - 1)
            append_tensor(out, y);
        else
            frit_release(y);
    }
    free(numbers);
}

static void test_sizes_that_change(void **state)
{
    (void)state;
    compare(change_sizes);
}

/* ---- many tensors ---- */

static void step_many(struct rig *rig, struct output *out)
{
    enum { MANY = 300 };
    static frit_tensor *params[MANY];
    float *numbers = rig_numbers(MANY + N);

    for (int k = 0; k < MANY; k++)
        params[k] = rig_tensor(rig, FRIT_SHAPE(1 + k % N), numbers + k);
    for (int t = 0; t < STEPS; t++) {
        frit_scope scope = frit_scope_begin(rig->dev);

        for (int k = 0; k < MANY; k++)
            params[k] = frit_keep(
                frit_add_f(frit_mul_f(frit_take(params[k]), 0.75), 0.01 + 0.25 * (t + k)));
        frit_scope_end(scope);
        assert_int_equal(frit_flush(rig->dev, NULL), FRIT_OK);
    }
    for (int k = 0; k < MANY; k++)
        append_tensor(out, params[k]);
    free(numbers);
}

static void test_hundreds_of_tensors(void **state)
{
    (void)state;
    compare(step_many);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_and_counters_differ),
        cmocka_unit_test(test_steps_of_several_plans),
        cmocka_unit_test(test_sizes_that_change),
        cmocka_unit_test(test_hundreds_of_tensors),
    };

    for (int i = 1; i < argc; i++) {
        records |= strcmp(argv[i], "records") == 0;
        staging |= strcmp(argv[i], "_staging") == 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
