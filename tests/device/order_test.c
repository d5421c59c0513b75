/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on the order of elements: running sums along each axis of few and many, short and
 * long rows; updates of elements that an index says several times.  Against plain loops in double.
 */
#include "device/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <frit/inspect.h>

enum { K = 1024 };

/* ---- running sums ---- */

/* `inner` elements apart, `n` each. */
struct rows {
    int64_t outer, n, inner;
};

static void check_sums(const struct rows *r, const float *x, float *y)
{
    for (int64_t row = 0; row < r->outer * r->inner; row++) {
        int64_t first = row / r->inner * r->n * r->inner + row % r->inner;
        double sum = 0, size = 0;

        for (int64_t i = 0; i < r->n; i++) {
            int64_t at = first + i * r->inner;

            sum += 2 * (double)x[at];
            size += 2 * fabs((double)x[at]);
            if (!rig_near((double)y[at], sum + (double)x[at], size, 2))
                fail_msg("%lld x %lld x %lld: row %lld, element %lld is %.9g, not %.9g",
                         (long long)r->outer, (long long)r->n, (long long)r->inner, (long long)row,
                         (long long)i, (double)y[at], sum + (double)x[at]);
        }
    }
    free(y);
}

/* cumsum(2 x) + x, one program. */
static void test_running_sums(void **state)
{
    static const struct rows all[] = {
        {1, 1, 1},     {5, 7, 3},       {3, 100, 1},        {100, 1000, 1}, {2000, 20, 1},
        {300, 300, 1}, {1, 300 * K, 1}, {3, 40 * K + 1, 1}, {1, 5000, 100}, {4, 300, 77},
        {1, 3000, 5},  {1, 64 * K, 1},  {700, 500, 1},      {1, 20 * K, 64}};
    float *numbers = rig_numbers(2048 * K);
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        frit_tensor *x =
            rig_tensor(&rig, FRIT_SHAPE(all[i].outer, all[i].n, all[i].inner), numbers);
        frit_stats before = rig_stats(&rig);
        frit_scope scope = frit_scope_begin(rig.dev);
        frit_tensor *y = frit_keep(frit_add(frit_cumsum(frit_mul_f(x, 2), 1), x));

        frit_scope_end(scope);
        check_sums(&all[i], numbers, rig_read(y));
        assert_int_equal(rig_stats(&rig).launches - before.launches, 1);
        frit_release(x);
    }
    rig_close(&rig);
    free(numbers);
}

/* ---- updates ---- */

/* x [rows, cols]; `steps` numbers of rows, of all columns or one for each. */
struct updates {
    int64_t rows, cols, steps;
    bool each;
};

/* Numbers of rows, some outside. */
static int32_t *row_numbers(const struct updates *u, int64_t count)
{
    int32_t *index = malloc(((size_t)count + 1) * sizeof(*index));
    uint64_t state = 7;

    assert_non_null(index);
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        index[i] = (int32_t)((int64_t)(state >> 40) % (u->rows + 2) - 1);
    }
    return index;
}

static void update(const struct updates *u, const int32_t *index, const float *values, bool sums,
                   double *y)
{
    for (int64_t k = 0; k < u->steps; k++)
        for (int64_t c = 0; c < u->cols; c++) {
            int64_t row = index[u->each ? k * u->cols + c : k];
            double v = (double)values[k * u->cols + c];

            if (row >= 0 && row < u->rows)
                y[row * u->cols + c] = sums ? y[row * u->cols + c] + v : v;
        }
}

static void check_updates(struct rig *rig, const struct updates *u, const float *numbers, bool sums)
{
    int64_t n = u->each ? u->steps * u->cols : u->steps, count = u->rows * u->cols;
    int64_t how = sums ? FRIT_CHOICE_update_add : FRIT_CHOICE_update_assign;
    int32_t *rows = row_numbers(u, n);
    double *want = malloc((size_t)count * sizeof(*want));
    frit_dims list = u->each ? FRIT_SHAPE(u->steps, u->cols) : FRIT_SHAPE(u->steps);
    frit_tensor *x = rig_tensor(rig, FRIT_SHAPE(u->rows, u->cols), numbers), *y;
    frit_tensor *values = rig_tensor(rig, FRIT_SHAPE(u->steps, u->cols), numbers + 100);
    frit_tensor *index =
        frit_from_host(rig->dev, FRIT_I32, list, rows, (uint64_t)n * sizeof(*rows));
    float *got;

    assert_non_null(want);
    for (int64_t i = 0; i < count; i++)
        want[i] = (double)numbers[i];
    update(u, rows, numbers + 100, sums, want);
    if (u->each)
        y = frit_scatter(x, index, values, 0, .update = how);
    else
        y = frit_select_assign(x, index, values, 0, .update = how);
    got = rig_read(y);
    for (int64_t i = 0; i < count; i++)
        if (!rig_near((double)got[i], want[i], fabs(want[i]) + (sums ? 4 : 0), 2))
            fail_msg("%lld x %lld, %lld steps: element %lld is %.9g, not %.9g", (long long)u->rows,
                     (long long)u->cols, (long long)u->steps, (long long)i, (double)got[i],
                     want[i]);
    frit_release(x);
    frit_release(values);
    frit_release(index);
    free(got);
    free(want);
    free(rows);
}

static void test_updates(void **state)
{
    static const struct updates all[] = {{5, 3, 7, true},        {5, 3, 7, false},
                                         {1000, 1000, 9, false}, {3000, 200, 50, true},
                                         {100 * K, 1, 60, true}, {2000, 500, 1, false},
                                         {10, 3, 5000, true},    {3000, 300, 700, false}};
    float *numbers = rig_numbers(2048 * K);
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (int sums = 0; sums < 2; sums++)
            check_updates(&rig, &all[i], numbers, sums);
    rig_close(&rig);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_running_sums),
                                       cmocka_unit_test(test_updates)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
