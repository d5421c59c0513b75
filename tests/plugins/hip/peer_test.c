/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from one device to another, on a fake runtime with two: bytes, order, access to the other
 * one's memory, and what is refused. */
#include <string.h>

#include "fake.h"
#include "rig.h"

static struct fake_gpu *fake;

enum { BYTES = 5000 };

/* The rig's device, the first one, and the second one. */
struct pair {
    struct rig rig;
    void *other;
    frit_allocation mine, others; /* BYTES of each */
};

static void open_other(struct pair *pair, uint32_t index)
{
    struct rig *rig = &pair->rig;

    if (rig->backend->device_open(rig->instance, index, &rig_params, &pair->other, &rig->err))
        fail_msg("%s", rig->err.text);
}

/* The functions of rig.h use `rig->device`. */
static void swap(struct pair *pair)
{
    void *device = pair->rig.device;
    const frit_allocation memory = pair->mine;

    pair->rig.device = pair->other;
    pair->other = device;
    pair->mine = pair->others;
    pair->others = memory;
}

static int open_pair(void **state)
{
    static struct pair pair;

    fake->reset();
    pair = (struct pair){.rig = {0}};
    rig_open(&pair.rig);
    open_other(&pair, 1);
    pair.mine = rig_alloc(&pair.rig, BYTES);
    swap(&pair);
    pair.mine = rig_alloc(&pair.rig, BYTES);
    swap(&pair);
    *state = &pair;
    return 0;
}

static void close_other(struct pair *pair)
{
    pair->rig.backend->free(pair->other, pair->others.memory);
    pair->rig.backend->device_close(pair->other);
}

static int close_pair(void **state)
{
    struct pair *pair = *state;

    fake->hold(false);
    close_other(pair);
    pair->rig.backend->free(pair->rig.device, pair->mine.memory);
    rig_close(&pair->rig);
    fake_expect_nothing_alive();
    return 0;
}

static frit_transfer whole(const struct pair *pair)
{
    return (frit_transfer){
        .struct_size = sizeof(frit_transfer), .memory = pair->mine.memory, .bytes = BYTES};
}

static frit_peer_source source(const struct pair *pair)
{
    return (frit_peer_source){.struct_size = sizeof(frit_peer_source),
                              .device = pair->other,
                              .memory = pair->others.memory};
}

static uint64_t copy(struct pair *pair, const frit_transfer *to, const frit_peer_source *from)
{
    struct rig *rig = &pair->rig;
    uint64_t value = 0;

    if (rig->backend->copy_from(rig->device, to, from, &value, &rig->err))
        fail_msg("%s", rig->err.text);
    return value;
}

/* Fills the other device's memory, as the contract wants it before a copy. */
static void fill_other(struct pair *pair, uint8_t *data, uint8_t seed)
{
    for (uint32_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(seed + i * 7 + (i >> 8));
    swap(pair);
    rig_write(&pair->rig, pair->mine.memory, 0, data, BYTES);
    rig_read(&pair->rig, pair->mine.memory, 0, data, BYTES);
    swap(pair);
}

/* ---- bytes ---- */

static void bytes_at_odd_places(void **state)
{
    static const uint32_t pieces[][3] = {{0, 0, BYTES}, {0, 0, 1},    {3, 17, 1000},
                                         {4999, 0, 1},  {0, 4999, 1}, {64, 63, 4097}};
    struct pair *pair = *state;
    uint8_t data[BYTES], want[BYTES], got[BYTES];

    for (uint32_t round = 0; round < 2; round++) {
        fill_other(pair, data, (uint8_t)(round + 1));
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            const uint32_t to_at = pieces[i][0], from_at = pieces[i][1], bytes = pieces[i][2];
            frit_transfer to = whole(pair);
            frit_peer_source from = source(pair);

            memset(want, 0x5a, BYTES);
            rig_write(&pair->rig, pair->mine.memory, 0, want, BYTES);
            memcpy(want + to_at, data + from_at, bytes);
            to.offset = to_at;
            to.bytes = bytes;
            from.offset = from_at;
            rig_wait(&pair->rig, copy(pair, &to, &from));
            rig_read(&pair->rig, pair->mine.memory, 0, got, BYTES);
            assert_memory_equal(got, want, BYTES);
        }
        swap(pair);
    }
}

