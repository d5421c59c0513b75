/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and what stands around it. */
#include <math.h>
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"

/* An attention that is being translated; tensors are [batch, heads, length, size]. */
struct attending {
    val *q, *k, *v;
    val *bias; /* added to the scores; NULL: none */
    val *
        offset; /* of the first query among the keys, per batch as [batch, 1, 1, 1]; NULL: `past` */
    int64_t past;
    double scale, softcap;
};

/* What the result qk_matmul_output shows. */
enum { SHOW_PRODUCT, SHOW_CAPPED, SHOW_BIASED, SHOW_SOFTMAX };

static val *split_heads(struct import_node *n, val *x, const char *attr)
{
    int64_t heads = attr_int(n, attr, 0);
    static const int64_t turn[] = {0, 2, 1, 3};

    if (!x || x->type.rank != 3)
        return x;
    if (heads < 1 || x->type.dims[2] % heads) {
        problem_node(n, "%s %lld does not divide %lld", attr, (long long)heads,
                     (long long)x->type.dims[2]);
        return NULL;
    }
    x = e_reshape(n, x,
                  FRIT_SHAPE(x->type.dims[0], x->type.dims[1], heads, x->type.dims[2] / heads));
    return e_permute(n, x, turn);
}

/* Adds a bias of -infinity where `allowed` is false. */
static void mask(struct import_node *n, struct attending *a, val *allowed)
{
    frit_dims dims = e_dims(allowed);
    val *bias =
        e_where(n, allowed, e_full(n, e_dtype(a->q), e_num(n, 0), dims), e_num(n, -INFINITY));

    a->bias = a->bias ? e_add(n, a->bias, bias) : bias;
}

/* The mask of operand 3, padded to all keys. */
static void add_mask(struct import_node *n, struct attending *a)
{
    val *given = e_in(n, 3);
    int64_t high[FRIT_MAX_RANK] = {0}, keys = a->k ? a->k->type.dims[2] : 0;
    bool truth = e_dtype(given) == FRIT_BOOL;

    if (!given || !given->type.rank || n->failed)
        return;
    high[given->type.rank - 1] = keys - given->type.dims[given->type.rank - 1];
    given = e_pad(n, given, truth ? e_whole(n, 0) : e_num(n, -INFINITY), NULL, high);
    if (truth)
        mask(n, a, given);
    else
        a->bias = e_like(n, given, a->q);
}

/* How far a query's place is behind a key's: [q, k], or [batch, 1, q, k]. */
static val *distance(struct import_node *n, const struct attending *a)
{
    val *queries = e_arange(n, FRIT_I64, e_whole(n, a->past), e_whole(n, 1), a->q->type.dims[2]);
    val *keys = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), a->k->type.dims[2]);
    val *d = e_sub(n, e_unsqueeze(n, queries, 1), e_unsqueeze(n, keys, 0));

    return a->offset ? e_add(n, d, a->offset) : d;
}

static void mask_places(struct import_node *n, struct attending *a, bool causal)
{
    int64_t left = attr_int(n, "left_window_size", -1),
            right = attr_int(n, "right_window_size", -1);
    val *d;

    if (n->failed || (!causal && left < 0 && right < 0))
        return;
    d = distance(n, a);
    if (causal)
        mask(n, a, e_bin(n, FRIT_OP_ge, d, e_whole(n, 0)));
    if (left >= 0)
        mask(n, a, e_bin(n, FRIT_OP_le, d, e_whole(n, left)));
    if (right >= 0)
        mask(n, a, e_bin(n, FRIT_OP_ge, d, e_whole(n, -right)));
}

/* Operand 6: how many keys of each batch are there. */
static void mask_missing(struct import_node *n, struct attending *a, bool causal)
{
    val *lengths = e_cast(n, e_in(n, 6), FRIT_I64), *keys;

    if (!lengths || n->failed)
        return;
    lengths = e_reshape(n, lengths, FRIT_SHAPE(e_elements(lengths), 1, 1, 1));
    keys = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), a->k->type.dims[2]);
    keys = e_reshape(n, keys, FRIT_SHAPE(1, 1, 1, a->k->type.dims[2]));
    if (causal || attr_int(n, "left_window_size", -1) >= 0 ||
        attr_int(n, "right_window_size", -1) >= 0)
        a->offset = e_sub(n, lengths, e_whole(n, a->q->type.dims[2]));
    mask(n, a, e_bin(n, FRIT_OP_lt, keys, lengths));
}

