/* SPDX-License-Identifier: Apache-2.0 */
/* frit.collective/1 through the table that the loader took: the ranks are threads. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <frit/op.h>

#include "host/load/rig.h"

enum { RANKS = 3, COUNT = 5 };

static const uint64_t patience = 10000000000u;

struct world {
    struct rig rig;
    const frit_collective_table *table;
    void *instance;
    frit_group_id id;
};

struct rank {
    struct world *world;
    uint32_t number, size;
    frit_group *group;
    frit_status status;
    frit_err err;
    void (*run)(struct rank *rank);
    pthread_t thread;
};

static void open_world(struct world *w)
{
    static char path[4096];
    const frit_setting settings[] = {{"plugin.fake-collective", "library", path}, {0}};
    const struct plugin *plugin;

    *w = (struct world){0};
    snprintf(path, sizeof(path), "%s/collective/libfrit-fake-collective.so", rig_fake_dir());
    assert_int_equal(rig_open(&w->rig, settings), FRIT_OK);
    plugin = rig_plugin(&w->rig, "fake-collective");
    assert_int_equal(plugin->reason, FRIT_REASON_NONE);
    rig_contains(plugin->driver_detail, "offers a collective engine");
    w->table = &plugin->collective;
    w->instance = plugin->instance;
    assert_int_equal(w->table->group_id(w->instance, &w->id, NULL), FRIT_OK);
}

static frit_status join(struct rank *rank, uint64_t timeout_ns)
{
    const frit_group_params params = {.struct_size = sizeof(params),
                                      .rank = rank->number,
                                      .size = rank->size,
                                      .id = &rank->world->id,
                                      .timeout_ns = timeout_ns,
                                      .space = FRIT_STR("host.ptr"),
                                      .name = FRIT_STR("test")};

    return rank->world->table->group_create(rank->world->instance, &params, &rank->group,
                                            &rank->err);
}

static void *rank_main(void *arg)
{
    struct rank *rank = arg;

    rank->status = join(rank, patience);
    if (!rank->status) {
        rank->run(rank);
        rank->world->table->group_destroy(rank->group);
    }
    return NULL;
}

static void run_ranks(struct rank ranks[RANKS], void (*run)(struct rank *rank))
{
    struct world world;

    open_world(&world);
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.world = &world, .number = r, .size = RANKS, .run = run};
        ranks[r].err.struct_size = sizeof(frit_err);
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
    rig_close(&world.rig);
}

static uint64_t begin(struct rank *rank, uint32_t kind, uint32_t combine, const float *from,
                      float *into, uint64_t count)
{
    const frit_collective_buffer buffer = {from, into, count, FRIT_F32, 0};
    const frit_collective_op op = {.struct_size = sizeof(op),
                                   .kind = kind,
                                   .combine = combine,
                                   .root = kind == FRIT_COLLECTIVE_BROADCAST ? 1 : 0,
                                   .n_buffers = kind != FRIT_COLLECTIVE_BARRIER,
                                   .buffer_stride = sizeof(buffer),
                                   .buffers = &buffer};
    uint64_t value = 0;

    rank->status = rank->world->table->begin(rank->group, &op, &value, &rank->err);
    return value;
}

static frit_status await(struct rank *rank, uint64_t value)
{
    return rank->world->table->wait(rank->group, value, patience, &rank->err);
}

/* ---- results ---- */

static void expect(struct rank *rank, bool right)
{
    if (!right && !rank->status)
        rank->status = FRIT_INTERNAL;
}

static void each_kind(struct rank *rank)
{
    const float r = (float)rank->number;
    float in[COUNT * RANKS], sum[COUNT], mean[COUNT], all[COUNT * RANKS], part[COUNT], root[COUNT];
    uint64_t last;

    for (int i = 0; i < COUNT * RANKS; i++)
        in[i] = 10 * r + (float)i;
    begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_sum, in, sum, COUNT);
    begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, FRIT_CHOICE_combine_mean, in, mean, COUNT);
    begin(rank, FRIT_COLLECTIVE_ALL_GATHER, 0, in, all, COUNT);
    begin(rank, FRIT_COLLECTIVE_REDUCE_SCATTER, FRIT_CHOICE_combine_sum, in, part, COUNT);
    begin(rank, FRIT_COLLECTIVE_BROADCAST, 0, rank->number == 1 ? in : NULL, root, COUNT);
    last = begin(rank, FRIT_COLLECTIVE_BARRIER, 0, NULL, NULL, 0);
    expect(rank, last == 6);
    rank->status = await(rank, last);
    for (int i = 0; i < COUNT && !rank->status; i++) {
        expect(rank, sum[i] == 30 + 3 * (float)i && mean[i] == 10 + (float)i);
        expect(rank, root[i] == 10 + (float)i);
        expect(rank, part[i] == 30 + 3 * (COUNT * r + (float)i));
        for (int k = 0; k < RANKS; k++)
            expect(rank, all[COUNT * k + i] == (float)(10 * k + i));
    }
}

