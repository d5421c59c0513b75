/* SPDX-License-Identifier: Apache-2.0 */
/* The sort schedule against plain loops: every type, both directions, all axes, lines of one run,
 * of runs that are merged once and more often, ops after it and views before. */
#include <math.h>

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

static frit_attrs_sort sort_attrs(int64_t axis, bool descending)
{
    return (frit_attrs_sort){
        .struct_size = sizeof(frit_attrs_sort), .axis = axis, .descending = descending};
}

/* Few different ones, of both signs and both zeros, some NaN. */
static void fill(struct rig *rig, uint32_t value)
{
    uint64_t state = 4711;

    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        int64_t drawn = (int64_t)rig_random(&state, 41) - 20;

        if (rig->values[value].dtype == FRIT_BOOL)
            rig_set_int(rig, value, i, drawn > 5);
        else if (!rig_is_real(rig->values[value].dtype))
            rig_set_int(rig, value, i, drawn);
        else
            rig_set_real(rig, value, i,
                         drawn == 20  ? (double)NAN
                         : drawn == 0 ? (i & 1 ? -0.0 : 0.0)
                                      : (double)drawn / 4);
    }
}

/* Whether element i stands before element j, of one line. */
static bool stands_before(const struct rig *rig, uint32_t x, bool descending, int64_t i, int64_t j)
{
    uint32_t dtype = rig->values[x].dtype;

    if (rig_is_real(dtype)) {
        double a = rig_get_real(rig, x, i), b = rig_get_real(rig, x, j);

        if (isnan(a) || isnan(b))
            return isnan(a) && isnan(b) ? i < j : !isnan(a);
        return a < b || a > b ? (a < b) != descending : i < j;
    } else {
        int64_t a = rig_get_int(rig, x, i), b = rig_get_int(rig, x, j);
        bool less = dtype == FRIT_U8 || dtype == FRIT_U32 || dtype == FRIT_U64
                        ? (uint64_t)a < (uint64_t)b
                        : a < b;

        return a == b ? i < j : less != descending;
    }
}

static bool same(const struct rig *rig, uint32_t x, int64_t i, uint32_t y, int64_t j)
{
    double a, b;

    if (!rig_is_real(rig->values[x].dtype))
        return rig_get_int(rig, x, i) == rig_get_int(rig, y, j);
    a = rig_get_real(rig, x, i);
    b = rig_get_real(rig, y, j);
    return isnan(a) ? isnan(b) : !(a < b) && !(a > b) && signbit(a) == signbit(b);
}

/* The line's places are in order, so that each is there once, and the values are those there. */
static void compare(const struct rig *rig, uint32_t x, const uint32_t y[2], uint32_t axis,
                    bool descending)
{
    const struct rig_value *v = &rig->values[x];
    int64_t step = 1, n = v->dims[axis];

    for (uint32_t d = axis + 1; d < v->rank; d++)
        step *= v->dims[d];
    for (int64_t at = 0; at < rig_count(rig, x); at++) {
        int64_t first = at - at / step % n * step, now = rig_get_int(rig, y[1], at), was;

        if (now < 0 || now >= n || !same(rig, x, first + now * step, y[0], at))
            fail_msg("type %u, axis %u of %lld: %lld stands at %lld", v->dtype, axis, (long long)n,
                     (long long)now, (long long)at);
        if (at == first)
            continue;
        was = rig_get_int(rig, y[1], at - step);
        if (!stands_before(rig, x, descending, first + was * step, first + now * step))
            fail_msg("type %u, axis %u of %lld: %lld stands before %lld", v->dtype, axis,
                     (long long)n, (long long)was, (long long)now);
    }
}

static void check_on(uint32_t index_width, uint32_t dtype, const int64_t dims[3], uint32_t axis,
                     uint32_t n_phases)
{
    for (uint32_t descending = 0; descending < 2; descending++) {
        const frit_attrs_sort attrs = sort_attrs(axis, descending);
        struct rig rig;
        uint32_t x, y[2];

        rig_init(&rig);
        rig.index_width = index_width;
        x = rig_input(&rig, dtype, 3, dims);
        fill(&rig, x);
        y[0] =
            rig_op(&rig, FRIT_OP_sort, 1, (struct rig_in[]){rig_value(x)}, &attrs, dtype, 3, dims);
        y[1] = rig_second(&rig, FRIT_I64, 3, dims);
        rig_run(&rig, &sched_sort);
        assert_int_equal(rig.module.n_phases, n_phases);
        assert_int_equal(rig.module.wide, index_width == 64);
        compare(&rig, x, y, axis, descending);
        rig_fini(&rig);
    }
}

static void test_types(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64, FRIT_F16, FRIT_I8,  FRIT_I32,
                                      FRIT_I64, FRIT_U8,  FRIT_U32, FRIT_U64, FRIT_BOOL};
    static const int64_t small[] = {3, 7, 5}, many[] = {2, 100, 3};

    (void)state;
    for (uint32_t t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++) {
        for (uint32_t axis = 0; axis < 3; axis++)
            check_on(32, dtypes[t], small, axis, 2);
        check_on(32, dtypes[t], many, 1, 3);
    }
}

/* Around where a line takes one more run, or one more phase. */
static void test_lengths(void **state)
{
    static const int64_t lengths[] = {1, 2, 31, 32, 33, 64, 65, 255, 256, 257, 513, 2048, 2049};
    static const uint32_t phases[] = {2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 5};

    (void)state;
    for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        check_on(32, FRIT_F32, (const int64_t[]){1, 3, lengths[i]}, 2, phases[i]);
        check_on(32, FRIT_I32, (const int64_t[]){lengths[i], 1, 2}, 0, phases[i]);
    }
    check_on(64, FRIT_F32, (const int64_t[]){1, 3, 300}, 2, 4);
}

