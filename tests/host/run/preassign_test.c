/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are to lie in memory given beforehand: written there by a program, by one for a
 * block, by what runs instead, or copied; and what lies there is not overwritten too early, nor
 * taken by others later. */
#include "run/fuser.h"

#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "device/fallback_kind.h"
#include "failing_alloc.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/preassign.h"

enum { N = 6, BYTES = N * sizeof(float), PLACE = 128, BUCKET = 512 };

struct rig {
    struct fusing f; /* first */
    struct buffer *bucket;
};

static void rig_open(struct rig *rig)
{
    fusing_open(&rig->f);
    assert_int_equal(buffer_create(rig->f.device->memory, BUCKET, false, &rig->bucket, NULL),
                     FRIT_OK);
}

static void rig_close(struct rig *rig)
{
    struct memory_stats stats;

    assert_int_equal(buffer_owners(rig->bucket), 1);
    buffer_disown(rig->bucket);
    memory_stats(rig->f.device->memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
    fusing_close(&rig->f);
}

static frit_tensor *make(struct rig *rig, float value)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = value;
    return frit_from_host(rig->f.device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
}

static void preassign(struct rig *rig, frit_tensor *tensor, uint64_t offset)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (stream_preassign(tensor, rig->bucket, offset, &err))
        fail_msg("%s", err.text);
}

static const float *place(const struct rig *rig, uint64_t offset)
{
    return (const float *)(void *)((char *)rig->bucket->handle + rig->bucket->offset + offset);
}

static void expect_there(const struct rig *rig, uint64_t offset, float value)
{
    for (int i = 0; i < N; i++) {
        if (!(place(rig, offset)[i] == value))
            fail_msg("element %d at %d is %g, not %g", i, (int)offset,
                     (double)place(rig, offset)[i], (double)value);
    }
}

static void expect(frit_tensor *tensor, float value)
{
    float out[N];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == value);
}

static void sync(struct rig *rig)
{
    assert_int_equal(frit_sync(rig->f.device, NULL), FRIT_OK);
}

/* The last launch wrote there itself. */
static void expect_written(const struct rig *rig, uint64_t offset)
{
    const frit_arg *out = &rig->f.driver.last_out;

    assert_ptr_equal((char *)out->memory + out->offset, place(rig, offset));
    assert_true(out->flags & FRIT_ARG_PREASSIGNED);
    assert_int_equal(out->tail, 0);
    assert_int_equal(rig->f.driver.copies, 0);
}

/* ---- who writes ---- */

static void test_an_op_writes_there(void **state)
{
    struct rig rig = {.f.most = 0};
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 2);
    y = frit_floor(x);
    preassign(&rig, y, PLACE);
    assert_int_equal(rig.f.driver.launches, 0);
    sync(&rig);
    expect_there(&rig, PLACE, 2);
    expect_written(&rig, PLACE);
    expect(y, 2);
    frit_release(x);
    rig_close(&rig);
}

static uint64_t replays(const struct rig *rig)
{
    struct stream_counters count;

    streams_sum_counters(rig->f.device, &count);
    return atomic_load(&count.replays);
}

/* Again and again, at one place and at another: the run is bound once. */
static void test_it_is_replayed(void **state)
{
    enum { ROUNDS = 6 };
    struct rig rig = {.f.most = 0};
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t offset = (uint64_t)(1 + i % 3) * PLACE;

        x = make(&rig, (float)i);
        y = frit_floor(x);
        preassign(&rig, y, offset);
        sync(&rig);
        expect_there(&rig, offset, (float)i);
        expect_written(&rig, offset);
        frit_release(x);
        expect(y, (float)i);
    }
    assert_int_equal(replays(&rig), ROUNDS - 1);
    x = make(&rig, 7);
    preassign(&rig, x, PLACE); /* copied there: x itself lies elsewhere */
    frit_release(x);
    rig_close(&rig);
}

/* Released, it is still a value that the block has to store. */
static void test_a_block_writes_there(void **state)
{
    struct rig rig = {.f.most = 0};
    frit_tensor *x, *y, *z;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 2);
    y = frit_add_f(frit_take(frit_neg(x)), 1);
    preassign(&rig, y, PLACE);
    z = frit_mul_f(frit_take(y), 10);
    preassign(&rig, z, 0);
    frit_release(z);
    sync(&rig);
    expect_there(&rig, PLACE, -1);
    expect_there(&rig, 0, -10);
    assert_int_equal(rig.f.driver.launches, 1);
    assert_int_equal(atomic_load(&rig.f.device->count.fused), 1);
    assert_int_equal(rig.f.driver.copies, 0);
    frit_release(x);
    rig_close(&rig);
}

