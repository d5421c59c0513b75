/* SPDX-License-Identifier: Apache-2.0 */
/* attention as two products with a softmax in between.
 *
 * The heads of q that share one of k and v are neighbours, so that their queries are rows of one
 * product; for mask and bias the scores stand as [.., heads, queries, keys].  Of narrow types the
 * scores and the softmax are computed in f32, and the weights are rounded to the type, so that both
 * products have narrow operands. */
#include <math.h>
#include <string.h>

#include "graph/decompose/build.h"

struct attention {
    uint32_t rank;
    int64_t queries, keys;
    int64_t scores[FRIT_MAX_RANK], rows[FRIT_MAX_RANK]; /* dims: by head of q, by head of k */
};

static const struct op_type *operand(const struct build *b, uint32_t index)
{
    return &b->call->in[index].type;
}

static struct attention dims_of(const struct build *b)
{
    const struct op_type *q = operand(b, 0), *k = operand(b, 1);
    uint32_t rank = q->rank;
    struct attention a = {.rank = rank, .queries = q->dims[rank - 2], .keys = k->dims[rank - 2]};

    memcpy(a.scores, q->dims, sizeof(a.scores));
    memcpy(a.rows, q->dims, sizeof(a.rows));
    a.scores[rank - 1] = a.keys;
    a.rows[rank - 3] = k->dims[rank - 3];
    a.rows[rank - 2] = q->dims[rank - 3] / k->dims[rank - 3] * a.queries;
    return a;
}

/* x by head of k, with `last` as its last extent. */
static term as_rows(struct build *b, const struct attention *a, term x, int64_t last)
{
    int64_t dims[FRIT_MAX_RANK];

    memcpy(dims, a->rows, sizeof(dims));
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
    s = b_reshape(b, s, a->rank, a->scores);
    return b_has(b, 4) ? b_add(b, s, b_in(b, 4)) : s;
}

/* Keys beyond a query's own position, both counted from the end: [queries, keys]. */
static term later_keys(struct build *b, const struct attention *a)
{
    term query = b_reshape(b, b_arange(b, a->queries), 2, (const int64_t[]){a->queries, 1});
    term own = b_add(b, query, b_number((double)(a->keys - a->queries)));

    return b_lt(b, own, b_arange(b, a->keys));
}

/* What is hidden from each query, absent if nothing is. */
static term hidden_keys(struct build *b, const struct attention *a)
{
    const frit_attrs_attention *attrs = b->call->attrs;

    if (!attrs->causal)
        return b_in(b, 3);
    return b_has(b, 3) ? b_or(b, b_in(b, 3), later_keys(b, a)) : later_keys(b, a);
}

/* A query that sees no key, or only some with a bias of -infinity, gets 0: -infinity is not taken
 * from itself, and nothing is divided by 0. */
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
    return b_divide(b, e, sum);
}

/* Operands of the scores, in the type in which to compute. */
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
    a = dims_of(b);
    widen_scores(b);
    w = as_rows(b, &a, b_cast(b, weights(b, &a), b->out.dtype), a.keys);
    return b_reshape(b, b_matmul(b, w, b_in(b, 2)), a.rank, b->out.dims);
}
