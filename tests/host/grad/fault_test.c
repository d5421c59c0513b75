/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the host fails once while gradients are recorded: either a call reports it, or
 * the gradients are right; and nothing is left over. */
#include "host/grad/near.h"

#include <stdbool.h>

#include "failing_alloc.h"

enum { STEPS = 12 };

/* sigmoid(x) * y, recorded twice. */
static frit_status block(void *ctx, frit_tensor *const *in, frit_tensor **out, frit_err *err)
{
    (void)ctx;
    (void)err;
    out[0] = frit_mul(frit_take(frit_sigmoid(in[0])), in[1]);
    return FRIT_OK;
}

static frit_status twice(void *ctx, frit_tensor *const *in, frit_tensor *const *out_grads,
                         frit_tensor **grads, frit_err *err)
{
    (void)ctx;
    (void)in;
    (void)err;
    grads[0] = frit_mul_f(out_grads[0], 2);
    return FRIT_OK;
}

/* Rules, parts, several results, functions, and a history that grows. */
static frit_tensor *record(struct rig *rig, frit_tensor *x, frit_status *st)
{
    frit_tensor *sorted = frit_sort(x, 0, NULL), *square, *cross, *made = NULL, *custom, *h;

    square = frit_reshape(sorted, FRIT_SHAPE(1, 3));
    cross = frit_cross(frit_reshape(x, FRIT_SHAPE(1, 3)), square, 1);
    h = frit_sum(cross);
    *st = frit_grad_recompute(rig->dev, block, NULL, (frit_tensor *[]){x, sorted}, 2, &made, 1,
                              &error);
    if (*st)
        return h;
    frit_no_grad_begin();
    custom = frit_mul_f(made, 2);
    frit_no_grad_end();
    *st = frit_grad_custom(rig->dev, twice, NULL, NULL, &made, 1, &custom, 1, &error);
    h = frit_add(h, frit_sum(custom));
    for (int i = 0; i < STEPS; i++)
        h = frit_add(frit_mul(h, h), h);
    return h;
}

/* False: a call reported that memory was short. */
static bool run(struct rig *rig, float *grad)
{
    frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *x = VEC(rig, 0.1f, -0.2f, 0.3f), *loss, *result;
    frit_status st = frit_grad_begin(rig->dev, &error);

    if (!st)
        st = frit_grad_watch(x, &error);
    if (!st) {
        loss = record(rig, x, &st);
        if (!st)
            st = frit_grad_backward(loss, &error);
        result = frit_grad_of(x);
        if (!st)
            st = frit_read(result, grad, 3 * sizeof(*grad), &error);
        if (frit_tensor_status(result))
            frit_release(result);
    }
    frit_grad_end(rig->dev);
    frit_scope_end(scope);
    if (st)
        assert_int_equal(st, FRIT_NO_HOST_MEMORY);
    return !st;
}

static void test_each_allocation_fails_once(void **state)
{
    float want[3], got[3];
    struct rig rig;
    bool hit = true;
    long failures = 0, reported = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_true(run(&rig, want));
    for (long n = 0; hit; n++) {
        bool good;

        failing_alloc_arm(n);
        good = run(&rig, got);
        hit = failing_alloc_disarm();
        failures += hit;
        reported += !good;
        if (good)
            assert_memory_equal(got, want, sizeof(want));
        else
            assert_true(hit);
        frit_sync_all(rig.dev, NULL);
        assert_int_equal(rig_stats(&rig).tensors_now, 0);
    }
    print_message("%ld allocations failed, %ld were reported\n", failures, reported);
    assert_true(reported > 10);
    assert_true(run(&rig, got));
    assert_memory_equal(got, want, sizeof(want));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
