/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and queue of a built plugin whose commands run inside of submit, through its tables alone.
 */
#include <string.h>

#include <frit/profile.h>

#include "plugins/rig.h"

static int open_rig(void **state)
{
    static struct rig rig;

    memset(&rig, 0, sizeof rig);
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    return 0;
}

/* ---- memory ---- */

static void the_cap_holds(void **state)
{
    struct rig rig = {.memory_bytes = 1000};
    frit_alloc_desc desc = {sizeof desc, 0, 600, 256};
    frit_allocation first = {.struct_size = sizeof first}, second = first;

    (void)state;
    rig_open(&rig);
    assert_int_equal(rig.backend->alloc(rig.device, &desc, &first, &rig.err), FRIT_OK);
    assert_int_equal(first.address % 256, 0);
    assert_ptr_equal(first.host_pointer, (void *)(uintptr_t)first.address);
    assert_int_equal(rig.backend->alloc(rig.device, &desc, &second, &rig.err),
                     FRIT_NO_DEVICE_MEMORY);
    assert_non_null(strstr(rig.err.text, "600 bytes with 600 in use of 1000"));
    desc.bytes = 400; /* the refusal took nothing */
    assert_int_equal(rig.backend->alloc(rig.device, &desc, &second, &rig.err), FRIT_OK);
    rig.backend->free(rig.device, first.memory);
    rig.backend->free(rig.device, second.memory);
    rig.backend->free(rig.device, NULL);
    desc.bytes = 1000;
    assert_int_equal(rig.backend->alloc(rig.device, &desc, &first, &rig.err), FRIT_OK);
    rig.backend->free(rig.device, first.memory);
    rig_close(&rig);
}

