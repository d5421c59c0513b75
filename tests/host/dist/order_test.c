/* SPDX-License-Identifier: Apache-2.0 */
/* Steps whose gradients come in another order on each rank, of which some are missing, on ranks
 * that are slow in turn: operations begin in one order on all ranks, no two steps mix, and memory
 * stays as it is.  300 steps; with FRIT_TEST_LONG=1 10,000. */
#include "dist/model.h"
#include "dist/spy.h"

#include <stdlib.h>
#include <time.h>

enum { RANKS = 3, N_WEIGHTS = 10, N_ORDERS = 8, WARM = 64, N_BUCKETS = 5 };

/* Each a size of its own, so that an operation's count says which bucket it is. */
static const int64_t widths[N_WEIGHTS] = {3, 5, 9, 17, 2, 33, 11, 4, 1, 7};

struct worker {
    uint64_t random;
    uint32_t steps;
    uint32_t orders[N_ORDERS][N_WEIGHTS], used[N_ORDERS];
    frit_stats before, after; /* of the device, once warm and at the end */
    struct spy spy;
};

static uint32_t draw(struct worker *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

/* A permutation each, and how many of it are used. */
static void draw_orders(struct worker *w)
{
    for (int o = 0; o < N_ORDERS; o++) {
        w->used[o] = 1 + draw(w, N_WEIGHTS);
        for (uint32_t i = 0; i < N_WEIGHTS; i++) {
            const uint32_t k = draw(w, i + 1);

            w->orders[o][i] = w->orders[o][k];
            w->orders[o][k] = i;
        }
    }
}

static void nap(struct worker *w)
{
    if (draw(w, 16) == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)draw(w, 2000000)}, NULL);
}

/* The used weights one after the other, each times the number of the step. */
static frit_tensor *make_loss(struct member *m, frit_tensor *const *weights, uint32_t order,
                              uint32_t step)
{
    const struct worker *w = m->ctx;
    frit_tensor *loss = frit_zeros(m->device, FRIT_F32, FRIT_RANK0);

    for (uint32_t i = 0; i < w->used[order]; i++) {
        frit_tensor *weight = weights[w->orders[order][i]];

        loss = frit_add(loss, frit_sum(frit_mul_f(weight, 1 + step % 4)));
    }
    return loss;
}

static bool is_used(const struct worker *w, uint32_t order, uint32_t weight)
{
    for (uint32_t i = 0; i < w->used[order]; i++) {
        if (w->orders[order][i] == weight)
            return true;
    }
    return false;
}

/* The gradient of a weight is the number of the step times how many ranks use it. */
static bool check_grads(struct member *m, frit_tensor *const *weights, const uint32_t orders[RANKS],
                        uint32_t step)
{
    const struct worker *all = (struct worker *)m->ctx - m->rank;
    float have[64];

    for (uint32_t i = 0; i < N_WEIGHTS; i++) {
        float want = 0;

        for (uint32_t r = 0; r < RANKS; r++)
            want += is_used(&all[r], orders[r], i) ? (float)(1 + step % 4) : 0;
        MUST(m, frit_read(frit_grad_of(weights[i]), have, (uint64_t)widths[i] * sizeof(*have),
                          &m->err));
        for (int64_t k = 0; k < widths[i]; k++)
            CHECK(m, have[k] == want);
    }
    return true;
}

/* Each rank knows the orders of all. */
static bool run_step(struct member *m, frit_replica *replica, frit_tensor *const *weights,
                     uint32_t step)
{
    uint32_t orders[RANKS];

    for (uint32_t r = 0; r < RANKS; r++)
        orders[r] = (step * (r + 1) + step / 7) % N_ORDERS;
    MUST(m, frit_grad_begin(m->device, &m->err));
    for (uint32_t i = 0; i < N_WEIGHTS; i++)
        MUST(m, frit_grad_watch(weights[i], &m->err));
    MUST(m, frit_replica_backward(replica, weights, make_loss(m, weights, orders[m->rank], step),
                                  FRIT_REPLICA_SYNC, &m->err));
    return step % 8 ? true : check_grads(m, weights, orders, step);
}

static bool run_steps(struct member *m, frit_replica *replica, frit_tensor *const *weights)
{
    struct worker *w = m->ctx;

    for (uint32_t step = 0; step < w->steps; step++) {
        const frit_scope scope = frit_scope_begin(m->device);
        const bool good = run_step(m, replica, weights, step);

        frit_grad_end(m->device);
        frit_scope_end(scope);
        if (!good)
            return false;
        nap(w);
        if (step + 1 == WARM) {
            MUST(m, frit_sync(m->device, &m->err));
            stats_at_rest(m->device, &w->before);
        }
    }
    MUST(m, frit_sync(m->device, &m->err));
    stats_at_rest(m->device, &w->after);
    return true;
}

static bool work(struct member *m)
{
    const frit_replica_config config = {.struct_size = sizeof(config),
                                        .bucket_bytes = 80,
                                        .first_bucket_bytes = 32,
                                        .flags = FRIT_REPLICA_SUM};
    struct worker *w = m->ctx;
    frit_replica *replica = NULL;
    frit_tensor *weights[N_WEIGHTS];
    bool good = true;

    for (uint32_t i = 0; i < N_WEIGHTS; i++)
        weights[i] = frit_zeros(m->device, FRIT_F32, FRIT_SHAPE(widths[i]));
    if (frit_replica_create(m->group, &config, weights, N_WEIGHTS, &replica, &m->err))
        good = member_fail(m, "%s", m->err.text);
    spy_begin(&w->spy, m);
    good = good && run_steps(m, replica, weights);
    (void)frit_sync(m->device, NULL);
    spy_end(&w->spy);
    frit_replica_destroy(replica);
    for (uint32_t i = 0; i < N_WEIGHTS; i++)
        frit_release(weights[i]);
    return good;
}

static void expect_one_order(const struct worker *workers)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct spy *spy = &workers[r].spy;

        assert_int_equal(spy->n, N_BUCKETS * workers[r].steps);
        for (uint32_t i = 0; i < spy->n; i++) {
            if (spy->counts[i] != workers[0].spy.counts[i % N_BUCKETS])
                fail_msg("rank %u: operation %u is of %llu elements", r, i,
                         (unsigned long long)spy->counts[i]);
        }
    }
}

/* `is_alone`: no other rank has the device, and what is alive is the weights. */
static void expect_no_growth(const struct worker *w, bool is_alone)
{
    assert_int_equal(w->after.reserved_peak, w->before.reserved_peak);
    if (!is_alone)
        return;
    assert_int_equal(w->after.buffers_now, w->before.buffers_now);
    assert_int_equal(w->after.tensors_now, w->before.tensors_now);
    assert_int_equal(w->after.bytes_now, w->before.bytes_now);
}

static void test_one_order(void **state)
{
    static struct worker workers[RANKS];
    static const char *const devices[] = {"cpu:0", "reference:0", "cpu:0"};
    struct member members[RANKS] = {0};
    struct stage stage;

    (void)state;
    stage_open(&stage, devices, RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        workers[r] =
            (struct worker){.random = 1000 + r, .steps = getenv("FRIT_TEST_LONG") ? 10000 : 300};
        draw_orders(&workers[r]);
        members[r].ctx = &workers[r];
    }
    stage_run(&stage, RANKS, members, work);
    expect_one_order(workers);
    for (uint32_t r = 0; r < RANKS; r++)
        expect_no_growth(&workers[r], r == 1);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
