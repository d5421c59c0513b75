/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/anchor.h"

#include "unit.h"

static void powers_of_two_are_their_own(void **state)
{
    (void)state;
    for (unsigned k = 0; k <= 63; k++)
        assert_int_equal(tune_anchor(UINT64_C(1) << k, TUNE_BALANCED), UINT64_C(1) << k);
    for (unsigned k = 0; k <= 62; k += 2)
        assert_int_equal(tune_anchor(UINT64_C(1) << k, TUNE_MINIMAL), UINT64_C(1) << k);
}

static void sizes_between_go_up(void **state)
{
    (void)state;
    for (unsigned k = 2; k <= 62; k++) {
        const uint64_t power = UINT64_C(1) << k, four = UINT64_C(1) << (k + k % 2);

        assert_int_equal(tune_anchor(power - 1, TUNE_BALANCED), power);
        assert_int_equal(tune_anchor(power / 2 + 1, TUNE_BALANCED), power);
        assert_int_equal(tune_anchor(power - 1, TUNE_MINIMAL), four);
    }
    assert_int_equal(tune_anchor(UINT64_MAX, TUNE_BALANCED), UINT64_MAX);
    assert_int_equal(tune_anchor((UINT64_C(1) << 62) + 1, TUNE_MINIMAL), (UINT64_C(1) << 62) + 1);
}

static void an_anchor_is_its_own(void **state)
{
    uint64_t size = 1;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        size = size * UINT64_C(6364136223846793005) + 1442695040888963407u;
        for (int level = TUNE_OFF; level <= TUNE_FULL; level++) {
            const uint64_t small = size >> (i % 64),
                           anchor = tune_anchor(small, (enum tune_level)level);

            assert_true(anchor >= small);
            assert_int_equal(tune_anchor(anchor, (enum tune_level)level), anchor);
        }
    }
    assert_int_equal(tune_anchor(0, TUNE_BALANCED), 0);
    assert_int_equal(tune_anchor(1000, TUNE_FULL), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_are_their_own),
        cmocka_unit_test(sizes_between_go_up),
        cmocka_unit_test(an_anchor_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
