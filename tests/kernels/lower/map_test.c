/* SPDX-License-Identifier: Apache-2.0 */
/* The map schedule: which blocks it takes, what its modules show of the numbers, tails, aliases. */
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "ir/facts.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

static void fill(struct rig *rig, uint32_t value, int64_t scale)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, (double)(i * scale % 1009) - 300);
}

static uint32_t op1(struct rig *rig, uint32_t id, uint32_t x, const void *attrs, uint32_t rank,
                    const int64_t *dims)
{
    return rig_op(rig, id, 1, (struct rig_in[]){rig_value(x)}, attrs, rig->values[x].dtype, rank,
                  dims);
}

static uint32_t op2(struct rig *rig, uint32_t id, uint32_t a, uint32_t b, uint32_t rank,
                    const int64_t *dims)
{
    return rig_op(rig, id, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
                  rig->values[a].dtype, rank, dims);
}

/* ---- sizes and tails ---- */

static void test_chain(void **state)
{
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 128, 1000, 64 * 64, 64 * 64 + 5};

    (void)state;
    for (uint32_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const int64_t *dims = &sizes[k];
        struct rig rig;
        uint32_t a, b, sum, product;

        rig_init(&rig);
        a = rig_input(&rig, FRIT_F32, 1, dims);
        b = rig_input(&rig, FRIT_F32, 1, dims);
        fill(&rig, a, 7);
        fill(&rig, b, 3);
        sum = op2(&rig, FRIT_OP_add, a, b, 1, dims);
        product =
            rig_op(&rig, FRIT_OP_mul, 2, (struct rig_in[]){rig_value(sum), rig_real(FRIT_F32, 0.5)},
                   NULL, FRIT_F32, 1, dims);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < *dims; i++)
            assert_true(rig_get_real(&rig, product, i) ==
                        (rig_get_real(&rig, a, i) + rig_get_real(&rig, b, i)) / 2);
        assert_int_equal(rig.block.n_outputs, 1);
        rig_fini(&rig);
    }
}

/* Rows that are cut by themselves, and ones that are not; most with tails. */
static void test_rows(void **state)
{
    static const int64_t sizes[][2] = {{3, 5},  {100, 63}, {100, 64},  {90, 65},
                                       {7, 70}, {70, 130}, {200, 129}, {1, 300}};

    (void)state;
    for (uint32_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const int64_t *dims = sizes[k];
        struct rig rig;
        uint32_t a, b, y;

        rig_init(&rig);
        a = rig_input(&rig, FRIT_F32, 2, dims);
        b = rig_input(&rig, FRIT_F32, 1, dims + 1);
        fill(&rig, a, 7);
        fill(&rig, b, 3);
        y = op2(&rig, FRIT_OP_add, a, b, 2, dims);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < rig_count(&rig, y); i++)
            assert_true(rig_get_real(&rig, y, i) ==
                        rig_get_real(&rig, a, i) + rig_get_real(&rig, b, i % dims[1]));
        rig_fini(&rig);
    }
}

static void test_empty(void **state)
{
    const int64_t dims[] = {4, 0, 3};
    struct rig rig;
    uint32_t a;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 3, dims);
    op1(&rig, FRIT_OP_neg, a, NULL, 3, dims);
    rig_run(&rig, &sched_map);
    assert_int_equal(rig.numbers.grid[0][0], 0);
    rig_fini(&rig);
}

/* Indices far outside read the nearest element, in narrow and wide modules. */
static void test_far_index(void **state)
{
    static const int64_t far[] = {-1, 0, 2, 3, 1ll << 40, -(1ll << 40), INT64_MAX, INT64_MIN};
    static const int64_t nearest[] = {0, 0, 2, 2, 2, 0, 2, 0};
    const int64_t dims[] = {3, 5}, line[] = {8}, out[] = {8, 5};
    const frit_attrs_axis axis = {.struct_size = sizeof(axis), .axis = 0};

    (void)state;
    for (uint32_t width = 32; width <= 64; width += 32) {
        struct rig rig;
        uint32_t x, index, y;

        rig_init(&rig);
        rig.index_width = width;
        x = rig_input(&rig, FRIT_F32, 2, dims);
        index = rig_input(&rig, FRIT_I64, 1, line);
        fill(&rig, x, 7);
        for (int64_t i = 0; i < 8; i++)
            rig_set_int(&rig, index, i, far[i]);
        y = rig_op(&rig, FRIT_OP_select, 2, (struct rig_in[]){rig_value(x), rig_value(index)},
                   &axis, FRIT_F32, 2, out);
        rig_run(&rig, &sched_map);
        assert_int_equal(rig.module.wide, width == 64);
        for (int64_t i = 0; i < 40; i++)
            assert_true(rig_get_real(&rig, y, i) ==
                        rig_get_real(&rig, x, nearest[i / 5] * 5 + i % 5));
        rig_fini(&rig);
    }
}

