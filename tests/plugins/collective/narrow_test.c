/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over floats of 16 bits that this processor runs, and the plain ones, beside the
 * conversion of one number. */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include <frit/types.h>

#include "collective/narrow.h"
#include "ir/half.h"

enum { ALL = 65536, SLICE = 1003 }; /* no multiple of a vector's lanes */

static bool same(float a, float b)
{
    return half_bits_of(a) == half_bits_of(b) || (a != a && b != b);
}

static void expect_loads(const struct narrow *narrow, uint32_t fraction)
{
    static char bits[2 * ALL + 1];
    static float loaded[SLICE];

    for (uint32_t i = 0; i < ALL; i++)
        memcpy(bits + 1 + 2 * i, &(uint16_t){(uint16_t)i}, 2);
    for (uint32_t at = 0; at < ALL; at += SLICE) {
        const uint32_t n = ALL - at < SLICE ? ALL - at : SLICE;

        narrow->load(loaded, bits + 1 + 2 * at, n);
        for (uint32_t i = 0; i < n; i++) {
            if (!same(loaded[i], half_load((uint16_t)(at + i), fraction)))
                fail_msg("%#x is loaded as %a", at + i, (double)loaded[i]);
        }
    }
}

static void expect_stored(const struct narrow *narrow, uint32_t fraction, const float *reals,
                          size_t n)
{
    char bits[2 * SLICE + 1];

    narrow->store(bits + 1, reals, n);
    for (size_t i = 0; i < n; i++) {
        uint16_t stored;

        memcpy(&stored, bits + 1 + 2 * i, 2);
        if (stored != half_store(reals[i], fraction))
            fail_msg("%a is stored as %#x", (double)reals[i], stored);
    }
}

/* Reals from all over the line, and those beside the middle of two neighbours. */
static void expect_stores(const struct narrow *narrow, uint32_t fraction)
{
    static float reals[SLICE];
    size_t n = 0;

    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 8191) {
        reals[n++] = half_real_of((uint32_t)bits);
        if (n == SLICE) {
            expect_stored(narrow, fraction, reals, n);
            n = 0;
        }
    }
    expect_stored(narrow, fraction, reals, n);
    n = 0;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        const float middle =
            (half_load((uint16_t)half, fraction) + half_load((uint16_t)(half + 1), fraction)) / 2;

        for (uint32_t d = 0; d < 3; d++)
            reals[n++] = half_real_of(half_bits_of(middle) - 1 + d);
        if (n > SLICE - 3 || half == 0x7bff) {
            expect_stored(narrow, fraction, reals, n);
            n = 0;
        }
    }
}

/* Sums, halved and not, to one of the operands and to elsewhere. */
static void expect_exchanges(const struct narrow *narrow, uint32_t fraction)
{
    static char a[2 * SLICE + 1], b[2 * SLICE], other[2 * SLICE];
    uint16_t expected[SLICE], bits[2];
    uint64_t x = 1;

    for (uint32_t halved = 0; halved < 2; halved++) {
        for (uint32_t i = 0; i < SLICE; i++) {
            float sum;

            x = x * 6364136223846793005u + 1442695040888963407u;
            bits[0] = (uint16_t)(x >> 20);
            bits[1] = (uint16_t)(x >> 40);
            memcpy(a + 1 + 2 * i, &bits[0], 2);
            memcpy(b + 2 * i, &bits[1], 2);
            sum = half_load(bits[0], fraction) + half_load(bits[1], fraction);
            expected[i] = half_store(halved ? sum / 2 : sum, fraction);
        }
        narrow->exchange((char *[]){a + 1, other}, a + 1, b, SLICE, halved);
        for (uint32_t i = 0; i < SLICE; i++) {
            memcpy(bits, a + 1 + 2 * i, 2);
            assert_memory_equal(other + 2 * i, bits, 2);
            if (!same(half_load(bits[0], fraction), half_load(expected[i], fraction)))
                fail_msg("element %u is %#x, not %#x", i, bits[0], expected[i]);
        }
    }
}

static void check(const struct narrow *narrow, uint32_t fraction)
{
    expect_loads(narrow, fraction);
    expect_stores(narrow, fraction);
    expect_exchanges(narrow, fraction);
}

static void test_f16(void **state)
{
    (void)state;
    check(&narrow_f16, 10);
    check(narrow_best(FRIT_F16), 10);
}

static void test_bf16(void **state)
{
    (void)state;
    check(&narrow_bf16, 7);
    check(narrow_best(FRIT_BF16), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
