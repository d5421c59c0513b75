/* SPDX-License-Identifier: Apache-2.0 */
/* The contract schedule with packed weights, against the weights that the map schedule unpacks:
 * every packed type and scale type, layouts, blocks, sizes, ops before and after. */
#include <math.h>
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

static const uint32_t packed_types[] = {FRIT_F8E4M3, FRIT_F8E5M2, FRIT_F4E2M1,
                                        FRIT_Q8,     FRIT_Q4,     FRIT_Q2};

enum { N_TYPES = sizeof(packed_types) / sizeof(packed_types[0]), SCALE_TYPES = 6 };

/* x [m, k] times weights [k, n], or `turned` [n, k]. */
struct shape {
    int64_t m, n, k;
    bool turned;
    int64_t block[2]; /* of the weights' dims; 0: one scale */
};

struct product {
    int64_t m, n, k;
    bool turned;
    int64_t block[2];
    bool threads, stages; /* lanes are threads; the target stages tiles */
    bool odd;             /* x has infinity and NaN */
    uint32_t packed, real;
    int64_t scale;
    bool global;
    uint32_t index_width;
};

struct operands {
    uint32_t x, packed, w; /* values: w unpacked */
    frit_attrs_dequantize attrs;
};

static void fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / 16);
}

/* Bytes without NaN and infinity; scales that all scale types have. */
static void add_weights(struct rig *rig, const struct product *p, struct operands *out)
{
    const int64_t dims[2] = {p->turned ? p->n : p->k, p->turned ? p->k : p->n};
    const bool blocks = p->block[0] != 0;
    int64_t of_scales[2];
    uint64_t seed = 3;
    struct rig_in in[3];

    out->attrs = (frit_attrs_dequantize){.struct_size = sizeof(out->attrs), .scale = p->scale};
    out->attrs.block.rank = blocks ? 2 : 0;
    out->attrs.global = p->global ? FRIT_CHOICE_quant_scale_f32 : FRIT_CHOICE_quant_scale_none;
    for (int d = 0; d < 2 && blocks; d++) {
        of_scales[d] = (dims[d] + p->block[d] - 1) / p->block[d];
        out->attrs.block.dim[d] = p->block[d];
    }
    out->packed = rig_input(rig, p->packed, 2, dims);
    for (int64_t i = 0; i < (int64_t)frit_storage_bytes(p->packed, dims[0] * dims[1]); i++)
        rig->values[out->packed].data[i] = (char)(rig_random(&seed, 256) & 0xbb);
    in[0] = rig_value(out->packed);
    in[1] = rig_value(rig_input(rig, p->real, blocks ? 2 : 0, of_scales));
    for (int64_t i = 0; i < rig_count(rig, in[1].value); i++)
        rig_set_real(rig, in[1].value, i, (double)(rig_random(&seed, 7) + 1) / 8);
    in[2] = (struct rig_in){.value = RIG_ABSENT};
    if (p->global) {
        in[2] = rig_value(rig_input(rig, p->real, 0, dims));
        rig_set_real(rig, in[2].value, 0, 0.5);
    }
    out->w = rig_op(rig, FRIT_OP_dequantize, 3, in, &out->attrs, p->real, 2, dims);
}

/* The unpacked weights, in F64, as the map schedule computes them. */
static void unpack(const struct product *p, double *out)
{
    struct operands operands;
    struct rig rig;

    rig_init(&rig);
    add_weights(&rig, p, &operands);
    rig_run(&rig, &sched_map);
    for (int64_t i = 0; i < p->n * p->k; i++)
        out[i] = rig_get_real(&rig, operands.w, i);
    rig_fini(&rig);
}

static void check_elements(const struct rig *rig, const struct product *p, uint32_t x, uint32_t y,
                           const double *w)
{
    const double digits = p->real == FRIT_F64 ? 0x1p-50 : 0x1p-20;
    const double last = p->real == FRIT_BF16 ? 0x1p-8 : p->real == FRIT_F16 ? 0x1p-11 : 0;

    for (int64_t i = 0; i < p->m * p->n; i++) {
        double sum = 0, size = 0, got = rig_get_real(rig, y, i);

        for (int64_t k = 0; k < p->k; k++) {
            const int64_t n = i % p->n;
            const double product = rig_get_real(rig, x, i / p->n * p->k + k) *
                                   w[p->turned ? n * p->k + k : k * p->n + n];

            sum += product;
            size += fabs(product);
        }
        const bool fits = isnan(sum)   ? isnan(got)
                          : isinf(sum) ? got == -sum
                                       : fabs(got + sum) <= (digits + last) * size;

        if (!fits)
            fail_msg("type %u, %lld x %lld x %lld: element %lld is %g, not %g", p->packed,
                     (long long)p->m, (long long)p->n, (long long)p->k, (long long)i, got, -sum);
    }
}

