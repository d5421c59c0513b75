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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_pytorch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
