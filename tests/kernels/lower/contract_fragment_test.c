/* SPDX-License-Identifier: Apache-2.0 */
/* Products by fragments against plain loops: layouts, sizes around those of tiles, batches, ops
 * before and after, with and without copies. */
#include <math.h>
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

enum { M, N, K, SIZES };

/* Targets: without copies, and with little memory too, with copies, and with wide fragments that
 * are loaded in blocks. */
enum way { PLAIN, SMALL, COPIES, WIDE, WAYS };

static void add_shape(struct kir_target *target, uint32_t m, uint32_t n, uint32_t dtype)
{
    target->shapes[target->n_shapes++] = (struct kir_fragment_shape){.m = m,
                                                                     .n = n,
                                                                     .k = 16,
                                                                     .dtype = dtype,
                                                                     .sum = FRIT_F32,
                                                                     .team = m / 2,
                                                                     .from_blocks = m > 16};
}

/* Small teams: evaluating takes less time. */
static void set_target(struct rig *rig, enum way way)
{
    struct kir_target *target = &rig->target;

    target->max_lanes = 2048;
    target->group_bytes = way == SMALL ? 36 << 10 : 1 << 18;
    target->units = 16;
    target->tuning.few_weights = 1 << 17;
    target->copies = way >= COPIES;
    target->reuses_tiles = way != PLAIN;
    target->stages_tiles = true;
    for (uint32_t dtype = FRIT_F16; dtype <= FRIT_BF16; dtype += FRIT_BF16 - FRIT_F16) {
        add_shape(target, way == WIDE ? 64 : 16, way == WIDE ? 64 : 16, dtype);
        if (way == WIDE)
            for (uint32_t n = 192; n <= 256; n += 64)
                add_shape(target, 64, n, dtype);
    }
}

static void fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / 16);
}

static uint32_t operand(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                        bool turned)
{
    uint32_t order[4] = {0, 1, 2, 3}, value;

    if (turned) {
        order[rank - 2] = rank - 1;
        order[rank - 1] = rank - 2;
    }
    value = rig_laid(rig, dtype, rank, dims, order, 0, 1);
    fill(rig, value, 5 + (uint64_t)dims[rank - 1]);
    return value;
}

/* Products are multiples of 2^-8, exact in F32; only the rounding to the result's type is left. */
static void same(const char *what, uint32_t dtype, int64_t number, double seen, double want)
{
    double tolerance = dtype == FRIT_F16 ? 0x1p-11 : dtype == FRIT_BF16 ? 0x1p-8 : 0x1p-22;

    if (!(fabs(seen - want) <= tolerance * fabs(want) + (dtype == FRIT_F32 ? 0x1p-20 : 0)))
        fail_msg("%s of type %u: element %lld is %.9g, not %.9g", what, dtype, (long long)number,
                 seen, want);
}

/* Element [i, j] of batch b. */
static double product_at(const struct rig *rig, uint32_t a, uint32_t b, const int64_t *n,
                         int64_t batch, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < n[K]; k++)
        sum += rig_get_real(rig, a, (batch * n[M] + i) * n[K] + k) *
               rig_get_real(rig, b, (batch * n[K] + k) * n[N] + j);
    return sum;
}

static void assert_fragments(const struct rig *rig)
{
    assert_true(rig->module.phases[0].n_fragments > 0);
}

static void check(uint32_t dtype, const int64_t *n, int64_t batches, uint32_t turned, enum way way)
{
    const int64_t a_dims[] = {batches, n[M], n[K]}, b_dims[] = {batches, n[K], n[N]},
                  dims[] = {batches, n[M], n[N]};
    uint32_t a, b, y;
    struct rig rig;

    rig_init(&rig);
    set_target(&rig, way);
    rig.index_width = turned == 2 ? 64 : 32;
    a = operand(&rig, dtype, 3, a_dims, turned & 1);
    b = operand(&rig, dtype, 3, b_dims, turned >> 1);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL, dtype,
               3, dims);
    rig_run(&rig, &sched_contract);
    assert_fragments(&rig);
    for (int64_t i = 0; i < rig_count(&rig, y); i++)
        same("matmul", dtype, i, rig_get_real(&rig, y, i),
             product_at(&rig, a, b, n, i / (n[M] * n[N]), i / n[N] % n[M], i % n[N]));
    rig_fini(&rig);
}