/* More than there is: the count must come back too. */
static void memory_that_is_not_there(void **state)
{
    struct rig *rig = *state;
    const frit_alloc_desc huge = {sizeof huge, 0, UINT64_MAX - 8, 64},
                          most = {sizeof most, 0, 1ull << 62, 64};
    const frit_alloc_desc small = {sizeof small, 0, 1, 64};
    frit_allocation allocation = {.struct_size = sizeof allocation};

    assert_int_equal(rig->backend->alloc(rig->device, &huge, &allocation, &rig->err),
                     FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(rig->backend->alloc(rig->device, &most, &allocation, &rig->err),
                     FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(rig->backend->alloc(rig->device, &small, &allocation, &rig->err), FRIT_OK);
    rig->backend->free(rig->device, allocation.memory);
}

/* ---- queue ---- */

static void fill_and_copy(void **state)
{
    struct rig *rig = *state;
    const frit_alloc_desc desc = {sizeof desc, 0, 16, 64};
    frit_allocation memory = {.struct_size = sizeof memory};
    frit_transfer all = {.struct_size = sizeof all, .bytes = 16};
    static const uint16_t expected[8] = {0x1234, 0x1234, 0x1234, 0x1234, 0, 0x1234, 0x1234, 0x1234};
    uint64_t before, done, value;
    frit_cmd cmds[4];
    uint16_t got[8] = {0};
    frit_failure failure = {.struct_size = sizeof failure};

    assert_int_equal(rig->backend->alloc(rig->device, &desc, &memory, &rig->err), FRIT_OK);
    all.memory = memory.memory;
    assert_int_equal(rig->backend->write(rig->device, &all, got, &before, &rig->err), FRIT_OK);
    memset(cmds, 0, sizeof cmds);
    cmds[0] =
        (frit_cmd){.kind = FRIT_CMD_FILL, .dst = memory.memory, .bytes = 8, .pattern = 0xffff1234};
    cmds[0].pattern_bytes = 2;
    cmds[1] = (frit_cmd){.kind = FRIT_CMD_BARRIER};
    cmds[2] = (frit_cmd){.kind = FRIT_CMD_COPY, .dst = memory.memory, .dst_offset = 10, .bytes = 6};
    cmds[2].src = memory.memory;
    assert_int_equal(
        rig->backend->submit(rig->device, NULL, cmds, 3, sizeof *cmds, NULL, 0, &value, &rig->err),
        FRIT_OK);
    assert_true(value > before);
    assert_int_equal(rig->backend->read(rig->device, &all, got, &done, &rig->err), FRIT_OK);
    assert_true(done > value);
    assert_memory_equal(got, expected, sizeof expected);
    assert_int_equal(rig->backend->wait(rig->device, NULL, done, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(rig->backend->wait(rig->device, NULL, done + 1, 0, &failure, &rig->err),
                     FRIT_INVALID);
    rig->backend->free(rig->device, memory.memory);
}

/* A submit that is refused has run nothing, the good commands before the bad one included. */
static void refused_submits_run_nothing(void **state)
{
    struct rig *rig = *state;
    const frit_alloc_desc desc = {sizeof desc, 0, 16, 64};
    frit_allocation memory = {.struct_size = sizeof memory};
    frit_cmd bad[6], cmds[2];
    uint64_t value;

    assert_int_equal(rig->backend->alloc(rig->device, &desc, &memory, &rig->err), FRIT_OK);
    memset(memory.host_pointer, 7, 16);
    memset(bad, 0, sizeof bad);
    bad[0] = (frit_cmd){.kind = 77};
    bad[1] = (frit_cmd){.kind = FRIT_CMD_TIMESTAMP, .dst = memory.memory, .dst_offset = 4};
    bad[5] = (frit_cmd){.kind = FRIT_CMD_TIMESTAMP, .dst = memory.memory, .dst_offset = 16};
    bad[2] =
        (frit_cmd){.kind = FRIT_CMD_FILL, .dst = memory.memory, .bytes = 16, .pattern_bytes = 3};
    bad[3] = (frit_cmd){.kind = FRIT_CMD_FILL,
                        .dst = memory.memory,
                        .dst_offset = 8,
                        .bytes = 16,
                        .pattern_bytes = 1};
    bad[4] =
        (frit_cmd){.kind = FRIT_CMD_COPY, .dst = memory.memory, .src = memory.memory, .bytes = 17};
    for (int i = 0; i < 6; i++) {
        cmds[0] = (frit_cmd){
            .kind = FRIT_CMD_FILL, .dst = memory.memory, .bytes = 16, .pattern_bytes = 1};
        cmds[1] = bad[i];
        assert_int_equal(rig->backend->submit(rig->device, NULL, cmds, 2, sizeof *cmds, NULL, 0,
                                              &value, &rig->err),
                         i < 1 ? FRIT_UNSUPPORTED : FRIT_INVALID);
        assert_int_equal(((char *)memory.host_pointer)[0], 7);
    }
    rig->backend->free(rig->device, memory.memory);
}

/* Ticks are of the clock's time, and go on from one command to the next. */
static void timestamps(void **state)
{
    struct rig *rig = *state;
    const frit_alloc_desc desc = {sizeof desc, 0, 24, 64};
    const frit_profile_table *profile =
        rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_PROFILE_TABLE));
    frit_allocation memory = {.struct_size = sizeof memory};
    frit_clock before = {.struct_size = sizeof before}, after = before;
    frit_cmd cmds[3];
    const uint64_t *ticks;
    uint64_t value;

    assert_non_null(profile);
    assert_int_equal(rig->backend->alloc(rig->device, &desc, &memory, &rig->err), FRIT_OK);
    for (uint32_t i = 0; i < 3; i++)
        cmds[i] = (frit_cmd){.struct_size = sizeof cmds[i],
                             .kind = FRIT_CMD_TIMESTAMP,
                             .dst = memory.memory,
                             .dst_offset = 8 * i};
    assert_int_equal(profile->clock(rig->device, &before, &rig->err), FRIT_OK);
    assert_int_equal(
        rig->backend->submit(rig->device, NULL, cmds, 3, sizeof *cmds, NULL, 0, &value, &rig->err),
        FRIT_OK);
    assert_int_equal(profile->clock(rig->device, &after, &rig->err), FRIT_OK);
    assert_int_equal(before.valid_bits, 64);
    ticks = memory.host_pointer;
    assert_true(before.ticks <= ticks[0] && ticks[0] <= ticks[1] && ticks[1] <= ticks[2] &&
                ticks[2] <= after.ticks);
    rig->backend->free(rig->device, memory.memory);
}

static void transfers_stay_inside(void **state)
{
    struct rig *rig = *state;
    const frit_alloc_desc desc = {sizeof desc, 0, 8, 64};
    frit_allocation memory = {.struct_size = sizeof memory};
    frit_transfer transfer = {.struct_size = sizeof transfer, .offset = 4, .bytes = 5};
    char bytes[8] = {0};
    uint64_t value;

    assert_int_equal(rig->backend->alloc(rig->device, &desc, &memory, &rig->err), FRIT_OK);
    transfer.memory = memory.memory;
    assert_int_equal(rig->backend->write(rig->device, &transfer, bytes, &value, &rig->err),
                     FRIT_INVALID);
    assert_int_equal(rig->backend->read(rig->device, &transfer, bytes, &value, &rig->err),
                     FRIT_INVALID);
    rig->backend->free(rig->device, memory.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_holds),         cmocka_unit_test(memory_that_is_not_there),
        cmocka_unit_test(fill_and_copy),         cmocka_unit_test(refused_submits_run_nothing),
        cmocka_unit_test(transfers_stay_inside), cmocka_unit_test(timestamps),
    };

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
