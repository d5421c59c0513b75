/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of convolutions.  The operands x [n, c, ..] and w have the same number of spatial
 * dims, and a VEC attribute has one entry per spatial dim, in the order of the dims. */
#include "graph/shape/shape_conv.h"

#include <string.h>

#include "base/fail.h"
#include "graph/shape/shape.h"
#include "graph/shape/shape_window.h"

/* The field of the record that lies at `at`. */
static const char *field_name(const struct shape_call *s, const void *at)
{
    const frit_record_info *record = op_record(s->row);
    ptrdiff_t offset = (const char *)at - (const char *)s->call->attrs;
    uint32_t i = 0;

    while (record->field[i].offset != offset)
        i++;
    return record->field[i].name;
}

frit_status shape_vec(const struct shape_call *s, int64_t *vec, uint32_t spatial,
                      int64_t default_value)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (i >= spatial && vec[i])
            return shape_fail(s, "%s has %u entries for %u spatial dim%s", field_name(s, vec),
                              i + 1, spatial, spatial == 1 ? "" : "s");
        if (i < spatial && !vec[i])
            vec[i] = default_value;
    }
    return FRIT_OK;
}

frit_status shape_span(const struct shape_call *s, int64_t kernel, int64_t dilation, int64_t *span)
{
    if (kernel < 1)
        return shape_fail(s, "a window has extent %lld, it must be 1 or more", (long long)kernel);
    TRY(shape_mul(s, kernel - 1, dilation, span));
    return shape_add(s, *span, 1, span);
}

frit_status shape_count_windows(const struct shape_call *s, uint32_t dim, int64_t span,
                                const struct shape_window *w, int64_t *count)
{
    int64_t padded = shape_in(s, 0)->dims[2 + dim] + 2 * w->padding;

    if (span > padded)
        return shape_fail(s,
                          "the window spans %lld elements of dim %u, which with padding has %lld",
                          (long long)span, 2 + dim, (long long)padded);
    *count = (padded - span) / w->stride + 1;
    return FRIT_OK;
}

/* Sets the number of spatial dims, 1 to 3, which x and w must both have. */
static frit_status check_ranks(const struct shape_call *s, uint32_t *spatial)
{
    TRY(shape_rank(s, 0, 3, 5));
    TRY(shape_rank(s, 1, shape_in(s, 0)->rank, shape_in(s, 0)->rank));
    *spatial = shape_in(s, 0)->rank - 2;
    return FRIT_OK;
}

static frit_status check_groups(const struct shape_call *s, int64_t *groups, int64_t in,
                                int64_t out)
{
    *groups = *groups ? *groups : 1;
    if (in % *groups || out % *groups)
        return shape_fail(s, "%lld groups do not divide %lld and %lld channels", (long long)*groups,
                          (long long)in, (long long)out);
    return FRIT_OK;
}

/* Sets the dims of the result, and the attributes that have their default. */
static frit_status conv_dims(const struct shape_call *s, int64_t *dims)
{
    frit_attrs_conv *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0), *w = shape_in(s, 1);
    uint32_t spatial;

    TRY(check_ranks(s, &spatial));
    TRY(shape_vec(s, a->stride, spatial, 1));
    TRY(shape_vec(s, a->padding, spatial, 0));
    TRY(shape_vec(s, a->dilation, spatial, 1));
    TRY(check_groups(s, &a->groups, x->dims[1], w->dims[0]));
    if (w->dims[1] != x->dims[1] / a->groups)
        return shape_fail(s, "dim 1 of w is %lld, it must be x's %lld channels / %lld groups",
                          (long long)w->dims[1], (long long)x->dims[1], (long long)a->groups);
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (uint32_t i = 0; i < spatial; i++) {
        const struct shape_window window = {.stride = a->stride[i], .padding = a->padding[i]};
        int64_t span = 0;

        TRY(shape_span(s, w->dims[2 + i], a->dilation[i], &span));
        TRY(shape_count_windows(s, i, span, &window, &dims[2 + i]));
    }
    return FRIT_OK;
}

frit_status shape_rule_conv(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(conv_dims(s, dims));
    TRY(shape_dims(s, 2, 1, &shape_in(s, 1)->dims[0]));
    return shape_set(s, 0, shape_in(s, 0)->rank, dims);
}

static frit_status conv_grad(struct shape_call *s, uint32_t like)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(conv_dims(s, dims));
    TRY(shape_dims(s, 2, shape_in(s, 0)->rank, dims));
    return shape_set_like(s, 0, like);
}

frit_status shape_rule_conv_grad_x(struct shape_call *s)
{
    return conv_grad(s, 0);
}

frit_status shape_rule_conv_grad_w(struct shape_call *s)
{
    return conv_grad(s, 1);
}

/* An extent of the result: (n - 1) * stride + span - 2 * padding + padding_out. */
static frit_status transposed_extent(const struct shape_call *s, uint32_t i, int64_t *extent)
{
    const frit_attrs_conv_transpose *a = s->call->attrs;
    int64_t n = shape_in(s, 0)->dims[2 + i], span = 0;

    if (n < 1)
        return shape_fail(s, "dim %u of x is empty", 2 + i);
    if (a->padding_out[i] >= a->stride[i] && a->padding_out[i] >= a->dilation[i])
        return shape_fail(s, "padding_out %lld is not below stride or dilation",
                          (long long)a->padding_out[i]);
    TRY(shape_span(s, shape_in(s, 1)->dims[2 + i], a->dilation[i], &span));
    TRY(shape_mul(s, n - 1, a->stride[i], extent));
    TRY(shape_add(s, *extent, span, extent));
    TRY(shape_add(s, *extent, a->padding_out[i] - 2 * a->padding[i], extent));
    if (*extent < 1)
        return shape_fail(s, "padding crops dim %u of the result to nothing", 2 + i);
    return FRIT_OK;
}

