/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients through all_reduce: ranks are threads, each with a history of its own. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <frit/grad.h>
#include <frit/inspect.h>

enum { RANKS = 3 };

struct rank {
    frit_device *device;
    frit_group_config config;
    int64_t combine;
    float grad;
    frit_err err;
    pthread_t thread;
};

/* The loss of rank r is (r + 1) * reduced^2. */
static frit_status train(struct rank *rank)
{
    const float value = (float)(rank->config.rank + 1);
    frit_tensor *x = frit_from_host(rank->device, FRIT_F32, FRIT_SHAPE(1), &value, sizeof(value));
    frit_tensor *reduced, *square, *loss;
    frit_status st = frit_grad_begin(rank->device, &rank->err);

    if (!st)
        st = frit_grad_watch(x, &rank->err);
    reduced = frit_all_reduce(x, .combine = rank->combine);
    square = frit_mul(reduced, reduced);
    loss = frit_mul_f(square, (double)value);
    if (!st)
        st = frit_grad_backward(loss, &rank->err);
    if (!st)
        st = frit_read(frit_grad_of(x), &rank->grad, sizeof(rank->grad), &rank->err);
    frit_grad_end(rank->device);
    frit_release(x);
    frit_release(reduced);
    frit_release(square);
    frit_release(loss);
    return st;
}

static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    frit_rank *group;
    frit_status st = frit_group_join(rank->device, &rank->config, &group, &rank->err);

    if (!st) {
        st = train(rank);
        if (frit_group_leave(group, &rank->err))
            return "leave";
    }
    return st ? rank->err.text : NULL;
}

static void open_host(frit_host **host, frit_device **device)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    frit_err err = {.struct_size = sizeof(err)};
    char path[4096];
    const frit_setting settings[] = {{"plugin.fake-collective", "library", path}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/fake/collective/libfrit-fake-collective.so", build);
    if (frit_host_open(&params, host, &err) || frit_device_open(*host, "reference:0", device, &err))
        fail_msg("%s", err.text);
}

/* The gradient of every rank, which it has by the values of all. */
static void check_ranks(int64_t combine, float want)
{
    frit_stats stats = {.struct_size = sizeof(stats)};
    frit_err err = {.struct_size = sizeof(err)};
    struct rank ranks[RANKS];
    frit_host *host;
    frit_device *device;
    frit_group_id id;

    open_host(&host, &device);
    if (frit_group_id_create(host, "fake-collective", &id, &err))
        fail_msg("%s", err.text);
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.device = device,
                                 .config = {.struct_size = sizeof(frit_group_config),
                                            .id = &id,
                                            .rank = r,
                                            .size = RANKS,
                                            .op_ns = 20000000000u},
                                 .combine = combine,
                                 .err = {.struct_size = sizeof(frit_err)}};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        void *failed;

        assert_int_equal(pthread_join(ranks[r].thread, &failed), 0);
        if (failed)
            fail_msg("rank %u: %s", r, (const char *)failed);
        if (ranks[r].grad != want)
            fail_msg("rank %u: %g, not %g", r, (double)ranks[r].grad, (double)want);
    }
    frit_stats_get(device, &stats);
    assert_int_equal(stats.tensors_now, 0);
    frit_device_close(device);
    frit_host_close(host);
}

static void test_sums(void **state)
{
    (void)state;
    /* reduced = 6; each loss gives 2 * 6 * (r + 1) */
    check_ranks(FRIT_CHOICE_combine_sum, 12 * (1 + 2 + 3));
}

static void test_means(void **state)
{
    (void)state;
    /* reduced = 2; a third of each */
    check_ranks(FRIT_CHOICE_combine_mean, 4 * (1 + 2 + 3) / 3.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_means)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
