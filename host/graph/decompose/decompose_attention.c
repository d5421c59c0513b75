/* SPDX-License-Identifier: Apache-2.0 */
/* attention as two matrix products with a softmax in between, and its gradients.
 *
 * Neighbouring heads of q share a head of k and v, so their queries are reshaped to rows of a
 * single product, [.., heads of k, queries of all its heads, size]; mask and bias are applied to
 * scores of
 * [.., heads, queries, keys].  For narrow types the scores and the softmax are computed in f32, and
 * the weights are rounded to the narrow type before the second product. */
#include <math.h>
#include <string.h>

#include "graph/decompose/build.h"

struct attention {
    uint32_t rank;
    int64_t queries, keys;
    int64_t score_dims[FRIT_MAX_RANK]; /* [.., heads of q, queries, keys] */
    int64_t row_dims[FRIT_MAX_RANK];   /* [.., heads of k, queries of all its heads, any] */
    term hidden;                       /* keys, absent if none are; set by `weights` */
};

static const struct op_type *operand(const struct build *b, uint32_t index)
{
    return &b->call->in[index].type;
}

static struct attention attention_of(const struct build *b)
{
    const struct op_type *q = operand(b, 0), *k = operand(b, 1);
    uint32_t rank = q->rank;
    struct attention a = {.rank = rank, .queries = q->dims[rank - 2], .keys = k->dims[rank - 2]};

    memcpy(a.score_dims, q->dims, sizeof(a.score_dims));
    memcpy(a.row_dims, q->dims, sizeof(a.row_dims));
    a.score_dims[rank - 1] = a.keys;
    a.row_dims[rank - 3] = k->dims[rank - 3];
    a.row_dims[rank - 2] = q->dims[rank - 3] / k->dims[rank - 3] * a.queries;
    return a;
}

/* x, one row per query, reshaped to row_dims with the last extent `last`. */
static term as_rows(struct build *b, const struct attention *a, term x, int64_t last)
{
    int64_t dims[FRIT_MAX_RANK];

    memcpy(dims, a->row_dims, sizeof(dims));
    dims[a->rank - 1] = last;
    return b_reshape(b, x, a->rank, dims);
}

static double scale_of(const struct build *b)
{
    const frit_attrs_attention *attrs = b->call->attrs;
    const struct op_type *q = operand(b, 0);

    return attrs->scale != 0 ? attrs->scale : 1 / sqrt((double)q->dims[q->rank - 1]);
}

/* q k', scaled: [.., heads of k, queries of all its heads, keys]. */
static term products(struct build *b, const struct attention *a)
{
    int64_t size = operand(b, 0)->dims[a->rank - 1];
    term q = as_rows(b, a, b_in(b, 0), size);
    term s = b_matmul(b, q, b_swap_last(b, b_in(b, 1)));

    return b_mul(b, s, b_number(scale_of(b)));
}

static term scores(struct build *b, const struct attention *a)
{
    const frit_attrs_attention *attrs = b->call->attrs;
    term s = products(b, a);

    if (attrs->softcap != 0)
        s = b_mul(b, b_tanh(b, b_div(b, s, b_number(attrs->softcap))), b_number(attrs->softcap));
    s = b_reshape(b, s, a->rank, a->score_dims);
    return b_has(b, 4) ? b_add(b, s, b_in(b, 4)) : s;
}

/* Which keys come after a query's own position: [queries, keys].  Positions are aligned at the end:
 * the last query is at the last key. */
static term later_keys(struct build *b, const struct attention *a)
{
    term query = b_reshape(b, b_arange(b, a->queries), 2, (const int64_t[]){a->queries, 1});
    term position = b_add(b, query, b_number((double)(a->keys - a->queries)));

    return b_lt(b, position, b_arange(b, a->keys));
}

/* Which keys are hidden from each query; absent if none are. */
static term hidden_keys(struct build *b, const struct attention *a)
{
    const frit_attrs_attention *attrs = b->call->attrs;

    if (!attrs->causal)
        return b_in(b, 3);
    return b_has(b, 3) ? b_or(b, b_in(b, 3), later_keys(b, a)) : later_keys(b, a);
}

/* The softmax of the scores.  A query whose scores are all -infinity (its keys are hidden, or have
 * a bias of -infinity) gets weights of 0: its maximum and its sum are replaced, so that neither
 * -infinity - -infinity nor 0 / 0 is computed. */
static term weights(struct build *b, struct attention *a)
{
    const frit_axes last = {.count = 1, .axis = {a->rank - 1}};
    term s = scores(b, a), largest, e, sum;
    bool some_hidden, maybe_none;

    a->hidden = hidden_keys(b, a);
    some_hidden = a->hidden.kind != FRIT_OPERAND_ABSENT;
    maybe_none = some_hidden || b_has(b, 4);
    if (some_hidden)
        s = b_where(b, a->hidden, b_number(-INFINITY), s);
    largest = b_reduce(b, FRIT_OP_max, s, &last, true);
    if (maybe_none)
        largest = b_where(b, b_eq(b, largest, b_number(-INFINITY)), b_number(0), largest);
    e = b_exp(b, b_sub(b, s, largest));
    sum = b_reduce(b, FRIT_OP_sum, e, &last, true);
    if (maybe_none)
        sum = b_where(b, b_eq(b, sum, b_number(0)), b_number(1), sum);
    return b_div_rows(b, e, sum);
}

