/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "ir/half.h"

/* A number of 16 bits by its definition: `fraction` bits of it. */
static double value_of(uint32_t bits, unsigned fraction)
{
    uint32_t exponent = (bits & 0x7fff) >> fraction, rest = bits & ((1u << fraction) - 1);
    int bias = (1 << (14 - fraction)) - 1;
    double value =
        exponent ? ldexp((double)(rest + (1u << fraction)), (int)exponent - bias - (int)fraction)
                 : ldexp((double)rest, 1 - bias - (int)fraction);

    return bits & 0x8000 ? -value : value;
}

/* Every number comes back; between two neighbours the middle goes to the even one, what is nearer
 * to one goes there.  Infinity also stands for the number that is too large by one step. */
static void check(unsigned fraction)
{
    uint32_t infinity = half_layout(fraction).infinity;

    for (uint32_t bits = 0; bits < infinity; bits++) {
        double low = value_of(bits, fraction), high = value_of(bits + 1, fraction);
        float middle = (float)((low + high) / 2);
        uint16_t even = (uint16_t)(bits + (bits & 1));

        assert_true((double)half_load((uint16_t)bits, fraction) == low);
        assert_true((double)half_load((uint16_t)(bits | 0x8000), fraction) == -low);
        assert_int_equal(half_store((float)low, fraction), bits);
        assert_int_equal(half_store((float)-low, fraction), bits | 0x8000);
        assert_int_equal(half_store(middle, fraction), even);
        assert_int_equal(half_store(-middle, fraction), even | 0x8000);
        assert_int_equal(half_store(nextafterf(middle, 0), fraction), bits);
        assert_int_equal(half_store(nextafterf(middle, INFINITY), fraction), bits + 1);
    }
    assert_true(isinf(half_load((uint16_t)infinity, fraction)));
    assert_int_equal(half_store(INFINITY, fraction), infinity);
    assert_int_equal(half_store(-INFINITY, fraction), infinity | 0x8000);
    for (uint32_t bits = infinity + 1; bits < 0x8000; bits++) {
        float nan = half_load((uint16_t)bits, fraction);

        assert_true(isnan(nan));
        assert_true(isnan(half_load(half_store(nan, fraction), fraction)));
    }
}

/* Binary16, the upper half of a binary32, and what types of other layouts could be. */
static void test_layouts(void **state)
{
    (void)state;
    for (unsigned fraction = 7; fraction <= 12; fraction++)
        check(fraction);
}

static void test_f16_far_ends(void **state)
{
    (void)state;
    assert_int_equal(half_store(3e38f, 10), 0x7c00);
    assert_int_equal(half_store(1e-40f, 10), 0);
}

static void test_bf16_of_low_nan(void **state)
{
    uint32_t low_nan = 0x7f800001;
    float nan;

    (void)state;
    memcpy(&nan, &low_nan, sizeof(nan));
    assert_true(isnan(half_load(half_store(nan, 7), 7)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_f16_far_ends),
        cmocka_unit_test(test_bf16_of_low_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
