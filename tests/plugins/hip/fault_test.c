/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the runtime's functions, of the compiler's and of allocations, one at a time: the
 * driver reports a clear error or does without, crashes never, leaks nothing, and works at the next
 * attempt. */
#include <stdio.h>
#include <string.h>

#include <frit/capture.h>
#include <frit/profile.h>

#include "add.h"
#include "fake.h"
#include "no_memory.h"

enum { N = 3000, BYTES = 1 << 14, OUT_OF_MEMORY = 2, LOST = 700 };
enum { DEVICE = 1 /* not the one that is current anyway */, PEER = 0 };

static struct fake_gpu *runtime, *compiler;

/* ---- a round: every slot, with results that are checked ---- */

struct round {
    struct rig *rig;
    frit_allocation memory[3]; /* the last one is pinned */
    void *peer;                /* another device, and memory of it */
    frit_allocation peer_memory;
    frit_queue *queue;
    frit_recording *recording;
    const frit_capture_table *capture;
    struct add add;
    float got[N];
    uint64_t value; /* the last of the first queue */
};

static frit_status enumerate(struct rig *rig)
{
    frit_driver_info driver = {.struct_size = sizeof driver};
    frit_device_info infos[2] = {{.struct_size = sizeof *infos}, {.struct_size = sizeof *infos}};
    uint32_t count = 0;
    frit_status status =
        rig->backend->enumerate(rig->instance, infos, sizeof *infos, 2, &count, &driver, &rig->err);

    if (!status && count < 2) { /* also a way to report a failure */
        snprintf(rig->err.text, sizeof rig->err.text, "%s", driver.detail.ptr);
        return FRIT_IO;
    }
    for (int i = 0; i < 2 && !status; i++) { /* and so is this */
        if (!infos[i].reason)
            continue;
        snprintf(rig->err.text, sizeof rig->err.text, "%s", infos[i].name.ptr);
        status = FRIT_IO;
    }
    return status;
}

static frit_status open_device(struct rig *rig)
{
    frit_status status = enumerate(rig);

    return status ? status
                  : rig->backend->device_open(rig->instance, DEVICE, &rig_params, &rig->device,
                                              &rig->err);
}

static frit_status make_objects(struct round *round)
{
    const frit_queue_desc queue = {.struct_size = sizeof queue};
    struct rig *rig = round->rig;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < 3 && !status; i++) {
        const frit_alloc_desc desc = {sizeof desc, i / 2, BYTES, 256};

        round->memory[i].struct_size = sizeof round->memory[i];
        status = rig->backend->alloc(rig->device, &desc, &round->memory[i], &rig->err);
    }
    return status ? status
                  : rig->backend->queue_create(rig->device, &queue, &round->queue, &rig->err);
}

static frit_status submit(struct round *round, const frit_cmd *cmds, uint32_t n)
{
    struct rig *rig = round->rig;

    return rig->backend->submit(rig->device, NULL, cmds, n, sizeof *cmds, NULL, 0, &round->value,
                                &rig->err);
}

/* Waits for the first queue; what failed on the way is a failure too. */
static frit_status wait_for(struct round *round)
{
    struct rig *rig = round->rig;
    frit_failure failure = {.struct_size = sizeof failure};
    frit_status status =
        rig->backend->wait(rig->device, NULL, round->value, UINT64_MAX, &failure, &rig->err);

    return status ? status : failure.status;
}

static frit_status read_back(struct round *round, void *memory)
{
    const frit_transfer from = {.struct_size = sizeof from, .memory = memory, .bytes = N * 4};
    struct rig *rig = round->rig;
    frit_status status =
        rig->backend->read(rig->device, &from, round->got, &round->value, &rig->err);

    return status ? status : wait_for(round);
}

static void expect(const struct round *round, float factor)
{
    for (int i = 0; i < N; i++)
        assert_true(round->got[i] == factor * (float)i);
}

/* memory[1] = 2 * memory[0], for the elements 0, 1, 2, ..; then a copy to pinned memory and back.
 */
