/* SPDX-License-Identifier: Apache-2.0 */
/* Groups through the public functions: ranks are threads with a stream each, on one device or on
 * two, and the engine is collective-local.  FRIT_TEST_DEVICE is the second device. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <frit/frit.h>
#include <frit/inspect.h>

enum { RANKS = 4, N = 6 };

struct world {
    frit_host *host;
    frit_device *dev[2]; /* rank r is on r modulo 2 */
    frit_group_id id;
    uint64_t op_ns;
    pthread_barrier_t all;
};

struct rank {
    struct world *world;
    uint32_t number, size;
    frit_device *dev;
    frit_rank *group;
    const char *fault; /* the first check that failed; asserts are for the main thread */
    int line;
    void (*run)(struct rank *rank);
    pthread_t thread;
};

#define CHECK(rank, condition)                \
    do {                                      \
        if (!(condition) && !(rank)->fault) { \
            (rank)->fault = #condition;       \
            (rank)->line = __LINE__;          \
        }                                     \
    } while (0)

/* ---- worlds ---- */

static const char *second(void)
{
    const char *name = getenv("FRIT_TEST_DEVICE");

    return name ? name : "cpu:0";
}

/* Whether the machine has it. */
static bool has_second(void)
{
    const frit_host_params params = {.struct_size = sizeof(params)};
    frit_host *host = NULL;
    frit_device *device = NULL;
    bool has = frit_host_open(&params, &host, NULL) == FRIT_OK &&
               frit_device_open(host, second(), &device, NULL) == FRIT_OK;

    frit_device_close(device);
    frit_host_close(host);
    return has;
}

static void open_world(struct world *w, const char *first, const char *second)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting settings[] = {{"fusion", "store", "none"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};

    *w = (struct world){.op_ns = 20000000000u};
    if (frit_host_open(&params, &w->host, &err) ||
        frit_device_open(w->host, first, &w->dev[0], &err) ||
        frit_device_open(w->host, second, &w->dev[1], &err) ||
        frit_group_id_create(w->host, "collective-local", &w->id, &err))
        fail_msg("%s", err.text);
}

static void close_world(struct world *w)
{
    frit_device_close(w->dev[0]);
    frit_device_close(w->dev[1]);
    frit_host_close(w->host);
}

static frit_status join(struct rank *rank, uint64_t number)
{
    const frit_group_config config = {.struct_size = sizeof(config),
                                      .name = "test",
                                      .id = &rank->world->id,
                                      .number = number,
                                      .rank = rank->number,
                                      .size = rank->size,
                                      .op_ns = rank->world->op_ns};

    return frit_group_join(rank->dev, &config, &rank->group, NULL);
}

static void *rank_main(void *arg)
{
    struct rank *rank = arg;

    CHECK(rank, join(rank, 0) == FRIT_OK);
    if (rank->fault)
        return NULL;
    rank->run(rank);
    CHECK(rank, frit_group_leave(rank->group, NULL) == FRIT_OK);
    return NULL;
}

/* Runs each rank in a thread of its own. */
static void run_ranks(struct world *w, uint32_t size, void (*run)(struct rank *rank))
{
    struct rank ranks[RANKS];

    pthread_barrier_init(&w->all, NULL, size);
    for (uint32_t r = 0; r < size; r++) {
        ranks[r] =
            (struct rank){.world = w, .number = r, .size = size, .dev = w->dev[r % 2], .run = run};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < size; r++)
        pthread_join(ranks[r].thread, NULL);
    for (uint32_t r = 0; r < size; r++) {
        if (ranks[r].fault)
            fail_msg("rank %u of %u: line %d: %s", r, size, ranks[r].line, ranks[r].fault);
    }
    pthread_barrier_destroy(&w->all);
}

static void run_in(const char *first, const char *second, uint32_t size,
                   void (*run)(struct rank *rank))
{
    struct world world;

    open_world(&world, first, second);
    run_ranks(&world, size, run);
    close_world(&world);
}

static frit_tensor *make(struct rank *rank, float value)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = value;
    return frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(2, 3), data, sizeof(data));
}

/* Takes the tensor. */
static bool is(frit_tensor *tensor, float value)
{
    float data[N] = {0};
    bool right = frit_read(frit_take(tensor), data, sizeof(data), NULL) == FRIT_OK;

    for (int i = 0; i < N; i++)
        right &= data[i] == value;
    return right;
}

