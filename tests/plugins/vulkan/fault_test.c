/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of Vulkan functions and of allocations, one at a time: the driver reports a clear error,
 * leaks nothing, and works at the next attempt.  Loss of the device; small limits. */
#include <stdio.h>
#include <string.h>

#include "add.h"
#include "fake_open.h"
#include "no_memory.h"

enum { BYTES = 1 << 16, N = 5000, ROUNDS = 12, LONG_ROUNDS = 1000 };

static struct rig fake_rig(void)
{
    *fake = (struct fake_loader){0};
    return (struct rig){.loader = fake_path, .staging = "force"};
}

/* ---- a round: open, allocate, compute ---- */

/* The first call opens the Vulkan loader. */
static frit_status enumerate(struct rig *rig)
{
    frit_driver_info driver = {.struct_size = sizeof driver};
    frit_device_info info = {.struct_size = sizeof info};
    uint32_t count = 0;
    frit_status status =
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err);

    if (!status && count == 0)
        fail_msg("no devices: %.*s", (int)driver.detail.len, driver.detail.ptr);
    return status;
}

static frit_status open_device(struct rig *rig)
{
    frit_status status = enumerate(rig);

    if (status)
        return status;
    return rig->backend->device_open(rig->instance, 0, &rig_params, &rig->device, &rig->err);
}

static frit_status alloc_two(struct rig *rig, void *memory[2])
{
    const frit_alloc_desc desc = {sizeof desc, 0, BYTES, 256};
    frit_status status = FRIT_OK;

    for (int i = 0; i < 2 && !status; i++) {
        frit_allocation out = {.struct_size = sizeof out};

        status = rig->backend->alloc(rig->device, &desc, &out, &rig->err);
        memory[i] = out.memory;
        assert_int_equal(status == FRIT_OK, out.memory != NULL);
    }
    return status;
}

/* memory[1] = memory[0] + memory[0], for the elements 0, 1, 2, ...  `value` is set to the last
 * timeline value. */
static frit_status compute(struct rig *rig, void *memory[2], struct add *add, float got[N],
                           uint64_t *value)
{
    const struct vector vectors[3] = {{memory[0], 0}, {memory[0], 0}, {memory[1], 0}};
    const frit_transfer to = {.struct_size = sizeof to, .memory = memory[0], .bytes = N * 4};
    const frit_transfer from = {.struct_size = sizeof from, .memory = memory[1], .bytes = N * 4};
    frit_failure failure = {.struct_size = sizeof failure};
    float numbers[N];
    frit_status status = add_open(rig, add, vectors, N);

    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    if (!status)
        status = rig->backend->write(rig->device, &to, numbers, value, &rig->err);
    if (!status)
        status = rig->backend->submit(rig->device, NULL, &add->cmd, 1, sizeof add->cmd, NULL, 0,
                                      value, &rig->err);
    if (!status)
        status = rig->backend->read(rig->device, &from, got, value, &rig->err);
    if (!status)
        status = rig->backend->wait(rig->device, NULL, *value, UINT64_MAX, &failure, &rig->err);
    return status;
}

/* Returns the first failure; frees everything in any case. */
static frit_status use_device(struct rig *rig)
{
    static float got[N];
    void *memory[2] = {NULL, NULL};
    struct add add = {0};
    uint64_t value = 0;
    frit_status status = alloc_two(rig, memory);

    if (!status)
        status = compute(rig, memory, &add, got, &value);
    for (int i = 0; i < N && !status; i++)
        assert_true(got[i] == 2 * (float)i);
    rig_wait(rig, value); /* memory that is in use may not be freed */
    add_close(&add);
    for (int i = 0; i < 2; i++)
        rig->backend->free(rig->device, memory[i]);
    return status;
}

/* Returns the first failure.  The device stays open if it has been opened. */
static frit_status run_round(struct rig *rig)
{
    frit_status status = open_device(rig);

    return status ? status : use_device(rig);
}

