/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that move between two devices: directly where the driver copies between them, else
 * through the host's memory; and what a failure leaves. */
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "device/wait.h"
#include "failing_alloc.h"
#include "memory/memory.h"
#include "run/driver.h"

enum { ROWS = 8, COLUMNS = 32, N = ROWS * COLUMNS, BYTES = N * sizeof(float) };

/* Two devices, of one driver unless `apart`. */
struct pair {
    struct driver from_script, to_script;
    frit_device *from, *to;
};

static void open_pair(struct pair *pair, bool apart)
{
    pair->from = driver_device(&pair->from_script, 100);
    pair->to = apart ? driver_device(&pair->to_script, 100)
                     : driver_peer(&pair->from_script, &pair->to_script);
}

static void expect_no_buffers(frit_device *device)
{
    struct memory_stats stats;

    memory_stats(device->memory, &stats);
    assert_int_equal(stats.buffers_now, 0);
}

/* Everything is given back. */
static void close_pair(struct pair *pair)
{
    expect_no_buffers(pair->from);
    expect_no_buffers(pair->to);
    device_close(pair->to);
    device_close(pair->from);
}

static frit_tensor *numbers(frit_device *device)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = (float)i;
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(ROWS, COLUMNS), data, sizeof(data));
}

/* The tensor is made of `x`, whose elements are 0, 1, 2, ..; released. */
static void expect_sum(frit_tensor *tensor, float first, float last, double sum)
{
    float data[N];
    const uint64_t bytes = frit_tensor_bytes(tensor), n = bytes / sizeof(*data);
    double got = 0;

    if (frit_read(tensor, data, bytes, NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    for (uint64_t i = 0; i < n; i++)
        got += (double)data[i];
    assert_true(data[0] == first && data[n - 1] == last && got == sum);
    frit_release(tensor);
}

#define SUM ((double)N * (N - 1) / 2)

static void expect_counts(const struct pair *pair, uint64_t direct, uint64_t through_host)
{
    assert_int_equal(atomic_load(&pair->to->count.bytes_direct), direct);
    assert_int_equal(atomic_load(&pair->from->count.bytes_direct), 0);
    assert_int_equal(atomic_load(&pair->from->count.bytes_out), through_host);
    assert_int_equal(atomic_load(&pair->to->count.bytes_in), through_host);
}

/* ---- the direct way ---- */

static void test_one_copy(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct pair pair = {.from_script.inline_queue = !late, .to_script.inline_queue = !late};
        frit_tensor *x, *y;

        open_pair(&pair, false);
        x = numbers(pair.from);
        y = frit_to_device(x, pair.to);
        assert_int_equal(frit_tensor_status(y), FRIT_OK);
        assert_ptr_equal(frit_tensor_device(y), pair.to);
        assert_int_equal(pair.to_script.peer_copies, 1);
        assert_int_equal(pair.from_script.reads + pair.to_script.writes, 0);
        expect_counts(&pair, BYTES, 0);
        /* Until then the source was needed. */
        assert_true(atomic_load(&pair.to_script.waited) >= pair.to_script.copied_value);
        expect_sum(y, 0, N - 1, SUM);
        expect_sum(x, 0, N - 1, SUM);
        close_pair(&pair);
    }
}

/* The driver checks that the peer was waited for. */
static void test_pending_results(void **state)
{
    struct pair pair = {0};
    frit_tensor *x;

    (void)state;
    open_pair(&pair, false);
    x = frit_neg(frit_take(frit_add_f(frit_take(numbers(pair.from)), 1)));
    x = frit_to_device(frit_take(x), pair.to);
    x = frit_neg(frit_take(x));
    expect_counts(&pair, BYTES, 0);
    expect_sum(x, 1, N, SUM + N);
    assert_int_equal(pair.from_script.reads, 0);
    close_pair(&pair);
}

/* A part of a buffer, and dims in another order: laid out densely first, or sent as they lie where
 * the driver cannot. */
static void test_views(void **state)
{
    (void)state;
    for (int as_it_lies = 0; as_it_lies < 2; as_it_lies++) {
        struct pair pair = {.from_script.refuse = {as_it_lies ? FRIT_OP_copy : 0}};
        frit_tensor *x, *rows, *turned, *part;

        open_pair(&pair, false);
        x = numbers(pair.from);
        rows = frit_to_device(frit_take(frit_slice(x, FRIT_SLICES({2, 4, 1}, {0}))), pair.to);
        expect_counts(&pair, BYTES / ROWS * 2, 0);
        turned = frit_to_device(frit_take(frit_transpose(x, 0, 1)), pair.to);
        expect_counts(&pair, BYTES / ROWS * 2 + BYTES, 0);
        part = frit_slice(x, FRIT_SLICES({0}, {4, 8, 2}));
        part = frit_to_device(frit_take(part), pair.to);
        assert_int_equal(pair.to_script.peer_copies, 3);
        assert_int_equal(pair.from_script.launches, as_it_lies ? 0 : 2);
        expect_sum(rows, 2 * COLUMNS, 4 * COLUMNS - 1, (6 * COLUMNS - 1) * (double)COLUMNS);
        expect_sum(turned, 0, N - 1, SUM);
        expect_sum(part, 4, 7 * COLUMNS + 6, 2 * COLUMNS * 28.0 + ROWS * 10);
        frit_release(x);
        close_pair(&pair);
    }
}

static void test_no_elements(void **state)
{
    struct pair pair = {0};
    frit_tensor *x;

    (void)state;
    open_pair(&pair, false);
    x = frit_from_host(pair.from, FRIT_F32, FRIT_SHAPE(0), NULL, 0);
    x = frit_to_device(frit_take(x), pair.to);
    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    assert_int_equal(pair.to_script.peer_copies, 0);
    frit_release(x);
    close_pair(&pair);
}

/* ---- through the host's memory ---- */

static void expect_through_host(struct pair *pair)
{
    frit_tensor *x = frit_to_device(frit_take(numbers(pair->from)), pair->to);

    assert_int_equal(frit_tensor_status(x), FRIT_OK);
    expect_counts(pair, 0, BYTES);
    assert_int_equal(pair->to_script.peer_copies, 0);
    expect_sum(x, 0, N - 1, SUM);
    close_pair(pair);
}

static void test_unsupported(void **state)
{
    (void)state;
    for (int visible = 0; visible < 2; visible++) {
        struct pair pair = {.from_script.host_visible = visible,
                            .to_script.host_visible = visible,
                            .to_script.inline_queue = visible,
                            .to_script.copy_status = FRIT_UNSUPPORTED};

        open_pair(&pair, false);
        expect_through_host(&pair);
        assert_int_equal(pair.to_script.writes, !visible);
    }
}

static void test_no_slot(void **state)
{
    struct pair pair = {.from_script.no_copies = true};

    (void)state;
    open_pair(&pair, false);
    expect_through_host(&pair);
}

static void test_devices_of_two_drivers(void **state)
{
    struct pair pair = {0};

    (void)state;
    open_pair(&pair, true);
    expect_through_host(&pair);
}

/* ---- failures ---- */

/* The move fails, leaves nothing, and works at the next attempt. */
static void expect_failure(struct pair *pair, frit_status status, const char *text)
{
    frit_tensor *x = numbers(pair->from), *y = frit_to_device(x, pair->to);

    assert_int_equal(frit_tensor_status(y), status);
    if (!strstr(frit_tensor_error(y), text))
        fail_msg("'%s'", frit_tensor_error(y));
    frit_release(y);
    expect_no_buffers(pair->to);
    expect_counts(pair, 0, 0);
    pair->to_script.copy_status = FRIT_OK;
    pair->to_script.fail_allocs = 0;
    y = frit_to_device(x, pair->to);
    expect_counts(pair, BYTES, 0);
    expect_sum(y, 0, N - 1, SUM);
    frit_release(x);
    close_pair(pair);
}

static void test_a_refused_copy(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        struct pair pair = {.to_script.copy_status = FRIT_IO, .to_script.silent = silent};

        open_pair(&pair, false);
        expect_failure(&pair, FRIT_IO,
                       silent ? "copy_from failed and gave no reason" : "copy refused");
    }
}

