/* SPDX-License-Identifier: Apache-2.0 */
/* A step of an optimiser over many small tensors: its ops are grouped over the tensors, whatever
 * their shapes, and compute what plain loops do. */
#include "device/rig.h"

#include <string.h>

#include <frit/inspect.h>

enum { PARAMS = 64, MANY = 1024, STEPS = 3, MOST = 16 + PARAMS, LAUNCHES = 6 };

struct param {
    int64_t n;
    frit_tensor *value, *speed, *gradient;
    float expected[MOST], moving[MOST];
    const float *slope;
};

static void make_params(struct rig *rig, struct param *params, const float *numbers, bool alike)
{
    for (int i = 0; i < PARAMS; i++) {
        struct param *p = &params[i];
        frit_dims dims;

        p->n = alike ? 24 : 16 + i;
        dims = FRIT_SHAPE(p->n);
        p->slope = numbers + i;
        p->value = rig_tensor(rig, dims, numbers);
        p->speed = rig_tensor(rig, dims, numbers + 7);
        p->gradient = rig_tensor(rig, dims, p->slope);
        memcpy(p->expected, numbers, (size_t)p->n * sizeof(*numbers));
        memcpy(p->moving, numbers + 7, (size_t)p->n * sizeof(*numbers));
    }
}

/* What `to` stands for becomes `by`. */
static void replace(frit_tensor **to, frit_tensor *by)
{
    frit_release(*to);
    *to = by;
}

/* Momentum, with a name for each result. */
static void step(struct param *p)
{
    frit_tensor *kept = frit_mul_f(p->speed, 0.5);
    frit_tensor *speed = frit_add(kept, p->gradient), *change;

    frit_release(kept);
    replace(&p->speed, speed);
    change = frit_mul_f(p->speed, 0.25);
    replace(&p->value, frit_sub(p->value, change));
    frit_release(change);
    for (int64_t i = 0; i < p->n; i++) {
        p->moving[i] = p->moving[i] * 0.5f + p->slope[i];
        p->expected[i] -= p->moving[i] * 0.25f;
    }
}

static void check_params(struct param *params)
{
    for (int i = 0; i < PARAMS; i++) {
        float *value = rig_read(params[i].value);

        for (int64_t k = 0; k < params[i].n; k++)
            if (!rig_near((double)value[k], (double)params[i].expected[k], 8, 2))
                fail_msg("parameter %d, element %lld is %.9g, not %.9g", i, (long long)k,
                         (double)value[k], (double)params[i].expected[k]);
        free(value);
        frit_release(params[i].speed);
        frit_release(params[i].gradient);
    }
}

static void run_steps(bool alike)
{
    static struct param params[PARAMS];
    float *numbers = rig_numbers(2 * MOST);
    struct rig rig;

    rig_open(&rig);
    make_params(&rig, params, numbers, alike);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    for (int i = 0; i < STEPS; i++) {
        frit_stats before = rig_stats(&rig), after;

        for (int k = 0; k < PARAMS; k++)
            step(&params[k]);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        after = rig_stats(&rig);
        assert_true(after.launches - before.launches <= LAUNCHES);
        assert_true(i == 0 || after.explorations == before.explorations);
    }
    check_params(params);
    rig_close(&rig);
    free(numbers);
}

static void test_shapes_alike(void **state)
{
    (void)state;
    run_steps(true);
}

static void test_shapes_of_all_kinds(void **state)
{
    (void)state;
    run_steps(false);
}

/* ---- many parameters in a scope ---- */

/* What is not kept dies where the scope ends. */
static void step_in_scope(struct rig *rig, struct param *params, int n)
{
    frit_scope scope = frit_scope_begin(rig->dev);

    for (int i = 0; i < n; i++) {
        struct param *p = &params[i];
        frit_tensor *speed = frit_add(frit_mul_f(p->speed, 0.5), frit_mul_f(p->gradient, 2));
        frit_tensor *value = frit_sub(p->value, frit_mul_f(speed, 0.25));

        replace(&p->speed, frit_keep(speed));
        replace(&p->value, frit_keep(value));
    }
    frit_scope_end(scope);
}

/* The launches of a step over this many parameters, of four shapes. */
static uint64_t count_launches(int n)
{
    static struct param params[MANY];
    float *numbers = rig_numbers(MOST);
    frit_stats before, after;
    struct rig rig;

    rig_open(&rig);
    for (int i = 0; i < n; i++) {
        struct param *p = &params[i];
        frit_dims dims = i % 2 ? FRIT_SHAPE(4, 2 + i % 4) : FRIT_SHAPE(4 + i % 4);

        p->value = rig_tensor(&rig, dims, numbers);
        p->speed = rig_tensor(&rig, dims, numbers);
        p->gradient = rig_tensor(&rig, dims, numbers);
    }
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    before = rig_stats(&rig);
    step_in_scope(&rig, params, n);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    after = rig_stats(&rig);
    for (int i = 0; i < n; i++) {
        frit_release(params[i].value);
        frit_release(params[i].speed);
        frit_release(params[i].gradient);
    }
    rig_close(&rig);
    free(numbers);
    assert_int_equal(after.explorations - before.explorations, 1);
    return after.launches - before.launches;
}

/* However many parameters a step has, it is few launches. */
static void test_many_parameters(void **state)
{
    (void)state;
    assert_in_range(count_launches(64), 1, LAUNCHES);
    assert_in_range(count_launches(256), 1, LAUNCHES);
    assert_in_range(count_launches(MANY), 1, LAUNCHES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_alike),
        cmocka_unit_test(test_shapes_of_all_kinds),
        cmocka_unit_test(test_many_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