static void test_who_cannot_write_there_gets_a_copy(void **state)
{
    struct rig rig = {.f.driver.refuse_assigned = true};
    frit_tensor *x, *y, *z;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 2);
    y = frit_add_f(frit_take(frit_neg(x)), 1);
    preassign(&rig, y, PLACE);
    sync(&rig);
    expect_there(&rig, PLACE, -1);
    assert_int_equal(rig.f.driver.copies, 1);
    assert_int_equal(rig.f.driver.launches, 1);
    z = frit_floor(x);
    preassign(&rig, z, 0);
    sync(&rig);
    expect_there(&rig, 0, 2);
    assert_int_equal(rig.f.driver.copies, 2);
    expect(y, -1), expect(z, 2);
    frit_release(x);
    rig_close(&rig);
}

/* A program whose output needs more bytes than the elements cannot write to the given memory. */
static void test_strides_and_gaps_are_no_match(void **state)
{
    struct rig rig = {.f.most = 1, .f.driver.out_bytes = 2 * BYTES};
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 2);
    y = frit_neg(x);
    preassign(&rig, y, PLACE);
    sync(&rig);
    expect_there(&rig, PLACE, -2);
    assert_int_equal(rig.f.driver.copies, 1);
    expect(y, -2);
    frit_release(x);
    rig_close(&rig);
}

static void test_what_runs_instead_writes_there(void **state)
{
    struct rig rig = {.f.driver.submit_status = FRIT_INTERNAL};
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 2);
    y = frit_add_f(frit_take(frit_neg(x)), 1);
    preassign(&rig, y, PLACE);
    sync(&rig);
    assert_int_equal(atomic_load(&rig.f.device->count.fallbacks[FALLBACK_OPS]), 1);
    expect_there(&rig, PLACE, -1);
    expect_written(&rig, PLACE);
    expect(y, -1);
    frit_release(x);
    rig_close(&rig);
}

/* A view makes nothing: its elements are copied, in its order. */
static void test_a_view_is_copied(void **state)
{
    const float data[N] = {1, 2, 3, 4, 5, 6};
    struct rig rig = {.f.most = 0};
    frit_tensor *x, *y, *z;
    float out[N];

    (void)state;
    rig_open(&rig);
    x = frit_from_host(rig.f.device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
    y = frit_flip(x, .axes = FRIT_AXES(0));
    preassign(&rig, y, PLACE);
    z = frit_reshape(x, FRIT_SHAPE(2, 3));
    preassign(&rig, z, 0);
    sync(&rig);
    assert_int_equal(rig.f.driver.copies, 2);
    for (int i = 0; i < N; i++) {
        assert_true(place(&rig, PLACE)[i] == data[N - 1 - i]);
        assert_true(place(&rig, 0)[i] == data[i]);
    }
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, place(&rig, PLACE), sizeof(out));
    frit_release(x), frit_release(y), frit_release(z);
    rig_close(&rig);
}

static void test_a_value_that_is_there_is_copied(void **state)
{
    struct rig rig = {.f.most = 0};
    frit_tensor *x;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 3);
    preassign(&rig, x, PLACE);
    expect_there(&rig, PLACE, 3);
    expect(x, 3);
    rig_close(&rig);
}

/* ---- what else lies there ---- */

/* An old value there is read by ops before, by the op that writes over it, and by nobody after. */
static void old_and_new(struct rig *rig, uint32_t copies)
{
    frit_tensor *g, *x, *before, *sum;
    frit_scope scope;

    rig_open(rig);
    x = make(rig, 1);
    g = frit_floor(x);
    preassign(rig, g, PLACE);
    sync(rig);
    for (int i = 0; i < 3; i++) {
        scope = frit_scope_begin(rig->f.device);
        before = frit_keep(frit_floor(g));
        sum = frit_keep(frit_add(frit_take(g), x));
        preassign(rig, sum, PLACE);
        frit_scope_end(scope);
        expect(before, (float)i + 1);
        expect_there(rig, PLACE, (float)i + 2);
        g = sum;
    }
    assert_int_equal(rig->f.driver.copies, copies);
    expect(g, 4);
    frit_release(x);
    rig_close(rig);
}

