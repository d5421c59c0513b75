/* SPDX-License-Identifier: Apache-2.0 */
/* attention, one query after another.  Its scores are not kept: they are computed once for their
 * maximum and once more for every part of the result, so that no workspace is needed. */
#include <math.h>

#include "rows.h"

struct attention {
    struct view q, k, v, y;
    struct view mask, bias; /* broadcast to the scores; data NULL: none */
    double scale, softcap;  /* softcap 0: none */
    bool causal;
    int64_t queries, keys;
    int64_t k_key, v_key, mask_key, bias_key; /* strides of the keys */
};

/* Where a query and what belongs to it lie; k, v, mask and bias at the first key, of the last two,
 * which may be absent, as bytes from their first element. */
struct query {
    const char *q, *k, *v;
    int64_t mask, bias;
    char *y;
    int64_t place;
};

/* The keys from the first on that causal attention lets the query see. */
static int64_t keys_of(const struct attention *a, const struct query *query)
{
    int64_t last = query->place + a->keys - a->queries;

    if (!a->causal)
        return a->keys;
    return last < 0 ? 0 : last + 1;
}

static bool is_masked(const struct attention *a, const struct query *query, int64_t key)
{
    return a->mask.data &&
           value_get(a->mask.dtype, a->mask.data + query->mask + key * a->mask_key).uint;
}

static double score(const struct attention *a, const struct query *query, int64_t key)
{
    uint32_t last = a->q.rank - 1;
    const char *k = query->k + key * a->k_key;
    double sum = 0;

    for (int64_t i = 0; i < a->q.dims[last]; i++)
        sum += value_get(a->q.dtype, query->q + i * a->q.strides[last]).real *
               value_get(a->k.dtype, k + i * a->k.strides[last]).real;
    sum *= a->scale;
    if (a->softcap != 0)
        sum = a->softcap * tanh(sum / a->softcap);
    if (a->bias.data)
        sum += value_get(a->bias.dtype, a->bias.data + query->bias + key * a->bias_key).real;
    return sum;
}

/* -infinity where every key is hidden; a NaN comes in with the sums. */
static double largest_score(const struct attention *a, const struct query *query)
{
    double largest = -INFINITY;

    for (int64_t key = 0; key < keys_of(a, query); key++)
        if (!is_masked(a, query, key))
            largest = fmax(largest, score(a, query, key));
    return largest;
}

/* Elements first..first + n - 1 of the query's result.  A masked key's weight is 0, by which its
 * value is multiplied: what is not finite shows. */
static void attend(const struct attention *a, const struct query *query, double largest,
                   int64_t first, int64_t n)
{
    uint32_t last = a->v.rank - 1;
    int64_t v_step = a->v.strides[last], y_step = a->y.strides[last];
    union value sums[VALUE_LANES], lanes[VALUE_LANES];
    double total = 0;

    for (int64_t i = 0; i < n; i++)
        sums[i].real = 0;
    for (int64_t key = 0; key < keys_of(a, query); key++) {
        double weight = is_masked(a, query, key) ? 0 : exp(score(a, query, key) - largest);

        total += weight;
        value_load(a->v.dtype, query->v + key * a->v_key + first * v_step, v_step, n, lanes);
        for (int64_t i = 0; i < n; i++)
            sums[i].real += weight * lanes[i].real;
    }
    for (int64_t i = 0; i < n && total != 0; i++)
        sums[i].real /= total;
    value_store(a->y.dtype, query->y + first * y_step, y_step, n, sums);
}

static void attend_query(const struct attention *a, const struct query *query)
{
    double largest = largest_score(a, query);
    int64_t extent = a->v.dims[a->v.rank - 1];

    if (largest == -INFINITY) /* only hidden keys, or none with any weight */
        largest = 0;
    for (int64_t first = 0, n; first < extent; first += n) {
        n = extent - first < VALUE_LANES ? extent - first : VALUE_LANES;
        attend(a, query, largest, first, n);
    }
}

/* All queries of one head; `query` is at the first. */
static void attend_head(const struct attention *a, struct query query)
{
    uint32_t row = a->q.rank - 2;
    int64_t mask_row = view_stride(&a->mask, a->q.rank, row);
    int64_t bias_row = view_stride(&a->bias, a->q.rank, row);

    for (query.place = 0; query.place < a->queries; query.place++) {
        attend_query(a, &query);
        query.q += a->q.strides[row];
        query.y += a->y.strides[row];
        query.mask += mask_row;
        query.bias += bias_row;
    }
}

static void attention_init(struct attention *a, const struct call *call)
{
    uint32_t rank;

    *a = (struct attention){.q = call_in(call, 0),
                            .k = call_in(call, 1),
                            .v = call_in(call, 2),
                            .y = call_out(call, 0),
                            .mask = call_in(call, 3),
                            .bias = call_in(call, 4),
                            .scale = call_real(call, 0),
                            .softcap = call_real(call, 1),
                            .causal = ((const frit_attrs_attention *)call_attrs(call))->causal};
    rank = a->q.rank;
    a->queries = a->q.dims[rank - 2];
    a->keys = a->k.dims[rank - 2];
    a->k_key = a->k.strides[rank - 2];
    a->v_key = a->v.strides[rank - 2];
    a->mask_key = view_stride(&a->mask, rank, rank - 1);
    a->bias_key = view_stride(&a->bias, rank, rank - 1);
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)a->q.dims[rank - 1]);
}

/* The heads of q that share one of k and v follow one another: they are a dim of their own, along
 * which k and v do not move. */
void ref_attention(const struct call *call)
{
    struct attention a;
    uint32_t rank, head;
    int64_t shared;
    struct walk walk;

    attention_init(&a, call);
    rank = a.q.rank;
    head = rank - 3;
    shared = a.k.dims[head] ? a.q.dims[head] / a.k.dims[head] : 0;
    walk_init(&walk, WALK_ELEMENTS, 6);
    for (uint32_t d = 0; d <= head; d++) {
        int64_t mask = view_stride(&a.mask, rank, d), bias = view_stride(&a.bias, rank, d);
        int64_t times = d == head ? shared : 1;

        walk_push(&walk, a.k.dims[d],
                  (int64_t[]){times * a.q.strides[d], times * a.y.strides[d], times * mask,
                              times * bias, a.k.strides[d], a.v.strides[d]});
        if (d == head)
            walk_push(&walk, shared, (int64_t[]){a.q.strides[d], a.y.strides[d], mask, bias, 0, 0});
    }
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        attend_head(&a, (struct query){.q = a.q.data + walk.at[0],
                                       .y = a.y.data + walk.at[1],
                                       .mask = walk.at[2],
                                       .bias = walk.at[3],
                                       .k = a.k.data + walk.at[4],
                                       .v = a.v.data + walk.at[5]});
}
