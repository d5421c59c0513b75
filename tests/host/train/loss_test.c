/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and their gradients against PyTorch's. */
#include "api/rig.h"
#include "train/values.h"

#include "train/expected.h"

enum { TOLERANCE_E6 = 4 }; /* 1e-6 relative, times this */

/* What a case computes from its operand. */
typedef frit_tensor *(*loss_fn)(struct rig *rig, frit_tensor *x, int64_t reduction);

struct loss_case {
    const char *name;
    loss_fn fn;
    int64_t reduction;
    const frit_dims *dims;
    int seed;
    double scale;
    const double *value, *grad;
};

static frit_tensor *classes(struct rig *rig, frit_dims dims, const int32_t *data)
{
    return frit_from_host(rig->dev, FRIT_I32, dims, data, count_of(dims) * sizeof(*data));
}

static frit_tensor *square(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    frit_tensor *y = tensor_of(rig->dev, FRIT_F32, FRIT_SHAPE(3, 4), 4, 2);

    return frit_loss_mse(x, y, .reduction = reduction);
}

static frit_tensor *binary(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    frit_tensor *y = frit_add_f(tensor_of(rig->dev, FRIT_F32, FRIT_SHAPE(3, 4), 4, 16), 0.5);

    return frit_loss_bce(frit_mul_f(x, 10), y, .reduction = reduction);
}

static const int32_t labels[] = {2, 0, 3};

static frit_tensor *cross(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    return frit_loss_cross_entropy(frit_mul_f(x, 10), classes(rig, FRIT_SHAPE(3), labels), 1,
                                   .reduction = reduction);
}

static frit_tensor *cross_spread(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    const int64_t wide[] = {2, 0, 3};
    frit_tensor *target = frit_from_host(rig->dev, FRIT_I64, FRIT_SHAPE(3), wide, sizeof(wide));

    return frit_loss_cross_entropy(x, target, -1, .reduction = reduction, .has_ignore = 1,
                                   .ignore_index = 0, .label_smoothing = 0.2);
}

static frit_tensor *cross_axis(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    const int32_t many[] = {0, 2, 1, 1, 2, 2, 0, 1};

    (void)reduction;
    return frit_loss_cross_entropy(x, classes(rig, FRIT_SHAPE(2, 4), many), 1);
}

static frit_tensor *cross_ignored(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    const int32_t all[] = {5, 5, 5};

    (void)reduction;
    return frit_loss_cross_entropy(x, classes(rig, FRIT_SHAPE(3), all), 1, .has_ignore = 1,
                                   .ignore_index = 5);
}

static frit_tensor *ctc_of(struct rig *rig, frit_tensor *x, const int32_t *heard, int64_t reduction,
                           int64_t zero_infinity)
{
    const int32_t said[] = {1, 2, 3, 3, 3, 1, 2, 1, 1}, length[] = {3, 2, 1};

    return frit_loss_ctc(frit_log_softmax(x, 2), classes(rig, FRIT_SHAPE(3, 3), said),
                         classes(rig, FRIT_SHAPE(3), heard), classes(rig, FRIT_SHAPE(3), length), 0,
                         .reduction = reduction, .zero_infinity = zero_infinity);
}

static frit_tensor *ctc(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    return ctc_of(rig, x, (const int32_t[]){5, 3, 4}, reduction, 0);
}

static frit_tensor *ctc_tight(struct rig *rig, frit_tensor *x, int64_t reduction)
{
    return ctc_of(rig, x, (const int32_t[]){5, 2, 4}, reduction, 1);
}

static const frit_dims rows = {2, {3, 4}}, speech = {3, {5, 3, 4}}, image = {3, {2, 3, 4}};

#define CASE(name, fn, reduction, dims, seed, scale)                                        \
    {                                                                                       \
#name, fn, reduction, &(dims), seed, scale, expected_##name, expected_##name##_grad \
    }
