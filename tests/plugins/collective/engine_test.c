/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's contract: order, failures, ends, and what it takes of the host. */
#include "plugins/collective/world.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t sum(struct rank *rank, float *x)
{
    return rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, FRIT_F32, x, x, 1);
}

static uint64_t barrier(struct rank *rank)
{
    return rank_begin(rank, FRIT_COLLECTIVE_BARRIER, 0, 0, NULL, NULL, 0);
}

static bool failed(struct rank *rank, frit_status status, const char *text)
{
    return rank->err.status == status && strcmp(rank->err.text, text) == 0;
}

/* ---- order ---- */

/* Far more pending than there is room at first, each on what the one before made. */
static void chain(struct rank *rank)
{
    float x = (float)(rank->number + 1), factor = 1; /* the first sum is 1 + 2 */
    uint64_t value = 0;

    for (int i = 0; i < 100; i++) {
        value = rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, i % 5 != 0, FRIT_F32, &x, &x, 1);
        CHECK(rank, value == (uint64_t)i + 1);
    }
    for (int i = 1; i < 20; i++) /* only the first of five is a sum */
        factor *= (float)rank->size;
    CHECK(rank, rank_wait(rank, value) == FRIT_OK);
    CHECK(rank, x == 3 * factor);
}

static void test_order_is_kept(void **state)
{
    (void)state;
    run_alone(2, chain, NULL);
}

/* One rank sleeps until all have begun, and works for all. */
static void one_waits(struct rank *rank)
{
    float x = 1;
    uint64_t value = 0;

    if (rank->number != 1)
        sleep_ms(10);
    for (int i = 0; i < 3; i++)
        value = sum(rank, &x);
    if (rank->number == 1 || !world_engine.works_for_all)
        CHECK(rank, rank_wait(rank, value) == FRIT_OK);
    pthread_barrier_wait(&rank->world->all);
    CHECK(rank, x == 27);
    CHECK(rank, rank->world->table->wait(rank->group, value, 0, &rank->err) == FRIT_OK);
}

static void test_one_waiter_is_enough(void **state)
{
    (void)state;
    run_alone(3, one_waits, NULL);
}

static void polls(struct rank *rank)
{
    const uint64_t n = 200000 / (uint64_t)world_engine.scale;
    float *x = calloc(n, sizeof(*x));
    uint64_t value = rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, x, x, x ? n : 0);
    frit_status status = FRIT_TIMEOUT;

    for (int i = 0; i < 100000; i++) {
        status = rank->world->table->wait(rank->group, value, 0, &rank->err);
        if (status != FRIT_TIMEOUT)
            break;
        sleep_ms(0);
    }
    CHECK(rank, x && status == FRIT_OK);
    pthread_barrier_wait(&rank->world->all);
    free(x);
}

static void test_polling_makes_progress(void **state)
{
    (void)state;
    run_alone(2, polls, NULL);
}

static void many(struct rank *rank)
{
    for (int i = 0; i < 20; i++) {
        float x = 1;

        CHECK(rank, rank_wait(rank, sum(rank, &x)) == FRIT_OK);
        CHECK(rank, x == (float)rank->size);
    }
}

static void test_many_ranks(void **state)
{
    (void)state;
    run_alone(world_engine.max_ranks, many, NULL);
}

/* ---- the five failures ---- */

static void differ(struct rank *rank)
{
    float x = 1, y[2] = {7, 7};
    uint64_t first = sum(rank, &x), second;

    second = rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, rank->number == 2, FRIT_F32, y, y,
                        rank->number == 2 ? 2 : 1);
    CHECK(rank, rank_wait(rank, first) == FRIT_OK && x == 3);
    if (second)
        CHECK(rank, rank_wait(rank, second) == FRIT_MISMATCH);
    CHECK(rank,
          failed(rank, FRIT_MISMATCH,
                 "operation 2 is all_reduce(sum, 1 f32) on rank 0, all_reduce(mean, 2 f32) on "
                 "rank 2"));
    CHECK(rank, y[0] == 7 && y[1] == 7);
    CHECK(rank, sum(rank, &x) == 0 && rank->err.status == FRIT_MISMATCH);
    CHECK(rank, rank_wait(rank, first) == FRIT_OK);
}

