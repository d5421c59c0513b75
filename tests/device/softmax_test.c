/* SPDX-License-Identifier: Apache-2.0 */
/* softmax over the first, the middle and the last axis and over a pair of axes, written op by op
 * and by its row, from one element to a million in each of 1 to 64 K rows, against plain loops in
 * double.  FRIT_TEST_LONG=1: up to 64 M elements, of which some rows are looked at. */
#include "device/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <frit/inspect.h>

enum { K = 1024, M = K * K, LOOKED_AT = 2 * M };

/* Elements of a row: two dims, of `n` each, `step` apart; rows likewise. */
struct grid {
    int64_t n[2], step[2];
};

struct softmax {
    const char *name;
    frit_dims dims;
    frit_axes axes;
    struct grid rows, cols;
};

static bool is_reduced(const struct softmax *s, int64_t d)
{
    for (int64_t k = 0; k < s->axes.count; k++)
        if (s->axes.axis[k] == d)
            return true;
    return false;
}

/* Fills rows and cols from dims and axes: at most two dims of each kind. */
static void make_grids(struct softmax *s)
{
    int64_t step = 1;
    uint32_t n_rows = 0, n_cols = 0;

    s->rows = s->cols = (struct grid){{1, 1}, {0, 0}};
    for (int64_t d = s->dims.rank - 1; d >= 0; d--) {
        struct grid *grid = is_reduced(s, d) ? &s->cols : &s->rows;
        uint32_t *n = is_reduced(s, d) ? &n_cols : &n_rows;

        grid->n[*n] = s->dims.dim[d];
        grid->step[(*n)++] = step;
        step *= s->dims.dim[d];
    }
}

static int64_t grid_count(const struct grid *grid)
{
    return grid->n[0] * grid->n[1];
}

static int64_t grid_at(const struct grid *grid, int64_t i)
{
    return i % grid->n[0] * grid->step[0] + i / grid->n[0] * grid->step[1];
}

static void check_row(const struct softmax *s, int64_t row, const float *x, const float *y)
{
    int64_t n = grid_count(&s->cols), from = grid_at(&s->rows, row);
    double most = -INFINITY, sum = 0;

    for (int64_t j = 0; j < n; j++)
        most = fmax(most, (double)x[from + grid_at(&s->cols, j)]);
    for (int64_t j = 0; j < n; j++)
        sum += exp((double)x[from + grid_at(&s->cols, j)] - most);
    for (int64_t j = 0; j < n; j++) {
        int64_t at = from + grid_at(&s->cols, j);
        double want = exp((double)x[at] - most) / sum;

        if (!rig_near((double)y[at], want, want, 24))
            fail_msg("%s: row %lld, element %lld is %.9g, not %.9g", s->name, (long long)row,
                     (long long)j, (double)y[at], want);
    }
}

/* The first, the last, and rows between them. */
static void check_rows(const struct softmax *s, const float *x, float *y)
{
    int64_t rows = grid_count(&s->rows), many = LOOKED_AT / grid_count(&s->cols);
    int64_t looked_at = many < 3 ? 3 : many;

    looked_at = looked_at < rows ? looked_at : rows;
    for (int64_t k = 0; k < looked_at; k++)
        check_row(s, looked_at == 1 ? 0 : k * (rows - 1) / (looked_at - 1), x, y);
    free(y);
}

static frit_tensor *by_ops(frit_tensor *x, frit_axes axes)
{
    frit_scope scope = frit_scope_begin(frit_tensor_device(x));
    frit_tensor *e = frit_exp(frit_sub(x, frit_max(x, .axes = axes, .keep = true)));
    frit_tensor *y = frit_keep(frit_div(e, frit_sum(e, .axes = axes, .keep = true)));

    frit_scope_end(scope);
    return y;
}

static void check_softmax(struct rig *rig, struct softmax *s, const float *numbers)
{
    frit_tensor *x = rig_tensor(rig, s->dims, numbers);
    frit_stats before = rig_stats(rig);

    make_grids(s);
    check_rows(s, numbers, rig_read(by_ops(x, s->axes)));
    assert_int_equal(rig_stats(rig).launches - before.launches, 1);
    if (s->axes.count == 1)
        check_rows(s, numbers, rig_read(frit_softmax(x, s->axes.axis[0])));
    frit_release(x);
}

static void check_sizes(struct rig *rig, int64_t rows, int64_t cols, const float *numbers)
{
    int64_t inner = rows % 256 ? 1 : 256, part = cols % K ? 1 : K;
    struct softmax all[] = {
        {.name = "first axis", .dims = FRIT_SHAPE(cols, rows), .axes = FRIT_AXES(0)},
        {.name = "middle axis",
         .dims = FRIT_SHAPE(rows / inner, cols, inner),
         .axes = FRIT_AXES(1)},
        {.name = "last axis", .dims = FRIT_SHAPE(rows, cols), .axes = FRIT_AXES(1)},
        {.name = "first and last axis",
         .dims = FRIT_SHAPE(part, rows, cols / part),
         .axes = FRIT_AXES(0, 2)},
    };

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        char name[96];

        snprintf(name, sizeof(name), "%lld rows of %lld, %s", (long long)rows, (long long)cols,
                 all[k].name);
        all[k].name = name;
        check_softmax(rig, &all[k], numbers);
    }
}

#ifdef __SANITIZE_ADDRESS__
enum { USUAL = M / 4 };
#else
enum { USUAL = 2 * M };
#endif

static void test_softmax_of_all_shapes(void **state)
{
    static const int64_t rows[] = {1, 7, 64, 64 * K}, cols[] = {1, 31, K, 4 * K, 64 * K, M};
    const char *wanted = getenv("FRIT_TEST_LONG");
    int64_t most = wanted && strcmp(wanted, "1") == 0 ? 64 * M : USUAL;
    float *numbers = rig_numbers((uint64_t)most);
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t j = 0; j < sizeof(cols) / sizeof(cols[0]); j++)
            if (rows[i] * cols[j] <= most)
                check_sizes(&rig, rows[i], cols[j], numbers);
    rig_close(&rig);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax_of_all_shapes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
