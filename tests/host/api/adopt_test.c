/* SPDX-License-Identifier: Apache-2.0 */
/* frit_wrap_host: when a tensor lies in the program's own memory, when that is given back, and that
 * nobody writes it. */
#include "plugin_rig.h"

#define RIG_LATE "fake/late/libfrit-reference-late.so"

enum { N = 96, ROUNDS = 8 };

static _Alignas(4096) float mine[N];

static void fill(void)
{
    for (int i = 0; i < N; i++)
        mine[i] = (float)i;
}

static void expect_untouched(void)
{
    for (int i = 0; i < N; i++)
        assert_true(mine[i] == (float)i);
}

/* `late`: queues, which hold their work back until somebody waits; NULL: the reference driver
 * itself. */
static void open_bench(struct plugin_rig *rig, const char *late)
{
    *rig = (struct plugin_rig){0};
    if (late) {
        rig_plugin(rig, "plugin.reference", RIG_LATE);
        rig_set(rig, "plugin.reference", "option.hold", "1000");
        rig_set(rig, "stream", "queues", late);
    }
    rig_open(rig, "reference:0");
    fill();
}

static void mark(void *ctx)
{
    ++*(int *)ctx;
}

static frit_tensor *lend(const struct plugin_rig *rig, int *released)
{
    frit_tensor *x =
        frit_wrap_host(rig->dev, FRIT_F32, FRIT_SHAPE(N), mine, sizeof(mine), mark, released);

    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    return x;
}

/* Reads and releases. */
static void expect(frit_tensor *tensor, float factor)
{
    float out[N] = {0};

    if (frit_read(tensor, out, sizeof(out), NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    frit_release(tensor);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == factor * (float)i);
}

static void test_the_tensor_lies_in_it(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x;
    float out[N];
    int released = 0;

    (void)state;
    open_bench(&rig, NULL);
    x = lend(&rig, &released);
    assert_int_equal(rig_stats(&rig).bytes_adopted, sizeof(mine));
    assert_int_equal(rig_stats(&rig).adopted_now, sizeof(mine));
    assert_int_equal(rig_stats(&rig).bytes_in, 0);
    assert_int_equal(rig_stats(&rig).bytes_now, 0);
    mine[3] = 300; /* which no program may do, and shows whose memory it is */
    assert_int_equal(frit_read(x, out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[3] == 300);
    mine[3] = 3;
    expect(frit_neg(x), -1);
    assert_int_equal(released, 0);
    frit_release(x);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(released, 1);
    assert_int_equal(rig_stats(&rig).adopted_now, 0);
    rig_close(&rig);
    assert_int_equal(released, 1);
    expect_untouched();
}

static void test_the_last_view_ends_it(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x, *view;
    int released = 0;

    (void)state;
    open_bench(&rig, NULL);
    x = lend(&rig, &released);
    view = frit_reshape(x, FRIT_SHAPE(N / 4, 4));
    frit_release(x);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(released, 0);
    expect(frit_take(frit_neg(view)), -1);
    frit_release(view);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(released, 1);
    rig_close(&rig);
}

/* The launch is on the device, which has not begun it. */
static void keep_for_launch(const char *queues)
{
    struct plugin_rig rig;
    frit_tensor *x, *y;
    int released = 0;

    open_bench(&rig, queues);
    x = lend(&rig, &released);
    y = frit_neg(x);
    frit_release(x);
    assert_int_equal(released, 0);
    assert_int_equal(frit_flush(rig.dev, NULL), FRIT_OK);
    assert_int_equal(released, 0);
    assert_int_equal(rig_stats(&rig).adopted_now, sizeof(mine));
    expect(y, -1);
    assert_int_equal(released, 1);
    rig_close(&rig);
}

static void test_a_pending_launch_keeps_it(void **state)
{
    (void)state;
    keep_for_launch("1");
    keep_for_launch("3");
}

static void test_closing_the_device_waits_for_it(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x;
    int released = 0, kept = 0;

    (void)state;
    open_bench(&rig, "2");
    x = lend(&rig, &released);
    (void)frit_neg(x);
    (void)lend(&rig, &kept);
    assert_int_equal(frit_flush(rig.dev, NULL), FRIT_OK);
    frit_release(x);
    assert_int_equal(released, 0);
    frit_device_close(rig.dev);
    assert_int_equal(released, 1);
    assert_int_equal(kept, 1);
    frit_host_close(rig.host);
}

/* x dies in the op, which would be done in its place; runs that are replayed find other memory. */
static void test_nobody_writes_it(void **state)
{
    struct plugin_rig rig;
    float twice[N];
    int released = 0;
    uint64_t in_place;

    (void)state;
    open_bench(&rig, NULL);
    for (int i = 0; i < N; i++)
        twice[i] = 2 * (float)i;
    for (int i = 0; i < ROUNDS; i++)
        expect(frit_neg(frit_take(
                   frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(N), twice, sizeof(twice)))),
               -2);
    in_place = rig_stats(&rig).in_place;
    assert_true(in_place > 0);
    for (int i = 0; i < ROUNDS; i++)
        expect(frit_neg(frit_take(lend(&rig, &released))), -1);
    assert_int_equal(rig_stats(&rig).in_place, in_place);
    for (int i = 0; i < 2 * ROUNDS; i++) /* in turns */
        expect(frit_neg(frit_take(
                   i % 2 ? lend(&rig, &released)
                         : frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(N), twice, sizeof(twice)))),
               i % 2 ? -1 : -2);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(released, 2 * ROUNDS);
    expect_untouched();
    rig_close(&rig);
}

