/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a run that goes on from parameters and states of another one is that run, bit for
 * bit.  Errors of the calls. */
#include "api/rig.h"
#include "train/network.h"

enum { BEFORE = 5, AFTER = 7, BYTES = 1024 };

/* ---- going on ---- */

static void copy_tensor(frit_tensor **to, frit_tensor *from)
{
    frit_tensor *copy = frit_copy(from);

    frit_release(*to);
    *to = copy;
}

/* Copies what a checkpoint holds, as a program that stores it would: by name. */
static void restore(struct network *to, struct network *from)
{
    frit_state_desc a = {.struct_size = sizeof(a)}, b = {.struct_size = sizeof(b)};

    for (int i = 0; i < N_PARAMS; i++)
        copy_tensor(&to->params[i], from->params[i]);
    for (uint64_t i = 0; !frit_optimizer_state_at(from->optimizer, i, &a); i++) {
        frit_tensor *copy = frit_copy(a.tensor);

        assert_int_equal(frit_optimizer_state_at(to->optimizer, i, &b), FRIT_OK);
        assert_string_equal(a.name, b.name);
        assert_int_equal(a.param, b.param);
        OK(frit_optimizer_set_state(to->optimizer, i, copy, err));
        frit_release(copy);
    }
    for (uint64_t i = 0; from->scaler && !frit_scaler_state_at(from->scaler, i, &a); i++)
        OK(frit_scaler_set_state(to->scaler, i, a.tensor, err));
    frit_optimizer_set_steps(to->optimizer, frit_optimizer_steps(from->optimizer));
}

static void expect_equal(frit_tensor *a, frit_tensor *b)
{
    unsigned char x[BYTES], y[BYTES];
    const uint64_t bytes = frit_tensor_bytes(a);

    assert_true(bytes <= BYTES && bytes == frit_tensor_bytes(b));
    OK(frit_read(a, x, bytes, err));
    OK(frit_read(b, y, bytes, err));
    assert_memory_equal(x, y, bytes);
}

static void steps(struct network *n, int count)
{
    while (count-- > 0)
        frit_release(network_step(n));
}

static void go_on(const frit_optimizer_config *config, bool is_scaled)
{
    const frit_scaler_config scale = {.struct_size = sizeof(scale), .interval = 3};
    frit_optimizer_config configs[2] = {*config, *config};
    frit_scaler *scalers[2] = {NULL, NULL};
    struct network n[2];
    struct rig rig;

    rig_open(&rig, NULL, 0);
    for (int i = 0; i < 2; i++) {
        if (is_scaled)
            OK(frit_scaler_create(rig.dev, &scale, &scalers[i], err));
        configs[i].scaler = scalers[i];
        network_begin(&n[i], rig.dev, &configs[i]);
    }
    steps(&n[0], BEFORE);
    steps(&n[1], 1); /* something else */
    restore(&n[1], &n[0]);
    steps(&n[0], AFTER);
    steps(&n[1], AFTER);
    for (int i = 0; i < N_PARAMS; i++)
        expect_equal(n[0].params[i], n[1].params[i]);
    assert_int_equal(frit_optimizer_steps(n[1].optimizer), BEFORE + AFTER);
    for (int i = 0; i < 2; i++) {
        network_end(&n[i]);
        frit_scaler_destroy(scalers[i]);
    }
    rig_close(&rig);
}

static void test_a_run_goes_on(void **state)
{
    frit_optimizer_config config = frit_sgd_config(0.1);

    (void)state;
    config.momentum = 0.9;
    config.dampening = 0.5;
    go_on(&config, false);
    go_on(&config, true);
    config = frit_adamw_config(0.02);
    config.flags = FRIT_OPTIMIZER_AMSGRAD;
    config.clip_norm = 1;
    go_on(&config, false);
    go_on(&config, true);
}