static bool failed(frit_tensor *tensor, frit_status status, const char *part)
{
    frit_sync(frit_tensor_device(tensor), NULL);
    if (frit_tensor_status(tensor) == status && strstr(frit_tensor_error(tensor), part))
        return true;
    fprintf(stderr, "%d: %s\n", frit_tensor_status(tensor), frit_tensor_error(tensor));
    return false;
}

/* ---- sums ---- */

/* Sums whose rounding depends on their order. */
static double term(uint32_t rank, int i)
{
    static const double terms[RANKS] = {1e16, 1, -1e16, 1};

    return terms[rank] + i;
}

static void sum_f64(struct rank *rank)
{
    double in[N], out[N];
    frit_tensor *x;

    for (int i = 0; i < N; i++)
        in[i] = term(rank->number, i);
    x = frit_from_host(rank->dev, FRIT_F64, FRIT_SHAPE(N), in, sizeof(in));
    CHECK(rank,
          frit_read(frit_take(frit_all_reduce(frit_take(x))), out, sizeof(out), NULL) == FRIT_OK);
    for (int i = 0; i < N; i++) {
        double sum = 0;

        for (uint32_t r = 0; r < rank->size; r++)
            sum += term(r, i);
        CHECK(rank, out[i] == sum);
    }
}

static void sum_i32(struct rank *rank)
{
    int32_t in[N], out[N];
    frit_tensor *x;

    for (int i = 0; i < N; i++)
        in[i] = (int32_t)rank->number * 100 + i;
    x = frit_from_host(rank->dev, FRIT_I32, FRIT_SHAPE(N), in, sizeof(in));
    CHECK(rank,
          frit_read(frit_take(frit_all_reduce(frit_take(x))), out, sizeof(out), NULL) == FRIT_OK);
    for (int i = 0; i < N; i++)
        CHECK(rank, out[i] == (int32_t)(rank->size * (rank->size - 1) / 2 * 100) +
                                  (int32_t)rank->size * i);
}

/* They wrap. */
static void sum_i64(struct rank *rank)
{
    const int64_t in[2] = {INT64_MAX, (int64_t)rank->number};
    int64_t out[2];
    frit_tensor *x = frit_from_host(rank->dev, FRIT_I64, FRIT_SHAPE(2), in, sizeof(in));

    CHECK(rank,
          frit_read(frit_take(frit_all_reduce(frit_take(x))), out, sizeof(out), NULL) == FRIT_OK);
    CHECK(rank, (uint64_t)out[0] == (uint64_t)rank->size * INT64_MAX);
    CHECK(rank, out[1] == (int64_t)(rank->size * (rank->size - 1) / 2));
}

/* In f16 1 is less than half of the last place of 4096; the sum of all is rounded once. */
static void sum_f16(struct rank *rank)
{
    const uint16_t in = rank->number ? 0x3c00 : 0x6c00;
    uint16_t out;
    frit_tensor *x = frit_from_host(rank->dev, FRIT_F16, FRIT_SHAPE(1), &in, sizeof(in));

    CHECK(rank,
          frit_read(frit_take(frit_all_reduce(frit_take(x))), &out, sizeof(out), NULL) == FRIT_OK);
    CHECK(rank, out == (rank->size < 4 ? 0x6c00 : 0x6c01)); /* 4096 + 3 is nearer to 4100 */
}

static void mean_f32(struct rank *rank)
{
    frit_tensor *x = make(rank, (float)(2 * rank->number));

    CHECK(rank, is(frit_all_reduce(frit_take(x), .combine = FRIT_CHOICE_combine_mean),
                   (float)(rank->size - 1)));
}

static void each_type(struct rank *rank)
{
    sum_f64(rank);
    sum_i32(rank);
    sum_i64(rank);
    sum_f16(rank);
    mean_f32(rank);
}

static void test_sums_are_those_in_the_order_of_ranks(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= RANKS; size++) {
        run_in("reference:0", "reference:0", size, each_type);
        run_in(second(), second(), size, each_type);
        run_in("reference:0", second(), size, each_type);
    }
}

/* ---- gathered, scattered, sent by one ---- */

