/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers over a scripted driver that counts its calls, has as much memory as a test says, and a
 * queue whose timeline the test moves. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "memory/adopted.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "memory/point.h"

struct driver {
    uint64_t capacity, used;
    uint32_t allocs, frees, cleanups;
    uint64_t largest;
    uint64_t submitted, reached; /* of the timeline */
    uint32_t queries, waits;
    uint64_t budget;           /* 0: none */
    frit_import_desc imported; /* the last one */
    bool refuses;              /* to import */
};

struct frit_memory {
    struct driver *driver;
    uint64_t bytes;
    uint64_t used_at; /* by a command of this timeline value */
};

static frit_status driver_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    struct driver *driver = self;
    frit_memory *allocation;

    driver->allocs++;
    if (desc->bytes > driver->capacity - driver->used)
        return fail(err, FRIT_NO_DEVICE_MEMORY, "full");
    allocation = malloc(sizeof(*allocation));
    *allocation = (frit_memory){driver, desc->bytes, 0};
    driver->used += desc->bytes;
    if (desc->bytes > driver->largest)
        driver->largest = desc->bytes;
    out->memory = allocation;
    return FRIT_OK;
}

static frit_status driver_import(void *self, const frit_import_desc *desc, frit_allocation *out,
                                 frit_err *err)
{
    struct driver *driver = self;
    frit_memory *allocation;

    driver->imported = *desc;
    if (driver->refuses)
        return fail(err, FRIT_UNSUPPORTED, "not this");
    allocation = malloc(sizeof(*allocation));
    *allocation = (frit_memory){driver, 0, driver->submitted};
    out->memory = allocation;
    return FRIT_OK;
}

static void driver_free(void *self, frit_memory *memory)
{
    struct driver *driver = self;

    assert_true(driver->reached >= memory->used_at);
    driver->frees++;
    driver->used -= memory->bytes;
    free(memory);
}

static void driver_cleanup(void *self)
{
    ((struct driver *)self)->cleanups++;
}

static uint64_t driver_budget(void *self, uint32_t heap)
{
    assert_int_equal(heap, 0);
    return ((struct driver *)self)->budget;
}

static void queue_submitted(void *ctx, struct points *out)
{
    *out = (struct points){{((struct driver *)ctx)->submitted}};
}

static bool queue_is_done(void *ctx, const struct points *points, enum memory_progress how)
{
    struct driver *driver = ctx;
    uint64_t value = points->at[0];

    driver->queries += how == PROGRESS_QUERY;
    if (how == PROGRESS_WAIT && driver->reached < value) {
        driver->waits++;
        driver->reached = value;
    }
    return driver->reached >= value;
}

static void queue_explain(void *ctx, frit_err *err)
{
    (void)ctx;
    fail_append(err, ", as expected");
}

static const frit_backend backend = {.alloc = driver_alloc,
                                     .free = driver_free,
                                     .memory_cleanup = driver_cleanup,
                                     .heap_budget = driver_budget,
                                     .import_host = driver_import};

/* A memory over a driver, and what the tests vary. */
struct rig {
    struct driver driver;
    frit_device_info info;
    frit_heap heap;
    struct memory_limits limits;
    struct memory *memory;
};

static void rig_open(struct rig *rig)
{
    rig->info.n_heaps = 1;
    rig->info.heap_stride = sizeof(rig->heap);
    rig->info.heaps = &rig->heap;
    if (!rig->driver.capacity)
        rig->driver.capacity = UINT64_MAX / 2;
    if (!rig->limits.chunk_bytes)
        rig->limits = (struct memory_limits){1 << 20, 64 << 20};
    assert_int_equal(
        memory_create(&backend, &rig->info, &rig->driver, &rig->limits, &rig->memory, NULL),
        FRIT_OK);
    memory_set_queue(rig->memory, &(struct memory_queue){1, queue_submitted, queue_is_done,
                                                         queue_explain, NULL, &rig->driver});
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

/* A command that uses the buffer is submitted. */
static void use(struct rig *rig, struct buffer *buffer)
{
    ((struct frit_memory *)buffer->handle)->used_at = ++rig->driver.submitted;
}

static void test_small_buffers_share_a_chunk(void **state)
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

static void test_no_suballoc_is_one_chunk_each(void **state)
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
    struct rig rig = {.driver.capacity = 3 << 20};
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
    assert_int_equal(rig.driver.waits, 0); /* nothing was pending */
    assert_int_equal(stats.reserved_peak, 5 << 19);

    assert_int_equal(buffer_create(rig.memory, 2 << 20, false, &b, &err), FRIT_NO_DEVICE_MEMORY);
    assert_null(b);
    assert_string_equal(err.text, "full, as expected");
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.trims, 2);
    assert_int_equal(rig.driver.allocs, 5);
    assert_int_equal(stats.buffers_now, 1);
    buffer_disown(a);
    rig_close(&rig);
}

