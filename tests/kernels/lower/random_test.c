/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows against the words of Philox, drawn where ops.def says. */
#include <math.h>

#include "kernels/lower/rig.h"
#include "lower/rows/rows.h"
#include "philox.h"
#include "unit.h"

enum { N = 37 };

static const uint64_t seed = 0x0123456789abcdef, counter = 0x0000000700000005;

static uint32_t word32(uint64_t i)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t block[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), (uint32_t)counter,
                               (uint32_t)(counter >> 32)};
    uint32_t words[4];

    philox(block, key, words);
    return words[i % 4];
}

static uint64_t word64(uint64_t i)
{
    return word32(2 * i) | (uint64_t)word32(2 * i + 1) << 32;
}

static double unit(uint32_t dtype, uint64_t i)
{
    return dtype == FRIT_F64 ? (double)(word64(i) >> 11) * 0x1p-53
                             : (double)(word32(i) >> 8) * 0x1p-24;
}

/* Runs one row; element i of the value it made is element i of the row-major order. */
static uint32_t draw(struct rig *rig, uint32_t id, uint32_t dtype, uint32_t n_in,
                     const struct rig_in *in, const frit_attrs_init *attrs)
{
    const int64_t dims[2] = {1, N};
    uint32_t y;

    rig_init(rig);
    y = rig_op(rig, id, n_in, in, attrs, dtype, 2, dims);
    rig_run(rig, &sched_map);
    return y;
}

static void test_raw(void **state)
{
    for (int width = 32; width <= 64; width += 32) {
        const uint32_t dtype = width == 64 ? FRIT_U64 : FRIT_U32;
        const frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = dtype};
        struct rig rig;
        uint32_t y = draw(&rig, FRIT_OP_random_raw, dtype, 0, NULL, &attrs);

        for (int64_t i = 0; i < N; i++)
            assert_true((uint64_t)rig_get_int(&rig, y, i) ==
                        (width == 64 ? word64((uint64_t)i) : word32((uint64_t)i)));
        rig_fini(&rig);
    }
    (void)state;
}

static void test_uniform(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32, FRIT_F16, FRIT_BF16};

    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        const frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = dtypes[k]};
        const struct rig_in in[2] = {rig_real(dtypes[k], -1.5), rig_real(dtypes[k], 2)};
        double step = dtypes[k] == FRIT_F16 ? 0x1p-10 : dtypes[k] == FRIT_BF16 ? 0x1p-7 : 0;
        struct rig rig;
        uint32_t y = draw(&rig, FRIT_OP_random_uniform, dtypes[k], 2, in, &attrs);

        for (int64_t i = 0; i < N; i++) {
            double u = unit(dtypes[k], (uint64_t)i);
            double wanted =
                dtypes[k] == FRIT_F64 ? -1.5 + u * 3.5 : (double)(-1.5f + (float)u * 3.5f);

            assert_true(fabs(rig_get_real(&rig, y, i) - wanted) <= step);
        }
        rig_fini(&rig);
    }
}

static void test_bernoulli(void **state)
{
    const frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = FRIT_BOOL};
    const struct rig_in p = rig_real(FRIT_F64, 0.3);
    struct rig rig;
    uint32_t y = draw(&rig, FRIT_OP_random_bernoulli, FRIT_BOOL, 1, &p, &attrs), ones = 0;

    (void)state;
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(rig_get_int(&rig, y, i), (float)unit(FRIT_F32, (uint64_t)i) < 0.3f);
        ones += rig_get_int(&rig, y, i) != 0;
    }
    assert_true(ones > 0 && ones < N);
    rig_fini(&rig);
}

static void test_int(void **state)
{
    static const uint32_t dtypes[] = {FRIT_I64, FRIT_I32, FRIT_I8, FRIT_U64, FRIT_U8};

    (void)state;
    for (uint32_t k = 0; k < 5; k++) {
        const frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = dtypes[k]};
        int64_t low = dtypes[k] < FRIT_U64 ? -100 : 20, high = 117;
        const struct rig_in in[2] = {rig_int(dtypes[k], low), rig_int(dtypes[k], high)};
        struct rig rig;
        uint32_t y = draw(&rig, FRIT_OP_random_int, dtypes[k], 2, in, &attrs);

        for (int64_t i = 0; i < N; i++)
            assert_int_equal(rig_get_int(&rig, y, i),
                             low + (int64_t)(word64((uint64_t)i) % (uint64_t)(high - low)));
        rig_fini(&rig);
    }
}

static void test_normal(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32};

    (void)state;
    for (uint32_t k = 0; k < 2 && lower_row_of(FRIT_OP_random_normal); k++) {
        const frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = dtypes[k]};
        const struct rig_in in[2] = {rig_real(dtypes[k], 10), rig_real(dtypes[k], 3)};
        double near = dtypes[k] == FRIT_F64 ? 1e-14 : 4e-6;
        struct rig rig;
        uint32_t y = draw(&rig, FRIT_OP_random_normal, dtypes[k], 2, in, &attrs);

        for (int64_t i = 0; i < N; i++) {
            double u = unit(dtypes[k], (uint64_t)i & ~1ull), v = unit(dtypes[k], (uint64_t)i | 1);
            double radius = sqrt(-2 * log1p(-u)), angle = 2 * M_PI * v;

            assert_true(fabs(rig_get_real(&rig, y, i) - 10 -
                             3 * radius * (i & 1 ? sin(angle) : cos(angle))) <= near);
        }
        rig_fini(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raw),       cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_bernoulli), cmocka_unit_test(test_int),
        cmocka_unit_test(test_normal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
