/* SPDX-License-Identifier: Apache-2.0 */
/* The contract schedule against plain loops: types, batches that broadcast, layouts, sizes around
 * those of tiles, ops before and after, on targets that lead to each form.  Convs are in
 * contract_conv_test.c. */
#include <math.h>
#include <string.h>

#include "ir/half.h"

#include "kernels/lower/contract_rig.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

/* Element `number` of a matmul of these; `size`: the sum of the products' sizes. */
static double product_at(const struct rig *rig, uint32_t a, uint32_t b, const struct rig_value *y,
                         int64_t number, double *size)
{
    int64_t place[FRIT_MAX_RANK], of_a[FRIT_MAX_RANK], of_b[FRIT_MAX_RANK];
    double sum = 0;

    contract_place(y, number, place);
    memcpy(of_a, place, sizeof(place));
    memcpy(of_b, place, sizeof(place));
    *size = 0;
    for (int64_t k = 0; k < rig->values[a].dims[rig->values[a].rank - 1]; k++) {
        double product;

        of_a[y->rank - 1] = of_b[y->rank - 2] = k;
        product = contract_at(rig, a, y->rank, of_a) * contract_at(rig, b, y->rank, of_b);
        sum += product;
        *size += fabs(product);
    }
    return sum;
}

struct operands {
    uint32_t rank_a, rank_b, rank;
    int64_t a[4], b[4], y[4];
    uint32_t turned; /* bit 0, 1: the last two dims of a, b lie swapped in memory */
};

static void check(uint32_t dtype, const struct operands *o, const struct contract_target *target)
{
    uint32_t a, b, y;
    struct rig rig;

    rig_init(&rig);
    contract_set_target(&rig, target);
    a = contract_operand(&rig, dtype, o->rank_a, o->a, o->turned & 1);
    b = contract_operand(&rig, dtype, o->rank_b, o->b, o->turned >> 1);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL, dtype,
               o->rank, o->y);
    rig_run(&rig, &sched_contract);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double size, want = product_at(&rig, a, b, &rig.values[y], i, &size);

        contract_same("matmul", dtype, i, contract_get(&rig, y, i), want, size);
    }
    rig_fini(&rig);
}

static void check_all(uint32_t dtype, struct operands o)
{
    for (o.turned = 0; o.turned < 4; o.turned++)
        for (uint32_t t = 0; t < CONTRACT_TARGETS; t++)
            if ((o.turned + t + o.y[0]) % rig_every() == 0)
                check(dtype, &o, &contract_targets[t]);
}

static void test_sizes(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {2, 3, 4},   {7, 5, 17},   {33, 40, 65},
                                       {1, 70, 64}, {64, 70, 1}, {5, 600, 3},  {13, 300, 130},
                                       {6, 32, 64}, {40, 1, 33}, {130, 64, 2}, {2, 64, 130}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const int64_t *s = sizes[i];

        check_all(FRIT_F32, (struct operands){.rank_a = 2,
                                              .rank_b = 2,
                                              .rank = 2,
                                              .a = {s[0], s[1]},
                                              .b = {s[1], s[2]},
                                              .y = {s[0], s[2]}});
    }
}

static void test_types(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_F16, FRIT_BF16, FRIT_I8, FRIT_I32, FRIT_I64};

    (void)state;
    for (uint32_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        check_all(
            dtypes[i],
            (struct operands){
                .rank_a = 2, .rank_b = 2, .rank = 2, .a = {9, 37}, .b = {37, 70}, .y = {9, 70}});
}

