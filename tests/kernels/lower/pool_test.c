/* SPDX-License-Identifier: Apache-2.0 */
/* Pools against loops over windows in C: one to three spatial dims, padding, dilation, partial
 * windows, NaN and infinities, numbers of maxima, elementwise ops before and after. */
#include <math.h>
#include <string.h>

#include "ir/digest.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

enum { SPATIAL = 3 };

struct shape {
    uint32_t n; /* spatial dims */
    int64_t x[SPATIAL], kernel[SPATIAL], stride[SPATIAL], padding[SPATIAL], dilation[SPATIAL];
    bool ceil;
};

static const struct shape shapes[] = {
    {1, {9}, {3}, {1}, {1}, {1}, false},
    {1, {100}, {40}, {7}, {20}, {1}, true},
    {2, {8, 8}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false},
    {2, {7, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false},
    {2, {7, 9}, {3, 2}, {2, 3}, {1, 0}, {1, 1}, true},
    {2, {10, 11}, {3, 4}, {1, 2}, {1, 2}, {2, 3}, true},
    {2, {5, 6}, {5, 6}, {1, 1}, {0, 0}, {1, 1}, false},
    {3, {4, 5, 6}, {2, 3, 2}, {2, 1, 2}, {1, 1, 0}, {1, 1, 1}, true},
    {2, {1, 70}, {1, 2}, {1, 1}, {0, 1}, {1, 1}, false},
    {2, {4, 101}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false},
    {2, {3, 91}, {1, 3}, {1, 3}, {0, 1}, {1, 2}, true},
    /* rows in common, in strips; lines in segments, and of no multiple of lanes */
    {2, {9, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false},
    {2, {23, 60}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
    {2, {6, 150}, {4, 3}, {1, 3}, {2, 0}, {1, 1}, true},
    {2, {6, 70}, {2, 10}, {1, 2}, {1, 5}, {1, 1}, false},
    {2, {9, 37}, {5, 1}, {2, 1}, {2, 0}, {1, 1}, false},
    {1, {700}, {5}, {2}, {2}, {1}, true},
    {2, {12, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false},
    {2, {17, 35}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false},
    /* the last dim has one element, or is merged with the one before it; as many planes as rows */
    {2, {64, 1}, {3, 1}, {1, 1}, {1, 0}, {1, 1}, false},
    {3, {6, 33, 1}, {3, 3, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, false},
    {3, {3, 20, 16}, {1, 3, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, false},
    /* no rows in common, or not to be kept */
    {2, {11, 50}, {3, 3}, {2, 1}, {1, 1}, {2, 2}, false},
    {2, {4, 40}, {2, 3}, {1, 2}, {1, 1}, {5, 1}, true},
    {3, {5, 6, 34}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, false},
    {3, {12, 5, 64}, {1, 3, 3}, {1, 1, 2}, {0, 1, 1}, {1, 1, 1}, false},
};

static int64_t extent_of(const struct shape *s, uint32_t i, bool dilates)
{
    int64_t span = (s->kernel[i] - 1) * (dilates ? s->dilation[i] : 1) + 1;
    int64_t left = s->x[i] + 2 * s->padding[i] - span, n = left / s->stride[i] + 1;

    if (s->ceil && left % s->stride[i] && n * s->stride[i] < s->x[i] + s->padding[i])
        n++;
    return n;
}

/* As three spatial dims, the missing ones of extent 1 in front. */
static struct shape as_three(const struct shape *s)
{
    struct shape to = {.n = SPATIAL, .ceil = s->ceil};

    for (uint32_t i = 0; i < SPATIAL; i++) {
        uint32_t missing = SPATIAL - s->n;
        bool is = i >= missing;

        to.x[i] = is ? s->x[i - missing] : 1;
        to.kernel[i] = is ? s->kernel[i - missing] : 1;
        to.stride[i] = is ? s->stride[i - missing] : 1;
        to.padding[i] = is ? s->padding[i - missing] : 0;
        to.dilation[i] = is ? s->dilation[i - missing] : 1;
    }
    return to;
}

static double element(const struct rig *rig, uint32_t x, const struct shape *s, int64_t plane,
                      const int64_t *at)
{
    return rig_get_real(rig, x, ((plane * s->x[0] + at[0]) * s->x[1] + at[1]) * s->x[2] + at[2]);
}

struct pooled {
    double sum, most;
    int64_t at, n, n_padded;
};

/* The window from `first` on. */
static struct pooled window(const struct rig *rig, uint32_t x, const struct shape *s, int64_t plane,
                            const int64_t *first, bool dilates)
{
    struct pooled p = {.most = -(double)INFINITY, .at = -1, .n_padded = 1};

    for (uint32_t i = 0; i < SPATIAL; i++) {
        int64_t end = s->x[i] + s->padding[i];

        p.n_padded *= first[i] + s->kernel[i] < end ? s->kernel[i] : end - first[i];
    }
    for (int64_t k = 0; k < s->kernel[0] * s->kernel[1] * s->kernel[2]; k++) {
        const int64_t tap[SPATIAL] = {k / s->kernel[2] / s->kernel[1],
                                      k / s->kernel[2] % s->kernel[1], k % s->kernel[2]};
        int64_t at[SPATIAL];
        bool inside = true;
        double value;

        for (uint32_t i = 0; i < SPATIAL; i++) {
            at[i] = first[i] + tap[i] * (dilates ? s->dilation[i] : 1);
            inside = inside && at[i] >= 0 && at[i] < s->x[i];
        }
        if (!inside)
            continue;
        value = element(rig, x, s, plane, at);
        p.sum += value;
        p.n++;
        if (p.at < 0 || (!isnan(p.most) && (isnan(value) || value > p.most))) {
            p.most = value;
            p.at = (at[0] * s->x[1] + at[1]) * s->x[2] + at[2];
        }
    }
    return p;
}

/* Small integers; where there are to be some, now and then a NaN or an infinity, nothing but
 * -infinity in the first windows, and zeros of both signs in the last. */
static void fill(struct rig *rig, uint32_t value, bool odd)
{
    static const double odds[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    uint64_t chance = 5;

    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        double real = (double)rig_random(&chance, 33) - 16;

        if (odd && rig_random(&chance, 5) == 0)
            real = odds[rig_random(&chance, 8) ? 2 : rig_random(&chance, 3)];
        if (odd && i < rig_count(rig, value) / 3)
            real = -(double)INFINITY;
        if (odd && i >= rig_count(rig, value) / 3 * 2)
            real = i & 1 ? 0.0 : -0.0;
        rig_set_real(rig, value, i, real);
    }
}

static void dims_of(const struct shape *s, bool dilates, int64_t *x, int64_t *y)
{
    x[0] = y[0] = 2;
    x[1] = y[1] = 3;
    for (uint32_t i = 0; i < s->n; i++) {
        x[2 + i] = s->x[i];
        y[2 + i] = extent_of(s, i, dilates);
    }
}

static void first_of(const struct shape *s, bool dilates, int64_t number, int64_t *plane,
                     int64_t *first)
{
    for (uint32_t i = SPATIAL; i-- > 0;) {
        int64_t extent = extent_of(s, i, dilates);

        first[i] = number % extent * s->stride[i] - s->padding[i];
        number /= extent;
    }
    *plane = number;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static double rounded(uint32_t dtype, double x)
{
    return dtype == FRIT_F32 ? (double)(float)x : x;
}

/* ---- means ---- */

/* Means of -x, times 4.  `by_line`: lanes lie along lines that are long enough. */
static void check_mean(const struct shape *shape, uint32_t dtype, bool exclude_pad, bool by_line)
{
    frit_attrs_avg_pool attrs = {
        .struct_size = sizeof(attrs), .ceil = shape->ceil, .exclude_pad = exclude_pad};
    int64_t x_dims[5], y_dims[5];
    struct shape s = as_three(shape);
    uint32_t x, minus, mean, y;
    struct rig rig;

    memcpy(attrs.kernel, shape->kernel, sizeof(attrs.kernel));
    memcpy(attrs.stride, shape->stride, sizeof(attrs.stride));
    memcpy(attrs.padding, shape->padding, sizeof(attrs.padding));
    dims_of(shape, false, x_dims, y_dims);
    rig_init(&rig);
    rig.target.rereads_are_cached = by_line;
    rig.target.units = exclude_pad ? 1 : 4; /* strips are of more rows with fewer */
    x = rig_input(&rig, dtype, 2 + shape->n, x_dims);
    fill(&rig, x, false);
    minus = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(x)}, NULL, dtype, 2 + shape->n,
                   x_dims);
    mean = rig_op(&rig, FRIT_OP_avg_pool, 1, (struct rig_in[]){rig_value(minus)}, &attrs, dtype,
                  2 + shape->n, y_dims);
    y = rig_op(&rig, FRIT_OP_mul, 2, (struct rig_in[]){rig_value(mean), rig_real(dtype, 4)}, NULL,
               dtype, 2 + shape->n, y_dims);
    rig_run(&rig, &sched_pool);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        int64_t plane, first[SPATIAL];
        struct pooled p;

        first_of(&s, false, i, &plane, first);
        p = window(&rig, x, &s, plane, first, false);
        assert_true(rig_get_real(&rig, y, i) ==
                    4 * rounded(dtype, -p.sum / (double)(exclude_pad ? p.n : p.n_padded)));
    }
    rig_fini(&rig);
}

static void test_means(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (uint32_t k = 0; k < 8; k++)
            check_mean(&shapes[i], k & 1 ? FRIT_F64 : FRIT_F32, k & 2, k & 4);
}

/* A mean of 16 bits is rounded once, and sums of many elements keep their digits. */
static void test_rounding(void **state)
{
    const int64_t x_dims[] = {1, 1, 3000}, y_dims[] = {1, 1, 1};
    const frit_attrs_avg_pool attrs = {
        .struct_size = sizeof(attrs), .kernel = {3000}, .stride = {1}};
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 3, x_dims);
    for (int64_t i = 0; i < 3000; i++)
        rig_set_real(&rig, x, i, 1.1);
    y = rig_op(&rig, FRIT_OP_avg_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 3,
               y_dims);
    rig_run(&rig, &sched_pool);
    assert_true(fabs(rig_get_real(&rig, y, 0) - (double)1.1f) < 2e-6);
    rig_fini(&rig);
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F16, 3, x_dims);
    for (int64_t i = 0; i < 3000; i++)
        rig_set_real(&rig, x, i, 60000);
    y = rig_op(&rig, FRIT_OP_avg_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F16, 3,
               y_dims);
    rig_run(&rig, &sched_pool);
    assert_true(rig_get_real(&rig, y, 0) == rig_get_real(&rig, x, 0));
    rig_fini(&rig);
}

static void check_adaptive(const int64_t *from, const int64_t *to)
{
    const frit_attrs_adaptive attrs = {.struct_size = sizeof(attrs)};
    const int64_t x_dims[] = {2, 3, from[0], from[1]}, y_dims[] = {2, 3, to[0], to[1]};
    struct rig rig;
    uint32_t x, y;

    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 4, x_dims);
    fill(&rig, x, false);
    y = rig_op(&rig, FRIT_OP_adaptive_avg_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs,
               FRIT_F32, 4, y_dims);
    rig_run(&rig, &sched_pool);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        int64_t w = i % to[1], h = i / to[1] % to[0], plane = i / to[1] / to[0], n = 0;
        double sum = 0;

        for (int64_t a = h * from[0] / to[0]; a < ((h + 1) * from[0] + to[0] - 1) / to[0]; a++)
            for (int64_t b = w * from[1] / to[1]; b < ((w + 1) * from[1] + to[1] - 1) / to[1];
                 b++, n++)
                sum += rig_get_real(&rig, x, (plane * from[0] + a) * from[1] + b);
        assert_true(rig_get_real(&rig, y, i) == (double)(float)(sum / (double)n));
    }
    rig_fini(&rig);
}

