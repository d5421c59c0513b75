/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of Vulkan that fail, and allocations, each one once: a clear error, nothing left behind,
 * and the next attempt works.  Many lives in a row. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "fake_loader.h"
#include "op.h"

enum { BYTES = 1 << 16, N = 5000, LIVES = 100, LONG_LIVES = 1000 };

static struct fake_loader *fake;
static char loader_path[512];

static int find_loader(void **state)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    void *library;

    (void)state;
    snprintf(loader_path, sizeof loader_path, "%s/tests/fake/libfake-vulkan.so",
             build ? build : "build");
    library = dlopen(loader_path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    fake = dlsym(library, "fake_loader");
    assert_non_null(fake);
    return 0;
}

static struct rig fresh(void)
{
    *fake = (struct fake_loader){0};
    return (struct rig){.loader = loader_path, .staging = "force"};
}

/* ---- one round of everything ---- */

/* The first call loads Vulkan. */
static frit_status look(struct rig *rig)
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
    frit_status status = look(rig);

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

/* y = a + a where a is 0, 1, 2, ...  `value` is the last that was handed out. */
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

/* The first failure; whatever it is, all is given back. */
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
    rig_wait(rig, value); /* what is under way has to end */
    add_close(&add);
    for (int i = 0; i < 2; i++)
        rig->backend->free(rig->device, memory[i]);
    return status;
}

/* The same.  The device, where it opened, works afterwards. */
static frit_status round_of(struct rig *rig)
{
    frit_status status = open_device(rig);

    return status ? status : use_device(rig);
}

static void each_call_fails_once(void **state)
{
    static const frit_status allowed[] = {FRIT_NO_HOST_MEMORY, FRIT_NO_DEVICE_MEMORY, FRIT_IO};
    int n = 0, failures = 0;
    frit_status status;

    (void)state;
    do {
        struct rig rig = fresh();
        bool fits = false;

        fake->fail = ++n;
        rig_open_plugin(&rig);
        status = round_of(&rig);
        if (status) {
            failures++;
            for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
                fits |= status == allowed[i];
            if (!fits || !rig.err.text[0])
                fail_msg("call %d, %s: status %d, '%s'", n, fake->name, status, rig.err.text);
            if (rig.device)
                rig.backend->device_close(rig.device);
            rig.device = NULL;
            assert_int_equal(round_of(&rig), FRIT_OK);
        }
        rig_close(&rig);
    } while (fake->calls >= n);
    assert_true(failures > 40);
}

/* ---- no memory ---- */

static bool tells_of_memory(const struct rig *rig, frit_status status)
{
    return status == FRIT_NO_HOST_MEMORY && strstr(rig->err.text, "memory");
}

static void each_of_the_hosts_fails_once(void **state)
{
    bool hit = true;
    int n = 0;

    (void)state;
    while (hit) {
        struct rig rig = {.plain = true, .refuse = ++n};
        frit_status status = rig_load(&rig);

        if (!status) {
            rig.backend = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_BACKEND));
            status = round_of(&rig);
        }
        hit = rig.refuse == 0;
        if (hit ? !tells_of_memory(&rig, status) : status)
            fail_msg("allocation %d: status %d, '%s'", n, status, rig.err.text);
        if (rig.instance)
            rig_close(&rig);
        assert_int_equal(rig.live, 0);
    }
    assert_true(n > 6); /* instance, adapters, extensions, device, two buffers, code */
}

/* Of a step that is tried until no allocation is refused: how often it told so.  A schedule that
 * has no memory to look at an op says no to it, and another may take it. */
static int starve(struct rig *rig, frit_status (*step)(struct rig *rig))
{
    bool hit = true;
    int told = 0;

    for (long n = 0; hit; n++) {
        const int live = rig->live;
        frit_status status;

        rig->err.text[0] = '\0';
        failing_alloc_arm(n);
        status = step(rig);
        hit = failing_alloc_disarm();
        if (hit ? status && status != FRIT_UNSUPPORTED && !tells_of_memory(rig, status) : status)
            fail_msg("allocation %ld: status %d, '%s'", n, status, rig->err.text);
        told += status == FRIT_NO_HOST_MEMORY;
        assert_true(rig->device || rig->live == live);
    }
    return told;
}

static void each_of_its_own_fails_once(void **state)
{
    struct rig rig = {.plain = true};

    (void)state;
    rig_open_plugin(&rig);
    (void)look(&rig); /* which keeps what it found */
    assert_true(starve(&rig, open_device) > 0);
    assert_true(starve(&rig, use_device) > 40); /* a block, a module, words */
    rig_close(&rig);
}

static void many_lives(void **state)
{
    const int lives = getenv("FRIT_TEST_LONG") ? LONG_LIVES : LIVES;

    (void)state;
    for (int i = 0; i < lives; i++) {
        struct rig rig = {.plain = true};

        rig_open_plugin(&rig);
        assert_int_equal(open_device(&rig), FRIT_OK);
        rig_close(&rig);
    }
}

/* ---- failures on the way ---- */

static void open_all(struct rig *rig)
{
    rig_open_plugin(rig);
    rig_open_device(rig);
}