static void results(void **state)
{
    struct rank ranks[RANKS];

    (void)state;
    run_ranks(ranks, each_kind);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ranks[r].status, FRIT_OK);
}

/* In place, each on what the one before made: only their order gives this result. */
static void chain(struct rank *rank)
{
    float x = (float)(rank->number + 1);
    uint64_t value = 0;

    for (int i = 0; i < 4; i++)
        value = begin(rank, FRIT_COLLECTIVE_ALL_REDUCE,
                      i % 2 ? FRIT_CHOICE_combine_mean : FRIT_CHOICE_combine_sum, &x, &x, 1);
    rank->status = await(rank, value);
    expect(rank, value == 4 && x == 18); /* 6, 6, 18, 18 */
}

static void order_is_kept(void **state)
{
    struct rank ranks[RANKS];

    (void)state;
    run_ranks(ranks, chain);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ranks[r].status, FRIT_OK);
}

/* ---- failures ---- */

static void differ(struct rank *rank)
{
    float x = 1, y = 7;
    uint64_t first = begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, &x, &x, 1), second;

    second = begin(rank, rank->number == 2 ? FRIT_COLLECTIVE_BROADCAST : FRIT_COLLECTIVE_ALL_REDUCE,
                   0, &y, &y, 1);
    rank->status = await(rank, first);
    expect(rank, x == RANKS);
    if (!rank->status)
        rank->status = await(rank, second);
    if (y != 7)
        rank->status = FRIT_INTERNAL;
}

static void a_mismatch_is_reported(void **state)
{
    struct rank ranks[RANKS];

    (void)state;
    run_ranks(ranks, differ);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ranks[r].status, FRIT_MISMATCH);
        rig_contains(ranks[r].err.text,
                     "operation 2 is all_reduce of 1 on rank 0, broadcast of 1 on rank 2");
    }
}

static void wait_or_abort(struct rank *rank)
{
    const frit_err why = {.struct_size = sizeof(why), .text = "the step took too long"};
    uint64_t value;

    if (rank->number == 0) {
        rank->world->table->group_abort(rank->group, &why);
        begin(rank, FRIT_COLLECTIVE_BARRIER, 0, NULL, NULL, 0);
        return;
    }
    value = begin(rank, FRIT_COLLECTIVE_BARRIER, 0, NULL, NULL, 0);
    if (!rank->status)
        rank->status = await(rank, value);
}

static void abort_ends_waiters(void **state)
{
    struct rank ranks[RANKS];

    (void)state;
    run_ranks(ranks, wait_or_abort);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ranks[r].status, FRIT_ABORTED);
        assert_string_equal(ranks[r].err.text, "the step took too long");
    }
}

static void leave_early(struct rank *rank)
{
    uint64_t value;

    if (rank->number == 1)
        return;
    value = begin(rank, FRIT_COLLECTIVE_BARRIER, 0, NULL, NULL, 0);
    if (!rank->status)
        rank->status = await(rank, value);
}

static void a_lost_rank_is_named(void **state)
{
    struct rank ranks[RANKS];

    (void)state;
    run_ranks(ranks, leave_early);
    for (int r = 0; r < RANKS; r += 2) {
        assert_int_equal(ranks[r].status, FRIT_PEER_LOST);
        assert_string_equal(ranks[r].err.text, "rank 1 has left the group");
    }
}

static void who_does_not_come_is_named(void **state)
{
    struct world world;
    struct rank rank = {.world = &world, .number = 1, .size = RANKS};

    (void)state;
    rank.err.struct_size = sizeof(rank.err);
    open_world(&world);
    assert_int_equal(join(&rank, 1000000), FRIT_TIMEOUT);
    assert_null(rank.group);
    assert_string_equal(rank.err.text, "no word from rank 0 2");
    rig_close(&world.rig);
}

static void alone(void **state)
{
    struct world world;
    struct rank rank = {.world = &world, .size = 1};
    float x = 3;
    uint64_t value;

    (void)state;
    rank.err.struct_size = sizeof(rank.err);
    open_world(&world);
    assert_int_equal(join(&rank, 0), FRIT_OK);
    value = begin(&rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, &x, &x, 1);
    assert_int_equal(world.table->wait(rank.group, value, 0, &rank.err), FRIT_OK);
    assert_int_equal(world.table->wait(rank.group, value + 1, 0, &rank.err), FRIT_INVALID);
    world.table->group_destroy(rank.group);
    world.table->group_destroy(NULL);
    rig_close(&world.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(a_mismatch_is_reported),
        cmocka_unit_test(abort_ends_waiters),
        cmocka_unit_test(a_lost_rank_is_named),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(alone),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