static frit_status conv_transpose_dims(const struct shape_call *s, int64_t *dims)
{
    frit_attrs_conv_transpose *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0), *w = shape_in(s, 1);
    uint32_t spatial;

    TRY(check_ranks(s, &spatial));
    TRY(shape_vec(s, a->stride, spatial, 1));
    TRY(shape_vec(s, a->padding, spatial, 0));
    TRY(shape_vec(s, a->padding_out, spatial, 0));
    TRY(shape_vec(s, a->dilation, spatial, 1));
    TRY(check_groups(s, &a->groups, x->dims[1], x->dims[1]));
    if (w->dims[0] != x->dims[1])
        return shape_fail(s, "dim 0 of w is %lld, it must be x's %lld channels",
                          (long long)w->dims[0], (long long)x->dims[1]);
    dims[0] = x->dims[0];
    TRY(shape_mul(s, w->dims[1], a->groups, &dims[1]));
    for (uint32_t i = 0; i < spatial; i++)
        TRY(transposed_extent(s, i, &dims[2 + i]));
    return FRIT_OK;
}

frit_status shape_rule_conv_transpose(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(conv_transpose_dims(s, dims));
    TRY(shape_dims(s, 2, 1, &dims[1]));
    return shape_set(s, 0, shape_in(s, 0)->rank, dims);
}

frit_status shape_rule_conv_transpose_grad_w(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(conv_transpose_dims(s, dims));
    TRY(shape_dims(s, 2, shape_in(s, 0)->rank, dims));
    return shape_set_like(s, 0, 1);
}

/* ---- two spatial dims ---- */

/* x [n, c, h, w], offset [n, 2 * offset_groups * kh * kw, ..], w [o, c / groups, kh, kw],
 * mask [n, offset_groups * kh * kw, ..], bias [o]. */
static frit_status deform_dims(const struct shape_call *s, int64_t *dims)
{
    frit_attrs_deform *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0), *w = shape_in(s, 2);
    int64_t samples[4], span = 0;

    TRY(shape_rank(s, 0, 4, 4));
    TRY(shape_rank(s, 2, 4, 4));
    TRY(shape_vec(s, a->stride, 2, 1));
    TRY(shape_vec(s, a->padding, 2, 0));
    TRY(shape_vec(s, a->dilation, 2, 1));
    TRY(check_groups(s, &a->groups, x->dims[1], w->dims[0]));
    TRY(check_groups(s, &a->offset_groups, x->dims[1], x->dims[1]));
    if (w->dims[1] != x->dims[1] / a->groups)
        return shape_fail(s, "dim 1 of w is %lld, it must be x's %lld channels / %lld groups",
                          (long long)w->dims[1], (long long)x->dims[1], (long long)a->groups);
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (uint32_t i = 0; i < 2; i++) {
        const struct shape_window window = {.stride = a->stride[i], .padding = a->padding[i]};

        TRY(shape_span(s, w->dims[2 + i], a->dilation[i], &span));
        TRY(shape_count_windows(s, i, span, &window, &dims[2 + i]));
    }
    memcpy(samples, dims, sizeof(samples));
    TRY(shape_mul(s, w->dims[2], w->dims[3], &samples[1]));
    TRY(shape_mul(s, samples[1], a->offset_groups, &samples[1]));
    TRY(shape_dims(s, 3, 4, samples));
    TRY(shape_mul(s, samples[1], 2, &samples[1]));
    TRY(shape_dims(s, 1, 4, samples));
    return shape_dims(s, 4, 1, &w->dims[0]);
}

frit_status shape_rule_deform_conv(struct shape_call *s)
{
    int64_t dims[4];

    TRY(deform_dims(s, dims));
    return shape_set(s, 0, 4, dims);
}

frit_status shape_rule_deform_grad(struct shape_call *s)
{
    int64_t dims[4];

    TRY(deform_dims(s, dims));
    TRY(shape_dims(s, 5, 4, dims));
    for (uint32_t k = 0; k < 5; k++) { /* outputs are in the order of the operands */
        if (k > 2 && (s->call->wanted >> k & 1) && !shape_has(s, k))
            return shape_fail(s, "result %s is wanted without operand %s", s->row->out[k].name,
                              s->row->in[k].name);
        TRY(shape_set_like(s, k, k));
    }
    return FRIT_OK;
}

frit_status shape_rule_unfold4d(struct shape_call *s)
{
    frit_attrs_window *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[3] = {0, 1, 1}, span = 0, count = 0;

    TRY(shape_rank(s, 0, 4, 4));
    TRY(shape_vec(s, a->kernel, 2, 0));
    TRY(shape_vec(s, a->stride, 2, 1));
    TRY(shape_vec(s, a->padding, 2, 0));
    TRY(shape_vec(s, a->dilation, 2, 1));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (uint32_t i = 0; i < 2; i++) {
        const struct shape_window window = {.stride = a->stride[i], .padding = a->padding[i]};

        TRY(shape_span(s, a->kernel[i], a->dilation[i], &span));
        TRY(shape_count_windows(s, i, span, &window, &count));
        TRY(shape_mul(s, dims[1], a->kernel[i], &dims[1]));
        TRY(shape_mul(s, dims[2], count, &dims[2]));
    }
    return shape_set(s, 0, 3, dims);
}