static bool holds(frit_tensor *tensor, const float *expected, uint64_t n)
{
    float out[RANKS * N];

    if (frit_read(frit_take(tensor), out, n * sizeof(float), NULL))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        if (out[i] != expected[i])
            return false;
    }
    return true;
}

/* x[i] = 10 * rank + i, in two dims, dense or not. */
static frit_tensor *ramp(struct rank *rank, int64_t rows, bool dense)
{
    float data[RANKS * N];
    frit_tensor *x;

    for (int64_t i = 0; i < 2 * rows; i++)
        data[dense ? i : i % 2 * rows + i / 2] = (float)(10 * rank->number) + (float)i;
    if (dense)
        return frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(rows, 2), data,
                              2 * (uint64_t)rows * sizeof(float));
    x = frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(2, rows), data,
                       2 * (uint64_t)rows * sizeof(float));
    return frit_transpose(frit_take(x), 0, 1);
}

static void gather(struct rank *rank)
{
    float expected[RANKS * 6];

    for (uint32_t i = 0; i < rank->size * 6; i++)
        expected[i] = (float)(10 * (i / 6) + i % 6);
    for (int dense = 0; dense < 2; dense++) {
        frit_tensor *x = ramp(rank, 3, dense), *y = frit_all_gather(frit_take(x), rank->size);

        CHECK(rank, frit_tensor_dims(y).dim[0] == 3 * (int64_t)rank->size);
        CHECK(rank, holds(y, expected, rank->size * 6));
    }
}

static void scatter(struct rank *rank)
{
    const float all = (float)(10 * (rank->size * (rank->size - 1) / 2));
    float sum[2], mean[2];

    for (uint32_t i = 0; i < 2; i++) {
        sum[i] = all + (float)(rank->size * (2 * rank->number + i));
        mean[i] = sum[i] / (float)rank->size;
    }
    for (int dense = 0; dense < 2; dense++) {
        frit_tensor *x = ramp(rank, rank->size, dense);

        CHECK(rank, holds(frit_reduce_scatter(x, rank->size), sum, 2));
        CHECK(rank, holds(frit_reduce_scatter(frit_take(x), rank->size,
                                              .combine = FRIT_CHOICE_combine_mean),
                          mean, 2));
    }
}

static void broadcast(struct rank *rank)
{
    float expected[6];

    for (uint32_t root = 0; root < rank->size; root++) {
        for (uint32_t i = 0; i < 6; i++)
            expected[i] = (float)(10 * root + i);
        CHECK(rank,
              holds(frit_broadcast_from(frit_take(ramp(rank, 3, root % 2)), root), expected, 6));
    }
}

static void each_kind(struct rank *rank)
{
    gather(rank);
    scatter(rank);
    broadcast(rank);
    CHECK(rank, frit_group_barrier(rank->group, NULL) == FRIT_OK);
}

static void test_other_kinds(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= RANKS; size++) {
        run_in("reference:0", "reference:0", size, each_kind);
        run_in("reference:0", second(), size, each_kind);
    }
}

static void with_wrong_numbers(struct rank *rank)
{
    frit_tensor *y = frit_all_gather(frit_take(make(rank, 1)), rank->size + 1);

    CHECK(rank, failed(y, FRIT_INVALID, "all_gather: ranks is 2, the group has 1"));
    frit_release(y);
    y = frit_broadcast_from(frit_take(make(rank, 1)), 1);
    CHECK(rank, failed(y, FRIT_INVALID, "ranks is 2, the group has 1"));
    frit_release(y);
    frit_sync(rank->dev, NULL);
}

static void test_attributes_that_are_not_the_groups(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 1, with_wrong_numbers);
}

static const struct timespec barrier_pause = {.tv_nsec = 30000000};

/* Nobody passes before the last one has come. */
static void pass_barrier(struct rank *rank)
{
    static atomic_uint come;

    for (uint32_t i = 1; i <= 3; i++) {
        if (rank->number == i % rank->size)
            nanosleep(&barrier_pause, NULL);
        atomic_fetch_add(&come, 1);
        CHECK(rank, frit_group_barrier(rank->group, NULL) == FRIT_OK);
        CHECK(rank, atomic_load(&come) >= i * rank->size);
        pthread_barrier_wait(&rank->world->all);
    }
}

static void test_a_barrier(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, pass_barrier);
}