static void buffers_differ(struct rank *rank)
{
    float x = 0;
    int32_t y = 0;
    const frit_collective_buffer buffers[2] = {{&x, &x, 1, FRIT_F32, 0},
                                               {&y, &y, 1, rank->number ? FRIT_I32 : FRIT_U32, 0}};
    const frit_collective_op op = {.struct_size = sizeof(op),
                                   .kind = FRIT_COLLECTIVE_BROADCAST,
                                   .root = 1,
                                   .n_buffers = 2,
                                   .buffer_stride = sizeof(*buffers),
                                   .buffers = buffers};
    uint64_t value = 0;

    if (!rank->world->table->begin(rank->group, &op, &value, &rank->err))
        (void)rank_wait(rank, value);
    CHECK(rank, failed(rank, FRIT_MISMATCH,
                       "operation 1 is broadcast(root 1, buffer 1 of 2: 1 u32) on rank 0, "
                       "broadcast(root 1, buffer 1 of 2: 1 i32) on rank 1"));
}

static void notes_differ(struct rank *rank)
{
    float x = 7;
    const frit_collective_buffer buffer = {&x, &x, 1, FRIT_F32, 0};
    frit_collective_op op = {.struct_size = sizeof(op),
                             .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                             .n_buffers = 1,
                             .buffer_stride = sizeof(buffer),
                             .buffers = &buffer,
                             .note = "step 1"};
    uint64_t value = 0;

    CHECK(rank, rank->world->table->begin(rank->group, &op, &value, &rank->err) == FRIT_OK);
    CHECK(rank, rank_wait(rank, value) == FRIT_OK && x == 14);
    op.note[5] = rank->number ? '2' : '3';
    if (!rank->world->table->begin(rank->group, &op, &value, &rank->err))
        (void)rank_wait(rank, value);
    CHECK(rank, failed(rank, FRIT_MISMATCH,
                       "operation 2 is all_reduce(sum, 1 f32) (step 3) on rank 0, "
                       "all_reduce(sum, 1 f32) (step 2) on rank 1") &&
                    x == 14);
}

static void test_a_mismatch_has_both_operations(void **state)
{
    (void)state;
    run_alone(3, differ, NULL);
    run_alone(2, buffers_differ, NULL);
    run_alone(2, notes_differ, NULL);
}

static void one_aborts(struct rank *rank)
{
    const frit_err why = {.struct_size = sizeof(why), .text = "the step took too long"};
    float x = 5;

    if (rank->number == 0) {
        sleep_ms(5);
        rank->world->table->group_abort(rank->group, &why);
        rank->world->table->group_abort(rank->group, &(frit_err){.text = "too late"});
        CHECK(rank, barrier(rank) == 0);
    } else {
        const uint64_t value = sum(rank, &x);

        if (value)
            CHECK(rank, rank_wait(rank, value) == FRIT_ABORTED);
    }
    CHECK(rank, failed(rank, FRIT_ABORTED, "the step took too long"));
    CHECK(rank, x == 5);
}

static void test_abort_ends_who_waits(void **state)
{
    (void)state;
    run_alone(3, one_aborts, NULL);
}

static void one_leaves(struct rank *rank)
{
    float x = 1;
    uint64_t value;

    CHECK(rank, rank_wait(rank, sum(rank, &x)) == FRIT_OK && x == 3);
    if (rank->number == 1)
        return;
    value = barrier(rank);
    if (value)
        (void)rank_wait(rank, value);
    CHECK(rank, failed(rank, FRIT_PEER_LOST, "rank 1 has left the group"));
}

/* It leaves with an operation that the others never begin. */
static void one_leaves_early(struct rank *rank)
{
    float x = 1;

    if (rank->number == 0)
        (void)sum(rank, &x);
    pthread_barrier_wait(&rank->world->all);
    if (rank->number == 0)
        return;
    while (barrier(rank)) /* the first may come before rank 0 has left */
        sleep_ms(1);
    CHECK(rank, rank->err.status == FRIT_MISMATCH || rank->err.status == FRIT_PEER_LOST);
    CHECK(rank, x == 1);
}