/* Vectors lie along the middle dim; the second operand broadcasts. */
static void check_cross(uint32_t dtype)
{
    const int64_t dims[] = {5, 3, 4}, few[] = {3, 1};
    const frit_attrs_axis axis = {.struct_size = sizeof(axis), .axis = 1};
    struct rig rig;
    uint32_t a, b, y;

    rig_init(&rig);
    a = rig_input(&rig, dtype, 3, dims);
    b = rig_input(&rig, dtype, 2, few);
    for (int64_t i = 0; i < 60; i++)
        rig_set_real(&rig, a, i, (double)(i * 7 % 23) - 11);
    for (int64_t i = 0; i < 3; i++)
        rig_set_real(&rig, b, i, (double)(i * i) + 2);
    y = rig_op(&rig, FRIT_OP_cross, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, &axis, dtype,
               3, dims);
    op1(&rig, FRIT_OP_neg, y, NULL, 3, dims);
    rig_keep(&rig, y);
    rig_run(&rig, &sched_map);
    for (int64_t i = 0; i < 60; i++) {
        int64_t k = i / 4 % 3, next = (k + 1) % 3, last = (k + 2) % 3, at = i - 4 * k;
        double want = rig_get_real(&rig, a, at + 4 * next) * rig_get_real(&rig, b, last) -
                      rig_get_real(&rig, a, at + 4 * last) * rig_get_real(&rig, b, next);

        assert_true(rig_get_real(&rig, y, i) == want);
        assert_true(rig_get_real(&rig, y + 1, i) == -want);
    }
    rig_fini(&rig);
}

static void test_cross(void **state)
{
    (void)state;
    check_cross(FRIT_F32);
    check_cross(FRIT_F16);
}

/* ---- what a module shows ---- */

enum { PLAIN, LAID, ROW, COLUMN, SPLIT, TURNED };

/* Text of the module of y = -(x as the form says) of 3 dims; ends the rig. */
static char *module_text(uint32_t form, const int64_t *dims, uint32_t *n_divisions)
{
    static const uint32_t order[] = {2, 0, 1};
    const int64_t line = dims[0] * dims[1] * dims[2], row[] = {dims[2]}, column[] = {dims[1], 1};
    const frit_attrs_axes all = {.struct_size = sizeof(all), .axes = {3, {0, 1, 2}}};
    struct str text = {0};
    struct rig rig;
    uint32_t x, y;

    rig_init(&rig);
    rig.target.tuning.group_least = 1; /* a line each, whatever their number */
    if (form == SPLIT) {               /* a dim that the result has as three */
        x = rig_laid(&rig, FRIT_F32, 1, &line, NULL, 1, 2);
        x = op1(&rig, FRIT_OP_reshape, x, NULL, 3, dims);
    } else if (form == ROW) {
        x = rig_input(&rig, FRIT_F32, 1, row);
        x = op1(&rig, FRIT_OP_expand, x, NULL, 3, dims);
    } else if (form == COLUMN) {
        x = rig_input(&rig, FRIT_F32, 2, column);
        x = op1(&rig, FRIT_OP_expand, x, NULL, 3, dims);
    } else {
        x = rig_laid(&rig, FRIT_F32, 3, dims, form == LAID ? order : NULL, 0, 1);
        if (form == TURNED)
            x = op1(&rig, FRIT_OP_flip, x, &all, 3, dims);
    }
    y = op1(&rig, FRIT_OP_neg, x, NULL, 3, dims);
    assert_int_equal(rig_count(&rig, y), line);
    rig_run(&rig, &sched_map);
    kir_print(&rig.module, &text);
    *n_divisions = rig_divisions(&rig);
    rig_fini(&rig);
    assert_false(text.failed);
    return text.text;
}

