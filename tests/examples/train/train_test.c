/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer of the example: losses as PyTorch's from the same weights and batches; replicas. */
#include "unit.h"

#include "losses.h"
#include "train/trainer.h"
#include <frit/plugin.h>
#include <math.h>

/* Sanitizers find what they find in the first steps. */
enum { BATCH = 64, STEPS = FRIT_SANITIZER == FRIT_SANITIZER_NONE ? 100 : 20 };

struct lesson {
    frit_host *host;
    frit_device *devices[2]; /* cpu, reference */
    struct data data;
    struct trainer trainer;
    frit_err err;
};

/* On the first n_devices devices. */
static void lesson_begin(struct lesson *l, const char *network, uint32_t n_devices,
                         uint32_t replicas)
{
    static const frit_setting settings[] = {{"tune", "deterministic", "yes"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};
    const frit_optimizer_config config = frit_adam_config(1e-3);

    l->err.struct_size = sizeof(l->err);
    if (frit_host_open(&params, &l->host, &l->err) ||
        frit_device_open(l->host, "cpu", &l->devices[0], &l->err) ||
        frit_device_open(l->host, "reference", &l->devices[1], &l->err) ||
        data_load(&l->data, l->devices[0], ".", 0, &l->err) ||
        trainer_open(&l->trainer, l->host, network_named(network), l->devices, n_devices, replicas,
                     1, &config, &l->err))
        fail_msg("%s", l->err.text);
}

static void lesson_end(struct lesson *l)
{
    trainer_close(&l->trainer);
    frit_device_close(l->devices[0]);
    frit_device_close(l->devices[1]);
    frit_host_close(l->host);
    free(l);
}

/* The loss of a batch in the order of the file. */
static double step(struct lesson *l, uint32_t number)
{
    static const struct draw unchanged;
    float pixels[BATCH * PIXELS], value;
    int32_t labels[BATCH];
    uint32_t which[BATCH];
    frit_tensor *loss;

    for (uint32_t i = 0; i < BATCH; i++)
        which[i] = (number * BATCH + i) % l->data.train.n;
    data_batch(&l->data.train, which, BATCH, &unchanged, pixels, labels);
    if (trainer_step(&l->trainer, pixels, labels, BATCH, &loss, &l->err) ||
        frit_read(loss, &value, sizeof(value), &l->err))
        fail_msg("step %u: %s", number, l->err.text);
    frit_release(loss);
    return (double)value;
}

/* Trains for so many steps; losses are within `bound` of the expected, relatively. */
static void expect_losses(const char *network, uint32_t n_devices, uint32_t replicas,
                          uint32_t steps, double bound, const double *expected)
{
    struct lesson *l = calloc(1, sizeof(*l));
    double largest = 0;

    assert_non_null(l);
    lesson_begin(l, network, n_devices, replicas);
    for (uint32_t i = 0; i < steps; i++) {
        const double loss = step(l, i), difference = fabs(loss - expected[i]) / expected[i];

        if (!(difference <= bound))
            fail_msg("%s, step %u: loss %.9g, not %.9g", network, i, loss, expected[i]);
        largest = fmax(largest, difference);
    }
    print_message("%s: losses differ by at most %.1e\n", network, largest);
    lesson_end(l);
}
static void test_losses_of_the_cnn_are_those_of_pytorch(void **state)
{
    (void)state;
    expect_losses("cnn", 1, 1, STEPS, 1e-4, cnn_losses);
}

static void test_losses_of_the_mlp_are_those_of_pytorch(void **state)
{
    (void)state;
    expect_losses("mlp", 1, 1, STEPS, 1e-4, mlp_losses);
}

/* Nearer: the mlp has no element where rounding turns a gradient on or off. */
static void test_replicas_have_the_losses_of_the_joined_batch(void **state)
{
    (void)state;
    expect_losses("mlp", 1, 2, 20, 1e-5, mlp_losses);
    expect_losses("mlp", 1, 8, 4, 1e-5, mlp_losses);
    expect_losses("mlp", 2, 2, 4, 1e-5, mlp_losses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_of_the_cnn_are_those_of_pytorch),
        cmocka_unit_test(test_losses_of_the_mlp_are_those_of_pytorch),
        cmocka_unit_test(test_replicas_have_the_losses_of_the_joined_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