/* Larger than what is in host memory at a time, and not a multiple of it. */
static void sum_large(struct rank *rank)
{
    enum { LARGE = (9 << 20) / sizeof(float) + 3 };
    float *data = malloc(LARGE * sizeof(float));
    frit_tensor *x;
    bool is_right = true;

    for (uint32_t i = 0; i < LARGE; i++)
        data[i] = (float)(i % 1000 + rank->number);
    x = frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(LARGE), data, LARGE * sizeof(float));
    CHECK(rank, frit_read(frit_take(frit_all_reduce(frit_take(x))), data, LARGE * sizeof(float),
                          NULL) == FRIT_OK);
    for (uint32_t i = 0; i < LARGE; i++)
        is_right &= data[i] == (float)(rank->size * (i % 1000) + rank->size * (rank->size - 1) / 2);
    CHECK(rank, is_right);
    free(data);
}

static void test_large_ones(void **state)
{
    (void)state;
    run_in("reference:0", second(), 2, sum_large);
}

/* Each rank has the same values laid out in another way. */
static void other_layouts(struct rank *rank)
{
    const float rows[N] = {0, 1, 2, 3, 4, 5}, columns[N] = {0, 3, 1, 4, 2, 5};
    float out[N];
    frit_tensor *x, *y;

    if (rank->number % 2) {
        x = frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(3, 2), columns, sizeof(columns));
        x = frit_transpose(frit_take(x), 0, 1);
    } else {
        x = frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(2, 3), rows, sizeof(rows));
    }
    y = frit_all_reduce(frit_take(x));
    CHECK(rank, frit_read(frit_take(y), out, sizeof(out), NULL) == FRIT_OK);
    for (int i = 0; i < N; i++)
        CHECK(rank, out[i] == (float)(rank->size * (uint32_t)i));
}

/* A part of a tensor, after its start. */
static void a_slice(struct rank *rank)
{
    const float data[4] = {1, 2, 3, 4};
    frit_tensor *x = frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(4), data, sizeof(data));
    float out[2];

    x = frit_slice(frit_take(x), FRIT_SLICES({2, 4, 1}));
    CHECK(rank,
          frit_read(frit_take(frit_all_reduce(frit_take(x))), out, sizeof(out), NULL) == FRIT_OK);
    CHECK(rank, out[0] == (float)(3 * rank->size) && out[1] == (float)(4 * rank->size));
}

static void no_elements(struct rank *rank)
{
    frit_tensor *x = frit_from_host(rank->dev, FRIT_F32, FRIT_SHAPE(0, 3), NULL, 0);

    CHECK(rank, frit_read(frit_take(frit_all_reduce(frit_take(x))), NULL, 0, NULL) == FRIT_OK);
}

static void each_layout(struct rank *rank)
{
    for (int i = 0; i < 6; i++) {
        other_layouts(rank);
        a_slice(rank);
        no_elements(rank);
    }
}

static void test_views_and_empty_tensors(void **state)
{
    (void)state;
    run_in("reference:0", second(), 3, each_layout);
}

/* ---- among other ops ---- */

/* Each round feeds the next, so that a lost, doubled or moved operation shows in all that follow.
 */
static void a_loop(struct rank *rank)
{
    enum { ROUNDS = 20 };
    frit_tensor *x = make(rank, 1);
    const float all = (float)(1u << rank->size); /* weights of the ranks are 1, 2, 4, .. */
    float value = 1;

    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(rank->dev);
        frit_tensor *y, *before = frit_neg(x);

        frit_all_reduce(frit_add_f(x, 1)); /* nobody reads it */
        y = frit_all_reduce(frit_mul_f(before, (float)(1u << rank->number)));
        y = frit_all_reduce(frit_add(y, before), .combine = FRIT_CHOICE_combine_mean);
        y = frit_keep(frit_mul_f(y, 2 / all));
        frit_scope_end(scope);
        frit_release(x);
        x = y;
        value *= -2;
    }
    CHECK(rank, is(x, value));
}

static void test_in_loops_that_are_replayed(void **state)
{
    struct world world;
    frit_stats stats = {.struct_size = sizeof(stats)};

    (void)state;
    open_world(&world, second(), second());
    run_ranks(&world, 3, a_loop);
    frit_stats_get(world.dev[0], &stats);
    assert_true(stats.bound_launches >= 30);
    close_world(&world);
    run_in("reference:0", "reference:0", 2, a_loop);
}