/* Sizes of one kind share a module; each form has its own, with as many divisions as it needs. */
static void test_modules(void **state)
{
    static const struct {
        uint32_t form, divisions;
        int64_t a[3], b[3];
    } cases[] = {
        {PLAIN, 0, {4, 8, 64}, {2, 16, 128}}, {LAID, 0, {3, 2, 128}, {2, 5, 256}},
        {LAID, 1, {3, 2, 32}, {6, 4, 16}},    {ROW, 0, {4, 8, 64}, {2, 6, 64}},
        {COLUMN, 0, {4, 8, 64}, {2, 6, 64}},  {COLUMN, 2, {32, 8, 8}, {64, 16, 16}},
        {SPLIT, 0, {4, 8, 64}, {2, 16, 128}}, {TURNED, 0, {4, 8, 64}, {2, 16, 128}},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t divisions;
        char *a = module_text(cases[i].form, cases[i].a, &divisions);
        char *b = module_text(cases[i].form, cases[i].b, &divisions);

        assert_string_equal(a, b);
        if (divisions != cases[i].divisions)
            fail_msg("case %u: %u divisions\n%s", i, divisions, a);
        free(a);
        free(b);
    }
}

/* y = -x, with dims of x in another order, by groups of several blocks; the last may have fewer. */
static void check_spans(int64_t lines, int64_t line, uint32_t lanes, bool masked)
{
    static const uint32_t order[] = {1, 0, 2};
    const int64_t dims[] = {2, lines, line};
    struct rig rig;
    uint32_t x, y, n_masked = 0;

    rig_init(&rig);
    rig.target.units = 4;
    rig.target.tuning.group_least = lanes;
    x = rig_laid(&rig, FRIT_F32, 3, dims, order, 0, 1);
    fill(&rig, x, 11);
    y = op1(&rig, FRIT_OP_neg, x, NULL, 3, dims);
    rig_run(&rig, &sched_map);
    assert_int_equal(rig.module.phases[0].lanes, lanes);
    for (uint32_t i = 0; i < rig.module.phases[0].n; i++)
        n_masked += rig.module.phases[0].inst[i].op == KIR_store_if;
    assert_int_equal(n_masked, masked);
    for (int64_t i = 0; i < rig_count(&rig, y); i++)
        assert_true(rig_get_real(&rig, y, i) == -rig_get_real(&rig, x, i));
    rig_fini(&rig);
}

static void test_spans(void **state)
{
    (void)state;
    check_spans(32, 64, 256, false);
    check_spans(33, 64, 256, true);
    check_spans(33, 70, 512, true);
    check_spans(32, 150, 256, true);
    check_spans(7, 64, 64, false); /* too few lines to share groups */
}

/* A contiguous operand is read at the element's number, whatever the dims are split for. */
static void test_contiguous(void **state)
{
    const int64_t dims[] = {50, 6}, column[] = {50, 1};
    uint32_t loads = 0, linear = 0;
    struct facts facts;
    struct rig rig;
    uint32_t a, b;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 2, dims);
    b = rig_input(&rig, FRIT_F32, 2, column);
    op2(&rig, FRIT_OP_add, a, b, 2, dims);
    rig_run(&rig, &sched_map);
    assert_int_equal(facts_init(&facts, &rig.module, 0, NULL), FRIT_OK);
    for (uint32_t i = 0; i < rig.module.phases[0].n; i++) {
        const struct kir_inst *inst = &rig.module.phases[0].inst[i];

        if (inst->op != KIR_load && inst->op != KIR_load_if)
            continue;
        loads++;
        linear += facts.of[inst->a[0]].kind == FACT_LINEAR && facts.of[inst->a[0]].stride == 1;
    }
    assert_int_equal(loads, 2);
    assert_int_equal(linear, 1);
    facts_fini(&facts);
    rig_fini(&rig);
}

static bool has_op(const struct rig *rig, uint32_t op)
{
    for (uint32_t i = 0; i < rig->module.phases[0].n; i++)
        if (rig->module.phases[0].inst[i].op == op)
            return true;
    return false;
}

