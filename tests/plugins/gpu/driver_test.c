/* SPDX-License-Identifier: Apache-2.0 */
/* What every driver of GPUs does, through its interface tables: devices, memory, transfers,
 * commands, kernels.  With the argument `_staging` vulkan has no pointers to device memory. */
#include <string.h>

#include "add.h"

static const char *staging;

static int open_rig(void **state)
{
    static struct rig rig;

    rig = (struct rig){.staging = staging};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    return 0;
}

/* ---- devices ---- */

static void devices_are_listed(void **state)
{
    struct rig *rig = *state;
    frit_device_info infos[8] = {0}, again[8] = {0};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0, second = 0;
    const frit_heap *heap;
    void *other;

    for (int i = 0; i < 8; i++)
        infos[i].struct_size = again[i].struct_size = sizeof *infos;
    assert_int_equal(
        rig->backend->enumerate(rig->instance, infos, sizeof *infos, 8, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(rig->backend->enumerate(rig->instance, again, sizeof *again, 8, &second,
                                             &driver, &rig->err),
                     FRIT_OK);
    assert_int_equal(count, second);
    assert_int_equal(driver.reason, 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(infos[i].index, i);
        assert_memory_equal(&infos[i], &again[i], sizeof *infos);
        assert_true(infos[i].stable_id.len > 0 && infos[i].name.len > 0);
        if (infos[i].reason)
            continue;
        assert_true(infos[i].n_heaps > 0 && infos[i].heap_stride >= sizeof(frit_heap));
        heap = infos[i].heaps;
        assert_true(heap->bytes > 0 && heap->budget <= heap->bytes);
        assert_true(infos[i].max_group >= 128);
        assert_true(infos[i].runtime_path.len > 0 && infos[i].fingerprint.len > 8);
        assert_int_equal(infos[i].stable_id.len, 36);
        assert_int_equal(infos[i].dtype_use[FRIT_F32], FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
        assert_int_equal(infos[i].dtype_use[FRIT_Q4], FRIT_DTYPE_STORAGE);
        assert_int_equal(infos[i].dtype_use[0], 0);
    }
    assert_int_equal(
        rig->backend->device_open(rig->instance, count, &rig_params, &other, &rig->err),
        FRIT_INVALID);
    assert_null(other);
}

static void opens_often(void **state)
{
    struct rig *rig = *state;
    int n_before = rig->n_allocs;

    for (int i = 0; i < 20; i++) {
        void *device;

        assert_int_equal(
            rig->backend->device_open(rig->instance, 0, &rig_params, &device, &rig->err), FRIT_OK);
        rig->backend->device_close(device);
    }
    assert_int_equal(rig->n_allocs, n_before);
}

/* ---- memory ---- */

static void too_large_allocations(void **state)
{
    struct rig *rig = *state;
    const frit_alloc_desc huge = {sizeof huge, 0, UINT64_MAX - 8, 256};
    frit_allocation out = {.struct_size = sizeof out};
    int n_before = rig->n_allocs;

    assert_int_equal(rig->backend->alloc(rig->device, &huge, &out, &rig->err),
                     FRIT_NO_DEVICE_MEMORY);
    assert_null(out.memory);
    assert_int_equal(rig->n_allocs, n_before);
}

static void small_allocations(void **state)
{
    struct rig *rig = *state;
    frit_allocation one = rig_alloc(rig, 1), two = rig_alloc(rig, 1);

    assert_true(one.address && two.address && one.address != two.address);
    rig->backend->free(rig->device, one.memory);
    rig->backend->free(rig->device, two.memory);
    rig->backend->free(rig->device, NULL);
}

/* ---- transfers ---- */

static uint8_t byte_of(uint64_t i)
{
    return (uint8_t)(i * 167 + (i >> 13));
}

static uint8_t *make_bytes(uint64_t n)
{
    uint8_t *bytes = malloc(n);

    assert_non_null(bytes);
    for (uint64_t i = 0; i < n; i++)
        bytes[i] = byte_of(i);
    return bytes;
}

/* Transfers of more bytes than the staging ring has, at unaligned offsets. */
static void large_transfers(void **state)
{
    struct rig *rig = *state;
    const uint64_t bytes = (40 << 20) + 13;
    uint8_t *data = make_bytes(bytes), *got = calloc(1, bytes);
    frit_allocation memory = rig_alloc(rig, bytes + 7);

    assert_non_null(got);
    rig_write(rig, memory.memory, 5, data, bytes);
    rig_read(rig, memory.memory, 5, got, bytes);
    assert_memory_equal(data, got, bytes);
    free(data);
    free(got);
    rig->backend->free(rig->device, memory.memory);
}

/* The caller may change the data of a write right after the call; a read returns what the buffer
 * held when it was called. */
static void small_transfers_in_order(void **state)
{
    enum { N = 600 };
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, 64);
    uint32_t got[N] = {0};
    uint64_t value = 0, last = 0;

    for (uint32_t i = 0; i < N; i++) {
        const frit_transfer at = {
            .struct_size = sizeof at, .memory = memory.memory, .offset = 12, .bytes = 4};
        uint32_t word = i * 3 + 1;

        rig_write(rig, memory.memory, 12, &word, 4);
        word = 0;
        assert_int_equal(rig->backend->read(rig->device, &at, &got[i], &value, &rig->err), FRIT_OK);
        assert_true(value > last);
        last = value;
    }
    rig_wait(rig, value);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(got[i], i * 3 + 1);
    rig->backend->free(rig->device, memory.memory);
}

static void transfers_are_checked(void **state)
{
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, 8);
    const frit_transfer out = {
        .struct_size = sizeof out, .memory = memory.memory, .offset = 4, .bytes = 5};
    char bytes[8] = {0};
    const frit_point never = {NULL, 1 << 20}, nowhere = {(frit_queue *)(void *)bytes, 0};
    frit_transfer late = {.struct_size = sizeof late,
                          .memory = memory.memory,
                          .bytes = 4,
                          .waits = &never,
                          .n_waits = 1};
    uint64_t value;

    assert_int_equal(rig->backend->write(rig->device, &out, bytes, &value, &rig->err),
                     FRIT_INVALID);
    assert_int_equal(rig->backend->read(rig->device, &out, bytes, &value, &rig->err), FRIT_INVALID);
    assert_int_equal(rig->backend->write(rig->device, &late, bytes, &value, &rig->err),
                     FRIT_INVALID);
    late.waits = &nowhere;
    assert_int_equal(rig->backend->read(rig->device, &late, bytes, &value, &rig->err),
                     FRIT_INVALID);
    rig->backend->free(rig->device, memory.memory);
}

/* ---- commands ---- */

static frit_cmd fill_cmd(frit_memory *memory, uint64_t offset, uint64_t bytes, uint64_t pattern,
                         uint32_t pattern_bytes)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_FILL,
                      .dst = memory,
                      .dst_offset = offset,
                      .bytes = bytes,
                      .pattern = pattern,
                      .pattern_bytes = pattern_bytes};
}

