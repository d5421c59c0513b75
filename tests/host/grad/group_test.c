/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients through all_reduce, and gradients that it averages: ranks are threads, each with a
 * history of its own. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <frit/grad.h>
#include <frit/inspect.h>

enum { RANKS = 3 };

struct rank {
    frit_device *device;
    frit_group_config config;
    frit_tensor *(*reduce)(frit_tensor *x, int64_t combine);
    int64_t combine;
    float grad;
    frit_err err;
    pthread_t thread;
};

static frit_tensor *all_reduce(frit_tensor *x, int64_t combine)
{
    return frit_all_reduce(x, .combine = combine);
}

/* Twice. */
static frit_tensor *coalesced(frit_tensor *x, int64_t combine)
{
    return frit_all_reduce_coalesced(((frit_tensor *[]){x, x}), 2, .combine = combine);
}

static frit_tensor *gathered(frit_tensor *x, int64_t combine)
{
    (void)combine;
    return frit_all_gather(x, RANKS);
}

/* A part of RANKS times x. */
static frit_tensor *scattered(frit_tensor *x, int64_t combine)
{
    frit_tensor *all = frit_expand(x, FRIT_SHAPE(RANKS));

    return frit_reduce_scatter(frit_take(all), RANKS, .combine = combine);
}

/* The loss of rank r is (r + 1) * sum(reduced^2). */
static frit_status train(struct rank *rank)
{
    const float value = (float)(rank->config.rank + 1);
    frit_tensor *x = frit_from_host(rank->device, FRIT_F32, FRIT_SHAPE(1), &value, sizeof(value));
    frit_tensor *reduced, *square, *loss;
    frit_status st = frit_grad_begin(rank->device, &rank->err);

    if (!st)
        st = frit_grad_watch(x, &rank->err);
    reduced = rank->reduce(x, rank->combine);
    square = frit_sum(frit_take(frit_mul(reduced, reduced)));
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
    frit_err err = {.struct_size = sizeof(err)};
    const frit_host_params params = {.struct_size = sizeof(params)};

    if (frit_host_open(&params, host, &err) || frit_device_open(*host, "reference:0", device, &err))
        fail_msg("%s", err.text);
}

/* The gradient of every rank, which it has by the values of all; `by_rank`: times r + 1. */
static void check_ranks(frit_tensor *(*reduce)(frit_tensor *x, int64_t combine), int64_t combine,
                        float want, bool by_rank)
{
    frit_stats stats = {.struct_size = sizeof(stats)};
    frit_err err = {.struct_size = sizeof(err)};
    struct rank ranks[RANKS];
    frit_host *host;
    frit_device *device;
    frit_group_id id;

    open_host(&host, &device);
    if (frit_group_id_create(host, "collective-local", &id, &err))
        fail_msg("%s", err.text);
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.device = device,
                                 .config = {.struct_size = sizeof(frit_group_config),
                                            .id = &id,
                                            .rank = r,
                                            .size = RANKS,
                                            .op_ns = 20000000000u},
                                 .reduce = reduce,
                                 .combine = combine,
                                 .err = {.struct_size = sizeof(frit_err)}};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        void *failed;

        assert_int_equal(pthread_join(ranks[r].thread, &failed), 0);
        if (failed)
            fail_msg("rank %u: %s", r, (const char *)failed);
        if (ranks[r].grad != want * (by_rank ? (float)(r + 1) : 1))
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
    check_ranks(all_reduce, FRIT_CHOICE_combine_sum, 12 * (1 + 2 + 3), false);
    check_ranks(coalesced, FRIT_CHOICE_combine_sum, 2 * 12 * (1 + 2 + 3), false);
    check_ranks(scattered, FRIT_CHOICE_combine_sum, 12 * (1 + 2 + 3), false);
}

static void test_values_that_are_gathered(void **state)
{
    (void)state;
    /* (1 + 2 + 3) * 2 * x of the rank */
    check_ranks(gathered, FRIT_CHOICE_combine_sum, 12, true);
}

static void test_means(void **state)
{
    (void)state;
    /* reduced = 2; a third of each */
    check_ranks(all_reduce, FRIT_CHOICE_combine_mean, 4 * (1 + 2 + 3) / 3.0f, false);
    check_ranks(coalesced, FRIT_CHOICE_combine_mean, 2 * 4 * (1 + 2 + 3) / 3.0f, false);
    check_ranks(scattered, FRIT_CHOICE_combine_mean, 4 * (1 + 2 + 3) / 3.0f, false);
}

/* ---- steps of training ---- */

enum { ROWS = 12, FEATURES = 3, STEPS = 5 };

struct replica {
    frit_device *device;
    frit_group_config config;
    float weights[FEATURES]; /* at the end */
    frit_err err;
    pthread_t thread;
};

/* Row `i` of the batch, and what is to come of it. */
static void make_row(uint32_t i, float x[FEATURES], float *y)
{
    for (uint32_t k = 0; k < FEATURES; k++)
        x[k] = (float)((i * 7 + k * 5) % 11) / 8 - 0.5f;
    *y = (float)(i % 5) - 2;
}