static void test_a_copy_that_fails_late(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        struct pair pair = {.to_script.fail_copies = true, .to_script.inline_queue = inside};

        open_pair(&pair, false);
        expect_failure(&pair, FRIT_TIMEOUT, "smoke came out");
    }
}

static void test_no_memory_there(void **state)
{
    struct pair pair = {.to_script.fail_allocs = 100}; /* the host tries again */

    (void)state;
    open_pair(&pair, false);
    expect_failure(&pair, FRIT_NO_DEVICE_MEMORY, "none left");
}

/* Invalid elements are invalid on the other device, too. */
static void test_a_spoiled_source(void **state)
{
    struct pair pair = {.from_script.complete_status = FRIT_TIMEOUT};
    frit_tensor *x, *y;

    (void)state;
    open_pair(&pair, false);
    x = frit_neg(frit_take(numbers(pair.from)));
    assert_int_equal(frit_flush(pair.from, NULL), FRIT_OK);
    y = frit_to_device(x, pair.to);
    assert_int_equal(frit_tensor_status(y), FRIT_TIMEOUT);
    assert_non_null(strstr(frit_tensor_error(y), "neg failed on scripted:0"));
    frit_release(x);
    frit_release(y);
    close_pair(&pair);
}

/* The loss is the one's, whose reason is reported; the other goes on. */
static void test_a_lost_device(void **state)
{
    (void)state;
    for (int source = 0; source < 2; source++) {
        struct pair pair = {0};
        frit_tensor *x, *y;

        open_pair(&pair, false);
        x = numbers(pair.from);
        (source ? &pair.from_script : &pair.to_script)->lose = true;
        y = frit_to_device(x, pair.to);
        assert_int_equal(frit_tensor_status(y), FRIT_DEVICE_LOST);
        assert_non_null(strstr(frit_tensor_error(y), "the server closed the connection"));
        assert_int_equal(device_check_loss(pair.from, NULL), source ? FRIT_DEVICE_LOST : FRIT_OK);
        assert_int_equal(device_check_loss(pair.to, NULL), source ? FRIT_OK : FRIT_DEVICE_LOST);
        frit_release(x);
        frit_release(y);
        close_pair(&pair);
    }
}

