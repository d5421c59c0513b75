/* SPDX-License-Identifier: Apache-2.0 */
/* The attention schedule against its definition: types, heads that share keys, masks, biases,
 * causal rows, layouts, sizes around those of tiles, rows that see nothing, on targets that lead to
 * each form. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

struct shape {
    int64_t batch, heads, shared, queries, keys, size, outs;
    bool has_mask, has_bias;
    frit_attrs_attention attrs;
    uint32_t dtype;
    uint32_t layout;     /* 1: [batch, length, heads, size]; 2: [batch, heads, size, length] */
    uint32_t width;      /* of indices; 0: 32 */
    double hides;        /* part of the mask */
    bool mask_is_narrow; /* [queries, keys] */
    char spoilt;         /* the operand with elements that are `special`: q, k, v, b; 0: none */
    double special;
    int64_t nan_query, nan_key; /* of the first head: NaNs in that one before; 0: in none */
};

struct target {
    bool is_lines;
    uint32_t group_bytes, max_lanes;
    bool has_fragments, copies;
    uint32_t align_bytes; /* 16: threads have several lanes */
    uint32_t team;        /* where rows of fragments are not folded; 0: they are */
};

static const struct target targets[] = {
    {.group_bytes = 47104, .max_lanes = 256},
    {.group_bytes = 24000, .max_lanes = 256},
    {.is_lines = true, .group_bytes = 65536, .max_lanes = 2048},
    {.group_bytes = 80000, .max_lanes = 2048, .has_fragments = true},
    {.group_bytes = 80000, .max_lanes = 2048, .has_fragments = true, .copies = true},
    {.group_bytes = 80000, .max_lanes = 2048, .has_fragments = true, .team = 16},
    {.group_bytes = 48000, .max_lanes = 2048, .has_fragments = true, .team = 32},
    {.group_bytes = 80000, .max_lanes = 2048, .copies = true, .align_bytes = 16},
    {.group_bytes = 47104, .max_lanes = 2048, .align_bytes = 16}};

struct operands {
    uint32_t q, k, v, mask, bias, y;
};

static void fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / 16);
}

static uint32_t operand(struct rig *rig, const struct shape *s, int64_t heads, int64_t length,
                        int64_t size, uint64_t seed)
{
    static const uint32_t orders[][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 1, 3, 2}};
    const int64_t dims[] = {s->batch, heads, length, size};
    uint32_t value = rig_laid(rig, s->dtype, 4, dims, orders[s->layout], 0, 1);

    fill(rig, value, seed);
    return value;
}

static struct operands make(struct rig *rig, const struct shape *s)
{
    const int64_t heads = s->heads * s->shared;
    const int64_t scores[] = {s->batch, heads, s->queries, s->keys};
    const int64_t dims[] = {s->batch, heads, s->queries, s->outs};
    struct operands o = {.mask = RIG_ABSENT, .bias = RIG_ABSENT};
    uint64_t seed = 77;

    o.q = operand(rig, s, heads, s->queries, s->size, 3);
    o.k = operand(rig, s, s->heads, s->keys, s->size, 4);
    o.v = operand(rig, s, s->heads, s->keys, s->outs, 5);
    if (s->nan_query)
        rig_set_real(rig, o.q, (s->nan_query - 1) * s->size, NAN);
    if (s->nan_key)
        rig_set_real(rig, o.k, (s->nan_key - 1) * s->size, NAN);
    if (s->has_mask) {
        o.mask = s->mask_is_narrow ? rig_input(rig, FRIT_BOOL, 2, scores + 2)
                                   : rig_input(rig, FRIT_BOOL, 4, scores);
        for (int64_t i = 0; i < rig_count(rig, o.mask); i++)
            rig_set_int(rig, o.mask, i, rig_random(&seed, 1000) < s->hides * 1000);
    }
    if (s->has_bias) {
        const int64_t of_bias[] = {heads, 1, s->keys};

        o.bias = rig_input(rig, s->dtype, 3, of_bias);
        fill(rig, o.bias, 9);
    }
    o.y = rig_op(rig, FRIT_OP_attention, 5,
                 (struct rig_in[]){rig_value(o.q), rig_value(o.k), rig_value(o.v),
                                   rig_value(o.mask), rig_value(o.bias)},
                 &s->attrs, s->dtype, 4, dims);
    return o;
}

