/* SPDX-License-Identifier: Apache-2.0 */
/* The row schedule against plain loops: every fold, sets of axes, long and short rows, rows by the
 * lane and by the group, split rows, folds of folds. */
#include <math.h>
#include <string.h>

#include "kernels/lower/fail_allocations.h"
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

/* A fold of x over the axes in a bit mask. */
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
    return (double)e->count * 4e-8 + 1e-5;
}

static void check_near(uint32_t id, uint32_t dtype, uint32_t rank, const int64_t *dims,
                       uint32_t axes, bool keep, uint32_t near, uint32_t units)
{
    struct reduction r = reduction_of(rank, dims, axes, keep);
    bool arg = id == FRIT_OP_argmax || id == FRIT_OP_argmin;
    struct expected *expected;
    uint32_t x, y;
    struct rig rig;

    rig_init(&rig);
    rig.target.near_lanes = near;
    rig.target.rereads_are_cached = rig.target.lanes_interleaved = !near;
    if (units) {
        rig.target.units = units;
        rig.target.lanes = rig.target.max_lanes = 256;
    }
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

static void check(uint32_t id, uint32_t dtype, uint32_t rank, const int64_t *dims, uint32_t axes,
                  bool keep)
{
    check_near(id, dtype, rank, dims, axes, keep, 0, 0);
    check_near(id, dtype, rank, dims, axes, keep, 16, 0);
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
                    if ((o + t + s + axes) % rig_every() ||
                        (o >= 4 && axes != 7 && (axes & (axes - 1))))
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
    check_near(FRIT_OP_sum, FRIT_F32, 2, (const int64_t[]){2100, 500}, 1, false, 16, 64);
    check_near(FRIT_OP_argmin, FRIT_F32, 2, (const int64_t[]){1500, 100}, 1, true, 16, 512);
}

static uint32_t count_barriers(const struct kir_module *m)
{
    uint32_t n = 0;

    for (uint32_t p = 0; p < m->n_phases; p++)
        for (uint32_t i = 0; i < m->phases[p].n; i++)
            n += m->phases[p].inst[i].op == KIR_barrier;
    return n;
}

/* Barriers, and lanes of the first phase, of a sum over one of two axes. */
static uint32_t steps_of(int64_t rows, int64_t columns, uint32_t axes, bool lanes_interleaved,
                         uint32_t *lanes)
{
    const int64_t dims[] = {rows, columns};
    struct reduction r = reduction_of(2, dims, axes, false);
    uint32_t x, n;
    struct rig rig;

    rig_init(&rig);
    rig.target.rereads_are_cached = true;
    rig.target.lanes_interleaved = lanes_interleaved;
    rig.target.max_lanes = 256;
    rig.target.units = 2;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_F32, r.rank,
           r.dims);
    rig_run(&rig, &sched_row);
    *lanes = rig.module.phases[0].lanes;
    n = count_barriers(&rig.module);
    rig_fini(&rig);
    return n;
}

/* Lanes that run in turn go down long columns in step, and where these are split over groups more
 * of them do, as far as groups are full. */
static void test_steps(void **state)
{
    uint32_t lanes;

    (void)state;
    assert_true(steps_of(1500, 300, 1, true, &lanes) > 0);
    assert_int_equal(lanes, 256);
    assert_true(steps_of(1500, 384, 1, true, &lanes) > 0);
    assert_int_equal(lanes, 128);
    assert_true(steps_of(100, 300, 1, true, &lanes) > 0);
    assert_int_equal(lanes, 64);
    assert_int_equal(steps_of(1500, 300, 1, false, &lanes), 0);
    assert_int_equal(lanes, 64);
    assert_int_equal(steps_of(20, 300, 1, true, &lanes), 0);
    assert_int_equal(steps_of(300, 20, 2, true, &lanes), 0);
}

static uint32_t divisions_of(const int64_t *dims, bool rereads_are_cached)
{
    struct reduction r = reduction_of(3, dims, 2, false);
    uint32_t x, n;
    struct rig rig;

    rig_init(&rig);
    rig.target.rereads_are_cached = rig.target.lanes_interleaved = rereads_are_cached;
    x = rig_input(&rig, FRIT_F32, 3, dims);
    rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_F32, r.rank,
           r.dims);
    rig_run(&rig, &sched_row);
    n = rig_divisions(&rig);
    rig_fini(&rig);
    return n;
}

/* Lanes of rows along a long innermost dim lie beside each other, whatever is around it. */
static void test_lines(void **state)
{
    static const int64_t dims[][3] = {{7, 40, 64},  {3, 40, 700},  {3, 800, 70},
                                      {3, 800, 64}, {2, 900, 512}, {40, 40, 20}};

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(divisions_of(dims[i], true), i == 5);
        assert_int_equal(divisions_of(dims[i], false), i == 5);
        check(FRIT_OP_sum, FRIT_F32, 3, dims[i], 2, i & 1);
        check(FRIT_OP_argmax, FRIT_F32, 3, dims[i], 2, i & 1);
    }
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

