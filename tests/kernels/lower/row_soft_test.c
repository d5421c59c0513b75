/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax by the row schedule.  Memory is read once if slabs of rows stay in registers; otherwise
 * twice, since the maximum and the sum relative to it are folded together. */
#include <math.h>

#include "ir/facts.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

enum { RANK = 3, LANES = 64, MAX_LANES = 256, SLAB_BYTES = 64 };

/* Softmax over dim 1. */
struct soft {
    struct rig rig;
    int64_t dims[RANK], kept[RANK];
    frit_attrs_reduce attrs;
    uint32_t x, max, argmax, y;
};

static void fill(struct rig *rig, uint32_t value)
{
    uint64_t state = 5;

    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, (double)rig_random(&state, 2001) / 250 - 4);
}

static void soft_init(struct soft *s, uint32_t dtype, const int64_t *dims, uint32_t near_lanes)
{
    struct rig *rig = &s->rig;
    uint32_t e, sum;

    rig_init(rig);
    rig->target.lanes = LANES;
    rig->target.max_lanes = MAX_LANES;
    rig->target.near_lanes = near_lanes;
    rig->target.tuning.slab_bytes = SLAB_BYTES;
    s->attrs = (frit_attrs_reduce){.struct_size = sizeof(s->attrs), .keep = true};
    s->attrs.axes.axis[s->attrs.axes.count++] = 1;
    for (uint32_t d = 0; d < RANK; d++) {
        s->dims[d] = dims[d];
        s->kept[d] = d == 1 ? 1 : dims[d];
    }
    s->x = rig_input(rig, dtype, RANK, dims);
    fill(rig, s->x);
    s->max = rig_op(rig, FRIT_OP_max, 1, (struct rig_in[]){rig_value(s->x)}, &s->attrs, dtype, RANK,
                    s->kept);
    e = rig_op(rig, FRIT_OP_sub, 2, (struct rig_in[]){rig_value(s->x), rig_value(s->max)}, NULL,
               dtype, RANK, dims);
    e = rig_op(rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(e)}, NULL, dtype, RANK, dims);
    sum = rig_op(rig, FRIT_OP_sum, 1, (struct rig_in[]){rig_value(e)}, &s->attrs, dtype, RANK,
                 s->kept);
    s->y = rig_op(rig, FRIT_OP_div, 2, (struct rig_in[]){rig_value(e), rig_value(sum)}, NULL, dtype,
                  RANK, dims);
}

/* The row of x at `first`, the number of its first element. */
static void check_row(const struct soft *s, int64_t first, double tolerance)
{
    double most = (double)-INFINITY, sum = 0;

    for (int64_t i = 0; i < s->dims[1]; i++)
        most = fmax(most, rig_get_real(&s->rig, s->x, first + i * s->dims[2]));
    for (int64_t i = 0; i < s->dims[1]; i++)
        sum += exp(rig_get_real(&s->rig, s->x, first + i * s->dims[2]) - most);
    for (int64_t i = 0; i < s->dims[1]; i++) {
        int64_t at = first + i * s->dims[2];
        double want = exp(rig_get_real(&s->rig, s->x, at) - most) / sum;

        if (!(fabs(rig_get_real(&s->rig, s->y, at) - want) <= tolerance * want))
            fail_msg("%lld x %lld x %lld: element %lld is %.9g, not %.9g", (long long)s->dims[0],
                     (long long)s->dims[1], (long long)s->dims[2], (long long)at,
                     rig_get_real(&s->rig, s->y, at), want);
    }
}

static void check_rows(const struct soft *s, double tolerance)
{
    for (int64_t i = 0; i < s->dims[0]; i++)
        for (int64_t k = 0; k < s->dims[2]; k++)
            check_row(s, i * s->dims[1] * s->dims[2] + k, tolerance);
}

static uint32_t count_loads(const struct kir_module *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->phases[0].n; i++)
        n += m->phases[0].inst[i].op == KIR_load || m->phases[0].inst[i].op == KIR_load_if;
    return n;
}

/* The largest number n such that in every load, each run of n adjacent lanes reads adjacent
 * elements. */