static frit_cmd copy_cmd(frit_memory *to, uint64_t to_offset, frit_memory *from,
                         uint64_t from_offset, uint64_t bytes)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_COPY,
                      .dst = to,
                      .dst_offset = to_offset,
                      .src = from,
                      .src_offset = from_offset,
                      .bytes = bytes};
}

/* Each size of pattern at each offset in a word; bytes around the range stay as they are. */
static void fills(void **state)
{
    static const uint64_t patterns[] = {0, 0x0123456789abcdef, 0x1111111111111111};
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, 20000);
    uint8_t got[20000], expected[20000];

    for (uint32_t n = 1; n <= 8; n *= 2)
        for (uint64_t offset = 0; offset < 16; offset += n)
            for (uint64_t bytes = 0; bytes < 20000 - 16; bytes = bytes * 3 + n)
                for (int p = 0; p < 3; p++) {
                    const frit_cmd cmds[] = {
                        fill_cmd(memory.memory, 0, sizeof got, 0x77, 1),
                        {.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER},
                        fill_cmd(memory.memory, offset, bytes, patterns[p], n)};

                    memset(expected, 0x77, sizeof expected);
                    for (uint64_t i = 0; i < bytes; i++)
                        expected[offset + i] = (uint8_t)(patterns[p] >> i % n * 8);
                    rig_run(rig, cmds, 3);
                    rig_read(rig, memory.memory, 0, got, sizeof got);
                    assert_memory_equal(got, expected, sizeof got);
                }
    rig->backend->free(rig->device, memory.memory);
}