static void unread(struct rank *rank)
{
    frit_tensor *x = make(rank, 3);

    if (rank->number == 0) {
        frit_release(frit_all_reduce(frit_take(x)));
        CHECK(rank, frit_sync(rank->dev, NULL) == FRIT_OK);
    } else {
        CHECK(rank, is(frit_all_reduce(frit_take(x)), (float)(3 * rank->size)));
    }
}

static void test_it_runs_though_nobody_reads_it(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, unread);
}

static void of_two_groups(struct rank *rank)
{
    struct rank other = *rank;
    frit_tensor *x = make(rank, 1), *y;

    /* Another id, which both know: that of the first with its last byte changed. */
    pthread_barrier_wait(&rank->world->all);
    if (rank->number == 0)
        rank->world->id.bytes[FRIT_GROUP_ID_BYTES - 1] = 1;
    pthread_barrier_wait(&rank->world->all);
    other.number = rank->size - 1 - rank->number;
    CHECK(rank, join(&other, 7) == FRIT_OK);
    y = frit_all_reduce(x, .group = 7);
    CHECK(rank, is(frit_all_reduce(frit_take(frit_add(frit_take(x), frit_take(y)))),
                   (float)(rank->size * (1 + rank->size))));
    CHECK(rank, frit_sync_collective(rank->dev) == FRIT_OK);
    CHECK(rank, join(&other, 7) == FRIT_INVALID);
    CHECK(rank, frit_sync(rank->dev, NULL) == FRIT_OK);
    pthread_barrier_wait(&rank->world->all);
    CHECK(rank, frit_group_leave(other.group, NULL) == FRIT_OK);
}

static void test_a_stream_in_two_groups(void **state)
{
    (void)state;
    run_in("reference:0", second(), 3, of_two_groups);
}

/* ---- the end of a process ---- */

static void exit_meanwhile(struct rank *rank)
{
    if (rank->number == 0) {
        frit_all_reduce(frit_take(make(rank, 1)));
        CHECK(rank, frit_flush(rank->dev, NULL) == FRIT_OK);
        exit(rank->fault ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    pause();
}

/* An operation that nobody ends holds neither its stream nor the process. */
static void test_exit_with_an_operation_under_way(void **state)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int status = -1;
    pid_t child;

    (void)state;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        run_in("reference:0", "reference:0", 2, exit_meanwhile);
        _exit(EXIT_FAILURE);
    }
    for (int i = 0; i < 6000 && waitpid(child, &status, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

/* ---- failures ---- */

static void one_leaves(struct rank *rank)
{
    frit_tensor *x = make(rank, 1), *y, *z, *other;

    if (rank->number == 1) {
        frit_release(x);
        return;
    }
    y = frit_all_reduce(x);
    other = frit_neg(x);
    z = frit_exp(y);
    CHECK(rank, is(other, -1));
    CHECK(rank, failed(y, FRIT_PEER_LOST, "all_reduce: group test, rank "));
    CHECK(rank, failed(y, FRIT_PEER_LOST, "of 3, operation 1: rank 1 has left the group"));
    CHECK(rank, failed(z, FRIT_PEER_LOST, "rank 1 has left"));
    frit_release(y), frit_release(z);
    y = frit_all_reduce(frit_take(x));
    CHECK(rank, failed(y, FRIT_PEER_LOST, "operation 1: rank 1 has left"));
    frit_release(y);
    CHECK(rank, frit_sync_collective(rank->dev) == FRIT_OK);
    CHECK(rank, frit_sync(rank->dev, NULL) == FRIT_PEER_LOST);
    CHECK(rank, frit_sync(rank->dev, NULL) == FRIT_OK);
}

static void test_a_lost_rank_reaches_its_result_and_what_is_made_from_that(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, one_leaves);
    run_in("reference:0", second(), 3, one_leaves);
}

static void differ(struct rank *rank)
{
    frit_tensor *x = make(rank, 1), *y;

    CHECK(rank, is(frit_all_reduce(x), (float)rank->size));
    if (rank->number == 2)
        x = frit_reshape(frit_take(frit_slice(frit_take(x), FRIT_SLICES({0, 1, 1}, {0, 3, 1}))),
                         FRIT_SHAPE(3));
    y = frit_all_reduce(frit_take(x));
    CHECK(rank, failed(y, FRIT_MISMATCH,
                       "operation 2 is all_reduce(sum, 6 f32) on rank 0, all_reduce(sum, 3 f32)"));
    frit_release(y);
    frit_sync(rank->dev, NULL);
}

static void test_a_mismatch_has_both_ops(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, differ);
}

static void *abort_later(void *arg)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    struct rank *rank = arg;

    nanosleep(&pause, NULL);
    frit_group_abort(rank->group, "the step took too long");
    return NULL;
}

