/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that run again as they ran before: what must be the same for it, and that giving up half
 * way, or for want of memory, leaves right values. */
#include "run/driver.h"

#include <pthread.h>
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "device/queue.h"
#include "failing_alloc.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/binding.h"
#include "run/bound_plan.h"
#include "run/drain.h"
#include "run/fuser.h"

enum { N = 6, ROUNDS = 4 };

static const float six[N] = {1, 2, 3, 4, 5, 6};

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), six, sizeof(six));
}

/* Elements are factor * six + more; the tensor is released. */
static void expect(frit_tensor *tensor, float factor, float more)
{
    float out[N];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == factor * six[i] + more);
}

static void expect_no_buffers(frit_device *device)
{
    struct memory_stats stats;

    memory_stats(device->memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(stats.bytes_now, 0);
}

static uint64_t plays(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.replays);
}

/* y = 1 - x as one plan of two launches. */
static frit_tensor *one_minus(frit_device *device, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_keep(frit_add_f(frit_neg(x), 1));

    frit_scope_end(scope);
    return y;
}

static uint64_t memory_allocs(frit_device *device)
{
    struct memory_stats stats;

    memory_stats(device->memory, &stats);
    return stats.driver_allocs;
}

/* ---- operands that are overwritten ---- */

/* A run of two submits is replayed as one, since nobody could undo the first if the second were
 * refused; when that one is refused, nothing has happened. */
static void test_what_overwrites_operands_is_one_submit(void **state)
{
    struct driver driver = {.alias = 1, .inline_queue = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(device);
        uint64_t submits = device_submits(device);

        if (i == ROUNDS - 1)
            driver.submit_status = FRIT_NO_DEVICE_MEMORY;
        expect(one_minus(device, frit_take(x)), -1, 1);
        assert_int_equal(device_submits(device) - submits, i == 0 || i == ROUNDS - 1 ? 2 : 1);
    }
    assert_int_equal(driver.submit_status, FRIT_OK);
    assert_int_equal(plays(device), ROUNDS - 2);
    device_close(device);
}

/* In one submit it is: a refusal changed nothing. */
static void test_a_refused_play_changes_nothing(void **state)
{
    struct driver driver = {.alias = 1, .workspace = 100, .workspace_dirty = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        frit_tensor *x = make(device);

        driver.submit_status = i == ROUNDS ? FRIT_NO_DEVICE_MEMORY : FRIT_OK;
        assert_int_equal(plays(device), i == 0 ? 0 : i - 1 - (i > ROUNDS));
        expect(one_minus(device, frit_take(x)), -1, 1);
        expect_no_buffers(device);
    }
    device_close(device);
}

static struct buffer *buffer_of(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);
    struct buffer *buffer;

    assert_non_null(slot);
    buffer = slot->value.buffer;
    slot_leave(slot);
    return buffer;
}

/* A copy of it is under way: what overwrote it each time does not now. */
static void test_a_pinned_operand_is_not_overwritten(void **state)
{
    struct driver driver = {.alias = 1};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(device), *y;
        struct buffer *buffer = buffer_of(x);
        bool pinned = i == ROUNDS - 1;

        if (pinned)
            buffer_pin(buffer);
        y = one_minus(device, frit_take(x));
        assert_int_equal(buffer == buffer_of(y), !pinned);
        if (pinned) {
            assert_memory_equal((char *)buffer->handle + buffer->offset, six, sizeof(six));
            buffer_unpin(buffer);
        }
        expect(y, -1, 1);
    }
    assert_int_equal(plays(device), ROUNDS - 2);
    device_close(device);
}

/* Nor is one whose memory a view has. */
static void test_a_viewed_operand_is_not_overwritten(void **state)
{
    struct driver driver = {.alias = 1};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(device), *view = NULL;

        if (i == ROUNDS - 1) {
            view = frit_reshape(x, FRIT_SHAPE(N));
            assert_int_equal(frit_sync(device, NULL), FRIT_OK);
        }
        expect(one_minus(device, frit_take(x)), -1, 1);
        if (view)
            expect(view, 1, 0);
    }
    assert_int_equal(plays(device), ROUNDS - 2);
    device_close(device);
}

/* ---- memory that serves twice ---- */

enum { SIDE = 192 };

static frit_tensor *make_large(frit_device *device, const float *data)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(SIDE, SIDE), data,
                          SIDE * SIDE * sizeof(*data));
}

