/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of attention's gradients against their definition: sizes around those of fragments
 * and blocks, causal rows, masks, biases, layouts, rows that see nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/lower/fail_allocations.h"
#include "unit.h"

struct shape {
    int64_t batch, heads, queries, keys, size, outs;
    frit_attrs_attention attrs;
    uint32_t dtype;
    uint32_t layout; /* 1: [batch, length, heads, size] */
    double hides;    /* part of the mask; 0: there is none */
    bool has_bias;
    bool is_large; /* numbers by which few keys have nearly all weight */
};

enum { Q, K, V, MASK, BIAS, GRAD, OPERANDS };
enum { DQ, DK, DV, RESULTS };

struct tensors {
    uint32_t in[OPERANDS], out[RESULTS];
};

static uint32_t operand(struct rig *rig, const struct shape *s, int64_t length, int64_t size,
                        uint64_t seed)
{
    static const uint32_t orders[][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}};
    const int64_t dims[] = {s->batch, s->heads, length, size};
    uint32_t value = rig_laid(rig, s->dtype, 4, dims, orders[s->layout], 0, 1);

    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / (s->is_large ? 2 : 16));
    return value;
}

static void make(struct rig *rig, const struct shape *s, struct tensors *t)
{
    const int64_t queries[] = {s->batch, s->heads, s->queries, s->size};
    const int64_t keys[] = {s->batch, s->heads, s->keys, s->size};
    const int64_t values[] = {s->batch, s->heads, s->keys, s->outs};
    const int64_t of_bias[] = {s->heads, 1, s->keys};
    struct rig_in in[OPERANDS];
    uint64_t seed = 7;

    t->in[Q] = operand(rig, s, s->queries, s->size, 3);
    t->in[K] = operand(rig, s, s->keys, s->size, 4);
    t->in[V] = operand(rig, s, s->keys, s->outs, 5);
    t->in[GRAD] = operand(rig, s, s->queries, s->outs, 6);
    t->in[MASK] = t->in[BIAS] = RIG_ABSENT;
    if (s->hides > 0) {
        t->in[MASK] = rig_input(rig, FRIT_BOOL, 2, (const int64_t[]){s->queries, s->keys});
        for (int64_t i = 0; i < s->queries * s->keys; i++)
            rig_set_int(rig, t->in[MASK], i, rig_random(&seed, 1000) < s->hides * 1000);
    }
    if (s->has_bias) {
        t->in[BIAS] = rig_input(rig, s->dtype, 3, of_bias);
        for (int64_t i = 0; i < s->heads * s->keys; i++)
            rig_set_real(rig, t->in[BIAS], i, ((double)rig_random(&seed, 33) - 16) / 16);
    }
    for (uint32_t i = 0; i < OPERANDS; i++)
        in[i] = rig_value(t->in[i]);
    t->out[DQ] =
        rig_op(rig, FRIT_OP_attention_backward, OPERANDS, in, &s->attrs, s->dtype, 4, queries);
    t->out[DK] = rig_second(rig, s->dtype, 4, keys);
    t->out[DV] = rig_second(rig, s->dtype, 4, values);
}

/* ---- the definition ---- */

static double dot(const struct rig *rig, uint32_t a, int64_t a_row, uint32_t b, int64_t b_row,
                  int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += rig_get_real(rig, a, a_row * n + i) * rig_get_real(rig, b, b_row * n + i);
    return sum;
}

static double scale_of(const struct shape *s)
{
    return s->attrs.scale != 0 ? s->attrs.scale : 1 / sqrt((double)s->size);
}

static double score(const struct rig *rig, const struct shape *s, const struct tensors *t,
                    int64_t head, int64_t query, int64_t key)
{
    double sum = scale_of(s) * dot(rig, t->in[Q], head * s->queries + query, t->in[K],
                                   head * s->keys + key, s->size);

    if ((s->attrs.causal && key > query + s->keys - s->queries) ||
        (s->hides > 0 && rig_get_int(rig, t->in[MASK], query * s->keys + key)))
        return -INFINITY;
    return s->has_bias ? sum + rig_get_real(rig, t->in[BIAS], head % s->heads * s->keys + key)
                       : sum;
}