static void one_aborts(struct rank *rank)
{
    frit_tensor *y;
    pthread_t thread;

    if (rank->number == 0) {
        pthread_create(&thread, NULL, abort_later, rank);
        pthread_join(thread, NULL);
    } else {
        y = frit_all_reduce(frit_take(make(rank, 1)));
        CHECK(rank, failed(y, FRIT_ABORTED, "operation 1: the step took too long"));
        frit_release(y);
        frit_sync(rank->dev, NULL);
    }
    pthread_barrier_wait(&rank->world->all);
}

static void test_an_abort_ends_who_waits(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, one_aborts);
}

/* The last rank does not come to the op while the others wait. */
static void one_is_late(struct rank *rank)
{
    frit_tensor *y = NULL;

    if (rank->number < 2) {
        y = frit_all_reduce(frit_take(make(rank, 1)));
        frit_sync(rank->dev, NULL);
    }
    pthread_barrier_wait(&rank->world->all);
    if (rank->number == 2) {
        y = frit_all_reduce(frit_take(make(rank, 1)));
        CHECK(rank, failed(y, FRIT_ABORTED, "not done after 50 ms"));
    } else {
        CHECK(rank, strstr(frit_tensor_error(y), "not done after 50 ms"));
        CHECK(rank, frit_tensor_status(y) == FRIT_TIMEOUT || frit_tensor_status(y) == FRIT_ABORTED);
    }
    frit_release(y);
    frit_sync(rank->dev, NULL);
    pthread_barrier_wait(&rank->world->all);
}

static void test_a_wait_has_a_limit(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, "reference:0", "reference:0");
    world.op_ns = 50000000;
    run_ranks(&world, 3, one_is_late);
    close_world(&world);
}

/* The operand of one rank comes from an op that fails. */
static void one_has_no_operand(struct rank *rank)
{
    frit_tensor *x = make(rank, 1), *y;

    if (rank->number == 1) {
        frit_tensor *bad = frit_all_reduce(frit_take(x), .group = 5);

        x = frit_neg(frit_take(bad));
    }
    y = frit_all_reduce(frit_take(x));
    frit_sync(rank->dev, NULL);
    if (rank->number == 1)
        CHECK(rank,
              failed(y, FRIT_INVALID, "all_reduce: its stream is in no group 5; frit_group_join"));
    else
        CHECK(rank, failed(y, FRIT_ABORTED,
                           "rank 1 of 3, operation 1: it cannot begin: all_reduce: its "));
    frit_release(y);
    y = frit_all_reduce(frit_take(make(rank, 1)));
    frit_sync(rank->dev, NULL);
    CHECK(rank, frit_tensor_status(y) == (rank->number == 1 ? FRIT_INVALID : FRIT_ABORTED));
    frit_release(y);
    frit_sync(rank->dev, NULL);
    pthread_barrier_wait(&rank->world->all);
}

static void test_a_failed_operand_ends_the_group(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, one_has_no_operand);
}

