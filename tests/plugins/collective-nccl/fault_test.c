/* SPDX-License-Identifier: Apache-2.0 */
/* What the library and the device's runtime can do wrong: each has a status, the same with the same
 * words on all ranks, and leaves no communicator, no thread and no memory. */
#include "engine.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "collective-nccl/nccl.h"
#include "threads.h"

enum { N_RANKS = 2 };

static struct fake_nccl *fake;

/* ---- a group that may fail at any point ---- */

struct attempt {
    struct rank rank;
    uint64_t join_ns;
    frit_status joined;
    void (*act)(struct attempt *attempt); /* once it has joined */
    float x;
    frit_err failure; /* of what was called first and failed */
};

static void note(struct attempt *a)
{
    if (a->rank.err.status && !a->failure.status)
        a->failure = a->rank.err;
}

static void *attempt_main(void *arg)
{
    struct attempt *a = arg;

    a->joined = rank_join(&a->rank, a->join_ns);
    note(a);
    if (a->joined)
        return NULL;
    a->act(a);
    note(a);
    a->rank.world->table->group_destroy(a->rank.group);
    return NULL;
}

static uint32_t count_rank_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    uint32_t n = 0;

    assert_non_null(tasks);
    while ((entry = readdir(tasks))) {
        char path[300], name[32] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file))
            n += strncmp(name, "nccl rank", 9) == 0 && is_alive(dirfd(tasks), entry->d_name);
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return n;
}

static void begin_attempts(struct world *world, struct attempt attempts[N_RANKS], uint64_t join_ns,
                           void (*act)(struct attempt *attempt))
{
    pthread_barrier_init(&world->all, NULL, N_RANKS);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        attempts[r] = (struct attempt){.rank = {.world = world,
                                                .number = r,
                                                .size = N_RANKS,
                                                .err = {.struct_size = sizeof(frit_err)}},
                                       .join_ns = join_ns,
                                       .act = act,
                                       .x = 1};
        assert_int_equal(pthread_create(&attempts[r].rank.thread, NULL, attempt_main, &attempts[r]),
                         0);
    }
}

static void end_attempts(struct world *world, struct attempt attempts[N_RANKS])
{
    for (uint32_t r = 0; r < N_RANKS; r++)
        pthread_join(attempts[r].rank.thread, NULL);
    pthread_barrier_destroy(&world->all);
}

/* All that was made is gone. */
static void close_world(struct world *world)
{
    world_close(world);
    assert_int_equal(fake->comms, 0);
    /* A thread that the fake has just started still has the name of the one that started it. */
    for (int i = 0; i < 200 && count_rank_threads() > 0; i++)
        sleep_ms(10);
    assert_int_equal(count_rank_threads(), 0);
}

static void run_attempts(struct attempt attempts[N_RANKS], uint64_t join_ns,
                         void (*act)(struct attempt *attempt))
{
    struct world world;

    world_open(&world);
    begin_attempts(&world, attempts, join_ns, act);
    end_attempts(&world, attempts);
    close_world(&world);
}

static void expect_failure(const struct attempt attempts[N_RANKS], frit_status status,
                           const char *part)
{
    for (uint32_t r = 0; r < N_RANKS; r++) {
        if (attempts[r].failure.status != status || !strstr(attempts[r].failure.text, part))
            fail_msg("rank %u: status %d, not %d: %s", r, attempts[r].failure.status, status,
                     attempts[r].failure.text);
        if (!attempts[r].joined) /* all ranks have come */
            assert_string_equal(attempts[r].failure.text, attempts[0].failure.text);
    }
}

static void begin(struct attempt *a, uint32_t kind, float *from, float *into, uint64_t count)
{
    const uint64_t value = rank_begin(&a->rank, kind, 0, FRIT_F32, from, into, count);

    if (value)
        (void)rank_wait(&a->rank, value);
    note(a);
}

/* Each kind of operation once. */
static void each_kind(struct attempt *a)
{
    float in[N_RANKS] = {1, 2}, out[N_RANKS];

    begin(a, FRIT_COLLECTIVE_ALL_REDUCE, in, out, 1);
    begin(a, FRIT_COLLECTIVE_REDUCE_SCATTER, in, out, 1);
    begin(a, FRIT_COLLECTIVE_BROADCAST, in, out, 1);
    begin(a, FRIT_COLLECTIVE_ALL_GATHER, in, out, 1);
    begin(a, FRIT_COLLECTIVE_BARRIER, NULL, NULL, 0);
}

/* ---- results of the library ---- */

