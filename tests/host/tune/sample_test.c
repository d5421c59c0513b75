/* SPDX-License-Identifier: Apache-2.0 */
/* Elements for trials, and the comparison of results. */
#include "tune/sample.h"

#include "unit.h"

#include <math.h>
#include <string.h>

#include <frit/program.h>
#include <frit/types.h>

enum { N = 1000 };

static void floats_are_of_size_one(void **state)
{
    float numbers[N];
    uint64_t random = 7;
    int negative = 0, small = 0;

    (void)state;
    sample_fill(numbers, FRIT_F32, N, 0, &random);
    for (int i = 0; i < N; i++) {
        assert_true(fabsf(numbers[i]) >= 0.5f && fabsf(numbers[i]) < 2);
        negative += numbers[i] < 0;
        small += fabsf(numbers[i]) < 1;
    }
    assert_in_range(negative, N / 3, 2 * N / 3);
    assert_in_range(small, N / 3, 2 * N / 3);
}

static void integers_are_positions(void **state)
{
    int64_t wide[N];
    uint8_t bools[N];
    uint64_t random = 7, seen = 0;

    (void)state;
    sample_fill(wide, FRIT_I64, N, 5, &random);
    sample_fill(bools, FRIT_BOOL, N, 5, &random);
    for (int i = 0; i < N; i++) {
        assert_in_range(wide[i], 0, 4);
        assert_in_range(bools[i], 0, 1);
        seen |= 1u << wide[i] | 32u << bools[i];
    }
    assert_int_equal(seen, 127);
}

static int64_t differing(const float *got, const float *expected, int64_t n, uint32_t class)
{
    struct sample_difference difference;

    sample_compare(got, expected, FRIT_F32, n, class, &difference);
    return difference.count;
}

static void classes_allow_more_and_more(void **state)
{
    static const float near[] = {0, 1e-5f, 1e-3f, 0.03f, 0.5f}; /* of the largest */
    const float expected[] = {100, 3};

    (void)state;
    for (uint32_t class = FRIT_NUMERIC_EXACT; class <= FRIT_NUMERIC_RELAXED; class ++)
        for (uint32_t i = 0; i < sizeof(near) / sizeof(*near); i++) {
            const float got[] = {100, 3 + 100 * near[i]};

            assert_int_equal(differing(got, expected, 2, class), i > class);
        }
}

static void special_values_are_themselves(void **state)
{
    const float nan = NAN, other_nan = -NAN, inf = INFINITY, less = -INFINITY, zero = 0,
                minus = -0.0f, one = 1;

    (void)state;
    for (uint32_t class = FRIT_NUMERIC_EXACT; class <= FRIT_NUMERIC_RELAXED; class ++) {
        assert_int_equal(differing(&other_nan, &nan, 1, class), 0);
        assert_int_equal(differing(&one, &nan, 1, class), 1);
        assert_int_equal(differing(&nan, &one, 1, class), 1);
        assert_int_equal(differing(&inf, &inf, 1, class), 0);
        assert_int_equal(differing(&less, &inf, 1, class), 1);
        assert_int_equal(differing(&one, &inf, 1, class), 1);
        assert_int_equal(differing(&minus, &zero, 1, class), class == FRIT_NUMERIC_EXACT);
    }
}

static void narrow_types_are_decoded(void **state)
{
    const uint16_t half[] = {0x3c00 /* 1 */, 0x7e00 /* NaN */, 0x0001}, bf16[] = {0x3f80, 0x7fc0};
    const uint8_t e4m3[] = {0x38 /* 1 */, 0x7f /* NaN */}, other[] = {0x3a /* 1.25 */, 0xff};
    uint16_t got[] = {0x3c01, 0xfe00, 0x0001};
    struct sample_difference difference;

    (void)state;
    sample_compare(got, half, FRIT_F16, 3, FRIT_NUMERIC_REORDERED, &difference);
    assert_int_equal(difference.count, 0);
    sample_compare(got, half, FRIT_F16, 3, FRIT_NUMERIC_EXACT, &difference);
    assert_int_equal(difference.count, 1);
    assert_int_equal(difference.index, 0);
    assert_true(difference.got == 1 + 0x1p-10 && difference.expected == 1);
    got[0] = 0x3f90;
    got[1] = 0xffc0;
    sample_compare(got, bf16, FRIT_BF16, 2, FRIT_NUMERIC_REORDERED, &difference);
    assert_int_equal(difference.count, 1);
    assert_true(difference.got == 1.125);
    sample_compare(other, e4m3, FRIT_F8E4M3, 2, FRIT_NUMERIC_EXACT, &difference);
    assert_int_equal(difference.count, 1);
    assert_true(difference.got == 1.25);
}

static void other_types_have_the_same_bits(void **state)
{
    const int32_t a[] = {1, 2, 3}, b[] = {1, 2, 259};
    struct sample_difference difference;

    (void)state;
    sample_compare(a, a, FRIT_I32, 3, FRIT_NUMERIC_RELAXED, &difference);
    assert_int_equal(difference.count, 0);
    assert_int_equal(difference.index, -1);
    sample_compare(b, a, FRIT_I32, 3, FRIT_NUMERIC_RELAXED, &difference);
    assert_int_equal(difference.count, 1);
}

static void one_byte_is_enough(void **state)
{
    unsigned char bytes[N];

    (void)state;
    memset(bytes, 0xff, N);
    assert_true(sample_is_untouched(bytes, N, 0xff));
    bytes[N - 1] = 0;
    assert_false(sample_is_untouched(bytes, N, 0xff));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_of_size_one),
        cmocka_unit_test(integers_are_positions),
        cmocka_unit_test(classes_allow_more_and_more),
        cmocka_unit_test(special_values_are_themselves),
        cmocka_unit_test(narrow_types_are_decoded),
        cmocka_unit_test(other_types_have_the_same_bits),
        cmocka_unit_test(one_byte_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
