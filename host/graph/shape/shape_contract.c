/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of contractions without windows, of spectra and of losses. */
#include <string.h>

#include "base/fail.h"
#include "graph/shape/shape.h"

/* All but the last `n` dims. */
static struct op_type leading(const struct op_type *x, uint32_t n)
{
    struct op_type type = *x;

    type.rank -= n;
    return type;
}

frit_status shape_rule_matmul(struct shape_call *s)
{
    const struct op_type *a = shape_in(s, 0), *b = shape_in(s, 1);
    struct op_type batch;
    uint32_t rank = 0, clash;
    int64_t dims[FRIT_MAX_RANK];

    TRY(shape_rank(s, 0, 2, FRIT_MAX_RANK));
    TRY(shape_rank(s, 1, 2, FRIT_MAX_RANK));
    if (a->dims[a->rank - 1] != b->dims[b->rank - 2])
        return shape_fail(s, "the last dim of a is %lld, the last but one of b %lld",
                          (long long)a->dims[a->rank - 1], (long long)b->dims[b->rank - 2]);
    batch = leading(a, 2);
    shape_broadcast_dims(&rank, dims, &batch, &clash);
    batch = leading(b, 2);
    if (!shape_broadcast_dims(&rank, dims, &batch, &clash))
        return shape_fail(s, "leading dims do not broadcast (dim %u of the result)", clash);
    dims[rank] = a->dims[a->rank - 2];
    dims[rank + 1] = b->dims[b->rank - 1];
    return shape_set(s, 0, rank + 2, dims);
}

/* x [.., i] and w [i, o]; `dims` gets x's with o at the end. */
static frit_status linear_dims(const struct shape_call *s, int64_t *dims)
{
    const struct op_type *x = shape_in(s, 0), *w = shape_in(s, 1);

    TRY(shape_rank(s, 0, 1, FRIT_MAX_RANK));
    TRY(shape_rank(s, 1, 2, 2));
    if (x->dims[x->rank - 1] != w->dims[0])
        return shape_fail(s, "the last dim of x is %lld, the first of w %lld",
                          (long long)x->dims[x->rank - 1], (long long)w->dims[0]);
    memcpy(dims, x->dims, sizeof(x->dims));
    dims[x->rank - 1] = w->dims[1];
    return FRIT_OK;
}

frit_status shape_rule_linear(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(linear_dims(s, dims));
    TRY(shape_dims(s, 2, 1, &shape_in(s, 1)->dims[1]));
    return shape_set(s, 0, shape_in(s, 0)->rank, dims);
}

static frit_status linear_grad(struct shape_call *s, uint32_t like)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(linear_dims(s, dims));
    TRY(shape_dims(s, 2, shape_in(s, 0)->rank, dims));
    return shape_set_like(s, 0, like);
}

frit_status shape_rule_linear_grad_x(struct shape_call *s)
{
    return linear_grad(s, 0);
}

frit_status shape_rule_linear_grad_w(struct shape_call *s)
{
    return linear_grad(s, 1);
}

/* Mask and bias must stretch to the scores, and not the other way round. */
static frit_status check_scores(const struct shape_call *s, uint32_t index,
                                const struct op_type *scores)
{
    uint32_t rank = scores->rank, clash;
    int64_t dims[FRIT_MAX_RANK];
    char text[128];

    memcpy(dims, scores->dims, sizeof(dims));
    if (!shape_has(s, index) ||
        (shape_broadcast_dims(&rank, dims, shape_in(s, index), &clash) && rank == scores->rank &&
         memcmp(dims, scores->dims, rank * sizeof(dims[0])) == 0))
        return FRIT_OK;
    return shape_fail(s, "%s does not broadcast to the scores %s", s->row->in[index].name,
                      op_type_text(scores, text, sizeof(text)));
}

