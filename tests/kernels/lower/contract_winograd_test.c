/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolution against plain loops: sizes around those of tiles and groups, layouts, ops
 * before and after, what is not finite, and which convolutions are done so.  Numbers are such that
 * no transform rounds. */
#include <math.h>
#include <string.h>

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

enum { WINDOW = 3, PHASES = 5 };

struct shape {
    int64_t n, channels, outputs, rows, columns; /* of x */
    int32_t padding[2];
};

struct conv {
    struct rig rig;
    const struct shape *shape;
    frit_attrs_conv attrs;
    int64_t x_dims[4], w_dims[4], y_dims[4];
    uint32_t x, w, y;
};

static void fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / 16);
}

static void begin(struct conv *c, const struct shape *s)
{
    *c = (struct conv){.shape = s,
                       .attrs = {.struct_size = sizeof(c->attrs)},
                       .x_dims = {s->n, s->channels, s->rows, s->columns},
                       .w_dims = {s->outputs, s->channels, WINDOW, WINDOW},
                       .y_dims = {s->n, s->outputs, s->rows + 2 * s->padding[0] - WINDOW + 1,
                                  s->columns + 2 * s->padding[1] - WINDOW + 1}};
    for (uint32_t d = 0; d < 2; d++)
        c->attrs.padding[d] = s->padding[d];
    rig_init(&c->rig);
    c->rig.target.lanes_interleaved = true;
    c->rig.target.keeps_derived = c->rig.target.winograd = true;
    c->rig.target.registers = 16;
    c->rig.target.tuning.winograd_wide = 1; /* small convs are Winograd's */
}

static void add_operands(struct conv *c, bool turned)
{
    const uint32_t order[] = {1, 0, 3, 2};

    c->x = turned ? rig_laid(&c->rig, FRIT_F32, 4, c->x_dims, order, 0, 2)
                  : rig_input(&c->rig, FRIT_F32, 4, c->x_dims);
    c->w = turned ? rig_laid(&c->rig, FRIT_F32, 4, c->w_dims, order, 0, 1)
                  : rig_input(&c->rig, FRIT_F32, 4, c->w_dims);
    fill(&c->rig, c->x, 1);
    fill(&c->rig, c->w, 2);
}

static uint32_t add_conv(struct conv *c, uint32_t x, uint32_t bias)
{
    return rig_op(&c->rig, FRIT_OP_conv, 3,
                  (struct rig_in[]){rig_value(x), rig_value(c->w), rig_value(bias)}, &c->attrs,
                  FRIT_F32, 4, c->y_dims);
}

static void place_of(const int64_t *dims, int64_t number, int64_t *place)
{
    for (uint32_t d = 4; d-- > 0; number /= dims[d])
        place[d] = number % dims[d];
}

/* The sum at a place of y; zeros around x are multiplied. */
static double sum_at(const struct conv *c, const int64_t *y)
{
    double sum = 0;

    for (int64_t k = 0; k < c->shape->channels * WINDOW * WINDOW; k++) {
        int64_t channel = k / (WINDOW * WINDOW);
        int64_t row = y[2] + k / WINDOW % WINDOW - c->shape->padding[0];
        int64_t column = y[3] + k % WINDOW - c->shape->padding[1];
        int64_t at =
            ((y[0] * c->shape->channels + channel) * c->shape->rows + row) * c->shape->columns +
            column;
        bool inside = row >= 0 && row < c->shape->rows && column >= 0 && column < c->shape->columns;

        sum += rig_get_real(&c->rig, c->w, y[1] * c->shape->channels * WINDOW * WINDOW + k) *
               (inside ? rig_get_real(&c->rig, c->x, at) : 0);
    }
    return sum;
}

static void same(const struct conv *c, int64_t i, double got, double want)
{
    if (isnan(want) ? !isnan(got) : got != want)
        fail_msg("%d to %d channels, %d x %d: element %d is %g, not %g", (int)c->shape->channels,
                 (int)c->shape->outputs, (int)c->shape->rows, (int)c->shape->columns, (int)i, got,
                 want);
}

/* Every `step`th element: the loops take longer than what they check. */
static void check(const struct conv *c, int64_t step)
{
    for (int64_t i = 0; i < rig_count(&c->rig, c->y); i += step) {
        int64_t place[4];

        place_of(c->y_dims, i, place);
        same(c, i, rig_get_real(&c->rig, c->y, i), sum_at(c, place));
    }
}

static const struct shape plain = {1, 40, 50, 8, 8, {1, 1}};

