/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks in processes of their own, which see each other through a store of the host.  Each is an
 * instance of the plugin here: they share nothing but the store, the libraries and the devices. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

enum { N_RANKS = 3, N_VALUES = 16 };

/* ---- the store ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct value {
        char key[256];
        unsigned char bytes[1024];
        uint64_t size;
    } values[N_VALUES];
    uint32_t n;
    bool refuses;
} store;

static frit_status put(void *self, frit_str key, const void *value, uint64_t bytes, frit_err *err)
{
    struct value *at;

    assert_ptr_equal(self, &store);
    if (store.refuses) {
        snprintf(err->text, sizeof err->text, "the store is gone");
        return err->status = FRIT_PEER_LOST;
    }
    pthread_mutex_lock(&store.lock);
    at = &store.values[store.n++];
    snprintf(at->key, sizeof at->key, "%.*s", (int)key.len, key.ptr);
    memcpy(at->bytes, value, bytes);
    at->size = bytes;
    pthread_cond_broadcast(&store.change);
    pthread_mutex_unlock(&store.lock);
    return FRIT_OK;
}

static const struct value *find(frit_str key)
{
    for (uint32_t i = 0; i < store.n; i++) {
        if (strlen(store.values[i].key) == key.len &&
            memcmp(store.values[i].key, key.ptr, key.len) == 0)
            return &store.values[i];
    }
    return NULL;
}

static frit_status get(void *self, frit_str key, void *value, uint64_t capacity, uint64_t *bytes,
                       uint64_t timeout_ns, frit_err *err)
{
    struct timespec until;
    const struct value *found;
    int timed_out = 0;

    (void)self;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(timeout_ns / 1000000000);
    until.tv_nsec += (long)(timeout_ns % 1000000000);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&store.lock);
    while (!(found = find(key)) && !timed_out)
        timed_out = pthread_cond_timedwait(&store.change, &store.lock, &until);
    if (found) {
        assert_true(found->size <= capacity);
        memcpy(value, found->bytes, found->size);
        *bytes = found->size;
    }
    pthread_mutex_unlock(&store.lock);
    if (!found && err)
        err->status = FRIT_TIMEOUT;
    return found ? FRIT_OK : FRIT_TIMEOUT;
}

/* ---- ranks ---- */

struct process {
    struct world world;
    struct rank rank;
    uint32_t device;
    uint64_t join_ns;
    frit_status joined;
};

static frit_status join(struct process *process, const frit_group_id *id)
{
    struct rank *rank = &process->rank;
    frit_group_params params = {.struct_size = sizeof params,
                                .rank = rank->number,
                                .size = rank->size,
                                .id = id,
                                .timeout_ns = process->join_ns,
                                .name = FRIT_STR("test"),
                                .store = &store,
                                .put = put,
                                .get = get};

    world_engine.set_device(process->device, &params);
    return process->world.table->group_create(process->world.instance, &params, &rank->group,
                                              &rank->err);
}

/* Of the host's making: no id of the library is in it. */
static frit_group_id job_id(void)
{
    static uint8_t n;
    const frit_group_id id = {{'j', 'o', 'b', n++}};

    return id;
}

static void *process_main(void *arg)
{
    struct process *process = arg;
    struct rank *rank = &process->rank;

    process->joined = join(process, rank->arg);
    if (process->joined)
        return NULL;
    if (rank->run)
        rank->run(rank);
    process->world.table->group_destroy(rank->group);
    return NULL;
}

static void start(struct process processes[N_RANKS], void (*run)(struct rank *rank))
{
    static frit_group_id id;

    id = job_id();
    store.n = 0;
    pthread_mutex_init(&store.lock, NULL);
    pthread_cond_init(&store.change, NULL);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        struct process *p = &processes[r];

        *p = (struct process){.device = r, .join_ns = patience};
        world_open_without_id(&p->world);
        p->rank = (struct rank){.world = &p->world,
                                .number = r,
                                .size = N_RANKS,
                                .run = run,
                                .arg = &id,
                                .err = {.struct_size = sizeof(frit_err)}};
    }
}

static void run(struct process processes[N_RANKS], uint32_t n)
{
    for (uint32_t r = 0; r < n; r++)
        assert_int_equal(
            pthread_create(&processes[r].rank.thread, NULL, process_main, &processes[r]), 0);
    for (uint32_t r = 0; r < n; r++)
        pthread_join(processes[r].rank.thread, NULL);
    for (uint32_t r = 0; r < N_RANKS; r++)
        world_close(&processes[r].world);
    for (uint32_t r = 0; r < n; r++) {
        if (processes[r].rank.fault)
            fail_msg("rank %u, line %d: %s; %s", r, processes[r].rank.line, processes[r].rank.fault,
                     processes[r].rank.err.text);
    }
}