static void test_a_lost_rank_is_named(void **state)
{
    (void)state;
    run_alone(3, one_leaves, NULL);
    run_alone(2, one_leaves_early, NULL);
}

static void one_is_late(struct rank *rank)
{
    float x = 1;
    uint64_t value;

    if (rank->number == 2) {
        pthread_barrier_wait(&rank->world->all);
        value = sum(rank, &x);
    } else {
        value = sum(rank, &x);
        CHECK(rank,
              rank->world->table->wait(rank->group, value, 20000000, &rank->err) == FRIT_TIMEOUT);
        CHECK(rank, strstr(rank->err.text, "operation 1 waits for rank"));
        CHECK(rank, strstr(rank->err.text, " 2"));
        CHECK(rank, rank->number || rank->world->table->wait(rank->group, value, 0, &rank->err) ==
                                        FRIT_TIMEOUT);
        pthread_barrier_wait(&rank->world->all);
    }
    CHECK(rank, rank_wait(rank, value) == FRIT_OK && x == 3); /* a limit ends nothing */
}

static void test_a_wait_has_a_limit(void **state)
{
    (void)state;
    run_alone(3, one_is_late, NULL);
}

static void unsupported(struct rank *rank)
{
    uint8_t bytes[4] = {1, (uint8_t)rank->number, 1, 1}, all[8] = {0};
    float x = 1;
    uint64_t value;

    CHECK(rank, !rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_BOOL, bytes, bytes, 4));
    CHECK(rank, rank->err.status == FRIT_UNSUPPORTED);
    CHECK(rank, !rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_Q4, bytes, bytes, 4));
    CHECK(rank, rank->err.status == FRIT_UNSUPPORTED);
    CHECK(rank, !rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, 99, bytes, bytes, 4));
    CHECK(rank, rank->err.status == FRIT_UNSUPPORTED);
    CHECK(rank, !rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 7, FRIT_F32, &x, &x, 1));
    CHECK(rank, rank->err.status == FRIT_UNSUPPORTED);
    CHECK(rank, !rank_begin(rank, 9, 0, FRIT_F32, &x, &x, 1));
    CHECK(rank, rank->err.status == FRIT_UNSUPPORTED);
    CHECK(rank, !rank_begin(rank, FRIT_COLLECTIVE_ALL_GATHER, 0, FRIT_Q4, bytes, all, 3));
    CHECK(rank, rank->err.status == FRIT_UNSUPPORTED);
    CHECK(rank, !rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, NULL, &x, 1));
    CHECK(rank, rank->err.status == FRIT_INVALID);
    /* What only moves values has every type, and the group goes on. */
    value = rank_begin(rank, FRIT_COLLECTIVE_ALL_GATHER, 0, FRIT_Q4, bytes, all, 8);
    CHECK(rank, value == 1 && rank_wait(rank, value) == FRIT_OK);
    CHECK(rank, all[0] == 1 && all[1] == 0 && all[5] == 1);
    CHECK(rank, rank_wait(rank, 2) == FRIT_INVALID);
    CHECK(rank, rank_wait(rank, sum(rank, &x)) == FRIT_OK && x == 2);
}

static void test_what_is_unsupported_ends_nothing(void **state)
{
    (void)state;
    run_alone(2, unsupported, NULL);
}

/* ---- joining ---- */

static struct rank rank_of(struct world *world, uint32_t number, uint32_t size)
{
    return (struct rank){
        .world = world, .number = number, .size = size, .err = {.struct_size = sizeof(frit_err)}};
}

static void *join_main(void *arg)
{
    struct rank *rank = arg;

    (void)rank_join(rank, *(const uint64_t *)rank->arg);
    return NULL;
}

/* Joins both at once with this limit; neither finds its group. */
static void join_both(struct world *world, struct rank ranks[2], uint64_t limit)
{
    assert_int_equal(world->table->group_id(world->instance, &world->id, NULL), FRIT_OK);
    for (int r = 0; r < 2; r++) {
        ranks[r].arg = &limit;
        pthread_create(&ranks[r].thread, NULL, join_main, &ranks[r]);
    }
    for (int r = 0; r < 2; r++) {
        pthread_join(ranks[r].thread, NULL);
        assert_null(ranks[r].group);
    }
    assert_string_equal(ranks[0].err.text, ranks[1].err.text);
}