static void test_sums_in_place(void **state)
{
    struct rig may = {.f.driver.alias = 1}, may_not = {.f.most = 0};

    (void)state;
    old_and_new(&may, 0);
    old_and_new(&may_not, 3);
}

/* The new value is made first and written last: a block that has read the old one comes later. */
static void test_old_readers_come_first(void **state)
{
    struct rig rig = {.f.most = 0};
    frit_tensor *x, *w, *g, *n, *late, *made, *sum;
    frit_scope scope;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 1), w = make(&rig, 10);
    g = frit_floor(x);
    preassign(&rig, g, PLACE);
    sync(&rig);
    scope = frit_scope_begin(rig.f.device);
    n = frit_neg(g);
    made = frit_keep(frit_floor(w));
    preassign(&rig, made, PLACE);
    late = frit_floor(x);
    sum = frit_keep(frit_add(n, late)); /* in a block with neg, which waits for `late` */
    frit_scope_end(scope);
    assert_int_equal(atomic_load(&rig.f.device->count.fused), 1);
    expect(sum, 0);
    expect_there(&rig, PLACE, 10);
    frit_release(x), frit_release(w), frit_release(g), frit_release(made);
    rig_close(&rig);
}

/* The memory is not the tensor's own: no op takes it for its result. */
static void test_nobody_takes_the_memory(void **state)
{
    struct rig rig = {.f.most = 1, .f.driver.alias = 1};
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig);
    x = make(&rig, 2);
    for (int i = 0; i < 4; i++) {
        y = frit_neg(x);
        preassign(&rig, y, PLACE);
        sync(&rig);
        expect(frit_neg(frit_take(y)), 2);
        expect_there(&rig, PLACE, -2);
    }
    y = frit_neg(x);
    preassign(&rig, y, PLACE);
    expect(frit_neg(frit_take(y)), 2);
    expect_there(&rig, PLACE, -2);
    frit_release(x);
    rig_close(&rig);
}

/* ---- when ---- */

/* A plan that has run without assignments is not played as it ran. */
static void test_known_plans_have_their_own(void **state)
{
    struct rig rig = {.f.most = 2};
    frit_tensor *x, *y[4];

    (void)state;
    rig_open(&rig);
    x = make(&rig, 1);
    for (int round = 0; round < 5; round++) {
        memset((char *)rig.bucket->handle + rig.bucket->offset, 0, BUCKET);
        for (int i = 0; i < 4; i++) {
            y[i] = frit_add_f(i ? y[i - 1] : x, round + 1);
            if (round % 2 == 0)
                preassign(&rig, y[i], (uint64_t)i * PLACE);
        }
        sync(&rig);
        for (int i = 0; i < 4; i++)
            frit_release(y[i]);
        for (int i = 0; i < 4; i++)
            expect_there(&rig, (uint64_t)i * PLACE,
                         round % 2 ? 0 : 1 + (float)(i + 1) * (float)(round + 1));
    }
    frit_release(x);
    rig_close(&rig);
}

/* Two blocks are full, and there may be no third: they run, and what made the search stop waits. */
static void test_what_is_left_behind_keeps_its_own(void **state)
{
    struct rig rig = {.f.most = 2};
    frit_tensor *x[3], *a, *b, *c, *d;

    (void)state;
    rig_open(&rig);
    rig.f.device->config.max_blocks = 2;
    for (int i = 0; i < 3; i++)
        x[i] = make(&rig, (float)i + 1);
    a = frit_neg(frit_take(frit_neg(x[0])));
    b = frit_neg(frit_take(frit_neg(x[1])));
    c = frit_neg(x[2]);
    preassign(&rig, c, PLACE);
    assert_int_equal(rig.f.driver.launches, 0);
    d = frit_neg(c);
    assert_true(rig.f.driver.launches > 0);
    sync(&rig);
    expect_there(&rig, PLACE, -3);
    expect(a, 1), expect(b, 2), expect(c, -3), expect(d, 3);
    for (int i = 0; i < 3; i++)
        frit_release(x[i]);
    rig_close(&rig);
}

static void test_a_device_may_end_before(void **state)
{
    struct rig rig = {.f.most = 0};
    frit_tensor *y;

    (void)state;
    rig_open(&rig);
    y = frit_neg(frit_take(make(&rig, 2)));
    preassign(&rig, y, PLACE);
    frit_release(y);
    buffer_disown(rig.bucket);
    fusing_close(&rig.f);
}

