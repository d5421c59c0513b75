/* SPDX-License-Identifier: Apache-2.0 */
/* The scan schedule against plain loops: every row, all axes, rows by the lane and by the group, of
 * many rounds, split; ops before and after it. */
#include <math.h>
#include <string.h>

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

enum { SUM, PROD, MOST, LEAST };

static const uint32_t ids[] = {FRIT_OP_cumsum, FRIT_OP_cumprod, FRIT_OP_cummax, FRIT_OP_cummin};

static frit_attrs_axis axis_attrs(int64_t axis)
{
    return (frit_attrs_axis){.struct_size = sizeof(frit_attrs_axis), .axis = axis};
}

/* Factors near 1, so that products stay numbers; integers so small that sums do. */
static void fill(struct rig *rig, uint32_t value, uint32_t how)
{
    uint64_t state = 991;

    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        if (!rig_is_real(rig->values[value].dtype))
            rig_set_int(rig, value, i,
                        rig->values[value].dtype == FRIT_BOOL ? rig_random(&state, 50) == 0
                                                              : (int64_t)rig_random(&state, 9) - 4);
        else if (how == PROD)
            rig_set_real(rig, value, i, 1 + ((double)rig_random(&state, 2001) - 1000) / 100000);
        else
            rig_set_real(rig, value, i, (double)rig_random(&state, 2001) / 500 - 2);
    }
}

static int64_t step_of(const struct rig_value *v, uint32_t axis)
{
    int64_t step = 1;

    for (uint32_t d = axis + 1; d < v->rank; d++)
        step *= v->dims[d];
    return step;
}

static double next_real(uint32_t how, double run, double x)
{
    const double next[] = {run + x, run * x, run > x ? run : x, run < x ? run : x};

    return next[how];
}

static uint64_t next_int(uint32_t how, uint64_t run, uint64_t x)
{
    bool less = (int64_t)run < (int64_t)x;
    const uint64_t next[] = {run + x, run * x, less ? x : run, less ? run : x};

    return next[how];
}

/* Sums and products round once where F64 carries them, else the count bounds the error. */
static double tolerance(const struct rig *rig, uint32_t dtype, uint32_t how, int64_t k, double run)
{
    if (how >= MOST)
        return 0;
    if (dtype == FRIT_F64)
        return 1e-12 * (1 + fabs(run));
    if (rig->target.f64)
        return 0x1.01p-24 * fabs(run) + 1e-12;
    return ((how == SUM ? 1e-5 : 1e-6) + (how == SUM ? 2e-8 : 1e-7) * (double)k) * (1 + fabs(run));
}

static void compare_real(const struct rig *rig, uint32_t x, uint32_t y, uint32_t how, uint32_t axis)
{
    const struct rig_value *v = &rig->values[x];
    int64_t step = step_of(v, axis), n = v->dims[axis];

    for (int64_t i = 0; i < rig_count(rig, x); i++) {
        double run, seen;

        if (i / step % n)
            continue;
        run = rig_get_real(rig, x, i);
        for (int64_t k = 0; k < n; k++) {
            if (k)
                run = next_real(how, run, rig_get_real(rig, x, i + k * step));
            seen = rig_get_real(rig, y, i + k * step);
            if (!(fabs(seen - run) <= tolerance(rig, v->dtype, how, k, run)))
                fail_msg("scan %u of type %u along axis %u: element %lld of row %lld is %.9g, "
                         "not %.9g",
                         how, v->dtype, axis, (long long)k, (long long)i, seen, run);
        }
    }
}

static void compare_int(const struct rig *rig, uint32_t x, uint32_t y, uint32_t how, uint32_t axis)
{
    const struct rig_value *v = &rig->values[x];
    uint32_t bits = frit_dtype_bits(v->dtype);
    int64_t step = step_of(v, axis), n = v->dims[axis];

    for (int64_t i = 0; i < rig_count(rig, x); i++) {
        uint64_t run, wrapped;

        if (i / step % n)
            continue;
        run = (uint64_t)rig_get_int(rig, x, i);
        for (int64_t k = 0; k < n; k++) {
            if (k)
                run = next_int(how, run, (uint64_t)rig_get_int(rig, x, i + k * step));
            wrapped = (uint64_t)((int64_t)(run << (64 - bits)) >> (64 - bits));
            if (rig_get_int(rig, y, i + k * step) != (int64_t)wrapped)
                fail_msg("scan %u of type %u along axis %u: element %lld of row %lld is %lld, "
                         "not %lld",
                         how, v->dtype, axis, (long long)k, (long long)i,
                         (long long)rig_get_int(rig, y, i + k * step), (long long)wrapped);
        }
    }
}