/* The table's op, where nothing in between is wanted. */
static val *attend_whole(struct import_node *n, const struct attending *a)
{
    frit_attrs_attention attrs = E_ATTRS(attention);
    frit_dims dims =
        FRIT_SHAPE(a->q->type.dims[0], a->q->type.dims[1], a->q->type.dims[2], a->k->type.dims[2]);

    attrs.scale = a->scale;
    attrs.softcap = a->softcap;
    return E_OP(n, FRIT_OP_attention, &attrs, a->q, a->k, a->v, e_none(n),
                a->bias ? e_expand(n, a->bias, dims) : e_none(n));
}

/* Each head of keys and values serves several of the queries. */
static val *repeat_heads(struct import_node *n, val *x, int64_t heads)
{
    const int64_t *d = x ? x->type.dims : NULL;
    val *wide;

    if (!x || d[1] == heads || !d[1])
        return x;
    wide = e_unsqueeze(n, x, 2);
    wide = e_expand(n, wide, FRIT_SHAPE(d[0], d[1], heads / d[1], d[2], d[3]));
    return e_reshape(n, wide, FRIT_SHAPE(d[0], heads, d[2], d[3]));
}

/* Step by step, with the scores of one of them as *shown. */
static val *attend_steps(struct import_node *n, const struct attending *a, val **shown)
{
    int64_t show = attr_int(n, "qk_matmul_output_mode", SHOW_PRODUCT), heads = a->q->type.dims[1];
    int32_t precision = (int32_t)attr_int(n, "softmax_precision", 0);
    val *k = repeat_heads(n, a->k, heads), *v = repeat_heads(n, a->v, heads), *scores, *weights;

    scores = e_matmul(n, e_mul(n, a->q, e_num(n, sqrt(a->scale))),
                      e_swap_last(n, e_mul(n, k, e_num(n, sqrt(a->scale)))));
    if (a->softcap > 0)
        scores = e_mul(n, e_un(n, FRIT_OP_tanh, e_div(n, scores, e_num(n, a->softcap))),
                       e_num(n, a->softcap));
    *shown = scores;
    if (a->bias)
        scores = e_add(n, scores, a->bias);
    if (show == SHOW_BIASED)
        *shown = scores;
    weights =
        e_cast(n, scores,
               precision && tensor_dtype(precision) ? tensor_dtype(precision) : e_dtype(scores));
    weights = e_softmax(n, FRIT_OP_softmax, weights, 3);
    if (a->bias) { /* a query that sees no key gives 0 */
        val *best = e_reduce(n, FRIT_OP_max, a->bias, FRIT_AXES(e_rank(a->bias) - 1), true);

        weights = e_where(n, e_bin(n, FRIT_OP_eq, best, e_num(n, -INFINITY)), e_num(n, 0), weights);
    }
    weights = e_like(n, weights, a->q);
    if (show == SHOW_SOFTMAX)
        *shown = weights;
    return e_matmul(n, weights, v);
}

void onnx_row_attention(struct import_node *n, uint32_t arg)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    bool causal = attr_int(n, "is_causal", 0) != 0, flat = e_rank(e_in(n, 0)) == 3;
    struct attending a = {.softcap = attr_float(n, "softcap", 0)};
    val *y, *shown = NULL;

    (void)arg;
    a.q = split_heads(n, e_in(n, 0), "q_num_heads");
    a.k = split_heads(n, e_in(n, 1), "kv_num_heads");
    a.v = split_heads(n, e_in(n, 2), "kv_num_heads");
    if (e_has(n, 4)) {
        a.past = e_rank(e_in(n, 4)) == 4 ? e_in(n, 4)->type.dims[2] : 0;
        a.k = e_cat(n, 2, (val *[]){e_in(n, 4), a.k}, 2);
        a.v = e_cat(n, 2, (val *[]){e_in(n, 5), a.v}, 2);
    }
    if (n->failed || e_rank(a.q) != 4 || e_rank(a.k) != 4 || e_rank(a.v) != 4) {
        problem_node(n, "operands have not 3 or 4 dims");
        return;
    }
    a.scale = attr_float(n, "scale", 1 / sqrt((double)a.q->type.dims[3]));
    if (e_has(n, 3))
        add_mask(n, &a);
    if (e_has(n, 6))
        mask_missing(n, &a, causal);
    mask_places(n, &a, causal);
    y = n->failed ? NULL
        : e_wants(n, 3) || attr_has(n, "softmax_precision") || a.scale <= 0
            ? attend_steps(n, &a, &shown)
            : attend_whole(n, &a);
    if (flat && y) {
        y = e_permute(n, y, turn);
        y = y ? e_reshape(
                    n, y,
                    FRIT_SHAPE(y->type.dims[0], y->type.dims[1], y->type.dims[2] * y->type.dims[3]))
              : NULL;
    }
    e_out(n, 0, y);
    e_out(n, 1, a.k);
    e_out(n, 2, a.v);
    e_out(n, 3, shown);
}