static frit_status compute(struct round *round)
{
    void *const m[3] = {round->memory[0].memory, round->memory[1].memory, round->memory[2].memory};
    const struct vector vectors[3] = {{m[0], 0}, {m[0], 0}, {m[1], 0}};
    const frit_transfer to = {.struct_size = sizeof to, .memory = m[0], .bytes = N * 4};
    struct rig *rig = round->rig;
    float numbers[N];
    frit_status status = add_open(rig, &round->add, vectors, N);

    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    if (!status)
        status = rig->backend->write(rig->device, &to, numbers, &round->value, &rig->err);
    if (!status)
        status = submit(round,
                        (const frit_cmd[]){round->add.cmd,
                                           {.struct_size = sizeof(frit_cmd),
                                            .kind = FRIT_CMD_COPY,
                                            .dst = m[2],
                                            .src = m[1],
                                            .bytes = N * 4},
                                           {.struct_size = sizeof(frit_cmd),
                                            .kind = FRIT_CMD_TIMESTAMP,
                                            .dst = m[0],
                                            .dst_offset = N * 4}},
                        3);
    if (!status)
        status = read_back(round, m[2]);
    if (!status)
        expect(round, 2);
    return status;
}

/* On the second queue, after the first: a fill with a pattern that needs a kernel. */
static frit_status fill(struct round *round)
{
    struct rig *rig = round->rig;
    const frit_point point = {NULL, round->value};
    const frit_cmd cmd = {.struct_size = sizeof cmd,
                          .kind = FRIT_CMD_FILL,
                          .dst = round->memory[1].memory,
                          .bytes = N * 4,
                          .pattern = 0x3f80000040000000,
                          .pattern_bytes = 8};
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value;
    frit_status status = rig->backend->submit(rig->device, round->queue, &cmd, 1, sizeof cmd,
                                              &point, 1, &value, &rig->err);

    if (!status)
        status =
            rig->backend->wait(rig->device, round->queue, value, UINT64_MAX, &failure, &rig->err);
    status = status ? status : failure.status;
    if (!status)
        status = read_back(round, round->memory[1].memory);
    for (int i = 0; i < N && !status; i++)
        assert_true(round->got[i] == (i % 2 ? 1.0f : 2.0f));
    return status;
}

/* The launch again, recorded and replayed twice. */
static frit_status replay(struct round *round)
{
    struct rig *rig = round->rig;
    frit_status status;

    round->capture = rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_CAPTURE_TABLE));
    status = round->capture->record(rig->device, NULL, &round->add.cmd, 1, sizeof round->add.cmd,
                                    NULL, 0, 0, &round->recording, &rig->err);
    for (int i = 0; i < 2 && !status; i++)
        status = round->capture->replay(rig->device, round->recording, NULL, NULL, 0, &round->value,
                                        &rig->err);
    if (!status)
        status = read_back(round, round->memory[1].memory);
    if (!status)
        expect(round, 2);
    return status;
}

static frit_status open_peer(struct round *round)
{
    const frit_alloc_desc desc = {sizeof desc, 0, BYTES, 256};
    struct rig *rig = round->rig;
    frit_status status =
        rig->backend->device_open(rig->instance, PEER, &rig_params, &round->peer, &rig->err);

    round->peer_memory.struct_size = sizeof round->peer_memory;
    return status ? status
                  : rig->backend->alloc(round->peer, &desc, &round->peer_memory, &rig->err);
}

/* The peer's memory holds 3 * i. */
static frit_status fill_peer(struct round *round)
{
    const frit_transfer to = {
        .struct_size = sizeof to, .memory = round->peer_memory.memory, .bytes = N * 4};
    frit_failure failure = {.struct_size = sizeof failure};
    struct rig *rig = round->rig;
    float numbers[N];
    uint64_t value;
    frit_status status;

    for (int i = 0; i < N; i++)
        numbers[i] = 3 * (float)i;
    status = rig->backend->write(round->peer, &to, numbers, &value, &rig->err);
    if (!status)
        status = rig->backend->wait(round->peer, NULL, value, UINT64_MAX, &failure, &rig->err);
    return status ? status : failure.status;
}