/* y[b, i, j] = neg(x[b, j, i]) + w[i, j], by tiles where the square is large. */
static void across(const int64_t *dims, uint32_t dtype, uint32_t lanes, bool tiled)
{
    const int64_t turned[] = {dims[0], dims[2], dims[1]};
    const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 1, .with = 2};
    struct rig rig;
    uint32_t x, w, t, y;

    rig_init(&rig);
    rig.target.rereads_are_cached = lanes == 0;
    rig.target.lanes = lanes ? lanes : 64;
    rig.target.max_lanes = 1024;
    x = rig_input(&rig, dtype, 3, turned);
    w = rig_input(&rig, dtype, 2, dims + 1);
    fill(&rig, x, 7);
    fill(&rig, w, 3);
    t = op1(&rig, FRIT_OP_neg, x, NULL, 3, turned);
    t = op1(&rig, FRIT_OP_transpose, t, &swap, 3, dims);
    y = op2(&rig, FRIT_OP_add, t, w, 3, dims);
    rig_run(&rig, &sched_map);
    assert_int_equal(has_op(&rig, KIR_barrier), tiled);
    for (int64_t n = 0; n < rig_count(&rig, y); n++) {
        int64_t j = n % dims[2], i = n / dims[2] % dims[1], b = n / dims[2] / dims[1];
        double want = rig_get_real(&rig, w, i * dims[2] + j) -
                      rig_get_real(&rig, x, (b * dims[2] + j) * dims[1] + i);

        if (rig_get_real(&rig, y, n) != want)
            fail_msg("%lld x %lld x %lld: element %lld is %g, not %g", (long long)dims[0],
                     (long long)dims[1], (long long)dims[2], (long long)n, rig_get_real(&rig, y, n),
                     want);
    }
    rig_fini(&rig);
}

static void test_across(void **state)
{
    static const int64_t dims[][3] = {{1, 128, 192}, {3, 130, 67}, {2, 33, 500}, {5, 700, 32}};
    static const int64_t small[][3] = {{1, 20, 2000}, {1, 64, 64}, {1, 2000, 20}};
    static const uint32_t lanes[] = {0, 16, 64, 256, 512, 1024};

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 6; k++) {
            across(dims[i], FRIT_F32, lanes[k], true);
            across(dims[i], FRIT_F64, lanes[k], true);
        }
    for (uint32_t i = 0; i < 3; i++)
        across(small[i], FRIT_F32, 64, false);
}

/* A bool goes through a tile as a word; a read with a condition of its own goes through none. */
static void test_across_kinds(void **state)
{
    const int64_t dims[] = {150, 200}, turned[] = {200, 150}, both[] = {300, 200};
    const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 0, .with = 1};
    const frit_attrs_axis axis = {.struct_size = sizeof(axis), .axis = 0};
    struct rig rig;
    uint32_t b, x, y;

    (void)state;
    rig_init(&rig);
    b = rig_input(&rig, FRIT_BOOL, 2, turned);
    for (int64_t i = 0; i < rig_count(&rig, b); i++)
        rig_set_int(&rig, b, i, i % 7 % 2);
    x = op1(&rig, FRIT_OP_transpose, b, &swap, 2, dims);
    y = op1(&rig, FRIT_OP_not, x, NULL, 2, dims);
    rig_run(&rig, &sched_map);
    assert_true(has_op(&rig, KIR_barrier));
    for (int64_t i = 0; i < rig_count(&rig, y); i++)
        assert_int_equal(rig_get_int(&rig, y, i), !((i % 200 * 150 + i / 200) % 7 % 2));
    rig_fini(&rig);

    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, turned);
    fill(&rig, x, 5);
    y = op1(&rig, FRIT_OP_transpose, x, &swap, 2, dims);
    y = rig_op(&rig, FRIT_OP_cat, 2, (struct rig_in[]){rig_value(y), rig_value(y)}, &axis, FRIT_F32,
               2, both);
    rig_run(&rig, &sched_map);
    assert_false(has_op(&rig, KIR_barrier));
    for (int64_t i = 0; i < rig_count(&rig, y); i++)
        assert_true(rig_get_real(&rig, y, i) ==
                    rig_get_real(&rig, x, i % 200 * 150 + i / 200 % 150));
    rig_fini(&rig);
}