static void test_batches(void **state)
{
    static const struct operands cases[] = {
        {3, 3, 3, {3, 5, 7}, {3, 7, 18}, {3, 5, 18}, 0},
        {3, 2, 3, {3, 5, 7}, {7, 18}, {3, 5, 18}, 0},
        {2, 3, 3, {5, 7}, {3, 7, 18}, {3, 5, 18}, 0},
        {4, 3, 4, {2, 1, 5, 7}, {3, 7, 18}, {2, 3, 5, 18}, 0},
        {4, 4, 4, {2, 1, 5, 7}, {1, 3, 7, 18}, {2, 3, 5, 18}, 0},
        {4, 4, 4, {2, 3, 5, 40}, {1, 3, 40, 1}, {2, 3, 5, 1}, 0},
        {4, 2, 4, {2, 3, 1, 40}, {40, 20}, {2, 3, 1, 20}, 0},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_all(FRIT_F32, cases[i]);
}

/* A target whose lanes are interleaved, and the number of phases on it. */
static void check_phases(const struct operands *o, uint32_t width, uint32_t n_phases)
{
    uint32_t a, b, y;
    struct rig rig;

    rig_init(&rig);
    rig.index_width = width;
    rig.target.lanes_interleaved = true;
    a = contract_operand(&rig, FRIT_F32, o->rank_a, o->a, o->turned & 1);
    b = contract_operand(&rig, FRIT_F32, o->rank_b, o->b, o->turned >> 1);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
               FRIT_F32, o->rank, o->y);
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.module.n_phases, n_phases);
    for (int64_t n = 0; n < rig_count(&rig, y); n++) {
        double size, want = product_at(&rig, a, b, &rig.values[y], n, &size);

        contract_same("matmul", FRIT_F32, n, contract_get(&rig, y, n), want, size);
    }
    rig_fini(&rig);
}

/* Many rows that read what lies across: it is put in order first. */
static void test_packed(void **state)
{
    const struct operands cases[] = {
        {2, 2, 2, {100, 40}, {40, 70}, {100, 70}, 2},
        {3, 3, 3, {2, 70, 33}, {2, 33, 150}, {2, 70, 150}, 2},
        {3, 2, 3, {2, 64, 40}, {40, 130}, {2, 64, 130}, 2},
        {2, 2, 2, {30, 300}, {300, 66}, {30, 66}, 2},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t width = 32; width <= 64; width += 32)
            check_phases(&cases[i], width, 2);
}

/* Few rows that read much once: groups have blocks of it. */
static void test_streamed(void **state)
{
    const struct operands cases[] = {
        {2, 2, 2, {1, 520}, {520, 1030}, {1, 1030}, 0},
        {2, 2, 2, {1030, 520}, {520, 1}, {1030, 1}, 1},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_phases(&cases[i], i ? 64 : 32, 2);
}

/* Tiles of the group on lanes of a GPU: sides and k that tiles divide, that 16 bytes divide, and
 * odd ones; sums in blocks; each register tile. */
static void test_tiles(void **state)
{
    static const struct {
        uint32_t dtype, units, max_lanes;
        struct operands o;
    } cases[] = {
        {FRIT_F32, 4, 2048, {2, 2, 2, {128, 264}, {264, 128}, {128, 128}, 0}},
        {FRIT_F32, 4, 2048, {2, 2, 2, {132, 20}, {20, 140}, {132, 140}, 0}},
        {FRIT_F32, 512, 2048, {2, 2, 2, {67, 301}, {301, 35}, {67, 35}, 0}},
        {FRIT_F32, 512, 2048, {3, 3, 3, {2, 40, 900}, {2, 900, 36}, {2, 40, 36}, 0}},
        {FRIT_F32, 64, 256, {3, 3, 3, {2, 40, 16}, {2, 16, 64}, {2, 40, 64}, 0}},
        {FRIT_F64, 4, 2048, {2, 2, 2, {70, 17}, {17, 130}, {70, 130}, 0}},
        {FRIT_BF16, 4, 2048, {2, 2, 2, {128, 24}, {24, 136}, {128, 136}, 0}},
        {FRIT_I8, 64, 1024, {3, 2, 3, {2, 33, 40}, {40, 40}, {2, 33, 40}, 0}},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t turned = 0; turned < 4; turned++) {
            struct operands o = cases[i].o;
            struct contract_target target = {.lanes = cases[i].max_lanes / 2,
                                             .lanes_per_row = 256,
                                             .units = cases[i].units,
                                             .fma = i % 2,
                                             .stages = true,
                                             .max_lanes = cases[i].max_lanes};

            o.turned = turned;
            if ((i + turned) % rig_every() == 0)
                check(cases[i].dtype, &o, &target);
        }
}

/* One tile for two multiprocessors: groups share k until there are more of them than these. */
static void test_shared_k(void **state)
{
    enum { SIDE = 64, LONG = 512, GROUPS = 4 };
    static const struct contract_target target = {512, 256, 8, true, true, false, 0, 1024};
    static const struct operands o = {2, 2, 2, {SIDE, LONG}, {LONG, SIDE}, {SIDE, SIDE}, 0};
    uint32_t a, b;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    contract_set_target(&rig, &target);
    a = contract_operand(&rig, FRIT_F32, 2, o.a, 0);
    b = contract_operand(&rig, FRIT_F32, 2, o.b, 0);
    rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL, FRIT_F32,
           2, o.y);
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.module.n_phases, 2);
    assert_int_equal(rig.numbers.workspace_bytes, GROUPS * SIDE * SIDE * sizeof(float));
    rig_fini(&rig);
}

