/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of GPUs by collective-nccl, on the fakes of CUDA and NCCL or, with FRIT_TEST_DEVICE=hip,
 * of HIP and RCCL: the engine works on the devices' own memory, which the fakes check. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/frit.h>
#include <frit/inspect.h>

enum { RANKS = 2, N = 3001, STEPS = 20 };

struct world {
    frit_host *host;
    frit_group_id id;
    const char *engine;
};

struct rank {
    struct world *world;
    uint32_t number;
    frit_device *device;
    const char *fault; /* the first check that failed; asserts are for the main thread */
    int line;
    frit_err err;
    pthread_t thread;
};

#define CHECK(rank, condition)                \
    do {                                      \
        if (!(condition) && !(rank)->fault) { \
            (rank)->fault = #condition;       \
            (rank)->line = __LINE__;          \
        }                                     \
    } while (0)

static const char *driver(void)
{
    const char *name = getenv("FRIT_TEST_DEVICE");

    return name ? name : "cuda";
}

static void open_world(struct world *w, struct rank ranks[RANKS], const char *engine)
{
    const frit_host_params params = {.struct_size = sizeof(params)};
    frit_err err = {.struct_size = sizeof(err)};

    *w = (struct world){.engine = engine};
    if (frit_host_open(&params, &w->host, &err) ||
        frit_group_id_create(w->host, engine, &w->id, &err))
        fail_msg("%s", err.text);
    for (uint32_t r = 0; r < RANKS; r++) {
        char name[16];

        snprintf(name, sizeof(name), "%s:%u", driver(), r);
        ranks[r] = (struct rank){.world = w, .number = r, .err = {.struct_size = sizeof(frit_err)}};
        if (frit_device_open(w->host, name, &ranks[r].device, &err))
            fail_msg("%s", err.text);
    }
}

static void close_world(struct world *w, struct rank ranks[RANKS])
{
    for (uint32_t r = 0; r < RANKS; r++)
        frit_device_close(ranks[r].device);
    frit_host_close(w->host);
}

static frit_status join(struct rank *rank, frit_rank **out)
{
    const frit_group_config config = {.struct_size = sizeof(config),
                                      .engine = rank->world->engine,
                                      .name = "gpus",
                                      .id = &rank->world->id,
                                      .rank = rank->number,
                                      .size = RANKS};

    return frit_group_join(rank->device, &config, out, &rank->err);
}

/* The sums are operands of launches and results of launches. */
static void step(struct rank *rank, int i)
{
    float in[N], out[N];
    frit_tensor *x;

    for (int k = 0; k < N; k++)
        in[k] = (float)(k % 17 + i) * (float)(rank->number + 1);
    x = frit_from_host(rank->device, FRIT_F32, FRIT_SHAPE(N), in, sizeof(in));
    x = frit_add(x, frit_take(x));
    x = frit_all_reduce(frit_take(x));
    x = frit_abs(frit_take(x));
    CHECK(rank, frit_read(x, out, sizeof(out), &rank->err) == FRIT_OK);
    for (int k = 0; k < N && !rank->fault; k++)
        CHECK(rank, out[k] == (float)(k % 17 + i) * 6);
    frit_release(x);
}

/* In several pieces, of which one is read while the engine has another. */
static void step_large(struct rank *rank)
{
    enum { LARGE = (9 << 20) / sizeof(float) + 3 };
    float *data = malloc(LARGE * sizeof(float));
    frit_tensor *x;

    for (int k = 0; k < LARGE; k++)
        data[k] = (float)(k % 1009) * (float)(rank->number + 1);
    x = frit_from_host(rank->device, FRIT_F32, FRIT_SHAPE(LARGE), data, LARGE * sizeof(float));
    x = frit_all_reduce(frit_take(x));
    CHECK(rank, frit_read(x, data, LARGE * sizeof(float), &rank->err) == FRIT_OK);
    for (int k = 0; k < LARGE && !rank->fault; k++)
        CHECK(rank, data[k] == (float)(k % 1009) * 3);
    frit_release(x);
    free(data);
}

static void *rank_main(void *arg)
{
    struct rank *rank = arg;
    frit_rank *group;

    CHECK(rank, join(rank, &group) == FRIT_OK);
    if (rank->fault)
        return NULL;
    for (int i = 0; i < STEPS && !rank->fault; i++)
        step(rank, i);
    step_large(rank);
    CHECK(rank, frit_group_leave(group, &rank->err) == FRIT_OK);
    return NULL;
}

static void run(const char *engine)
{
    struct rank ranks[RANKS];
    struct world world;

    open_world(&world, ranks, engine);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    for (uint32_t r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
    for (uint32_t r = 0; r < RANKS; r++) {
        if (ranks[r].fault)
            fail_msg("rank %u: line %d: %s; %s", r, ranks[r].line, ranks[r].fault,
                     ranks[r].err.text);
    }
    close_world(&world, ranks);
}

static void test_sums_on_devices(void **state)
{
    (void)state;
    run("collective-nccl");
}

/* It cannot reach the device's memory: the host stages. */
static void test_another_engine(void **state)
{
    (void)state;
    run("collective-local");
}

static void test_a_device_that_it_cannot_reach(void **state)
{
    struct rank ranks[RANKS];
    struct world world;
    frit_device *reference;
    frit_rank *group;

    (void)state;
    open_world(&world, ranks, "collective-nccl");
    assert_int_equal(frit_device_open(world.host, "reference:0", &reference, NULL), FRIT_OK);
    ranks[0].device = reference;
    assert_int_equal(join(&ranks[0], &group), FRIT_UNSUPPORTED);
    assert_non_null(
        strstr(ranks[0].err.text, "memory that is not that of a device of CUDA or HIP"));
    close_world(&world, ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_on_devices),
        cmocka_unit_test(test_another_engine),
        cmocka_unit_test(test_a_device_that_it_cannot_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