/* What no element beats: the first is meant, by lanes that share a row and by those that do not. */
static void test_all_equal(void **state)
{
    static const int64_t dims[][2] = {{2, 300}, {3, 9000}, {600, 70}};

    (void)state;
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t most = 0; most < 2; most++) {
            struct reduction r = reduction_of(2, dims[s], s == 2 ? 1 : 2, false);
            struct rig rig;
            uint32_t x, y;

            rig_init(&rig);
            x = rig_input(&rig, FRIT_F32, 2, dims[s]);
            for (int64_t i = 0; i < rig_count(&rig, x); i++)
                rig_set_real(&rig, x, i, most ? (double)-INFINITY : (double)INFINITY);
            y = rig_op(&rig, most ? FRIT_OP_argmax : FRIT_OP_argmin, 1,
                       (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_I64, r.rank, r.dims);
            rig_run(&rig, &sched_row);
            for (int64_t i = 0; i < rig_count(&rig, y); i++)
                assert_int_equal(rig_get_int(&rig, y, i), 0);
            rig_fini(&rig);
        }
}

static int64_t row_of(const int64_t *dims, uint32_t axes, int64_t element)
{
    return axes == 3 ? 0 : axes == 2 ? element / dims[1] : element % dims[1];
}

/* (x - mean) / sqrt(var), by its ops; axis 0, 1, or both.  Gives the phases. */
static uint32_t normalize(const int64_t *dims, uint32_t axes, bool caches)
{
    struct reduction r = reduction_of(2, dims, axes, true);
    double n = (double)((axes & 1 ? dims[0] : 1) * (axes & 2 ? dims[1] : 1));
    uint32_t x, s, mean, centred, squared, var, deviation, y, n_phases;
    struct expected *expected;
    double *square;
    struct rig rig;

    rig_init(&rig);
    rig.target.rereads_are_cached = rig.target.lanes_interleaved = caches;
    rig.target.near_lanes = caches ? 0 : 16;
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
    n_phases = rig.module.n_phases;
    expected = test_calloc((size_t)(dims[0] * dims[1]), sizeof(*expected));
    square = test_calloc((size_t)(dims[0] * dims[1]), sizeof(*square));
    expect_each(&rig, x, axes, expected);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        int64_t row = row_of(dims, axes, i);
        double d = rig_get_real(&rig, x, i) - expected[row].sum / n;

        square[row] += d * d;
    }
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        int64_t row = row_of(dims, axes, i);
        double want = (rig_get_real(&rig, x, i) - expected[row].sum / n) /
                      sqrt(square[row] / n + (double)(float)1e-3);

        if (fabs(rig_get_real(&rig, y, i) - want) > 1e-5)
            fail_msg("%lld x %lld, axes %x: element %lld is %.9g, not %.9g", (long long)dims[0],
                     (long long)dims[1], axes, (long long)i, rig_get_real(&rig, y, i), want);
    }
    test_free(square);
    test_free(expected);
    rig_fini(&rig);
    return n_phases;
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

/* What is stored before the last pass may not take the memory of what that pass reads again.
 * Softmax whose numerators stay, of a value that very many ways lead to. */
static void test_read_again(void **state)
{
    const int64_t dims[] = {3, 5000};
    struct reduction r = reduction_of(2, dims, 2, true);
    uint32_t x, folded, top;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.rereads_are_cached = true;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    fill(&rig, x);
#define OP(id, n_in, attrs, rank, dims, ...) \
    rig_op(&rig, id, n_in, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_F32, rank, dims)
    for (uint32_t i = 0; i < RIG_OPS - 5; i++)
        x = OP(FRIT_OP_maximum, 2, NULL, 2, dims, rig_value(x), rig_value(x));
    folded = OP(FRIT_OP_max, 1, &r.attrs, 2, r.dims, rig_value(x));
    top = OP(FRIT_OP_sub, 2, NULL, 2, dims, rig_value(x), rig_value(folded));
    top = OP(FRIT_OP_exp, 1, NULL, 2, dims, rig_value(top));
    rig_keep(&rig, top);
    folded = OP(FRIT_OP_sum, 1, &r.attrs, 2, r.dims, rig_value(top));
    OP(FRIT_OP_div, 2, NULL, 2, dims, rig_value(top), rig_value(folded));
#undef OP
    rig_run(&rig, &sched_row);
    assert_int_equal(rig.block.n_outputs, 2);
    assert_int_equal(rig.numbers.alias[0], 0);
    assert_int_equal(rig.numbers.alias[1], 1);
    rig_fini(&rig);
}

