/* SPDX-License-Identifier: Apache-2.0 */
/* What gradients add up from, what a history keeps, and what it refuses. */
#include "host/grad/near.h"

#include <pthread.h>
#include <string.h>

struct grad_rig {
    struct rig rig;
    frit_tensor *x; /* 1, 2, 3; watched */
};

static void open_history(struct grad_rig *r)
{
    rig_open(&r->rig, NULL, 0);
    OK(frit_grad_begin(r->rig.dev, &error));
    r->x = VEC(&r->rig, 1, 2, 3);
    OK(frit_grad_watch(r->x, &error));
}

static void close_history(struct grad_rig *r)
{
    frit_release(r->x);
    frit_grad_end(r->rig.dev);
    rig_close(&r->rig);
}

/* ---- what adds up ---- */

static void test_each_use_counts(void **state)
{
    struct grad_rig r;
    frit_tensor *square, *both, *loss;

    (void)state;
    open_history(&r);
    square = frit_mul(r.x, r.x);
    both = frit_add(frit_take(square), r.x);
    loss = sum_of(both);
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), 3, 5, 7);
    frit_release(loss);
    close_history(&r);
}

/* x + relu(x - 2) twice over, with the same name each time. */
static void test_residuals(void **state)
{
    struct grad_rig r;
    frit_tensor *h, *loss;

    (void)state;
    open_history(&r);
    h = frit_ref(r.x);
    for (int i = 0; i < 2; i++) {
        frit_tensor *branch = frit_relu(frit_take(frit_sub_f(h, 2)));

        h = frit_add(frit_take(h), frit_take(branch));
    }
    loss = sum_of(h);
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), 1, 1, 4);
    frit_release(loss);
    close_history(&r);
}

static void test_two_losses(void **state)
{
    struct grad_rig r;
    frit_tensor *h, *first, *second;

    (void)state;
    open_history(&r);
    h = frit_mul(r.x, r.x);
    first = frit_sum(h);
    second = sum_of(frit_mul(h, h));
    OK(frit_grad_backward_many(&first, NULL, 1, FRIT_GRAD_KEEP, &error));
    EXPECT(frit_grad_of(r.x), 2, 4, 6);
    OK(frit_grad_backward(second, &error));
    EXPECT(frit_grad_of(r.x), 6, 36, 114);
    frit_release(h);
    frit_release(first);
    frit_release(second);
    close_history(&r);
}

/* Both in one pass, one of them with a gradient of its own. */
static void test_losses_at_once(void **state)
{
    struct grad_rig r;
    frit_tensor *h, *tensors[2], *grads[2];

    (void)state;
    open_history(&r);
    h = frit_mul(r.x, r.x);
    tensors[0] = frit_sum(h);
    tensors[1] = frit_mul_f(h, 2);
    grads[0] = NULL;
    grads[1] = VEC(&r.rig, 1, 0, -1);
    OK(frit_grad_backward_many(tensors, grads, 2, 0, &error));
    EXPECT(frit_grad_of(r.x), 6, 4, -6);
    frit_release(h);
    frit_release(tensors[0]);
    frit_release(tensors[1]);
    frit_release(grads[1]);
    close_history(&r);
}

static void test_a_loss_that_is_watched_itself(void **state)
{
    struct grad_rig r;
    frit_tensor *one, *beside;

    (void)state;
    open_history(&r);
    one = VEC(&r.rig, 5);
    beside = VEC(&r.rig, 5, 6);
    OK(frit_grad_watch(one, &error));
    OK(frit_grad_watch(beside, &error));
    OK(frit_grad_backward(one, &error));
    EXPECT(frit_grad_of(one), 1);
    EXPECT(frit_grad_of(beside), 0, 0);
    frit_release(one);
    frit_release(beside);
    close_history(&r);
}