/* With the address sanitizer one call in so many. */
#ifdef __SANITIZE_ADDRESS__
enum { EVERY = 3 };
#else
enum { EVERY = 1 };
#endif

static void each_call_fails_once(void **state)
{
    const int step = getenv("FRIT_TEST_LONG") ? 1 : EVERY;
    static const frit_status allowed[] = {FRIT_NO_HOST_MEMORY, FRIT_NO_DEVICE_MEMORY, FRIT_IO};
    int n = 0, failures = 0;
    frit_status status;

    (void)state;
    do {
        struct rig rig = fake_rig();
        bool fits = false;

        fake->failing_call = n += step;
        rig_open_plugin(&rig);
        status = run_round(&rig);
        if (status) {
            failures++;
            for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
                fits |= status == allowed[i];
            if (!fits || !rig.err.text[0])
                fail_msg("call %d, %s: status %d, '%s'", n, fake->failed_name, status,
                         rig.err.text);
            if (rig.device)
                rig.backend->device_close(rig.device);
            rig.device = NULL;
            assert_int_equal(run_round(&rig), FRIT_OK);
        }
        rig_close(&rig);
    } while (fake->calls >= n);
    assert_true(failures > 40 / step);
}

/* ---- no host memory ---- */

static void each_host_allocation_fails_once(void **state)
{
    bool hit = true;
    int n = 0;

    (void)state;
    while (hit) {
        struct rig rig = {.no_validation = true, .fail_alloc = ++n};
        frit_status status = rig_load(&rig);

        if (!status) {
            rig.backend = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_BACKEND));
            status = run_round(&rig);
        }
        hit = rig.fail_alloc == 0;
        if (hit ? !is_memory_error(&rig, status) : status)
            fail_msg("allocation %d: status %d, '%s'", n, status, rig.err.text);
        if (rig.instance)
            rig_close(&rig);
        assert_int_equal(rig.n_allocs, 0);
    }
    assert_true(n > 6); /* instance, adapters, extensions, device, two buffers, code */
}

static void each_malloc_fails_once(void **state)
{
    struct rig rig = {.no_validation = true};

    (void)state;
    rig_open_plugin(&rig);
    (void)enumerate(&rig); /* later calls return the same adapters */
    assert_true(fail_each_malloc(&rig, open_device) > 0);
    assert_true(fail_each_malloc(&rig, use_device) > 40); /* of the fuser, the module, the SPIR-V */
    rig_close(&rig);
}

static void opened_many_times(void **state)
{
    const int rounds = getenv("FRIT_TEST_LONG") ? LONG_ROUNDS : ROUNDS;

    (void)state;
    for (int i = 0; i < rounds; i++) {
        struct rig rig = {.no_validation = true};

        rig_open_plugin(&rig);
        assert_int_equal(open_device(&rig), FRIT_OK);
        rig_close(&rig);
    }
}

/* ---- failures of submissions ---- */

static void open_all(struct rig *rig)
{
    rig_open_plugin(rig);
    rig_open_device(rig);
}

/* A failed submission has run nothing, and the queue can be used on. */
static void refused_submit(void **state)
{
    struct rig rig = fake_rig();
    frit_cmd fill = {.struct_size = sizeof fill,
                     .kind = FRIT_CMD_FILL,
                     .bytes = 16,
                     .pattern = 7,
                     .pattern_bytes = 1};
    uint8_t got[16], zeros[16] = {0};
    uint64_t value;

    (void)state;
    open_all(&rig);
    fill.dst = rig_alloc(&rig, 16).memory;
    rig_write(&rig, fill.dst, 0, zeros, 16);
    rig_read(&rig, fill.dst, 0, got, 16);
    fake->failing_call =
        fake->calls + 4; /* after ResetCommandPool, BeginCommandBuffer, EndCommandBuffer */
    assert_int_equal(
        rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
        FRIT_NO_DEVICE_MEMORY);
    assert_string_equal(fake->failed_name, "QueueSubmit");
    rig_read(&rig, fill.dst, 0, got, 16);
    assert_memory_equal(got, zeros, 16);
    rig_run(&rig, &fill, 1);
    rig_read(&rig, fill.dst, 0, got, 16);
    assert_int_equal(got[15], 7);
    rig.backend->free(rig.device, fill.dst);
    rig_close(&rig);
}