/* The weights of a row, and the gradients of its scores. */
static void find_row(const struct rig *rig, const struct shape *s, const struct tensors *t,
                     int64_t head, int64_t query, double *w, double *ds)
{
    double largest = -INFINITY, total = 0, sum = 0;

    for (int64_t k = 0; k < s->keys; k++) {
        w[k] = score(rig, s, t, head, query, k);
        largest = fmax(largest, w[k]);
    }
    for (int64_t k = 0; k < s->keys; k++) {
        w[k] = largest == -INFINITY ? 0 : exp(w[k] - largest);
        total += w[k];
    }
    for (int64_t k = 0; k < s->keys; k++) {
        w[k] /= total > 0 ? total : 1;
        ds[k] =
            dot(rig, t->in[GRAD], head * s->queries + query, t->in[V], head * s->keys + k, s->outs);
        sum += w[k] * ds[k];
    }
    for (int64_t k = 0; k < s->keys; k++)
        ds[k] = w[k] * (ds[k] - sum);
}

/* Adds a row of `from`, times a factor, to a sum. */
static void add_row(const struct rig *rig, double *sum, uint32_t from, int64_t row, int64_t n,
                    double factor)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * rig_get_real(rig, from, row * n + i);
}

static void find_head(const struct rig *rig, const struct shape *s, const struct tensors *t,
                      int64_t head, double *const want[RESULTS])
{
    double *w = calloc((size_t)(2 * s->keys), sizeof(*w)), *ds = w + s->keys;

    for (int64_t q = 0; q < s->queries; q++) {
        const int64_t query = head * s->queries + q;

        find_row(rig, s, t, head, q, w, ds);
        for (int64_t k = 0; k < s->keys; k++) {
            const int64_t key = head * s->keys + k;

            add_row(rig, want[DQ] + query * s->size, t->in[K], key, s->size, scale_of(s) * ds[k]);
            add_row(rig, want[DK] + key * s->size, t->in[Q], query, s->size, scale_of(s) * ds[k]);
            add_row(rig, want[DV] + key * s->outs, t->in[GRAD], query, s->outs, w[k]);
        }
    }
    free(w);
}

static void compare(const struct rig *rig, const struct shape *s, const struct tensors *t)
{
    static const char *const names[] = {"dq", "dk", "dv"};
    const double tolerance = s->dtype == FRIT_F32   ? 0x1p-17
                             : s->dtype == FRIT_F16 ? 0x1p-9
                                                    : 0x1p-6;
    double *want[RESULTS];

    for (uint32_t i = 0; i < RESULTS; i++)
        want[i] = calloc((size_t)rig_count(rig, t->out[i]), sizeof(double));
    for (int64_t head = 0; head < s->batch * s->heads; head++)
        find_head(rig, s, t, head, want);
    for (uint32_t i = 0; i < RESULTS; i++) {
        double largest = 0;

        for (int64_t n = 0; n < rig_count(rig, t->out[i]); n++)
            largest = fmax(largest, fabs(want[i][n]));
        for (int64_t n = 0; n < rig_count(rig, t->out[i]); n++) {
            double seen = rig_get_real(rig, t->out[i], n);

            if (!(fabs(seen - want[i][n]) <= tolerance * largest))
                fail_msg("%lld queries, %lld keys of %lld, %lld: element %lld of %s is %.9g, not "
                         "%.9g; the largest is %.9g",
                         (long long)s->queries, (long long)s->keys, (long long)s->size,
                         (long long)s->outs, (long long)n, names[i], seen, want[i][n], largest);
        }
        free(want[i]);
    }
}

/* ---- cases ---- */