/* Without rows, columns, products. */
static void test_nothing(void **state)
{
    (void)state;
    check_all(FRIT_F32, (struct operands){2, 2, 2, {0, 3}, {3, 4}, {0, 4}, 0});
    check_all(FRIT_F32, (struct operands){2, 2, 2, {2, 3}, {3, 0}, {2, 0}, 0});
    check_all(FRIT_F32, (struct operands){2, 2, 2, {2, 0}, {0, 4}, {2, 4}, 0});
}

/* cast(a) @ (b + b): the ops before; relu(y + bias) and its double: two outputs; and y by its other
 * dims. */
static void around(const struct contract_target *target, bool by_other_dims)
{
    static const int64_t a_dims[] = {9, 40}, b_dims[] = {40, 70}, dims[] = {9, 70}, n[] = {70},
                         other[] = {3, 3, 70};
    const frit_attrs_cast to = {.struct_size = sizeof(to), .dtype = FRIT_F32};
    uint32_t a, b, bias, cast, twice, y, z, u;
    frit_attrs_dims shape = {.struct_size = sizeof(shape)};
    struct rig rig;

    rig_init(&rig);
    contract_set_target(&rig, target);
    a = contract_operand(&rig, FRIT_F16, 2, a_dims, false);
    b = contract_operand(&rig, FRIT_F32, 2, b_dims, true);
    bias = rig_input(&rig, FRIT_F32, 1, n);
    contract_fill(&rig, bias, 3);
#define OP(id, n_in, attrs, rank, dims, ...) \
    rig_op(&rig, id, n_in, (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_F32, rank, dims)
    cast = OP(FRIT_OP_cast, 1, &to, 2, a_dims, rig_value(a));
    twice = OP(FRIT_OP_add, 2, NULL, 2, b_dims, rig_value(b), rig_value(b));
    y = OP(FRIT_OP_matmul, 2, NULL, 2, dims, rig_value(cast), rig_value(twice));
    if (by_other_dims) {
        shape.dims.rank = 3;
        memcpy(shape.dims.dim, other, sizeof(other));
        y = OP(FRIT_OP_reshape, 1, &shape, 3, other, rig_value(y));
    }
    z = OP(FRIT_OP_add, 2, NULL, rig.values[y].rank, rig.values[y].dims, rig_value(y),
           rig_value(bias));
    z = OP(FRIT_OP_relu, 1, NULL, rig.values[y].rank, rig.values[y].dims, rig_value(z));
    rig_keep(&rig, z);
    u = OP(FRIT_OP_mul, 2, NULL, rig.values[y].rank, rig.values[y].dims, rig_value(z),
           rig_real(FRIT_F32, 2));
#undef OP
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.block.n_outputs, 2);
    for (int64_t i = 0; i < 9 * 70; i++) {
        struct rig_value flat = {.rank = 2, .dims = {9, 70}};
        double size, want = 2 * product_at(&rig, a, b, &flat, i, &size);

        want = fmax(want + rig_get_real(&rig, bias, i % 70), 0);
        contract_same("relu", FRIT_F32, i, rig_get_real(&rig, z, i), want, 2 * size + 1);
        contract_same("twice", FRIT_F32, i, rig_get_real(&rig, u, i), 2 * want, 4 * size + 2);
    }
    rig_fini(&rig);
}

