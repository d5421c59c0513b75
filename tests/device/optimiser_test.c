/* SPDX-License-Identifier: Apache-2.0 */
/* A step of an optimiser over many small tensors: its ops are grouped over the tensors, whatever
 * their shapes, and compute what plain loops do. */
#include "device/rig.h"

#include <string.h>

enum { PARAMS = 64, STEPS = 3, MOST = 16 + PARAMS };

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
    assert_int_equal(frit_sync(rig.dev), FRIT_OK);
    for (int i = 0; i < STEPS; i++) {
        frit_stats before = rig_stats(&rig), after;

        for (int k = 0; k < PARAMS; k++)
            step(&params[k]);
        assert_int_equal(frit_sync(rig.dev), FRIT_OK);
        after = rig_stats(&rig);
        assert_true(after.launches - before.launches <= PARAMS / 4);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_alike),
        cmocka_unit_test(test_shapes_of_all_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