/* ---- order ---- */

static frit_status submit_fill(struct pair *pair, frit_queue *queue, uint64_t bytes,
                               uint8_t pattern, const frit_point *wait, uint64_t *value)
{
    const frit_cmd cmd = {.struct_size = sizeof cmd,
                          .kind = FRIT_CMD_FILL,
                          .dst = pair->mine.memory,
                          .bytes = bytes,
                          .pattern = pattern,
                          .pattern_bytes = 1};
    struct rig *rig = &pair->rig;

    return rig->backend->submit(rig->device, queue, &cmd, 1, sizeof cmd, wait, wait != NULL, value,
                                &rig->err);
}

static uint64_t fill(struct pair *pair, frit_queue *queue, uint64_t bytes, uint8_t pattern,
                     const frit_point *wait)
{
    uint64_t value = 0;

    if (submit_fill(pair, queue, bytes, pattern, wait, &value))
        fail_msg("%s", pair->rig.err.text);
    return value;
}

/* Between two fills, on the queue itself and on others that wait for each other; nothing runs
 * before all is enqueued, and no call waits for it. */
static void in_the_order_of_the_queue(void **state)
{
    const frit_queue_desc desc = {.struct_size = sizeof desc};
    struct pair *pair = *state;
    struct rig *rig = &pair->rig;
    frit_queue *queues[2] = {NULL, NULL};
    uint8_t data[BYTES], got[BYTES];

    assert_int_equal(rig->backend->queue_create(rig->device, &desc, &queues[1], &rig->err),
                     FRIT_OK);
    for (int round = 0; round < 40; round++) {
        frit_queue *queue = queues[round % 2];
        frit_transfer to = whole(pair);
        const frit_peer_source from = source(pair);
        frit_point filled = {NULL, 0}, copied = {queue, 0};

        fill_other(pair, data, (uint8_t)round);
        fake->hold(true);
        filled.value = fill(pair, NULL, BYTES, 0xee, NULL);
        to.queue = queue;
        to.waits = &filled;
        to.n_waits = 1;
        copied.value = copy(pair, &to, &from);
        filled.value = fill(pair, NULL, BYTES / 2, 0xdd, &copied);
        fake->hold(false);
        rig_wait(rig, filled.value);
        rig_read(rig, pair->mine.memory, 0, got, BYTES);
        memset(data, 0xdd, BYTES / 2);
        assert_memory_equal(got, data, BYTES);
    }
    rig->backend->queue_destroy(rig->device, queues[1]);
}

/* ---- access ---- */

static void copy_and_wait(struct pair *pair)
{
    const frit_transfer to = whole(pair);
    const frit_peer_source from = source(pair);

    rig_wait(&pair->rig, copy(pair, &to, &from));
}

static void expect_counts(uint64_t enabled, uint64_t copies, uint64_t staged)
{
    assert_int_equal(fake->enabled_peers, enabled);
    assert_int_equal(fake->peer_copies, copies);
    assert_int_equal(fake->staged_copies, staged);
}

/* Each device for itself. */
static void access_is_enabled_once(void **state)
{
    struct pair *pair = *state;

    for (int i = 0; i < 3; i++)
        copy_and_wait(pair);
    expect_counts(1, 3, 0);
    swap(pair);
    for (int i = 0; i < 3; i++)
        copy_and_wait(pair);
    expect_counts(2, 6, 0);
    swap(pair);
}

/* Of CUDA, where access ends with the context. */
static void and_again_for_a_device_that_is_opened_again(void **state)
{
    struct pair *pair = *state;

    copy_and_wait(pair);
    close_other(pair);
    open_other(pair, 1);
    swap(pair);
    pair->mine = rig_alloc(&pair->rig, BYTES);
    swap(pair);
    copy_and_wait(pair);
    expect_counts(fake_is_cuda() ? 2 : 1, 2, 0);
}