static frit_status check_attention(const struct shape_call *s)
{
    const struct op_type *q = shape_in(s, 0), *k = shape_in(s, 1), *v = shape_in(s, 2);
    uint32_t last = q->rank - 1;
    struct op_type scores = *q;

    TRY(shape_rank(s, 0, 3, FRIT_MAX_RANK));
    TRY(shape_rank(s, 1, q->rank, q->rank));
    TRY(shape_rank(s, 2, q->rank, q->rank));
    if (memcmp(k->dims, v->dims, last * sizeof(k->dims[0])) != 0)
        return shape_fail(s, "k and v must agree in all dims but the last");
    if (memcmp(q->dims, k->dims, (last - 2) * sizeof(q->dims[0])) != 0)
        return shape_fail(s, "q and k must agree in the dims before the heads");
    if (q->dims[last] != k->dims[last])
        return shape_fail(s, "q and k must agree in the last dim");
    if (k->dims[last - 2] == 0 ? q->dims[last - 2] != 0 : q->dims[last - 2] % k->dims[last - 2])
        return shape_fail(s, "%lld heads of q are not a multiple of %lld of k",
                          (long long)q->dims[last - 2], (long long)k->dims[last - 2]);
    scores.dims[last] = k->dims[last - 1];
    scores.dtype = shape_in(s, 3)->dtype;
    TRY(check_scores(s, 3, &scores));
    scores.dtype = q->dtype;
    return check_scores(s, 4, &scores);
}

frit_status shape_rule_attention(struct shape_call *s)
{
    const struct op_type *v = shape_in(s, 2);

    TRY(check_attention(s));
    TRY(shape_set_like(s, 0, 0));
    s->out[0].dims[v->rank - 1] = v->dims[v->rank - 1];
    return FRIT_OK;
}

frit_status shape_rule_attention_grad(struct shape_call *s)
{
    const struct op_type *q = shape_in(s, 0), *v = shape_in(s, 2);
    int64_t dims[FRIT_MAX_RANK];

    TRY(check_attention(s));
    memcpy(dims, q->dims, sizeof(dims));
    dims[q->rank - 1] = v->dims[v->rank - 1];
    TRY(shape_dims(s, 5, q->rank, dims));
    for (uint32_t k = 0; k < 3; k++)
        TRY(shape_set_like(s, k, k));
    if (!(s->call->wanted >> 3 & 1))
        return FRIT_OK;
    if (!shape_has(s, 4))
        return shape_fail(s, "result dbias is wanted without operand bias");
    return shape_set_like(s, 3, 4);
}

/* ---- spectra ---- */

static frit_status spectrum(struct shape_call *s, int64_t n, int64_t extent)
{
    const frit_attrs_fft *a = s->call->attrs;

    if (n < 1)
        return shape_fail(s, "the signal has length %lld, it must be 1 or more", (long long)n);
    for (uint32_t k = 0; s->row->out[k].name; k++) {
        TRY(shape_set_like(s, k, 0));
        s->out[k].dims[a->axis] = extent;
    }
    return FRIT_OK;
}

frit_status shape_rule_rfft(struct shape_call *s)
{
    frit_attrs_fft *a = s->call->attrs;

    TRY(shape_axis(s, &a->axis, shape_in(s, 0)->rank));
    a->n = a->n ? a->n : shape_in(s, 0)->dims[a->axis];
    return spectrum(s, a->n, a->n / 2 + 1);
}

frit_status shape_rule_irfft(struct shape_call *s)
{
    frit_attrs_fft *a = s->call->attrs;

    TRY(shape_rule_same_all(s));
    TRY(shape_axis(s, &a->axis, shape_in(s, 0)->rank));
    a->n = a->n ? a->n : 2 * (shape_in(s, 0)->dims[a->axis] - 1);
    return spectrum(s, a->n, a->n);
}

/* ---- losses ---- */

/* log_probs [t, n, classes], targets [n, length], lengths [n]. */
frit_status shape_rule_ctc_loss(struct shape_call *s)
{
    const frit_attrs_ctc *a = s->call->attrs;
    const struct op_type *log_probs = shape_in(s, 0);
    const int64_t *batch = &log_probs->dims[1];

    TRY(shape_rank(s, 0, 3, 3));
    TRY(shape_rank(s, 1, 2, 2));
    if (shape_in(s, 1)->dims[0] != *batch)
        return shape_fail(s, "targets must have %lld rows, one per sequence", (long long)*batch);
    TRY(shape_dims(s, 2, 1, batch));
    TRY(shape_dims(s, 3, 1, batch));
    if (a->blank >= log_probs->dims[2])
        return shape_fail(s, "blank is %lld of %lld classes", (long long)a->blank,
                          (long long)log_probs->dims[2]);
    return shape_set(s, 0, 1, batch);
}

frit_status shape_rule_ctc_grad(struct shape_call *s)
{
    TRY(shape_rule_ctc_loss(s));
    TRY(shape_dims(s, 4, 1, &shape_in(s, 0)->dims[1]));
    return shape_set_like(s, 0, 0);
}