/* -(x w); returns what the schedule says. */
static frit_status multiply(const struct product *p)
{
    static const frit_attrs_order swap = {.struct_size = sizeof(swap),
                                          .order = {.count = 2, .axis = {1, 0}}};
    const int64_t of_x[2] = {p->m, p->k}, of_w[2] = {p->k, p->n}, of_y[2] = {p->m, p->n};
    double *w = calloc((size_t)(p->n * p->k), sizeof(*w));
    struct operands operands;
    frit_status status;
    struct rig rig;
    uint32_t x, y;

    assert_non_null(w);
    unpack(p, w);
    rig_init(&rig);
    rig.target.lanes_interleaved = !p->threads;
    rig.target.stages_tiles = p->stages;
    rig.target.near_lanes = p->threads ? 16 : 0;
    if (p->index_width)
        rig.index_width = p->index_width;
    x = rig_input(&rig, p->real, 2, of_x);
    fill(&rig, x, 7);
    if (p->odd) {
        rig_set_real(&rig, x, 1, (double)INFINITY);
        rig_set_real(&rig, x, p->k + 2, (double)-INFINITY);
        rig_set_real(&rig, x, 2 * p->k, (double)NAN);
    }
    add_weights(&rig, p, &operands);
    y = operands.w;
    if (p->turned)
        y = rig_op(&rig, FRIT_OP_permute, 1, (struct rig_in[]){rig_value(y)}, &swap, p->real, 2,
                   of_w);
    y = rig_op(&rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(x), rig_value(y)}, NULL,
               p->real, 2, of_y);
    y = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(y)}, NULL, p->real, 2, of_y);
    status = rig_try(&rig, &sched_contract);
    if (!status) {
        assert_int_equal(rig.module.n_phases, 1);
        assert_int_equal(rig.numbers.workspace_bytes, 0);
        check_elements(&rig, p, x, y, w);
    }
    rig_fini(&rig);
    free(w);
    return status;
}

static struct product product_of(const struct shape *shape, uint32_t packed, uint32_t real)
{
    return (struct product){.m = shape->m,
                            .n = shape->n,
                            .k = shape->k,
                            .turned = shape->turned,
                            .block = {shape->block[0], shape->block[1]},
                            .packed = packed,
                            .real = real};
}

static const struct shape shapes[] = {
    {1, 32, 64, false, {32, 1}},    {1, 32, 64, true, {1, 32}},   {5, 24, 64, true, {1, 32}},
    {9, 24, 64, false, {32, 1}},    {3, 24, 64, false, {16, 8}},  {3, 24, 64, true, {8, 16}},
    {2, 12, 1280, true, {1, 1280}}, {2, 12, 320, true, {0, 0}},   {2, 12, 320, false, {0, 0}},
    {4, 8, 2560, false, {256, 1}},  {1, 4, 2560, true, {1, 128}},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void test_types(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t i = 0; i < N_SHAPES; i++) {
            const struct product p = product_of(&shapes[i], packed_types[t], FRIT_F32);

            assert_int_equal(multiply(&p), FRIT_OK);
        }
}

/* Few rows; more are products of unpacked weights. */
static void test_threads(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t i = 0; i < N_SHAPES; i++) {
            struct product p = product_of(&shapes[i], packed_types[t], FRIT_F32);

            p.threads = true;
            p.m = p.m > 4 ? 4 : p.m;
            assert_int_equal(multiply(&p), FRIT_OK);
        }
}

/* Weights of many rows are unpacked as they are staged. */
static void test_tiles(void **state)
{
    static const struct shape many[] = {{40, 48, 64, false, {32, 1}},
                                        {40, 48, 64, true, {1, 32}},
                                        {33, 35, 45, true, {1, 32}},
                                        {36, 33, 50, false, {8, 1}}};

    (void)state;
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t i = 0; i < 4; i++) {
            struct product p = product_of(&many[i], packed_types[t], FRIT_F32);

            p.threads = p.stages = true;
            assert_int_equal(multiply(&p), FRIT_OK);
        }
}

static void test_numbers(void **state)
{
    static const uint32_t reals[] = {FRIT_F64, FRIT_F16, FRIT_BF16};

    (void)state;
    for (uint32_t r = 0; r < 3; r++)
        for (int64_t scale = 0; scale < SCALE_TYPES; scale++)
            for (uint32_t i = 0; i < 4; i++) {
                struct product p =
                    product_of(&shapes[i], packed_types[(i + scale) % N_TYPES], reals[r]);

                p.scale = scale;
                p.global = i & 1;
                p.index_width = i & 2 ? 64 : 32;
                assert_int_equal(multiply(&p), FRIT_OK);
            }
}

/* Infinity times 0 is NaN, as with unpacked weights. */
static void test_odd_numbers(void **state)
{
    (void)state;
    for (uint32_t i = 2; i < 6; i++)
        for (uint32_t threads = 0; threads < 2; threads++) {
            struct product p = product_of(&shapes[i], FRIT_Q4, FRIT_F32);

            p.m = 4;
            p.odd = true;
            p.threads = threads;
            assert_int_equal(multiply(&p), FRIT_OK);
        }
}

/* Where bytes and blocks do not divide rows, or are too small, and for many rows, weights are
 * unpacked first. */
static void test_what_does_not_fit(void **state)
{
    static const struct shape odd[] = {{3, 8, 45, true, {1, 32}},    {3, 9, 64, false, {32, 1}},
                                       {3, 8, 64, false, {1, 1}},    {3, 8, 48, false, {32, 1}},
                                       {193, 8, 64, false, {32, 1}}, {129, 8, 64, true, {1, 32}}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        const struct product p = product_of(&odd[i], FRIT_Q4, FRIT_F32);

        assert_int_equal(multiply(&p), FRIT_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_tiles),       cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_odd_numbers), cmocka_unit_test(test_what_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