/* Outputs in a tile of fewer, channels beyond full lanes; dense, then other layouts. */
static void test_layouts(void **state)
{
    (void)state;
    for (uint32_t turned = 0; turned < 2; turned++) {
        struct conv c;

        begin(&c, &plain);
        c.rig.target.registers = turned ? 32 : 16;
        add_operands(&c, turned);
        c.y = add_conv(&c, c.x, RIG_ABSENT);
        rig_run(&c.rig, &sched_contract);
        assert_int_equal(c.rig.module.n_phases, PHASES);
        assert_true(c.rig.numbers.derived.bytes > 0);
        check(&c, 5);
        rig_fini(&c.rig);
    }
}

/* relu(conv(neg x) + bias + residual), the residual read at odd sizes too. */
static void check_around(uint32_t registers)
{
    static const struct shape shape = {1, 40, 50, 7, 16, {1, 1}};
    uint32_t bias, residual, y;
    struct conv c;

    begin(&c, &shape);
    c.rig.target.registers = registers;
    add_operands(&c, false);
    bias = rig_input(&c.rig, FRIT_F32, 1, c.y_dims + 1);
    residual = rig_input(&c.rig, FRIT_F32, 4, c.y_dims);
    fill(&c.rig, bias, 3);
    fill(&c.rig, residual, 4);
    y = rig_op(&c.rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(c.x)}, NULL, FRIT_F32, 4,
               c.x_dims);
    y = add_conv(&c, y, bias);
    y = rig_op(&c.rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(y), rig_value(residual)}, NULL,
               FRIT_F32, 4, c.y_dims);
    c.y = rig_op(&c.rig, FRIT_OP_relu, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 4,
                 c.y_dims);
    rig_run(&c.rig, &sched_contract);
    assert_int_equal(c.rig.module.n_phases, PHASES);
    for (int64_t i = 0; i < rig_count(&c.rig, c.y); i += 5) {
        int64_t place[4];

        place_of(c.y_dims, i, place);
        same(&c, i, rig_get_real(&c.rig, c.y, i),
             fmax(0, rig_get_real(&c.rig, bias, place[1]) + rig_get_real(&c.rig, residual, i) -
                         sum_at(&c, place)));
    }
    rig_fini(&c.rig);
}

static void test_around(void **state)
{
    (void)state;
    check_around(16);
    check_around(32);
}

static const struct shape images = {2, 40, 48, 6, 18, {1, 1}};

/* What is added may be overwritten, unless some of its elements are read again: tiles of an
 * overlapping panel. */
static void test_alias(void **state)
{
    (void)state;
    for (uint32_t overlaps = 0; overlaps < 2; overlaps++) {
        uint32_t residual, y;
        struct conv c;

        begin(&c, overlaps ? &images : &plain);
        add_operands(&c, false);
        residual = rig_input(&c.rig, FRIT_F32, 4, c.y_dims);
        y = add_conv(&c, c.x, RIG_ABSENT);
        c.y = rig_op(&c.rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(y), rig_value(residual)},
                     NULL, FRIT_F32, 4, c.y_dims);
        assert_int_equal(rig_build(&c.rig, &sched_contract), FRIT_OK);
        assert_int_equal(c.rig.module.n_phases, PHASES);
        assert_int_equal(c.rig.numbers.alias[0] != 0, !overlaps);
        rig_fini(&c.rig);
    }
}

/* Two images, whose patches have lines of their own, and tiles in an overlapping panel and in
 * overlapping parts of a line; an infinity in the second one. */
static void check_images(uint32_t registers)
{
    uint32_t n_spoilt = 0;
    struct conv c;

    begin(&c, &images);
    c.rig.target.registers = registers;
    add_operands(&c, false);
    rig_set_real(&c.rig, c.x, rig_count(&c.rig, c.x) - images.columns, INFINITY);
    c.y = add_conv(&c, c.x, RIG_ABSENT);
    rig_run(&c.rig, &sched_contract);
    assert_int_equal(c.rig.module.n_phases, PHASES);
    for (int64_t i = 0; i < rig_count(&c.rig, c.y); i++) {
        double got = rig_get_real(&c.rig, c.y, i);
        int64_t place[4];

        place_of(c.y_dims, i, place);
        n_spoilt += isfinite(got) ? 0 : 1;
        if (i % 5 == 0 || !isfinite(got))
            same(&c, i, got, sum_at(&c, place));
    }
    assert_int_equal(n_spoilt, 4 * images.outputs);
    rig_fini(&c.rig);
}

static void test_images(void **state)
{
    (void)state;
    check_images(16);
    check_images(32);
}

