/* SPDX-License-Identifier: Apache-2.0 */
/* The fft schedule against plain loops: lines along each axis, cut and filled with zeros, either
 * result alone, sums in F32, ops after it and views before. */
#include <math.h>

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

static const double TAU = 6.28318530717958647692528676655900577;

/* Lines along an axis, `outer` times `inner` of them, and the length of the signal. */
struct lines {
    int64_t outer, inner, extent, n;
};

static struct lines lines_of(uint32_t rank, const int64_t *dims, uint32_t axis, int64_t n)
{
    struct lines lines = {1, 1, dims[axis], n};

    for (uint32_t d = 0; d < rank; d++)
        *(d < axis ? &lines.outer : &lines.inner) *= d == axis ? 1 : dims[d];
    return lines;
}

/* Number of element i of a line in a value that has `extent` of them. */
static int64_t number(const struct lines *lines, int64_t line, int64_t extent, int64_t i)
{
    return (line / lines->inner * extent + i) * lines->inner + line % lines->inner;
}

static void fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, (double)rig_random(&seed, 2001) / 500 - 2);
}

static double angle(int64_t k, int64_t t, int64_t n)
{
    return TAU * (double)(k * t % n) / (double)n;
}

/* Part 0 or 1 of element k of a line of x. */
static double forward(const struct rig *rig, uint32_t x, const struct lines *lines, int64_t line,
                      int64_t k, uint32_t part)
{
    double sum = 0;

    for (int64_t t = 0; t < lines->extent && t < lines->n; t++) {
        double at = angle(k, t, lines->n);

        sum += rig_get_real(rig, x, number(lines, line, lines->extent, t)) *
               (part ? -sin(at) : cos(at));
    }
    return sum;
}

static double inverse(const struct rig *rig, const uint32_t x[2], const struct lines *lines,
                      int64_t line, int64_t t)
{
    int64_t n = lines->n;
    double sum = 0;

    for (int64_t k = 0; k < lines->extent && k <= n / 2; k++) {
        int64_t at = number(lines, line, lines->extent, k);
        double re = rig_get_real(rig, x[0], at) * cos(angle(k, t, n));

        sum += k == 0 || 2 * k == n ? re
                                    : 2 * (re - rig_get_real(rig, x[1], at) * sin(angle(k, t, n)));
    }
    return sum / (double)n;
}

/* What a sum of numbers up to 2 may be off. */
static double tolerance(const struct rig *rig, uint32_t dtype, double real)
{
    if (dtype == FRIT_F16)
        return 0x1.1p-11 * fabs(real) + 1e-7;
    if (dtype == FRIT_F64)
        return 1e-11;
    return rig->target.f64 ? 0x1.01p-24 * fabs(real) + 1e-11 : 1e-4;
}

static void near(const struct rig *rig, uint32_t y, int64_t at, double want)
{
    double seen = rig_get_real(rig, y, at);

    if (!(fabs(seen - want) <= tolerance(rig, rig->values[y].dtype, want)))
        fail_msg("element %lld is %.17g, not %.17g", (long long)at, seen, want);
}

static void check_forward(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                          uint32_t axis, int64_t n)
{
    const frit_attrs_fft attrs = {.struct_size = sizeof(attrs), .axis = axis, .n = n};
    const struct lines lines = lines_of(rank, dims, axis, n);
    int64_t out[FRIT_MAX_RANK];
    uint32_t x = rig_input(rig, dtype, rank, dims), y[2];

    for (uint32_t d = 0; d < rank; d++)
        out[d] = d == axis ? n / 2 + 1 : dims[d];
    fill(rig, x, 77);
    y[0] = rig_op(rig, FRIT_OP_rfft, 1, (struct rig_in[]){rig_value(x)}, &attrs, dtype, rank, out);
    y[1] = rig_second(rig, dtype, rank, out);
    rig_run(rig, &sched_fft);
    for (uint32_t part = 0; part < 2; part++)
        for (int64_t line = 0; line < lines.outer * lines.inner; line++)
            for (int64_t k = 0; k <= n / 2; k++)
                near(rig, y[part], number(&lines, line, n / 2 + 1, k),
                     forward(rig, x, &lines, line, k, part));
}