static void test_joining_says_who_is_wrong(void **state)
{
    struct world world;
    struct rank missing[2], sizes[2];

    (void)state;
    world_open(&world);
    missing[0] = rank_of(&world, 1, 5);
    missing[1] = rank_of(&world, 3, 5);
    join_both(&world, missing, 200000000);
    assert_int_equal(missing[0].err.status, FRIT_TIMEOUT);
    assert_non_null(strstr(missing[0].err.text, "no word from rank 0, 2, 4"));
    sizes[0] = rank_of(&world, 0, 3);
    sizes[1] = rank_of(&world, 1, 2);
    join_both(&world, sizes, patience);
    assert_int_equal(sizes[0].err.status, FRIT_MISMATCH);
    world_close(&world);
}

/* A complete group goes on, whoever comes with its id. */
static void with_strangers(struct rank *rank)
{
    struct rank again = rank_of(rank->world, rank->number, rank->size);
    struct rank other = rank_of(rank->world, rank->number, 5);
    float x = 1;

    CHECK(rank, rank_join(&again, 0) == FRIT_INVALID);
    CHECK(rank, rank_join(&other, 0) == FRIT_MISMATCH);
    CHECK(rank, rank_wait(rank, sum(rank, &x)) == FRIT_OK && x == 2);
}

static void test_joining_refuses(void **state)
{
    struct world world;
    struct rank rank;
    frit_group_params params;

    (void)state;
    world_open(&world);
    rank = rank_of(&world, 0, world_engine.too_many_ranks);
    assert_int_equal(rank_join(&rank, 0), FRIT_UNSUPPORTED);
    rank = rank_of(&world, 2, 2);
    assert_int_equal(rank_join(&rank, 0), FRIT_INVALID);
    params = (frit_group_params){.struct_size = sizeof(params), .size = 1, .id = &world.id};
    world_engine.set_device(0, &params);
    params.space = (frit_str){world_engine.foreign_space, strlen(world_engine.foreign_space)};
    assert_int_equal(world.table->group_create(world.instance, &params, &rank.group, &rank.err),
                     FRIT_UNSUPPORTED);
    world_engine.set_device(0, &params);
    world.id.bytes[0] ^= 1; /* the id of another process */
    if (world_engine.refuses_foreign_ids)
        assert_int_equal(world.table->group_create(world.instance, &params, &rank.group, &rank.err),
                         FRIT_UNSUPPORTED);
    assert_null(rank.group);
    world.table->group_destroy(NULL);
    world_close(&world);
    run_alone(2, with_strangers, NULL);
}

/* ---- memory and time ---- */

static void steps(struct rank *rank)
{
    enum { N = 40 };
    float x[N] = {0};
    frit_collective_buffer buffers[N];
    const frit_collective_op op = {.struct_size = sizeof(op),
                                   .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                   .n_buffers = N,
                                   .buffer_stride = sizeof(*buffers),
                                   .buffers = buffers};
    int warm = 0;

    for (int b = 0; b < N; b++)
        buffers[b] = (frit_collective_buffer){&x[b], &x[b], 1, FRIT_F32, 0};
    for (int i = 0; i < 100; i++) {
        uint64_t value = 0;

        pthread_barrier_wait(&rank->world->all);
        if (i == 50)
            warm = atomic_load(&rank->world->n_allocated);
        pthread_barrier_wait(&rank->world->all);
        CHECK(rank, rank->world->table->begin(rank->group, &op, &value, &rank->err) == FRIT_OK);
        CHECK(rank, rank_wait(rank, value) == FRIT_OK);
    }
    pthread_barrier_wait(&rank->world->all);
    CHECK(rank, atomic_load(&rank->world->n_allocated) == warm);
}

static void test_no_allocation_per_operation(void **state)
{
    (void)state;
    run_alone(3, steps, NULL);
}

static void refuse(struct rank *rank, int nth)
{
    float x = 1;

    atomic_store(&rank->world->refuse, nth);
    CHECK(rank, sum(rank, &x) == 0 && rank->err.status == FRIT_NO_HOST_MEMORY);
}