static void test_adaptive(void **state)
{
    (void)state;
    check_adaptive((int64_t[]){8, 9}, (int64_t[]){4, 3});
    check_adaptive((int64_t[]){7, 10}, (int64_t[]){3, 4});
    check_adaptive((int64_t[]){5, 6}, (int64_t[]){1, 1});
    check_adaptive((int64_t[]){3, 4}, (int64_t[]){7, 5});
    check_adaptive((int64_t[]){13, 1}, (int64_t[]){13, 2});
    check_adaptive((int64_t[]){5, 6}, (int64_t[]){0, 2});
}

/* ---- maxima ---- */

static void check_most(const struct shape *shape, bool numbers, bool odd, uint32_t width,
                       bool by_line)
{
    frit_attrs_max_pool attrs = {.struct_size = sizeof(attrs), .ceil = shape->ceil};
    int64_t x_dims[5], y_dims[5];
    struct shape s = as_three(shape);
    uint32_t x, most, y, at = RIG_NONE;
    struct rig rig;

    memcpy(attrs.kernel, shape->kernel, sizeof(attrs.kernel));
    memcpy(attrs.stride, shape->stride, sizeof(attrs.stride));
    memcpy(attrs.padding, shape->padding, sizeof(attrs.padding));
    memcpy(attrs.dilation, shape->dilation, sizeof(attrs.dilation));
    dims_of(shape, true, x_dims, y_dims);
    rig_init(&rig);
    rig.index_width = width;
    rig.target.rereads_are_cached = by_line;
    rig.target.units = width == 64 ? 1 : 4;
    x = rig_laid(&rig, FRIT_F32, 2 + shape->n, x_dims, (uint32_t[]){1, 0, 2, 3, 4}, 4, 1);
    fill(&rig, x, odd);
    most = rig_op(&rig, FRIT_OP_max_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32,
                  2 + shape->n, y_dims);
    if (numbers)
        at = rig_second(&rig, FRIT_I64, 2 + shape->n, y_dims);
    y = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(most)}, NULL, FRIT_F32,
               2 + shape->n, y_dims);
    rig_run(&rig, &sched_pool);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        int64_t plane, first[SPATIAL];
        struct pooled p;

        first_of(&s, true, i, &plane, first);
        p = window(&rig, x, &s, plane, first, true);
        assert_true(same(rig_get_real(&rig, y, i), -p.most));
        if (p.most == 0)
            assert_true(!signbit(rig_get_real(&rig, y, i)) == !!signbit(p.most));
        if (numbers)
            assert_true(rig_get_int(&rig, at, i) == p.at);
    }
    rig_fini(&rig);
}

