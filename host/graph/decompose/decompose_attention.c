/* SPDX-License-Identifier: Apache-2.0 */
/* attention as two matrix products with a softmax in between.
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

static term scores(struct build *b, const struct attention *a)
{
    const frit_attrs_attention *attrs = b->call->attrs;
    int64_t size = operand(b, 0)->dims[a->rank - 1];
    term q = as_rows(b, a, b_in(b, 0), size);
    term s = b_matmul(b, q, b_swap_last(b, b_in(b, 1)));

    s = b_mul(b, s, b_number(attrs->scale != 0 ? attrs->scale : 1 / sqrt((double)size)));
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
static term weights(struct build *b, const struct attention *a)
{
    const frit_axes last = {.count = 1, .axis = {a->rank - 1}};
    term s = scores(b, a), hidden = hidden_keys(b, a), largest, e, sum;
    bool some_hidden = hidden.kind != FRIT_OPERAND_ABSENT, maybe_none = some_hidden || b_has(b, 4);

    if (some_hidden)
        s = b_where(b, hidden, b_number(-INFINITY), s);
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
