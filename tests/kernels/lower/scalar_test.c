/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that make values from nothing, and scalars among operands, in every element type. */
#include "kernels/lower/rig.h"
#include "unit.h"

static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32, FRIT_F16, FRIT_BF16, FRIT_I64,
                                  FRIT_I32, FRIT_I16, FRIT_I8,  FRIT_U64,  FRIT_U32,
                                  FRIT_U16, FRIT_U8,  FRIT_BOOL};

static double number_at(const struct rig *rig, uint32_t value, int64_t i)
{
    return rig_is_real(rig->values[value].dtype) ? rig_get_real(rig, value, i)
                                                 : (double)rig_get_int(rig, value, i);
}

static void test_constants(void **state)
{
    const int64_t dims[] = {9, 7}, line = 63;

    (void)state;
    for (uint32_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
        frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = dtypes[k]};
        bool real = rig_is_real(dtypes[k]), truth = dtypes[k] == FRIT_BOOL;
        struct rig_in one = real ? rig_real(dtypes[k], 1) : rig_int(dtypes[k], 1);
        struct rig_in three = real ? rig_real(dtypes[k], 3) : rig_int(dtypes[k], 3);
        uint32_t full, zeros, ones, empty, eye, arange = 0;
        struct rig rig;

        rig_init(&rig);
        full = rig_op(&rig, FRIT_OP_full, 1, &one, &attrs, dtypes[k], 2, dims);
        zeros = rig_op(&rig, FRIT_OP_zeros, 0, NULL, &attrs, dtypes[k], 2, dims);
        ones = rig_op(&rig, FRIT_OP_ones, 0, NULL, &attrs, dtypes[k], 2, dims);
        empty = rig_op(&rig, FRIT_OP_empty, 0, NULL, &attrs, dtypes[k], 2, dims);
        eye = rig_op(&rig, FRIT_OP_eye, 0, NULL, &attrs, dtypes[k], 2, dims);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < line; i++) {
            assert_true(number_at(&rig, full, i) == 1 && number_at(&rig, zeros, i) == 0);
            assert_true(number_at(&rig, ones, i) == 1 && number_at(&rig, empty, i) == 0);
            assert_true(number_at(&rig, eye, i) == (i / 7 == i % 7));
        }
        rig_fini(&rig);
        if (truth)
            continue;
        rig_init(&rig);
        arange = rig_op(&rig, FRIT_OP_arange, 2, (struct rig_in[]){one, three}, &attrs, dtypes[k],
                        1, &line);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < line; i++)
            assert_true(number_at(&rig, arange, i) ==
                        (double)(dtypes[k] == FRIT_I8 ? (int8_t)(1 + 3 * i) : 1 + 3 * i));
        rig_fini(&rig);
    }
}

/* Scalars on either side, of every kind. */
static void test_scalars(void **state)
{
    const int64_t dims = 20;

    (void)state;
    for (uint32_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
        bool real = rig_is_real(dtypes[k]), truth = dtypes[k] == FRIT_BOOL;
        struct rig_in three = real ? rig_real(dtypes[k], 3) : rig_int(dtypes[k], truth ? 1 : 3);
        uint32_t id = truth ? FRIT_OP_lt : FRIT_OP_sub, result = truth ? FRIT_BOOL : dtypes[k];
        uint32_t x, left, right;
        struct rig rig;

        rig_init(&rig);
        x = rig_input(&rig, dtypes[k], 1, &dims);
        for (int64_t i = 0; i < dims; i++)
            if (real)
                rig_set_real(&rig, x, i, (double)(i % 3));
            else
                rig_set_int(&rig, x, i, truth ? i % 2 : i % 3);
        left = rig_op(&rig, id, 2, (struct rig_in[]){three, rig_value(x)}, NULL, result, 1, &dims);
        right = rig_op(&rig, id, 2, (struct rig_in[]){rig_value(x), three}, NULL, result, 1, &dims);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < dims; i++) {
            int64_t at = i % 3, mask = (int64_t)(UINT64_MAX >> (64 - frit_dtype_bits(result)));

            if (truth) {
                assert_int_equal(rig_get_int(&rig, left, i), 0);
                assert_int_equal(rig_get_int(&rig, right, i), i % 2 == 0);
            } else if (real) {
                assert_true(rig_get_real(&rig, left, i) == (double)(3 - at));
                assert_true(rig_get_real(&rig, right, i) == (double)(at - 3));
            } else {
                assert_int_equal(rig_get_int(&rig, left, i) & mask, 3 - at);
                assert_int_equal(rig_get_int(&rig, right, i) & mask, (at - 3) & mask);
            }
        }
        rig_fini(&rig);
    }
}

/* A number is rounded once to 16 bits, where the target can; without F64 it still comes near. */
static void test_rounds_once(void **state)
{
    const frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = FRIT_F16};
    const struct rig_in number = rig_real(FRIT_F16, 1 + 0x1p-11 + 0x1p-30);
    const struct rig_in step = rig_real(FRIT_F16, 0x1p-11 + 0x1p-30);
    const int64_t dims = 3;

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct rig rig;
        uint32_t full, arange;

        rig_init(&rig);
        rig.target.f64 = wide;
        full = rig_op(&rig, FRIT_OP_full, 1, &number, &attrs, FRIT_F16, 1, &dims);
        arange = rig_op(&rig, FRIT_OP_arange, 2, (struct rig_in[]){rig_real(FRIT_F16, 1), step},
                        &attrs, FRIT_F16, 1, &dims);
        rig_run(&rig, &sched_map);
        assert_true(rig_get_real(&rig, full, 0) == (wide ? 1 + 0x1p-10 : 1));
        assert_true(rig_get_real(&rig, arange, 1) == (wide ? 1 + 0x1p-10 : 1));
        assert_true(rig_get_real(&rig, arange, 2) == 1 + 0x1p-10);
        rig_fini(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_rounds_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