static void test_maxima(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (uint32_t k = 0; k < 16; k++)
            check_most(&shapes[i], k & 1, k & 2, k & 4 ? 64 : 32, k & 8);
}

/* ---- lines ---- */

static uint32_t count(const struct rig *rig, uint32_t op)
{
    const struct kir_phase *phase = &rig->module.phases[0];
    uint32_t n = 0;

    for (uint32_t i = 0; i < phase->n; i++)
        n += phase->inst[i].op == op;
    return n;
}

static void build_most(struct rig *rig, const struct shape *s, bool by_line, bool fmax)
{
    frit_attrs_max_pool attrs = {.struct_size = sizeof(attrs)};
    int64_t x_dims[5], y_dims[5];
    uint32_t x;

    memcpy(attrs.kernel, s->kernel, sizeof(attrs.kernel));
    memcpy(attrs.stride, s->stride, sizeof(attrs.stride));
    memcpy(attrs.padding, s->padding, sizeof(attrs.padding));
    memcpy(attrs.dilation, s->dilation, sizeof(attrs.dilation));
    dims_of(s, true, x_dims, y_dims);
    rig_init(rig);
    rig->target.rereads_are_cached = by_line;
    rig->target.fmax = fmax;
    x = rig_input(rig, FRIT_F32, 4, x_dims);
    rig_op(rig, FRIT_OP_max_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 4, y_dims);
    rig_run(rig, &sched_pool);
}

