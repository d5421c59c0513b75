/* SPDX-License-Identifier: Apache-2.0 */
/* What `frit conform` takes for right where a decomposition leaves the range of its type. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "conform/conform.h"
#include "conform/numbers.h"

/* One element of f32: `own` is what `reference` has, `exact` what f64 gives; NULL: not known. */
static bool is_right(enum conform_rule rule, float own, const double *exact, float given)
{
    const struct conform_wanted want = {.dtype = FRIT_F32,
                                        .count = 1,
                                        .own = &own,
                                        .wide = exact,
                                        .rule = rule,
                                        .ulp = 8,
                                        .most = 1,
                                        .terms = 1};
    char reason[CONFORM_REASON];

    return conform_compare(&want, &given, reason);
}

static void a_detour_out_of_range(void **state)
{
    const double exact = 1.5, beyond = (double)INFINITY, none = (double)NAN;

    (void)state;
    assert_true(is_right(CONFORM_PARTS, INFINITY, &exact, 1.5f));
    assert_true(is_right(CONFORM_PARTS, NAN, &exact, 1.5f + 0x1p-21f));
    assert_true(is_right(CONFORM_PARTS, INFINITY, &exact, INFINITY));
    assert_false(is_right(CONFORM_PARTS, INFINITY, &exact, 1.5f + 0x1p-19f));
    assert_false(is_right(CONFORM_PARTS, 1.5f, &exact, INFINITY));
    assert_false(is_right(CONFORM_PARTS, INFINITY, &beyond, 1.5f));
    assert_false(is_right(CONFORM_PARTS, NAN, &none, 1.5f));
    assert_true(is_right(CONFORM_PARTS, NAN, &none, NAN));
    assert_false(is_right(CONFORM_SUM, INFINITY, &exact, 1.5f)); /* rows keep to the range */
}

static void units_of_the_largest(void **state)
{
    const double exact = 0.0625;

    (void)state;
    assert_true(is_right(CONFORM_PARTS, 0.0625f, &exact, 0.0625f + 0x1p-20f)); /* 8 of 1 */
    assert_false(is_right(CONFORM_PARTS, 0.0625f, &exact, 0.0625f + 0x1p-19f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_detour_out_of_range),
        cmocka_unit_test(units_of_the_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