static void test_names_of_states(void **state)
{
    static const char *const names[] = {"0.exp_avg", "0.exp_avg_sq", "0.max_exp_avg_sq", "0.master",
                                        "1.exp_avg", "1.exp_avg_sq", "1.max_exp_avg_sq"};
    frit_optimizer_config config = frit_adam_config(0.02);
    frit_state_desc desc = {.struct_size = sizeof(desc)};
    frit_optimizer *optimizer = NULL;
    frit_tensor *params[2];
    struct rig rig;
    uint64_t n = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
    params[0] = tensor_of(rig.dev, FRIT_BF16, FRIT_SHAPE(2, 3), 1, 8);
    params[1] = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(2), 2, 8);
    config.flags = FRIT_OPTIMIZER_AMSGRAD;
    OK(frit_optimizer_create(&config, params, 2, &optimizer, err));
    for (; !frit_optimizer_state_at(optimizer, n, &desc); n++) {
        assert_true(n < sizeof(names) / sizeof(names[0]));
        assert_string_equal(desc.name, names[n]);
        assert_int_equal(desc.param, n >= 4);
        assert_int_equal(frit_tensor_dtype(desc.tensor), FRIT_F32);
    }
    assert_int_equal(n, sizeof(names) / sizeof(names[0]));
    frit_optimizer_destroy(optimizer);
    frit_release(params[0]);
    frit_release(params[1]);
    rig_close(&rig);
}

/* ---- errors ---- */

#define FAILS(call, want)                                         \
    do {                                                          \
        frit_err own = {.struct_size = sizeof(own)}, *err = &own; \
        assert_int_equal(call, FRIT_INVALID);                     \
        assert_string_equal(own.text, want);                      \
    } while (0)

static void test_wrong_configs(void **state)
{
    frit_optimizer_config config = frit_sgd_config(0.1);
    frit_optimizer *optimizer;
    frit_tensor *x, *i, *gone;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    x = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(2), 1, 8);
    i = tensor_of(rig.dev, FRIT_I32, FRIT_SHAPE(2), 1, 1);
    gone = NULL;
    FAILS(frit_optimizer_create(&config, &x, 0, &optimizer, err), "optimizer_create: 0 parameters");
    FAILS(frit_optimizer_create(NULL, &x, 1, &optimizer, err),
          "optimizer_create: the config is NULL");
    FAILS(frit_optimizer_create(&config, NULL, 1, &optimizer, err),
          "optimizer_create: the list of parameters is NULL");
    FAILS(frit_optimizer_create(&config, &gone, 1, &optimizer, err),
          "optimizer_create: parameter 0: is NULL");
    FAILS(frit_optimizer_create(&config, (frit_tensor *const[]){x, x}, 2, &optimizer, err),
          "optimizer_create: parameter 0 is parameter 1, too");
    FAILS(frit_optimizer_create(&config, &i, 1, &optimizer, err),
          "optimizer_create: parameter 0 is of i32, not f16, bf16, f32 or f64");
    assert_null(optimizer);
    config.flags = FRIT_OPTIMIZER_NESTEROV;
    FAILS(frit_optimizer_create(&config, &x, 1, &optimizer, err),
          "optimizer_create: NESTEROV wants SGD with momentum and without dampening");
    config.flags = 64;
    FAILS(frit_optimizer_create(&config, &x, 1, &optimizer, err),
          "optimizer_create: unknown flags 0x40");
    config = frit_adam_config(0.1);
    config.beta1 = 1;
    FAILS(frit_optimizer_create(&config, &x, 1, &optimizer, err),
          "optimizer_create: beta1 and beta2 are from 0 to below 1, eps at least 0");
    config.kind = 7;
    FAILS(frit_optimizer_create(&config, &x, 1, &optimizer, err),
          "optimizer_create: there is no kind 7");
    config = frit_sgd_config(-1);
    FAILS(frit_optimizer_create(&config, &x, 1, &optimizer, err),
          "optimizer_create: rate, weight_decay, clip_value and clip_norm are at least 0");
    config = frit_sgd_config(1);
    config.struct_size = 0;
    FAILS(frit_optimizer_create(&config, &x, 1, &optimizer, err),
          "optimizer_create: struct_size of the config is not set");
    frit_release(x);
    frit_release(i);
    rig_close(&rig);
}