/* Few elements of one operand are not finite. */
static void spoil(struct rig *rig, const struct shape *s, const struct operands *o)
{
    uint32_t value = s->spoilt == 'q'   ? o->q
                     : s->spoilt == 'k' ? o->k
                     : s->spoilt == 'v' ? o->v
                                        : o->bias;
    int64_t count = rig_count(rig, value);

    for (int64_t i = count / 7; i < count; i += count / 2)
        rig_set_real(rig, value, i, s->special);
}

/* ---- the definition ---- */

/* Causal attention hides the key. */
static bool is_later(const struct shape *s, int64_t query, int64_t key)
{
    return s->attrs.causal && key > query + s->keys - s->queries;
}

static bool hidden(const struct rig *rig, const struct shape *s, const struct operands *o,
                   int64_t head, int64_t query, int64_t key)
{
    int64_t at = query * s->keys + key;

    if (is_later(s, query, key))
        return true;
    if (o->mask == RIG_ABSENT)
        return false;
    return rig_get_int(rig, o->mask, s->mask_is_narrow ? at : at + head * s->queries * s->keys);
}

static double score(const struct rig *rig, const struct shape *s, const struct operands *o,
                    int64_t head, int64_t query, int64_t key)
{
    double sum = 0, scale = s->attrs.scale != 0 ? s->attrs.scale : 1 / sqrt((double)s->size);

    for (int64_t i = 0; i < s->size; i++)
        sum += rig_get_real(rig, o->q, (head * s->queries + query) * s->size + i) *
               rig_get_real(rig, o->k, (head / s->shared * s->keys + key) * s->size + i);
    sum *= scale;
    if (s->attrs.softcap != 0)
        sum = s->attrs.softcap * tanh(sum / s->attrs.softcap);
    if (o->bias != RIG_ABSENT)
        sum += rig_get_real(rig, o->bias, head % (s->heads * s->shared) * s->keys + key);
    return sum;
}

/* An element as it has to be. */
struct wanted {
    double value;
    bool may_be_nan; /* a later key's value, which is not finite, may be multiplied by 0 */
};

/* Row `query` of `head`, counted over batches; `size`: the largest finite value. */
static void attend(const struct rig *rig, const struct shape *s, const struct operands *o,
                   int64_t head, int64_t query, struct wanted *out, double *size)
{
    double largest = -INFINITY, total = 0, *weights = calloc((size_t)s->keys + 1, sizeof(double));

    for (int64_t key = 0; key < s->keys; key++) {
        weights[key] =
            hidden(rig, s, o, head, query, key) ? -INFINITY : score(rig, s, o, head, query, key);
        largest = fmax(largest, weights[key]);
    }
    if (largest == -INFINITY)
        largest = 0;
    memset(out, 0, (size_t)s->outs * sizeof(*out));
    *size = 0;
    for (int64_t key = 0; key < s->keys; key++) {
        bool is_hidden = hidden(rig, s, o, head, query, key);
        double weight = is_hidden ? 0 : exp(weights[key] - largest);

        total += weight;
        for (int64_t i = 0; i < s->outs; i++) {
            double value =
                rig_get_real(rig, o->v, (head / s->shared * s->keys + key) * s->outs + i);

            if (!is_later(s, query, key))
                out[i].value += weight * value;
            if (isfinite(value))
                *size = fmax(*size, fabs(value));
            else if (is_later(s, query, key))
                out[i].may_be_nan = true;
        }
    }
    for (int64_t i = 0; i < s->outs && total != 0; i++)
        out[i].value /= total;
    free(weights);
}

static bool is_near(double seen, struct wanted want, double allowed)
{
    if (isnan(seen))
        return isnan(want.value) || want.may_be_nan;
    return isinf(want.value) ? seen == want.value : fabs(seen - want.value) <= allowed;
}

