/* SPDX-License-Identifier: Apache-2.0 */
/* frit_write_many and frit_read_many on a device whose memory the host does not reach: with a
 * pinned heap by COPY commands in few submits, without `write` and `read`, which fail here where
 * they are called; without such a heap by these. */
#include "plugin_rig.h"

#include <pthread.h>
#include <stdbool.h>

#include <frit/inspect.h>

enum { TENSORS = 64, N = 300, SLOT = 4 << 20, LARGE = 5 * SLOT + 12, ROUNDS = 5 };

/* `fail`: a fault of option.fail_call. */
static void open_null(struct plugin_rig *rig, bool pinned, const char *fail)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.memory", "device");
    rig_set(rig, "plugin.null", "option.hold", "100"); /* until somebody waits */
    rig_set(rig, "plugin.null", "option.pinned", pinned ? "yes" : "no");
    rig_set(rig, "plugin.null", "option.fail_call", fail);
    rig_open(rig, "null:0");
}

/* Element i of tensor t in a round. */
static float element(int round, int t, int i)
{
    return (float)(round * 7 + t * 1000 + i);
}

static frit_tensor *empty(const struct plugin_rig *rig, int64_t n)
{
    frit_tensor *x = frit_full(rig->dev, FRIT_F32, FRIT_SHAPE(n), 0);

    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    return x;
}

static void write_all(frit_tensor **x, int round)
{
    static float data[TENSORS][N];
    frit_write_item items[TENSORS];

    for (int t = 0; t < TENSORS; t++) {
        for (int i = 0; i < N; i++)
            data[t][i] = element(round, t, i);
        items[t] = (frit_write_item){.tensor = x[t], .data = data[t], .bytes = sizeof(data[t])};
    }
    assert_int_equal(frit_write_many(items, TENSORS, NULL), FRIT_OK);
    for (int t = 0; t < TENSORS; t++)
        assert_int_equal(items[t].status, FRIT_OK);
    memset(data, 0, sizeof(data)); /* may be used again */
}

static void expect_all(frit_tensor **x, int round)
{
    static float out[TENSORS][N];
    frit_read_item items[TENSORS];

    memset(out, 0, sizeof(out));
    for (int t = 0; t < TENSORS; t++)
        items[t] = (frit_read_item){.tensor = x[t], .data = out[t], .bytes = sizeof(out[t])};
    assert_int_equal(frit_read_many(items, TENSORS, NULL), FRIT_OK);
    for (int t = 0; t < TENSORS; t++)
        for (int i = 0; i < N; i++)
            assert_true(out[t][i] == element(round, t, i));
}

static void many(bool pinned, const char *fail, uint64_t submits)
{
    struct plugin_rig rig;
    frit_tensor *x[TENSORS];
    frit_stats before, after;

    open_null(&rig, pinned, fail);
    for (int t = 0; t < TENSORS; t++)
        x[t] = empty(&rig, N);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    before = rig_stats(&rig);
    for (int round = 0; round < ROUNDS; round++)
        write_all(x, round);
    after = rig_stats(&rig);
    assert_int_equal(after.submits - before.submits, ROUNDS * submits);
    assert_int_equal(after.bytes_in - before.bytes_in, ROUNDS * TENSORS * N * sizeof(float));
    expect_all(x, ROUNDS - 1);
    write_all(x, 1);
    expect_all(x, 1);
    before = rig_stats(&rig);
    assert_int_equal(before.submits - after.submits, 3 * submits);
    assert_int_equal(before.bytes_out, 2 * TENSORS * N * sizeof(float));
    frit_trim(rig.dev);
    write_all(x, 2);
    expect_all(x, 2);
    for (int t = 0; t < TENSORS; t++)
        frit_release(x[t]);
    rig_close(&rig);
}

static void test_many_transfers_are_one_submit(void **state)
{
    (void)state;
    many(true, "write:1", 1);
    many(true, "read:1", 1);
    many(false, "", 0);
}

/* One in several parts, which do not end where the slots do, and small ones around it. */
struct three {
    uint64_t bytes[3];
    char *data, *out[3];
    frit_tensor *x[3];
    frit_write_item writes[3];
    frit_read_item reads[3];
};

static void make_three(const struct plugin_rig *rig, uint64_t large, struct three *out)
{
    *out = (struct three){.bytes = {12, large, 4000}, .data = malloc(large + 8)};
    for (int t = 0; t < 3; t++) {
        out->x[t] = empty(rig, (int64_t)(out->bytes[t] / sizeof(float)));
        out->out[t] = malloc(out->bytes[t]);
        out->writes[t] = (frit_write_item){
            .tensor = out->x[t], .data = out->data + 4 * t, .bytes = out->bytes[t]};
        out->reads[t] =
            (frit_read_item){.tensor = out->x[t], .data = out->out[t], .bytes = out->bytes[t]};
    }
    assert_int_equal(frit_sync(rig->dev, NULL), FRIT_OK);
}