/* Gives the divisions of lanes of their own. */
static uint32_t check_on(const struct kir_target *target, uint32_t how, uint32_t dtype,
                         uint32_t rank, const int64_t *dims, uint32_t axis, uint32_t n_phases)
{
    frit_attrs_axis attrs = axis_attrs(axis);
    struct rig rig;
    uint32_t x, y, n;

    rig_init(&rig);
    if (target)
        rig.target = *target;
    x = rig_input(&rig, dtype, rank, dims);
    fill(&rig, x, how);
    y = rig_op(&rig, ids[how], 1, (struct rig_in[]){rig_value(x)}, &attrs, dtype, rank, dims);
    rig_run(&rig, &sched_scan);
    assert_int_equal(rig.module.n_phases, n_phases);
    if (rig_is_real(dtype))
        compare_real(&rig, x, y, how, axis);
    else
        compare_int(&rig, x, y, how, axis);
    n = rig_divisions(&rig);
    rig_fini(&rig);
    return n;
}

static void check(uint32_t how, uint32_t dtype, uint32_t rank, const int64_t *dims, uint32_t axis)
{
    check_on(NULL, how, dtype, rank, dims, axis, 1);
}

static void test_rows(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64, FRIT_I8, FRIT_I32, FRIT_I64};
    static const int64_t dims[][3] = {{1, 1, 1},   {5, 7, 3},     {2, 3, 200}, {3, 300, 70},
                                      {70, 90, 2}, {200, 130, 1}, {1, 1, 5000}};

    (void)state;
    for (uint32_t how = 0; how < 4; how++)
        for (uint32_t t = 0; t < 5; t++)
            for (uint32_t s = 0; s < 7; s++)
                for (uint32_t axis = 0; axis < 3; axis++)
                    if ((how + t + s + axis) % rig_every() == 0)
                        check(how, dtypes[t], 3, dims[s], axis);
}

static void test_bool(void **state)
{
    static const int64_t dims[] = {3, 300}, many[] = {300, 20}, empty[] = {4, 0};

    (void)state;
    for (uint32_t how = MOST; how <= LEAST; how++) {
        check(how, FRIT_BOOL, 2, dims, 1);
        check(how, FRIT_BOOL, 2, dims, 0);
        check(how, FRIT_BOOL, 2, many, 1);
        check_on(NULL, how, FRIT_BOOL, 1, (const int64_t[]){40000}, 0, 2);
    }
    check(SUM, FRIT_F32, 2, empty, 0);
    check(SUM, FRIT_F32, 2, empty, 1);
}

/* By groups and by lanes, chunks that are whole and such that are not, groups beyond a block. */
static void test_split(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    for (uint32_t how = 0; how < 4; how++) {
        check_on(NULL, how, FRIT_F32, 1, (const int64_t[]){32768}, 0, 2);
        check_on(NULL, how, FRIT_I64, 2, (const int64_t[]){2, 70001}, 1, 2);
        check_on(NULL, how, FRIT_F32, 2, (const int64_t[]){2600, 70}, 0, 2);
        check_on(NULL, how, FRIT_I32, 2, (const int64_t[]){1024, 64}, 0, 2);
    }
    rig.target.lanes = rig.target.lanes_per_row = rig.target.max_lanes = 512;
    check_on(&rig.target, SUM, FRIT_F32, 1, (const int64_t[]){50000}, 0, 2);
    check_on(&rig.target, SUM, FRIT_F32, 2, (const int64_t[]){4, 30000}, 1, 1);
    rig.target.rereads_are_cached = true;
    check_on(&rig.target, SUM, FRIT_F32, 2, (const int64_t[]){100, 33000}, 1, 1);
    rig_fini(&rig);
}

/* Lanes of rows along a long innermost dim lie beside each other, whatever is around it. */
static void test_lines(void **state)
{
    (void)state;
    assert_int_equal(check_on(NULL, SUM, FRIT_F32, 3, (const int64_t[]){7, 40, 64}, 1, 1), 0);
    assert_int_equal(check_on(NULL, SUM, FRIT_I32, 3, (const int64_t[]){3, 40, 700}, 1, 1), 0);
    assert_int_equal(check_on(NULL, SUM, FRIT_I32, 3, (const int64_t[]){2, 2600, 70}, 1, 2), 0);
    assert_int_equal(check_on(NULL, SUM, FRIT_I32, 3, (const int64_t[]){1, 2600, 64}, 1, 2), 0);
    assert_int_equal(check_on(NULL, SUM, FRIT_I32, 4, (const int64_t[]){1, 2, 2600, 64}, 2, 2), 0);
    assert_int_equal(check_on(NULL, SUM, FRIT_F32, 3, (const int64_t[]){40, 40, 20}, 1, 1), 1);
}