static void compare(const struct rig *rig, const struct shape *s, const struct operands *o)
{
    double tolerance = s->dtype == FRIT_F16    ? 0x1p-10
                       : s->dtype == FRIT_BF16 ? 0x1p-7
                       : s->dtype == FRIT_F32  ? 0x1p-19
                                               : 0x1p-46;
    struct wanted want[300];
    double size;

    for (int64_t head = 0; head < s->batch * s->heads * s->shared; head++)
        for (int64_t query = 0; query < s->queries; query++) {
            attend(rig, s, o, head, query, want, &size);
            for (int64_t i = 0; i < s->outs; i++) {
                double seen = rig_get_real(rig, o->y, (head * s->queries + query) * s->outs + i);

                if (!is_near(seen, want[i], tolerance * size))
                    fail_msg("heads %lld x %lld, %lld queries, %lld keys of %lld, %lld, %c: head "
                             "%lld, query %lld, element %lld is %.9g, not %.9g",
                             (long long)s->heads, (long long)s->shared, (long long)s->queries,
                             (long long)s->keys, (long long)s->size, (long long)s->outs,
                             s->spoilt ? s->spoilt : '-', (long long)head, (long long)query,
                             (long long)i, seen, want[i].value);
            }
        }
}

static void set_target(struct rig *rig, const struct target *target)
{
    rig->target.stages_tiles = !target->is_lines;
    rig->target.lanes_interleaved = target->is_lines;
    rig->target.group_bytes = target->group_bytes;
    rig->target.max_lanes = target->max_lanes;
    rig->target.near_lanes = 32;
    rig->target.copies = target->copies;
    rig->target.align_bytes = target->align_bytes;
    rig->target.exp2 = rig->target.fmax = target->copies;
    if (!target->has_fragments)
        return;
    rig->target.team = target->team ? target->team : 8; /* evaluating takes less time */
    rig->target.folds_fragments = !target->team;
    rig->target.n_shapes = 2;
    for (uint32_t i = 0; i < 2; i++)
        rig->target.shapes[i] = (struct kir_fragment_shape){
            .m = 16, .n = 16, .k = 16, .dtype = i ? FRIT_BF16 : FRIT_F16, .sum = FRIT_F32};
}

static void check_on(struct shape s, const struct target *target)
{
    static uint32_t n_cases;
    struct operands o;
    struct rig rig;
    frit_status status;

    if (n_cases++ % rig_every())
        return;
    s.attrs.struct_size = sizeof(s.attrs);
    s.dtype = s.dtype ? s.dtype : FRIT_F32;
    rig_init(&rig);
    rig.index_width = s.width ? s.width : 32;
    set_target(&rig, target);
    o = make(&rig, &s);
    if (s.spoilt)
        spoil(&rig, &s, &o);
    status = rig_try(&rig, &sched_attention);
    assert_int_equal(status, FRIT_OK);
    assert_int_equal(rig.module.phases[0].n_fragments > 0,
                     target->has_fragments && kir_is_16_bit_float(s.dtype) && s.keys >= 16 &&
                         s.size <= 128 && s.queries * (s.queries < 64 ? s.shared : 1) > 8);
    compare(&rig, &s, &o);
    rig_fini(&rig);
}

static void check(struct shape s)
{
    for (uint32_t t = 0; t < 3; t++)
        check_on(s, &targets[t]);
}

static void test_sizes(void **state)
{
    static const int64_t sizes[][4] = {
        /* queries, keys, size, outs */
        {1, 1, 8, 8},    {16, 16, 16, 16},   {17, 33, 5, 7}, {70, 70, 64, 64},  {1, 300, 32, 20},
        {3, 40, 80, 80}, {33, 100, 128, 24}, {20, 30, 1, 1}, {20, 9, 300, 300}, {2, 9, 20, 300}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t causal = 0; causal < 2; causal++)
            check((struct shape){.batch = 1,
                                 .heads = 1,
                                 .shared = 1,
                                 .queries = sizes[i][0],
                                 .keys = sizes[i][1],
                                 .size = sizes[i][2],
                                 .outs = sizes[i][3],
                                 .attrs = {.causal = causal}});
}