/* What a submit refuses has not run, and the queue goes on. */
static void refused_submit(void **state)
{
    struct rig rig = fresh();
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
    fake->fail = fake->calls + 4; /* reset, begin, end, submit */
    assert_int_equal(
        rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
        FRIT_NO_DEVICE_MEMORY);
    assert_string_equal(fake->name, "QueueSubmit");
    rig_read(&rig, fill.dst, 0, got, 16);
    assert_memory_equal(got, zeros, 16);
    rig_run(&rig, &fill, 1);
    rig_read(&rig, fill.dst, 0, got, 16);
    assert_int_equal(got[15], 7);
    rig.backend->free(rig.device, fill.dst);
    rig_close(&rig);
}

/* The first part of so many fills is on its way when the next one fails. */
enum { PARTS = 400 };

static uint64_t fail_second_part(struct rig *rig, void *memory, frit_cmd *fill)
{
    static frit_cmd cmds[PARTS];
    uint64_t value;

    for (uint64_t i = 0; i < PARTS; i++)
        cmds[i] = (frit_cmd){.struct_size = sizeof *cmds,
                             .kind = FRIT_CMD_FILL,
                             .dst = memory,
                             .dst_offset = 4 * i,
                             .bytes = 4,
                             .pattern = i,
                             .pattern_bytes = 4};
    fake->fail = fake->calls + 8;
    assert_int_equal(rig->backend->submit(rig->device, NULL, cmds, PARTS, sizeof *cmds, NULL, 0,
                                          &value, &rig->err),
                     FRIT_OK);
    assert_string_equal(fake->name, "QueueSubmit");
    *fill = cmds[0];
    return value;
}

/* Then the failure is told by wait, once; a wait that is refused tells nothing of it. */
static void second_part_fails(void **state)
{
    struct rig rig = fresh();
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value, later;
    frit_cmd fill;
    void *memory;

    (void)state;
    open_all(&rig);
    memory = rig_alloc(&rig, 4 * PARTS).memory;
    value = fail_second_part(&rig, memory, &fill);
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

/* ---- a device that goes away ---- */

/* The wait says why it failed, and names the older fault. */
static void lost_after_a_fault(void **state)
{
    struct rig rig = fresh();
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value, later;
    frit_cmd fill;
    void *memory;

    (void)state;
    open_all(&rig);
    memory = rig_alloc(&rig, 4 * PARTS).memory;
    value = fail_second_part(&rig, memory, &fill);
    later = rig_submit(&rig, &fill, 1);
    fake->lost = 1;
    assert_int_equal(rig.backend->wait(rig.device, NULL, later, UINT64_MAX, &failure, &rig.err),
                     FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(failure.value, value);
    assert_non_null(strstr(rig.err.text, "lost"));
    rig.backend->free(rig.device, memory);
    rig.backend->device_close(rig.device);
    rig.device = NULL;
    fake->lost = 0;
    rig_close(&rig);
}

static void lost_while_waiting(void **state)
{
    struct rig rig = fresh();
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
    fake->lost = 1;
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
    fake->lost = 0;
    assert_int_equal(round_of(&rig), FRIT_OK); /* opened again */
    rig_close(&rig);
}

static void lost_at_submit(void **state)
{
    struct rig rig = fresh();
    frit_cmd fill = {
        .struct_size = sizeof fill, .kind = FRIT_CMD_FILL, .bytes = 16, .pattern_bytes = 1};
    uint64_t value;

    (void)state;
    open_all(&rig);
    fill.dst = rig_alloc(&rig, 16).memory;
    fake->fail = fake->calls + 4;
    fake->result = VK_ERROR_DEVICE_LOST;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
            FRIT_DEVICE_LOST);
    rig.backend->free(rig.device, fill.dst);
    rig_close(&rig);
}

/* A submission that finds the device lost records nothing: nothing would wait for its end. */
static void lost_before_submit(void **state)
{
    struct rig rig = fresh();
    frit_cmd fill = {
        .struct_size = sizeof fill, .kind = FRIT_CMD_FILL, .bytes = 16, .pattern_bytes = 1};
    uint64_t value;

    (void)state;
    open_all(&rig);
    fill.dst = rig_alloc(&rig, 16).memory;
    (void)rig_submit(&rig, &fill, 1);
    fake->lost = 1;
    assert_int_equal(
        rig.backend->submit(rig.device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig.err),
        FRIT_DEVICE_LOST);
    rig.backend->free(rig.device, fill.dst);
    rig_close(&rig);
}

/* ---- small limits ---- */

/* Grids in several dispatches; words in memory; arguments at any address. */
static void small_limits(void **state)
{
    static float got[N], a[N + 3];
    struct rig rig = fresh();
    void *from, *to;

    (void)state;
    fake->small = 1;
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
        cmocka_unit_test(each_call_fails_once),
        cmocka_unit_test(each_of_the_hosts_fails_once),
        cmocka_unit_test(each_of_its_own_fails_once),
        cmocka_unit_test(many_lives),
        cmocka_unit_test(refused_submit),
        cmocka_unit_test(second_part_fails),
        cmocka_unit_test(lost_after_a_fault),
        cmocka_unit_test(lost_while_waiting),
        cmocka_unit_test(lost_at_submit),
        cmocka_unit_test(lost_before_submit),
        cmocka_unit_test(small_limits),
    };
    const int skips = rig_skips();

    return skips ? skips : cmocka_run_group_tests(tests, find_loader, NULL);
}