static frit_status meaning(int result)
{
    static const frit_status meanings[] = {
        [NCCL_UNHANDLED_GPU_ERROR] = FRIT_DEVICE_LOST,
        [NCCL_SYSTEM_ERROR] = FRIT_IO,
        [NCCL_INTERNAL_ERROR] = FRIT_INTERNAL,
        [NCCL_INVALID_ARGUMENT] = FRIT_INVALID,
        [NCCL_INVALID_USAGE] = FRIT_INVALID,
        [NCCL_REMOTE_ERROR] = FRIT_PEER_LOST,
        [NCCL_TIMEOUT] = FRIT_PEER_LOST,
    };

    return result <= NCCL_TIMEOUT ? meanings[result] : FRIT_INTERNAL;
}

static void test_each_result_of_each_call(void **state)
{
    static const char *const calls[] = {
        "ncclCommInitRankConfig", "ncclCommGetAsyncError", "ncclGroupStart", "ncclGroupEnd",
        "ncclAllReduce",          "ncclReduceScatter",     "ncclBroadcast",  "ncclAllGather"};
    struct attempt attempts[N_RANKS];

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int result = 1; result <= NCCL_TIMEOUT + 1; result++) {
            if (result == NCCL_IN_PROGRESS)
                continue;
            fake->failing_result = result;
            fake->failing_name = calls[i];
            run_attempts(attempts, patience, each_kind);
            fake->reset();
            expect_failure(attempts, meaning(result), "the fake said so");
            assert_non_null(strstr(attempts[0].failure.text, " of NCCL 2.28.9: "));
        }
    }
}

static void test_results_at_the_end(void **state)
{
    static const char *const calls[] = {"ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort"};
    struct attempt attempts[N_RANKS];

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake->failing_result = NCCL_SYSTEM_ERROR;
        fake->failing_name = calls[i];
        run_attempts(attempts, patience, each_kind);
        expect_failure(attempts, FRIT_OK, "");
        assert_int_equal(fake->n_aborted, i == 0 ? N_RANKS : 0);
        fake->reset();
    }
}

static void test_no_id(void **state)
{
    struct world world;
    frit_err err = {.struct_size = sizeof err};

    (void)state;
    world_open(&world);
    fake->failing_result = NCCL_SYSTEM_ERROR;
    fake->failing_name = "ncclGetUniqueId";
    assert_int_equal(world.table->group_id(world.instance, &world.id, &err), FRIT_IO);
    fake->reset();
    close_world(&world);
}

/* ---- hanging and slow ---- */

static void test_init_hangs(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    fake->init_hangs = true;
    run_attempts(attempts, 500000000, each_kind);
    expect_failure(attempts, FRIT_TIMEOUT, "no word from ranks");
    assert_int_equal(fake->n_aborted, N_RANKS);
    fake->reset();
}

/* Nobody waits for an abort that takes longer than the creation had; closing the plugin does. */
static void test_init_hangs_and_abort_is_slow(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    fake->init_hangs = true;
    fake->abort_ms = 2300;
    run_attempts(attempts, 500000000, each_kind);
    expect_failure(attempts, FRIT_TIMEOUT, "no word from ranks");
    assert_int_equal(fake->n_aborted, N_RANKS);
    fake->reset();
}

static void wait_for_hanging(struct attempt *a)
{
    const uint64_t value =
        rank_begin(&a->rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, &a->x, &a->x, 1);

    if (value)
        (void)rank_wait(&a->rank, value);
}

static void test_asynchronous_errors(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    for (int result = 1; result <= NCCL_TIMEOUT + 1; result++) {
        if (result == NCCL_IN_PROGRESS)
            continue;
        fake->kernels_hang = true;
        fake->async_error = result;
        run_attempts(attempts, patience, wait_for_hanging);
        expect_failure(attempts, meaning(result), "an operation of NCCL 2.28.9: ");
        assert_int_equal(fake->n_aborted, N_RANKS);
        fake->reset();
    }
}