static void test_options(void **state)
{
    const struct shape cases[] = {
        {2, 2, 1, 20, 20, 16, 16, .has_mask = true, .hides = 0.3},
        {1, 2, 1, 20, 37, 16, 16, .has_mask = true, .hides = 0.3, .mask_is_narrow = true},
        {2, 3, 1, 20, 37, 16, 12, .has_bias = true},
        {1, 2, 1, 70, 50, 16, 12, .has_bias = true, .has_mask = true, .hides = 0.5,
         .attrs = {.causal = 1, .softcap = 1.5}},
        {1, 1, 1, 30, 20, 16, 16, .attrs = {.causal = 1}},       /* rows that see no key */
        {1, 1, 1, 40, 80, 16, 16, .attrs = {.causal = 1}},       /* all see the first ones */
        {1, 1, 1, 20, 20, 16, 16, .has_mask = true, .hides = 1}, /* nor here */
        {1, 1, 1, 20, 20, 16, 16, .attrs = {.scale = 0.3, .softcap = 5}},
        {1, 1, 1, 20, 20, 16, 16, .attrs = {.softcap = -0.0}},
        {2, 2, 3, 20, 33, 16, 16, .has_bias = true},
        {2, 2, 3, 20, 33, 16, 16, .attrs = {.causal = 1}},
        {2, 2, 4, 70, 70, 8, 8, .attrs = {.causal = 1}},
        {2, 2, 4, 1, 70, 8, 8, .has_mask = true, .hides = 0.2},
        {2, 2, 4, 5, 70, 8, 8, .attrs = {.causal = 1}},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shape narrow = cases[i];

        for (uint32_t t = 0; t < 3; t++)
            check_on(cases[i], &targets[t]);
        narrow.dtype = i % 2 ? FRIT_F16 : FRIT_BF16;
        check_on(narrow, &targets[3 + i / 2 % 2]);
    }
}

static void test_types(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F16, FRIT_BF16, FRIT_F64};

    (void)state;
    for (uint32_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        struct shape s = {1, 2, 2, 33, 40, 20, 24, .has_bias = true, .dtype = dtypes[i]};

        check(s);
        s.queries = 3;
        s.attrs.causal = 1;
        check(s);
    }
}

static void test_layouts(void **state)
{
    (void)state;
    for (uint32_t layout = 0; layout < 3; layout++)
        for (uint32_t width = 32; width <= 64; width += 32)
            check((struct shape){2, 3, 1, 20, 21, 17, 9, .has_bias = true, .layout = layout,
                                 .width = width, .attrs = {.causal = 1}});
}

/* What is not finite shows where it is seen, and nowhere else. */
static void test_specials(void **state)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F64, FRIT_F16, FRIT_BF16};
    const char *operands = "qkvb";

    (void)state;
    for (uint32_t i = 0; i < 12; i++) {
        struct shape s = {1,
                          2,
                          1 + i % 2,
                          18,
                          37,
                          16,
                          9,
                          .spoilt = operands[i % 4],
                          .special = specials[i / 4],
                          .has_bias = true,
                          .dtype = dtypes[i / 3],
                          .hides = 0.5};

        s.has_mask = i % 3 != 0;
        s.attrs.causal = i % 3 != 1;
        s.attrs.softcap = i % 5 ? 0 : 2;
        check(s);
        s.queries = 1; /* split over keys */
        s.keys = 300;
        check_on(s, &targets[i % 3]);
        s.queries = 33;
        s.keys = 40;
        s.dtype = dtypes[2 + i / 4 % 2];
        check_on(s, &targets[3 + i % 2]);
    }
}

static void test_fragments(void **state)
{
    const struct shape cases[] = {
        {1, 1, 1, 64, 64, 64, 64, .dtype = FRIT_BF16, .attrs = {.causal = 1}},
        {1, 2, 1, 70, 130, 64, 64, .dtype = FRIT_F16, .attrs = {.causal = 1}, .layout = 1},
        {1, 1, 1, 65, 40, 128, 128, .dtype = FRIT_BF16},
        {1, 1, 1, 20, 100, 40, 72, .dtype = FRIT_BF16, .layout = 2},
        {1, 1, 1, 20, 33, 13, 150, .dtype = FRIT_F16},
        {1, 1, 3, 6, 700, 16, 16, .dtype = FRIT_BF16, .has_mask = true, .hides = 0.5},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t t = 3; t < 7; t++)
            check_on(cases[i], &targets[t]);
}

