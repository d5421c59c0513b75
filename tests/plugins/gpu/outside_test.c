/* SPDX-License-Identifier: Apache-2.0 */
/* A fuser of another plugin on a device of the driver RIG_DRIVER: which blocks it gets, and what
 * they compute. */
#include "host/api/plugin_rig.h"

#include <stdbool.h>
#include <unistd.h>

#include <frit/inspect.h>

enum { ROWS = 37, COLS = 53, COUNT = ROWS * COLS, ROUNDS = 4 };

static const char chain[] = "org.frit.blocks/chain";

static void open_on(struct plugin_rig *rig, const char *device, const char *store)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_set(rig, "fusion", "compile", "wait");
    rig_set(rig, "fusion", "store", store);
    rig_set(rig, "frit", "fallback", "none");
    rig_open(rig, device);
}

static float number_at(uint32_t i, uint32_t seed)
{
    return (float)(int32_t)((i + 1) * seed * 2654435761u) * 0x1p-29f;
}

static frit_tensor *numbers(struct plugin_rig *rig, uint32_t seed)
{
    float values[COUNT];

    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = number_at(i, seed);
    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(ROWS, COLS), values, sizeof(values));
}

/* ---- programs ---- */

typedef frit_tensor *program(frit_tensor *a, frit_tensor *b, frit_tensor *c);

static frit_tensor *multiply_add(frit_tensor *a, frit_tensor *b, frit_tensor *c)
{
    return frit_relu(frit_add(frit_mul(a, b), c));
}

/* 20 ops, some with the same operand twice. */
static frit_tensor *long_chain(frit_tensor *a, frit_tensor *b, frit_tensor *c)
{
    frit_tensor *x = a;

    for (int i = 0; i < 4; i++)
        x = frit_neg(frit_sub(frit_mul(frit_add(x, b), c), frit_mul(b, b)));
    return x;
}

static frit_tensor *with_a_sum(frit_tensor *a, frit_tensor *b, frit_tensor *c)
{
    return frit_sum(multiply_add(a, b, c), .axes = FRIT_AXES(1));
}

/* Operands with strides that the fuser does not support. */
static frit_tensor *with_a_view(frit_tensor *a, frit_tensor *b, frit_tensor *c)
{
    return frit_add(frit_mul(frit_permute(a, FRIT_AXES(1, 0)), frit_permute(b, FRIT_AXES(1, 0))),
                    frit_permute(c, FRIT_AXES(1, 0)));
}

/* Returns the results, which the caller frees.  The program's tensors are released with the scope.
 */
static float *compute(struct plugin_rig *rig, program *run, uint64_t *n)
{
    frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *a = numbers(rig, 1), *b = numbers(rig, 3), *c = numbers(rig, 7);
    frit_tensor *y = run(a, b, c);
    float *values = malloc(COUNT * sizeof(*values));
    const frit_dims dims = frit_tensor_dims(y);

    assert_non_null(values);
    *n = 1;
    for (int64_t d = 0; d < dims.rank; d++)
        *n *= (uint64_t)dims.dim[d];
    if (frit_read(y, values, *n * sizeof(*values), NULL))
        fail_msg("%s", frit_tensor_error(y));
    frit_scope_end(scope);
    return values;
}

/* The results must equal those of the driver `reference` bit by bit. */
static void expect_results(struct plugin_rig *rig, program *run)
{
    struct plugin_rig reference;
    uint64_t n, n_expected;
    float *got = compute(rig, run, &n), *expected;

    open_on(&reference, "reference:0", "none");
    expected = compute(&reference, run, &n_expected);
    assert_int_equal(n, n_expected);
    assert_memory_equal(got, expected, n * sizeof(*got));
    rig_close(&reference);
    free(got);
    free(expected);
}

/* The only step of the run, which must have no other. */
static frit_step_desc only_step(const frit_inspection *seen)
{
    frit_step_desc step = {.struct_size = sizeof(step)};
    frit_run_desc run = {.struct_size = sizeof(run)};

    assert_int_equal(frit_inspection_run_at(seen, 0, &run), FRIT_OK);
    assert_int_equal(run.n_steps, 1);
    assert_int_equal(frit_inspection_step_at(seen, 0, 0, &step), FRIT_OK);
    return step;
}