/* Few rows, long ones: a pair of phases per fold and one for what is stored. */
static void test_split_norms(void **state)
{
    static const struct {
        int64_t dims[2];
        uint32_t axes;
        bool caches;
        uint32_t phases;
    } cases[] = {{{2, 9001}, 2, false, 5}, {{1, 40000}, 2, true, 5}, {{700, 70}, 1, false, 5},
                 {{1500, 65}, 1, true, 5}, {{90, 100}, 3, false, 5}, {{2, 9001}, 2, true, 1},
                 {{3, 8192}, 2, false, 5}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(normalize(cases[i].dims, cases[i].axes, cases[i].caches), cases[i].phases);
}

/* Sums of sums: as many levels as phases hold are split, more are not. */
static void test_many_levels(void **state)
{
    static const int64_t dims[] = {2, 9000}, kept[] = {2, 1};
    const struct reduction r = reduction_of(2, dims, 2, true);

    (void)state;
    for (uint32_t levels = 1; levels < 7; levels++) {
        double want = 0, last = 0;
        struct rig rig;
        uint32_t x, y;

        rig_init(&rig);
        rig.target.rereads_are_cached = false;
        y = x = rig_input(&rig, FRIT_F64, 2, dims);
        fill(&rig, x);
        for (uint32_t i = 0; i < levels; i++) {
            if (i)
                y = rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(x), rig_value(y)},
                           NULL, FRIT_F64, 2, dims);
            y = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(y)}, &r.attrs, FRIT_F64, 2,
                       kept);
        }
        rig_run(&rig, &sched_row);
        assert_int_equal(rig.module.n_phases, levels < 5 ? 2 * levels : 1);
        for (uint32_t i = 0; i < levels; i++) {
            want = 9000 * last;
            for (int64_t k = 0; k < 9000; k++)
                want += rig_get_real(&rig, x, k);
            last = want;
        }
        assert_true(fabs(rig_get_real(&rig, y, 0) - want) <= fabs(want) * 1e-12);
        rig_fini(&rig);
    }
}

/* e^x over its sum, of rows; gives the tiles that have elements from one pass to the next. */
static uint32_t soften(const int64_t *dims, bool caches, uint32_t group_bytes)
{
    struct reduction r = reduction_of(2, dims, 2, true);
    uint32_t x, e, s, y, n_tiles;
    struct rig rig;

    rig_init(&rig);
    rig.target.rereads_are_cached = caches;
    rig.target.group_bytes = group_bytes;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    fill(&rig, x);
    e = rig_op(&rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 2, dims);
    s = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(e)}, &r.attrs, FRIT_F32, 2,
               r.dims);
    y = rig_op(&rig, FRIT_OP_div, 2, (struct rig_in[]){rig_value(e), rig_value(s)}, NULL, FRIT_F32,
               2, dims);
    rig_run(&rig, &sched_row);
    for (int64_t i = 0; i < dims[0]; i++) {
        double sum = 0, want;

        for (int64_t k = 0; k < dims[1]; k++)
            sum += exp(rig_get_real(&rig, x, i * dims[1] + k));
        for (int64_t k = 0; k < dims[1]; k++) {
            want = exp(rig_get_real(&rig, x, i * dims[1] + k)) / sum;
            if (fabs(rig_get_real(&rig, y, i * dims[1] + k) - want) > 1e-5 * want)
                fail_msg("%lld x %lld: element %lld of row %lld", (long long)dims[0],
                         (long long)dims[1], (long long)k, (long long)i);
        }
    }
    n_tiles = rig.module.phases[0].n_tiles;
    rig_fini(&rig);
    return n_tiles;
}

/* What costs much is computed once, where rows are in caches and a tile has room for one. */
static void test_saved(void **state)
{
    static const int64_t dims[][2] = {{5, 150}, {70, 64}, {3, 4100}, {2, 33}, {100, 20}};

    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(soften(dims[i], true, 1 << 16), i < 4);
        assert_int_equal(soften(dims[i], false, 1 << 16), 0);
    }
    assert_int_equal(soften(dims[2], true, 1 << 15), 0);
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

/* In one phase, and split. */
static void test_no_memory(void **state)
{
    static const int64_t dims[][2] = {{3, 70}, {2, 40000}};

    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        struct reduction r = reduction_of(2, dims[k], 2, true);
        uint32_t x, sum;
        struct rig rig;

        rig_init(&rig);
        x = rig_input(&rig, FRIT_F32, 2, dims[k]);
        sum = rig_op(&rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(x)}, &r.attrs, FRIT_F32, 2,
                     r.dims);
        rig_op(&rig, FRIT_OP_sub, 2, (struct rig_in[]){rig_value(x), rig_value(sum)}, NULL,
               FRIT_F32, 2, dims[k]);
        rig_run(&rig, &sched_row);
        assert_int_equal(rig.module.n_phases > 1, k);
        rig_fail_allocations(&rig, &sched_row, 10);
        rig_fini(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folds),       cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nan_wins),    cmocka_unit_test(test_norms),
        cmocka_unit_test(test_read_again),  cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_two_rows),    cmocka_unit_test(test_all_equal),
        cmocka_unit_test(test_split_norms), cmocka_unit_test(test_many_levels),
        cmocka_unit_test(test_saved),       cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