static void without_access_the_runtime_copies_all_the_same(void **state)
{
    struct pair *pair = *state;
    uint8_t data[BYTES], got[BYTES];

    fake->has_no_peers = true;
    fill_other(pair, data, 9);
    for (int i = 0; i < 2; i++)
        copy_and_wait(pair);
    expect_counts(0, 2, 2);
    rig_read(&pair->rig, pair->mine.memory, 0, got, BYTES);
    assert_memory_equal(got, data, BYTES);
}

/* No access is needed. */
static void a_device_that_is_open_twice(void **state)
{
    struct pair *pair = *state, twice = *pair;
    uint8_t data[BYTES], got[BYTES];

    open_other(&twice, 0);
    swap(&twice);
    twice.mine = rig_alloc(&twice.rig, BYTES);
    swap(&twice);
    fill_other(&twice, data, 11);
    copy_and_wait(&twice);
    expect_counts(0, 1, 0);
    rig_read(&pair->rig, pair->mine.memory, 0, got, BYTES);
    assert_memory_equal(got, data, BYTES);
    close_other(&twice);
}

/* The other functions do not reach the other device's memory, or these tests would prove nothing.
 */
static void no_other_way(void **state)
{
    struct pair *pair = *state;
    struct rig *rig = &pair->rig;
    const frit_cmd cmd = {.struct_size = sizeof cmd,
                          .kind = FRIT_CMD_COPY,
                          .dst = pair->mine.memory,
                          .src = pair->others.memory,
                          .bytes = BYTES};
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value = rig_submit(rig, &cmd, 1);

    assert_int_equal(rig->backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &rig->err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_INTERNAL);
}

/* ---- the calling thread ---- */

static void the_calling_threads_device_stays(void **state)
{
    struct pair *pair = *state;

    for (int i = 0; i < 3; i++) {
        const void *before;
        uint32_t depth;

        if (i)
            (void)fake->use_device(i - 1);
        before = fake->current();
        depth = fake->depth();
        copy_and_wait(pair);
        assert_ptr_equal(fake->current(), before);
        assert_int_equal(fake->depth(), depth);
        if (i)
            fake->unuse_device();
    }
}

/* ---- refusals ---- */

static void expect_refusal(struct pair *pair, const frit_transfer *to, const frit_peer_source *from,
                           frit_status status)
{
    struct rig *rig = &pair->rig;
    const uint64_t calls = fake->peer_copies;
    uint64_t value = 0;

    rig->err.text[0] = '\0';
    assert_int_equal(rig->backend->copy_from(rig->device, to, from, &value, &rig->err), status);
    assert_true(rig->err.text[0]);
    assert_int_equal(fake->peer_copies, calls);
}

static void what_is_refused(void **state)
{
    struct pair *pair = *state;
    frit_allocation pinned = rig_alloc_in(&pair->rig, 1, BYTES);
    frit_transfer to = whole(pair);
    frit_peer_source from = source(pair);

    to.bytes = BYTES + 1;
    expect_refusal(pair, &to, &from, FRIT_INVALID);
    to = whole(pair);
    from.offset = 1;
    expect_refusal(pair, &to, &from, FRIT_INVALID);
    from = source(pair);
    to.queue = (frit_queue *)(void *)&from;
    expect_refusal(pair, &to, &from, FRIT_INVALID);
    to = whole(pair);
    to.memory = pinned.memory;
    expect_refusal(pair, &to, &from, FRIT_UNSUPPORTED);
    pair->rig.backend->free(pair->rig.device, pinned.memory);
    copy_and_wait(pair);
}

static void lose_next_work(void)
{
    fake->failing_operation_result = 700;
    fake->failing_operation = fake->n_operations + 1;
}

/* The loss shows in the call that enqueued the work, or in a wait for it. */
static void expect_loss(struct rig *rig, frit_status status, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof failure};

    if (!status)
        status = rig->backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &rig->err);
    assert_int_equal(status, FRIT_DEVICE_LOST);
}