static void test_intermediates_are_watched(void **state)
{
    struct grad_rig r;
    frit_tensor *h, *loss;

    (void)state;
    open_history(&r);
    h = frit_mul_f(r.x, 2);
    OK(frit_grad_watch(h, &error));
    loss = sum_of(frit_mul(h, h));
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(h), 4, 8, 12);
    EXPECT(frit_grad_of(r.x), 8, 16, 24);
    frit_release(h);
    frit_release(loss);
    close_history(&r);
}

static void test_no_grad(void **state)
{
    struct grad_rig r;
    frit_tensor *constant, *loss;

    (void)state;
    open_history(&r);
    frit_no_grad_begin();
    frit_no_grad_begin();
    frit_no_grad_end();
    constant = frit_mul(r.x, r.x);
    frit_no_grad_end();
    frit_no_grad_end(); /* one too many does nothing */
    loss = sum_of(frit_mul(constant, r.x));
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), 1, 4, 9);
    frit_release(constant);
    frit_release(loss);
    close_history(&r);
}

/* Steps of a scan: the same tensor's name takes a new value each time. */
static void test_many_steps_of_one_value(void **state)
{
    enum { STEPS = 300 };
    struct grad_rig r;
    frit_tensor *h, *loss;

    (void)state;
    open_history(&r);
    h = frit_ref(r.x);
    for (int i = 0; i < STEPS; i++)
        h = frit_add(frit_take(h), r.x);
    loss = sum_of(h);
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), STEPS + 1, STEPS + 1, STEPS + 1);
    frit_release(loss);
    close_history(&r);
}

/* ---- what a history keeps ---- */

static void test_everything_is_released_meanwhile(void **state)
{
    struct grad_rig r;
    frit_tensor *w, *product, *loss, *grad;

    (void)state;
    open_history(&r);
    w = VEC(&r.rig, 4, 5, 6);
    product = frit_mul(frit_take(w), r.x);
    loss = sum_of(frit_tanh(frit_take(frit_mul_f(frit_take(product), 0))));
    OK(frit_grad_backward(loss, &error));
    grad = frit_ref(frit_grad_of(r.x));
    frit_release(loss);
    frit_grad_end(r.rig.dev);
    EXPECT(grad, 0, 0, 0);
    frit_release(grad);
    close_history(&r);
}

/* In scopes, some of it released by hand or by an op before the scope ends. */
static void test_scopes_end_before_the_pass(void **state)
{
    struct grad_rig r;
    frit_tensor *loss;
    frit_scope outer, inner;

    (void)state;
    open_history(&r);
    outer = frit_scope_begin(r.rig.dev);
    inner = frit_scope_begin(r.rig.dev);
    {
        frit_tensor *w = VEC(&r.rig, 4, 5, 6), *e = frit_exp(r.x);
        frit_tensor *a = frit_mul(r.x, w), *b = frit_mul(a, e), *c = frit_mul(frit_take(b), a);

        frit_release(w);
        frit_release(e);
        loss = frit_keep(frit_keep(frit_sum(c)));
    }
    frit_scope_end(inner);
    frit_scope_end(outer);
    OK(frit_grad_backward(loss, &error));
    /* w^2 e^x (2 x + x^2) */
    EXPECT(frit_grad_of(r.x), 16 * 2.7182818f * 3, 25 * 7.3890561f * 8, 36 * 20.085537f * 15);
    frit_release(loss);
    close_history(&r);
}

/* A gradient outlives the scopes that it was requested in, and the gradient it was made from. */
static void test_scopes_around_the_pass(void **state)
{
    struct grad_rig r;
    frit_tensor *unused, *made[2];
    frit_scope scope;

    (void)state;
    open_history(&r);
    unused = VEC(&r.rig, 7, 8);
    OK(frit_grad_watch(unused, &error));
    scope = frit_scope_begin(r.rig.dev);
    (void)frit_scope_begin(r.rig.dev);
    {
        frit_tensor *y = frit_add(r.x, r.x), *g = VEC(&r.rig, 1, 2, 3);

        OK(frit_grad_backward_many(&y, &g, 1, FRIT_GRAD_KEEP, &error));
        OK(frit_grad_backward_many(&r.x, &g, 1, 0, &error));
        made[0] = frit_grad_of(r.x);
        made[1] = frit_grad_of(unused);
        frit_release(g);
    }
    frit_scope_end(scope);
    assert_ptr_equal(made[0], frit_grad_of(r.x));
    EXPECT(made[0], 3, 6, 9);
    EXPECT(made[1], 0, 0);
    frit_release(unused);
    close_history(&r);
}