/* Copies that depend on each other, with a BARRIER after each, in more than one batch. */
static void copies_in_order(void **state)
{
    enum { STEPS = 700 };
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, STEPS * 8 + 8);
    frit_cmd *cmds = calloc(2 * STEPS, sizeof *cmds);
    uint64_t seed = 0x0123456789abcdef, got[STEPS + 1];

    assert_non_null(cmds);
    rig_write(rig, memory.memory, 0, &seed, sizeof seed);
    for (uint64_t i = 0; i < STEPS; i++) {
        cmds[2 * i] = copy_cmd(memory.memory, 8 * (i + 1), memory.memory, 8 * i, 8);
        cmds[2 * i + 1] = (frit_cmd){.struct_size = sizeof *cmds, .kind = FRIT_CMD_BARRIER};
    }
    rig_run(rig, cmds, 2 * STEPS);
    rig_read(rig, memory.memory, 0, got, sizeof got);
    for (int i = 0; i <= STEPS; i++)
        assert_int_equal(got[i], seed);
    free(cmds);
    rig->backend->free(rig->device, memory.memory);
}

/* Fills in one submission that need more bytes than the parameter ring has. */
static void many_wide_fills(void **state)
{
    enum { N = 300, BYTES = 8192 };
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, N * BYTES);
    frit_cmd *cmds = calloc(N, sizeof *cmds);
    uint64_t *got = calloc(N, BYTES);

    assert_true(cmds && got);
    for (uint64_t i = 0; i < N; i++)
        cmds[i] = fill_cmd(memory.memory, i * BYTES, BYTES, i << 40 | 1, 8);
    rig_run(rig, cmds, N);
    rig_read(rig, memory.memory, 0, got, N * BYTES);
    for (uint64_t i = 0; i < N * BYTES / 8; i++)
        assert_int_equal(got[i], i / (BYTES / 8) << 40 | 1);
    free(cmds);
    free(got);
    rig->backend->free(rig->device, memory.memory);
}

/* A submission runs after earlier writes and before later ones, without waits. */
static void submits_and_transfers_in_order(void **state)
{
    enum { ROUNDS = 100 };
    struct rig *rig = *state;
    frit_allocation a = rig_alloc(rig, 4096), b = rig_alloc(rig, 4096);
    const frit_cmd copy = copy_cmd(b.memory, 0, a.memory, 0, 4096);
    const frit_transfer from = {.struct_size = sizeof from, .memory = b.memory, .bytes = 4096};
    uint8_t(*got)[4096] = calloc(ROUNDS, 4096);
    uint64_t value = 0;

    assert_non_null(got);
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t data[4096];

        memset(data, i + 1, sizeof data);
        rig_write(rig, a.memory, 0, data, sizeof data);
        (void)rig_submit(rig, &copy, 1);
        assert_int_equal(rig->backend->read(rig->device, &from, got[i], &value, &rig->err),
                         FRIT_OK);
    }
    rig_wait(rig, value);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(got[i][0] == i + 1 && got[i][4095] == i + 1);
    free(got);
    rig->backend->free(rig->device, a.memory);
    rig->backend->free(rig->device, b.memory);
}