/* Blocks that hide one key alone: from the first row of a group, or beyond the end. */
static void test_edges(void **state)
{
    const struct shape cases[] = {
        {1, 1, 1, 20, 82, 16, 16, .dtype = FRIT_BF16, .attrs = {.causal = 1}},
        {1, 1, 1, 20, 127, 16, 16, .dtype = FRIT_F16},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_on(cases[i], &targets[4]);
}

/* Groups of few threads; teams of many. */
static void test_groups(void **state)
{
    static const struct target few = {.group_bytes = 15 << 10, .max_lanes = 512, .align_bytes = 16},
                               many = {.group_bytes = 80000,
                                       .max_lanes = 2048,
                                       .has_fragments = true,
                                       .team = 64};
    const struct shape s = {1, 1, 1, 20, 70, 40, 24, .attrs = {.causal = 1}};
    struct shape narrow = s;

    (void)state;
    check_on(s, &few);
    narrow.dtype = FRIT_BF16;
    check_on(narrow, &many);
}

/* Threads of several lanes, which copy and load ahead; tiles of all sizes. */
static void test_threads(void **state)
{
    const struct shape cases[] = {
        {1, 1, 1, 70, 130, 64, 64, .attrs = {.causal = 1}, .layout = 1},
        {1, 2, 1, 33, 40, 17, 20, .has_bias = true},
        {1, 1, 1, 40, 70, 128, 128, .layout = 2},
        {1, 1, 1, 12, 20, 200, 72, .has_mask = true, .hides = 0.5},
        {1, 2, 1, 3, 600, 40, 24, .attrs = {.causal = 1, .softcap = 2}},
        {1, 1, 1, 20, 40, 16, 16, .dtype = FRIT_F64},
        {1, 1, 1, 20, 40, 16, 16, .dtype = FRIT_BF16},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t t = 7; t < 9; t++)
            check_on(cases[i], &targets[t]);
}

/* A row with a NaN is NaN, and so are those that see a key with one; no others. */
static void test_nan(void **state)
{
    const struct shape cases[] = {
        {1, 2, 1, 20, 40, 16, 16, .attrs = {.causal = 1}, .nan_query = 7, .nan_key = 35},
        {1, 1, 1, 40, 70, 16, 16, .attrs = {.causal = 1, .softcap = 2}, .nan_key = 60},
        {1, 1, 1, 3, 600, 16, 16, .nan_query = 2},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
            struct shape s = cases[i];

            s.dtype = targets[t].has_fragments ? FRIT_BF16 : FRIT_F32;
            check_on(s, &targets[t]);
        }
}

/* Anything, on any target: many more with FRIT_TEST_LONG. */
static void test_random(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_BF16, FRIT_F16, FRIT_F64};
    const uint32_t n = getenv("FRIT_TEST_LONG") ? 1000 : 16;
    uint64_t seed = 2311;

    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        struct shape s = {.batch = 1 + rig_random(&seed, 2),
                          .heads = 1 + rig_random(&seed, 3),
                          .shared = 1 + rig_random(&seed, 3),
                          .queries = 1 + rig_random(&seed, rig_random(&seed, 2) ? 12 : 80),
                          .keys = 1 + rig_random(&seed, rig_random(&seed, 2) ? 20 : 150),
                          .size = 1 + rig_random(&seed, rig_random(&seed, 2) ? 24 : 140),
                          .outs = 1 + rig_random(&seed, rig_random(&seed, 2) ? 24 : 140),
                          .has_mask = rig_random(&seed, 3) == 0,
                          .has_bias = rig_random(&seed, 3) == 0,
                          .dtype = dtypes[rig_random(&seed, 4)],
                          .layout = rig_random(&seed, 3),
                          .width = 32u << rig_random(&seed, 2),
                          .hides = rig_random(&seed, 11) / 10.0,
                          .mask_is_narrow = rig_random(&seed, 2),
                          .attrs = {.causal = rig_random(&seed, 2),
                                    .scale = rig_random(&seed, 2) ? 0 : 0.4,
                                    .softcap = rig_random(&seed, 3) ? 0 : 2}};

        check_on(s, &targets[rig_random(&seed, sizeof(targets) / sizeof(targets[0]))]);
    }
}