/* What counts for nothing is NaN. */
static void spoil(struct rig *rig, uint32_t im, const struct lines *lines)
{
    for (int64_t line = 0; line < lines->outer * lines->inner; line++)
        for (int64_t k = 0; k < lines->extent; k++)
            if (k == 0 || 2 * k == lines->n || k > lines->n / 2)
                rig_set_real(rig, im, number(lines, line, lines->extent, k), (double)NAN);
}

static void check_inverse(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                          uint32_t axis, int64_t n)
{
    const frit_attrs_fft attrs = {.struct_size = sizeof(attrs), .axis = axis, .n = n};
    const struct lines lines = lines_of(rank, dims, axis, n);
    const uint32_t x[2] = {rig_input(rig, dtype, rank, dims), rig_input(rig, dtype, rank, dims)};
    int64_t out[FRIT_MAX_RANK];
    uint32_t y;

    for (uint32_t d = 0; d < rank; d++)
        out[d] = d == axis ? n : dims[d];
    fill(rig, x[0], 5);
    fill(rig, x[1], 6);
    spoil(rig, x[1], &lines);
    y = rig_op(rig, FRIT_OP_irfft, 2, (struct rig_in[]){rig_value(x[0]), rig_value(x[1])}, &attrs,
               dtype, rank, out);
    rig_run(rig, &sched_fft);
    for (int64_t line = 0; line < lines.outer * lines.inner; line++)
        for (int64_t t = 0; t < n; t++)
            near(rig, y, number(&lines, line, n, t), inverse(rig, x, &lines, line, t));
}

enum { F64_LESS = 1, WIDE = 2 };

static void check(uint32_t how, uint32_t dtype, uint32_t rank, const int64_t *dims, uint32_t axis,
                  int64_t n)
{
    for (uint32_t back = 0; back < 2; back++) {
        struct rig rig;

        rig_init(&rig);
        rig.target.f64 = !(how & F64_LESS);
        rig.index_width = how & WIDE ? 64 : 32;
        (back ? check_inverse : check_forward)(&rig, dtype, rank, dims, axis, n);
        assert_int_equal(rig.module.wide, (how & WIDE) != 0);
        rig_fini(&rig);
    }
}

static void test_lines(void **state)
{
    static const int64_t dims[][3] = {{5, 4, 3}, {1, 7, 1}, {2, 1, 40}, {1, 1, 1}};
    static const int64_t lengths[] = {1, 2, 3, 4, 8, 13, 150};

    (void)state;
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t axis = 0; axis < 3; axis++)
            for (uint32_t l = 0; l < 7; l++)
                check(0, FRIT_F32, 3, dims[s], axis, lengths[l]);
}

static void test_types(void **state)
{
    static const int64_t dims[] = {3, 70};

    (void)state;
    for (int64_t n = 69; n < 72; n++) {
        check(0, FRIT_F64, 2, dims, 1, n);
        check(0, FRIT_F16, 2, dims, 1, n);
        check(F64_LESS, FRIT_F32, 2, dims, 1, n);
        check(F64_LESS, FRIT_F16, 2, dims, 0, n);
        check(WIDE, FRIT_F32, 2, dims, 1, n);
        check(WIDE | F64_LESS, FRIT_F32, 2, dims, 0, n);
    }
}

/* Lines of several blocks, full ones only and not. */
static void test_long(void **state)
{
    (void)state;
    check(0, FRIT_F32, 1, (const int64_t[]){301}, 0, 301);
    check(F64_LESS, FRIT_F32, 1, (const int64_t[]){512}, 0, 512);
    check(F64_LESS, FRIT_F32, 1, (const int64_t[]){700}, 0, 1000);
}

/* A line of nothing is one of zeros; no lines are nothing. */
static void test_empty(void **state)
{
    (void)state;
    check(0, FRIT_F32, 2, (const int64_t[]){3, 0}, 1, 5);
    check(0, FRIT_F32, 2, (const int64_t[]){0, 4}, 1, 4);
}