/* ---- rotary embedding ---- */

/* Every other element from `first` on of the last dim, or a half of it. */
static val *rotary_part(struct import_node *n, val *x, int64_t size, bool pairs, int64_t first)
{
    uint32_t axis = e_rank(x) - 1;

    return pairs ? e_slice(n, x, axis, first, size, 2)
                 : e_slice(n, x, axis, first * size / 2, (first + 1) * size / 2, 1);
}

void onnx_row_rotary_embedding(struct import_node *n, uint32_t arg)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    val *x = e_in(n, 0), *cosine = e_in(n, 1), *sine = e_in(n, 2), *rest, *a, *b, *real, *imaginary,
        *y;
    bool pairs = attr_int(n, "interleaved", 0) != 0, heads_first = e_rank(x) == 4;
    int64_t heads = attr_int(n, "num_heads", 0), size;
    frit_dims dims = e_dims(x);

    (void)arg;
    if (!x || !cosine || !sine)
        return;
    if (heads_first)
        x = e_permute(n, x, turn);
    else if (heads > 0 && dims.rank == 3 && dims.dim[2] % heads == 0)
        x = e_reshape(n, x, FRIT_SHAPE(dims.dim[0], dims.dim[1], heads, dims.dim[2] / heads));
    if (e_rank(x) != 4) {
        problem_node(n, "num_heads %lld of an operand with %lld dims", (long long)heads,
                     (long long)dims.rank);
        return;
    }
    size = attr_int(n, "rotary_embedding_dim", 0);
    size = size > 0 && size <= x->type.dims[3] ? size : x->type.dims[3];
    if (e_has(n, 3)) {
        val *places = e_cast(n, e_in(n, 3), FRIT_I64);

        cosine = E_OP(n, FRIT_OP_embedding, NULL, cosine, places);
        sine = E_OP(n, FRIT_OP_embedding, NULL, sine, places);
    }
    cosine = e_rank(cosine) == 3 ? e_unsqueeze(n, cosine, 2) : cosine;
    sine = e_rank(sine) == 3 ? e_unsqueeze(n, sine, 2) : sine;
    a = rotary_part(n, x, size, pairs, 0);
    b = rotary_part(n, x, size, pairs, 1);
    real = e_sub(n, e_mul(n, cosine, a), e_mul(n, sine, b));
    imaginary = e_add(n, e_mul(n, sine, a), e_mul(n, cosine, b));
    if (pairs) {
        y = e_cat(n, 4, (val *[]){e_unsqueeze(n, real, 4), e_unsqueeze(n, imaginary, 4)}, 2);
        y = y ? e_reshape(n, y, FRIT_SHAPE(x->type.dims[0], x->type.dims[1], x->type.dims[2], size))
              : NULL;
    } else {
        y = e_cat(n, 3, (val *[]){real, imaginary}, 2);
    }
    if (size < x->type.dims[3]) {
        rest = e_slice(n, x, 3, size, x->type.dims[3], 1);
        y = e_cat(n, 3, (val *[]){y, rest}, 2);
    }
    e_out(n, 0, heads_first ? e_permute(n, y, turn) : e_reshape(n, y, dims));
}

/* ---- state ---- */

