/* SPDX-License-Identifier: Apache-2.0 */
/* Convs of the contract schedule against plain loops: windows, strides, dilation, groups, copies
 * with zeros around, packed weights, and which form is chosen. */
#include <math.h>
#include <string.h>

#include "ir/facts.h"

#include "kernels/lower/contract_rig.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

enum { PACK_LANES = 16, TURN_EXCHANGES = 24 };

struct window {
    uint32_t rank;                        /* spatial */
    int64_t n, groups, channels, outputs; /* of a group */
    int64_t x[3], k[3];
    frit_attrs_conv attrs;
};

static int64_t or_one(int64_t number)
{
    return number ? number : 1;
}

/* Element `y` of the sum over the windows of x; coordinates beyond the spatial dims are 0. */
static double conv_at(const struct rig *rig, const struct window *w, uint32_t x, uint32_t weights,
                      const int64_t *y)
{
    int64_t group = y[1] / w->outputs, taps[4] = {w->channels, 1, 1, 1}, number = 1;
    double sum = 0;

    for (uint32_t d = 0; d < w->rank; d++)
        taps[d + 1] = w->k[d];
    for (uint32_t d = 0; d < 4; d++)
        number *= taps[d];
    for (int64_t t = 0; t < number; t++) {
        int64_t rest = t, of_w[5] = {y[1]}, of_x[5] = {y[0]};
        bool inside = true;

        for (uint32_t d = 4; d-- > 0; rest /= taps[d])
            of_w[d + 1] = rest % taps[d];
        of_x[1] = group * w->channels + of_w[1];
        for (uint32_t d = 0; d < w->rank; d++) {
            of_x[d + 2] = y[d + 2] * or_one(w->attrs.stride[d]) +
                          of_w[d + 2] * or_one(w->attrs.dilation[d]) - w->attrs.padding[d];
            inside = inside && of_x[d + 2] >= 0 && of_x[d + 2] < w->x[d];
        }
        if (inside)
            sum += contract_at(rig, x, w->rank + 2, of_x) *
                   contract_at(rig, weights, w->rank + 2, of_w);
    }
    return sum;
}

static uint32_t count_ops(const struct kir_phase *phase, enum kir_op op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < phase->n; i++)
        n += phase->inst[i].op == op;
    return n;
}

/* Whether windows have one element along a dim with strides. */
static bool steps_over(const struct window *w)
{
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->k[d] == 1 && w->attrs.stride[d] > 1)
            return true;
    return false;
}

enum { MAX_APART = 4 };

/* What the phase that sums has, and `copied` the one before it. */
struct conv_form {
    bool packed; /* on weights that are kept */
    uint32_t exchanges, copied;
    uint32_t loads[MAX_APART]; /* by how far lanes' elements lie apart; 0: no constant */
};

static struct conv_form form_of(const struct kir_module *module)
{
    uint32_t last = module->n_phases - 1;
    const struct kir_phase *phase = &module->phases[last];
    struct conv_form form = {.exchanges = count_ops(phase, KIR_exchange)};
    struct facts facts;
    frit_err err;

    if (last)
        form.copied = count_ops(phase - 1, KIR_exchange);
    assert_int_equal(facts_init(&facts, module, last, &err), FRIT_OK);
    for (uint32_t i = 0; i < phase->n; i++) {
        const struct kir_inst *inst = &phase->inst[i];
        const struct fact *of = &facts.of[inst->a[0] < phase->n ? inst->a[0] : 0];

        if ((inst->op == KIR_load || inst->op == KIR_load_if) && of->kind != FACT_UNIFORM)
            form.loads[of->kind == FACT_LINEAR && of->stride > 0 && of->stride < MAX_APART
                           ? of->stride
                           : 0]++;
    }
    facts_fini(&facts);
    return form;
}

struct conv {
    struct rig rig;
    const struct window *window;
    uint32_t x, weights, bias, y;
};

/* The conv of these.  `keeps`: the target keeps what is derived, and packs these weights if lanes
 * are interleaved. */