/* Masks stand only where blocks may not fill up, ifs only where there are many. */
static void test_masks(void **state)
{
    static const struct {
        int64_t n;
        bool plain, masked, branch;
    } cases[] = {{64 * 200, true, false, false},
                 {64 * 200 + 1, true, true, true},
                 {64 * 3, true, false, false},
                 {64 * 3 + 1, false, true, false},
                 {1, false, true, false}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig rig;
        uint32_t x;

        rig_init(&rig);
        x = rig_input(&rig, FRIT_F32, 1, &cases[i].n);
        op1(&rig, FRIT_OP_neg, x, NULL, 1, &cases[i].n);
        rig_run(&rig, &sched_map);
        assert_int_equal(has_op(&rig, KIR_store), cases[i].plain);
        assert_int_equal(has_op(&rig, KIR_store_if), cases[i].masked);
        assert_int_equal(has_op(&rig, KIR_if), cases[i].branch);
        rig_fini(&rig);
    }
}

/* ---- aliases ---- */

static void test_alias(void **state)
{
    static const uint32_t turned[] = {1, 0};
    const frit_attrs_order order = {.struct_size = sizeof(order), .order = {2, {1, 0}}};
    const int64_t dims[] = {9, 9}, line[] = {9}, flat[] = {81};
    struct rig rig;
    uint32_t a, b, c, d, e, f, g, t, y;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 2, dims);              /* 0: may */
    b = rig_laid(&rig, FRIT_F32, 2, dims, turned, 0, 1); /* 1: lies otherwise */
    c = rig_input(&rig, FRIT_F32, 1, line);              /* 2: smaller */
    d = rig_input(&rig, FRIT_F16, 2, dims);              /* 3: narrower */
    e = rig_input(&rig, FRIT_F32, 2, dims);              /* 4: also read turned */
    f = rig_input(&rig, FRIT_F32, 1, flat);              /* 5: may, by a reshape */
    g = rig_laid(&rig, FRIT_F32, 2, dims, NULL, 3, 1);   /* 6: backwards */
    y = op2(&rig, FRIT_OP_add, a, b, 2, dims);
    y = op2(&rig, FRIT_OP_add, y, c, 2, dims);
    t = rig_op(&rig, FRIT_OP_cast, 1, (struct rig_in[]){rig_value(d)},
               &(frit_attrs_cast){.struct_size = sizeof(frit_attrs_cast), .dtype = FRIT_F32},
               FRIT_F32, 2, dims);
    y = op2(&rig, FRIT_OP_add, y, t, 2, dims);
    y = op2(&rig, FRIT_OP_add, y, e, 2, dims);
    t = op1(&rig, FRIT_OP_permute, e, &order, 2, dims);
    y = op2(&rig, FRIT_OP_add, y, t, 2, dims);
    t = op1(&rig, FRIT_OP_reshape, f, NULL, 2, dims);
    y = op2(&rig, FRIT_OP_add, y, t, 2, dims);
    y = op2(&rig, FRIT_OP_add, y, g, 2, dims);
    rig_run(&rig, &sched_map);
    assert_int_equal(rig.numbers.alias[0], 1 << 0 | 1 << 5);
    rig_fini(&rig);
}

/* The first piece of a join is read where it is written, but is smaller. */
static void test_alias_join(void **state)
{
    const int64_t dims[] = {4, 6}, both[] = {8, 6};
    const frit_attrs_axis axis = {.struct_size = sizeof(axis), .axis = 0};
    struct rig rig;
    uint32_t a, b;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 2, dims);
    b = rig_input(&rig, FRIT_F32, 2, dims);
    rig_op(&rig, FRIT_OP_cat, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, &axis, FRIT_F32, 2,
           both);
    rig_run(&rig, &sched_map);
    assert_int_equal(rig.numbers.alias[0], 0);
    rig_fini(&rig);
}

/* ---- several sizes ---- */

