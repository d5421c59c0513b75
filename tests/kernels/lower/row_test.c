/* SPDX-License-Identifier: Apache-2.0 */
/* The row schedule against plain loops: every fold, sets of axes, long and short rows, rows by the
 * lane and by the group, split rows, folds of folds. */
#include <math.h>
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

static void fill(struct rig *rig, uint32_t value)
{
    uint64_t state = 77;

    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        if (rig_is_real(rig->values[value].dtype))
            rig_set_real(rig, value, i, (double)rig_random(&state, 2001) / 500 - 2);
        else
            rig_set_int(rig, value, i, (int64_t)rig_random(&state, 201) - 100);
    }
}

/* A fold of x over axes, told by bits. */
struct reduction {
    frit_attrs_reduce attrs;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
};

static struct reduction reduction_of(uint32_t rank, const int64_t *dims, uint32_t axes, bool keep)
{
    struct reduction r = {.attrs = {.struct_size = sizeof(r.attrs), .keep = keep}};

    for (uint32_t d = 0; d < rank; d++) {
        if (axes >> d & 1)
            r.attrs.axes.axis[r.attrs.axes.count++] = d;
        if (!(axes >> d & 1) || keep)
            r.dims[r.rank++] = axes >> d & 1 ? 1 : dims[d];
    }
    return r;
}

/* What is expected at row number `row`: over the elements of x in it, in order. */
struct expected {
    double sum, product, most, least;
    int64_t most_at, least_at, count;
};

static void expect_each(const struct rig *rig, uint32_t x, uint32_t axes, struct expected *out)
{
    const struct rig_value *v = &rig->values[x];

    for (int64_t i = 0; i < rig_count(rig, x); i++) {
        int64_t rest = i, row = 0, stride = 1, number = 0, inside = 1;
        double e = rig_is_real(v->dtype) ? rig_get_real(rig, x, i) : (double)rig_get_int(rig, x, i);
        struct expected *at;

        for (uint32_t d = v->rank; d-- > 0; rest /= v->dims[d]) {
            if (axes >> d & 1) {
                number += rest % v->dims[d] * inside;
                inside *= v->dims[d];
            } else {
                row += rest % v->dims[d] * stride;
                stride *= v->dims[d];
            }
        }
        at = &out[row];
        if (at->count++ == 0)
            *at = (struct expected){0, 1, e, e, number, number, 1};
        at->sum += e;
        at->product *= e;
        if (e > at->most)
            at->most = e, at->most_at = number;
        if (e < at->least)
            at->least = e, at->least_at = number;
    }
}

static double wanted(uint32_t id, const struct expected *e)
{
    const struct {
        uint32_t id;
        double value;
    } values[] = {{FRIT_OP_sum, e->sum},
                  {FRIT_OP_prod, e->product},
                  {FRIT_OP_max, e->most},
                  {FRIT_OP_min, e->least},
                  {FRIT_OP_argmax, (double)e->most_at},
                  {FRIT_OP_argmin, (double)e->least_at}};
    uint32_t i = 0;

    while (values[i].id != id)
        i++;
    return values[i].value;
}

/* Relative to the count: sums of numbers up to 2. */
static double tolerance(uint32_t id, uint32_t dtype, const struct expected *e)
{
    if (!rig_is_real(dtype) || (id != FRIT_OP_sum && id != FRIT_OP_prod))
        return 0;
    if (id == FRIT_OP_prod)
        return fabs(e->product) * (double)e->count * 1e-7 + 1e-37;
    return (double)e->count * 4e-8 + 1e-6;
}