static void begin_conv(struct conv *c, uint32_t dtype, const struct window *w,
                       const struct contract_target *target, bool biased, bool keeps)
{
    int64_t x_dims[5] = {w->n, w->groups * w->channels},
            w_dims[5] = {w->groups * w->outputs, w->channels},
            y_dims[5] = {w->n, w->groups * w->outputs};
    uint32_t rank = w->rank + 2;

    for (uint32_t d = 0; d < w->rank; d++) {
        int64_t span = (w->k[d] - 1) * or_one(w->attrs.dilation[d]) + 1;

        x_dims[d + 2] = w->x[d];
        w_dims[d + 2] = w->k[d];
        y_dims[d + 2] = (w->x[d] + 2 * w->attrs.padding[d] - span) / or_one(w->attrs.stride[d]) + 1;
    }
    c->window = w;
    rig_init(&c->rig);
    contract_set_target(&c->rig, target);
    c->rig.target.keeps_derived = keeps;
    c->rig.target.tuning.pack_lanes = PACK_LANES;
    c->x = contract_operand(&c->rig, dtype, rank, x_dims, false);
    c->weights = contract_operand(&c->rig, dtype, rank, w_dims, false);
    c->bias = biased ? rig_input(&c->rig, dtype, 1, y_dims + 1) : RIG_ABSENT;
    if (biased)
        contract_fill(&c->rig, c->bias, 9);
    c->y = rig_op(&c->rig, FRIT_OP_conv, 3,
                  (struct rig_in[]){rig_value(c->x), rig_value(c->weights), rig_value(c->bias)},
                  &w->attrs, dtype, rank, y_dims);
}

/* Element `i` of the result. */
static void check_element(const struct conv *c, int64_t i)
{
    const struct rig_value *y = &c->rig.values[c->y];
    int64_t place[FRIT_MAX_RANK];
    double want;

    contract_place(y, i, place);
    want = conv_at(&c->rig, c->window, c->x, c->weights, place);
    if (c->bias != RIG_ABSENT)
        want += rig_get_real(&c->rig, c->bias, place[1]);
    contract_same("conv", y->dtype, i, rig_get_real(&c->rig, c->y, i), want, 1);
}

static struct conv_form check_conv(uint32_t dtype, const struct window *w,
                                   const struct contract_target *target, bool biased, bool keeps)
{
    struct conv_form form;
    struct conv c;

    begin_conv(&c, dtype, w, target, biased, keeps);
    rig_run(&c.rig, &sched_contract);
    if (target->interleaved && w->outputs >= 8 && w->attrs.padding[w->rank - 1] && w->k[0] > 1)
        assert_in_range(c.rig.module.n_phases, 2, 3);
    if (target->interleaved && !target->stages && w->outputs >= 64 && steps_over(w))
        assert_in_range(c.rig.module.n_phases, keeps ? 3 : 2, 3); /* one copies, one packs */
    for (int64_t i = 0; i < rig_count(&c.rig, c.y); i++)
        check_element(&c, i);
    form = form_of(&c.rig.module);
    form.packed = c.rig.numbers.derived.bytes > 0;
    rig_fini(&c.rig);
    return form;
}

#define CONV(...)                                           \
    {                                                       \
        .struct_size = sizeof(frit_attrs_conv), __VA_ARGS__ \
    }