static void number(struct three *three, int round)
{
    for (uint64_t i = 0; i < three->bytes[1] + 8; i++)
        three->data[i] = (char)(i * 31 + i / 4093 + (uint64_t)round);
}

/* The submits that it took. */
static uint64_t read_three(const struct plugin_rig *rig, struct three *three)
{
    uint64_t before = rig_stats(rig).submits;

    for (int t = 0; t < 3; t++)
        memset(three->out[t], 0, three->bytes[t]);
    assert_int_equal(frit_read_many(three->reads, 3, NULL), FRIT_OK);
    for (int t = 0; t < 3; t++)
        assert_memory_equal(three->out[t], three->writes[t].data, three->bytes[t]);
    return rig_stats(rig).submits - before;
}

static void free_three(struct three *three)
{
    for (int t = 0; t < 3; t++) {
        free(three->out[t]);
        frit_release(three->x[t]);
    }
    free(three->data);
}

/* More of them than slots, before any is read. */
static void test_a_large_transfer_goes_in_parts(void **state)
{
    struct plugin_rig rig;
    struct three three[ROUNDS];
    uint64_t before;

    (void)state;
    open_null(&rig, true, "write:1");
    for (int round = 0; round < ROUNDS; round++) {
        make_three(&rig, 2 * SLOT + 12, &three[round]);
        number(&three[round], round);
    }
    before = rig_stats(&rig).submits;
    for (int round = 0; round < ROUNDS; round++)
        assert_int_equal(frit_write_many(three[round].writes, 3, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).submits - before, 3 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(read_three(&rig, &three[round]), 3);
        free_three(&three[round]);
    }
    rig_close(&rig);
}

/* More than the ring holds. */
static void test_a_read_goes_around_the_ring(void **state)
{
    struct plugin_rig rig;
    struct three three;

    (void)state;
    open_null(&rig, true, "read:1");
    make_three(&rig, LARGE, &three);
    number(&three, 0);
    assert_int_equal(frit_write_many(three.writes, 3, NULL), FRIT_OK);
    assert_int_equal(read_three(&rig, &three), LARGE / SLOT + 1);
    free_three(&three);
    rig_close(&rig);
}