/* The program must run as one step of this fuser, with this label, by one launch. */
static void expect_step(struct plugin_rig *rig, program *run, const char *fuser, const char *label)
{
    const frit_stats before = rig_stats(rig);
    frit_inspection *seen;
    frit_step_desc step;
    frit_stats after;
    uint64_t n;

    assert_int_equal(frit_inspect_start(rig->dev, NULL), FRIT_OK);
    free(compute(rig, run, &n));
    assert_int_equal(frit_inspect_stop(rig->dev, &seen, NULL), FRIT_OK);
    step = only_step(seen);
    assert_string_equal(step.fuser, fuser);
    assert_string_equal(step.label, label);
    assert_string_equal(step.why, "");
    frit_inspection_free(seen);
    after = rig_stats(rig);
    assert_int_equal(after.launches - before.launches, 1);
    assert_int_equal(after.fused - before.fused, 1);
    assert_int_equal(after.fallbacks_ops + after.fallbacks_candidate + after.disabled, 0);
}

/* ---- tests ---- */

static void a_block_is_one_dispatch(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_on(&rig, RIG_DRIVER ":0", "none");
    for (int i = 0; i < ROUNDS; i++) {
        expect_step(&rig, multiply_add, chain, "chain: mul add relu");
        expect_results(&rig, multiply_add);
    }
    expect_results(&rig, long_chain);
    rig_close(&rig);
}

/* The same step with other values in other buffers: no argument of an earlier run may be reused. */
static void a_step_runs_with_new_arguments(void **state)
{
    enum { STEPS = 100, KEPT = 5 };
    frit_tensor *kept[KEPT] = {NULL};
    float got[COUNT];
    struct plugin_rig rig;

    (void)state;
    open_on(&rig, RIG_DRIVER ":0", "none");
    for (uint32_t step = 1; step <= STEPS; step++) {
        frit_tensor **to = &kept[step % KEPT];
        frit_scope scope = frit_scope_begin(rig.dev);

        frit_release(*to);
        *to = frit_keep(multiply_add(numbers(&rig, step), numbers(&rig, 3), numbers(&rig, 7)));
        frit_scope_end(scope);
        assert_int_equal(frit_read(*to, got, sizeof(got), NULL), FRIT_OK);
        for (uint32_t i = 0; i < COUNT; i++) {
            const float product = number_at(i, step) * number_at(i, 3);
            const float sum = product + number_at(i, 7);

            assert_true(got[i] == (sum > 0 ? sum : 0));
        }
    }
    for (int i = 0; i < KEPT; i++)
        frit_release(kept[i]);
    assert_int_equal(rig_stats(&rig).fused, STEPS);
    rig_close(&rig);
}

/* The driver's own fuser takes more ops of this program, and so wins it. */
static void the_fuser_that_saves_more_wins(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_on(&rig, RIG_DRIVER ":0", "none");
    expect_step(&rig, with_a_sum, RIG_DRIVER "/row", "row: mul add relu sum");
    rig_close(&rig);
}

/* If `prepare` of the other plugin's program fails, the ops run one by one. */
static void a_refused_program_falls_back_to_ops(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_on(&rig, RIG_DRIVER ":0", "none");
    expect_results(&rig, with_a_view);
    rig_close(&rig);
}

/* A second host restores the kernel from the saved plan, without a search. */
static void a_saved_plan_restores_the_kernel(void **state)
{
    char folder[] = "/tmp/frit-outside-XXXXXX", store[64], command[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof(store), "%s/plans.db", folder);
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig;

        open_on(&rig, RIG_DRIVER ":0", store);
        assert_int_equal(rig_stats(&rig).store_loaded > 0, i > 0);
        expect_step(&rig, multiply_add, chain, "chain: mul add relu");
        expect_results(&rig, multiply_add);
        assert_int_equal(rig_stats(&rig).explorations > 0, i == 0);
        rig_close(&rig);
    }
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    enum { SKIPPED = 77 };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_one_dispatch),
        cmocka_unit_test(a_step_runs_with_new_arguments),
        cmocka_unit_test(the_fuser_that_saves_more_wins),
        cmocka_unit_test(a_refused_program_falls_back_to_ops),
        cmocka_unit_test(a_saved_plan_restores_the_kernel),
    };
    frit_host *host = NULL;
    frit_device *device = NULL;
    const frit_host_params params = {.struct_size = sizeof(params)};
    bool there = !frit_host_open(&params, &host, NULL) &&
                 !frit_device_open(host, RIG_DRIVER ":0", &device, NULL);

    frit_device_close(device);
    frit_host_close(host);
    return there ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
