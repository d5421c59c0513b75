/* SPDX-License-Identifier: Apache-2.0 */
/* The scatter schedule against plain loops: every row, update, form and kind of type; numbers that
 * come twice and numbers outside; ops before and after it. */
#include <math.h>
#include <string.h>

#include "ir/verify.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

/* A program of one op.  `lines`: extents of the values where they are not x's, or NULL. */
struct scatter {
    uint32_t id;
    int64_t axis, update;
    uint32_t dtype, index_dtype;
    uint32_t rank, index_rank, values_rank;
    int64_t dims[FRIT_MAX_RANK], index[FRIT_MAX_RANK], values[FRIT_MAX_RANK];
};

static bool is_gathered_wide(uint32_t dtype, int64_t update)
{
    return (dtype == FRIT_F32 || dtype == FRIT_F16) &&
           (update == FRIT_CHOICE_update_add || update == FRIT_CHOICE_update_mul);
}

static void fill(struct rig *rig, uint32_t value, uint64_t state)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        if (rig->values[value].dtype == FRIT_BOOL)
            rig_set_int(rig, value, i, rig_random(&state, 2));
        else if (rig_is_real(rig->values[value].dtype))
            rig_set_real(rig, value, i, (double)rig_random(&state, 2001) / 500 - 2);
        else
            rig_set_int(rig, value, i, (int64_t)rig_random(&state, 201) - 100);
    }
}

/* Some beyond both ends. */
static void fill_index(struct rig *rig, uint32_t value, int64_t extent)
{
    uint64_t state = 4711;

    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_int(rig, value, i, (int64_t)rig_random(&state, (uint32_t)extent + 3) - 1);
}

static int64_t number_of(uint32_t rank, const int64_t *dims, const int64_t *at)
{
    int64_t number = 0;

    for (uint32_t d = 0; d < rank; d++)
        number = number * dims[d] + at[d];
    return number;
}

/* Where value number `i` goes in y; -1: nowhere. */
static int64_t target_of(const struct rig *rig, const struct scatter *s, uint32_t index, int64_t i)
{
    int64_t at[FRIT_MAX_RANK], to[FRIT_MAX_RANK];
    uint32_t heads = s->index_rank - 1;

    for (uint32_t d = s->values_rank; d-- > 0; i /= s->values[d])
        at[d] = i % s->values[d];
    memcpy(to, at, sizeof(to));
    if (s->id == FRIT_OP_scatter) {
        to[s->axis] = rig_get_int(rig, index, number_of(s->index_rank, s->index, at));
    } else if (s->id == FRIT_OP_select_assign) {
        to[s->axis] = rig_get_int(rig, index, at[s->axis]);
    } else {
        int64_t k = s->index[heads];

        for (int64_t j = 0; j < k; j++)
            to[j] = rig_get_int(rig, index, number_of(heads, s->index, at) * k + j);
        for (uint32_t d = (uint32_t)k; d < s->rank; d++)
            to[d] = at[heads + d - (uint32_t)k];
    }
    for (uint32_t d = 0; d < s->rank; d++)
        if (to[d] < 0 || to[d] >= s->dims[d])
            return -1;
    return number_of(s->rank, s->dims, to);
}

static double met_real(int64_t update, double there, double x)
{
    const double met[] = {x, there + x, there * x, x < there ? x : there, x > there ? x : there};

    return met[update];
}

static int64_t met_int(int64_t update, int64_t there, int64_t x)
{
    const uint64_t a = (uint64_t)there, b = (uint64_t)x;
    const uint64_t met[] = {b, a + b, a * b, x < there ? b : a, x > there ? b : a};

    return (int64_t)met[update];
}

static int64_t wrap(uint32_t dtype, int64_t number)
{
    uint32_t spare = 64 - frit_dtype_bits(dtype);
    uint64_t bits = (uint64_t)number << spare;

    return dtype >= FRIT_U64 ? (int64_t)(bits >> spare) : (int64_t)bits >> spare;
}

