/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a launch written once more: of other values, but of the same classes. */
#include "unit.h"

#include <string.h>

#include <frit/program.h>

#include "graph/attrs.h"
#include "record/segment.h"
#include "run/launch_scalars.h"

enum { N = 1 };

/* The eps of a norm is its only word. */
static bool again(double eps, uint8_t *cls, frit_scalar *scalar)
{
    const struct scalar_counts count = {.n_scalars = N, .rank = 2};
    struct launch_scalars to = {.scalars = scalar, .classes = cls};
    union attrs attrs = {.norm = {.struct_size = sizeof(attrs.norm), .eps = eps}};
    struct recorded_op record = {.op = FRIT_OP_batch_norm, .attrs = &attrs};

    return launch_scalars_update(&record, &count, &to);
}

static double value(const frit_scalar *scalar)
{
    double real;

    memcpy(&real, &scalar->bits, sizeof(real));
    return real;
}

/* Refused once, it is refused again: what was prepared is still for the old class. */
static void test_classes_stay(void **state)
{
    uint8_t cls[N] = {FRIT_SCALAR_CLASS_ONE};
    frit_scalar scalar[N] = {{.kind = FRIT_SCALAR_F64}};

    (void)state;
    assert_true(again(1, cls, scalar));
    for (int i = 0; i < 2; i++)
        assert_false(again(2, cls, scalar));
    assert_int_equal(cls[0], FRIT_SCALAR_CLASS_ONE);
    assert_true(again(1, cls, scalar));
    assert_true(value(&scalar[0]) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes_stay)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