/* What cannot be staged keeps its elements, and the ring goes on. */
static void test_a_refused_submit_changes_nothing(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x[2];
    float data[2][N], out[N];
    frit_write_item items[2];

    (void)state;
    open_null(&rig, true, "submit:2:no-device-memory");
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < N; i++)
            data[t][i] = element(0, t, i);
        x[t] = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(N), data[t], sizeof(data[t]));
        items[t] = (frit_write_item){.tensor = x[t], .data = data[1 - t], .bytes = sizeof(data[t])};
    }
    assert_int_equal(frit_write_many(items, 2, NULL), FRIT_OK); /* the first submit */
    assert_int_equal(frit_write_many(items, 2, NULL), FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(items[0].status, FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(items[1].status, FRIT_NO_DEVICE_MEMORY);
    assert_int_equal(frit_read(x[0], out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, data[1], sizeof(out));
    assert_int_equal(frit_write_many(items, 2, NULL), FRIT_OK);
    frit_release(x[0]);
    frit_release(x[1]);
    rig_close(&rig);
}

static void open_failing(struct plugin_rig *rig, const char *copy)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.memory", "device");
    rig_set(rig, "plugin.null", "option.pinned", "yes");
    rig_set(rig, "plugin.null", "option.hold", "100");
    rig_set(rig, "plugin.null", "option.fail_copy", copy);
    rig_open(rig, "null:0");
}

/* Found when somebody reads; what was in another submit is good.  The piece that fails is the
 * second of three parts of one tensor. */
static void test_a_write_that_fails_late_is_found(void **state)
{
    struct plugin_rig rig;
    struct three three, good;
    char *out;

    (void)state;
    open_failing(&rig, "3:io");
    make_three(&rig, 2 * SLOT + 12, &three);
    make_three(&rig, 2 * SLOT + 12, &good);
    number(&three, 0);
    number(&good, 1);
    assert_int_equal(frit_write_many(three.writes, 3, NULL), FRIT_OK);
    assert_int_equal(frit_write_many(good.writes, 3, NULL), FRIT_OK);
    out = malloc(three.bytes[1]);
    assert_int_equal(frit_read(three.x[1], out, three.bytes[1], NULL), FRIT_IO);
    assert_non_null(strstr(frit_tensor_error(three.x[1]), "failed on null:0"));
    for (int t = 0; t < 3; t += 2) {
        assert_int_equal(frit_read(three.x[t], out, three.bytes[t], NULL), FRIT_OK);
        assert_memory_equal(out, three.writes[t].data, three.bytes[t]);
    }
    read_three(&rig, &good);
    free(out);
    free_three(&three);
    free_three(&good);
    frit_sync_all(rig.dev, NULL); /* which returns the failure once more */
    rig_close(&rig);
}

/* The first part of the second of three. */
static void test_a_read_that_fails_is_reported(void **state)
{
    struct plugin_rig rig;
    struct three three;

    (void)state;
    open_failing(&rig, "7:io"); /* five are of the write */
    make_three(&rig, 2 * SLOT + 12, &three);
    number(&three, 0);
    assert_int_equal(frit_write_many(three.writes, 3, NULL), FRIT_OK);
    assert_int_equal(frit_read_many(three.reads, 3, NULL), FRIT_IO);
    assert_int_equal(three.reads[1].status, FRIT_IO);
    assert_int_equal(three.reads[2].status, FRIT_OK);
    assert_memory_equal(three.out[2], three.writes[2].data, three.bytes[2]);
    free_three(&three);
    frit_sync_all(rig.dev, NULL);
    rig_close(&rig);
}

/* Without pinned memory of that size the driver's own transfers do. */
static void test_no_pinned_memory_is_no_failure(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x[TENSORS];

    (void)state;
    rig = (struct plugin_rig){0};
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", "option.memory", "device");
    rig_set(&rig, "plugin.null", "option.pinned", "yes");
    rig_set(&rig, "plugin.null", "option.heap", "4000000");
    rig_open(&rig, "null:0");
    for (int t = 0; t < TENSORS; t++)
        x[t] = empty(&rig, N);
    write_all(x, 3);
    expect_all(x, 3);
    for (int t = 0; t < TENSORS; t++)
        frit_release(x[t]);
    rig_close(&rig);
}

/* Each item for itself; a tensor that occurs twice has the last elements; taken ones are gone. */
static void test_items_fail_alone(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct plugin_rig rig;
    frit_tensor *x, *y;
    float one[N] = {1}, two[N] = {2}, out[N];
    frit_write_item items[4];

    (void)state;
    open_null(&rig, true, "");
    x = empty(&rig, N);
    y = empty(&rig, N);
    items[0] = (frit_write_item){.tensor = x, .data = one, .bytes = sizeof(one)};
    items[1] = (frit_write_item){.tensor = x, .data = two, .bytes = 4};
    items[2] = (frit_write_item){.tensor = x, .data = two, .bytes = sizeof(two)};
    items[3] = (frit_write_item){.tensor = frit_take(y), .data = one, .bytes = sizeof(one)};
    assert_int_equal(frit_write_many(items, 4, &err), FRIT_INVALID);
    assert_int_equal(items[0].status, FRIT_OK);
    assert_int_equal(items[1].status, FRIT_INVALID);
    assert_int_equal(items[2].status, FRIT_OK);
    assert_int_equal(items[3].status, FRIT_OK);
    assert_non_null(strstr(err.text, "4 bytes given"));
    assert_int_equal(frit_read(x, out, sizeof(out), &err), FRIT_OK);
    assert_true(out[0] == 2);
    frit_release(x);
    assert_int_equal(frit_write_many(NULL, 0, &err), FRIT_OK);
    rig_close(&rig);
}

/* One thread has the ring, the others use the driver's own transfers meanwhile. */
static void *transfer_much(void *ctx)
{
    struct plugin_rig *rig = ctx;
    frit_tensor *x[8];
    float data[8][N], out[8][N];
    frit_write_item writes[8];
    frit_read_item reads[8];

    for (int t = 0; t < 8; t++) {
        x[t] = empty(rig, N);
        writes[t] = (frit_write_item){.tensor = x[t], .data = data[t], .bytes = sizeof(data[t])};
        reads[t] = (frit_read_item){.tensor = x[t], .data = out[t], .bytes = sizeof(out[t])};
    }
    for (int round = 0; round < 20 * ROUNDS; round++) {
        for (int t = 0; t < 8; t++)
            for (int i = 0; i < N; i++)
                data[t][i] = element(round, t, i);
        assert_int_equal(frit_write_many(writes, 8, NULL), FRIT_OK);
        assert_int_equal(frit_read_many(reads, 8, NULL), FRIT_OK);
        assert_memory_equal(out, data, sizeof(out));
        if (round % 16 == 5)
            frit_trim(rig->dev);
    }
    for (int t = 0; t < 8; t++)
        frit_release(x[t]);
    return NULL;
}

static void test_threads_share_the_ring(void **state)
{
    enum { THREADS = 4 };
    struct plugin_rig rig;
    pthread_t threads[THREADS];

    (void)state;
    open_null(&rig, true, "");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, transfer_much, &rig), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_transfers_are_one_submit),
        cmocka_unit_test(test_a_large_transfer_goes_in_parts),
        cmocka_unit_test(test_a_read_goes_around_the_ring),
        cmocka_unit_test(test_a_refused_submit_changes_nothing),
        cmocka_unit_test(test_no_pinned_memory_is_no_failure),
        cmocka_unit_test(test_a_write_that_fails_late_is_found),
        cmocka_unit_test(test_a_read_that_fails_is_reported),
        cmocka_unit_test(test_items_fail_alone),
        cmocka_unit_test(test_threads_share_the_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