static void sum(struct rank *rank)
{
    float x = (float)(rank->number + 1);
    const uint64_t value = rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, &x, &x, 1);

    CHECK(rank, rank_wait(rank, value) == FRIT_OK && x == 6);
}

static void test_rank_0_passes_the_id_on(void **state)
{
    struct process processes[N_RANKS];

    (void)state;
    start(processes, sum);
    run(processes, N_RANKS);
    for (int r = 0; r < N_RANKS; r++)
        assert_int_equal(processes[r].joined, FRIT_OK);
}

static void test_a_missing_rank_is_named(void **state)
{
    struct process processes[N_RANKS];

    (void)state;
    start(processes, NULL);
    processes[0].join_ns = processes[1].join_ns = 1000000000;
    run(processes, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(processes[r].joined, FRIT_TIMEOUT);
        assert_string_equal(processes[r].rank.err.text, "collective-nccl: no word from rank 2");
    }
}

static void test_one_device_in_two_processes(void **state)
{
    struct process processes[N_RANKS];

    (void)state;
    start(processes, NULL);
    processes[2].device = 0;
    processes[1].join_ns = 1000000000; /* it waits for those that give up */
    run(processes, N_RANKS);
    assert_int_equal(processes[0].joined, FRIT_INVALID);
    assert_int_equal(processes[2].joined, FRIT_INVALID);
    assert_non_null(strstr(processes[2].rank.err.text, "ranks 2 and 0 are on one device"));
    assert_int_equal(processes[1].joined, FRIT_TIMEOUT);
}

/* An instance reads the version of a library when it opens it. */
static void test_another_version(void **state)
{
    struct process processes[N_RANKS];
    frit_group_id id;

    (void)state;
    start(processes, NULL);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        engine_fake()->version = r == 1 ? 22705 : 22809;
        assert_int_equal(processes[r].world.table->group_id(processes[r].world.instance, &id, NULL),
                         FRIT_OK);
        processes[r].join_ns = 1000000000;
    }
    run(processes, N_RANKS);
    assert_int_equal(processes[1].joined, FRIT_MISMATCH);
    assert_string_equal(processes[1].rank.err.text,
                        "collective-nccl: rank 1 has NCCL 2.27.5, rank 0 NCCL 2.28.9");
    assert_int_equal(processes[0].joined, FRIT_MISMATCH);
    engine_fake()->reset();
}

static void test_a_store_that_fails(void **state)
{
    struct process processes[N_RANKS];

    (void)state;
    start(processes, NULL);
    store.refuses = true;
    run(processes, N_RANKS);
    store.refuses = false;
    assert_int_equal(processes[0].joined, FRIT_PEER_LOST);
    assert_string_equal(processes[0].rank.err.text, "the store is gone");
}

/* Where ranks of different worlds meet. */
static pthread_barrier_t late;

/* Nobody reports a rank of another process that does not come; the host's abort ends the wait. */
static void one_does_not(struct rank *rank)
{
    const frit_err why = {.struct_size = sizeof why, .text = "rank 2 died"};
    const frit_collective_table *table = rank->world->table;
    float x = 1;
    uint64_t value;

    if (rank->number == 2) {
        pthread_barrier_wait(&late);
        table->group_abort(rank->group, &why);
        return;
    }
    value = rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, &x, &x, 1);
    CHECK(rank, table->wait(rank->group, value, 50000000, &rank->err) == FRIT_TIMEOUT);
    CHECK(rank, strstr(rank->err.text, "operation 1 is still running"));
    pthread_barrier_wait(&late);
    table->group_abort(rank->group, &why);
    CHECK(rank, rank_wait(rank, value) == FRIT_ABORTED);
    CHECK(rank, strcmp(rank->err.text, "rank 2 died") == 0);
    CHECK(rank, x == 1);
}

static void test_the_host_ends_it(void **state)
{
    struct process processes[N_RANKS];

    (void)state;
    start(processes, one_does_not);
    pthread_barrier_init(&late, NULL, N_RANKS);
    run(processes, N_RANKS);
    pthread_barrier_destroy(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_0_passes_the_id_on),
        cmocka_unit_test(test_a_missing_rank_is_named),
        cmocka_unit_test(test_one_device_in_two_processes),
        cmocka_unit_test(test_another_version),
        cmocka_unit_test(test_a_store_that_fails),
        cmocka_unit_test(test_the_host_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