static frit_status copy_peer(struct round *round)
{
    const frit_transfer to = {
        .struct_size = sizeof to, .memory = round->memory[1].memory, .bytes = N * 4};
    frit_peer_source from = {.struct_size = sizeof from};
    struct rig *rig = round->rig;
    frit_status status = open_peer(round);

    if (!status)
        status = fill_peer(round);
    from.device = round->peer;
    from.memory = round->peer_memory.memory;
    if (!status)
        status = rig->backend->copy_from(rig->device, &to, &from, &round->value, &rig->err);
    if (!status)
        status = read_back(round, round->memory[1].memory);
    if (!status)
        expect(round, 3);
    return status;
}

static frit_status read_clock(struct round *round)
{
    struct rig *rig = round->rig;
    const frit_profile_table *profile =
        rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_PROFILE_TABLE));
    frit_clock clock = {.struct_size = sizeof clock};

    return profile->clock(rig->device, &clock, &rig->err);
}

static void free_objects(struct round *round)
{
    struct rig *rig = round->rig;
    frit_failure failure = {.struct_size = sizeof failure};

    /* Memory that is in use may not be freed. */
    if (round->value)
        (void)rig->backend->wait(rig->device, NULL, round->value, UINT64_MAX, &failure, NULL);
    if (round->queue)
        rig->backend->queue_destroy(rig->device, round->queue);
    if (round->recording)
        round->capture->release(rig->device, round->recording);
    add_close(&round->add);
    for (int i = 0; i < 3; i++)
        rig->backend->free(rig->device, round->memory[i].memory);
    if (!round->peer)
        return;
    rig->backend->free(round->peer, round->peer_memory.memory);
    rig->backend->device_close(round->peer);
}

/* Returns the first failure; frees everything in any case. */
static frit_status use_device(struct rig *rig)
{
    static frit_status (*const steps[])(struct round * round) = {
        make_objects, compute, fill, replay, copy_peer, read_clock};
    static struct round round;
    frit_status status = FRIT_OK;

    round = (struct round){.rig = rig};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !status; i++)
        status = steps[i](&round);
    free_objects(&round);
    return status;
}

/* Returns the first failure; the device is closed. */
static frit_status run_round(struct rig *rig)
{
    frit_status status = open_device(rig);

    if (!status)
        status = use_device(rig);
    if (rig->device)
        rig->backend->device_close(rig->device);
    rig->device = NULL;
    return status;
}

/* ---- the runtime fails ---- */

static bool fits(int result, frit_status status)
{
    if (result == LOST && status == FRIT_DEVICE_LOST)
        return true;
    return status == FRIT_NO_DEVICE_MEMORY || status == FRIT_INTERNAL || status == FRIT_IO;
}

static void expect_no_device(void)
{
    assert_ptr_equal(runtime->current(), fake_is_cuda() ? NULL : (void *)1);
    assert_int_equal(runtime->depth(), 0);
}

/* Every how many-th call or operation fails where one of a kind is much like the next. */
static uint64_t stride(uint64_t few)
{
    return getenv("FRIT_TEST_LONG") ? 1 : few;
}

/* Makes one call after the other fail, of many of the same function in turn a few.  Returns how
 * many failures were reported. */
static int fail_each_call(struct fake_gpu *library, int result)
{
    const uint64_t longest = stride(16);
    const char *last = NULL;
    uint64_t n = 0, step = 1;
    int reports = 0;

    do {
        struct rig rig = {0};
        frit_status status;

        runtime->reset();
        library->calls = 0;
        library->failing_call = n += step;
        library->failing_result = result;
        rig_open_plugin(&rig);
        status = run_round(&rig);
        if (status && (!fits(result, status) || !rig.err.text[0]))
            fail_msg("call %d, %s: status %d, '%s'", (int)n, library->failed_name, status,
                     rig.err.text);
        reports += status != FRIT_OK;
        rig_close(&rig);
        expect_no_device();
        fake_expect_nothing_alive();
        step = library->failed_name == last && step < longest ? step * 2 : 1;
        last = library->failed_name;
    } while (library->calls >= n);
    library->failing_call = 0;
    runtime->reset();
    return reports;
}