/* A refused submission runs none of its commands, not even those before the invalid one. */
static void refused_submits_run_nothing(void **state)
{
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, 16);
    const frit_cmd bad[] = {
        {.kind = 77},
        copy_cmd(memory.memory, 4, memory.memory, 0, 8),
        fill_cmd(memory.memory, 0, 16, 0, 3),
        fill_cmd(memory.memory, 8, 16, 0, 1),
        copy_cmd(memory.memory, 0, memory.memory, 0, 17),
        copy_cmd(memory.memory, 0, NULL, 0, 1),
    };
    uint8_t sevens[16], got[16];
    uint64_t value;

    memset(sevens, 7, sizeof sevens);
    rig_write(rig, memory.memory, 0, sevens, sizeof sevens);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const frit_cmd cmds[] = {fill_cmd(memory.memory, 0, 16, 0, 1), bad[i]};

        assert_int_equal(rig->backend->submit(rig->device, NULL, cmds, 2, sizeof *cmds, NULL, 0,
                                              &value, &rig->err),
                         i < 2 ? FRIT_UNSUPPORTED : FRIT_INVALID);
        rig_read(rig, memory.memory, 0, got, sizeof got);
        assert_memory_equal(got, sevens, sizeof got);
    }
    rig->backend->free(rig->device, memory.memory);
}

static void waits(void **state)
{
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, 1 << 20);
    const frit_cmd fill = fill_cmd(memory.memory, 0, 1 << 20, 1, 1);
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t first = rig_submit(rig, &fill, 1), last = rig_submit(rig, &fill, 1);
    const frit_point points[] = {{NULL, first}, {NULL, last}};

    assert_true(last > first);
    assert_int_equal(rig->backend->wait(rig->device, NULL, last + 1, 0, &failure, &rig->err),
                     FRIT_INVALID);
    while (rig->backend->wait(rig->device, NULL, last, 0, &failure, &rig->err) == FRIT_TIMEOUT)
        ;
    assert_int_equal(rig->backend->wait(rig->device, NULL, first, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(
        rig->backend->submit(rig->device, NULL, &fill, 1, sizeof fill, points, 2, &last, &rig->err),
        FRIT_OK);
    rig_wait(rig, last);
    rig->backend->free(rig->device, memory.memory);
}

/* ---- kernels ---- */

static void adds(void **state)
{
    add_run(*state, 1);
}

/* Launches with arguments outside their buffers, and of programs of other drivers, are refused. */
static void launches_are_checked(void **state)
{
    struct rig *rig = *state;
    frit_allocation a = rig_alloc(rig, 64);
    const struct vector vectors[3] = {{a.memory, 0}, {a.memory, 0}, {a.memory, 0}};
    frit_program foreign = {.struct_size = sizeof foreign};
    struct add add;
    uint64_t value;

    assert_int_equal(add_open(rig, &add, vectors, 3), FRIT_OK);
    add.args[2].offset = 56;
    assert_int_equal(rig->backend->submit(rig->device, NULL, &add.cmd, 1, sizeof add.cmd, NULL, 0,
                                          &value, &rig->err),
                     FRIT_INVALID);
    add.args[2].offset = 0;
    add.launch.program = &foreign;
    assert_int_equal(rig->backend->submit(rig->device, NULL, &add.cmd, 1, sizeof add.cmd, NULL, 0,
                                          &value, &rig->err),
                     FRIT_INVALID);
    add_close(&add);
    rig->backend->free(rig->device, a.memory);
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(devices_are_listed),
        RIG_TEST(opens_often),
        RIG_TEST(too_large_allocations),
        RIG_TEST(small_allocations),
        RIG_TEST(large_transfers),
        RIG_TEST(small_transfers_in_order),
        RIG_TEST(transfers_are_checked),
        RIG_TEST(fills),
        RIG_TEST(copies_in_order),
        RIG_TEST(many_wide_fills),
        RIG_TEST(submits_and_transfers_in_order),
        RIG_TEST(refused_submits_run_nothing),
        RIG_TEST(waits),
        RIG_TEST(adds),
        RIG_TEST(launches_are_checked),
    };
    const int skips = rig_skips();

    staging = argc > 1 && strcmp(argv[1], "_staging") == 0 ? "force" : NULL;
    return skips ? skips : cmocka_run_group_tests(tests, NULL, NULL);
}