/* Doubles that are rounded once, integers that wrap. */
static void compare(const struct rig *rig, const struct scatter *s, uint32_t x, uint32_t index,
                    uint32_t values, uint32_t y)
{
    bool real = rig_is_real(s->dtype);
    double *reals = test_calloc((size_t)rig_count(rig, x) + 1, sizeof(*reals));
    int64_t *ints = test_calloc((size_t)rig_count(rig, x) + 1, sizeof(*ints));
    struct rig rounded;
    uint32_t want;

    rig_init(&rounded);
    want = rig_input(&rounded, s->dtype, s->rank, s->dims);
    for (int64_t i = 0; i < rig_count(rig, x); i++) {
        reals[i] = real ? rig_get_real(rig, x, i) : 0;
        ints[i] = real ? 0 : rig_get_int(rig, x, i);
    }
    for (int64_t i = 0; i < rig_count(rig, values); i++) {
        int64_t to = target_of(rig, s, index, i);

        if (to < 0)
            continue;
        if (real)
            reals[to] = met_real(s->update, reals[to], rig_get_real(rig, values, i));
        else
            ints[to] = wrap(s->dtype, met_int(s->update, ints[to], rig_get_int(rig, values, i)));
    }
    for (int64_t i = 0; i < rig_count(rig, x); i++) {
        if (real)
            rig_set_real(&rounded, want, i, reals[i]);
        else
            rig_set_int(&rounded, want, i, ints[i]);
        if (real ? rig_get_real(rig, y, i) != rig_get_real(&rounded, want, i)
                 : rig_get_int(rig, y, i) != rig_get_int(&rounded, want, i))
            fail_msg("op %u of type %u, update %lld: element %lld is %.9g, not %.9g", s->id,
                     s->dtype, (long long)s->update, (long long)i,
                     real ? rig_get_real(rig, y, i) : (double)rig_get_int(rig, y, i),
                     real ? reals[i] : (double)ints[i]);
    }
    rig_fini(&rounded);
    test_free(reals);
    test_free(ints);
}

/* `owner`: on a device so large that each element has a lane. */
static void check_as(const struct scatter *s, bool owner, uint32_t index_width)
{
    const frit_attrs_scatter on_axis = {
        .struct_size = sizeof(on_axis), .axis = s->axis, .update = s->update};
    const frit_attrs_update points = {.struct_size = sizeof(points), .update = s->update};
    bool nd = s->id == FRIT_OP_scatter_nd;
    uint32_t x, index, values, y;
    struct rig rig;

    rig_init(&rig);
    rig.target.units = owner ? 100000 : 1;
    rig.target.lanes = owner ? 64 : 16;
    rig.index_width = index_width;
    x = rig_input(&rig, s->dtype, s->rank, s->dims);
    fill(&rig, x, 3);
    index = rig_input(&rig, s->index_dtype, s->index_rank, s->index);
    fill_index(&rig, index, s->dims[nd ? 0 : s->axis]);
    values = rig_input(&rig, s->dtype, s->values_rank, s->values);
    fill(&rig, values, 5);
    y = rig_op(&rig, s->id, 3, (struct rig_in[]){rig_value(x), rig_value(index), rig_value(values)},
               nd ? (const void *)&points : &on_axis, s->dtype, s->rank, s->dims);
    rig_run(&rig, &sched_scatter);
    assert_int_equal(rig.module.n_phases, owner                                   ? 1
                                          : is_gathered_wide(s->dtype, s->update) ? 3
                                                                                  : 2);
    if (!owner && rig.module.n_phases == 2)
        assert_int_equal(rig.numbers.alias[0], 1);
    compare(&rig, s, x, index, values, y);
    rig_fini(&rig);
}

static void check(struct scatter s)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F16, FRIT_F64, FRIT_I8,
                                      FRIT_I32, FRIT_U16, FRIT_BOOL};

    for (uint32_t t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++)
        for (s.update = 0; s.update < 5; s.update++) {
            s.dtype = dtypes[t];
            s.index_dtype = (t + s.update) % 2 ? FRIT_I32 : FRIT_I64;
            if (s.dtype == FRIT_BOOL && (s.update == 1 || s.update == 2))
                continue;
            check_as(&s, true, 32);
            check_as(&s, false, 32);
        }
    s.dtype = FRIT_F32;
    s.update = FRIT_CHOICE_update_add;
    for (uint32_t owner = 0; owner < 2; owner++) {
        s.index_dtype = owner ? FRIT_I32 : FRIT_I64;
        check_as(&s, owner, 64);
    }
}