/* A failed tensor writes nothing and says why. */
static void test_failures(void **state)
{
    struct rig rig = {.f.driver.refuse_neg = true, .f.most = 1};
    frit_tensor *x, *y;
    float out[N];

    (void)state;
    rig_open(&rig);
    memset((char *)rig.bucket->handle + rig.bucket->offset, 0, BUCKET);
    x = make(&rig, 2);
    y = frit_neg(x);
    preassign(&rig, y, PLACE);
    assert_int_equal(frit_sync(rig.f.device, NULL), FRIT_UNSUPPORTED);
    expect_there(&rig, PLACE, 0);
    assert_int_equal(stream_preassign(y, rig.bucket, PLACE, NULL), FRIT_UNSUPPORTED);
    frit_release(y);
    y = frit_floor(x);
    preassign(&rig, y, PLACE);
    rig.f.driver.complete_status = FRIT_TIMEOUT;
    assert_int_equal(frit_sync(rig.f.device, NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_TIMEOUT);
    frit_release(x), frit_release(y);
    rig_close(&rig);
}

static void test_what_is_refused(void **state)
{
    struct rig rig = {.f.most = 0}, other = {.f.most = 0};
    frit_tensor *x, *y, *z;

    (void)state;
    rig_open(&rig);
    rig_open(&other);
    x = make(&rig, 2);
    y = frit_neg(x), z = frit_floor(x);
    assert_int_equal(stream_preassign(y, rig.bucket, BUCKET - BYTES + 4, NULL), FRIT_INVALID);
    assert_int_equal(stream_preassign(y, rig.bucket, UINT64_MAX, NULL), FRIT_INVALID);
    assert_int_equal(stream_preassign(y, rig.bucket, 2, NULL), FRIT_INVALID);
    assert_int_equal(stream_preassign(y, other.bucket, 0, NULL), FRIT_INVALID);
    preassign(&rig, y, BUCKET - BYTES);
    assert_int_equal(stream_preassign(y, rig.bucket, 0, NULL), FRIT_INVALID);
    assert_int_equal(stream_preassign(z, rig.bucket, BUCKET - BYTES - 4, NULL), FRIT_INVALID);
    preassign(&rig, z, BUCKET - 2 * BYTES);
    frit_release(y);
    assert_int_equal(stream_preassign(y, rig.bucket, 0, NULL), FRIT_INVALID);
    sync(&rig);
    expect_there(&rig, BUCKET - BYTES, -2);
    expect_there(&rig, BUCKET - 2 * BYTES, 2);
    frit_release(x), frit_release(z);
    rig_close(&other);
    rig_close(&rig);
}

static void test_every_allocation_fails(void **state)
{
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct rig rig = {.f.most = 1, .f.driver.refuse_assigned = n % 2};
        frit_tensor *x, *y;
        frit_status st, ran;

        rig_open(&rig);
        x = make(&rig, 2);
        y = frit_add_f(frit_take(frit_neg(x)), 1);
        failing_alloc_arm(n / 2);
        st = stream_preassign(y, rig.bucket, PLACE, NULL);
        ran = frit_sync(rig.f.device, NULL);
        hit = failing_alloc_disarm() || n % 2 == 0;
        assert_true(st == FRIT_OK || st == FRIT_NO_HOST_MEMORY);
        if (st == FRIT_OK && ran == FRIT_OK)
            expect_there(&rig, PLACE, -1);
        frit_release(x), frit_release(y);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_op_writes_there),
        cmocka_unit_test(test_it_is_replayed),
        cmocka_unit_test(test_a_block_writes_there),
        cmocka_unit_test(test_who_cannot_write_there_gets_a_copy),
        cmocka_unit_test(test_strides_and_gaps_are_no_match),
        cmocka_unit_test(test_what_runs_instead_writes_there),
        cmocka_unit_test(test_a_view_is_copied),
        cmocka_unit_test(test_a_value_that_is_there_is_copied),
        cmocka_unit_test(test_sums_in_place),
        cmocka_unit_test(test_old_readers_come_first),
        cmocka_unit_test(test_nobody_takes_the_memory),
        cmocka_unit_test(test_known_plans_have_their_own),
        cmocka_unit_test(test_what_is_left_behind_keeps_its_own),
        cmocka_unit_test(test_a_device_may_end_before),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_every_allocation_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