static void without_memory(struct rank *rank)
{
    float x = 1;
    uint64_t value = 0;

    for (int nth = 1; nth <= 2 && rank->number == 0; nth++)
        refuse(rank, nth);
    pthread_barrier_wait(&rank->world->all);
    value = sum(rank, &x);
    CHECK(rank, value == 1 && rank_wait(rank, value) == FRIT_OK && x == 2);
}

static void test_no_memory_begins_nothing(void **state)
{
    struct world world;
    struct rank rank;

    (void)state;
    run_alone(2, without_memory, NULL);
    world_open(&world);
    rank = rank_of(&world, 0, 1);
    atomic_store(&world.refuse, 1);
    assert_int_equal(rank_join(&rank, 0), FRIT_NO_HOST_MEMORY);
    world_close(&world);
}

static double cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void wait_long(struct rank *rank)
{
    if (rank->number == 0)
        sleep_ms(200);
    CHECK(rank, rank_wait(rank, barrier(rank)) == FRIT_OK);
}

/* Many threads that wait for 200 ms. */
static void test_who_waits_sleeps(void **state)
{
    const double before = cpu_seconds();

    (void)state;
    run_alone(world_engine.max_ranks < 8 ? world_engine.max_ranks : 8, wait_long, NULL);
    assert_true(cpu_seconds() - before < 0.1);
}

/* ---- ends beside everything else ---- */

enum { LARGE = 150000 };

struct race {
    struct rank rank;
    int round;
};

/* In each round another rank ends the group, by leaving or aborting, at another operation. */
static void *race_main(void *arg)
{
    struct race *race = arg;
    struct rank *rank = &race->rank;
    const bool ends = rank->number == (uint32_t)race->round % rank->size;
    const bool leaves = ends && race->round % 2;
    const frit_err why = {.struct_size = sizeof(why), .text = "enough"};
    float *x;
    uint64_t value = 0;

    if (rank_join(rank, patience))
        return "it does not join";
    x = calloc(LARGE, sizeof(*x));
    if (!x)
        return "no memory";
    for (int i = 0; i < 3 && !rank->err.status && !(ends && i == race->round % 4); i++)
        value += rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, x, x,
                            (uint64_t)(LARGE / world_engine.scale)) != 0;
    if (ends && !leaves)
        rank->world->table->group_abort(rank->group, &why);
    if (leaves)
        rank->world->table->group_destroy(rank->group);
    else if (value)
        (void)rank_wait(rank, value);
    memset(x, 1, LARGE * sizeof(*x)); /* nobody uses it any more */
    free(x);
    if (!leaves)
        rank->world->table->group_destroy(rank->group);
    return NULL;
}

static void test_ends_beside_data(void **state)
{
    struct world world;
    struct race races[3];
    void *fault;

    (void)state;
    world_open(&world);
    for (int round = 0; round < 24 / world_engine.scale; round++) {
        assert_int_equal(world.table->group_id(world.instance, &world.id, NULL), FRIT_OK);
        for (uint32_t r = 0; r < 3; r++) {
            races[r] = (struct race){rank_of(&world, r, 3), round};
            pthread_create(&races[r].rank.thread, NULL, race_main, &races[r]);
        }
        for (int r = 0; r < 3; r++) {
            pthread_join(races[r].rank.thread, &fault);
            if (fault)
                fail_msg("round %d, rank %d: %s", round, r, (const char *)fault);
        }
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_kept),
        cmocka_unit_test(test_one_waiter_is_enough),
        cmocka_unit_test(test_polling_makes_progress),
        cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_a_mismatch_has_both_operations),
        cmocka_unit_test(test_abort_ends_who_waits),
        cmocka_unit_test(test_a_lost_rank_is_named),
        cmocka_unit_test(test_a_wait_has_a_limit),
        cmocka_unit_test(test_what_is_unsupported_ends_nothing),
        cmocka_unit_test(test_joining_says_who_is_wrong),
        cmocka_unit_test(test_joining_refuses),
        cmocka_unit_test(test_no_allocation_per_operation),
        cmocka_unit_test(test_no_memory_begins_nothing),
        cmocka_unit_test(test_who_waits_sleeps),
        cmocka_unit_test(test_ends_beside_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