static void test_conv(void **state)
{
    static const struct window cases[] = {
        {1, 2, 1, 3, 5, {20}, {3}, CONV(.padding = {1})},
        {1,
         1,
         2,
         4,
         2,
         {33},
         {4},
         CONV(.stride = {2}, .padding = {3}, .dilation = {2}, .groups = 2)},
        {2, 2, 1, 3, 7, {9, 18}, {3, 3}, CONV(.padding = {1, 1})},
        {2, 3, 1, 2, 3, {4, 5}, {3, 2}, CONV(.padding = {0, 1})},
        {2, 1, 1, 8, 9, {5, 30}, {1, 1}, CONV(.groups = 1)},
        {2, 2, 6, 1, 1, {8, 17}, {3, 3}, CONV(.padding = {1, 1}, .groups = 6)},
        {2, 1, 3, 1, 2, {8, 40}, {5, 5}, CONV(.stride = {1, 2}, .padding = {2, 2}, .groups = 3)},
        {2, 1, 1, 70, 3, {3, 20}, {3, 3}, CONV(.padding = {3, 3})},
        {3, 2, 1, 2, 3, {3, 4, 17}, {2, 2, 2}, CONV(.stride = {1, 2, 1})},
        {3,
         1,
         2,
         2,
         1,
         {4, 5, 6},
         {3, 2, 3},
         CONV(.padding = {1, 0, 2}, .dilation = {1, 2, 1}, .groups = 2)},
        /* Enough outputs for a copy with zeros around it. */
        {2, 2, 1, 3, 9, {6, 20}, {3, 3}, CONV(.padding = {1, 1})},
        {2, 1, 2, 2, 8, {7, 33}, {3, 3}, CONV(.stride = {2, 2}, .padding = {1, 2}, .groups = 2)},
        {2, 2, 1, 2, 8, {4, 5}, {2, 3}, CONV(.padding = {0, 1})},
        {2, 1, 1, 3, 8, {1, 20}, {3, 3}, CONV(.padding = {1, 1})},
        {1, 2, 1, 1, 8, {40}, {40}, CONV(.padding = {20})},
        {1, 3, 1, 2, 17, {5}, {3}, CONV(.padding = {4})},
        {3, 1, 1, 2, 8, {3, 4, 18}, {2, 3, 3}, CONV(.padding = {1, 1, 1}, .dilation = {1, 1, 2})},
    };
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64, FRIT_F16, FRIT_BF16};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t d = 0; d < 4; d++)
            for (uint32_t t = 0; t < CONTRACT_TARGETS; t++)
                if ((i + d + t) % rig_every() == 0)
                    check_conv(dtypes[d], &cases[i], &contract_targets[t], (i + t) & 1, false);
}

/* Enough outputs for lanes that lie along them, on packed weights; with a copy of x and without.
 * Kept copies serve few places too. */
static void test_conv_packed(void **state)
{
    static const struct window cases[] = {
        {2, 1, 1, 7, 16, {19, 19}, {3, 3}, CONV(.stride = {2, 2}, .padding = {1, 1})},
        {2, 2, 2, 4, 37, {5, 7}, {3, 3}, CONV(.padding = {1, 1}, .groups = 2)},
        {2, 1, 1, 40, 18, {8, 9}, {1, 1}, CONV(.stride = {2, 2})},
        {1, 1, 1, 12, 20, {60}, {3}, CONV(.stride = {2}, .dilation = {3})},
        {3, 1, 1, 3, 16, {3, 4, 5}, {2, 3, 3}, CONV(.padding = {1, 0, 2})},
        {2, 1, 1, 33, 130, {3, 6}, {3, 3}, CONV(.padding = {1, 1})},
        /* Copies without what strides step over, of one dim or both, with zeros around or not. */
        {2, 2, 1, 80, 64, {9, 15}, {1, 1}, CONV(.stride = {2, 3})},
        {2, 1, 1, 32, 64, {9, 40}, {1, 1}, CONV(.stride = {2, 2})},
        {2, 1, 1, 80, 64, {8, 14}, {1, 1}, CONV(.stride = {2, 2}, .padding = {1, 1})},
        {2, 1, 1, 20, 64, {7, 12}, {3, 1}, CONV(.stride = {2, 3}, .padding = {1, 0})},
        {1, 1, 1, 20, 64, {2}, {3}, CONV(.padding = {1})},
        {1, 1, 1, 20, 64, {1}, {3}, CONV(.padding = {1})},
    };
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64, FRIT_F16, FRIT_BF16};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t d = 0; d < 4; d++)
            for (uint32_t keeps = 0; keeps < 2; keeps++)
                if ((i + d + keeps) % rig_every() == 0)
                    assert_int_equal(check_conv(dtypes[d], &cases[i],
                                                &contract_targets[(i + d) % 3], (i + d) & 1, keeps)
                                         .packed,
                                     keeps);
}

/* Lanes along lines of the copy with zeros, or along outputs on packed weights: whatever idles
 * less, but lines are slower by themselves. */