static void test_watched_tensors_are_kept(void **state)
{
    struct grad_rig r;
    frit_tensor *w, *loss, *same;

    (void)state;
    open_history(&r);
    w = VEC(&r.rig, 4, 5, 6);
    OK(frit_grad_watch(w, &error));
    OK(frit_grad_watch(w, &error)); /* once more does nothing */
    loss = sum_of(frit_mul(w, r.x));
    same = w;
    frit_release(w);
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(same), 1, 2, 3);
    frit_release(loss);
    close_history(&r);
}

/* Numbers and dropped outputs: of sort only the values are wanted, and its indices are needed. */
static void test_results_that_nobody_wants(void **state)
{
    struct grad_rig r;
    frit_tensor *sorted, *weight, *loss;
    frit_scope scope;

    (void)state;
    open_history(&r);
    scope = frit_scope_begin(r.rig.dev);
    sorted = frit_sort_with(
        r.x, 0, NULL, &(frit_sort_attrs){.struct_size = sizeof(frit_sort_attrs), .descending = 1});
    weight = VEC(&r.rig, 1, 10, 100);
    loss = frit_keep(frit_sum(frit_mul(sorted, weight)));
    frit_scope_end(scope);
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), 100, 10, 1);
    frit_release(loss);
    close_history(&r);
}

/* ---- what it refuses ---- */

static void test_a_second_pass(void **state)
{
    struct grad_rig r;
    frit_tensor *loss;

    (void)state;
    open_history(&r);
    loss = sum_of(frit_mul(r.x, r.x));
    OK(frit_grad_backward(loss, &error));
    expect_failure(frit_grad_backward(loss, &error), FRIT_INVALID, "FRIT_GRAD_KEEP");
    EXPECT(frit_grad_of(r.x), 2, 4, 6);
    frit_release(loss);
    close_history(&r);
}

static void test_written_operands(void **state)
{
    const float other[3] = {7, 8, 9};
    struct grad_rig r;
    frit_tensor *w, *sum, *product;

    (void)state;
    open_history(&r);
    w = VEC(&r.rig, 4, 5, 6);
    sum = sum_of(frit_add(r.x, w));
    product = sum_of(frit_mul(r.x, w));
    OK(frit_write(w, other, sizeof(other), &error));
    OK(frit_grad_backward(sum, &error)); /* needs no operand */
    expect_failure(frit_grad_backward(product, &error), FRIT_INVALID, "mul");
    assert_non_null(strstr(error.text, "operand b"));
    assert_non_null(strstr(error.text, "frit_write"));
    EXPECT(frit_grad_of(r.x), 1, 1, 1);
    frit_release(w);
    frit_release(sum);
    frit_release(product);
    close_history(&r);
}

static void test_written_results(void **state)
{
    const float other[3] = {7, 8, 9};
    struct grad_rig r;
    frit_tensor *y, *loss;

    (void)state;
    open_history(&r);
    y = frit_exp(r.x);
    loss = frit_sum(y);
    OK(frit_write(y, other, sizeof(other), &error));
    expect_failure(frit_grad_backward(loss, &error), FRIT_INVALID, "result");
    assert_non_null(strstr(error.text, "exp"));
    frit_release(y);
    frit_release(loss);
    close_history(&r);
}

