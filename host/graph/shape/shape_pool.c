/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of pooling and resampling, x [n, c, ..]. */
#include <string.h>

#include "base/fail.h"
#include "graph/shape/shape.h"
#include "graph/shape/shape_conv.h"
#include "graph/shape/shape_window.h"

/* What avg_pool and max_pool have in common; the entries are those of the record. */
struct pool_window {
    int64_t *kernel, *stride, *padding;
    const int64_t *dilation;
    bool ceil;
};

static frit_status pool_extent(const struct shape_call *s, const struct pool_window *p, uint32_t i,
                               int64_t *extent)
{
    const struct shape_window window = {.stride = p->stride[i], .padding = p->padding[i]};
    int64_t n = shape_in(s, 0)->dims[2 + i], left, span = 0;

    TRY(shape_span(s, p->kernel[i], p->dilation[i], &span));
    if (p->padding[i] > p->kernel[i] / 2)
        return shape_fail(s, "padding %lld is beyond half of the window %lld",
                          (long long)p->padding[i], (long long)p->kernel[i]);
    TRY(shape_count_windows(s, i, span, &window, extent));
    /* Padding is at most half a window, so that only a step over all of x finds nothing. */
    if (p->padding[i] > 0 && p->dilation[i] > n)
        return shape_fail(s, "a window has no element of dim %u, only padding", 2 + i);
    left = n + 2 * p->padding[i] - span - (*extent - 1) * p->stride[i];
    /* A last partial window counts if it begins before the padding at the end. */
    if (p->ceil && left > 0 && *extent * p->stride[i] < n + p->padding[i])
        *extent += 1;
    return FRIT_OK;
}

static frit_status pool_dims(const struct shape_call *s, const struct pool_window *p, int64_t *dims)
{
    const struct op_type *x = shape_in(s, 0);
    uint32_t spatial = x->rank - 2;

    TRY(shape_rank(s, 0, 3, 5));
    TRY(shape_vec(s, p->kernel, spatial, 0));
    TRY(shape_vec(s, p->padding, spatial, 0));
    TRY(shape_vec(s, p->stride, spatial, 0));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (uint32_t i = 0; i < spatial; i++) {
        p->stride[i] = p->stride[i] ? p->stride[i] : p->kernel[i];
        TRY(pool_extent(s, p, i, &dims[2 + i]));
    }
    return FRIT_OK;
}

static frit_status avg_pool_dims(const struct shape_call *s, int64_t *dims)
{
    static const int64_t dense[3] = {1, 1, 1};
    frit_attrs_avg_pool *a = s->call->attrs;
    const struct pool_window pool = {a->kernel, a->stride, a->padding, dense, a->ceil};

    return pool_dims(s, &pool, dims);
}

frit_status shape_rule_avg_pool(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(avg_pool_dims(s, dims));
    return shape_set(s, 0, shape_in(s, 0)->rank, dims);
}

frit_status shape_rule_avg_pool_grad(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(avg_pool_dims(s, dims));
    TRY(shape_dims(s, 1, shape_in(s, 0)->rank, dims));
    return shape_set_like(s, 0, 0);
}

static frit_status max_pool_dims(const struct shape_call *s, int64_t *dims)
{
    frit_attrs_max_pool *a = s->call->attrs;
    const struct pool_window pool = {a->kernel, a->stride, a->padding, a->dilation, a->ceil};

    TRY(shape_rank(s, 0, 3, 5));
    TRY(shape_vec(s, a->dilation, shape_in(s, 0)->rank - 2, 1));
    return pool_dims(s, &pool, dims);
}

frit_status shape_rule_max_pool(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(max_pool_dims(s, dims));
    TRY(shape_set(s, 0, shape_in(s, 0)->rank, dims));
    return shape_set(s, 1, shape_in(s, 0)->rank, dims);
}

frit_status shape_rule_max_pool_grad(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK];

    TRY(max_pool_dims(s, dims));
    TRY(shape_dims(s, 1, shape_in(s, 0)->rank, dims));
    TRY(shape_dims(s, 2, shape_in(s, 0)->rank, dims));
    return shape_set_like(s, 0, 0);
}

/* Sizes of the result, one per spatial dim; there must be something to resample. */
static frit_status resize_spatial(struct shape_call *s, int64_t *size)
{
    uint32_t spatial = shape_in(s, 0)->rank - 2;

    TRY(shape_vec(s, size, spatial, 0));
    TRY(shape_set_like(s, 0, 0));
    for (uint32_t i = 0; i < spatial; i++) {
        if (size[i] < 1)
            return shape_fail(s, "size is %lld in spatial dim %u, it must be 1 or more",
                              (long long)size[i], i);
        s->out[0].dims[2 + i] = size[i];
    }
    for (uint32_t i = 0; i < spatial; i++)
        TRY(shape_indexable(s, shape_in(s, 0)->dims[2 + i]));
    return FRIT_OK;
}

frit_status shape_rule_adaptive(struct shape_call *s)
{
    frit_attrs_adaptive *a = s->call->attrs;

    TRY(shape_rank(s, 0, 3, 5));
    return resize_spatial(s, a->size);
}

/* The result has the n and c of x and the other dims of grad. */
frit_status shape_rule_adaptive_grad(struct shape_call *s)
{
    const struct op_type *x = shape_in(s, 0), *grad = shape_in(s, 1);

    TRY(shape_rank(s, 0, 3, 5));
    TRY(shape_rank(s, 1, x->rank, x->rank));
    if (memcmp(x->dims, grad->dims, 2 * sizeof(x->dims[0])) != 0)
        return shape_fail(s, "x and grad must agree in the first two dims");
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_interpolate(struct shape_call *s)
{
    frit_attrs_interpolate *a = s->call->attrs;

    TRY(shape_rank(s, 0, 4, 4));
    return resize_spatial(s, a->size);
}

frit_status shape_rule_interpolate_grad(struct shape_call *s)
{
    struct op_type result;

    TRY(shape_rule_interpolate(s));
    result = s->out[0];
    TRY(shape_dims(s, 1, result.rank, result.dims));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_grid_sample(struct shape_call *s)
{
    const frit_attrs_grid_sample *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0), *grid = shape_in(s, 1);

    TRY(shape_rank(s, 0, 4, 4));
    TRY(shape_rank(s, 1, 4, 4));
    if (grid->dims[0] != x->dims[0] || grid->dims[3] != 2)
        return shape_fail(s, "grid must be [%lld, h, w, 2]", (long long)x->dims[0]);
    if (a->mode == FRIT_CHOICE_resample_nearest_exact || a->mode == FRIT_CHOICE_resample_lanczos3)
        return shape_fail(s, "mode must be nearest, bilinear or bicubic");
    TRY(shape_set_like(s, 0, 0));
    s->out[0].dims[2] = grid->dims[1];
    s->out[0].dims[3] = grid->dims[2];
    TRY(shape_indexable(s, x->dims[2]));
    return shape_indexable(s, x->dims[3]);
}