/* The rows that this rank has. */
static frit_tensor *make_rows(const struct replica *replica, bool labels)
{
    const uint32_t n = ROWS / replica->config.size, first = n * replica->config.rank;
    float x[ROWS][FEATURES], y[ROWS];

    for (uint32_t i = 0; i < n; i++)
        make_row(first + i, x[i], &y[i]);
    return labels ? frit_from_host(replica->device, FRIT_F32, FRIT_SHAPE(n, 1), y, n * sizeof(*y))
                  : frit_from_host(replica->device, FRIT_F32, FRIT_SHAPE(n, FEATURES), x,
                                   n * sizeof(*x));
}

/* One step of gradient descent on `*w`. */
static frit_status step(struct replica *replica, frit_tensor **w)
{
    frit_scope scope = frit_scope_begin(replica->device);
    frit_tensor *x = make_rows(replica, false), *y = make_rows(replica, true), *miss, *loss;
    frit_status st = frit_grad_begin(replica->device, &replica->err);

    if (!st)
        st = frit_grad_watch(*w, &replica->err);
    miss = frit_sub(frit_matmul(x, *w), y);
    loss = frit_mean(frit_mul(miss, miss));
    if (!st)
        st = frit_grad_backward(loss, &replica->err);
    if (!st) {
        frit_tensor *gradient =
            frit_all_reduce(frit_grad_of(*w), .combine = FRIT_CHOICE_combine_mean);
        frit_tensor *next = frit_keep(frit_sub(*w, frit_mul_f(gradient, 0.25)));

        frit_release(*w);
        *w = next;
    }
    frit_grad_end(replica->device);
    frit_scope_end(scope);
    return st;
}

static void *run_replica(void *arg)
{
    static const float start[FEATURES] = {0.5f, -1, 2};
    struct replica *r = arg;
    frit_tensor *w;
    frit_rank *group;
    frit_status st = frit_group_join(r->device, &r->config, &group, &r->err);

    if (st)
        return r->err.text;
    w = frit_from_host(r->device, FRIT_F32, FRIT_SHAPE(FEATURES, 1), start, sizeof(start));
    for (int i = 0; i < STEPS && !st; i++)
        st = step(r, &w);
    if (!st)
        st = frit_read(frit_take(w), r->weights, sizeof(r->weights), &r->err);
    else
        frit_release(w);
    if (frit_group_leave(group, &r->err))
        return "leave";
    return st ? r->err.text : NULL;
}

/* The weights that these ranks, each on the device of its place, end with. */
static void train_on(frit_host *host, frit_device *const *devices, uint32_t size,
                     struct replica replicas[RANKS])
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_group_id id;
    void *failed;

    if (frit_group_id_create(host, NULL, &id, &err))
        fail_msg("%s", err.text);
    for (uint32_t r = 0; r < size; r++) {
        replicas[r] = (struct replica){.device = devices[r],
                                       .config = {.struct_size = sizeof(frit_group_config),
                                                  .id = &id,
                                                  .rank = r,
                                                  .size = size,
                                                  .op_ns = 20000000000u},
                                       .err = {.struct_size = sizeof(frit_err)}};
        assert_int_equal(pthread_create(&replicas[r].thread, NULL, run_replica, &replicas[r]), 0);
    }
    for (uint32_t r = 0; r < size; r++) {
        assert_int_equal(pthread_join(replicas[r].thread, &failed), 0);
        if (failed)
            fail_msg("rank %u: %s", r, (const char *)failed);
    }
}

/* All replicas have the same bits, and what one device learns from the joined batch. */
static void check_training(frit_host *host, frit_device *const *devices, uint32_t size)
{
    struct replica alone[RANKS], replicas[RANKS];

    train_on(host, devices, 1, alone);
    train_on(host, devices, size, replicas);
    for (uint32_t r = 0; r < size; r++) {
        assert_memory_equal(replicas[r].weights, replicas[0].weights, sizeof(replicas[0].weights));
        for (int k = 0; k < FEATURES; k++) {
            const double miss = (double)(replicas[r].weights[k] - alone[0].weights[k]);

            if (!(miss < 1e-6 && miss > -1e-6))
                fail_msg("%u ranks: weight %d is off by %g", size, k, miss);
        }
    }
}

static void test_replicas_learn_as_one(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device *reference, *cpu = NULL;
    frit_host *host;

    (void)state;
    open_host(&host, &reference);
    if (frit_device_open(host, "cpu:0", &cpu, &err))
        fail_msg("%s", err.text);
    check_training(host, (frit_device *[]){reference, reference}, 2);
    check_training(host, (frit_device *[]){reference, cpu}, 2);
    check_training(host, (frit_device *[]){cpu, reference, cpu}, 3);
    frit_device_close(reference);
    frit_device_close(cpu);
    frit_host_close(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_means),
                                       cmocka_unit_test(test_values_that_are_gathered),
                                       cmocka_unit_test(test_replicas_learn_as_one)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
