/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as numbers: every pattern of the small floats in order, and integers exactly. */
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "element.h"

/* A float type whose patterns fit in 16 bits: the finite ones of either sign, the largest number.
 */
struct small_float {
    uint32_t dtype, finite;
    double largest, least;
    bool infinite;
};

static const struct small_float small_floats[] = {
    {FRIT_F16, 0x7c00, 65504, 0x1p-24, true},
    {FRIT_BF16, 0x7f80, 0x1.fep127, 0x1p-133, true},
    {FRIT_F8E4M3, 0x7f, 448, 0x1p-9, false},
    {FRIT_F8E5M2, 0x7c, 57344, 0x1p-16, true},
    {FRIT_F4E2M1, 8, 6, 0.5, false},
    {FRIT_F8E4M3FNUZ, 0x80, 240, 0x1p-10, false},
    {FRIT_F8E5M2FNUZ, 0x80, 57344, 0x1p-17, false},
};

static double value(uint32_t dtype, uint32_t bits)
{
    uint16_t element = (uint16_t)bits;

    return element_value(dtype, &element, 0);
}

static void small_floats_rise_with_their_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof small_floats / sizeof *small_floats; k++) {
        const struct small_float *f = &small_floats[k];
        uint32_t sign = 1u << (frit_dtype_bits(f->dtype) - 1);

        for (uint32_t bits = 1; bits < f->finite; bits++) {
            assert_true(value(f->dtype, bits) > value(f->dtype, bits - 1));
            assert_true(value(f->dtype, bits | sign) == -value(f->dtype, bits));
        }
        assert_true(value(f->dtype, 1) == f->least);
        assert_true(value(f->dtype, f->finite - 1) == f->largest);
        for (uint32_t bits = f->finite; bits < sign; bits++)
            assert_true(f->infinite && bits == f->finite ? isinf(value(f->dtype, bits))
                                                         : isnan(value(f->dtype, bits)));
    }
}

static void one_zero_and_no_zero(void **state)
{
    (void)state;
    assert_true(isnan(value(FRIT_F8E4M3FNUZ, 0x80)) && isnan(value(FRIT_F8E5M2FNUZ, 0x80)));
    assert_true(value(FRIT_F8E8M0, 0) == 0x1p-127 && value(FRIT_F8E8M0, 254) == 0x1p127);
    assert_true(isnan(value(FRIT_F8E8M0, 255)));
}

static void packed_elements_lie_low_bits_first(void **state)
{
    static const uint8_t nibbles[] = {0x2f, 0x80}, pairs[] = {0x1b};
    static const double of_nibbles[] = {-1, 2, 0, -8}, of_pairs[] = {-1, -2, 1, 0};

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(element_value(FRIT_Q4, nibbles, i) == of_nibbles[i]);
        assert_true(element_value(FRIT_Q2, pairs, i) == of_pairs[i]);
    }
    assert_true(element_value(FRIT_F4E2M1, nibbles, 0) == -6);
    assert_true(element_value(FRIT_F4E2M1, nibbles, 1) == 1);
}

static void integers_are_exact(void **state)
{
    const int64_t large = INT64_MAX - 1;
    const uint64_t most = UINT64_MAX;
    const int8_t minus = -5;
    frit_scalar scalar = element_scalar(FRIT_I64, &large, 0);

    (void)state;
    assert_true(scalar.kind == FRIT_SCALAR_I64 && scalar.bits == (uint64_t)large);
    scalar = element_scalar(FRIT_U64, &most, 0);
    assert_true(scalar.kind == FRIT_SCALAR_U64 && scalar.bits == most);
    scalar = element_scalar(FRIT_I8, &minus, 0);
    assert_true(scalar.kind == FRIT_SCALAR_I64 && (int64_t)scalar.bits == -5);
    assert_int_equal(element_scalar(FRIT_NO_DTYPE, &minus, 0).kind, FRIT_SCALAR_NONE);
    assert_true(isnan(element_value(FRIT_NO_DTYPE, &minus, 0)));
}

/* Packed elements beyond those of the first byte are looked at too. */
static void packed_elements_are_compared(void **state)
{
    static const uint8_t a[] = {0x21, 0x03}, b[] = {0x21, 0x05};
    struct difference difference;

    (void)state;
    element_compare(FRIT_Q4, a, b, 3, &difference);
    assert_int_equal(difference.differ, 1);
    assert_true(difference.max_abs == 2 && difference.max_ulp == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_rise_with_their_bits),
        cmocka_unit_test(one_zero_and_no_zero),
        cmocka_unit_test(packed_elements_lie_low_bits_first),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(packed_elements_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