static uint32_t loaded_run(const struct kir_module *m)
{
    uint32_t least = m->phases[0].lanes;
    struct facts facts;

    assert_int_equal(facts_init(&facts, m, 0, NULL), FRIT_OK);
    for (uint32_t i = 0; i < m->phases[0].n; i++) {
        const struct kir_inst *inst = &m->phases[0].inst[i];
        bool loads = inst->op == KIR_load || inst->op == KIR_load_if;

        if (loads && facts.of[inst->a[0]].run_stride != 1)
            least = 1;
        else if (loads && facts.of[inst->a[0]].run < least)
            least = facts.of[inst->a[0]].run;
    }
    facts_fini(&facts);
    return least;
}

/* Checks the lanes of a group and the loads of each lane, so few that memory is read in one pass.
 */
static void test_softmax(void **state)
{
    static const struct {
        int64_t dims[RANK];
        uint32_t dtype, lanes, loads, run;
    } cases[] = {
        {{1, 40, 100}, FRIT_F32, 64, 12, 16},  /* masked elements and columns */
        {{1, 256, 64}, FRIT_F32, 256, 16, 16}, /* neither */
        {{3, 100, 70}, FRIT_F32, 128, 16, 16}, /* the middle dim */
        {{20, 64, 7}, FRIT_F32, 64, 16, 1},    /* columns of several slabs in a group */
        {{1, 64, 80}, FRIT_F64, 64, 8, 8},     {{2, 50, 90}, FRIT_BF16, 128, 16, 32},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t near_lanes = 0; near_lanes <= 32; near_lanes += 16) {
            struct soft s;

            soft_init(&s, cases[i].dtype, cases[i].dims, near_lanes);
            rig_run(&s.rig, &sched_row);
            assert_int_equal(s.rig.module.n_phases, 1);
            if (near_lanes == 32) {
                assert_int_equal(s.rig.module.phases[0].lanes, cases[i].lanes);
                assert_int_equal(count_loads(&s.rig.module), cases[i].loads);
                assert_int_equal(loaded_run(&s.rig.module), cases[i].run);
            }
            assert_int_equal(s.rig.numbers.alias[0], 1);
            check_rows(&s, cases[i].dtype == FRIT_BF16 ? 0.04 : 1e-5);
            rig_fini(&s.rig);
        }
}

/* Rows that do not fit the registers of a group are read twice: the maximum and the sum are folded
 * together, by lanes and by groups, split and in one phase, but not in types that round more. */
static void test_rescaled(void **state)
{
    static const struct {
        int64_t dims[RANK];
        uint32_t dtype, phases;
    } cases[] = {{{1, 1100, 64}, FRIT_F32, 3}, {{2, 2000, 70}, FRIT_F64, 3},
                 {{2, 9001, 1}, FRIT_F32, 3},  {{2, 1100, 64}, FRIT_F32, 3},
                 {{3, 3000, 1}, FRIT_F32, 1},  {{1, 1100, 64}, FRIT_BF16, 5}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t near_lanes = 0; near_lanes <= 16; near_lanes += 16) {
            struct soft s;

            soft_init(&s, cases[i].dtype, cases[i].dims, near_lanes);
            rig_run(&s.rig, &sched_row);
            assert_int_equal(s.rig.module.n_phases, cases[i].phases);
            check_rows(&s, cases[i].dtype == FRIT_BF16 ? 0.04 : 1e-5);
            rig_fini(&s.rig);
        }
}

/* Columns with infinities, NaN, rising and falling numbers have the results that folding the
 * maximum first and then the sum would have. */
static void test_rescaled_ends(void **state)
{
    static const int64_t dims[RANK] = {1, 1100, 64};
    struct soft s;

    (void)state;
    soft_init(&s, FRIT_F32, dims, 16);
    for (int64_t i = 0; i < dims[1]; i++) {
        rig_set_real(&s.rig, s.x, i * 64, (double)-INFINITY);
        rig_set_real(&s.rig, s.x, i * 64 + 1, i == 700 ? (double)INFINITY : 1);
        rig_set_real(&s.rig, s.x, i * 64 + 2, i == 3 ? (double)NAN : 1);
        rig_set_real(&s.rig, s.x, i * 64 + 3, i < 600 ? (double)-INFINITY : (double)i / 100);
        rig_set_real(&s.rig, s.x, i * 64 + 4, (double)i / 1000);
        rig_set_real(&s.rig, s.x, i * 64 + 5, (double)-i / 1000);
        rig_set_real(&s.rig, s.x, i * 64 + 6, i % 2 ? 3e38 : -3e38);
    }
    rig_run(&s.rig, &sched_row);
    assert_int_equal(s.rig.module.n_phases, 3);
    for (int64_t k = 0; k < dims[2]; k++)
        if (k >= 3)
            check_row(&s, k, 1e-5);
        else
            for (int64_t i = 0; i < dims[1]; i++)
                assert_true(isnan(rig_get_real(&s.rig, s.y, i * 64 + k)));
    rig_fini(&s.rig);
}