/* Results of other sizes have phases of their own; no phase overwrites what another reads. */
static void test_sizes(void **state)
{
    const int64_t line[] = {10}, dims[] = {4, 10}, flat[] = {40};
    struct rig rig;
    uint32_t a, b, c, d, y, z, w, v;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 1, line);
    b = rig_input(&rig, FRIT_F32, 2, dims);
    c = rig_input(&rig, FRIT_F32, 1, flat);
    d = rig_input(&rig, FRIT_F32, 1, line);
    for (int i = 0; i < 40; i++) {
        rig_set_real(&rig, a, i % 10, i % 10);
        rig_set_real(&rig, b, i, 100.0 + i);
        rig_set_real(&rig, c, i, -2.0 * i);
        rig_set_real(&rig, d, i % 10, 0.5);
    }
    y = op1(&rig, FRIT_OP_neg, a, NULL, 1, line);
    z = op2(&rig, FRIT_OP_add, b, a, 2, dims);
    w = op1(&rig, FRIT_OP_neg, c, NULL, 1, flat);
    v = op2(&rig, FRIT_OP_add, d, y, 1, line);
    rig_keep(&rig, y);
    rig_run(&rig, &sched_map);
    assert_int_equal(rig.module.n_phases, 2);
    for (int i = 0; i < 40; i++) {
        assert_true(rig_get_real(&rig, y, i % 10) == -(i % 10));
        assert_true(rig_get_real(&rig, z, i) == 100 + i + i % 10);
        assert_true(rig_get_real(&rig, w, i) == 2 * i);
        assert_true(rig_get_real(&rig, v, i % 10) == 0.5 - i % 10);
    }
    assert_int_equal(rig.numbers.alias[0], 1 << 3);          /* y: not a, which z needs */
    assert_int_equal(rig.numbers.alias[1], 1 << 1 | 1 << 2); /* z */
    assert_int_equal(rig.numbers.alias[2], 1 << 1 | 1 << 2);
    assert_int_equal(rig.numbers.alias[3], 1 << 3);
    rig_fini(&rig);
}

/* As many sizes as a launch has phases; outputs without elements need none. */
static void test_many_sizes(void **state)
{
    uint32_t x, y[SCHED_PHASES + 1];
    struct rig rig;
    bool open;

    (void)state;
    rig_init(&rig);
    for (int64_t i = 0; i <= SCHED_PHASES; i++) {
        int64_t dims = i < 2 ? 0 : 30 + i;

        x = rig_input(&rig, FRIT_F32, 1, &dims);
        for (int64_t k = 0; k < dims; k++)
            rig_set_real(&rig, x, k, (double)(i * k));
        y[i] = op1(&rig, FRIT_OP_neg, x, NULL, 1, &dims);
    }
    rig_run(&rig, &sched_map);
    assert_int_equal(rig.module.n_phases, SCHED_PHASES - 1);
    for (int64_t i = 2; i <= SCHED_PHASES; i++)
        for (int64_t k = 0; k < 30 + i; k++)
            assert_true(rig_get_real(&rig, y[i], k) == (double)(-i * k));
    rig_fini(&rig);

    rig_init(&rig);
    for (int64_t i = 0; i <= SCHED_PHASES; i++) {
        int64_t dims = 30 + i;

        op1(&rig, FRIT_OP_neg, rig_input(&rig, FRIT_F32, 1, &dims), NULL, 1, &dims);
    }
    rig_push(&rig);
    assert_int_equal(rig_match(&sched_map, &rig.block, &open), SCHED_PHASES);
    assert_true(open);
    rig_fini(&rig);
}

/* ---- accepting ---- */

static uint32_t accepts(struct rig *rig, bool *open)
{
    rig_push(rig);
    return rig_match(&sched_map, &rig->block, open);
}

static void test_accepts(void **state)
{
    const int64_t dims[] = {6, 4}, row[] = {1, 4}, flat[] = {24};
    const frit_attrs_reduce sum = {.struct_size = sizeof(sum), .axes = {1, {0}}, .keep = 1};
    struct rig rig;
    uint32_t x, y, r, z;
    bool open;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    r = rig_input(&rig, FRIT_F32, 2, row);
    assert_int_equal(accepts(&rig, &open), 0);
    assert_true(open);
    y = op1(&rig, FRIT_OP_exp, x, NULL, 2, dims);
    assert_int_equal(accepts(&rig, &open), 1);
    y = op1(&rig, FRIT_OP_reshape, y, NULL, 1, flat);
    assert_int_equal(accepts(&rig, &open), 1); /* no view at the end */
    assert_true(open);
    y = op1(&rig, FRIT_OP_neg, y, NULL, 1, flat);
    assert_int_equal(accepts(&rig, &open), 3);
    r = op1(&rig, FRIT_OP_neg, r, NULL, 2, row); /* another size, of nothing that is there */
    assert_int_equal(accepts(&rig, &open), 4);
    z = op2(&rig, FRIT_OP_add, x, r, 2, dims); /* where it is forgotten again */
    assert_int_equal(accepts(&rig, &open), 5);
    rig_keep(&rig, r); /* z is made of it and larger */
    assert_int_equal(accepts(&rig, &open), 4);
    op1(&rig, FRIT_OP_sum, z, &sum, 2, row);
    assert_int_equal(accepts(&rig, &open), 4);
    assert_false(open);
    rig_fini(&rig);
}