/* ---- written in other ops ---- */

/* The softmax of x along its last dim, of these dims. */
static uint32_t soft(struct rig *rig, uint32_t x, uint32_t dtype, const int64_t *dims, bool divides)
{
    static frit_attrs_reduce last = {
        .struct_size = sizeof(last), .axes = {.count = 1, .axis = {3}}, .keep = 1};
    const int64_t rows[] = {dims[0], dims[1], dims[2], 1};
    uint32_t max, sub, e, sum;

#define OP(id, dims, ...)                                                                         \
    rig_op(rig, id, sizeof((struct rig_in[]){__VA_ARGS__}) / sizeof(struct rig_in),               \
           (struct rig_in[]){__VA_ARGS__}, id == FRIT_OP_max || id == FRIT_OP_sum ? &last : NULL, \
           dtype, 4, dims)
    max = OP(FRIT_OP_max, rows, rig_value(x));
    sub = OP(FRIT_OP_sub, dims, rig_value(x), rig_value(max));
    e = OP(FRIT_OP_exp, dims, rig_value(sub));
    sum = OP(FRIT_OP_sum, rows, rig_value(e));
    if (divides)
        return OP(FRIT_OP_div, dims, rig_value(e), rig_value(sum));
    sum = OP(FRIT_OP_div, rows, rig_real(dtype, 1), rig_value(sum));
    return OP(FRIT_OP_mul, dims, rig_value(e), rig_value(sum));
#undef OP
}

/* softmax(q k' * scale + bias) v, then twice that less 1 if `around`. */
static void composite(struct shape s, const struct target *target, bool around)
{
    static const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 2, .with = 3};
    const int64_t heads = s.heads, turned[] = {s.batch, heads, s.size, s.keys},
                  scores[] = {s.batch, heads, s.queries, s.keys},
                  dims[] = {s.batch, heads, s.queries, s.outs}, of_bias[] = {heads, 1, s.keys};
    struct operands o = {.mask = RIG_ABSENT, .bias = RIG_ABSENT};
    struct rig rig;
    uint32_t x;

    rig_init(&rig);
    set_target(&rig, target);
    o.q = operand(&rig, &s, heads, s.queries, s.size, 3);
    o.k = operand(&rig, &s, heads, s.keys, s.size, 4);
    o.v = operand(&rig, &s, heads, s.keys, s.outs, 5);
#define OP(id, attrs, dims, ...)                                                     \
    rig_op(&rig, id, sizeof((struct rig_in[]){__VA_ARGS__}) / sizeof(struct rig_in), \
           (struct rig_in[]){__VA_ARGS__}, attrs, s.dtype, 4, dims)
    x = OP(FRIT_OP_transpose, &swap, turned, rig_value(o.k));
    x = OP(FRIT_OP_matmul, NULL, scores, rig_value(o.q), rig_value(x));
    x = OP(FRIT_OP_mul, NULL, scores, rig_value(x), rig_real(s.dtype, s.attrs.scale));
    if (s.has_bias) {
        o.bias = rig_input(&rig, s.dtype, 3, of_bias);
        fill(&rig, o.bias, 9);
        x = OP(FRIT_OP_add, NULL, scores, rig_value(x), rig_value(o.bias));
    }
    if (s.spoilt)
        spoil(&rig, &s, &o);
    x = soft(&rig, x, s.dtype, scores, around);
    o.y = OP(FRIT_OP_matmul, NULL, dims, rig_value(x), rig_value(o.v));
    if (around) {
        x = OP(FRIT_OP_add, NULL, dims, rig_value(o.y), rig_value(o.y));
        o.y = OP(FRIT_OP_mul, NULL, dims, rig_value(x), rig_real(s.dtype, 0.5));
    }
#undef OP
    assert_int_equal(rig_try(&rig, &sched_attention), FRIT_OK);
    compare(&rig, &s, &o);
    rig_fini(&rig);
}

