/* SPDX-License-Identifier: Apache-2.0 */
/* The contract schedule against plain loops: types, batches that broadcast, layouts, sizes around
 * those of tiles, ops before and after, on targets that lead to each form. */
#include <math.h>
#include <string.h>

#include "ir/facts.h"
#include "ir/half.h"

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

static void fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        if (rig_is_real(rig->values[value].dtype))
            rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / 16);
        else
            rig_set_int(rig, value, i, (int64_t)rig_random(&seed, 2001) - 1000);
    }
}

static double get(const struct rig *rig, uint32_t value, int64_t number)
{
    return rig_is_real(rig->values[value].dtype) ? rig_get_real(rig, value, number)
                                                 : (double)rig_get_int(rig, value, number);
}

/* The element of a value at coordinates of a result of `rank`, aligned at the right. */
static double at(const struct rig *rig, uint32_t value, uint32_t rank, const int64_t *place)
{
    const struct rig_value *v = &rig->values[value];
    int64_t number = 0;

    for (uint32_t d = 0; d < v->rank; d++)
        number = number * v->dims[d] + (v->dims[d] == 1 ? 0 : place[rank - v->rank + d]);
    return get(rig, value, number);
}

static void place_of(const struct rig_value *v, int64_t number, int64_t *place)
{
    for (uint32_t d = v->rank; d-- > 0; number /= v->dims[d])
        place[d] = number % v->dims[d];
}

/* Element `number` of a matmul of these; `size`: the sum of the products' sizes. */
static double product_at(const struct rig *rig, uint32_t a, uint32_t b, const struct rig_value *y,
                         int64_t number, double *size)
{
    int64_t place[FRIT_MAX_RANK], of_a[FRIT_MAX_RANK], of_b[FRIT_MAX_RANK];
    double sum = 0;

    place_of(y, number, place);
    memcpy(of_a, place, sizeof(place));
    memcpy(of_b, place, sizeof(place));
    *size = 0;
    for (int64_t k = 0; k < rig->values[a].dims[rig->values[a].rank - 1]; k++) {
        double product;

        of_a[y->rank - 1] = of_b[y->rank - 2] = k;
        product = at(rig, a, y->rank, of_a) * at(rig, b, y->rank, of_b);
        sum += product;
        *size += fabs(product);
    }
    return sum;
}

/* Products are multiples of 2^-8, exact in F32 while sums stay small: only the rounding to the
 * result's type is left. */
static void same(const char *what, uint32_t dtype, int64_t number, double seen, double want,
                 double size)
{
    double tolerance = dtype == FRIT_F16    ? 0x1p-11
                       : dtype == FRIT_BF16 ? 0x1p-8
                       : dtype == FRIT_F32  ? 0x1p-22
                                            : 0;

    if (dtype == FRIT_I8)
        want = (double)(int8_t)(int64_t)want;
    if (fabs(seen - want) > tolerance * (dtype == FRIT_F32 ? size : fabs(want)))
        fail_msg("%s of type %u: element %lld is %.9g, not %.9g", what, dtype, (long long)number,
                 seen, want);
}

struct operands {
    uint32_t rank_a, rank_b, rank;
    int64_t a[4], b[4], y[4];
    uint32_t turned; /* bit 0, 1: the last two dims of a, b lie swapped in memory */
};

static uint32_t operand(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                        bool turned)
{
    uint32_t order[5] = {0, 1, 2, 3, 4}, value;

    if (turned) {
        order[rank - 2] = rank - 1;
        order[rank - 1] = rank - 2;
    }
    value = rig_laid(rig, dtype, rank, dims, order, 0, 1);
    fill(rig, value, 7 + rank + (uint64_t)dims[0]);
    return value;
}

struct target {
    uint32_t lanes, lanes_per_row, units;
    bool fma, stages, interleaved;
    uint32_t near_lanes, max_lanes; /* 0: 256 */
};

static const struct target targets[] = {
    {64, 64, 4, true, false, true, 0, 0},      {256, 32, 1, false, false, true, 0, 0},
    {16, 16, 64, true, false, true, 0, 0},     {256, 64, 1, true, true, false, 32, 0},
    {256, 64, 64, false, true, false, 128, 0}, {64, 64, 4, true, false, false, 16, 0},
    {32, 32, 8, false, false, false, 0, 0}};

static void set_target(struct rig *rig, const struct target *target)
{
    rig->target.lanes = target->lanes;
    rig->target.lanes_per_row = target->lanes_per_row;
    rig->target.units = target->units;
    rig->target.fma = target->fma;
    rig->target.stages_tiles = target->stages;
    rig->target.lanes_interleaved = target->interleaved;
    rig->target.near_lanes = target->near_lanes;
    if (target->max_lanes)
        rig->target.max_lanes = target->max_lanes;
}