static void test_around(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < CONTRACT_TARGETS; t++)
        for (uint32_t other = 0; other < 2; other++)
            around(&contract_targets[t], other);
}

/* y + its transpose: the result is wanted at two places. */
static void test_elsewhere(void **state)
{
    static const int64_t dims[] = {8, 8};
    const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 0, .with = 1};
    uint32_t a, y, turned;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    a = contract_operand(&rig, FRIT_F32, 2, dims, false);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(a)}, NULL,
               FRIT_F32, 2, dims);
    turned = rig_op(&rig, FRIT_OP_transpose, 1, (struct rig_in[]){rig_value(y)}, &swap, FRIT_F32, 2,
                    dims);
    rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(y), rig_value(turned)}, NULL, FRIT_F32,
           2, dims);
    assert_int_equal(rig_try(&rig, &sched_contract), FRIT_UNSUPPORTED);
    rig_fini(&rig);
}

/* exp(a) @ a: done once by another kernel, not for every tile that reads it. */
static void test_costly_before(void **state)
{
    static const int64_t dims[] = {8, 8};
    uint32_t a, e;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    a = contract_operand(&rig, FRIT_F32, 2, dims, false);
    e = rig_op(&rig, FRIT_OP_exp, 1, (struct rig_in[]){rig_value(a)}, NULL, FRIT_F32, 2, dims);
    rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(e), rig_value(a)}, NULL, FRIT_F32,
           2, dims);
    assert_int_equal(rig_try(&rig, &sched_contract), FRIT_UNSUPPORTED);
    rig_fini(&rig);
}

/* Long sums: the error grows slowly. */
static void test_long_sum(void **state)
{
    static const int64_t a_dims[] = {3, 20000}, b_dims[] = {20000, 33}, dims[] = {3, 33};

    (void)state;
    for (uint32_t turned = 0; turned < 4; turned += rig_every()) {
        uint64_t seed = 5;
        uint32_t a, b, y;
        struct rig rig;

        rig_init(&rig);
        a = contract_operand(&rig, FRIT_F32, 2, a_dims, turned & 1);
        b = contract_operand(&rig, FRIT_F32, 2, b_dims, turned >> 1);
        for (int64_t i = 0; i < rig_count(&rig, a); i++)
            rig_set_real(&rig, a, i, (double)rig_random(&seed, 1000) / 999);
        for (int64_t i = 0; i < rig_count(&rig, b); i++)
            rig_set_real(&rig, b, i, (double)rig_random(&seed, 1000) / 999);
        y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
                   FRIT_F32, 2, dims);
        rig_run(&rig, &sched_contract);
        for (int64_t i = 0; i < rig_count(&rig, y); i++) {
            double size, want = product_at(&rig, a, b, &rig.values[y], i, &size);

            if (fabs(rig_get_real(&rig, y, i) - want) > want * 12 * 0x1p-24)
                fail_msg("layout %u: element %lld is off by %g ulp", turned, (long long)i,
                         fabs(rig_get_real(&rig, y, i) - want) / want * 0x1p24);
        }
        rig_fini(&rig);
    }
}