/* The host then finds out by a read; the device that copies is not lost. */
static void a_source_that_is_lost(void **state)
{
    struct pair *pair = *state;
    const frit_transfer to = whole(pair);
    const frit_peer_source from = source(pair);
    struct rig *rig = &pair->rig;
    uint64_t value = 0;
    frit_status status;

    lose_next_work();
    swap(pair);
    status = submit_fill(pair, NULL, 8, 1, NULL, &value);
    expect_loss(rig, status, value);
    swap(pair);
    expect_refusal(pair, &to, &from, FRIT_UNSUPPORTED);
    rig_wait(rig, fill(pair, NULL, 8, 1, NULL));
}

/* An error that appears when the copy runs is one of the device that copies. */
static void lost_when_it_runs(void **state)
{
    struct pair *pair = *state;
    const frit_transfer to = whole(pair);
    const frit_peer_source from = source(pair);
    struct rig *rig = &pair->rig;
    uint64_t value = 0;
    frit_status status;

    lose_next_work();
    status = rig->backend->copy_from(rig->device, &to, &from, &value, &rig->err);
    expect_loss(rig, status, value);
    expect_refusal(pair, &to, &from, FRIT_DEVICE_LOST);
}

/* As many fills as a queue has events; the value of the last. */
static uint64_t fill_queue(struct pair *pair)
{
    enum { EVENTS = 64 };
    uint64_t value = 0;

    for (int i = 0; i < EVENTS; i++)
        value = fill(pair, NULL, 8, 1, NULL);
    return value;
}

/* Makes call number `n` of the copy fail, which has to wait for an event.  Returns whether there
 * was such a call. */
static bool fail_call(struct pair *pair, uint64_t n, int *reports)
{
    enum { LATE_NS = 1000000000, OUT_OF_MEMORY = 2 };
    const frit_transfer to = whole(pair);
    const frit_peer_source from = source(pair);
    struct rig *rig = &pair->rig;
    frit_status status;
    uint64_t value;
    bool hit;

    rig_wait(rig, fill_queue(pair));
    fake->late_ns = LATE_NS;
    (void)fill_queue(pair);
    fake->failing_result = OUT_OF_MEMORY;
    fake->failing_call = fake->calls + n;
    status = rig->backend->copy_from(rig->device, &to, &from, &value, &rig->err);
    hit = fake->calls >= fake->failing_call;
    fake->failing_call = fake->late_ns = 0;
    assert_true(status == FRIT_OK || (hit && status == FRIT_NO_DEVICE_MEMORY));
    *reports += status != FRIT_OK;
    if (!status)
        rig_wait(rig, value);
    return hit;
}

/* After a call that fails nothing uses the source's memory, which is freed at once. */
static void a_failed_call_leaves_no_copy(void **state)
{
    struct pair *pair = *state;
    int reports = 0;
    bool hit = true;

    for (uint64_t n = 1; hit; n++) {
        hit = fail_call(pair, n, &reports);
        swap(pair);
        pair->rig.backend->free(pair->rig.device, pair->mine.memory);
        pair->mine = rig_alloc(&pair->rig, BYTES);
        swap(pair);
        rig_wait(&pair->rig, fill(pair, NULL, 8, 1, NULL));
    }
    assert_true(reports >= 3); /* the device cannot be entered, the copy and its event */
}

#define PAIR_TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(bytes_at_odd_places),
        PAIR_TEST(in_the_order_of_the_queue),
        PAIR_TEST(access_is_enabled_once),
        PAIR_TEST(and_again_for_a_device_that_is_opened_again),
        PAIR_TEST(without_access_the_runtime_copies_all_the_same),
        PAIR_TEST(a_device_that_is_open_twice),
        PAIR_TEST(no_other_way),
        PAIR_TEST(the_calling_threads_device_stays),
        PAIR_TEST(what_is_refused),
        PAIR_TEST(a_source_that_is_lost),
        PAIR_TEST(lost_when_it_runs),
        PAIR_TEST(a_failed_call_leaves_no_copy),
    };

    fake = fake_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