static void abort_slowly(struct attempt *a)
{
    const frit_collective_table *table = a->rank.world->table;
    const frit_err why = {.struct_size = sizeof why, .text = "the step took too long"};
    const uint64_t value =
        rank_begin(&a->rank, FRIT_COLLECTIVE_ALL_REDUCE, 0, FRIT_F32, &a->x, &a->x, 1);

    CHECK(&a->rank, value == 1);
    CHECK(&a->rank, table->wait(a->rank.group, 1, 20000000, &a->rank.err) == FRIT_TIMEOUT);
    CHECK(&a->rank, strstr(a->rank.err.text, "operation 1 is still running"));
    pthread_barrier_wait(&a->rank.world->all);
    if (a->rank.number == 0)
        table->group_abort(a->rank.group, &why);
    pthread_barrier_wait(&a->rank.world->all);
    CHECK(&a->rank, fake->n_aborted == 0); /* nobody waited for it */
    CHECK(&a->rank, table->wait(a->rank.group, 1, 0, &a->rank.err) == FRIT_TIMEOUT);
    CHECK(&a->rank, strstr(a->rank.err.text, "still being aborted: the step took too long"));
    pthread_barrier_wait(&a->rank.world->all);
    fake->aborts_hang = false;
    CHECK(&a->rank, table->wait(a->rank.group, 1, UINT64_MAX, &a->rank.err) == FRIT_ABORTED);
    CHECK(&a->rank, a->x == 1);
}

static void test_a_slow_abort(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    fake->kernels_hang = true;
    fake->aborts_hang = true;
    run_attempts(attempts, patience, abort_slowly);
    expect_failure(attempts, FRIT_ABORTED, "the step took too long");
    for (int r = 0; r < N_RANKS; r++) {
        if (attempts[r].rank.fault)
            fail_msg("rank %d, line %d: %s", r, attempts[r].rank.line, attempts[r].rank.fault);
    }
    fake->reset();
}

/* ---- the device ---- */

/* The others see that a rank does not come, or that it leaves.  Not every call is needed. */
static const frit_status gpu_meanings[] = {FRIT_OK,
                                           FRIT_DEVICE_LOST,
                                           FRIT_NO_DEVICE_MEMORY,
                                           FRIT_UNSUPPORTED,
                                           FRIT_TIMEOUT,
                                           FRIT_PEER_LOST,
                                           0};

static void expect_one_of(const struct attempt *attempt, uint64_t call, const frit_status *meanings)
{
    do {
        if (attempt->failure.status == *meanings)
            return;
    } while (*++meanings);
    fail_msg("call %llu, status %d: %s", (unsigned long long)call, attempt->failure.status,
             attempt->failure.text);
}

static void test_each_call_of_the_runtime_fails(void **state)
{
    static const int results[] = {2 /* out of memory */, 719 /* launch failure, fatal */};
    struct fake_gpu *gpu = engine_gpu();
    struct attempt attempts[N_RANKS];
    struct world world;

    (void)state;
    for (uint64_t call = 1; call <= 50; call++) {
        const int result = results[call % 2];

        world_open(&world);
        gpu->calls = 0;
        gpu->failing_result = result;
        gpu->failing_call = call;
        begin_attempts(&world, attempts, 400000000, wait_for_hanging);
        end_attempts(&world, attempts);
        engine_mend();
        close_world(&world);
        for (int r = 0; r < N_RANKS; r++)
            expect_one_of(&attempts[r], call, gpu_meanings);
    }
}

static void test_one_device_for_two_ranks(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    engine_use_one_device(true);
    run_attempts(attempts, patience, each_kind);
    engine_use_one_device(false);
    for (int r = 0; r < N_RANKS; r++)
        assert_int_equal(attempts[r].joined, FRIT_INVALID);
    expect_failure(attempts, FRIT_INVALID, "are on one device, 0000:17:00.0; NCCL needs one for");
}

/* ---- versions ---- */

static void check_sum(struct attempt *a)
{
    wait_for_hanging(a);
    if (a->x != N_RANKS)
        a->failure.status = FRIT_INTERNAL;
}

static void test_a_newer_version(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    fake->version = 34567;
    fake->failing_name = "ncclAllReduce";
    run_attempts(attempts, patience, each_kind);
    expect_failure(attempts, FRIT_INTERNAL, "NCCL 3.45.67: ");
    fake->failing_name = NULL;
    run_attempts(attempts, patience, check_sum);
    expect_failure(attempts, FRIT_OK, "");
    fake->reset();
}

static void test_without_optional_functions(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    engine_use_library("libfake-nccl-bare.so");
    fake = engine_fake();
    run_attempts(attempts, patience, check_sum);
    expect_failure(attempts, FRIT_OK, "");
    fake->failing_name = "ncclGroupEnd";
    run_attempts(attempts, patience, each_kind);
    expect_failure(attempts, FRIT_INTERNAL, "ncclGroupEnd of NCCL 2.14.3: internal error (3)");
    fake->reset();
    engine_use_library("libfake-nccl.so");
    fake = engine_fake();
}