static void test_select_assign(void **state)
{
    (void)state;
    check((struct scatter){FRIT_OP_select_assign, .axis = 1, .rank = 3, .dims = {9, 40, 7},
                           .index_rank = 1, .index = {13}, .values_rank = 3, .values = {9, 13, 7}});
    check((struct scatter){FRIT_OP_select_assign, .axis = 0, .rank = 2, .dims = {80, 33},
                           .index_rank = 1, .index = {100}, .values_rank = 2, .values = {100, 33}});
    check((struct scatter){FRIT_OP_select_assign, .axis = 2, .rank = 3, .dims = {5, 6, 100},
                           .index_rank = 1, .index = {20}, .values_rank = 3, .values = {5, 6, 20}});
    check((struct scatter){FRIT_OP_select_assign, .axis = 0, .rank = 1, .dims = {500},
                           .index_rank = 1, .index = {37}, .values_rank = 1, .values = {37}});
}

/* The index need not cover x. */
static void test_scatter(void **state)
{
    (void)state;
    check((struct scatter){FRIT_OP_scatter, .axis = 1, .rank = 3, .dims = {9, 40, 7},
                           .index_rank = 3, .index = {9, 13, 7}, .values_rank = 3,
                           .values = {9, 13, 7}});
    check((struct scatter){FRIT_OP_scatter, .axis = 0, .rank = 3, .dims = {60, 8, 5},
                           .index_rank = 3, .index = {70, 3, 5}, .values_rank = 3,
                           .values = {70, 3, 5}});
    check((struct scatter){FRIT_OP_scatter, .axis = 2, .rank = 3, .dims = {4, 8, 90},
                           .index_rank = 3, .index = {2, 7, 30}, .values_rank = 3,
                           .values = {2, 7, 30}});
}

static void test_scatter_nd(void **state)
{
    const struct scatter one = {FRIT_OP_scatter_nd, .dtype = FRIT_I32, .index_dtype = FRIT_I32,
                                .rank = 2,          .dims = {40, 10},  .index_rank = 1,
                                .index = {1},       .values_rank = 1,  .values = {10}};

    (void)state;
    check((struct scatter){FRIT_OP_scatter_nd, .rank = 3, .dims = {6, 60, 7}, .index_rank = 2,
                           .index = {30, 2}, .values_rank = 2, .values = {30, 7}});
    check((struct scatter){FRIT_OP_scatter_nd, .rank = 2, .dims = {40, 90}, .index_rank = 3,
                           .index = {4, 5, 1}, .values_rank = 3, .values = {4, 5, 90}});
    check((struct scatter){FRIT_OP_scatter_nd, .rank = 2, .dims = {17, 19}, .index_rank = 2,
                           .index = {40, 2}, .values_rank = 1, .values = {40}});
    check_as(&one, true, 32);
}

/* Nothing to update, or nothing at all. */
static void test_empty(void **state)
{
    struct scatter s = {FRIT_OP_select_assign,   .axis = 0,        .dtype = FRIT_I32,
                        .index_dtype = FRIT_I32, .rank = 2,        .dims = {90, 9},
                        .index_rank = 1,         .values_rank = 2, .values = {0, 9}};
    struct scatter no_lines = {FRIT_OP_scatter,         .axis = 0,       .dtype = FRIT_I32,
                               .index_dtype = FRIT_I32, .rank = 2,       .dims = {90, 9},
                               .index_rank = 2,         .index = {5, 0}, .values_rank = 2,
                               .values = {5, 0}};
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs)};
    static const int64_t none[] = {0, 4}, five[] = {5}, five_none[] = {5, 4};
    uint32_t x, index, values;
    struct rig rig;

    (void)state;
    check_as(&s, true, 32);
    check_as(&no_lines, true, 32);
    rig_init(&rig);
    x = rig_input(&rig, FRIT_I32, 2, none);
    index = rig_input(&rig, FRIT_I32, 1, five);
    values = rig_input(&rig, FRIT_I32, 2, five_none);
    rig_op(&rig, FRIT_OP_select_assign, 3,
           (struct rig_in[]){rig_value(x), rig_value(index), rig_value(values)}, &attrs, FRIT_I32,
           2, none);
    rig_run(&rig, &sched_scatter);
    assert_int_equal(rig.numbers.grid[0][0], 0);
    rig_fini(&rig);
}