/* A value that very many ways lead to. */
static void test_many_ways(void **state)
{
    static const int64_t dims[] = {20, 20};
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, dims);
    contract_fill(&rig, x, 4);
    y = x;
    for (uint32_t i = 0; i < RIG_OPS - 1; i++)
        y = rig_op(&rig, FRIT_OP_maximum, 2, (struct rig_in[]){rig_value(y), rig_value(y)}, NULL,
                   FRIT_F32, 2, dims);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(y), rig_value(x)}, NULL,
               FRIT_F32, 2, dims);
    rig_run(&rig, &sched_contract);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double size, want = product_at(&rig, x, x, &rig.values[y], i, &size);

        contract_same("matmul", FRIT_F32, i, rig_get_real(&rig, y, i), want, size);
    }
    rig_fini(&rig);
}

/* As many products as 31 bits do not count are no reason for wide offsets on a GPU; as many
 * elements of a matrix are. */
static void test_wide(void **state)
{
    static const int64_t extents[] = {64, 4000, 50000};
    const int64_t dims[] = {64, 64};
    uint32_t a, b;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.stages_tiles = true;
    a = rig_input(&rig, FRIT_F32, 2, dims);
    b = rig_input(&rig, FRIT_F32, 2, dims);
    rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL, FRIT_F32,
           2, dims);
    rig_run(&rig, &sched_contract);
    for (uint32_t i = 0; i < 3; i++) {
        struct kir_module module;
        struct sched_numbers numbers = {0};
        struct sched s = {&rig.block, &rig.sig, &rig.target, rig.extents, &module, &numbers, false};

        for (uint32_t k = 0; k < rig.block.n_extents; k++)
            rig.extents[k + 2] = extents[i];
        for (uint32_t k = 0; k < 3; k++) {
            rig.args[k].dims[0] = rig.args[k].dims[1] = extents[i];
            rig.args[k].strides[0] = extents[i];
        }
        kir_init(&module, "test");
        assert_int_equal(sched_contract.build(&s, NULL), FRIT_OK);
        assert_int_equal(module.wide, i == 2);
        kir_fini(&module);
        arena_fini(&numbers.arena);
    }
    rig_fini(&rig);
}

/* x [2, 3, 20] times w [20, 33], plus bias; and a row alone. */
static void test_linear(void **state)
{
    static const int64_t x_dims[] = {2, 3, 20}, w_dims[] = {20, 33}, dims[] = {2, 3, 33};

    (void)state;
    for (uint32_t rank = 1; rank <= 3; rank++)
        for (uint32_t biased = 0; biased < 2; biased++) {
            uint32_t x, w, bias, y;
            struct rig rig;

            rig_init(&rig);
            x = rig_input(&rig, FRIT_F32, rank, x_dims + 3 - rank);
            w = contract_operand(&rig, FRIT_F32, 2, w_dims, biased);
            bias = rig_input(&rig, FRIT_F32, 1, w_dims + 1);
            contract_fill(&rig, x, 2);
            contract_fill(&rig, bias, 3);
            y = rig_op(&rig, FRIT_OP_linear, 3,
                       (struct rig_in[]){rig_value(x), rig_value(w),
                                         rig_value(biased ? bias : RIG_ABSENT)},
                       NULL, FRIT_F32, rank, dims + 3 - rank);
            rig_run(&rig, &sched_contract);
            for (int64_t i = 0; i < rig_count(&rig, y); i++) {
                double want = biased ? rig_get_real(&rig, bias, i % 33) : 0;

                for (int64_t k = 0; k < 20; k++)
                    want += rig_get_real(&rig, x, i / 33 * 20 + k) *
                            rig_get_real(&rig, w, k * 33 + i % 33);
                contract_same("linear", FRIT_F32, i, rig_get_real(&rig, y, i), want, 1);
            }
            rig_fini(&rig);
        }
}