static void each_call_finds_no_memory(void **state)
{
    (void)state;
    assert_true(fail_each_call(runtime, OUT_OF_MEMORY) > 30);
}

static void each_call_finds_the_device_lost(void **state)
{
    (void)state;
    assert_true(fail_each_call(runtime, LOST) > 30);
}

static void each_call_of_the_compiler_fails(void **state)
{
    (void)state;
    if (compiler == runtime)
        skip();
    assert_true(fail_each_call(compiler, OUT_OF_MEMORY) > 4);
}

/* Each operation fails when it runs. */
static void each_operation_fails(void **state)
{
    uint64_t n = 0;
    int reports = 0;

    (void)state;
    do {
        struct rig rig = {0};
        frit_status status;

        runtime->reset();
        runtime->failing_operation = ++n;
        runtime->failing_operation_result = LOST;
        rig_open_plugin(&rig);
        status = run_round(&rig);
        if (status && (status != FRIT_DEVICE_LOST || !strstr(rig.err.text, "illegal address")))
            fail_msg("operation %d: status %d, '%s'", (int)n, status, rig.err.text);
        reports += status != FRIT_OK;
        rig_close(&rig);
        fake_expect_nothing_alive();
    } while (runtime->n_operations >= n);
    runtime->reset();
    assert_true(reports > 8);
}

/* A failure does not stay: the same instance works at the next attempt. */
static void the_next_attempt_works(void **state)
{
    uint64_t n = 0;

    (void)state;
    do {
        struct rig rig = {0};
        frit_status status;

        runtime->reset();
        rig_open_plugin(&rig);
        assert_int_equal(enumerate(&rig), FRIT_OK);
        runtime->calls = 0;
        runtime->failing_call = n += stride(7);
        runtime->failing_result = OUT_OF_MEMORY;
        status = run_round(&rig);
        if (status)
            assert_int_equal(run_round(&rig), FRIT_OK);
        rig_close(&rig);
        fake_expect_nothing_alive();
    } while (runtime->calls >= n);
    runtime->reset();
}

/* ---- no host memory ---- */

static void each_host_allocation_fails_once(void **state)
{
    bool hit = true;
    int n = 0;

    (void)state;
    runtime->reset();
    while (hit) {
        struct rig rig = {.fail_alloc = ++n};
        frit_status status = rig_load(&rig);

        if (!status) {
            rig.backend = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_BACKEND));
            status = run_round(&rig);
        }
        hit = rig.fail_alloc == 0;
        if (hit ? status && !is_memory_error(&rig, status) : status)
            fail_msg("allocation %d: status %d, '%s'", n, status, rig.err.text);
        if (rig.instance)
            rig_close(&rig);
        assert_int_equal(rig.n_allocs, 0);
        fake_expect_nothing_alive();
    }
    assert_true(n > 12); /* instance, adapters, device, queues, buffers, code, recording */
}

static void each_malloc_fails_once(void **state)
{
    struct rig rig = {0};

    (void)state;
    runtime->reset();
    rig_open_plugin(&rig);
    (void)enumerate(&rig); /* later calls return the same adapters */
    assert_true(fail_each_malloc(&rig, open_device) > 0);
    assert_true(fail_each_malloc(&rig, use_device) > 40);
    rig_close(&rig);
    fake_expect_nothing_alive();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_finds_no_memory),
        cmocka_unit_test(each_call_finds_the_device_lost),
        cmocka_unit_test(each_call_of_the_compiler_fails),
        cmocka_unit_test(each_operation_fails),
        cmocka_unit_test(the_next_attempt_works),
        cmocka_unit_test(each_host_allocation_fails_once),
        cmocka_unit_test(each_malloc_fails_once),
    };

    runtime = fake_open();
    compiler = fake_open_compiler();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