static void test_failed_tensors(void **state)
{
    struct grad_rig r;
    frit_tensor *wrong, *after, *two, *loss;

    (void)state;
    open_history(&r);
    two = VEC(&r.rig, 1, 2);
    wrong = frit_add(r.x, two);
    after = sum_of(frit_mul(wrong, r.x));
    expect_failure(frit_grad_backward(after, &error), FRIT_INVALID, "add");
    expect_failure(frit_grad_watch(wrong, &error), FRIT_INVALID, "grad_watch");
    loss = sum_of(frit_mul(r.x, r.x)); /* what failed beside it does not matter */
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), 2, 4, 6);
    frit_release(wrong);
    frit_release(after);
    frit_release(two);
    frit_release(loss);
    assert_int_equal(frit_sync(r.rig.dev, NULL), FRIT_INVALID);
    close_history(&r);
}

static void test_losses_that_are_none(void **state)
{
    struct grad_rig r;
    frit_tensor *constant, *y, *wrong;

    (void)state;
    open_history(&r);
    constant = VEC(&r.rig, 1);
    y = frit_mul(r.x, r.x);
    wrong = VEC(&r.rig, 1, 2);
    expect_failure(frit_grad_backward(constant, &error), FRIT_INVALID, "does not depend");
    expect_failure(frit_grad_backward(y, &error), FRIT_INVALID, "one element");
    expect_failure(frit_grad_backward_many(&y, &wrong, 1, 0, &error), FRIT_INVALID, "f32[2]");
    expect_failure(frit_grad_backward_many(&y, NULL, 0, 0, &error), FRIT_INVALID, "no tensors");
    expect_failure(frit_grad_backward_many(&y, NULL, 1, 2, &error), FRIT_INVALID, "flags");
    expect_failure(frit_grad_backward_many(NULL, NULL, 1, 0, &error), FRIT_INVALID, "no tensors");
    frit_release(constant);
    frit_release(y);
    frit_release(wrong);
    close_history(&r);
}

static void test_gradients_of_gradient_ops(void **state)
{
    struct grad_rig r;
    frit_tensor *y, *loss;

    (void)state;
    open_history(&r);
    y = frit_relu_backward(r.x, r.x);
    loss = sum_of(y);
    expect_failure(frit_grad_backward(loss, &error), FRIT_UNSUPPORTED, "relu_backward");
    frit_release(loss);
    close_history(&r);
}

static void test_handles_that_are_none(void **state)
{
    static const int64_t integers[2] = {1, 2};
    struct grad_rig r;
    frit_tensor *whole, *gone, *loose;

    (void)state;
    rig_open(&r.rig, NULL, 0);
    loose = VEC(&r.rig, 1, 2);
    expect_failure(frit_grad_begin(NULL, &error), FRIT_INVALID, "device");
    expect_failure(frit_grad_watch(loose, &error), FRIT_INVALID, "frit_grad_begin");
    expect_failure(frit_grad_backward(loose, &error), FRIT_INVALID, "frit_grad_begin");
    rig_expect_error(frit_grad_of(loose), FRIT_INVALID,
                     "grad_of: frit_grad_begin comes first, in the same thread");
    frit_grad_end(r.rig.dev);
    frit_grad_end(NULL);
    OK(frit_grad_begin(r.rig.dev, &error));
    expect_failure(frit_grad_begin(r.rig.dev, &error), FRIT_BUSY, "reference:0");
    whole = frit_from_host(r.rig.dev, FRIT_I64, FRIT_SHAPE(2), integers, sizeof(integers));
    gone = VEC(&r.rig, 1);
    frit_release(gone);
    expect_failure(frit_grad_watch(whole, &error), FRIT_INVALID, "i64");
    expect_failure(frit_grad_watch(NULL, &error), FRIT_INVALID, "NULL");
    assert_int_not_equal(frit_grad_watch(gone, &error), FRIT_OK);
    assert_int_not_equal(frit_grad_backward(NULL, &error), FRIT_OK);
    assert_int_not_equal(frit_grad_backward(gone, &error), FRIT_OK);
    rig_expect_error(frit_grad_of(loose), FRIT_INVALID, "grad_of: the tensor is not watched");
    frit_release(frit_grad_of(NULL));
    frit_release(frit_grad_of(gone));
    frit_release(whole);
    frit_release(loose);
    frit_grad_end(r.rig.dev);
    rig_close(&r.rig);
}