static void test_wrong_steps(void **state)
{
    const frit_optimizer_config config = frit_sgd_config(0.1);
    frit_optimizer *optimizer;
    frit_tensor *x, *kept, *small, *none = NULL;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    x = kept = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(2), 1, 8);
    small = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(1), 1, 8);
    OK(frit_optimizer_create(&config, &x, 1, &optimizer, err));
    FAILS(frit_optimizer_step(NULL, &x, NULL, err), "optimizer_step: the optimizer is NULL");
    FAILS(frit_optimizer_step(optimizer, NULL, NULL, err),
          "optimizer_step: the list of parameters is NULL");
    FAILS(frit_optimizer_step(optimizer, &none, NULL, err), "optimizer_step: parameter 0: is NULL");
    FAILS(frit_optimizer_step(optimizer, &x, &none, err),
          "optimizer_step: the gradient of parameter 0: is NULL");
    FAILS(frit_optimizer_step(optimizer, &x, &small, err),
          "optimizer_step: the gradient of parameter 0 is f32[1], the parameter was f32[2]");
    FAILS(frit_optimizer_step(optimizer, &small, &x, err),
          "optimizer_step: parameter 0 is f32[1], the parameter was f32[2]");
    FAILS(frit_optimizer_step(optimizer, &x, NULL, err),
          "optimizer_step: the gradient of parameter 0: grad_of: frit_grad_begin comes first, in "
          "the same thread");
    OK(frit_grad_begin(rig.dev, err));
    FAILS(frit_optimizer_step(optimizer, &x, NULL, err),
          "optimizer_step: the gradient of parameter 0: grad_of: the tensor is not watched");
    frit_grad_end(rig.dev);
    FAILS(frit_optimizer_set_state(optimizer, 0, x, err),
          "optimizer_set_state: there is no state 0");
    assert_ptr_equal(x, kept);
    assert_int_equal(frit_optimizer_steps(optimizer), 0);
    frit_optimizer_destroy(optimizer);
    frit_optimizer_destroy(NULL);
    frit_release(x);
    frit_release(small);
    rig_close(&rig);
}

/* A parameter that the loss does not depend on has gradient zero. */
static void test_an_unused_parameter(void **state)
{
    const frit_optimizer_config config = frit_sgd_config(0.5);
    frit_optimizer *optimizer;
    frit_tensor *x[2];
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    for (int i = 0; i < 2; i++)
        x[i] = frit_ones(rig.dev, FRIT_F32, FRIT_SHAPE(2));
    OK(frit_optimizer_create(&config, x, 2, &optimizer, err));
    for (int i = 0; i < 2; i++) {
        const frit_scope outer = frit_scope_begin(rig.dev), scope = frit_scope_begin(rig.dev);

        OK(frit_grad_begin(rig.dev, err));
        OK(frit_grad_watch(x[0], err));
        OK(frit_grad_watch(x[1], err));
        OK(frit_grad_backward(frit_sum(x[0]), err));
        OK(frit_optimizer_step(optimizer, x, NULL, err));
        FAILS(frit_grad_backward(frit_sum(x[0]), err), /* updates are not followed */
              "grad_backward: the tensor does not depend on a watched one, or was computed before "
              "frit_grad_begin or between frit_no_grad_begin and frit_no_grad_end");
        frit_grad_end(rig.dev);
        frit_scope_end(scope);
        frit_scope_end(outer);
    }
    EXPECT_DOUBLES("used", x[0], 0, 0);
    EXPECT_DOUBLES("unused", x[1], 1, 1);
    frit_optimizer_destroy(optimizer);
    frit_release(x[0]);
    frit_release(x[1]);
    rig_close(&rig);
}

/* Objects outlive their device, and say so. */
static void test_a_closed_device(void **state)
{
    frit_optimizer_config config = frit_adam_config(0.1);
    frit_err why = {.struct_size = sizeof(why)};
    frit_optimizer *optimizer;
    frit_scaler *scaler;
    frit_tensor *x;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    x = tensor_of(rig.dev, FRIT_F32, FRIT_SHAPE(2), 1, 8);
    OK(frit_scaler_create(rig.dev, NULL, &scaler, err));
    config.scaler = scaler;
    OK(frit_optimizer_create(&config, &x, 1, &optimizer, err));
    frit_device_close(rig.dev);
    assert_int_equal(frit_optimizer_step(optimizer, &x, &x, &why), FRIT_INVALID);
    assert_non_null(strstr(why.text, "optimizer_step: parameter 0: "));
    assert_int_equal(frit_optimizer_sync(optimizer, &x, &why), FRIT_INVALID);
    assert_int_equal(frit_scaler_update(scaler, &why), FRIT_INVALID);
    assert_int_equal(frit_tensor_status(frit_scaler_scale(scaler, x)), FRIT_INVALID);
    frit_optimizer_destroy(optimizer);
    frit_scaler_destroy(scaler);
    frit_host_close(rig.host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_goes_on),       cmocka_unit_test(test_names_of_states),
        cmocka_unit_test(test_wrong_configs),       cmocka_unit_test(test_wrong_steps),
        cmocka_unit_test(test_an_unused_parameter), cmocka_unit_test(test_a_closed_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