/* Elements repeated along a line are not a join's pieces where lanes are parts of vectors; others,
 * and whole pieces that are expanded, are. */
static void test_join_of_repeats(void **state)
{
    const int64_t dims[] = {6, 4, 1}, wide[] = {6, 4, 2}, line[] = {6, 8}, both[] = {12, 8};
    const frit_attrs_axis axis = {.struct_size = sizeof(axis), .axis = 0};
    struct rig rig;

    (void)state;
    for (uint32_t repeats = 0; repeats < 2; repeats++) {
        uint32_t x, y, covered;
        bool open;

        rig_init(&rig);
        y = rig_input(&rig, FRIT_F32, 2, line);
        x = rig_input(&rig, FRIT_F32, 3, dims);
        x = op1(&rig, FRIT_OP_neg, x, NULL, 3, dims);
        if (repeats)
            x = op1(&rig, FRIT_OP_expand, x, NULL, 3, wide);
        else
            x = op2(&rig, FRIT_OP_add, x, rig_input(&rig, FRIT_F32, 3, wide), 3, wide);
        x = op1(&rig, FRIT_OP_reshape, x, NULL, 2, line);
        rig_op(&rig, FRIT_OP_cat, 2, (struct rig_in[]){rig_value(x), rig_value(y)}, &axis, FRIT_F32,
               2, both);
        rig_push(&rig);
        rig.target.lanes_interleaved = false;
        assert_int_equal(match_block(&sched_map, &rig.target, &rig.block, &covered, &open, NULL),
                         FRIT_OK);
        assert_int_equal(covered, 4);
        rig.target.lanes_interleaved = true;
        assert_int_equal(match_block(&sched_map, &rig.target, &rig.block, &covered, &open, NULL),
                         FRIT_OK);
        assert_int_equal(covered, repeats ? 1 : 4);
        rig_fini(&rig);
    }
}

/* x and y = reshape(x) are forgotten: nobody says what the extents of y are. */
static void test_extents(void **state)
{
    const int64_t line[] = {24}, split[] = {8, 3};
    struct rig rig;
    uint32_t x;
    bool open;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 1, line);
    x = op1(&rig, FRIT_OP_reshape, x, NULL, 2, split);
    x = op1(&rig, FRIT_OP_neg, x, NULL, 2, split);
    assert_int_equal(accepts(&rig, &open), 2);
    x = op1(&rig, FRIT_OP_reshape, x, NULL, 1, line);
    op1(&rig, FRIT_OP_neg, x, NULL, 1, line);
    assert_int_equal(accepts(&rig, &open), 2);
    rig_fini(&rig);
}

/* Ops whose operands do not go together are refused, not followed. */
static void test_malformed(void **state)
{
    static const int64_t good[] = {4, 6}, other[] = {6, 4}, less[] = {4}, more[] = {2, 4, 6};
    const frit_attrs_order twice = {.struct_size = sizeof(twice), .order = {2, {1, 1}}};
    const frit_attrs_order turned = {.struct_size = sizeof(turned), .order = {2, {1, 0}}};
    const frit_attrs_order beyond = {.struct_size = sizeof(beyond), .order = {2, {0, 2}}};
    const frit_attrs_axes axes = {.struct_size = sizeof(axes), .axes = {1, {2}}};
    const frit_attrs_unfold unfold = {
        .struct_size = sizeof(unfold), .axis = 1, .size = 5, .step = 2};
    const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 0, .with = 7};
    const struct {
        uint32_t id, rank;
        const int64_t *dims;
        const void *attrs;
    } cases[] = {{FRIT_OP_neg, 1, less, NULL},         {FRIT_OP_neg, 2, other, NULL},
                 {FRIT_OP_permute, 2, good, &twice},   {FRIT_OP_permute, 2, good, &beyond},
                 {FRIT_OP_permute, 2, good, &turned},  {FRIT_OP_expand, 1, less, NULL},
                 {FRIT_OP_expand, 2, other, NULL},     {FRIT_OP_flip, 2, good, &axes},
                 {FRIT_OP_flip, 2, other, &axes},      {FRIT_OP_unfold, 3, more, &unfold},
                 {FRIT_OP_transpose, 2, other, &swap}, {FRIT_OP_squeeze, 2, other, NULL},
                 {FRIT_OP_unsqueeze, 3, more, NULL},   {FRIT_OP_reshape, 3, more, NULL}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig rig;
        uint32_t x;

        rig_init(&rig);
        x = rig_input(&rig, FRIT_F32, 2, good);
        x = op1(&rig, cases[i].id, x, cases[i].attrs, cases[i].rank, cases[i].dims);
        op1(&rig, FRIT_OP_neg, x, NULL, cases[i].rank, cases[i].dims);
        if (rig_try(&rig, &sched_map) != FRIT_UNSUPPORTED)
            fail_msg("case %u is taken", i);
        rig_fini(&rig);
    }
}