/* Lines without a step are still filled. */
static void test_no_steps(void **state)
{
    struct scatter s = {FRIT_OP_scatter,         .axis = 1,       .dtype = FRIT_I32,
                        .index_dtype = FRIT_I32, .rank = 2,       .dims = {2, 3000},
                        .index_rank = 2,         .index = {0, 5}, .values_rank = 2,
                        .values = {0, 5}};
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs), .axis = 1};
    uint32_t x, index, values, y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.units = 1;
    x = rig_input(&rig, s.dtype, 2, s.dims);
    fill(&rig, x, 3);
    index = rig_input(&rig, s.index_dtype, 2, s.index);
    values = rig_input(&rig, s.dtype, 2, s.values);
    y = rig_op(&rig, s.id, 3, (struct rig_in[]){rig_value(x), rig_value(index), rig_value(values)},
               &attrs, s.dtype, 2, s.dims);
    rig_run(&rig, &sched_scatter);
    compare(&rig, &s, x, index, values, y);
    rig_fini(&rig);
}

/* y = flip(scatter(2x, index + 1, -v)) + x, the scattered itself and 2x are outputs too. */
static void around(bool owner)
{
    static const int64_t dims[] = {70, 20}, steps[] = {9, 20};
    const frit_attrs_scatter attrs = {
        .struct_size = sizeof(attrs), .axis = 0, .update = FRIT_CHOICE_update_add};
    const frit_attrs_axes axes = {.struct_size = sizeof(axes), .axes = {.count = 1, .axis = {0}}};
    uint32_t x, twice, index, next, values, minus, sums, back, y;
    struct rig rig;

    rig_init(&rig);
    rig.target.units = owner ? 100000 : 1;
    rig.target.lanes = owner ? 64 : 16;
    x = rig_laid(&rig, FRIT_I32, 2, dims, (const uint32_t[]){1, 0}, 0, 1);
    fill(&rig, x, 3);
    index = rig_input(&rig, FRIT_I32, 2, steps);
    fill_index(&rig, index, dims[0]);
    values = rig_input(&rig, FRIT_I32, 2, steps);
    fill(&rig, values, 5);
#define OP(id, n_in, attrs, dims, ...) \
    rig_op(&rig, id, n_in, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_I32, 2, dims)
    twice = OP(FRIT_OP_mul, 2, NULL, dims, rig_value(x), rig_int(FRIT_I32, 2));
    next = OP(FRIT_OP_add, 2, NULL, steps, rig_value(index), rig_int(FRIT_I32, 1));
    minus = OP(FRIT_OP_neg, 1, NULL, steps, rig_value(values));
    sums =
        OP(FRIT_OP_scatter, 3, &attrs, dims, rig_value(twice), rig_value(next), rig_value(minus));
    back = OP(FRIT_OP_flip, 1, &axes, dims, rig_value(sums));
    y = OP(FRIT_OP_add, 2, NULL, dims, rig_value(back), rig_value(x));
#undef OP
    rig_keep(&rig, twice);
    rig_keep(&rig, sums);
    rig_run(&rig, &sched_scatter);
    assert_int_equal(rig.module.n_phases, owner ? 1 : 3);
    for (int64_t i = 0; i < dims[0]; i++)
        for (int64_t j = 0; j < dims[1]; j++) {
            int64_t at = i * dims[1] + j, turned = (dims[0] - 1 - i) * dims[1] + j;
            int64_t sum = 2 * rig_get_int(&rig, x, at);

            for (int64_t k = 0; k < steps[0]; k++)
                if (rig_get_int(&rig, index, k * steps[1] + j) + 1 == i)
                    sum -= rig_get_int(&rig, values, k * steps[1] + j);
            assert_int_equal(rig_get_int(&rig, twice, at), 2 * rig_get_int(&rig, x, at));
            assert_int_equal(rig_get_int(&rig, sums, at), sum);
            assert_int_equal(rig_get_int(&rig, y, turned), sum + rig_get_int(&rig, x, turned));
        }
    rig_fini(&rig);
}

static void test_around(void **state)
{
    (void)state;
    around(false);
    around(true);
}