/* Positions of maxima, and maxima as outputs of their own: a lane of each row stores. */
static void test_outputs(void **state)
{
    static const int64_t dims[RANK] = {2, 90, 75};

    (void)state;
    for (uint32_t near_lanes = 0; near_lanes <= 16; near_lanes += 16) {
        struct soft s;

        soft_init(&s, FRIT_F32, dims, near_lanes);
        s.argmax = rig_op(&s.rig, FRIT_OP_argmax, 1, (struct rig_in[]){rig_value(s.x)}, &s.attrs,
                          FRIT_I64, RANK, s.kept);
        rig_keep(&s.rig, s.max);
        rig_keep(&s.rig, s.y);
        rig_run(&s.rig, &sched_row);
        assert_int_equal(s.rig.module.n_phases, 1);
        check_rows(&s, 1e-5);
        for (int64_t i = 0; i < dims[0] * dims[2]; i++) {
            int64_t first = i / dims[2] * dims[1] * dims[2] + i % dims[2], at = 0;

            for (int64_t k = 1; k < dims[1]; k++)
                if (rig_get_real(&s.rig, s.x, first + k * dims[2]) >
                    rig_get_real(&s.rig, s.x, first + at * dims[2]))
                    at = k;
            assert_int_equal(rig_get_int(&s.rig, s.argmax, i), at);
            assert_true(rig_get_real(&s.rig, s.max, i) ==
                        rig_get_real(&s.rig, s.x, first + at * dims[2]));
        }
        rig_fini(&s.rig);
    }
}

/* With two tensors in registers a lane has half as many elements of a row. */
static void test_two_tensors(void **state)
{
    static const int64_t dims[RANK] = {1, 64, 64}, kept[RANK] = {1, 1, 64};
    frit_attrs_reduce attrs = {.struct_size = sizeof(attrs), .keep = true};
    uint32_t x, y, product, sum;
    struct rig rig;

    (void)state;
    attrs.axes.axis[attrs.axes.count++] = 1;
    rig_init(&rig);
    rig.target.tuning.slab_bytes = SLAB_BYTES;
    x = rig_input(&rig, FRIT_F32, RANK, dims);
    y = rig_input(&rig, FRIT_F32, RANK, dims);
    fill(&rig, x);
    fill(&rig, y);
#define OP(id, n, attrs, dims, ...) \
    rig_op(&rig, id, n, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_F32, RANK, dims)
    product = OP(FRIT_OP_mul, 2, NULL, dims, rig_value(x), rig_value(y));
    sum = OP(FRIT_OP_sum, 1, &attrs, kept, rig_value(product));
    sum = OP(FRIT_OP_sub, 2, NULL, dims, rig_value(x), rig_value(sum));
    sum = OP(FRIT_OP_mul, 2, NULL, dims, rig_value(y), rig_value(sum));
#undef OP
    rig_run(&rig, &sched_row);
    assert_int_equal(count_loads(&rig.module), 2 * 8);
    for (int64_t k = 0; k < dims[2]; k++) {
        double total = 0, want;

        for (int64_t i = 0; i < dims[1]; i++)
            total +=
                rig_get_real(&rig, x, i * dims[2] + k) * rig_get_real(&rig, y, i * dims[2] + k);
        for (int64_t i = 0; i < dims[1]; i++) {
            want = (rig_get_real(&rig, x, i * dims[2] + k) - total) *
                   rig_get_real(&rig, y, i * dims[2] + k);
            assert_true(fabs(rig_get_real(&rig, sum, i * dims[2] + k) - want) <=
                        1e-5 * (1 + fabs(want)) * (1 + fabs(total)));
        }
    }
    rig_fini(&rig);
}

static void test_no_memory(void **state)
{
    static const int64_t dims[][RANK] = {{1, 40, 70}, {1, 1100, 64}};
    struct soft s;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        soft_init(&s, FRIT_F32, dims[i], 16);
        rig_run(&s.rig, &sched_row);
        rig_fail_allocations(&s.rig, &sched_row, 10);
        rig_fini(&s.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),       cmocka_unit_test(test_rescaled),
        cmocka_unit_test(test_rescaled_ends), cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_two_tensors),   cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