/* A depthwise convolution over what was and what is new; the end of that is the next state. */
void onnx_row_causal_conv(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *w = e_in(n, 1), *y;
    frit_attrs_conv attrs = E_ATTRS(conv);
    int64_t low[FRIT_MAX_RANK] = {0}, past;

    (void)arg;
    if (!x || !w || x->type.rank != 3 || w->type.rank != 3) {
        problem_node(n, "operands have not three dims");
        return;
    }
    past = w->type.dims[2] - 1;
    low[2] = past;
    if (e_has(n, 3))
        x = e_cat(n, 2, (val *[]){e_in(n, 3), x}, 2);
    else
        x = e_pad(n, x, e_num(n, 0), low, NULL);
    if (n->failed)
        return;
    attrs.groups = x->type.dims[1];
    y = E_OP(n, FRIT_OP_conv, &attrs, x, w, e_has(n, 2) ? e_in(n, 2) : e_none(n));
    if (!attr_is(n, "activation", "none", "none"))
        y = e_un(n, FRIT_OP_silu, y);
    e_out(n, 0, y);
    e_out(n, 1, e_slice(n, x, 2, x->type.dims[2] - past, x->type.dims[2], 1));
}

/* [batch, length, heads * size] as [batch, heads, length, size]; f32. */
static val *heads_of(struct import_node *n, val *x, int64_t heads)
{
    static const int64_t turn[] = {0, 2, 1, 3};

    if (!x || x->type.rank != 3 || heads < 1 || x->type.dims[2] % heads) {
        problem_node(n, "%lld heads do not divide an operand", (long long)heads);
        return NULL;
    }
    x = e_cast(n, x, FRIT_F32);
    x = e_reshape(n, x,
                  FRIT_SHAPE(x->type.dims[0], x->type.dims[1], heads, x->type.dims[2] / heads));
    return e_permute(n, x, turn);
}

/* One step as [batch, heads, 1, size]. */
static val *at_step(struct import_node *n, val *x, int64_t t)
{
    return x ? e_slice(n, x, 2, t, t + 1, 1) : NULL;
}

/* A state [batch, heads, key, value] is decayed, corrected and added to, step by step. */
void onnx_row_linear_attention(struct import_node *n, uint32_t arg)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    int64_t heads = attr_int(n, "q_num_heads", 0), shared = attr_int(n, "kv_num_heads", 0);
    const char *rule = attr_text(n, "update_rule", "gated_delta");
    bool corrects = e_has(n, 5);
    val *q = heads_of(n, e_in(n, 0), heads), *k = heads_of(n, e_in(n, 1), shared);
    val *v = heads_of(n, e_in(n, 2), shared), *decay = NULL, *beta = NULL, *state, **outs, *y;
    uint32_t state_type = e_has(n, 3) ? e_dtype(e_in(n, 3)) : e_dtype(e_in(n, 0));
    double scale = attr_float(n, "scale", 0);

    (void)arg;
    if (n->failed || shared < 1 || heads % shared || q->type.dims[2] > 4096) {
        problem_node(n, "heads do not divide, or more than 4096 steps");
        return;
    }
    if (e_has(n, 4) != !!strstr(rule, "gated") || corrects != !!strstr(rule, "delta")) {
        problem_node(n, "update_rule '%.40s' %s a decay and %s a beta", rule,
                     e_has(n, 4) ? "with" : "without", corrects ? "with" : "without");
        return;
    }
    if (e_has(n, 4))
        decay = heads_of(n, e_in(n, 4), shared);
    if (corrects)
        beta = heads_of(n, e_in(n, 5), e_in(n, 5)->type.dims[2]);
    state = e_has(n, 3)
                ? e_cast(n, e_in(n, 3), FRIT_F32)
                : e_full(n, FRIT_F32, e_num(n, 0),
                         FRIT_SHAPE(q->type.dims[0], shared, k->type.dims[3], v->type.dims[3]));
    outs = import_alloc(n->import, ((size_t)q->type.dims[2] + 1) * sizeof(val *));
    scale = scale != 0 ? scale : 1 / sqrt((double)k->type.dims[3]);
    for (int64_t t = 0; outs && t < q->type.dims[2] && !n->failed; t++) {
        val *key = e_swap_last(n, at_step(n, k, t)), *value = at_step(n, v, t);

        if (decay) {
            val *rate = e_un(n, FRIT_OP_exp, e_swap_last(n, at_step(n, decay, t)));

            state = e_mul(n, state, rate);
        }
        if (corrects) {
            val *seen = e_matmul(n, e_swap_last(n, key), state);

            value = e_mul(n, e_sub(n, value, seen), at_step(n, beta, t));
        }
        state = e_add(n, state, e_mul(n, key, value));
        outs[t] =
            e_matmul(n, e_mul(n, at_step(n, q, t), e_num(n, scale)), repeat_heads(n, state, heads));
    }
    if (n->failed || !outs)
        return;
    y = e_permute(n, e_cat(n, 2, outs, (uint32_t)q->type.dims[2]), turn);
    if (y)
        y = e_reshape(
            n, y, FRIT_SHAPE(y->type.dims[0], y->type.dims[1], y->type.dims[2] * y->type.dims[3]));
    e_out(n, 0, e_like(n, y, e_in(n, 0)));
    e_out(n, 1, e_cast(n, state, state_type));
}