/* Fills of one submission, enough for two batches. */
enum { FILLS = 400 };

static uint64_t fail_second_batch(struct rig *rig, void *memory, frit_cmd *fill)
{
    static frit_cmd cmds[FILLS];
    uint64_t value;

    for (uint64_t i = 0; i < FILLS; i++)
        cmds[i] = (frit_cmd){.struct_size = sizeof *cmds,
                             .kind = FRIT_CMD_FILL,
                             .dst = memory,
                             .dst_offset = 4 * i,
                             .bytes = 4,
                             .pattern = i,
                             .pattern_bytes = 4};
    fake->failing_call = fake->calls + 8;
    assert_int_equal(rig->backend->submit(rig->device, NULL, cmds, FILLS, sizeof *cmds, NULL, 0,
                                          &value, &rig->err),
                     FRIT_OK);
    assert_string_equal(fake->failed_name, "QueueSubmit");
    *fill = cmds[0];
    return value;
}

/* If the second batch fails after the first one was submitted, wait reports it, once.  An invalid
 * wait does not. */
static void second_batch_fails(void **state)
{
    struct rig rig = fake_rig();
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value, later;
    frit_cmd fill;
    void *memory;

    (void)state;
    open_all(&rig);
    memory = rig_alloc(&rig, 4 * FILLS).memory;
    value = fail_second_batch(&rig, memory, &fill);
    assert_int_equal(rig.backend->wait(rig.device, NULL, value + 1, 0, &failure, &rig.err),
                     FRIT_INVALID);
    assert_int_equal(failure.status, FRIT_OK);
    assert_null(strstr(rig.err.text, "out of device memory"));
    assert_int_equal(rig.backend->wait(rig.device, NULL, value, UINT64_MAX, &failure, &rig.err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(failure.value, value);
    assert_non_null(strstr(rig.err.text, "out of device memory"));
    assert_int_equal(
        rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &later, &rig.err),
        FRIT_OK);
    assert_int_equal(rig.backend->wait(rig.device, NULL, later, UINT64_MAX, &failure, &rig.err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    rig.backend->free(rig.device, memory);
    rig_close(&rig);
}

/* ---- loss of the device ---- */

/* `failure` is the older fault; `err` describes the loss. */
static void lost_after_a_fault(void **state)
{
    struct rig rig = fake_rig();
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value, later;
    frit_cmd fill;
    void *memory;

    (void)state;
    open_all(&rig);
    memory = rig_alloc(&rig, 4 * FILLS).memory;
    value = fail_second_batch(&rig, memory, &fill);
    later = rig_submit(&rig, &fill, 1);
    fake->is_lost = 1;
    assert_int_equal(rig.backend->wait(rig.device, NULL, later, UINT64_MAX, &failure, &rig.err),
                     FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(failure.value, value);
    assert_non_null(strstr(rig.err.text, "lost"));
    rig.backend->free(rig.device, memory);
    rig.backend->device_close(rig.device);
    rig.device = NULL;
    fake->is_lost = 0;
    rig_close(&rig);
}

static void lost_while_waiting(void **state)
{
    struct rig rig = fake_rig();
    frit_failure failure = {.struct_size = sizeof failure};
    frit_cmd fill = {.struct_size = sizeof fill,
                     .kind = FRIT_CMD_FILL,
                     .bytes = 1 << 20,
                     .pattern = 7,
                     .pattern_bytes = 1};
    uint8_t got[16] = {0};
    uint64_t value;
    frit_transfer from = {.struct_size = sizeof from, .bytes = 16};

    (void)state;
    open_all(&rig);
    fill.dst = from.memory = rig_alloc(&rig, 1 << 20).memory;
    fake->is_lost = 1;
    value = rig_submit(&rig, &fill, 1);
    assert_int_equal(rig.backend->wait(rig.device, NULL, value, UINT64_MAX, &failure, &rig.err),
                     FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    assert_int_equal(failure.value, value);
    assert_non_null(strstr(rig.err.text, "lost"));
    assert_int_equal(
        rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
        FRIT_DEVICE_LOST);
    assert_int_equal(rig.backend->read(rig.device, &from, got, &value, &rig.err), FRIT_DEVICE_LOST);
    assert_int_equal(rig.backend->write(rig.device, &from, got, &value, &rig.err),
                     FRIT_DEVICE_LOST);
    rig.backend->free(rig.device, fill.dst);
    rig.backend->device_close(rig.device);
    rig.device = NULL;
    fake->is_lost = 0;
    assert_int_equal(run_round(&rig), FRIT_OK); /* opened again */
    rig_close(&rig);
}

static void lost_at_submit(void **state)
{
    struct rig rig = fake_rig();
    frit_cmd fill = {
        .struct_size = sizeof fill, .kind = FRIT_CMD_FILL, .bytes = 16, .pattern_bytes = 1};
    uint64_t value;

    (void)state;
    open_all(&rig);
    fill.dst = rig_alloc(&rig, 16).memory;
    fake->failing_call = fake->calls + 4;
    fake->result = VK_ERROR_DEVICE_LOST;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
            FRIT_DEVICE_LOST);
    rig.backend->free(rig.device, fill.dst);
    rig_close(&rig);
}

/* A submission that finds the device lost must not begin a command buffer, which nothing would end.
 */
static void lost_before_submit(void **state)
{
    struct rig rig = fake_rig();
    frit_cmd fill = {
        .struct_size = sizeof fill, .kind = FRIT_CMD_FILL, .bytes = 16, .pattern_bytes = 1};
    uint64_t value;

    (void)state;
    open_all(&rig);
    fill.dst = rig_alloc(&rig, 16).memory;
    (void)rig_submit(&rig, &fill, 1);
    fake->is_lost = 1;
    assert_int_equal(
        rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
        FRIT_DEVICE_LOST);
    rig.backend->free(rig.device, fill.dst);
    rig_close(&rig);
}

/* ---- small limits ---- */

/* Grids in several dispatches; argument blocks in memory; arguments at any address. */
static void small_limits(void **state)
{
    static float got[N], a[N + 3];
    struct rig rig = fake_rig();
    void *from, *to;

    (void)state;
    fake->small_limits = 1;
    open_all(&rig);
    from = rig_alloc(&rig, sizeof a).memory;
    to = rig_alloc(&rig, sizeof a).memory;
    for (int i = 0; i < N + 3; i++)
        a[i] = (float)(i * i % 1001);
    rig_write(&rig, from, 0, a, sizeof a);
    for (uint64_t shift = 0; shift < 4; shift++) {
        const struct vector vectors[3] = {{from, 4 * shift}, {from, 0}, {to, 4 * (3 - shift)}};
        struct add add;

        assert_int_equal(add_open(&rig, &add, vectors, N), FRIT_OK);
        rig_run(&rig, &add.cmd, 1);
        rig_read(&rig, to, vectors[2].offset, got, sizeof got);
        for (int i = 0; i < N; i++)
            assert_true(got[i] == a[i] + a[(uint64_t)i + shift]);
        add_close(&add);
    }
    rig.backend->free(rig.device, from);
    rig.backend->free(rig.device, to);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_fails_once),   cmocka_unit_test(each_host_allocation_fails_once),
        cmocka_unit_test(each_malloc_fails_once), cmocka_unit_test(opened_many_times),
        cmocka_unit_test(refused_submit),         cmocka_unit_test(second_batch_fails),
        cmocka_unit_test(lost_after_a_fault),     cmocka_unit_test(lost_while_waiting),
        cmocka_unit_test(lost_at_submit),         cmocka_unit_test(lost_before_submit),
        cmocka_unit_test(small_limits),
    };
    const int skips = rig_skips();

    return skips ? skips : cmocka_run_group_tests(tests, fake_open, NULL);
}
