/* SPDX-License-Identifier: Apache-2.0 */
/* Packed types: every value of each comes back from its bits, what lies between goes to the
 * nearest, elements stand in a byte from the low bits up. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include <frit/op.h>
#include <frit/types.h>

#include "plugins/reference/packed.h"

static const uint32_t types[] = {FRIT_F8E4M3,     FRIT_F8E5M2, FRIT_F8E4M3FNUZ,
                                 FRIT_F8E5M2FNUZ, FRIT_F8E8M0, FRIT_F4E2M1,
                                 FRIT_Q8,         FRIT_Q4,     FRIT_Q2};

enum { N_TYPES = sizeof types / sizeof *types };

static void every_value_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < N_TYPES; i++)
        for (unsigned bits = 0; bits < 1u << frit_dtype_bits(types[i]); bits++) {
            double value = packed_decode(types[i], (uint8_t)bits);

            if (isfinite(value))
                assert_int_equal(packed_encode(types[i], false, value), bits);
        }
}

static void corners_of_the_small_floats(void **state)
{
    (void)state;
    assert_true(packed_decode(FRIT_F8E4M3, 0x7e) == 448);
    assert_true(isnan(packed_decode(FRIT_F8E4M3, 0x7f)));
    assert_true(packed_decode(FRIT_F8E4M3, 0x01) == 0x1p-9);
    assert_true(packed_decode(FRIT_F8E5M2, 0x7b) == 57344);
    assert_true(packed_decode(FRIT_F8E5M2, 0xfc) == -INFINITY);
    assert_true(isnan(packed_decode(FRIT_F8E5M2, 0x7d)));
    assert_true(packed_decode(FRIT_F4E2M1, 0xf) == -6);
    assert_int_equal(packed_encode(FRIT_F8E4M3, false, NAN), 0x7f);
    assert_int_equal(packed_encode(FRIT_F4E2M1, false, NAN), 0);
    assert_int_equal(packed_encode(FRIT_F8E5M2, false, -INFINITY), 0xfb);
    assert_int_equal(packed_encode(FRIT_F4E2M1, false, 2.5), 0x4); /* a tie: to 2, which is even */
    assert_int_equal(packed_encode(FRIT_F4E2M1, false, 5), 0x6);
    assert_int_equal(packed_encode(FRIT_F8E4M3, false, -0.0), 0x80);
}

static void floats_with_one_zero(void **state)
{
    static const uint32_t fnuz[] = {FRIT_F8E4M3FNUZ, FRIT_F8E5M2FNUZ};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(isnan(packed_decode(fnuz[i], 0x80)));
        assert_int_equal(packed_encode(fnuz[i], false, NAN), 0x80);
        assert_int_equal(packed_encode(fnuz[i], false, -0.0), 0);
        assert_int_equal(packed_encode(fnuz[i], false, -1e-9), 0);
        assert_int_equal(packed_encode(fnuz[i], false, -INFINITY), 0xff);
    }
    assert_true(packed_decode(FRIT_F8E4M3FNUZ, 0x7f) == 240);
    assert_true(packed_decode(FRIT_F8E4M3FNUZ, 0x01) == 0x1p-10);
    assert_true(packed_decode(FRIT_F8E5M2FNUZ, 0xff) == -57344);
    assert_true(packed_decode(FRIT_F8E5M2FNUZ, 0x01) == 0x1p-17);
}

static void scales_are_powers_of_two(void **state)
{
    (void)state;
    assert_true(packed_decode(FRIT_F8E8M0, 0) == 0x1p-127);
    assert_true(packed_decode(FRIT_F8E8M0, 127) == 1);
    assert_true(packed_decode(FRIT_F8E8M0, 254) == 0x1p127);
    assert_true(isnan(packed_decode(FRIT_F8E8M0, 255)));
    assert_int_equal(packed_encode(FRIT_F8E8M0, false, NAN), 255);
    assert_int_equal(packed_encode(FRIT_F8E8M0, false, -3), 0);
    assert_int_equal(packed_encode(FRIT_F8E8M0, false, INFINITY), 254);
    assert_int_equal(packed_encode(FRIT_F8E8M0, false, 1.5), 128); /* a tie: 128 is even */
    assert_int_equal(packed_encode(FRIT_F8E8M0, false, 3), 128);
    assert_int_equal(packed_encode(FRIT_F8E8M0, false, 3.01), 129);
}

static void integers_are_clipped(void **state)
{
    (void)state;
    assert_int_equal(packed_encode(FRIT_Q8, false, -300), 0x80);
    assert_int_equal(packed_encode(FRIT_Q8, true, -300), 0x81);
    assert_int_equal(packed_encode(FRIT_Q4, true, -INFINITY), 0x9);
    assert_int_equal(packed_encode(FRIT_Q4, false, 2.5), 2);
    assert_int_equal(packed_encode(FRIT_Q2, false, 9), 1);
    assert_int_equal(packed_encode(FRIT_Q2, false, NAN), 0);
    assert_true(packed_decode(FRIT_Q2, 3) == -1);
}

static void low_bits_come_first(void **state)
{
    static const uint8_t fours[] = {0x1, 0xf, 0x8}, twos[] = {1, 0, 3, 2, 3};
    unsigned char four[2], two[2];

    (void)state;
    memset(four, 0xff, sizeof four);
    memset(two, 0xff, sizeof two);
    for (int i = 0; i < 3; i++)
        packed_put(FRIT_Q4, (char *)four, i, fours[i]);
    for (int i = 0; i < 5; i++)
        packed_put(FRIT_Q2, (char *)two, i, twos[i]);
    assert_int_equal(four[0], 0xf1);
    assert_int_equal(four[1], 0x08); /* the rest of the last byte is 0 */
    assert_int_equal(two[0], 0xb1);
    assert_int_equal(two[1], 0x03);
    for (int i = 0; i < 5; i++)
        assert_int_equal(packed_get(FRIT_Q2, (char *)two, i), twos[i]);
}

static void scales_have_types(void **state)
{
    (void)state;
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_none, 0.1) == 0.1);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_f32, 0.1) == (double)0.1f);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_f16, 2049) == 2048);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_bf16, 257) == 256);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_ue4m3, 1e9) == 448);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_ue4m3, -1) == 0);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_ue8m0, 4) == 4);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_ue8m0, 4.001) == 8);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_ue8m0, 0) == 0x1p-127);
    assert_true(packed_scale(FRIT_CHOICE_quant_scale_ue8m0, INFINITY) == 0x1p127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_comes_back), cmocka_unit_test(corners_of_the_small_floats),
        cmocka_unit_test(floats_with_one_zero),   cmocka_unit_test(scales_are_powers_of_two),
        cmocka_unit_test(integers_are_clipped),   cmocka_unit_test(low_bits_come_first),
        cmocka_unit_test(scales_have_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