static void check(uint32_t id, uint32_t dtype, uint32_t rank, const int64_t *dims, uint32_t axes,
                  bool keep)
{
    struct reduction r = reduction_of(rank, dims, axes, keep);
    bool arg = id == FRIT_OP_argmax || id == FRIT_OP_argmin;
    struct expected *expected;
    uint32_t x, y;
    struct rig rig;

    rig_init(&rig);
    x = rig_input(&rig, dtype, rank, dims);
    fill(&rig, x);
    y = rig_op(&rig, id, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, arg ? FRIT_I64 : dtype,
               r.rank, r.dims);
    rig_run(&rig, &sched_row);
    expected = test_calloc((size_t)rig_count(&rig, y) + 1, sizeof(*expected));
    expect_each(&rig, x, axes, expected);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double seen =
            arg || !rig_is_real(dtype) ? (double)rig_get_int(&rig, y, i) : rig_get_real(&rig, y, i);
        double want = wanted(id, &expected[i]);

        if (!rig_is_real(dtype) && id == FRIT_OP_prod)
            continue; /* wraps */
        if (fabs(seen - want) > tolerance(id, dtype, &expected[i]))
            fail_msg("op %u of type %u, axes %x: element %lld is %.9g, not %.9g", id, dtype, axes,
                     (long long)i, seen, want);
    }
    test_free(expected);
    rig_fini(&rig);
}

static void test_folds(void **state)
{
    static const uint32_t ids[] = {FRIT_OP_sum, FRIT_OP_prod,   FRIT_OP_max,
                                   FRIT_OP_min, FRIT_OP_argmax, FRIT_OP_argmin};
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64, FRIT_I32, FRIT_I64};
    static const int64_t dims[][3] = {{1, 1, 1},    {5, 7, 3},     {2, 3, 200},
                                      {3, 300, 70}, {200, 130, 1}, {1, 1, 5000}};

    (void)state;
    for (uint32_t o = 0; o < 6; o++)
        for (uint32_t t = 0; t < 4; t++)
            for (uint32_t s = 0; s < 6; s++)
                for (uint32_t axes = 1; axes < 8; axes++) {
                    if (o >= 4 && axes != 7 && (axes & (axes - 1)))
                        continue;
                    check(ids[o], dtypes[t], 3, dims[s], axes, (s + axes) & 1);
                }
}

/* Rows that are split, by groups and by lanes. */
static void test_long_rows(void **state)
{
    (void)state;
    check(FRIT_OP_sum, FRIT_F32, 2, (const int64_t[]){2, 70001}, 2, false);
    check(FRIT_OP_argmax, FRIT_F32, 2, (const int64_t[]){3, 40000}, 2, false);
    check(FRIT_OP_max, FRIT_I32, 1, (const int64_t[]){32768}, 1, true);
    check(FRIT_OP_sum, FRIT_F32, 2, (const int64_t[]){1500, 100}, 1, false);
    check(FRIT_OP_argmin, FRIT_F32, 2, (const int64_t[]){1100, 64}, 1, true);
}

/* Some values of a kind for each. */
static void test_nan_wins(void **state)
{
    static const int64_t dims[] = {2, 100};
    struct reduction r = reduction_of(2, dims, 2, false);
    uint32_t x, most, at;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    fill(&rig, x);
    rig_set_real(&rig, x, 137, (double)NAN);
    rig_set_real(&rig, x, 150, (double)NAN);
    rig_set_real(&rig, x, 170, (double)INFINITY);
    most = rig_op(&rig, FRIT_OP_max, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_F32, r.rank,
                  r.dims);
    at = rig_op(&rig, FRIT_OP_argmax, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_I64,
                r.rank, r.dims);
    rig_keep(&rig, most);
    rig_run(&rig, &sched_row);
    assert_true(isnan(rig_get_real(&rig, most, 1)) && !isnan(rig_get_real(&rig, most, 0)));
    assert_int_equal(rig_get_int(&rig, at, 1), 37);
    rig_fini(&rig);
}