/* Where lanes lie along lines, each row is loaded by one lane once, and loads are under masks in
 * code of their own, and of elements that may be outside alone. */
static void test_lines(void **state)
{
    static const struct shape rows = {2, {112, 112}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false};
    static const struct shape all = {2, {20, 64}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false};
    struct rig rig;

    (void)state;
    build_most(&rig, &rows, true, false);
    assert_int_equal(count(&rig, KIR_load), 3 * 3 + 3 * 2);
    assert_int_equal(count(&rig, KIR_load_if), 3 * 1);
    assert_int_equal(count(&rig, KIR_fmax), 0);
    assert_int_equal(count(&rig, KIR_store_if), 2); /* 56 results are 3.5 blocks */
    assert_int_equal(count(&rig, KIR_store), 0);
    rig_fini(&rig);
    build_most(&rig, &rows, true, true);
    assert_int_equal(count(&rig, KIR_load_if), 3 * 1);
    assert_int_equal(count(&rig, KIR_ne), 0);
    rig_fini(&rig);
    build_most(&rig, &rows, false, false);
    assert_int_equal(count(&rig, KIR_load), 0);
    rig_fini(&rig);
    build_most(&rig, &all, true, false);
    assert_int_equal(count(&rig, KIR_load), 2);
    assert_int_equal(count(&rig, KIR_store), 1);
    assert_int_equal(count(&rig, KIR_load_if) + count(&rig, KIR_if), 0);
    rig_fini(&rig);
}

