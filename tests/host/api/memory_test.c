/* SPDX-License-Identifier: Apache-2.0 */
/* Where the memory of a real workload comes from, and what happens when there is none. */
#include "api/digits.h"

#include "api/rig.h"
#include <frit/inspect.h>

static void test_a_repeated_workload_allocates_nothing(void **state)
{
    const int64_t images = 5;
    struct digits mlp, cnn;
    struct rig rig;
    frit_err err = {.struct_size = sizeof(err)};
    int right;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(digits_open("digits-mlp", rig.dev, images, &mlp, &err), FRIT_OK);
    assert_int_equal(digits_open("digits-cnn", rig.dev, images, &cnn, &err), FRIT_OK);
    for (int i = 0; i < 2;
         i++) { /* the first time plans are made, the second time they are known */
        assert_int_equal(digits_run(&mlp, rig.dev, images, &right, &err), FRIT_OK);
        assert_int_equal(digits_run(&cnn, rig.dev, images, &right, &err), FRIT_OK);
    }
    frit_stats first = rig_stats(&rig);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(digits_run(&mlp, rig.dev, images, &right, &err), FRIT_OK);
        assert_int_equal(digits_run(&cnn, rig.dev, images, &right, &err), FRIT_OK);
    }
    frit_stats last = rig_stats(&rig);
    assert_int_equal(last.driver_allocs, first.driver_allocs);
    assert_int_equal(last.programs, first.programs);
    assert_int_equal(last.bytes_peak, first.bytes_peak);
    assert_true(last.launches > first.launches + 2000);
    digits_close(&mlp);
    digits_close(&cnn);
    rig_close(&rig);
}

static void test_the_networks_answer_right(void **state)
{
    struct digits digits;
    struct rig rig;
    frit_err err = {.struct_size = sizeof(err)};
    int right = 0;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(digits_open("digits-mlp", rig.dev, DIGITS_ALL, &digits, &err), FRIT_OK);
    assert_int_equal(digits_run(&digits, rig.dev, DIGITS_ALL, &right, &err), FRIT_OK);
    assert_int_equal(right, 485);
    digits_close(&digits);
    assert_int_equal(digits_open("digits-cnn", rig.dev, DIGITS_ALL, &digits, &err), FRIT_OK);
    assert_int_equal(digits_run(&digits, rig.dev, DIGITS_ALL, &right, &err), FRIT_OK);
    assert_int_equal(right, 495);
    digits_close(&digits);
    rig_close(&rig);
}

/* One tensor of digits-cnn is larger than the whole device: one trim, one retry, a clean error, and
 * then what fits still runs. */
static void test_a_small_device_says_so(void **state)
{
    const frit_setting setting = {"plugin.reference", "option.memory_bytes", "1048576"};
    struct digits digits;
    struct rig rig;
    frit_err err = {.struct_size = sizeof(err)};
    int right = 0;

    (void)state;
    rig_open(&rig, &setting, 1);
    assert_int_equal(digits_open("digits-cnn", rig.dev, DIGITS_ALL, &digits, &err), FRIT_OK);
    assert_int_equal(digits_run(&digits, rig.dev, DIGITS_ALL, &right, &err), FRIT_NO_DEVICE_MEMORY);
    assert_non_null(strstr(err.text, "conv"));
    assert_non_null(strstr(err.text, "1048576"));
    assert_int_equal(rig_stats(&rig).trims, 1);
    assert_int_equal(rig_stats(&rig).alloc_retries, 1);
    digits_close(&digits);
    assert_int_equal(digits_open("digits-mlp", rig.dev, 10, &digits, &err), FRIT_OK);
    assert_int_equal(digits_run(&digits, rig.dev, 10, &right, &err), FRIT_OK);
    digits_close(&digits);
    rig_close(&rig);
}

/* Twelve tensors of 4 MB fit into 50 MB; the thirteenth fails. */
static void test_a_small_device_can_be_filled(void **state)
{
    enum { FIT = 12, ELEMENTS = 1000000 };
    const frit_setting setting = {"plugin.reference", "option.memory_bytes", "50000000"};
    float *data = calloc(ELEMENTS, sizeof(*data));
    frit_tensor *held[FIT], *one_more;
    struct rig rig;

    (void)state;
    assert_non_null(data);
    rig_open(&rig, &setting, 1);
    for (int i = 0; i < FIT; i++) {
        held[i] = rig_f32(&rig, FRIT_SHAPE(ELEMENTS), data);
        assert_int_equal(frit_tensor_status(held[i]), FRIT_OK);
    }
    one_more = rig_f32(&rig, FRIT_SHAPE(ELEMENTS), data);
    assert_int_equal(frit_tensor_status(one_more), FRIT_NO_DEVICE_MEMORY);
    frit_release(one_more);
    for (int i = 0; i < FIT; i++)
        frit_release(held[i]);
    free(data);
    rig_close(&rig);
}

static void test_persistent_tensors_keep_their_chunks(void **state)
{
    static const float zeros[1000] = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL, 0);
    frit_persistent_begin(rig.dev);
    frit_tensor *w = rig_f32(&rig, FRIT_SHAPE(1000), zeros);
    frit_tensor *v = frit_add_f(w, 1);
    frit_persistent_end(rig.dev);

    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).driver_allocs, 2);
    assert_true(rig_stats(&rig).reserved_now < 10000);
    frit_release(w);
    frit_release(v);
    frit_trim(rig.dev);
    assert_int_equal(rig_stats(&rig).driver_frees, 0);
    rig_close(&rig);
}

static void test_persistent_tensors_stay_so(void **state)
{
    static const float zeros[1000] = {0};
    struct rig rig, other;

    (void)state;
    rig_open(&rig, NULL, 0);
    rig_open(&other, NULL, 0);
    frit_tensor *far = rig_f32(&other, FRIT_SHAPE(1000), zeros);

    frit_persistent_begin(rig.dev);
    frit_tensor *moved = frit_to_device(frit_take(far), rig.dev);
    frit_persistent_end(rig.dev);
    assert_int_equal(frit_write(moved, zeros, sizeof(zeros), NULL), FRIT_OK);
    assert_true(rig_stats(&rig).reserved_now < 10000);
    frit_release(moved);
    rig_close(&other);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_networks_answer_right),
        cmocka_unit_test(test_a_repeated_workload_allocates_nothing),
        cmocka_unit_test(test_a_small_device_says_so),
        cmocka_unit_test(test_a_small_device_can_be_filled),
        cmocka_unit_test(test_persistent_tensors_keep_their_chunks),
        cmocka_unit_test(test_persistent_tensors_stay_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