/* What a chain of five negations and four additions of 1 makes; the permutations cancel out. */
static const float *expected_large(const float *data)
{
    static float out[SIDE * SIDE];

    for (int i = 0; i < SIDE * SIDE; i++)
        out[i] = -data[i];
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < SIDE * SIDE; i++)
            out[i] = -(out[i] + 1);
    }
    return out;
}

/* A chain of launches whose intermediate values die one after the other: transposed where `turned`,
 * so that a driver that wants dense operands has them copied. */
static frit_tensor *large_chain(frit_tensor *x, bool turned)
{
    for (int i = 0; i < 4; i++) {
        x = frit_add_f(frit_take(x), 1);
        if (turned)
            x = frit_permute(frit_take(x), FRIT_AXES(1, 0));
        x = frit_neg(frit_take(x));
    }
    return x;
}

/* Commands between BARRIERs run last first, so that a BARRIER that is missing shows. */
static void replay_large_chain(struct driver *driver, bool turned)
{
    static float data[SIDE * SIDE], out[SIDE * SIDE];
    frit_device *device;
    frit_tensor *x;

    driver->reverse = true;
    device = driver_device(driver, 1000);
    for (int i = 0; i < SIDE * SIDE; i++)
        data[i] = (float)(i % 1000);
    x = make_large(device, data);
    for (int round = 0; round < ROUNDS; round++) {
        frit_scope scope = frit_scope_begin(device);
        frit_tensor *y = frit_keep(large_chain(frit_neg(x), turned));
        uint64_t allocs = memory_allocs(device);

        frit_scope_end(scope);
        assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
        assert_memory_equal(out, expected_large(data), sizeof(out));
        assert_true(round < 2 || memory_allocs(device) == allocs);
    }
    assert_int_equal(plays(device), ROUNDS - 1);
    frit_release(x);
    device_close(device);
}

static void test_memory_is_used_twice_in_a_submit(void **state)
{
    struct driver driver = {0};

    (void)state;
    replay_large_chain(&driver, false);
}

static void test_memory_is_used_twice_by_workspaces(void **state)
{
    struct driver driver = {.workspace = SIDE * SIDE * sizeof(float)};

    (void)state;
    replay_large_chain(&driver, false);
    assert_true(driver.workspace_was_zero);
}

static void test_derived_memory(void **state)
{
    struct driver driver = {.derived = SIDE * SIDE * sizeof(float), .n_derived = 2};

    (void)state;
    replay_large_chain(&driver, false);
}

static void test_operands_are_copied(void **state)
{
    struct driver driver = {.wants_dense = true};

    (void)state;
    replay_large_chain(&driver, true);
}

/* Bound plans count in the device's cache, and leave it when it is full. */
static void test_bound_plans_are_bounded(void **state)
{
    enum { SHAPES = 50 };
    static const float data[SHAPES];
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 1000);
    uint64_t before;

    (void)state;
    expect(one_minus(device, make(device)), -1, 1);
    before = atomic_load(&device->cache.bytes);
    assert_true(before > sizeof(struct bound_plan));
    device->cache.budget = 2 * before;
    for (int64_t n = 1; n <= SHAPES; n++) {
        frit_tensor *x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * 4);

        frit_release(one_minus(device, frit_take(x)));
        assert_true(atomic_load(&device->cache.bytes) <= 4 * before);
    }
    device_close(device);
}

static void test_many_submits(void **state)
{
    struct driver driver = {.inline_queue = true, .wants_dense = true};

    (void)state;
    replay_large_chain(&driver, true);
}

/* ---- where operands lie ---- */

/* At the start of a chunk and elsewhere, by turns: bound once. */
static void test_places_in_a_chunk_are_alike(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x[2];

    (void)state;
    x[1] = make(device); /* begins the first chunk of all */
    x[0] = make(device);
    assert_int_equal(buffer_of(x[1])->offset, 0);
    for (int i = 0; i < 2 * ROUNDS; i++)
        expect(one_minus(device, x[i % 2]), -1, 1);
    assert_int_equal(plays(device), 2 * ROUNDS - 1);
    frit_release(x[0]), frit_release(x[1]);
    device_close(device);
}

