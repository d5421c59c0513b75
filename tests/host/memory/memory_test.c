/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers over a scripted driver that counts its calls and has as much memory as a test says. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "memory/memory.h"

struct driver {
    uint64_t room, used;
    uint32_t allocs, frees, cleanups, idles;
    uint64_t largest;
};

struct piece {
    struct driver *driver;
    uint64_t bytes;
};

static frit_status driver_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    struct driver *driver = self;
    struct piece *piece;

    driver->allocs++;
    if (desc->bytes > driver->room - driver->used)
        return fail(err, FRIT_NO_DEVICE_MEMORY, "full");
    piece = malloc(sizeof(*piece));
    *piece = (struct piece){driver, desc->bytes};
    driver->used += desc->bytes;
    if (desc->bytes > driver->largest)
        driver->largest = desc->bytes;
    out->memory = piece;
    return FRIT_OK;
}

static void driver_free(void *self, void *memory)
{
    struct driver *driver = self;
    struct piece *piece = memory;

    driver->frees++;
    driver->used -= piece->bytes;
    free(piece);
}

static void driver_cleanup(void *self)
{
    ((struct driver *)self)->cleanups++;
}

static void driver_idle(void *ctx)
{
    ((struct driver *)ctx)->idles++;
}

static const frit_backend backend = {
    .alloc = driver_alloc, .free = driver_free, .memory_cleanup = driver_cleanup};

/* A memory over a driver, and what the tests vary. */
struct rig {
    struct driver driver;
    frit_device_info info;
    struct memory_limits limits;
    struct memory *memory;
};

static void rig_open(struct rig *rig)
{
    if (!rig->driver.room)
        rig->driver.room = UINT64_MAX / 2;
    if (!rig->limits.block_bytes)
        rig->limits = (struct memory_limits){1 << 20, 64 << 20};
    assert_int_equal(
        memory_create(&backend, &rig->info, &rig->driver, &rig->limits, &rig->memory, NULL),
        FRIT_OK);
    memory_set_idle(rig->memory, driver_idle, &rig->driver);
}

static void rig_close(struct rig *rig)
{
    memory_destroy(rig->memory);
    assert_int_equal(rig->driver.used, 0);
}

static struct buffer *get(struct rig *rig, uint64_t bytes)
{
    struct buffer *buffer;

    assert_int_equal(buffer_create(rig->memory, bytes, false, &buffer, NULL), FRIT_OK);
    return buffer;
}

static void test_small_buffers_share_a_block(void **state)
{
    struct rig rig = {0};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 100);
    b = get(&rig, 100);
    assert_ptr_equal(a->handle, b->handle);
    assert_int_equal(b->offset % 64, 0);
    assert_true(b->offset >= a->offset + 100 || a->offset >= b->offset + 100);
    assert_int_equal(rig.driver.allocs, 1);
    buffer_disown(a);
    buffer_disown(b);
    assert_int_equal(rig.driver.frees, 0);
    rig_close(&rig);
}

/* What had the memory before does not count: nobody has written to a new buffer. */
static void test_new_buffers_are_not_written(void **state)
{
    struct rig rig = {0};
    struct buffer *a, *again;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 100);
    atomic_store(&a->last_write, 7);
    buffer_disown(a);
    again = get(&rig, 100);
    assert_ptr_equal(again, a); /* the same one, from the shelf */
    assert_int_equal(atomic_load(&again->last_write), 0);
    buffer_disown(again);
    rig_close(&rig);
}

static void test_pins_keep_what_owners_left(void **state)
{
    struct memory_stats stats;
    struct rig rig = {0};
    struct buffer *a;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 100);
    buffer_own(a);
    assert_int_equal(buffer_owners(a), 2);
    buffer_pin(a);
    buffer_disown(a);
    buffer_disown(a);
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.buffers_now, 1);
    buffer_unpin(a);
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
    rig_close(&rig);
}

static void test_no_suballoc_is_one_block_each(void **state)
{
    struct rig rig = {.info.caps = FRIT_CAP_NO_SUBALLOC};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 1000);
    b = get(&rig, 1000);
    assert_ptr_not_equal(a->handle, b->handle);
    assert_int_equal(a->offset, 0);
    buffer_disown(a);
    a = get(&rig, 1000);
    assert_int_equal(rig.driver.allocs, 2);
    buffer_disown(a);
    buffer_disown(b);
    rig_close(&rig);
}

static void test_out_of_memory_trims_once_and_retries_once(void **state)
{
    struct rig rig = {.driver.room = 3 << 20};
    struct memory_stats stats;
    struct buffer *a, *b;
    frit_err err = ERR_INIT;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 2 << 20);
    buffer_disown(a); /* idle, but still with the pool */
    a = get(&rig, (5 << 20) / 2);
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.trims, 1);
    assert_int_equal(stats.alloc_retries, 1);
    assert_int_equal(rig.driver.allocs, 3);
    assert_int_equal(rig.driver.cleanups, 1);
    assert_int_equal(rig.driver.idles, 1);
    assert_int_equal(stats.reserved_peak, 5 << 19);

    assert_int_equal(buffer_create(rig.memory, 2 << 20, false, &b, &err), FRIT_NO_DEVICE_MEMORY);
    assert_null(b);
    assert_string_equal(err.text, "full");
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.trims, 2);
    assert_int_equal(rig.driver.allocs, 5);
    assert_int_equal(stats.buffers_now, 1);
    buffer_disown(a);
    rig_close(&rig);
}