static void test_an_older_version(void **state)
{
    struct world world;
    frit_err err = {.struct_size = sizeof err};
    struct rank rank = {.world = &world, .size = 1, .err = {.struct_size = sizeof(frit_err)}};

    (void)state;
    engine_use_library("libfake-nccl-old.so");
    world_open_without_id(&world);
    assert_int_equal(world.table->group_id(world.instance, &world.id, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "NCCL 2.13.4 ("));
    assert_non_null(
        strstr(err.text, "libfake-nccl-old.so) has no ncclCommInitRankConfig; install"));
    assert_int_equal(rank_join(&rank, patience), FRIT_UNSUPPORTED);
    world_close(&world);
    engine_use_library("libfake-nccl.so");
}

/* ---- order and memory ---- */

struct late {
    float *x;
};

static void write_late(const void *data)
{
    const struct late *late = data;

    sleep_ms(30);
    *late->x = 1;
}

/* The operand is written by the host's stream, after the call. */
static void reduce_late(struct attempt *a)
{
    void *stream = engine_stream(a->rank.number);
    const struct late late = {&a->x};
    const frit_collective_buffer buffer = {&a->x, &a->x, 1, FRIT_F32, 0};
    const frit_collective_op op = {.struct_size = sizeof op,
                                   .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                   .n_buffers = 1,
                                   .buffer_stride = sizeof buffer,
                                   .buffers = &buffer,
                                   .stream = stream};
    uint64_t value = 0;

    a->x = 100;
    engine_enqueue(a->rank.number, stream, write_late, &late, sizeof late);
    if (!a->rank.world->table->begin(a->rank.group, &op, &value, &a->rank.err))
        (void)rank_wait(&a->rank, value);
    if (a->x != N_RANKS)
        a->failure.status = FRIT_INTERNAL;
    engine_end_stream(a->rank.number, stream);
}

static void test_a_stream_goes_first(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    run_attempts(attempts, patience, reduce_late);
    expect_failure(attempts, FRIT_OK, "");
}

/* A thousand buffers are one group of calls. */
static void reduce_many(struct attempt *a)
{
    static float x[N_RANKS][3000];
    static frit_collective_buffer buffers[N_RANKS][3000];
    const uint32_t r = a->rank.number;
    const frit_collective_op op = {.struct_size = sizeof op,
                                   .kind = FRIT_COLLECTIVE_BROADCAST,
                                   .n_buffers = 3000,
                                   .buffer_stride = sizeof buffers[r][0],
                                   .buffers = buffers[r]};
    uint64_t value = 0;

    for (int i = 0; i < 3000; i++) {
        x[r][i] = (float)(r + 1);
        buffers[r][i] = (frit_collective_buffer){&x[r][i], &x[r][i], i < 2900, FRIT_F32, 0};
    }
    if (!a->rank.world->table->begin(a->rank.group, &op, &value, &a->rank.err))
        (void)rank_wait(&a->rank, value);
    if (x[r][2899] != 1 || x[r][2900] != (float)(r + 1))
        a->failure.status = FRIT_INTERNAL;
}

static void test_many_buffers_are_few_groups(void **state)
{
    struct attempt attempts[N_RANKS];

    (void)state;
    fake->reset();
    run_attempts(attempts, patience, reduce_many);
    expect_failure(attempts, FRIT_OK, "");
    assert_int_equal(fake->most_calls, 1024);
    assert_int_equal(fake->n_groups, 3 * N_RANKS);
    fake->reset();
}

static int load_fakes(void **state)
{
    struct world world;

    (void)state;
    world_open(&world); /* the fakes are in the process from now on */
    fake = engine_fake();
    world_close(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_result_of_each_call),
        cmocka_unit_test(test_results_at_the_end),
        cmocka_unit_test(test_no_id),
        cmocka_unit_test(test_init_hangs),
        cmocka_unit_test(test_init_hangs_and_abort_is_slow),
        cmocka_unit_test(test_asynchronous_errors),
        cmocka_unit_test(test_a_slow_abort),
        cmocka_unit_test(test_each_call_of_the_runtime_fails),
        cmocka_unit_test(test_one_device_for_two_ranks),
        cmocka_unit_test(test_a_newer_version),
        cmocka_unit_test(test_without_optional_functions),
        cmocka_unit_test(test_an_older_version),
        cmocka_unit_test(test_a_stream_goes_first),
        cmocka_unit_test(test_many_buffers_are_few_groups),
    };

    return cmocka_run_group_tests(tests, load_fakes, NULL);
}
