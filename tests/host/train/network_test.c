/* SPDX-License-Identifier: Apache-2.0 */
/* A network that trains: losses as PyTorch's, and what a thousand steps cost. */
#include "api/rig.h"
#include "train/network.h"

#include "train/expected.h"

static void test_losses_are_those_of_pytorch(void **state)
{
    const frit_optimizer_config config = frit_adam_config(0.02);
    struct network n;
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    network_begin(&n, rig.dev, &config);
    for (int step = 0; step < 20; step++) {
        frit_tensor *loss = network_step(&n);
        char what[32];

        snprintf(what, sizeof(what), "loss %d", step);
        expect_doubles(what, loss, &expected_network[step], 2e-6);
        frit_release(loss);
    }
    network_end(&n);
    rig_close(&rig);
}

/* Losses of a network of 16-bit floats stay near those of f32, and its scale grows. */
static void train_16_bits(uint32_t dtype, double tolerance)
{
    const frit_scaler_config scale = {.struct_size = sizeof(scale), .scale = 1024, .interval = 5};
    frit_optimizer_config config = frit_adam_config(0.02);
    frit_state_desc state = {.struct_size = sizeof(state)};
    struct network n;
    struct rig rig;

    rig_open(&rig, NULL, 0);
    OK(frit_scaler_create(rig.dev, &scale, &config.scaler, err));
    if (network_open(&n, rig.dev, dtype, &config))
        fail_msg("%s", n.err.text);
    for (int step = 0; step < 20; step++) {
        frit_tensor *loss = network_step(&n);
        char what[32];

        snprintf(what, sizeof(what), "loss %d", step);
        expect_doubles(what, loss, &expected_network[step], tolerance);
        frit_release(loss);
    }
    assert_int_equal(frit_scaler_state_at(config.scaler, 0, &state), FRIT_OK);
    EXPECT_DOUBLES("scale", state.tensor, 1024 * 16);
    network_end(&n);
    frit_scaler_destroy(config.scaler);
    rig_close(&rig);
}

static void test_16_bits(void **state)
{
    (void)state;
    train_16_bits(FRIT_F16, 1e-3);
    train_16_bits(FRIT_BF16, 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_pytorch),
        cmocka_unit_test(test_16_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
