/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer of the example: losses as PyTorch's from the same weights and batches; replicas. */
#include "unit.h"

#include "losses.h"
#include "train/trainer.h"
#include <math.h>

enum { BATCH = 64, STEPS = 100 };

struct lesson {
    frit_host *host;
    frit_device *device;
    struct data data;
    struct trainer trainer;
    frit_err err;
};

static void lesson_begin(struct lesson *l, const char *network, uint32_t replicas)
{
    static const frit_setting settings[] = {{"tune", "deterministic", "yes"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};
    const frit_optimizer_config config = frit_adam_config(1e-3);

    l->err.struct_size = sizeof(l->err);
    if (frit_host_open(&params, &l->host, &l->err) ||
        frit_device_open(l->host, "cpu", &l->device, &l->err) ||
        data_load(&l->data, l->device, ".", 0, &l->err) ||
        trainer_open(&l->trainer, network_named(network), &l->device, 1, replicas, 1, &config,
                     &l->err))
        fail_msg("%s", l->err.text);
}

static void lesson_end(struct lesson *l)
{
    trainer_close(&l->trainer);
    frit_device_close(l->device);
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

static void expect_losses(const char *network, uint32_t replicas, const double *expected)
{
    struct lesson *l = calloc(1, sizeof(*l));
    double largest = 0;

    assert_non_null(l);
    lesson_begin(l, network, replicas);
    for (uint32_t i = 0; i < STEPS; i++) {
        const double loss = step(l, i), difference = fabs(loss - expected[i]) / expected[i];

        if (!(difference <= 1e-4))
            fail_msg("%s, step %u: loss %.9g, not %.9g", network, i, loss, expected[i]);
        largest = fmax(largest, difference);
    }
    print_message("%s: losses differ by at most %.1e\n", network, largest);
    lesson_end(l);
}

static void test_cnn(void **state)
{
    (void)state;
    expect_losses("cnn", 1, cnn_losses);
}

static void test_mlp(void **state)
{
    (void)state;
    expect_losses("mlp", 1, mlp_losses);
}

static void test_mlp_of_four_replicas(void **state)
{
    (void)state;
    expect_losses("mlp", 4, mlp_losses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cnn),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_mlp_of_four_replicas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