/* ---- blocks ---- */

static void test_no_elements(void **state)
{
    const int64_t x_dims[] = {0, 3, 8}, y_dims[] = {0, 3, 4};
    const frit_attrs_max_pool attrs = {
        .struct_size = sizeof(attrs), .kernel = {2}, .stride = {2}, .dilation = {1}};
    struct rig rig;
    uint32_t x;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 3, x_dims);
    rig_op(&rig, FRIT_OP_max_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 3, y_dims);
    rig_run(&rig, &sched_pool);
    assert_int_equal(rig.numbers.grid[0][0], 0);
    rig_fini(&rig);
}

/* The size of windows is a parameter. */
static void test_shared_code(void **state)
{
    uint8_t digest[2][KIR_DIGEST];

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t size = i ? 5 : 3, x_dims[] = {1, 1, 20 * size}, y_dims[] = {1, 1, 20};
        const frit_attrs_avg_pool attrs = {
            .struct_size = sizeof(attrs), .kernel = {size}, .stride = {size}};
        struct rig rig;
        uint32_t x;

        rig_init(&rig);
        x = rig_input(&rig, FRIT_F32, 3, x_dims);
        rig_op(&rig, FRIT_OP_avg_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 3,
               y_dims);
        rig_run(&rig, &sched_pool);
        kir_digest(&rig.module, digest[i]);
        rig_fini(&rig);
    }
    assert_memory_equal(digest[0], digest[1], KIR_DIGEST);
}

/* Lanes read what others write where windows overlap: x's memory is not the result's. */
static void test_alias(void **state)
{
    const int64_t dims[] = {2, 3, 8};
    const frit_attrs_max_pool attrs = {.struct_size = sizeof(attrs),
                                       .kernel = {3},
                                       .stride = {1},
                                       .padding = {1},
                                       .dilation = {1}};
    struct rig rig;
    uint32_t x, w, most;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 3, dims);
    w = rig_input(&rig, FRIT_F32, 3, dims);
    most = rig_op(&rig, FRIT_OP_max_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 3,
                  dims);
    rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(most), rig_value(w)}, NULL, FRIT_F32,
           3, dims);
    rig_run(&rig, &sched_pool);
    assert_int_equal(rig.numbers.alias[0], 2);
    rig_fini(&rig);
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 3, dims);
    most = rig_op(&rig, FRIT_OP_max_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 3,
                  dims);
    rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(most), rig_value(x)}, NULL, FRIT_F32,
           3, dims);
    rig_run(&rig, &sched_pool);
    assert_int_equal(rig.numbers.alias[0], 0);
    rig_fini(&rig);
}

static void test_no_memory(void **state)
{
    const int64_t dims[] = {2, 3, 9}, y_dims[] = {2, 3, 4};
    const frit_attrs_adaptive attrs = {.struct_size = sizeof(attrs)};
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 3, dims);
    y = rig_op(&rig, FRIT_OP_adaptive_avg_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs,
               FRIT_F32, 3, y_dims);
    rig_op(&rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 3, y_dims);
    rig_run(&rig, &sched_pool);
    rig_fail_allocations(&rig, &sched_pool, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),       cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_adaptive),    cmocka_unit_test(test_maxima),
        cmocka_unit_test(test_no_elements), cmocka_unit_test(test_alias),
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_shared_code),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
