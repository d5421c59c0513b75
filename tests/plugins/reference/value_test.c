/* SPDX-License-Identifier: Apache-2.0 */
/* Elements: the 16-bit floats over all their bit patterns, wrapping of integers, steps of both
 * signs. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "plugins/reference/value.h"

/* A 16-bit float by the definition of its fields, for checking only. */
struct format {
    uint32_t dtype;
    int frac;
    int bias;
};

static const struct format formats[] = {{FRIT_F16, 10, 15}, {FRIT_BF16, 7, 127}};

static double widen(const struct format *format, unsigned bits)
{
    uint16_t element = (uint16_t)bits;

    return value_get(format->dtype, (const char *)&element).real;
}

static uint16_t narrow(const struct format *format, double real)
{
    uint16_t element;

    value_put(format->dtype, (char *)&element, (union value){.real = real});
    return element;
}

static unsigned infinity_of(const struct format *format)
{
    return ((1u << (15 - format->frac)) - 1) << format->frac;
}

static double defined(const struct format *format, unsigned bits)
{
    int exponent = (int)(bits >> format->frac), fraction = (int)(bits & ((1u << format->frac) - 1));

    if (exponent == 0)
        return ldexp(fraction, 1 - format->bias - format->frac);
    return ldexp(fraction + (1 << format->frac), exponent - format->bias - format->frac);
}

static void widening_is_exact(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < formats + 2; f++) {
        for (unsigned bits = 0; bits < infinity_of(f); bits++) {
            assert_true(widen(f, (uint16_t)bits) == defined(f, bits));
            assert_true(widen(f, (uint16_t)(bits | 0x8000)) == -defined(f, bits));
        }
        assert_true(signbit(widen(f, 0x8000)));
        assert_true(isinf(widen(f, (uint16_t)infinity_of(f))));
        assert_true(widen(f, (uint16_t)(infinity_of(f) | 0x8000)) < 0);
        for (unsigned bits = infinity_of(f) + 1; bits < 0x8000; bits++)
            assert_true(isnan(widen(f, (uint16_t)bits)));
    }
}

static void narrowing_undoes_widening(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < formats + 2; f++)
        for (unsigned bits = 0; bits < 0x10000; bits++) {
            unsigned back = narrow(f, widen(f, (uint16_t)bits));

            if ((bits & 0x7fff) <= infinity_of(f))
                assert_int_equal(back, bits);
            else
                assert_true((back & 0x7fff) > infinity_of(f)); /* still NaN, perhaps made quiet */
        }
}

/* Between any two neighbours, the largest finite number and infinity among them: the middle goes to
 * the even one, and what lies a little off the middle to the nearer. */
static void narrowing_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < formats + 2; f++)
        for (unsigned bits = 0; bits < infinity_of(f); bits++) {
            double middle = (defined(f, bits) + defined(f, bits + 1)) / 2;
            unsigned even = bits + (bits & 1);

            assert_int_equal(narrow(f, middle), even);
            assert_int_equal(narrow(f, -middle), even | 0x8000);
            assert_int_equal(narrow(f, nextafter(middle, 0)), bits);
            assert_int_equal(narrow(f, nextafter(middle, INFINITY)), bits + 1);
        }
}

static void narrowing_the_far_ends(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < formats + 2; f++) {
        assert_int_equal(narrow(f, 1e300), infinity_of(f));
        assert_int_equal(narrow(f, -1e300), infinity_of(f) | 0x8000);
        assert_int_equal(narrow(f, INFINITY), infinity_of(f));
        assert_int_equal(narrow(f, 1e-300), 0);
        assert_int_equal(narrow(f, -0x1p-1074), 0x8000);
        assert_int_equal(narrow(f, -0.0), 0x8000);
    }
}

static void integers_keep_low_bits(void **state)
{
    (void)state;
    assert_int_equal(value_round(FRIT_I8, (union value){.sint = 128}).sint, -128);
    assert_int_equal(value_round(FRIT_I16, (union value){.sint = -32769}).sint, 32767);
    assert_int_equal(value_round(FRIT_U8, (union value){.uint = 0 - 1ull}).uint, 255);
    assert_int_equal(value_round(FRIT_U32, (union value){.uint = 1ull << 32}).uint, 0);
    assert_true(value_round(FRIT_U64, (union value){.uint = UINT64_MAX}).uint == UINT64_MAX);
}

static void kinds(void **state)
{
    (void)state;
    assert_int_equal(value_kind(FRIT_BF16), VALUE_REAL);
    assert_int_equal(value_kind(FRIT_I8), VALUE_SINT);
    assert_int_equal(value_kind(FRIT_U64), VALUE_UINT);
    assert_int_equal(value_kind(FRIT_BOOL), VALUE_UINT);
    assert_true(value_has(FRIT_BOOL));
    assert_false(value_has(FRIT_F8E4M3));
    assert_false(value_has(FRIT_NO_DTYPE));
}

/* Backwards in, spread out; every type of 8 to 64 bits. */
static void steps(void **state)
{
    static const uint32_t dtypes[] = {FRIT_I8,  FRIT_I16, FRIT_I32, FRIT_I64,
                                      FRIT_F32, FRIT_F64, FRIT_F16};

    (void)state;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        int64_t size = value_size(dtypes[k]);
        char from[4 * 8], to[8 * 8];
        union value lanes[4];

        memset(to, 0x5a, sizeof to);
        for (int i = 0; i < 4; i++) {
            union value value = value_kind(dtypes[k]) == VALUE_REAL ? (union value){.real = i - 1}
                                                                    : (union value){.sint = i - 1};

            value_put(dtypes[k], from + i * size, value);
        }
        value_load(dtypes[k], from + 3 * size, -size, 4, lanes);
        value_store(dtypes[k], to, 2 * size, 4, lanes);
        for (int i = 0; i < 4; i++) {
            assert_memory_equal(to + 2 * i * size, from + (3 - i) * size, (size_t)size);
            assert_int_equal(to[(2 * i + 1) * size], 0x5a);
        }
        value_move(size, to, size, from + 3 * size, -size, 4);
        assert_memory_equal(to, from + 3 * size, (size_t)size);
        assert_memory_equal(to + 3 * size, from, (size_t)size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widening_is_exact),
        cmocka_unit_test(narrowing_undoes_widening),
        cmocka_unit_test(narrowing_rounds_to_nearest_even),
        cmocka_unit_test(narrowing_the_far_ends),
        cmocka_unit_test(integers_keep_low_bits),
        cmocka_unit_test(kinds),
        cmocka_unit_test(steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