static void test_persistent_memory_survives_trims(void **state)
{
    struct rig rig = {.driver.capacity = 1 << 20};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    assert_int_equal(buffer_create(rig.memory, 5000, true, &a, NULL), FRIT_OK);
    assert_int_equal(rig.driver.largest, 5056); /* its own size, aligned; no pool chunk */
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

/* Ten results of 256 MiB a step on a device of 8 GiB: the second step allocates nothing. */
static void test_what_fits_a_share_of_the_budget_is_kept(void **state)
{
    struct rig rig = {.info = {.type = FRIT_DEVICE_DISCRETE, .heaps = &rig.heap},
                      .heap.bytes = (uint64_t)8 << 30};
    struct buffer *results[10];

    (void)state;
    rig.limits = (struct memory_limits){32 << 20, memory_keep_bytes(&rig.info)};
    rig_open(&rig);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 10; i++) {
            results[i] = get(&rig, 256 << 20);
            use(&rig, results[i]);
        }
        rig.driver.reached = rig.driver.submitted;
        for (int i = 0; i < 10; i++)
            buffer_disown(results[i]);
    }
    assert_int_equal(rig.driver.allocs, 10);
    assert_int_equal(rig.driver.frees, 0);
    assert_int_equal(rig.driver.waits + rig.driver.queries, 0);
    rig_close(&rig);
}

static void test_the_share_depends_on_whose_memory_it_is(void **state)
{
    frit_heap heap = {.bytes = 64 << 20};
    frit_device_info info = {.type = FRIT_DEVICE_DISCRETE, .n_heaps = 1, .heaps = &heap};

    (void)state;
    assert_int_equal(memory_keep_bytes(&info), 32 << 20);
    heap.budget = 32 << 20;
    assert_int_equal(memory_keep_bytes(&info), 16 << 20);
    info.type = FRIT_DEVICE_PROCESSOR;
    assert_int_equal(memory_keep_bytes(&info), 8 << 20);
    heap = (frit_heap){0};
    assert_int_equal(memory_keep_bytes(&info), 1 << 30);
}

/* A release waits for nobody: what pending commands use goes back when they are done. */
static void test_surplus_goes_back_when_its_commands_are_done(void **state)
{
    struct rig rig = {.limits = {1 << 20, 1 << 20}};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 3 << 20);
    b = get(&rig, 3 << 20);
    use(&rig, a);
    buffer_disown(a);
    use(&rig, b);
    buffer_disown(b);
    assert_int_equal(rig.driver.frees, 0);
    memory_poll(rig.memory, PROGRESS_QUERY);
    assert_int_equal(rig.driver.frees, 0);
    rig.driver.reached = 1;
    memory_poll(rig.memory, PROGRESS_QUERY);
    assert_int_equal(rig.driver.frees, 1); /* a's; the command that uses b is pending */
    rig.driver.reached = 2;
    memory_poll(rig.memory, PROGRESS_KNOWN);
    assert_int_equal(rig.driver.frees, 2);
    rig.driver.queries = 0;
    memory_poll(rig.memory, PROGRESS_QUERY);
    assert_int_equal(rig.driver.queries + rig.driver.waits, 0); /* no surplus: no query */
    rig_close(&rig);
}

/* The order of the queue keeps its old commands from meeting its new ones. */
static void test_pending_surplus_serves_new_buffers(void **state)
{
    struct rig rig = {.limits = {1 << 20, 0}};
    struct buffer *a;
    void *handle;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 3 << 20);
    handle = a->handle;
    use(&rig, a);
    buffer_disown(a);
    a = get(&rig, 3 << 20);
    assert_ptr_equal(a->handle, handle);
    use(&rig, a);
    rig.driver.reached = 1;
    memory_poll(rig.memory, PROGRESS_QUERY);
    buffer_disown(a);
    memory_poll(rig.memory, PROGRESS_QUERY);
    assert_int_equal(rig.driver.frees, 0); /* its second command is pending */
    assert_int_equal(rig.driver.allocs, 1);
    assert_int_equal(rig.driver.waits, 0);
    rig_close(&rig);
}

static void test_no_memory_waits_for_pending_commands(void **state)
{
    struct rig rig = {.driver.capacity = 4 << 20};
    struct buffer *a;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 3 << 20);
    use(&rig, a);
    buffer_disown(a);
    a = get(&rig, 4 << 20); /* a whole chunk of another size */
    assert_int_equal(rig.driver.waits, 1);
    assert_int_equal(rig.driver.frees, 1);
    buffer_disown(a);
    rig_close(&rig);
}

