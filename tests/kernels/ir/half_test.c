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

typedef float (*load_fn)(uint16_t bits);
typedef uint16_t (*store_fn)(float real);

/* Every number comes back; between two neighbours the middle goes to the even one, what is nearer
 * to one goes there.  `infinity` also stands for the number that is too large by one step. */
static void check(load_fn load, store_fn store, unsigned fraction, uint32_t infinity)
{
    for (uint32_t bits = 0; bits < infinity; bits++) {
        double low = value_of(bits, fraction), high = value_of(bits + 1, fraction);
        float middle = (float)((low + high) / 2);
        uint16_t even = (uint16_t)(bits + (bits & 1));

        assert_true((double)load((uint16_t)bits) == low);
        assert_true((double)load((uint16_t)(bits | 0x8000)) == -low);
        assert_int_equal(store((float)low), bits);
        assert_int_equal(store((float)-low), bits | 0x8000);
        assert_int_equal(store(middle), even);
        assert_int_equal(store(-middle), even | 0x8000);
        assert_int_equal(store(nextafterf(middle, 0)), bits);
        assert_int_equal(store(nextafterf(middle, INFINITY)), bits + 1);
    }
    assert_true(isinf(load((uint16_t)infinity)));
    assert_int_equal(store(INFINITY), infinity);
    assert_int_equal(store(-INFINITY), infinity | 0x8000);
    for (uint32_t bits = infinity + 1; bits < 0x8000; bits++) {
        assert_true(isnan(load((uint16_t)bits)));
        assert_true(isnan(load(store(load((uint16_t)bits)))));
    }
}

static void test_f16(void **state)
{
    (void)state;
    check(f16_load, f16_store, 10, 0x7c00);
    assert_int_equal(f16_store(3e38f), 0x7c00);
    assert_int_equal(f16_store(1e-40f), 0);
}

static void test_bf16(void **state)
{
    uint32_t low_nan = 0x7f800001;
    float nan;

    (void)state;
    check(bf16_load, bf16_store, 7, 0x7f80);
    memcpy(&nan, &low_nan, sizeof(nan));
    assert_true(isnan(bf16_load(bf16_store(nan))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