/* x is read after y is written where the values are made of it. */
static void test_alias(void **state)
{
    static const int64_t dims[] = {40, 30};
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs)};
    uint32_t x, index;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.units = 1;
    rig.target.lanes = 16;
    x = rig_input(&rig, FRIT_F32, 2, dims);
    index = rig_input(&rig, FRIT_I32, 1, dims);
    rig_op(&rig, FRIT_OP_select_assign, 3,
           (struct rig_in[]){rig_value(x), rig_value(index), rig_value(x)}, &attrs, FRIT_F32, 2,
           dims);
    rig_run(&rig, &sched_scatter);
    assert_int_equal(rig.module.n_phases, 2);
    assert_int_equal(rig.numbers.alias[0], 0);
    rig_fini(&rig);
}

/* Sums of floats where the target has no F64. */
static void test_narrow(void **state)
{
    static const int64_t dims[] = {1000}, steps[] = {300};
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs),
                                      .update = FRIT_CHOICE_update_add};
    uint32_t x, index, values, y;
    struct rig rig;

    (void)state;
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t dtype = half ? FRIT_F16 : FRIT_F32;

        rig_init(&rig);
        rig.target.f64 = false;
        rig.target.units = 1;
        rig.target.lanes = 16;
        x = rig_input(&rig, dtype, 1, dims);
        rig_set_real(&rig, x, 0, 1);
        index = rig_input(&rig, FRIT_I32, 1, steps);
        values = rig_input(&rig, dtype, 1, steps);
        for (int64_t i = 0; i < steps[0]; i++)
            rig_set_real(&rig, values, i, 0x1p-12);
        y = rig_op(&rig, FRIT_OP_select_assign, 3,
                   (struct rig_in[]){rig_value(x), rig_value(index), rig_value(values)}, &attrs,
                   dtype, 1, dims);
        rig_run(&rig, &sched_scatter);
        assert_int_equal(rig.module.n_phases, half ? 3 : 2);
        assert_true(fabs(rig_get_real(&rig, y, 0) - (1 + 300 * 0x1p-12)) < (half ? 0x1p-10 : 1e-6));
        assert_true(rig_get_real(&rig, y, 1) == 0);
        rig_fini(&rig);
    }
}

/* exp(scatter(x, index, values)) on a device with one unit of 16 lanes. */
static void init_phases(struct rig *rig, const frit_attrs_scatter *attrs)
{
    static const int64_t dims[] = {70, 20}, steps[] = {9, 20};
    uint32_t x, index, values, y;

    rig_init(rig);
    rig->target.units = 1;
    rig->target.lanes = 16;
    x = rig_input(rig, FRIT_F32, 2, dims);
    index = rig_input(rig, FRIT_I32, 2, steps);
    values = rig_input(rig, FRIT_F32, 2, steps);
    y = rig_op(rig, FRIT_OP_scatter, 3,
               (struct rig_in[]){rig_value(x), rig_value(index), rig_value(values)}, attrs,
               FRIT_F32, 2, dims);
    rig_op(rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, dims);
    rig_run(rig, &sched_scatter);
    assert_int_equal(rig->module.n_phases, 3);
}

/* All phases are wide if one has to be. */
static void test_wide(void **state)
{
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs)};
    struct rig rig;

    (void)state;
    init_phases(&rig, &attrs);
    for (uint32_t i = 0; i <= 3; i++) {
        struct kir_module module;
        struct sched_numbers numbers = {0};
        struct sched s = {&rig.block, &rig.sig, &rig.target, rig.extents, &module, &numbers, false};
        int64_t own = rig.args[i].strides[0];

        rig.args[i].strides[0] = 1ll << 31;
        kir_init(&module, "test");
        assert_int_equal(sched_scatter.build(&s, NULL), FRIT_OK);
        assert_true(module.wide);
        assert_int_equal(kir_verify(&module, NULL, NULL), FRIT_OK);
        kir_fini(&module);
        arena_fini(&numbers.arena);
        rig.args[i].strides[0] = own;
    }
    rig_fini(&rig);
}

static void test_no_memory(void **state)
{
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs)};
    struct rig rig;

    (void)state;
    init_phases(&rig, &attrs);
    rig_fail_allocations(&rig, &sched_scatter, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select_assign), cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatter_nd),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_no_steps),      cmocka_unit_test(test_around),
        cmocka_unit_test(test_alias),         cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_wide),          cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