static void test_conv_choice(void **state)
{
    static const struct {
        struct window window;
        bool packed;
    } cases[] = {
        {{2, 1, 1, 16, 8, {3, 32}, {3, 3}, CONV(.padding = {1, 1})}, false},
        {{2, 1, 1, 16, 8, {3, 20}, {3, 3}, CONV(.padding = {1, 1})}, true},
        {{2, 1, 1, 16, 16, {3, 32}, {3, 3}, CONV(.padding = {1, 1})}, true},
        {{2, 1, 1, 16, 24, {3, 32}, {3, 3}, CONV(.padding = {1, 1})}, true},
        {{2, 1, 8, 1, 1, {3, 32}, {3, 3}, CONV(.padding = {1, 1}, .groups = 8)}, false},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(
            check_conv(FRIT_F32, &cases[i].window, &contract_targets[2], false, true).packed,
            cases[i].packed);
}

/* Lanes along outputs, which lie apart in the result: it is transposed before it is stored.  Lines
 * that tiles of one size do not divide have tiles of two, with code for each. */
static void test_conv_turned(void **state)
{
    static const struct window cases[] = {
        {2, 1, 1, 40, 64, {4, 6}, {1, 1}, CONV(.groups = 1)},
        {2, 1, 1, 40, 64, {7, 7}, {1, 1}, CONV(.groups = 1)},
        {2, 2, 1, 20, 70, {5, 14}, {3, 3}, CONV(.padding = {1, 1})},
        {2, 1, 2, 16, 33, {4, 11}, {3, 3}, CONV(.padding = {1, 1}, .groups = 2)},
        {1, 3, 1, 16, 40, {29}, {3}, CONV(.stride = {2})},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t t = 0; t < 2; t++)
            assert_int_equal(
                check_conv(t ? FRIT_F32 : FRIT_BF16, &cases[i], &contract_targets[t], true, true)
                    .exchanges,
                i ? 2 * TURN_EXCHANGES : TURN_EXCHANGES);
}

/* With many registers a lane has up to 14 places that are neighbours, of which 8 at a time are
 * transposed, unless it is the packed side that groups read again. */
static void test_conv_on_line(void **state)
{
    static const struct {
        struct window window;
        uint32_t products, exchanges;
    } cases[] = {
        {{2, 1, 1, 70, 128, {5, 14}, {1, 1}, CONV(.groups = 1)}, 14, 2 * TURN_EXCHANGES},
        {{2, 1, 1, 80, 128, {3, 29}, {1, 1}, CONV(.groups = 1)}, 13 + 12, 4 * TURN_EXCHANGES},
        {{2, 2, 1, 60, 64, {2, 13}, {1, 1}, CONV(.groups = 1)}, 13, 2 * TURN_EXCHANGES},
        {{2, 1, 1, 300, 64, {10, 14}, {1, 1}, CONV(.groups = 1)}, 8 + 7, 2 * TURN_EXCHANGES},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct conv c;

        begin_conv(&c, FRIT_F32, &cases[i].window, &contract_targets[0], i & 1, true);
        c.rig.target.registers = 32;
        rig_run(&c.rig, &sched_contract);
        for (int64_t k = 0; k < rig_count(&c.rig, c.y); k++)
            check_element(&c, k);
        assert_int_equal(count_ops(&c.rig.module.phases[c.rig.module.n_phases - 1], KIR_fma),
                         cases[i].products);
        assert_int_equal(form_of(&c.rig.module).exchanges, cases[i].exchanges);
        rig_fini(&c.rig);
    }
}

/* The two groups that run first have the same places, and all outputs, where there are more places
 * than outputs and the weights are few; else the same outputs. */
static void test_conv_order(void **state)
{
    static const struct {
        struct window window;
        bool across_first;
    } cases[] = {
        {{2, 1, 1, 128, 128, {9, 15}, {1, 1}, CONV(.groups = 1)}, true},
        {{2, 1, 1, 70, 128, {5, 14}, {1, 1}, CONV(.groups = 1)}, false},
        {{2, 1, 1, 1400, 128, {9, 15}, {1, 1}, CONV(.groups = 1)}, false},
    };
    static const uint32_t nothing = 0xa5a5a5a5;

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct window *w = &cases[i].window;
        int64_t places = w->x[0] * w->x[1], last = (w->outputs - 1) * places;
        struct conv c;
        float y[2];

        begin_conv(&c, FRIT_F32, w, &contract_targets[0], false, true);
        c.rig.most_groups = 2;
        rig_run(&c.rig, &sched_contract);
        check_element(&c, 0);
        y[0] = (float)rig_get_real(&c.rig, c.y, last);
        y[1] = (float)rig_get_real(&c.rig, c.y, 8);
        assert_int_equal(memcmp(&y[0], &nothing, sizeof(nothing)) != 0, cases[i].across_first);
        assert_int_equal(memcmp(&y[1], &nothing, sizeof(nothing)) != 0, !cases[i].across_first);
        check_element(&c, cases[i].across_first ? last : 8);
        rig_fini(&c.rig);
    }
}