/* Each part alone, of a reversed, transposed signal, doubled. */
static void test_around(void **state)
{
    static const int64_t dims[] = {20, 3}, turned[] = {3, 20}, out[] = {3, 11};
    const frit_attrs_fft attrs = {.struct_size = sizeof(attrs), .axis = 1, .n = 20};
    const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 0, .with = 1};
    const struct lines lines = {1, 3, 20, 20};

    (void)state;
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t x, y[2], twice;
        struct rig rig;

        rig_init(&rig);
        x = rig_laid(&rig, FRIT_F32, 2, dims, (const uint32_t[]){0, 1}, 1, 2);
        fill(&rig, x, 3);
        y[0] = rig_op(&rig, FRIT_OP_transpose, 1, (struct rig_in[]){rig_value(x)}, &swap, FRIT_F32,
                      2, turned);
        y[0] = rig_op(&rig, FRIT_OP_rfft, 1, (struct rig_in[]){rig_value(y[0])}, &attrs, FRIT_F32,
                      2, out);
        y[1] = rig_second(&rig, FRIT_F32, 2, out);
        rig.values[y[!part]].last_use = rig.n_ops - 1;
        twice = rig_op(&rig, FRIT_OP_mul, 2,
                       (struct rig_in[]){rig_value(y[part]), rig_real(FRIT_F32, 2)}, NULL, FRIT_F32,
                       2, out);
        rig_run(&rig, &sched_fft);
        assert_int_equal(rig.block.n_outputs, 1);
        for (int64_t i = 0; i < 33; i++)
            near(&rig, twice, i, 2 * (double)(float)forward(&rig, x, &lines, i / 11, i % 11, part));
        rig_fini(&rig);
    }
}

/* Forgets the rig. */
static frit_status try_forward(struct rig *rig, int64_t extent, int64_t n, bool computed)
{
    const frit_attrs_fft attrs = {.struct_size = sizeof(attrs), .axis = 0, .n = n};
    uint32_t x = rig_input(rig, FRIT_F32, 1, &extent);
    const int64_t out = n / 2 + 1;
    frit_status status;

    if (computed)
        x = rig_op(rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 1,
                   &extent);
    rig_op(rig, FRIT_OP_rfft, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 1, &out);
    rig_second(rig, FRIT_F32, 1, &out);
    status = rig_try(rig, &sched_fft);
    rig_fini(rig);
    return status;
}

/* What is computed before would be so for each element that reads it. */
static void test_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    assert_int_equal(try_forward(&rig, 200, 200, false), FRIT_OK);
    rig_init(&rig);
    assert_int_equal(try_forward(&rig, 200, 200, true), FRIT_UNSUPPORTED);
    rig_init(&rig);
    rig.target.max_rounds = 204;
    assert_int_equal(try_forward(&rig, 200, 200, false), FRIT_OK);
    rig_init(&rig);
    rig.target.max_rounds = 203;
    assert_int_equal(try_forward(&rig, 200, 200, false), FRIT_UNSUPPORTED);
    rig_init(&rig);
    rig.target.max_rounds = 100;
    assert_int_equal(try_forward(&rig, 2, (1 << 27) + 1, false), FRIT_UNSUPPORTED);
}

static void test_no_memory(void **state)
{
    static const int64_t dims[] = {2, 100};
    const frit_attrs_fft attrs = {.struct_size = sizeof(attrs), .axis = 1, .n = 198};
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    y = rig_op(&rig, FRIT_OP_irfft, 2, (struct rig_in[]){rig_value(x), rig_value(x)}, &attrs,
               FRIT_F32, 2, (const int64_t[]){2, 198});
    rig_op(&rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2,
           (const int64_t[]){2, 198});
    rig_run(&rig, &sched_fft);
    rig_fail_allocations(&rig, &sched_fft, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_types),
        cmocka_unit_test(test_long),      cmocka_unit_test(test_empty),
        cmocka_unit_test(test_around),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