static void test_joining_says_what_is_wrong(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct world w;
    frit_group_config config = {.struct_size = sizeof(config), .size = 2};
    frit_rank *rank;

    (void)state;
    open_world(&w, "reference:0", "reference:0");
    assert_int_equal(frit_group_join(w.dev[0], &config, &rank, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "group_join: no id; frit_group_id_create"));
    config.id = &w.id;
    config.rank = 2;
    assert_int_equal(frit_group_join(w.dev[0], &config, &rank, &err), FRIT_INVALID);
    config.rank = 1;
    config.engine = "nobody";
    assert_int_equal(frit_group_join(w.dev[0], &config, &rank, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no plugin 'nobody' offers a collective"));
    config.engine = NULL;
    config.join_ns = 1000000;
    assert_int_equal(frit_group_join(w.dev[0], &config, &rank, &err), FRIT_TIMEOUT);
    assert_string_equal(err.text, "group_join: group group, rank 1 of 2: no word from rank 0");
    close_world(&w);
}

/* ---- ends ---- */

static void leave_it_queued(struct rank *rank)
{
    frit_release(frit_all_reduce(frit_take(make(rank, 1))));
}

/* rank_leave runs it. */
static void test_leaving_runs_what_is_queued(void **state)
{
    (void)state;
    run_in("reference:0", "reference:0", 3, leave_it_queued);
}

static void *join_and_queue(void *arg)
{
    struct rank *rank = arg;

    CHECK(rank, join(rank, 0) == FRIT_OK);
    frit_release(frit_all_reduce(frit_take(make(rank, 1))));
    return NULL;
}

/* One thread ends both ranks, whose ops wait for each other. */
static void test_closing_a_device_aborts(void **state)
{
    struct rank ranks[2];
    struct world w;

    (void)state;
    open_world(&w, "reference:0", "reference:0");
    w.op_ns = UINT64_MAX;
    for (uint32_t r = 0; r < 2; r++) {
        ranks[r] = (struct rank){.world = &w, .number = r, .size = 2, .dev = w.dev[0]};
        pthread_create(&ranks[r].thread, NULL, join_and_queue, &ranks[r]);
    }
    for (uint32_t r = 0; r < 2; r++) {
        pthread_join(ranks[r].thread, NULL);
        assert_null(ranks[r].fault);
    }
    close_world(&w);
}

/* ---- what is seen ---- */

static void expect_in_file(const char *path, const char *part)
{
    char text[1000] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}

static void test_the_group_is_seen(void **state)
{
    struct world w;
    struct rank rank = {.world = &w, .size = 1};
    char folder[] = "/tmp/frit-group-XXXXXX", path[64], *text;
    frit_inspection *seen;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/trace.frit", folder);
    open_world(&w, "reference:0", "reference:0");
    rank.dev = w.dev[0];
    assert_int_equal(join(&rank, 7), FRIT_OK);
    assert_int_equal(frit_inspect_start(rank.dev, NULL), FRIT_OK);
    assert_int_equal(frit_trace_start(rank.dev, folder, NULL), FRIT_OK);
    assert_true(
        is(frit_all_reduce(frit_take(frit_neg(frit_take(make(&rank, 1)))), .group = 7), -1));
    assert_int_equal(frit_trace_stop(rank.dev, NULL), FRIT_OK);
    assert_int_equal(frit_inspect_stop(rank.dev, &seen, NULL), FRIT_OK);
    text = frit_inspection_text(seen);
    if (!strstr(text, "all_reduce %0, group=7"))
        fail_msg("%s", text);
    expect_in_file(path, ", group=7");
    frit_free(text);
    frit_inspection_free(seen);
    assert_int_equal(frit_group_leave(rank.group, NULL), FRIT_OK);
    assert_int_equal(frit_group_leave(rank.group, NULL), FRIT_INVALID);
    assert_int_equal(frit_group_abort(rank.group, NULL), FRIT_INVALID);
    close_world(&w);
    snprintf(path, sizeof(path), "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_those_in_the_order_of_ranks),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_attributes_that_are_not_the_groups),
        cmocka_unit_test(test_a_barrier),
        cmocka_unit_test(test_large_ones),
        cmocka_unit_test(test_exit_with_an_operation_under_way),
        cmocka_unit_test(test_views_and_empty_tensors),
        cmocka_unit_test(test_in_loops_that_are_replayed),
        cmocka_unit_test(test_it_runs_though_nobody_reads_it),
        cmocka_unit_test(test_a_stream_in_two_groups),
        cmocka_unit_test(test_a_lost_rank_reaches_its_result_and_what_is_made_from_that),
        cmocka_unit_test(test_a_mismatch_has_both_ops),
        cmocka_unit_test(test_an_abort_ends_who_waits),
        cmocka_unit_test(test_a_wait_has_a_limit),
        cmocka_unit_test(test_a_failed_operand_ends_the_group),
        cmocka_unit_test(test_joining_says_what_is_wrong),
        cmocka_unit_test(test_leaving_runs_what_is_queued),
        cmocka_unit_test(test_closing_a_device_aborts),
        cmocka_unit_test(test_the_group_is_seen),
    };

    if (!has_second())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