/* Others want the device's memory: what is kept without buffers goes back first. */
static void test_idle_memory_goes_before_the_budget_is_exceeded(void **state)
{
    struct rig rig = {.driver.budget = 8 << 20};
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 3 << 20);
    b = get(&rig, 4 << 20);
    assert_int_equal(rig.driver.frees, 0);
    buffer_disown(a);
    a = get(&rig, 5 << 20);
    assert_int_equal(rig.driver.frees, 1);
    assert_int_equal(rig.driver.used, 9 << 20); /* more than that there is not to give back */
    rig.driver.budget = 64 << 20;
    buffer_disown(b);
    b = get(&rig, 6 << 20);
    assert_int_equal(rig.driver.frees, 1);
    buffer_disown(a);
    buffer_disown(b);
    rig_close(&rig);
}

/* How many buffers of a size a device of 50 MB holds. */
static uint32_t count_fitting(uint64_t bytes)
{
    struct rig rig = {.driver.capacity = 50000000, .heap.bytes = 50000000, .info.heaps = &rig.heap};
    struct buffer *held[1024];
    uint32_t n = 0;

    rig.limits.chunk_bytes = memory_chunk_bytes(&rig.info, 32 << 20) / 64 * 64;
    rig_open(&rig);
    while (n < 1024 && !buffer_create(rig.memory, bytes, false, &held[n], NULL))
        n++;
    for (uint32_t i = 0; i < n; i++)
        buffer_disown(held[i]);
    rig_close(&rig);
    return n;
}

static void test_a_small_heap_can_be_filled(void **state)
{
    (void)state;
    assert_int_equal(count_fitting(4000000), 12);
    assert_int_equal(count_fitting(2100032), 23);
    assert_true(count_fitting(1000000) >= 48);
    assert_true(count_fitting(600000) >= 80);
    assert_true(count_fitting(64000) >= 775);
}

/* What is left of a heap serves small buffers although no whole chunk fits. */
static void test_the_rest_of_a_heap_is_used(void **state)
{
    struct rig rig = {.driver.capacity = (1 << 20) + 200000};
    struct memory_stats stats;
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = get(&rig, 1 << 20);
    b = get(&rig, 150000);
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.trims, 0);
    buffer_disown(a);
    buffer_disown(b);
    rig_close(&rig);
}

/* Kept persistent chunks leave the pools what they may keep. */
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