static void check(uint32_t dtype, const struct operands *o, const struct target *target)
{
    uint32_t a, b, y;
    struct rig rig;

    rig_init(&rig);
    set_target(&rig, target);
    a = operand(&rig, dtype, o->rank_a, o->a, o->turned & 1);
    b = operand(&rig, dtype, o->rank_b, o->b, o->turned >> 1);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL, dtype,
               o->rank, o->y);
    rig_run(&rig, &sched_contract);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double size, want = product_at(&rig, a, b, &rig.values[y], i, &size);

        same("matmul", dtype, i, get(&rig, y, i), want, size);
    }
    rig_fini(&rig);
}

static void check_all(uint32_t dtype, struct operands o)
{
    for (o.turned = 0; o.turned < 4; o.turned++)
        for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
            if ((o.turned + t + o.y[0]) % rig_every() == 0)
                check(dtype, &o, &targets[t]);
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
    a = operand(&rig, FRIT_F32, o->rank_a, o->a, o->turned & 1);
    b = operand(&rig, FRIT_F32, o->rank_b, o->b, o->turned >> 1);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(a), rig_value(b)}, NULL,
               FRIT_F32, o->rank, o->y);
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.module.n_phases, n_phases);
    for (int64_t n = 0; n < rig_count(&rig, y); n++) {
        double size, want = product_at(&rig, a, b, &rig.values[y], n, &size);

        same("matmul", FRIT_F32, n, get(&rig, y, n), want, size);
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
            struct target target = {.lanes = cases[i].max_lanes / 2,
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
    static const struct target target = {512, 256, 8, true, true, false, 0, 1024};
    static const struct operands o = {2, 2, 2, {SIDE, LONG}, {LONG, SIDE}, {SIDE, SIDE}, 0};
    uint32_t a, b;
    struct rig rig;

    (void)state;
    rig_init(&rig);
    set_target(&rig, &target);
    a = operand(&rig, FRIT_F32, 2, o.a, 0);
    b = operand(&rig, FRIT_F32, 2, o.b, 0);
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
static void around(const struct target *target, bool by_other_dims)
{
    static const int64_t a_dims[] = {9, 40}, b_dims[] = {40, 70}, dims[] = {9, 70}, n[] = {70},
                         other[] = {3, 3, 70};
    const frit_attrs_cast to = {.struct_size = sizeof(to), .dtype = FRIT_F32};
    uint32_t a, b, bias, cast, twice, y, z, u;
    frit_attrs_dims shape = {.struct_size = sizeof(shape)};
    struct rig rig;

    rig_init(&rig);
    set_target(&rig, target);
    a = operand(&rig, FRIT_F16, 2, a_dims, false);
    b = operand(&rig, FRIT_F32, 2, b_dims, true);
    bias = rig_input(&rig, FRIT_F32, 1, n);
    fill(&rig, bias, 3);
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
        same("relu", FRIT_F32, i, rig_get_real(&rig, z, i), want, 2 * size + 1);
        same("twice", FRIT_F32, i, rig_get_real(&rig, u, i), 2 * want, 4 * size + 2);
    }
    rig_fini(&rig);
}

static void test_around(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
        for (uint32_t other = 0; other < 2; other++)
            around(&targets[t], other);
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
    a = operand(&rig, FRIT_F32, 2, dims, false);
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
    a = operand(&rig, FRIT_F32, 2, dims, false);
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
        a = operand(&rig, FRIT_F32, 2, a_dims, turned & 1);
        b = operand(&rig, FRIT_F32, 2, b_dims, turned >> 1);
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
    fill(&rig, x, 4);
    y = x;
    for (uint32_t i = 0; i < RIG_OPS - 1; i++)
        y = rig_op(&rig, FRIT_OP_maximum, 2, (struct rig_in[]){rig_value(y), rig_value(y)}, NULL,
                   FRIT_F32, 2, dims);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(y), rig_value(x)}, NULL,
               FRIT_F32, 2, dims);
    rig_run(&rig, &sched_contract);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double size, want = product_at(&rig, x, x, &rig.values[y], i, &size);

        same("matmul", FRIT_F32, i, rig_get_real(&rig, y, i), want, size);
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

/* ---- conv ---- */

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
            sum += at(rig, x, w->rank + 2, of_x) * at(rig, weights, w->rank + 2, of_w);
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

/* The conv of these.  `keeps`: the target keeps what is derived, and packs these weights if lanes
 * are interleaved. */