/* Sums that are carried as F32. */
static void test_narrow(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.f64 = false;
    for (uint32_t how = SUM; how <= PROD; how++) {
        check_on(&rig.target, how, FRIT_F32, 2, (const int64_t[]){200, 130}, 0, 1);
        check_on(&rig.target, how, FRIT_F32, 1, (const int64_t[]){5000}, 0, 1);
        check_on(&rig.target, how, FRIT_F32, 2, (const int64_t[]){2, 70001}, 1, 2);
        check_on(&rig.target, how, FRIT_F32, 2, (const int64_t[]){2600, 70}, 0, 2);
    }
    rig_fini(&rig);
}

static void test_wide(void **state)
{
    static const int64_t dims[] = {2, 40000};
    frit_attrs_axis attrs = axis_attrs(1);
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_init(&rig);
    rig.index_width = 64;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    fill(&rig, x, SUM);
    y = rig_op(&rig, FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2, dims);
    rig_run(&rig, &sched_scan);
    assert_true(rig.module.wide);
    compare_real(&rig, x, y, SUM, 1);
    rig_fini(&rig);
}

/* How many groups run at once decides on the grid, never on a bit of the results. */
static void test_units(void **state)
{
    static const int64_t dims[][2] = {{1000, 80}, {3, 50000}, {2000, 600}};
    frit_attrs_axis attrs = axis_attrs(0);
    uint32_t x, y[2];
    struct rig rig[2];

    (void)state;
    for (uint32_t s = 0; s < 3; s++)
        for (attrs.axis = 0; attrs.axis < 2; attrs.axis++) {
            for (uint32_t i = 0; i < 2; i++) {
                rig_init(&rig[i]);
                rig[i].target.units = i ? 1 : 64;
                x = rig_input(&rig[i], FRIT_F32, 2, dims[s]);
                fill(&rig[i], x, SUM);
                y[i] = rig_op(&rig[i], FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &attrs,
                              FRIT_F32, 2, dims[s]);
                rig_run(&rig[i], &sched_scan);
            }
            for (int64_t i = 0; i < dims[s][0] * dims[s][1]; i++)
                assert_true(rig_get_real(&rig[0], y[0], i) == rig_get_real(&rig[1], y[1], i));
            rig_fini(&rig[0]);
            rig_fini(&rig[1]);
        }
}

static void test_nan(void **state)
{
    static const int64_t dims[] = {2, 200};
    frit_attrs_axis attrs = axis_attrs(1);
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    fill(&rig, x, MOST);
    rig_set_real(&rig, x, 250, (double)NAN);
    rig_set_real(&rig, x, 270, (double)INFINITY);
    y = rig_op(&rig, FRIT_OP_cummax, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2, dims);
    rig_run(&rig, &sched_scan);
    for (int64_t i = 0; i < 400; i++)
        assert_int_equal(isnan(rig_get_real(&rig, y, i)), i >= 250);
    rig_fini(&rig);
}

/* Halves are rounded where they are seen, not where they are carried: thousandths are added up
 * beyond where the half nearest to a sum would swallow them. */
static void test_half(void **state)
{
    static const int64_t dims[] = {4000};
    frit_attrs_axis attrs = axis_attrs(0);
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F16, 1, dims);
    for (int64_t i = 0; i < dims[0]; i++)
        rig_set_real(&rig, x, i, 0x1p-10);
    y = rig_op(&rig, FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F16, 1, dims);
    rig_run(&rig, &sched_scan);
    for (int64_t i = 0; i < dims[0]; i++)
        assert_true(fabs(rig_get_real(&rig, y, i) - (double)(i + 1) * 0x1p-10) <= 0x1p-10);
    rig_fini(&rig);
}

/* flip(cumsum(flip(2x))) + x, whose sums are also an output, and so is 2x: one program of three
 * outputs. */