/* By lines, put in order first, and by tiles of the group. */
static void test_no_memory(void **state)
{
    static const int64_t a_dims[] = {70, 300}, b_dims[] = {300, 90}, dims[] = {70, 90};

    (void)state;
    for (uint32_t form = 0; form < 3; form++) {
        uint32_t a, b, y;
        struct rig rig;

        rig_init(&rig);
        rig.target.stages_tiles = form == 2;
        a = contract_operand(&rig, FRIT_F32, 2, a_dims, false);
        b = contract_operand(&rig, FRIT_F32, 2, b_dims, form == 1);
        y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
                   FRIT_F32, 2, dims);
        rig_op(&rig, FRIT_OP_relu, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, dims);
        rig_run(&rig, &sched_contract);
        rig_fail_allocations(&rig, &sched_contract, 10);
        rig_fini(&rig);
    }
}

/* ---- pairs of BF16 ---- */

static bool has_dot2(const struct kir_module *m)
{
    for (uint32_t p = 0; p < m->n_phases; p++)
        for (uint32_t i = 0; i < m->phases[p].n; i++)
            if (m->phases[p].inst[i].op == KIR_dot2)
                return true;
    return false;
}

/* y = a b, or with `again` a + a b; `takes`: whether it is done in pairs. */
static void check_pairs(const struct operands *o, bool again, bool takes)
{
    uint32_t a, b, product, y;
    struct rig rig;

    rig_init(&rig);
    contract_set_target(&rig, &contract_targets[0]);
    rig.target.dot2 = true;
    a = contract_operand(&rig, FRIT_BF16, o->rank_a, o->a, o->turned & 1);
    b = contract_operand(&rig, FRIT_BF16, o->rank_b, o->b, o->turned >> 1);
    product = y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)},
                         NULL, FRIT_BF16, o->rank, o->y);
    if (again)
        y = rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(a), rig_value(product)}, NULL,
                   FRIT_BF16, o->rank, o->y);
    rig_run(&rig, &sched_contract);
    assert_int_equal(has_dot2(&rig.module), takes);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double size, want = product_at(&rig, a, b, &rig.values[y], i, &size);

        if (again)
            want = (double)half_real_of((uint32_t)half_store((float)want, 7) << 16) +
                   contract_get(&rig, a, i);
        contract_same("pairs", FRIT_BF16, i, contract_get(&rig, y, i), want, size);
    }
    rig_fini(&rig);
}

static void test_pairs(void **state)
{
    /* The last: whether b is turned, and whether it is done in pairs. */
    static const int64_t sizes[][5] = {
        {64, 34, 70, 2, true},  {65, 64, 64, 2, true}, {66, 520, 70, 0, true},
        {70, 33, 70, 2, false}, {64, 34, 1, 2, false}, {9, 64, 70, 0, false},
        {70, 64, 70, 3, false},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const int64_t *s = sizes[i];
        struct operands o = {.rank_a = 2,
                             .rank_b = 2,
                             .rank = 2,
                             .a = {s[0], s[1]},
                             .b = {s[1], s[2]},
                             .y = {s[0], s[2]},
                             .turned = (uint32_t)s[3]};

        check_pairs(&o, false, s[4]);
    }
    check_pairs(&(struct operands){3, 3, 3, {2, 70, 36}, {2, 36, 70}, {2, 70, 70}, 2}, false, true);
    check_pairs(&(struct operands){3, 2, 3, {2, 40, 36}, {36, 70}, {2, 40, 70}, 2}, false, true);
    check_pairs(&(struct operands){2, 2, 2, {70, 70}, {70, 70}, {70, 70}, 2}, true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_types),
        cmocka_unit_test(test_batches),       cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_around),        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_costly_before), cmocka_unit_test(test_long_sum),
        cmocka_unit_test(test_linear),        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_streamed),      cmocka_unit_test(test_many_ways),
        cmocka_unit_test(test_pairs),         cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_wide),          cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_shared_k),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