static void test_persistent_memory_survives_trims(void **state)
{
    struct rig rig = {.driver.room = 1 << 20};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    assert_int_equal(buffer_create(rig.memory, 5000, true, &a, NULL), FRIT_OK);
    assert_int_equal(rig.driver.largest, 5056); /* its own size, aligned; no pool block */
    buffer_disown(a);
    memory_trim(rig.memory, false);
    assert_int_equal(buffer_create(rig.memory, 1 << 20, false, &b, NULL), FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(rig.driver.frees, 0);
    assert_int_equal(buffer_create(rig.memory, 5000, true, &a, NULL), FRIT_OK);
    assert_int_equal(rig.driver.allocs, 3); /* one, and two that failed */
    buffer_disown(a);
    rig_close(&rig);
}

static void test_idle_memory_over_the_limit_goes_back(void **state)
{
    struct rig rig = {.limits = {1 << 20, 1 << 20}};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 3 << 20);
    b = get(&rig, 100);
    buffer_disown(a);
    assert_int_equal(rig.driver.frees, 1);
    buffer_disown(b);
    assert_int_equal(rig.driver.frees, 1);
    rig_close(&rig);
}

/* Kept persistent blocks leave the pools what they may keep. */
static void test_persistent_memory_is_not_counted_as_idle(void **state)
{
    struct rig rig = {.limits = {1 << 20, 1 << 20}};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    assert_int_equal(buffer_create(rig.memory, 3 << 20, true, &a, NULL), FRIT_OK);
    assert_true(buffer_is_persistent(a));
    b = get(&rig, 100);
    assert_false(buffer_is_persistent(b));
    buffer_disown(a);
    buffer_disown(b);
    assert_int_equal(rig.driver.frees, 0);
    rig_close(&rig);
}

/* Sizes that the device rounds up find their block again. */
static void test_coarse_blocks_are_found_again(void **state)
{
    struct rig rig = {.info = {.caps = FRIT_CAP_NO_SUBALLOC, .heap.granularity = 64 << 10}};
    struct buffer *a;

    (void)state;
    rig_open(&rig);
    for (int round = 0; round < 2; round++) {
        a = get(&rig, 100);
        buffer_disown(a);
        assert_int_equal(buffer_create(rig.memory, 100, true, &a, NULL), FRIT_OK);
        buffer_disown(a);
    }
    assert_int_equal(rig.driver.allocs, 2);
    assert_int_equal(rig.driver.largest, 64 << 10);
    rig_close(&rig);
}

static void test_tail_lies_in_the_buffer(void **state)
{
    struct rig rig = {.info = {.tail_bytes = 256, .align_bytes = 128}};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 100);
    b = get(&rig, 100);
    assert_int_equal(a->tail, 256);
    assert_int_equal(b->offset % 128, 0);
    assert_true(b->offset >= a->offset + 100 + 256);
    buffer_disown(a);
    buffer_disown(b);
    rig_close(&rig);
}

static void test_empty_buffers_have_no_memory(void **state)
{
    struct rig rig = {0};
    struct buffer *a;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 0);
    assert_null(a->handle);
    assert_int_equal(rig.driver.allocs, 0);
    buffer_disown(a);
    rig_close(&rig);
}

static void test_block_bytes_fit_the_device(void **state)
{
    frit_device_info info = {.heap = {.bytes = 8 << 20}};

    (void)state;
    assert_int_equal(memory_block_bytes(&info, 32 << 20), 1 << 20);
    info.heap.budget = 4 << 20;
    assert_int_equal(memory_block_bytes(&info, 32 << 20), 512 << 10);
    info.heap.max_block = 1000;
    assert_int_equal(memory_block_bytes(&info, 32 << 20), 1000);
    info.heap = (frit_heap){.max_block = 1000, .granularity = 300};
    assert_int_equal(memory_block_bytes(&info, 32 << 20), 900);
    assert_int_equal(memory_block_bytes(&info, 100), 300);
    info.heap = (frit_heap){0};
    assert_int_equal(memory_block_bytes(&info, 32 << 20), 32 << 20);
}

static void test_too_large_for_the_device(void **state)
{
    struct rig rig = {.info.heap.max_block = 1 << 20};
    struct buffer *a;
    frit_err err = ERR_INIT;

    (void)state;
    rig_open(&rig);
    assert_int_equal(buffer_create(rig.memory, 2 << 20, false, &a, &err), FRIT_NO_DEVICE_MEMORY);
    assert_non_null(strstr(err.text, "more than the device allocates in one piece (1048576)"));
    assert_int_equal(buffer_create(rig.memory, UINT64_MAX - 10, false, &a, &err),
                     FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(rig.driver.allocs, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_buffers_share_a_block),
        cmocka_unit_test(test_new_buffers_are_not_written),
        cmocka_unit_test(test_pins_keep_what_owners_left),
        cmocka_unit_test(test_no_suballoc_is_one_block_each),
        cmocka_unit_test(test_out_of_memory_trims_once_and_retries_once),
        cmocka_unit_test(test_persistent_memory_survives_trims),
        cmocka_unit_test(test_idle_memory_over_the_limit_goes_back),
        cmocka_unit_test(test_persistent_memory_is_not_counted_as_idle),
        cmocka_unit_test(test_coarse_blocks_are_found_again),
        cmocka_unit_test(test_tail_lies_in_the_buffer),
        cmocka_unit_test(test_empty_buffers_have_no_memory),
        cmocka_unit_test(test_block_bytes_fit_the_device),
        cmocka_unit_test(test_too_large_for_the_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