static void around(const int64_t *dims, uint32_t axis)
{
    frit_attrs_axis attrs = axis_attrs(axis);
    frit_attrs_axes axes = {.struct_size = sizeof(axes), .axes = {.count = 1, .axis = {axis}}};
    int64_t n = dims[axis], step = axis ? 1 : dims[1];
    uint32_t x, twice, turned, sums, back, y;
    struct rig rig;

    rig_init(&rig);
    x = rig_laid(&rig, FRIT_I32, 2, dims, (const uint32_t[]){1, 0}, 0, 1);
    fill(&rig, x, SUM);
#define OP(id, n_in, attrs, ...) \
    rig_op(&rig, id, n_in, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_I32, 2, dims)
    twice = OP(FRIT_OP_mul, 2, NULL, rig_value(x), rig_int(FRIT_I32, 2));
    turned = OP(FRIT_OP_flip, 1, &axes, rig_value(twice));
    sums = OP(FRIT_OP_cumsum, 1, &attrs, rig_value(turned));
    back = OP(FRIT_OP_flip, 1, &axes, rig_value(sums));
    y = OP(FRIT_OP_add, 2, NULL, rig_value(back), rig_value(x));
#undef OP
    rig_keep(&rig, twice);
    rig_keep(&rig, sums);
    rig_run(&rig, &sched_scan);
    assert_int_equal(rig.block.n_outputs, 3);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        int64_t at = i / step % n, first = i - at * step, all = 0, behind = 0;

        for (int64_t k = 0; k < n; k++) {
            all += k >= n - 1 - at ? 2 * rig_get_int(&rig, x, first + k * step) : 0;
            behind += k >= at ? 2 * rig_get_int(&rig, x, first + k * step) : 0;
        }
        assert_int_equal(rig_get_int(&rig, twice, i), 2 * rig_get_int(&rig, x, i));
        assert_int_equal(rig_get_int(&rig, sums, i), all);
        assert_int_equal(rig_get_int(&rig, y, i), behind + rig_get_int(&rig, x, i));
    }
    rig_fini(&rig);
}

static void test_around(void **state)
{
    static const int64_t dims[][2] = {{3, 5}, {4, 300}, {90, 70}, {100, 9}};

    (void)state;
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t axis = 0; axis < 2; axis++)
            around(dims[s], axis);
}

/* In place where each element is read and written at one point. */
static void test_alias(void **state)
{
    static const int64_t dims[] = {6, 80};
    frit_attrs_axis attrs = axis_attrs(1);
    frit_attrs_axes axes = {.struct_size = sizeof(axes), .axes = {.count = 1, .axis = {1}}};
    struct rig rig;

    (void)state;
    for (uint32_t turned = 0; turned < 2; turned++) {
        uint32_t x;

        rig_init(&rig);
        x = rig_input(&rig, FRIT_F32, 2, dims);
        if (turned)
            x = rig_op(&rig, FRIT_OP_flip, 1, (struct rig_in[]){rig_value(x)}, &axes, FRIT_F32, 2,
                       dims);
        rig_op(&rig, FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2, dims);
        rig_run(&rig, &sched_scan);
        assert_int_equal(rig.numbers.alias[0], !turned);
        rig_fini(&rig);
    }
}

/* Two scans are two programs. */
static void test_two(void **state)
{
    static const int64_t dims[] = {4, 5};
    frit_attrs_axis attrs = axis_attrs(1);
    uint32_t x, y;
    struct rig rig;
    bool open;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    y = rig_op(&rig, FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2, dims);
    rig_op(&rig, FRIT_OP_cummax, 1, (struct rig_in[]){rig_value(y)}, &attrs, FRIT_F32, 2, dims);
    rig_push(&rig);
    assert_int_equal(rig_match(&sched_scan, &rig.block, &open), 1);
    assert_false(open);
    rig_fini(&rig);
}

static void test_no_memory(void **state)
{
    static const int64_t dims[] = {2, 40000};
    const frit_attrs_axis attrs = axis_attrs(1);
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    y = rig_op(&rig, FRIT_OP_cumsum, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 2, dims);
    rig_op(&rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, dims);
    rig_run(&rig, &sched_scan);
    rig_fail_allocations(&rig, &sched_scan, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_bool),
        cmocka_unit_test(test_split),     cmocka_unit_test(test_lines),
        cmocka_unit_test(test_narrow),    cmocka_unit_test(test_wide),
        cmocka_unit_test(test_units),     cmocka_unit_test(test_nan),
        cmocka_unit_test(test_half),      cmocka_unit_test(test_around),
        cmocka_unit_test(test_alias),     cmocka_unit_test(test_two),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