/* Tensors of another device are constants, and its ops are followed by themselves. */
static void test_foreign_devices(void **state)
{
    struct grad_rig r;
    frit_device *other;
    frit_tensor *there, *loss, *both[2];

    (void)state;
    open_history(&r);
    OK(frit_device_open(r.rig.host, "cpu:0", &other, &error));
    there = frit_to_device(r.x, other);
    expect_failure(frit_grad_watch(there, &error), FRIT_INVALID, "frit_grad_begin");
    OK(frit_grad_begin(other, &error));
    OK(frit_grad_watch(there, &error));
    loss = sum_of(frit_mul(there, there));
    both[0] = loss;
    both[1] = sum_of(frit_mul(r.x, r.x));
    expect_failure(frit_grad_backward_many(both, NULL, 2, 0, &error), FRIT_INVALID,
                   "several devices");
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(there), 2, 4, 6);
    EXPECT(frit_grad_of(r.x), 0, 0, 0);
    frit_release(both[1]);
    frit_release(loss);
    frit_release(there);
    frit_grad_end(other);
    frit_device_close(other);
    close_history(&r);
}

/* What was computed before a tensor was watched does not depend on it. */
static void test_late_watches(void **state)
{
    struct grad_rig r;
    frit_tensor *w, *before, *loss;

    (void)state;
    open_history(&r);
    w = VEC(&r.rig, 4, 5, 6);
    before = frit_mul(w, w);
    OK(frit_grad_watch(w, &error));
    loss = sum_of(frit_mul(before, w));
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(w), 16, 25, 36);
    frit_release(w);
    frit_release(before);
    frit_release(loss);
    close_history(&r);
}

/* A device that is closed while its ops are followed, and another one after it. */
static void test_closed_devices(void **state)
{
    struct grad_rig r;
    frit_tensor *loss;

    (void)state;
    open_history(&r);
    loss = sum_of(frit_mul(r.x, r.x));
    frit_device_close(r.rig.dev);
    assert_int_not_equal(frit_grad_backward(loss, &error), FRIT_OK);
    OK(frit_device_open(r.rig.host, "reference:0", &r.rig.dev, &error));
    OK(frit_grad_begin(r.rig.dev, &error));
    r.x = VEC(&r.rig, 1, 2, 3);
    OK(frit_grad_watch(r.x, &error));
    loss = sum_of(frit_mul(r.x, r.x));
    OK(frit_grad_backward(loss, &error));
    EXPECT(frit_grad_of(r.x), 2, 4, 6);
    frit_release(loss);
    close_history(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_use_counts),
        cmocka_unit_test(test_residuals),
        cmocka_unit_test(test_two_losses),
        cmocka_unit_test(test_losses_at_once),
        cmocka_unit_test(test_a_loss_that_is_watched_itself),
        cmocka_unit_test(test_intermediates_are_watched),
        cmocka_unit_test(test_no_grad),
        cmocka_unit_test(test_many_steps_of_one_value),
        cmocka_unit_test(test_everything_is_released_meanwhile),
        cmocka_unit_test(test_scopes_end_before_the_pass),
        cmocka_unit_test(test_scopes_around_the_pass),
        cmocka_unit_test(test_watched_tensors_are_kept),
        cmocka_unit_test(test_results_that_nobody_wants),
        cmocka_unit_test(test_a_second_pass),
        cmocka_unit_test(test_written_operands),
        cmocka_unit_test(test_written_results),
        cmocka_unit_test(test_failed_tensors),
        cmocka_unit_test(test_losses_that_are_none),
        cmocka_unit_test(test_gradients_of_gradient_ops),
        cmocka_unit_test(test_handles_that_are_none),
        cmocka_unit_test(test_foreign_devices),
        cmocka_unit_test(test_late_watches),
        cmocka_unit_test(test_closed_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