/* Many channels for many outputs: the copy has them last, transposed, where lanes lie along outputs
 * on kept weights. */
static void test_conv_channels_last(void **state)
{
    static const struct window cases[] = {
        {2, 2, 1, 70, 64, {3, 9}, {3, 3}, CONV(.padding = {1, 1})},
        {2, 1, 1, 64, 70, {3, 14}, {3, 3}, CONV(.stride = {2, 2}, .padding = {1, 1})},
        {2, 1, 2, 64, 64, {2, 5}, {2, 2}, CONV(.padding = {1, 0}, .groups = 2)},
        {1, 2, 1, 64, 64, {17}, {3}, CONV(.padding = {2}, .dilation = {2})},
        {3, 1, 1, 65, 64, {2, 3, 4}, {2, 1, 3}, CONV(.padding = {1, 0, 1})},
        {2, 1, 1, 64, 64, {4, 7}, {1, 1}, CONV(.groups = 1)},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t keeps = 0; keeps < 2; keeps++)
            assert_int_equal(
                check_conv(FRIT_F32, &cases[i], &contract_targets[1], i & 1, keeps).copied,
                keeps ? TURN_EXCHANGES : 0);
}

/* Depthwise, on lanes along a line of x, of which stores may be masked and loads are not: steps
 * along it are known in the module, and a short line is one. */
static void test_conv_lines(void **state)
{
    static const struct window cases[] = {
        {2, 1, 6, 1, 1, {6, 40}, {3, 3}, CONV(.stride = {2, 1}, .padding = {1, 1}, .groups = 6)},
        {2, 1, 6, 1, 1, {6, 40}, {3, 3}, CONV(.stride = {1, 2}, .padding = {1, 1}, .groups = 6)},
        {2, 2, 3, 1, 1, {9, 57}, {5, 5}, CONV(.stride = {2, 3}, .padding = {2, 2}, .groups = 3)},
        {2, 1, 5, 1, 1, {10, 10}, {5, 5}, CONV(.padding = {2, 2}, .groups = 5)},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct window *w = &cases[i];
        const struct conv_form form = check_conv(FRIT_F32, w, &contract_targets[2], false, false);

        assert_int_equal(form.loads[0], 0);
        assert_true(form.loads[or_one(w->attrs.stride[1])] > 0);
    }
}

/* relu(conv(neg x)), on a copy of neg x with zeros around it. */
static void test_around_conv(void **state)
{
    static const int64_t x_dims[] = {2, 3, 6, 20}, w_dims[] = {8, 3, 3, 3}, dims[] = {2, 8, 6, 20};
    static const frit_attrs_conv attrs = CONV(.padding = {1, 1});
    const struct window window = {2, 2, 1, 3, 8, {6, 20}, {3, 3}, CONV(.padding = {1, 1})};
    uint32_t x, w, y, z;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.lanes_interleaved = true;
    x = contract_operand(&rig, FRIT_F32, 4, x_dims, true);
    w = contract_operand(&rig, FRIT_F32, 4, w_dims, false);
    y = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 4, x_dims);
    y = rig_op(&rig, FRIT_OP_conv, 3,
               (struct rig_in[]){rig_value(y), rig_value(w), rig_value(RIG_ABSENT)}, &attrs,
               FRIT_F32, 4, dims);
    z = rig_op(&rig, FRIT_OP_relu, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 4, dims);
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.module.n_phases, 2);
    for (int64_t i = 0; i < rig_count(&rig, z); i++) {
        int64_t place[FRIT_MAX_RANK];

        contract_place(&rig.values[z], i, place);
        contract_same("conv", FRIT_F32, i, rig_get_real(&rig, z, i),
                      fmax(0, -conv_at(&rig, &window, x, w, place)), 1);
    }
    rig_fail_allocations(&rig, &sched_contract, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_packed),
        cmocka_unit_test(test_conv_choice),
        cmocka_unit_test(test_conv_turned),
        cmocka_unit_test(test_conv_on_line),
        cmocka_unit_test(test_conv_order),
        cmocka_unit_test(test_conv_channels_last),
        cmocka_unit_test(test_conv_lines),
        cmocka_unit_test(test_around_conv),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