/* Casts the operands of the scores to the type in which they are computed. */
static void widen_scores(struct build *b)
{
    static const uint32_t wide[] = {0, 1, 4}; /* q, k, bias */

    b->dtype = frit_dtype_info_of(b->dtype).compute;
    for (uint32_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (b_has(b, wide[i]))
            b->in[wide[i]] = b_cast(b, b_in(b, wide[i]), b->dtype);
}

term decompose_attention(struct build *b)
{
    const struct op_type *k = operand(b, 1);
    struct attention a;
    term w;

    if (k->dims[k->rank - 2] == 0)
        return b_full(b, b->dtype, b_number(0).scalar, b->out.rank, b->out.dims);
    a = attention_of(b);
    widen_scores(b);
    w = as_rows(b, &a, b_cast(b, weights(b, &a), b->out.dtype), a.keys);
    return b_reshape(b, b_matmul(b, w, b_in(b, 2)), a.rank, b->out.dims);
}

/* ---- gradients ---- */

static term sum_last(struct build *b, term x)
{
    const frit_axes last = {.count = 1, .axis = {b_type(b, x).rank - 1}};

    return b_reduce(b, FRIT_OP_sum, x, &last, true);
}

/* x summed over what broadcasting to the scores repeated. */
static term sum_to(struct build *b, const struct op_type *type, term x)
{
    const struct op_type from = b_type(b, x);
    frit_axes axes = {0};

    for (uint32_t d = 0; d < from.rank; d++) {
        uint32_t missing = from.rank - type->rank;

        if (from.dims[d] != (d < missing ? 1 : type->dims[d - missing]))
            axes.axis[axes.count++] = d;
    }
    if (axes.count)
        x = b_reduce(b, FRIT_OP_sum, x, &axes, true);
    return b_reshape(b, x, type->rank, type->dims);
}

/* What the cap makes of a small change of a score: 1 - tanh^2. */
static term cap_slope(struct build *b, const struct attention *a)
{
    const frit_attrs_attention *attrs = b->call->attrs;
    term s = b_tanh(b, b_div(b, products(b, a), b_number(attrs->softcap)));

    s = b_sub(b, b_number(1), b_mul(b, s, s));
    return b_reshape(b, s, a->rank, a->score_dims);
}

/* Gradients of the scores, from those of the weights, both [.., heads, queries, keys]. */
static term scores_grad(struct build *b, const struct attention *a, term w, term dw)
{
    term ds = b_mul(b, w, b_sub(b, dw, sum_last(b, b_mul(b, w, dw))));

    return a->hidden.kind == FRIT_OPERAND_ABSENT ? ds : b_where(b, a->hidden, b_number(0), ds);
}

static term no_gradients(struct build *b)
{
    term zero[4];

    for (uint32_t k = 0; k < 4; k++) {
        const struct op_type *type = operand(b, k < 3 ? k : 4);

        if (k < 3 || b->call->wanted >> 3 & 1)
            zero[k] = b_full(b, b->out.dtype, b_number(0).scalar, type->rank, type->dims);
        if (k && (k < 3 || b->call->wanted >> 3 & 1))
            b->results[k] = zero[k];
    }
    return zero[0];
}

/* Gradients of weights are computed in the scores' type, those of scores rounded to the narrow one
 * before the last products. */
term decompose_attention_backward(struct build *b)
{
    const frit_attrs_attention *attrs = b->call->attrs;
    const struct op_type *q = operand(b, 0), *k = operand(b, 1), *v = operand(b, 2);
    const uint32_t narrow = b->out.dtype;
    struct attention a;
    term w, dw, ds, grad, q_rows, keys = b_in(b, 1);

    if (k->dims[k->rank - 2] == 0)
        return no_gradients(b);
    a = attention_of(b);
    grad = as_rows(b, &a, b_in(b, 5), v->dims[v->rank - 1]);
    q_rows = as_rows(b, &a, b_in(b, 0), q->dims[q->rank - 1]);
    widen_scores(b);
    dw = b_matmul(b, b_cast(b, grad, b->dtype), b_swap_last(b, b_cast(b, b_in(b, 2), b->dtype)));
    dw = b_reshape(b, dw, a.rank, a.score_dims);
    w = weights(b, &a);
    ds = scores_grad(b, &a, w, dw);
    if (b->call->wanted >> 3 & 1)
        b->results[3] = b_cast(b, sum_to(b, operand(b, 4), ds), narrow);
    if (attrs->softcap != 0)
        ds = b_mul(b, ds, cap_slope(b, &a));
    ds = b_mul(b, ds, b_number(scale_of(b)));
    ds = as_rows(b, &a, b_cast(b, ds, narrow), a.keys);
    w = as_rows(b, &a, b_cast(b, w, narrow), a.keys);
    b->results[1] = b_matmul(b, b_swap_last(b, ds), q_rows);
    b->results[2] = b_matmul(b, b_swap_last(b, w), grad);
    return b_reshape(b, b_matmul(b, ds, keys), q->rank, q->dims);
}