enum { HUGE_LOG2 = 127, HUGE_OUTPUT = 9, HUGE_ROW = 7 };

static void spoil_weights(struct conv *c)
{
    const int64_t taps = c->shape->channels * WINDOW * WINDOW;

    rig_set_real(&c->rig, c->w, 7, INFINITY);
    rig_set_real(&c->rig, c->w, taps + 100, -INFINITY);
    rig_set_real(&c->rig, c->w, (c->shape->outputs - 1) * taps, NAN);
    rig_set_real(&c->rig, c->w, HUGE_OUTPUT * taps + 4, ldexp(1, HUGE_LOG2));
}

/* Some windows of a tile share both infinities; the sum of the huge numbers is infinite. */
static void spoil_x(struct conv *c)
{
    const int64_t columns = c->shape->columns, matrix = c->shape->rows * columns;

    rig_set_real(&c->rig, c->x, columns + 1, INFINITY);
    rig_set_real(&c->rig, c->x, matrix + columns + 3, -INFINITY);
    rig_set_real(&c->rig, c->x, 3 * matrix + 4 * columns + 4, NAN);
    rig_set_real(&c->rig, c->x, 5 * matrix + HUGE_ROW * columns + 4, ldexp(-1, HUGE_LOG2));
    rig_set_real(&c->rig, c->x, 5 * matrix + HUGE_ROW * columns + 6, ldexp(1, HUGE_LOG2));
}

/* What is not finite, and what only transforms make so, is where it is in sums of windows.  In
 * tiles with huge elements results are as near as these allow. */
static void test_not_finite(void **state)
{
    struct conv c;

    (void)state;
    for (uint32_t of_weights = 0; of_weights < 2; of_weights++) {
        uint32_t n_spoilt = 0;

        begin(&c, &plain);
        add_operands(&c, false);
        if (of_weights)
            spoil_weights(&c);
        else
            spoil_x(&c);
        c.y = add_conv(&c, c.x, RIG_ABSENT);
        rig_run(&c.rig, &sched_contract);
        assert_int_equal(c.rig.module.n_phases, PHASES);
        for (int64_t i = 0; i < rig_count(&c.rig, c.y); i++) {
            double got = rig_get_real(&c.rig, c.y, i), want;
            int64_t place[4];

            place_of(c.y_dims, i, place);
            want = sum_at(&c, place);
            n_spoilt += isfinite(want) ? 0 : 1;
            if (isfinite(want) && (of_weights ? place[1] == HUGE_OUTPUT : place[2] + 2 > HUGE_ROW))
                assert_true(fabs(got - want) < ldexp(1, HUGE_LOG2 - 20));
            else
                same(&c, i, got, want);
        }
        assert_in_range(n_spoilt, 100, rig_count(&c.rig, c.y) / 2);
        rig_fini(&c.rig);
    }
}

/* Convolutions that are done otherwise: few phases. */
static void check_other(struct conv *c)
{
    c->y = add_conv(c, c->x, RIG_ABSENT);
    assert_int_equal(rig_build(&c->rig, &sched_contract), FRIT_OK);
    assert_in_range(c->rig.module.n_phases, 1, PHASES - 1);
    rig_fini(&c->rig);
}

static void test_others(void **state)
{
    static const struct shape few = {1, 16, 16, 8, 8, {1, 1}}, line = {1, 64, 64, 3, 64, {0, 1}};
    struct conv c;

    (void)state;
    begin(&c, &few);
    add_operands(&c, false);
    check_other(&c);
    begin(&c, &line); /* half of each tile is none */
    add_operands(&c, false);
    check_other(&c);
    begin(&c, &plain);
    c.rig.target.keeps_derived = false;
    add_operands(&c, false);
    check_other(&c);
    begin(&c, &plain);
    c.attrs.dilation[1] = 2;
    c.y_dims[3] -= 2;
    add_operands(&c, false);
    check_other(&c);
    begin(&c, &plain);
    c.attrs.stride[0] = 2;
    c.y_dims[2] = 4;
    add_operands(&c, false);
    check_other(&c);
}

static void test_no_memory(void **state)
{
    struct conv c;

    (void)state;
    begin(&c, &plain);
    add_operands(&c, false);
    c.y = add_conv(&c, c.x, RIG_ABSENT);
    assert_int_equal(rig_build(&c.rig, &sched_contract), FRIT_OK);
    rig_fail_allocations(&c.rig, &sched_contract, 10);
    rig_fini(&c.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),    cmocka_unit_test(test_around),
        cmocka_unit_test(test_images),     cmocka_unit_test(test_alias),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_others),
        cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
