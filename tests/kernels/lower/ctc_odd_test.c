/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_loss and its gradient where the definition by paths has nothing to say, and with other ops
 * around them. */
#include <math.h>

#include "kernels/lower/ctc_rig.h"
#include "unit.h"

enum { CLASSES = CTC_CLASSES, ODD_STEPS = 3 };

static const struct ctc odd_loss = {.dtype = FRIT_F32,
                                    .int_dtype = FRIT_I32,
                                    .steps = ODD_STEPS,
                                    .items = ODD_STEPS + 1,
                                    .labels = 2,
                                    .f64 = true};

/* What one class has at the first steps. */
static const struct odd {
    int64_t class;
    double log_prob;
    int64_t steps;
} odd[] = {
    {1, -(double)INFINITY, ODD_STEPS}, {1, -(double)INFINITY, 1},   {1, (double)NAN, ODD_STEPS},
    {2, -(double)INFINITY, ODD_STEPS}, {2, (double)NAN, ODD_STEPS},
};
enum { NO_CHANCE, NO_CHANCE_AT_FIRST, NO_NUMBER, NO_CHANCE_BESIDE, NO_NUMBER_BESIDE, ODD };

/* Sequence i has i steps and the target 1, with a 2 after its length. */
static void fill_odd(struct rig *rig, const uint32_t *in, const struct odd *o)
{
    for (int64_t i = 0; i < odd_loss.items; i++) {
        rig_set_int(rig, in[TARGETS], i * 2, 1);
        rig_set_int(rig, in[TARGETS], i * 2 + 1, 2);
        rig_set_int(rig, in[STEPS], i, i);
        rig_set_int(rig, in[LABELS], i, 1);
        rig_set_real(rig, in[GRAD], i, 1);
        for (int64_t t = 0; t < o->steps; t++)
            rig_set_real(rig, in[LOG_PROBS], (t * odd_loss.items + i) * CLASSES + o->class,
                         o->log_prob);
    }
}

/* Without a step, or where every one of them lacks what the target needs. */
static bool has_no_chance(uint32_t k, int64_t steps)
{
    return steps == 0 || k == NO_CHANCE || (k == NO_CHANCE_AT_FIRST && steps == 1);
}

static void test_odd_loss(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < ODD; k++) {
        struct rig rig;
        uint32_t in[CTC_OPERANDS], y = ctc_rig(&rig, &odd_loss, in);

        fill_odd(&rig, in, &odd[k]);
        rig_run(&rig, &sched_ctc);
        for (int64_t i = 0; i < odd_loss.items; i++) {
            double got = rig_get_real(&rig, y, i);

            if (has_no_chance(k, i))
                assert_true(got == (double)INFINITY);
            else
                assert_true(k == NO_NUMBER ? isnan(got) : isfinite(got));
        }
        rig_fini(&rig);
    }
}

/* Of a class at a step of a sequence with so many. */
static bool is_right(uint32_t k, int64_t class, int64_t t, int64_t steps, double got)
{
    bool is_odd = class == odd[k].class && t < odd[k].steps;

    if (t >= steps)
        return got == 0;
    if (has_no_chance(k, steps))
        return isnan(got);
    if (k == NO_NUMBER && class == 0) /* where the path is in no blank it is a number */
        return true;
    if (is_odd)
        return isnan(odd[k].log_prob) ? isnan(got) : got == 0;
    return isfinite(got) && got != 0;
}

static void test_odd_gradient(void **state)
{
    struct ctc c = odd_loss;

    (void)state;
    c.gradient = true;
    for (uint32_t k = 0; k < ODD; k++) {
        struct rig rig;
        uint32_t in[CTC_OPERANDS], y = ctc_rig(&rig, &c, in);

        fill_odd(&rig, in, &odd[k]);
        rig_run(&rig, &sched_ctc);
        for (int64_t at = 0; at < rig_count(&rig, y); at++) {
            int64_t class = at % CLASSES, item = at / CLASSES % c.items, t = at / CLASSES / c.items;
            double got = rig_get_real(&rig, y, at);

            if (!is_right(k, class, t, item, got))
                fail_msg("%u: step %lld of %lld, class %lld is %g", k, (long long)t,
                         (long long)item, (long long)class, got);
        }
        rig_fini(&rig);
    }
}