/* Few rows, whose groups share k. */
static void test_few(void **state)
{
    static const int64_t sizes[][SIZES] = {
        {8, 260, 520}, {1, 512, 256}, {16, 100, 1330}, {5, 173, 777}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t turned = 0; turned < 3; turned++)
            check(i % 2 ? FRIT_F16 : FRIT_BF16, sizes[i], 1 + i % 2, turned, i % 2 ? PLAIN : SMALL);
}

static void test_sizes(void **state)
{
    static const int64_t sizes[][SIZES] = {{33, 34, 16},  {64, 64, 64},  {70, 40, 48},
                                           {40, 72, 100}, {129, 33, 31}, {48, 130, 41}};
    uint32_t number = 0;

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t turned = 0; turned < 4; turned++)
            for (uint32_t way = 0; way < WAYS; way++)
                if (number++ % rig_every() == 0)
                    check(i % 2 ? FRIT_F16 : FRIT_BF16, sizes[i], 1 + i % 2, turned, way);
}

/* Large groups, whatever the size. */
static void test_tiles(void **state)
{
    static const int64_t sizes[][SIZES] = {
        {256, 512, 40}, {256, 128, 33}, {140, 64, 64}, {128, 190, 33}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t way = 0; way < WAYS; way++)
            if ((i + way) % rig_every() == 0)
                check(FRIT_BF16, sizes[i], 1, i, way);
}

/* relu(x @ w + bias + rest), of x or neg(x), and twice that. */
static void around(enum way way, uint32_t form)
{
    const int64_t n[SIZES] = {48, 40, 72}, x_dims[] = {n[M], n[K]}, w_dims[] = {n[K], n[N]},
                  dims[] = {n[M], n[N]};
    uint32_t x, w, bias, rest, y, z, u;
    struct rig rig;

    rig_init(&rig);
    set_target(&rig, way);
    x = operand(&rig, FRIT_BF16, 2, x_dims, false);
    w = operand(&rig, FRIT_BF16, 2, w_dims, form & 1);
    bias = rig_input(&rig, FRIT_BF16, 1, dims + 1);
    rest = operand(&rig, FRIT_BF16, 2, dims, false);
    fill(&rig, bias, 3);
#define OP(id, n_in, attrs, dims, ...) \
    rig_op(&rig, id, n_in, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_BF16, 2, dims)
    y = form & 2 ? OP(FRIT_OP_neg, 1, NULL, x_dims, rig_value(x)) : x;
    y = OP(FRIT_OP_linear, 3, NULL, dims, rig_value(y), rig_value(w), rig_value(bias));
    y = OP(FRIT_OP_add, 2, NULL, dims, rig_value(y), rig_value(rest));
    z = OP(FRIT_OP_relu, 1, NULL, dims, rig_value(y));
    rig_keep(&rig, z);
    u = OP(FRIT_OP_add, 2, NULL, dims, rig_value(z), rig_value(z));
#undef OP
    rig_run(&rig, &sched_contract);
    assert_fragments(&rig);
    for (int64_t i = 0; i < n[M] * n[N]; i++) {
        double want = (form & 2 ? -1 : 1) * product_at(&rig, x, w, n, 0, i / n[N], i % n[N]);
        double seen = rig_get_real(&rig, z, i);

        want += rig_get_real(&rig, bias, i % n[N]) + rig_get_real(&rig, rest, i);
        want = fmax(want, 0);
        if (fabs(seen - want) > 0x1p-6 * (fabs(want) + 4)) /* rounded after each op */
            fail_msg("form %u: element %lld is %.9g, not %.9g", form, (long long)i, seen, want);
        same("twice", FRIT_BF16, i, rig_get_real(&rig, u, i), 2 * seen);
    }
    rig_fini(&rig);
}

static void test_around(void **state)
{
    (void)state;
    for (uint32_t form = 0; form < 4; form++)
        for (uint32_t way = 0; way < WAYS; way++)
            if ((form + way) % rig_every() == 0)
                around(way, form);
}