static struct conv_form check_conv(uint32_t dtype, const struct window *w,
                                   const struct target *target, bool biased, bool keeps)
{
    int64_t x_dims[5] = {w->n, w->groups * w->channels},
            w_dims[5] = {w->groups * w->outputs, w->channels},
            y_dims[5] = {w->n, w->groups * w->outputs};
    uint32_t x, weights, bias, y, rank = w->rank + 2;
    struct conv_form form;
    struct rig rig;

    for (uint32_t d = 0; d < w->rank; d++) {
        int64_t span = (w->k[d] - 1) * or_one(w->attrs.dilation[d]) + 1;

        x_dims[d + 2] = w->x[d];
        w_dims[d + 2] = w->k[d];
        y_dims[d + 2] = (w->x[d] + 2 * w->attrs.padding[d] - span) / or_one(w->attrs.stride[d]) + 1;
    }
    rig_init(&rig);
    set_target(&rig, target);
    rig.target.keeps_derived = keeps;
    rig.target.tuning.pack_lanes = PACK_LANES;
    x = operand(&rig, dtype, rank, x_dims, false);
    weights = operand(&rig, dtype, rank, w_dims, false);
    bias = rig_input(&rig, dtype, 1, y_dims + 1);
    fill(&rig, bias, 9);
    y = rig_op(
        &rig, FRIT_OP_conv, 3,
        (struct rig_in[]){rig_value(x), rig_value(weights), rig_value(biased ? bias : RIG_ABSENT)},
        &w->attrs, dtype, rank, y_dims);
    rig_run(&rig, &sched_contract);
    if (target->interleaved && w->outputs >= 8 && w->attrs.padding[w->rank - 1] && w->k[0] > 1)
        assert_in_range(rig.module.n_phases, 2, 3);
    if (target->interleaved && !target->stages && w->outputs >= 64 && steps_over(w))
        assert_in_range(rig.module.n_phases, keeps ? 3 : 2, 3); /* one copies, one packs */
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        int64_t place[FRIT_MAX_RANK];
        double want;

        place_of(&rig.values[y], i, place);
        want = conv_at(&rig, w, x, weights, place);
        if (biased)
            want += rig_get_real(&rig, bias, place[1]);
        same("conv", dtype, i, rig_get_real(&rig, y, i), want, 1);
    }
    form = form_of(&rig.module);
    form.packed = rig.numbers.derived.bytes > 0;
    rig_fini(&rig);
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
            for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
                if ((i + d + t) % rig_every() == 0)
                    check_conv(dtypes[d], &cases[i], &targets[t], (i + t) & 1, false);
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
                    assert_int_equal(
                        check_conv(dtypes[d], &cases[i], &targets[(i + d) % 3], (i + d) & 1, keeps)
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
        assert_int_equal(check_conv(FRIT_F32, &cases[i].window, &targets[2], false, true).packed,
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
                check_conv(t ? FRIT_F32 : FRIT_BF16, &cases[i], &targets[t], true, true).exchanges,
                i ? 2 * TURN_EXCHANGES : TURN_EXCHANGES);
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
            assert_int_equal(check_conv(FRIT_F32, &cases[i], &targets[1], i & 1, keeps).copied,
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
        const struct conv_form form = check_conv(FRIT_F32, w, &targets[2], false, false);

        assert_int_equal(form.loads[0], 0);
        assert_true(form.loads[or_one(w->attrs.stride[1])] > 0);
    }
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
            w = operand(&rig, FRIT_F32, 2, w_dims, biased);
            bias = rig_input(&rig, FRIT_F32, 1, w_dims + 1);
            fill(&rig, x, 2);
            fill(&rig, bias, 3);
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
                same("linear", FRIT_F32, i, rig_get_real(&rig, y, i), want, 1);
            }
            rig_fini(&rig);
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
    x = operand(&rig, FRIT_F32, 4, x_dims, true);
    w = operand(&rig, FRIT_F32, 4, w_dims, false);
    y = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 4, x_dims);
    y = rig_op(&rig, FRIT_OP_conv, 3,
               (struct rig_in[]){rig_value(y), rig_value(w), rig_value(RIG_ABSENT)}, &attrs,
               FRIT_F32, 4, dims);
    z = rig_op(&rig, FRIT_OP_relu, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 4, dims);
    rig_run(&rig, &sched_contract);
    assert_int_equal(rig.module.n_phases, 2);
    for (int64_t i = 0; i < rig_count(&rig, z); i++) {
        int64_t place[FRIT_MAX_RANK];

        place_of(&rig.values[z], i, place);
        same("conv", FRIT_F32, i, rig_get_real(&rig, z, i),
             fmax(0, -conv_at(&rig, &window, x, w, place)), 1);
    }
    rig_fail_allocations(&rig, &sched_contract, 10);
    rig_fini(&rig);
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
        a = operand(&rig, FRIT_F32, 2, a_dims, false);
        b = operand(&rig, FRIT_F32, 2, b_dims, form == 1);
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
    set_target(&rig, &targets[0]);
    rig.target.dot2 = true;
    a = operand(&rig, FRIT_BF16, o->rank_a, o->a, o->turned & 1);
    b = operand(&rig, FRIT_BF16, o->rank_b, o->b, o->turned >> 1);
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
            want =
                (double)half_real_of((uint32_t)half_store((float)want, 7) << 16) + get(&rig, a, i);
        same("pairs", FRIT_BF16, i, get(&rig, y, i), want, size);
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
        cmocka_unit_test(test_conv),          cmocka_unit_test(test_conv_packed),
        cmocka_unit_test(test_around_conv),   cmocka_unit_test(test_linear),
        cmocka_unit_test(test_packed),        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_many_ways),     cmocka_unit_test(test_conv_turned),
        cmocka_unit_test(test_conv_lines),    cmocka_unit_test(test_conv_channels_last),
        cmocka_unit_test(test_conv_choice),   cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_tiles),         cmocka_unit_test(test_wide),
        cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_shared_k),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