static void test_a_write_gives_other_memory(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x;
    float other[N];
    int released = 0;

    (void)state;
    open_bench(&rig, NULL);
    for (int i = 0; i < N; i++)
        other[i] = 3 * (float)i;
    x = lend(&rig, &released);
    assert_int_equal(frit_write(x, other, sizeof(other), NULL), FRIT_OK);
    assert_int_equal(frit_sync_all(rig.dev, NULL), FRIT_OK);
    assert_int_equal(released, 1);
    expect(x, 3);
    expect_untouched();
    rig_close(&rig);
}

/* Copied, and given back at once. */
static void expect_copy(struct plugin_rig *rig, const float *data)
{
    int released = 0;
    frit_tensor *x = frit_wrap_host(rig->dev, FRIT_F32, FRIT_SHAPE(N / 2), data,
                                    N / 2 * sizeof(float), mark, &released);

    assert_int_equal(released, 1);
    assert_int_equal(rig_stats(rig).bytes_adopted, 0);
    assert_int_equal(rig_stats(rig).bytes_in, N / 2 * sizeof(float));
    frit_release(x);
    rig_close(rig);
}

static void test_what_cannot_be_adopted_is_copied(void **state)
{
    struct plugin_rig rig;

    (void)state;
    open_bench(&rig, NULL);
    expect_copy(&rig, mine + 1);
    rig = (struct plugin_rig){0};
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_open(&rig, "null:0"); /* adopts nothing */
    expect_copy(&rig, mine);
}

static void test_failures_give_it_back(void **state)
{
    struct plugin_rig rig;
    int released = 0;

    (void)state;
    open_bench(&rig, NULL);
    frit_release(frit_wrap_host(rig.dev, FRIT_F32, FRIT_SHAPE(N), mine, 1, mark, &released));
    assert_int_equal(released, 1);
    frit_release(
        frit_wrap_host(NULL, FRIT_F32, FRIT_SHAPE(N), mine, sizeof(mine), mark, &released));
    assert_int_equal(released, 2);
    frit_release(frit_wrap_host(rig.dev, FRIT_F32, FRIT_SHAPE(0), mine, 0, mark, &released));
    assert_int_equal(released, 3);
    frit_release(frit_wrap_host(rig.dev, FRIT_F32, FRIT_SHAPE(N), mine, sizeof(mine), NULL, NULL));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_tensor_lies_in_it),
        cmocka_unit_test(test_the_last_view_ends_it),
        cmocka_unit_test(test_a_pending_launch_keeps_it),
        cmocka_unit_test(test_closing_the_device_waits_for_it),
        cmocka_unit_test(test_nobody_writes_it),
        cmocka_unit_test(test_a_write_gives_other_memory),
        cmocka_unit_test(test_what_cannot_be_adopted_is_copied),
        cmocka_unit_test(test_failures_give_it_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