static void set_target(struct rig *rig, bool copies)
{
    rig->target.stages_tiles = true;
    rig->target.group_bytes = 80000;
    rig->target.fragment_bytes = 200000;
    rig->target.max_lanes = 2048;
    rig->target.near_lanes = 32;
    rig->target.align_bytes = copies ? 16 : 0;
    rig->target.copies = rig->target.exp2 = rig->target.fmax = copies;
    rig->target.team = 8; /* evaluating takes less time */
    rig->target.folds_fragments = true;
    rig->target.n_shapes = 2;
    for (uint32_t i = 0; i < 2; i++)
        rig->target.shapes[i] = (struct kir_fragment_shape){
            .m = 16, .n = 16, .k = 16, .dtype = i ? FRIT_BF16 : FRIT_F16, .sum = FRIT_F32};
}

static frit_status run(struct rig *rig, struct shape *s, struct tensors *t, bool copies)
{
    s->attrs.struct_size = sizeof(s->attrs);
    s->batch = s->batch ? s->batch : 1;
    s->heads = s->heads ? s->heads : 1;
    s->dtype = s->dtype ? s->dtype : FRIT_F16;
    rig_init(rig);
    set_target(rig, copies);
    make(rig, s, t);
    return rig_try(rig, &sched_attention_backward);
}

static void check(struct shape s)
{
    const uint32_t dtypes[] = {s.dtype ? s.dtype : FRIT_F16, FRIT_F32};

    for (uint32_t i = 0; i < 4; i++) {
        struct tensors t;
        struct rig rig;

        s.dtype = dtypes[i / 2];
        assert_int_equal(run(&rig, &s, &t, i % 2), FRIT_OK);
        compare(&rig, &s, &t);
        rig_fini(&rig);
    }
}

static void test_sizes(void **state)
{
    static const int64_t sizes[][4] = {/* queries, keys, size, outs */
                                       {1, 1, 1, 1},     {16, 16, 16, 16}, {17, 33, 5, 7},
                                       {70, 70, 64, 64}, {3, 130, 24, 40}, {130, 20, 40, 24},
                                       {40, 70, 128, 8}, {33, 65, 20, 72}, {64, 64, 8, 8}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t causal = 0; causal < 2; causal++)
            check((struct shape){.queries = sizes[i][0],
                                 .keys = sizes[i][1],
                                 .size = sizes[i][2],
                                 .outs = sizes[i][3],
                                 .attrs = {.causal = causal}});
}

static void test_options(void **state)
{
    const struct shape cases[] = {
        {2, 3, 20, 20, 16, 16, .attrs = {.causal = 1}, .layout = 1},
        {2, 2, 20, 70, 16, 24, .dtype = FRIT_BF16},
        {1, 2, 20, 40, 16, 16, .hides = 0.3},
        {1, 1, 20, 40, 16, 16, .hides = 0.97},
        {1, 1, 20, 40, 16, 16, .hides = 1},
        {1, 2, 40, 20, 16, 16, .has_bias = true, .attrs = {.scale = 0.5}},
        {1, 2, 40, 20, 16, 16, .has_bias = true, .hides = 0.4, .attrs = {.causal = 1}},
        {1, 1, 70, 70, 16, 16, .is_large = true, .attrs = {.causal = 1}},
        {1, 1, 20, 20, 16, 16, .is_large = true, .attrs = {.scale = -0.7}},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(cases[i]);
}

/* These are left to the ops that attention consists of. */
static void test_refusals(void **state)
{
    struct shape cases[] = {{1, 1, 20, 20, 144, 16, .is_large = false},
                            {1, 1, 20, 20, 16, 16, .attrs = {.softcap = 3}},
                            {1, 1, 20, 0, 16, 16, .is_large = false},
                            {1, 1, 0, 20, 16, 16, .is_large = false}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tensors t;
        struct rig rig;

        assert_int_equal(run(&rig, &cases[i], &t, true), FRIT_UNSUPPORTED);
        rig_fini(&rig);
    }
}

static void test_memory(void **state)
{
    struct shape s = {1, 2, 20, 40, 16, 16, .hides = 0.3, .has_bias = true};
    struct tensors t;
    struct rig rig;

    (void)state;
    assert_int_equal(run(&rig, &s, &t, true), FRIT_OK);
    rig_fail_allocations(&rig, &sched_attention_backward, 10);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