/* Operands that are cast to F32, which changes none: the result is of F32. */
static void test_widened(void **state)
{
    static const int64_t n[SIZES] = {40, 48, 32}, a_dims[] = {40, 32}, b_dims[] = {32, 48},
                         dims[] = {40, 48};
    const frit_attrs_cast to = {.struct_size = sizeof(to), .dtype = FRIT_F32};
    uint32_t a, b, in[2], y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    set_target(&rig, COPIES);
    a = operand(&rig, FRIT_F16, 2, a_dims, false);
    b = operand(&rig, FRIT_F16, 2, b_dims, false);
    in[0] =
        rig_op(&rig, FRIT_OP_cast, 1, (struct rig_in[]){rig_value(a)}, &to, FRIT_F32, 2, a_dims);
    in[1] =
        rig_op(&rig, FRIT_OP_cast, 1, (struct rig_in[]){rig_value(b)}, &to, FRIT_F32, 2, b_dims);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(in[0]), rig_value(in[1])}, NULL,
               FRIT_F32, 2, dims);
    rig_run(&rig, &sched_contract);
    assert_fragments(&rig);
    for (int64_t i = 0; i < rig_count(&rig, y); i++)
        same("widened", FRIT_F32, i, rig_get_real(&rig, y, i),
             product_at(&rig, a, b, n, 0, i / n[N], i % n[N]));
    rig_fini(&rig);
}

/* A conv: x [2, 20, 7, 9] with zeros around it, weights [24, 20, 3, 3]. */
static void check_conv(enum way way)
{
    enum { IMAGES = 2, IN = 20, OUT = 24, HIGH = 7, LONG = 9, WINDOW = 3 };
    static const int64_t x_dims[] = {IMAGES, IN, HIGH, LONG}, w_dims[] = {OUT, IN, WINDOW, WINDOW},
                         dims[] = {IMAGES, OUT, HIGH, LONG};
    const frit_attrs_conv attrs = {.struct_size = sizeof(attrs), .padding = {1, 1}};
    uint32_t x, w, y;
    struct rig rig;

    rig_init(&rig);
    set_target(&rig, way);
    x = operand(&rig, FRIT_BF16, 4, x_dims, false);
    w = operand(&rig, FRIT_BF16, 4, w_dims, false);
    y = rig_op(&rig, FRIT_OP_conv, 3,
               (struct rig_in[]){rig_value(x), rig_value(w), rig_value(RIG_ABSENT)}, &attrs,
               FRIT_BF16, 4, dims);
    rig_run(&rig, &sched_contract);
    assert_fragments(&rig);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        int64_t image = i / (OUT * HIGH * LONG), out = i / (HIGH * LONG) % OUT;
        double want = 0;

        for (int64_t k = 0; k < IN * WINDOW * WINDOW; k++) {
            int64_t in = k / (WINDOW * WINDOW), row = i / LONG % HIGH + k / WINDOW % WINDOW - 1;
            int64_t column = i % LONG + k % WINDOW - 1;

            if (row >= 0 && row < HIGH && column >= 0 && column < LONG)
                want += rig_get_real(&rig, x, ((image * IN + in) * HIGH + row) * LONG + column) *
                        rig_get_real(&rig, w, out * IN * WINDOW * WINDOW + k);
        }
        same("conv", FRIT_BF16, i, rig_get_real(&rig, y, i), want);
    }
    rig_fini(&rig);
}

static void test_conv(void **state)
{
    (void)state;
    for (uint32_t way = 0; way < WAYS; way++)
        check_conv(way);
}

/* NaN and infinities go where the products of rows and columns that have them go. */
static void test_special(void **state)
{
    static const int64_t a_dims[] = {33, 40}, b_dims[] = {40, 34}, dims[] = {33, 34};
    uint32_t a, b, y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    set_target(&rig, COPIES);
    a = operand(&rig, FRIT_BF16, 2, a_dims, false);
    b = operand(&rig, FRIT_BF16, 2, b_dims, true);
    rig_set_real(&rig, a, 3 * 40 + 39, NAN);
    rig_set_real(&rig, b, 5 * 34 + 33, INFINITY);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
               FRIT_BF16, 2, dims);
    rig_run(&rig, &sched_contract);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double x = rig_get_real(&rig, a, i / 34 * 40 + 5), seen = rig_get_real(&rig, y, i);

        if (i / 34 == 3)
            assert_true(isnan(seen));
        else if (i % 34 == 33)
            assert_true(x == 0 ? isnan(seen) : isinf(seen) && signbit(seen) == signbit(x));
        else
            assert_true(isfinite(seen));
    }
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),     cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_tiles),   cmocka_unit_test(test_around),
        cmocka_unit_test(test_widened), cmocka_unit_test(test_special),
        cmocka_unit_test(test_conv),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