#define ALL_OF(name, fn, dims, seed, scale)                     \
    CASE(name##_mean, fn, FRIT_LOSS_MEAN, dims, seed, scale),   \
        CASE(name##_sum, fn, FRIT_LOSS_SUM, dims, seed, scale), \
        CASE(name##_none, fn, FRIT_LOSS_NONE, dims, seed, scale)

static const struct loss_case cases[] = {
    ALL_OF(mse, square, rows, 3, 2),
    ALL_OF(bce, binary, rows, 3, 2),
    ALL_OF(ce, cross, rows, 3, 2),
    ALL_OF(ce_spread, cross_spread, rows, 3, 2),
    ALL_OF(ctc, ctc, speech, 7, 4),
    CASE(ce_axis, cross_axis, FRIT_LOSS_MEAN, image, 6, 4),
    CASE(ce_ignored, cross_ignored, FRIT_LOSS_MEAN, rows, 3, 2),
    CASE(ctc_tight, ctc_tight, FRIT_LOSS_MEAN, speech, 7, 4),
};

/* The gradient of bce, ce by x is ten times that by their logits. */
static double factor_of(const struct loss_case *c)
{
    return c->fn == binary || c->fn == cross ? 10 : 1;
}

static void run_case(struct rig *rig, const struct loss_case *c)
{
    const frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *x = tensor_of(rig->dev, FRIT_F32, *c->dims, c->seed, c->scale), *loss, *grad;

    OK(frit_grad_begin(rig->dev, err));
    OK(frit_grad_watch(x, err));
    loss = c->fn(rig, x, c->reduction);
    OK(frit_grad_backward(frit_mul_f(frit_sum(loss), 3), err));
    grad = frit_mul_f(frit_grad_of(x), 1 / factor_of(c));
    frit_grad_end(rig->dev);
    expect_doubles(c->name, loss, c->value, 1e-6 * TOLERANCE_E6);
    expect_doubles(c->name, grad, c->grad, 1e-6 * TOLERANCE_E6);
    frit_scope_end(scope);
}

static void test_losses_are_those_of_pytorch(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_case(&rig, &cases[i]);
    rig_close(&rig);
}

/* A loss owns what it made: without a scope the caller releases one tensor, and operands that are
 * taken are gone. */
static void test_what_a_loss_leaves(void **state)
{
    frit_tensor *x, *loss;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    x = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(3, 4), 3, 2);
    loss = frit_loss_mse(frit_take(x), frit_take(x));
    assert_int_equal(rig_stats(&rig).tensors_now, 1);
    assert_int_equal(frit_tensor_status(x), FRIT_INVALID);
    EXPECT_DOUBLES("mse of itself", loss, 0);
    frit_release(loss);
    rig_close(&rig);
}

static void test_large_logits(void **state)
{
    static const float x[] = {1e4F, -1e4F}, y[] = {0, 1};
    const int32_t at[] = {1};
    frit_tensor *logits, *loss;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    logits = rig_f32(&rig, FRIT_SHAPE(1, 2), x);
    loss = frit_loss_bce(logits, frit_take(rig_f32(&rig, FRIT_SHAPE(1, 2), y)));
    EXPECT_DOUBLES("bce", loss, 1e4);
    frit_release(loss);
    loss =
        frit_loss_cross_entropy(frit_take(logits), frit_take(classes(&rig, FRIT_SHAPE(1), at)), 1);
    EXPECT_DOUBLES("ce", loss, 2e4);
    frit_release(loss);
    rig_close(&rig);
}

static void test_wrong_calls(void **state)
{
    frit_tensor *x, *y, *at;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    x = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(3, 4), 3, 2);
    y = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(3, 1), 3, 2);
    at = classes(&rig, FRIT_SHAPE(3), labels);
    rig_expect_error(frit_loss_mse(x, y), FRIT_INVALID,
                     "loss_mse: operand and target are floats of one type and the same dims, not "
                     "f32[3, 4] and f32[3, 1]");
    rig_expect_error(frit_loss_bce(x, NULL), FRIT_INVALID, "loss_bce: operand 1: is NULL");
    rig_expect_error(frit_loss_mse(x, x, .reduction = 3), FRIT_INVALID,
                     "loss_mse: there is no reduction 3");
    rig_expect_error(frit_loss_mse_with(x, x, &(frit_loss_attrs){0}), FRIT_INVALID,
                     "loss_mse: struct_size of the attributes is not set");
    rig_expect_error(frit_loss_cross_entropy(x, at, 0), FRIT_INVALID,
                     "loss_cross_entropy: the target is i32[3], not i32[4] (or i32)");
    rig_expect_error(frit_loss_cross_entropy(x, y, 1), FRIT_INVALID,
                     "loss_cross_entropy: the target is f32[3, 1], not i64[3] (or i32)");
    rig_expect_error(frit_loss_cross_entropy(x, at, 2), FRIT_INVALID,
                     "loss_cross_entropy: x is f32[3, 4] and has no axis 2");
    rig_expect_error(frit_loss_cross_entropy(x, at, 1, .label_smoothing = 2), FRIT_INVALID,
                     "loss_cross_entropy: label_smoothing is 2, not 0 to 1");
    frit_release(x);
    frit_release(y);
    frit_release(at);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_pytorch),
        cmocka_unit_test(test_what_a_loss_leaves),
        cmocka_unit_test(test_large_logits),
        cmocka_unit_test(test_wrong_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