/* The update at the write index of each batch, along the axis. */
void onnx_row_tensor_scatter(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *update = e_in(n, 1), *index;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", -2), e_rank(x)) : 0;
    frit_attrs_scatter attrs = E_ATTRS(scatter);
    frit_dims line = {.rank = e_rank(x)}, batch = line;

    (void)arg;
    if (n->failed || !x || !update || update->type.rank != line.rank)
        return;
    for (uint32_t d = 0; d < line.rank; d++) {
        line.dim[d] = d == axis ? update->type.dims[d] : 1;
        batch.dim[d] = d == 0 ? x->type.dims[0] : 1;
    }
    index = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), line.dim[axis]);
    index = e_reshape(n, index, line);
    if (e_has(n, 2))
        index = e_add(n, index, e_reshape(n, e_in(n, 2), batch));
    if (attr_is(n, "mode", "linear", "circular"))
        index = e_bin(n, FRIT_OP_rem, index, e_whole(n, x->type.dims[axis]));
    attrs.axis = axis;
    e_out(n, 0, E_OP(n, FRIT_OP_scatter, &attrs, x, e_expand(n, index, e_dims(update)), update));
}

/* ---- attention with graphs of the model in between ---- */

/* The scores or weights as the graph of this attribute changes them; without one as they are. */
static val *changed(struct import_node *n, val *x, const char *attr)
{
    const Onnx__GraphProto *graph = attr_graph(n, attr);
    val *y = NULL;

    if (!x || !graph)
        return x;
    if (!import_subgraph(n, graph, &x, 1, &y, 1))
        return NULL;
    if (y->type.dtype != x->type.dtype || y->type.rank != x->type.rank ||
        memcmp(y->type.dims, x->type.dims, x->type.rank * sizeof(x->type.dims[0])) != 0) {
        problem_node(n, "%s changes the dims or the type", attr);
        return NULL;
    }
    return y;
}

static val *flex_steps(struct import_node *n, const struct attending *a, uint32_t precision)
{
    const int64_t heads = a->q->type.dims[1];
    val *k = repeat_heads(n, a->k, heads), *v = repeat_heads(n, a->v, heads), *x;

    x = e_cast(n, e_matmul(n, a->q, e_swap_last(n, k)), precision);
    x = changed(n, e_mul(n, x, e_num(n, a->scale)), "score_mod");
    x = changed(n, e_softmax(n, FRIT_OP_softmax, x, 3), "prob_mod");
    return e_matmul(n, e_like(n, x, v), v);
}

void onnx_row_flex_attention(struct import_node *n, uint32_t arg)
{
    struct attending a = {.q = e_in(n, 0), .k = e_in(n, 1), .v = e_in(n, 2)};
    const int32_t given = (int32_t)attr_int(n, "softmax_precision", 0);
    const uint32_t own = e_dtype(a.q) == FRIT_F64 ? FRIT_F64 : FRIT_F32;
    const uint32_t precision = given ? tensor_dtype(given) : own;

    (void)arg;
    if (n->failed)
        return;
    if (a.q->type.rank != 4 || a.k->type.rank != 4 || a.v->type.rank != 4 || !a.k->type.dims[1] ||
        a.q->type.dims[1] % a.k->type.dims[1]) {
        problem_node(n, "operands of other than four dims, or heads that do not divide");
        return;
    }
    a.scale = attr_float(n, "scale", 1 / sqrt((double)a.q->type.dims[3]));
    if (attr_graph(n, "score_mod") || attr_graph(n, "prob_mod") || precision != own || a.scale <= 0)
        e_out(n, 0, flex_steps(n, &a, precision));
    else
        e_out(n, 0, attend_whole(n, &a));
}
