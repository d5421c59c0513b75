/* SPDX-License-Identifier: Apache-2.0 */
/* Loss scaling beyond one optimiser and steps that run: optimizer_test.c has its rules. */
#include "api/plugin_rig.h"
#include "train/values.h"

static const float fine[] = {1, 2}, spoiled[] = {1, INFINITY};

static frit_tensor *pair_of(const struct plugin_rig *rig, const float *data)
{
    return frit_from_host(rig->dev, FRIT_F32, FRIT_SHAPE(2), data, 2 * sizeof(*data));
}

static void open_reference(struct plugin_rig *rig)
{
    rig_set(rig, "frit", "log", "off");
    rig_open(rig, "reference:0");
}

static void expect_scale(frit_scaler *scaler, double want)
{
    frit_state_desc state = {.struct_size = sizeof(state)};

    assert_int_equal(frit_scaler_state_at(scaler, 0, &state), FRIT_OK);
    EXPECT_DOUBLES("scale", state.tensor, want);
}

/* Each optimiser skips its own steps; the scale shrinks if any had to. */
static void test_two_optimisers(void **state)
{
    static const float *const data[][2] = {{spoiled, fine}, {fine, spoiled}, {fine, fine}};
    static const double scales[] = {32768, 16384, 16384};
    struct plugin_rig rig = {.n_settings = 0};
    frit_optimizer_config config = frit_sgd_config(65536);
    double want[2] = {1, 1};
    frit_optimizer *optimizers[2];
    frit_tensor *params[2];

    (void)state;
    open_reference(&rig);
    OK(frit_scaler_create(rig.dev, NULL, &config.scaler, err));
    for (int i = 0; i < 2; i++) {
        params[i] = frit_ones(rig.dev, FRIT_F32, FRIT_SHAPE(2));
        OK(frit_optimizer_create(&config, &params[i], 1, &optimizers[i], err));
    }
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 2; i++) {
            frit_tensor *grad = pair_of(&rig, data[step][i]);

            want[i] -= data[step][i] == fine ? 65536 / (step ? scales[step - 1] : 65536) : 0;
            OK(frit_optimizer_step(optimizers[i], &params[i], &grad, err));
            frit_release(grad);
        }
        OK(frit_scaler_update(config.scaler, err));
        expect_scale(config.scaler, scales[step]);
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_DOUBLES("a parameter", params[i], want[i], 2 * want[i] - 1);
        frit_optimizer_destroy(optimizers[i]);
        frit_release(params[i]);
    }
    frit_scaler_destroy(config.scaler);
    rig_close(&rig);
}

/* Without eps a first step that is skipped would divide 0 by 0. */
static void test_a_skipped_first_step(void **state)
{
    struct plugin_rig rig = {.n_settings = 0};
    frit_optimizer_config config = frit_adamw_config(0.1);
    frit_tensor *param, *grad;
    frit_optimizer *optimizer;

    (void)state;
    open_reference(&rig);
    config.eps = 0;
    OK(frit_scaler_create(rig.dev, NULL, &config.scaler, err));
    param = pair_of(&rig, fine);
    grad = pair_of(&rig, spoiled);
    OK(frit_optimizer_create(&config, &param, 1, &optimizer, err));
    OK(frit_optimizer_step(optimizer, &param, &grad, err));
    EXPECT_DOUBLES("the parameter", param, 1, 2);
    frit_optimizer_destroy(optimizer);
    frit_scaler_destroy(config.scaler);
    frit_release(param);
    frit_release(grad);
    rig_close(&rig);
}

/* The update fails on the device, what the scale follows from does not: both are undone. */
static void test_the_scale_goes_back_with_the_step(void **state)
{
    struct plugin_rig rig = {.n_settings = 0};
    frit_optimizer_config config = frit_sgd_config(0.1);
    frit_state_desc before = {.struct_size = sizeof(before)}, after = before;
    frit_tensor *param, *kept, *grad;
    frit_optimizer *optimizer;
    frit_err why = {.struct_size = sizeof(why)};

    (void)state;
    rig_set(&rig, "frit", "log", "off");
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", "option.max_fused_ops", "0");
    rig_set(&rig, "plugin.null", "option.fail_ops", "clamp:timeout");
    rig_open(&rig, "null:0");
    config.clip_value = 1;
    OK(frit_scaler_create(rig.dev, NULL, &config.scaler, err));
    param = kept = pair_of(&rig, fine);
    grad = pair_of(&rig, fine);
    OK(frit_optimizer_create(&config, &param, 1, &optimizer, err));
    assert_int_equal(frit_scaler_state_at(config.scaler, 0, &before), FRIT_OK);
    OK(frit_optimizer_step(optimizer, &param, &grad, err));
    OK(frit_scaler_update(config.scaler, err));
    assert_ptr_not_equal(param, kept);
    assert_int_equal(frit_optimizer_sync(optimizer, &param, &why), FRIT_TIMEOUT);
    assert_ptr_equal(param, kept);
    assert_int_equal(frit_scaler_state_at(config.scaler, 0, &after), FRIT_OK);
    assert_ptr_equal(after.tensor, before.tensor);
    assert_int_equal(frit_scaler_update(config.scaler, &why), FRIT_INVALID);
    assert_string_equal(why.text, "scaler_update: there was no step since the last update");
    frit_optimizer_destroy(optimizer);
    frit_scaler_destroy(config.scaler);
    frit_release(param);
    frit_release(grad);
    rig_close(&rig);
}

static void test_wrong_calls(void **state)
{
    struct plugin_rig rig = {.n_settings = 0};
    frit_err why = {.struct_size = sizeof(why)};
    frit_scaler *scaler;
    frit_tensor *failed;

    (void)state;
    open_reference(&rig);
    assert_int_equal(frit_scaler_create(NULL, NULL, &scaler, &why), FRIT_INVALID);
    assert_string_equal(why.text, "scaler_create: the device is NULL");
    assert_int_equal(frit_scaler_create(rig.dev, &(frit_scaler_config){0}, &scaler, &why),
                     FRIT_INVALID);
    assert_string_equal(why.text, "scaler_create: struct_size of the config is not set");
    OK(frit_scaler_create(rig.dev, NULL, &scaler, err));
    failed = frit_scaler_scale(NULL, NULL);
    assert_string_equal(frit_tensor_error(failed), "scaler_scale: the scaler is NULL");
    frit_release(failed);
    assert_int_equal(frit_scaler_set_state(scaler, 2, NULL, &why), FRIT_INVALID);
    assert_string_equal(why.text, "scaler_set_state: there is no state 2");
    failed = frit_scaler_scale(scaler, NULL);
    assert_int_equal(frit_tensor_status(failed), FRIT_INVALID);
    frit_release(failed);
    frit_scaler_destroy(scaler);
    frit_scaler_destroy(NULL);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_optimisers),
        cmocka_unit_test(test_a_skipped_first_step),
        cmocka_unit_test(test_the_scale_goes_back_with_the_step),
        cmocka_unit_test(test_wrong_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