/* (x - mean) / sqrt(var), by its ops; axis 0, 1, or both. */
static void normalize(const int64_t *dims, uint32_t axes, bool caches)
{
    struct reduction r = reduction_of(2, dims, axes, true);
    double n = (double)((axes & 1 ? dims[0] : 1) * (axes & 2 ? dims[1] : 1));
    uint32_t x, s, mean, centred, squared, var, deviation, y;
    struct expected *expected;
    struct rig rig;

    rig_init(&rig);
    rig.target.caches_rows = caches;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    fill(&rig, x);
#define OP(id, n_in, attrs, rank, dims, ...) \
    rig_op(&rig, id, n_in, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_F32, rank, dims)
    s = OP(FRIT_OP_sum, 1, &r.attrs, 2, r.dims, rig_value(x));
    mean = OP(FRIT_OP_mul, 2, NULL, 2, r.dims, rig_value(s), rig_real(FRIT_F32, 1 / n));
    centred = OP(FRIT_OP_sub, 2, NULL, 2, dims, rig_value(x), rig_value(mean));
    squared = OP(FRIT_OP_mul, 2, NULL, 2, dims, rig_value(centred), rig_value(centred));
    s = OP(FRIT_OP_sum, 1, &r.attrs, 2, r.dims, rig_value(squared));
    var = OP(FRIT_OP_mul, 2, NULL, 2, r.dims, rig_value(s), rig_real(FRIT_F32, 1 / n));
    var = OP(FRIT_OP_add, 2, NULL, 2, r.dims, rig_value(var), rig_real(FRIT_F32, 1e-3));
    deviation = OP(FRIT_OP_sqrt, 1, NULL, 2, r.dims, rig_value(var));
    y = OP(FRIT_OP_div, 2, NULL, 2, dims, rig_value(centred), rig_value(deviation));
#undef OP
    rig_run(&rig, &sched_row);
    assert_int_equal(rig.block.n_outputs, 1);
    assert_int_equal(rig.numbers.alias[0], dims[0] * dims[1] > 1);
    expected = test_calloc((size_t)(dims[0] * dims[1]), 2 * sizeof(*expected));
    expect_each(&rig, x, axes, expected);
    for (int64_t row = 0; row < dims[0] * dims[1]; row++) {
        double square = 0, centre = expected[row].sum / n;

        if (!expected[row].count)
            break;
        for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
            int64_t own = axes == 3 ? 0 : axes == 2 ? i / dims[1] : i % dims[1];
            double d = rig_get_real(&rig, x, i) - centre;

            if (own == row)
                square += d * d;
        }
        for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
            int64_t own = axes == 3 ? 0 : axes == 2 ? i / dims[1] : i % dims[1];
            double want =
                (rig_get_real(&rig, x, i) - centre) / sqrt(square / n + (double)(float)1e-3);

            if (own == row && fabs(rig_get_real(&rig, y, i) - want) > 1e-5)
                fail_msg("%lld x %lld, axes %x: element %lld is %.9g, not %.9g", (long long)dims[0],
                         (long long)dims[1], axes, (long long)i, rig_get_real(&rig, y, i), want);
        }
    }
    test_free(expected);
    rig_fini(&rig);
}

static void test_norms(void **state)
{
    static const int64_t dims[][2] = {{1, 1}, {3, 7}, {70, 5}, {7, 150}, {5, 256}, {150, 70}};

    (void)state;
    for (uint32_t s = 0; s < 6; s++)
        for (uint32_t axes = 1; axes < 4; axes++)
            for (uint32_t caches = 0; caches < 2; caches++)
                normalize(dims[s], axes, caches);
}

/* x of 4x4 plus its row sums along the other dim: the sums are wanted elsewhere than they are. */
static void test_elsewhere(void **state)
{
    static const int64_t dims[] = {4, 4};
    struct reduction r = reduction_of(2, dims, 2, false);
    uint32_t x, s;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    s = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_F32, r.rank,
               r.dims);
    rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(x), rig_value(s)}, NULL, FRIT_F32, 2,
           dims);
    assert_int_equal(rig_try(&rig, &sched_row), FRIT_UNSUPPORTED);
    rig_fini(&rig);
}

/* Row sums along both dims: no place in the space says which two rows are meant. */
static void test_two_rows(void **state)
{
    static const int64_t dims[] = {4, 5}, square[] = {4, 4};
    struct reduction kept = reduction_of(2, dims, 2, true), gone = reduction_of(2, dims, 2, false);
    uint32_t x, column, row;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    column = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &kept.attrs, FRIT_F32,
                    kept.rank, kept.dims);
    row = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &gone.attrs, FRIT_F32,
                 gone.rank, gone.dims);
    rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(column), rig_value(row)}, NULL,
           FRIT_F32, 2, square);
    assert_int_equal(rig_try(&rig, &sched_row), FRIT_UNSUPPORTED);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folds),     cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_nan_wins),  cmocka_unit_test(test_norms),
        cmocka_unit_test(test_elsewhere), cmocka_unit_test(test_two_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