/* A part of a tensor has no room after it, though it looks like a whole one. */
static void test_parts_and_wholes(void **state)
{
    static const float more[2 * N] = {1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7};
    struct driver driver = {.info.tail_bytes = 64};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *first = make(device); /* lies at the start of the block */
    frit_tensor *wide = frit_from_host(device, FRIT_F32, FRIT_SHAPE(2 * N), more, sizeof(more));
    frit_tensor *x[2] = {make(device), frit_slice(wide, FRIT_SLICES({0, N, 1}))};

    (void)state;
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        expect(frit_neg(x[i / 2 % 2]), -1, 0);
        assert_int_equal(driver.last_tail, i / 2 % 2 ? 0 : 64);
    }
    assert_true(plays(device) > 0);
    frit_release(x[0]), frit_release(x[1]), frit_release(wide), frit_release(first);
    device_close(device);
}

/* ---- wishes ---- */

static void *release_it(void *arg)
{
    frit_release(arg);
    return NULL;
}

/* A value that another thread gave up is not in the key: the bound that does without it is not for
 * who wants it. */
static void test_what_is_wanted(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);

    (void)state;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(device);
        frit_tensor *y = frit_keep(frit_neg(x)), *z = frit_keep(frit_add_f(x, 1));
        bool wanted = i / ROUNDS % 2;
        uint32_t launches = driver.launches;
        pthread_t thread;

        if (!wanted) {
            assert_int_equal(pthread_create(&thread, NULL, release_it, y), 0);
            pthread_join(thread, NULL);
        }
        frit_scope_end(scope);
        expect(z, 1, 1);
        if (wanted)
            expect(y, -1, 0);
        assert_int_equal(driver.launches - launches, wanted ? 2 : 1);
    }
    assert_int_equal(plays(device), 4 * ROUNDS - 2);
    frit_release(x);
    device_close(device);
}

/* A fault of ours that leaves a value without anybody who makes it is an error, and no wait. */
static void test_what_nobody_makes(void **state)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    struct binding *binding;
    struct slot *slot;
    frit_tensor *x;
    float out[N];

    (void)state;
    assert_int_equal(binding_current(device, &binding, NULL), FRIT_OK);
    home_enter(&binding->stream->home);
    slot = slot_create(&binding->stream->home, device);
    slot->value.type = (struct op_type){.dtype = FRIT_F32, .rank = 1, .dims = {N}};
    x = slot_handle(slot);
    home_leave(&binding->stream->home);
    assert_int_equal(frit_read(x, out, sizeof(out), NULL), FRIT_INTERNAL);
    assert_int_equal(frit_tensor_status(x), FRIT_INTERNAL);
    frit_release(x);
    device_close(device);
}

/* ---- out of memory ---- */

/* What a round makes: y = -x, w = (1 - x) * y * 2; x is taken. */
struct round {
    frit_tensor *x, *y, *w;
};

static void record_round(frit_device *device, struct round *r)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *z;

    r->y = frit_neg(frit_take(r->x));
    z = frit_mul(frit_add_f(r->y, 1), r->y);
    r->w = frit_mul_f(z, 2);
    frit_keep(r->y), frit_keep(r->w);
    frit_scope_end(scope);
}

static frit_status read_round(struct round *r)
{
    float y[N], w[N];
    frit_status st = frit_read(r->y, y, sizeof(y), NULL),
                last = frit_read(r->w, w, sizeof(w), NULL);

    for (int i = 0; i < N; i++) {
        assert_true(st || y[i] == -six[i]);
        assert_true(last || w[i] == (six[i] - 1) * six[i] * 2);
    }
    return st ? st : last;
}

static void release_round(frit_device *device, struct round *r)
{
    frit_release(r->y), frit_release(r->w);
    frit_sync(device, NULL); /* the failure was returned before */
    assert_int_equal(streams_tensors(device), 0);
    assert_int_equal(streams_queued(device), 0);
}

/* A round without trouble, which is played. */
static void good_round(frit_device *device)
{
    struct round r = {.x = make(device)};
    uint64_t before = plays(device);

    record_round(device, &r);
    assert_int_equal(read_round(&r), FRIT_OK);
    release_round(device, &r);
    expect_no_buffers(device);
    assert_int_equal(plays(device), before + 1);
}

/* A device that lacks memory, and how its plans run. */
enum { PLAIN, IN_PLACE, SUBMIT_EACH, KINDS };