static void test_empty(void **state)
{
    (void)state;
    check_on(32, FRIT_F32, (const int64_t[]){2, 0, 3}, 1, 1);
    check_on(32, FRIT_F32, (const int64_t[]){2, 0, 3}, 0, 1);
}

/* Doubled, of what is reversed and lies across; without the index, and the index alone. */
static void test_around(void **state)
{
    static const int64_t dims[] = {40, 3};
    const frit_attrs_sort attrs = sort_attrs(0, false);
    const frit_attrs_axes axes = {.struct_size = sizeof(axes), .axes = {.count = 1, .axis = {0}}};

    (void)state;
    for (uint32_t wanted = 0; wanted < 2; wanted++) {
        uint32_t x, turned, y[2], last, dtype = wanted ? FRIT_I64 : FRIT_I32;
        struct rig rig;

        rig_init(&rig);
        x = rig_laid(&rig, FRIT_I32, 2, dims, (const uint32_t[]){1, 0}, 2, 2);
        fill(&rig, x);
        turned = rig_op(&rig, FRIT_OP_flip, 1, (struct rig_in[]){rig_value(x)}, &axes, FRIT_I32, 2,
                        dims);
        y[0] = rig_op(&rig, FRIT_OP_sort, 1, (struct rig_in[]){rig_value(turned)}, &attrs, FRIT_I32,
                      2, dims);
        y[1] = rig_second(&rig, FRIT_I64, 2, dims);
        rig.values[y[!wanted]].last_use = rig.n_ops - 1;
        last =
            rig_op(&rig, FRIT_OP_mul, 2, (struct rig_in[]){rig_value(y[wanted]), rig_int(dtype, 2)},
                   NULL, dtype, 2, dims);
        rig_run(&rig, &sched_sort);
        assert_int_equal(rig.block.n_outputs, 1);
        for (int64_t i = 0; i < 120; i++) {
            int64_t rank = 0, column = i % 3;

            for (int64_t k = 0; k < 40; k++)
                rank += k != i / 3 &&
                        stands_before(&rig, x, false, k * 3 + column, i) !=
                            (rig_get_int(&rig, x, k * 3 + column) == rig_get_int(&rig, x, i));
            assert_int_equal(rig_get_int(&rig, last, rank * 3 + column),
                             2 * (wanted ? 39 - i / 3 : rig_get_int(&rig, x, i)));
        }
        rig_fini(&rig);
    }
}

/* Forgets the rig. */
static frit_status try_sort(struct rig *rig, int64_t n, bool computed)
{
    const frit_attrs_sort attrs = sort_attrs(0, false);
    uint32_t x = rig_input(rig, FRIT_I8, 1, &n);
    frit_status status;

    if (computed)
        x = rig_op(rig, FRIT_OP_abs, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_I8, 1, &n);
    rig_op(rig, FRIT_OP_sort, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_I8, 1, &n);
    status = rig_try(rig, &sched_sort);
    rig_fini(rig);
    return status;
}

/* More places than are numbered twice, by extents alone. */
static void test_many(void **state)
{
    static const int64_t dims[] = {3, 40};
    const frit_attrs_sort attrs = sort_attrs(1, false);
    struct sched_numbers numbers = {0};
    struct kir_module module;
    struct rig rig;
    uint32_t x;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_I8, 2, dims);
    rig_op(&rig, FRIT_OP_sort, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_I8, 2, dims);
    rig_run(&rig, &sched_sort);
    for (uint32_t i = 0; i < rig.block.n_extents + 2; i++)
        if (rig.extents[i] == 3)
            rig.extents[i] = 1 << 26;
    kir_init(&module, "test");
    assert_int_equal(sched_sort.build(&(struct sched){&rig.block, &rig.sig, &rig.target,
                                                      rig.extents, &module, &numbers, false},
                                      NULL),
                     FRIT_UNSUPPORTED);
    kir_fini(&module);
    arena_fini(&numbers.arena);
    rig_fini(&rig);
}

/* What is computed before would be so for each comparison; longer lines take too many phases. */
static void test_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    assert_int_equal(try_sort(&rig, 100, false), FRIT_OK);
    rig_init(&rig);
    assert_int_equal(try_sort(&rig, 100, true), FRIT_UNSUPPORTED);
    rig_init(&rig);
    rig.target.max_rounds = 56;
    assert_int_equal(try_sort(&rig, 100, false), FRIT_OK);
    rig_init(&rig);
    rig.target.max_rounds = 55;
    assert_int_equal(try_sort(&rig, 100, false), FRIT_UNSUPPORTED);
    rig_init(&rig);
    assert_int_equal(try_sort(&rig, (1 << 23) + 1, false), FRIT_UNSUPPORTED);
}

static void test_no_memory(void **state)
{
    static const int64_t dims[] = {2, 40};
    const frit_attrs_sort attrs = sort_attrs(1, true);
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    y = rig_op(&rig, FRIT_OP_sort, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2, dims);
    rig_second(&rig, FRIT_I64, 2, dims);
    rig_op(&rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, dims);
    rig_run(&rig, &sched_sort);
    rig_fail_allocations(&rig, &sched_sort, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),     cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_empty),     cmocka_unit_test(test_around),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