static void test_composite(void **state)
{
    const struct shape cases[] = {
        {2, 3, 1, 20, 37, 16, 12, .dtype = FRIT_F32, .attrs = {.scale = 0.3}},
        {1, 2, 1, 5, 20, 16, 16, .has_bias = true, .dtype = FRIT_F32, .attrs = {.scale = 1}},
        {1, 1, 1, 20, 20, 20, 20, .dtype = FRIT_F64, .attrs = {.scale = 0.3}, .layout = 2},
        {1, 2, 1, 40, 64, 16, 16, .has_bias = true, .dtype = FRIT_BF16, .attrs = {.scale = 0.5}},
        {1, 2, 1, 20, 50, 16, 16, .dtype = FRIT_F16, .attrs = {.scale = 0.5}, .layout = 1},
        {1, 2, 1, 20, 37, 16, 9, .dtype = FRIT_F16, .attrs = {.scale = 0.5}, .spoilt = 'q',
         .special = NAN},
        {1, 2, 1, 20, 37, 16, 9, .dtype = FRIT_F32, .attrs = {.scale = 0.5}, .spoilt = 'v',
         .special = INFINITY},
        {1, 2, 1, 20, 37, 16, 9, .has_bias = true, .dtype = FRIT_BF16, .attrs = {.scale = 1},
         .spoilt = 'b', .special = -INFINITY},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t += 2)
            for (uint32_t around = 0; around < 2; around++)
                composite(cases[i], &targets[t], around);
}

/* What is like it but needs a result that the schedule does not compute. */
static void refuse(bool is_turned)
{
    static const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 2, .with = 3};
    static const frit_attrs_reduce last = {
        .struct_size = sizeof(last), .axes = {.count = 1, .axis = {3}}, .keep = 1};
    const struct shape s = {1, 2, 1, 20, 20, 20, 20, .dtype = FRIT_F32};
    const int64_t dims[] = {1, 2, 20, 20}, rows[] = {1, 2, 20, 1};
    uint32_t q, k, v, x, y;
    struct rig rig;

    rig_init(&rig);
    q = operand(&rig, &s, 2, 20, 20, 3);
    k = operand(&rig, &s, 2, 20, 20, 4);
    v = operand(&rig, &s, 2, 20, 20, 5);
#define OP(id, attrs, dims, ...)                                                     \
    rig_op(&rig, id, sizeof((struct rig_in[]){__VA_ARGS__}) / sizeof(struct rig_in), \
           (struct rig_in[]){__VA_ARGS__}, attrs, FRIT_F32, 4, dims)
    x = OP(FRIT_OP_matmul, NULL, dims, rig_value(q), rig_value(k));
    if (is_turned) {
        y = OP(FRIT_OP_transpose, &swap, dims, rig_value(x));
        x = OP(FRIT_OP_add, NULL, dims, rig_value(x), rig_value(y));
    } else {
        y = OP(FRIT_OP_max, &last, rows, rig_value(x));
        x = OP(FRIT_OP_sub, NULL, dims, rig_value(x), rig_value(y));
    }
    x = soft(&rig, x, FRIT_F32, dims, true);
    (void)OP(FRIT_OP_matmul, NULL, dims, rig_value(x), rig_value(v));
#undef OP
    assert_int_equal(rig_try(&rig, &sched_attention), FRIT_UNSUPPORTED);
    rig_fini(&rig);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse(false);
    refuse(true);
}

/* Few rows with long keys: groups share them. */
static void test_splits(void **state)
{
    struct shape s = {.batch = 1, .heads = 2, .shared = 1, .keys = 1500, .size = 16, .outs = 12};

    (void)state;
    for (uint32_t causal = 0; causal < 2; causal++) {
        s.attrs.causal = causal;
        for (s.queries = 1; s.queries < 20; s.queries += 9)
            check(s);
    }
    check((struct shape){1, 1, 1, 2, 2000, 8, 8, .has_mask = true, .hides = 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),    cmocka_unit_test(test_options),
        cmocka_unit_test(test_types),    cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_splits),   cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_composite),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_nan),
        cmocka_unit_test(test_random),   cmocka_unit_test(test_specials),
        cmocka_unit_test(test_edges),    cmocka_unit_test(test_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