static void open_tight(struct driver *driver, int kind, frit_device **device)
{
    *driver = (struct driver){.alias = kind == IN_PLACE,
                              .inline_queue = kind == SUBMIT_EACH,
                              .workspace = 100,
                              .workspace_dirty = true};
    *device = driver_device(driver, 100);
    driver->info.caps |= FRIT_CAP_NO_SUBALLOC; /* each buffer is an alloc of its own */
    for (int i = 0; i < ROUNDS; i++) {
        struct round r = {.x = make(*device)};

        record_round(*device, &r);
        assert_int_equal(read_round(&r), FRIT_OK);
        release_round(*device, &r);
    }
}

/* Alloc number n, and those after it that are the engine's further attempts. */
static void test_no_device_memory_in_a_replay(void **state)
{
    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        struct driver driver;
        frit_device *device;
        uint32_t n_failed = 0;
        bool hit = true;

        open_tight(&driver, kind, &device);
        for (uint32_t n = 1; hit; n++) {
            for (uint32_t times = 1; times <= 8; times++) {
                struct round r = {.x = make(device)};
                frit_status st;

                memory_trim(device->memory, true);
                driver.fail_alloc = n;
                driver.fail_allocs = times;
                record_round(device, &r);
                st = read_round(&r);
                hit = driver.fail_alloc <= 1 && driver.fail_allocs < times;
                driver.fail_allocs = 0;
                assert_true(st == FRIT_OK || (hit && times > 1 && st == FRIT_NO_DEVICE_MEMORY));
                n_failed += st != FRIT_OK;
                release_round(device, &r);
                good_round(device);
            }
        }
        assert_true(n_failed > 0);
        device_close(device);
        assert_int_equal(driver.allocated, 0);
    }
}

/* Each allocation of the host, while a plan is played and (`device_too`) while the play is given up
 * because the device had no memory. */
static void lack_host_memory(int kind, bool device_too)
{
    struct driver driver;
    frit_device *device;
    bool hit = true;

    open_tight(&driver, kind, &device);
    for (long n = 0; hit; n++) {
        struct round r = {.x = make(device)};
        frit_status st;

        memory_trim(device->memory, true);
        driver.fail_alloc = 1;
        driver.fail_allocs = device_too ? 2 : 0;
        failing_alloc_arm(n);
        record_round(device, &r);
        st = read_round(&r);
        hit = failing_alloc_disarm();
        driver.fail_allocs = 0;
        assert_true(st == FRIT_OK || (hit && st == FRIT_NO_HOST_MEMORY) ||
                    (device_too && st == FRIT_NO_DEVICE_MEMORY));
        release_round(device, &r);
        good_round(device);
    }
    device_close(device);
    assert_int_equal(driver.allocated, 0);
}

static void test_no_host_memory_while_playing(void **state)
{
    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        lack_host_memory(kind, false);
        lack_host_memory(kind, true);
    }
}

/* A block that no candidate takes runs as its ops each time. */
static void test_the_ops_of_a_refused_block(void **state)
{
    struct fusing f = {.driver = {.refuse_blocks = true}};

    (void)state;
    fusing_open(&f);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(f.device);

        expect(one_minus(f.device, x), -1, 1);
        assert_int_equal(plays(f.device), i);
        assert_int_equal(f.driver.launches, 2 * (i + 1));
        frit_release(x);
    }
    assert_int_equal(atomic_load(&f.device->count.fallbacks[FALLBACK_OPS]), 1);
    fusing_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_overwrites_operands_is_one_submit),
        cmocka_unit_test(test_a_refused_play_changes_nothing),
        cmocka_unit_test(test_a_pinned_operand_is_not_overwritten),
        cmocka_unit_test(test_a_viewed_operand_is_not_overwritten),
        cmocka_unit_test(test_memory_is_used_twice_in_a_submit),
        cmocka_unit_test(test_memory_is_used_twice_by_workspaces),
        cmocka_unit_test(test_derived_memory),
        cmocka_unit_test(test_operands_are_copied),
        cmocka_unit_test(test_many_submits),
        cmocka_unit_test(test_bound_plans_are_bounded),
        cmocka_unit_test(test_places_in_a_chunk_are_alike),
        cmocka_unit_test(test_parts_and_wholes),
        cmocka_unit_test(test_the_ops_of_a_refused_block),
        cmocka_unit_test(test_what_is_wanted),
        cmocka_unit_test(test_what_nobody_makes),
        cmocka_unit_test(test_no_device_memory_in_a_replay),
        cmocka_unit_test(test_no_host_memory_while_playing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