/* Sizes that the device rounds up find their chunk again. */
static void test_coarse_chunks_are_found_again(void **state)
{
    struct rig rig = {.info.caps = FRIT_CAP_NO_SUBALLOC, .heap.granularity = 64 << 10};
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

static void test_chunk_bytes_fit_the_device(void **state)
{
    frit_heap heap = {.bytes = 8 << 20};
    frit_device_info info = {.n_heaps = 1, .heaps = &heap};

    (void)state;
    assert_int_equal(memory_chunk_bytes(&info, 32 << 20), 1 << 20);
    heap.budget = 4 << 20;
    assert_int_equal(memory_chunk_bytes(&info, 32 << 20), 512 << 10);
    heap.max_block = 1000;
    assert_int_equal(memory_chunk_bytes(&info, 32 << 20), 1000);
    heap = (frit_heap){.max_block = 1000, .granularity = 300};
    assert_int_equal(memory_chunk_bytes(&info, 32 << 20), 900);
    assert_int_equal(memory_chunk_bytes(&info, 100), 300);
    heap = (frit_heap){0};
    assert_int_equal(memory_chunk_bytes(&info, 32 << 20), 32 << 20);
}

static void test_too_large_for_the_device(void **state)
{
    struct rig rig = {.heap.max_block = 1 << 20};
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

/* ---- memory of the program ---- */

static _Alignas(64) char lent[256];

static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

static struct buffer *adopt(struct rig *rig, int *released)
{
    const struct lent_bytes bytes = {
        .data = lent, .bytes = sizeof(lent), .release = count_release, .ctx = released};
    struct buffer *buffer = NULL;

    assert_int_equal(buffer_adopt(rig->memory, &bytes, &buffer, NULL), FRIT_OK);
    return buffer;
}

static void test_lent_memory_is_the_programs(void **state)
{
    struct rig rig = {0};
    struct buffer *buffer, *part;
    struct memory_stats stats;
    int released = 0;

    (void)state;
    rig_open(&rig);
    buffer = adopt(&rig, &released);
    assert_ptr_equal(rig.driver.imported.data, lent);
    assert_int_equal(rig.driver.imported.bytes, sizeof(lent));
    assert_int_equal(rig.driver.allocs, 0);
    assert_int_equal(buffer->tail, 0);
    assert_true(buffer_owners(buffer) > 1); /* nobody writes it */
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.buffers_now, 1);
    assert_int_equal(stats.bytes_now, 0);
    assert_int_equal(stats.adopted_now, sizeof(lent));
    assert_int_equal(buffer_part(buffer, 64, 64, &part, NULL), FRIT_OK);
    buffer_disown(buffer);
    assert_int_equal(released, 0);
    buffer_pin(part);
    buffer_disown(part);
    assert_int_equal(released, 0);
    buffer_unpin(part);
    assert_int_equal(released, 1);
    memory_stats(rig.memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(stats.adopted_now, 0);
    assert_int_equal(stats.adopted, sizeof(lent));
    rig_close(&rig);
    assert_int_equal(released, 1);
}

static void test_lent_memory_waits_for_its_commands(void **state)
{
    struct rig rig = {0};
    int first = 0, second = 0;
    struct buffer *a, *b;

    (void)state;
    rig_open(&rig);
    a = adopt(&rig, &first);
    b = adopt(&rig, &second);
    rig.driver.submitted = 3;
    buffer_disown(a);
    rig.driver.submitted = 5;
    buffer_disown(b);
    assert_int_equal(first + second, 0);
    rig.driver.reached = 3;
    memory_poll(rig.memory, PROGRESS_KNOWN);
    assert_int_equal(first, 1);
    assert_int_equal(second, 0);
    rig.driver.reached = 5;
    memory_poll(rig.memory, PROGRESS_QUERY);
    assert_int_equal(second, 1);
    a = adopt(&rig, &first);
    rig.driver.submitted = 9;
    buffer_disown(a);
    assert_int_equal(first, 1);
    rig_close(&rig); /* waits */
    assert_int_equal(first, 2);
    assert_int_equal(rig.driver.waits, 1);
}

static void test_what_cannot_be_adopted(void **state)
{
    struct rig rig = {.info.align_bytes = 64};
    int released = 0;
    struct lent_bytes bytes = {
        .data = lent + 4, .bytes = 128, .release = count_release, .ctx = &released};
    struct buffer *buffer;

    (void)state;
    rig_open(&rig);
    assert_int_equal(buffer_adopt(rig.memory, &bytes, &buffer, NULL), FRIT_UNSUPPORTED);
    assert_null(buffer);
    assert_int_equal(rig.driver.imported.bytes, 0); /* the driver sees only what is aligned */
    bytes.data = lent;
    rig.driver.refuses = true;
    assert_int_equal(buffer_adopt(rig.memory, &bytes, &buffer, NULL), FRIT_UNSUPPORTED);
    assert_int_equal(rig.driver.imported.bytes, 128);
    assert_int_equal(released, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_buffers_share_a_chunk),
        cmocka_unit_test(test_new_buffers_are_not_written),
        cmocka_unit_test(test_pins_keep_what_owners_left),
        cmocka_unit_test(test_no_suballoc_is_one_chunk_each),
        cmocka_unit_test(test_out_of_memory_trims_once_and_retries_once),
        cmocka_unit_test(test_persistent_memory_survives_trims),
        cmocka_unit_test(test_idle_memory_over_the_limit_goes_back),
        cmocka_unit_test(test_what_fits_a_share_of_the_budget_is_kept),
        cmocka_unit_test(test_the_share_depends_on_whose_memory_it_is),
        cmocka_unit_test(test_surplus_goes_back_when_its_commands_are_done),
        cmocka_unit_test(test_pending_surplus_serves_new_buffers),
        cmocka_unit_test(test_no_memory_waits_for_pending_commands),
        cmocka_unit_test(test_idle_memory_goes_before_the_budget_is_exceeded),
        cmocka_unit_test(test_a_small_heap_can_be_filled),
        cmocka_unit_test(test_the_rest_of_a_heap_is_used),
        cmocka_unit_test(test_persistent_memory_is_not_counted_as_idle),
        cmocka_unit_test(test_coarse_chunks_are_found_again),
        cmocka_unit_test(test_tail_lies_in_the_buffer),
        cmocka_unit_test(test_empty_buffers_have_no_memory),
        cmocka_unit_test(test_chunk_bytes_fit_the_device),
        cmocka_unit_test(test_too_large_for_the_device),
        cmocka_unit_test(test_lent_memory_is_the_programs),
        cmocka_unit_test(test_lent_memory_waits_for_its_commands),
        cmocka_unit_test(test_what_cannot_be_adopted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