/* Returns how many failures were reported. */
static int fail_each_malloc(frit_status copy_status)
{
    bool hit = true;
    int reports = 0;

    for (long n = 0; hit; n++) {
        struct pair pair = {.to_script.copy_status = copy_status};
        frit_tensor *x, *y;
        frit_status status;

        open_pair(&pair, false);
        x = numbers(pair.from);
        failing_alloc_arm(n);
        y = frit_to_device(x, pair.to);
        hit = failing_alloc_disarm();
        status = frit_tensor_status(y);
        assert_true(status == FRIT_OK || (hit && status == FRIT_NO_HOST_MEMORY));
        reports += status != FRIT_OK;
        if (status)
            frit_release(y);
        else
            expect_sum(y, 0, N - 1, SUM);
        frit_release(x);
        close_pair(&pair);
    }
    return reports;
}

/* The staging memory is one more. */
static void test_each_malloc_fails(void **state)
{
    const int direct = fail_each_malloc(FRIT_OK);

    (void)state;
    assert_true(direct > 2);
    assert_int_equal(fail_each_malloc(FRIT_UNSUPPORTED), direct + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_pending_results),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_no_elements),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_no_slot),
        cmocka_unit_test(test_devices_of_two_drivers),
        cmocka_unit_test(test_a_refused_copy),
        cmocka_unit_test(test_a_copy_that_fails_late),
        cmocka_unit_test(test_no_memory_there),
        cmocka_unit_test(test_a_spoiled_source),
        cmocka_unit_test(test_a_lost_device),
        cmocka_unit_test(test_each_malloc_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