/* ---- blanks in the target ---- */

static const int64_t with_blank[] = {1, 0, 1};

static uint32_t rig_blank(struct rig *rig, const struct ctc *c, uint32_t in[CTC_OPERANDS])
{
    uint32_t y = ctc_rig(rig, c, in);

    for (int64_t i = 0; i < 3; i++)
        rig_set_int(rig, in[TARGETS], i, with_blank[i]);
    rig_set_int(rig, in[LABELS], 0, 3);
    rig_set_real(rig, in[GRAD], 0, 1);
    return y;
}

/* The loss with one of the log_probs changed. */
static double loss_with(struct ctc c, int64_t element, double more)
{
    uint32_t in[CTC_OPERANDS], y;
    struct rig rig;
    double loss;

    c.gradient = false;
    y = rig_blank(&rig, &c, in);
    rig_set_real(&rig, in[LOG_PROBS], element, rig_get_real(&rig, in[LOG_PROBS], element) + more);
    rig_run(&rig, &sched_ctc);
    loss = rig_get_real(&rig, y, 0);
    rig_fini(&rig);
    return loss;
}

/* No sequence of classes gives such a target: the gradient is still that of the loss, here by
 * differences. */
static void test_blank_in_target(void **state)
{
    const struct ctc c = {.gradient = true,
                          .dtype = FRIT_F64,
                          .int_dtype = FRIT_I32,
                          .steps = 5,
                          .items = 1,
                          .labels = 3,
                          .f64 = true};
    struct rig rig;
    uint32_t in[CTC_OPERANDS], y = rig_blank(&rig, &c, in);

    (void)state;
    rig_run(&rig, &sched_ctc);
    for (int64_t at = 0; at < rig_count(&rig, y); at++) {
        double near = 1.0 / (1 << 16), want;

        want = (loss_with(c, at, near) - loss_with(c, at, -near)) / (2 * near);
        want += exp(rig_get_real(&rig, in[LOG_PROBS], at));
        if (!(fabs(rig_get_real(&rig, y, at) - want) < 1e-8))
            fail_msg("element %lld is %.12g, not %.12g", (long long)at, rig_get_real(&rig, y, at),
                     want);
    }
    rig_fini(&rig);
}

/* ---- other ops ---- */

/* The gradient of an elementwise op's result, with a view and one more op after: the same bits as
 * by itself. */
static void test_around(void **state)
{
    struct ctc c = {.gradient = true,
                    .dtype = FRIT_F32,
                    .int_dtype = FRIT_I32,
                    .steps = 5,
                    .items = 3,
                    .labels = 2,
                    .f64 = true};
    const frit_attrs_order order = {.struct_size = sizeof(order), .order = {3, {2, 0, 1}}};
    const int64_t turned[] = {CLASSES, c.steps, c.items};
    struct rig alone, around;
    uint32_t in[CTC_OPERANDS], x[CTC_OPERANDS], y, z;

    (void)state;
    y = ctc_rig(&alone, &c, in);
    rig_run(&alone, &sched_ctc);
    c.negated = true;
    z = ctc_rig(&around, &c, x);
    z = rig_op(&around, FRIT_OP_permute, 1, (struct rig_in[]){rig_value(z)}, &order, c.dtype, 3,
               turned);
    z = ctc_twice(&around, z);
    rig_run(&around, &sched_ctc);
    for (int64_t at = 0; at < rig_count(&alone, y); at++) {
        int64_t to = at % CLASSES * c.steps * c.items + at / CLASSES;
        double got = rig_get_real(&around, z, to), want = 2 * rig_get_real(&alone, y, at);

        assert_true(isnan(want) ? isnan(got) : got == want);
    }
    rig_fini(&alone);
    rig_fini(&around);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd_loss),
        cmocka_unit_test(test_odd_gradient),
        cmocka_unit_test(test_blank_in_target),
        cmocka_unit_test(test_around),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