/* Types that the target does not compute in. */
static void test_targets(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_I64, FRIT_U64, FRIT_F32};
    const int64_t dims[] = {10};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct rig rig;
        uint32_t x;

        rig_init(&rig);
        rig.target.f64 = rig.target.i64 = false;
        x = rig_input(&rig, dtypes[i], 1, dims);
        op1(&rig, FRIT_OP_neg, x, NULL, 1, dims);
        assert_int_equal(rig_try(&rig, &sched_map), i < 3 ? FRIT_UNSUPPORTED : FRIT_OK);
        rig_fini(&rig);
    }
}

/* Offsets of more than 31 bits are wide whatever the launch says. */
static void test_wide(void **state)
{
    static const int64_t strides[] = {1, 1 << 20, -(1 << 20), 1ll << 31, -(1ll << 31)};
    const int64_t dims[] = {3, 50}, row[] = {50};
    struct rig rig;
    uint32_t a, b;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 2, dims);
    b = rig_input(&rig, FRIT_F32, 1, row);
    op2(&rig, FRIT_OP_add, a, b, 2, dims);
    rig_run(&rig, &sched_map);
    for (uint32_t i = 0; i < 5; i++) {
        struct kir_module module;
        struct sched_numbers numbers = {0};
        struct sched s = {&rig.block, &rig.sig, &rig.target, rig.extents, &module, &numbers, false};

        rig.args[1].strides[0] = strides[i];
        kir_init(&module, "test");
        assert_int_equal(sched_map.build(&s, NULL), FRIT_OK);
        assert_int_equal(module.wide, i >= 3);
        assert_int_equal(kir_verify(&module, NULL, NULL), FRIT_OK);
        kir_fini(&module);
        arena_fini(&numbers.arena);
    }
    rig_fini(&rig);
}

/* ---- out of memory ---- */

static void test_no_memory(void **state)
{
    const int64_t dims[] = {20, 30}, turned[] = {30, 20};
    const frit_attrs_order order = {.struct_size = sizeof(order), .order = {2, {1, 0}}};
    uint32_t x, y;
    bool open;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, turned);
    y = op1(&rig, FRIT_OP_permute, x, &order, 2, dims);
    y = rig_op(&rig, FRIT_OP_mul, 2, (struct rig_in[]){rig_value(y), rig_real(FRIT_F32, 3)}, NULL,
               FRIT_F32, 2, dims);
    op1(&rig, FRIT_OP_exp, y, NULL, 2, dims);
    rig_run(&rig, &sched_map);
    rig_fail_allocations(&rig, &sched_map, 10);
    failing_alloc_arm(0);
    assert_int_equal(match_block(&sched_map, NULL, &rig.block, &x, &open, NULL),
                     FRIT_NO_HOST_MEMORY);
    assert_true(failing_alloc_disarm());
    assert_false(open);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),      cmocka_unit_test(test_rows),
        cmocka_unit_test(test_empty),      cmocka_unit_test(test_far_index),
        cmocka_unit_test(test_cross),      cmocka_unit_test(test_modules),
        cmocka_unit_test(test_spans),      cmocka_unit_test(test_contiguous),
        cmocka_unit_test(test_masks),      cmocka_unit_test(test_alias),
        cmocka_unit_test(test_alias_join), cmocka_unit_test(test_join_of_repeats),
        cmocka_unit_test(test_accepts),    cmocka_unit_test(test_extents),
        cmocka_unit_test(test_malformed),  cmocka_unit_test(test_targets),
        cmocka_unit_test(test_wide),       cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_many_sizes),
        cmocka_unit_test(test_across),     cmocka_unit_test(test_across_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
