/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: each element of the result looks at its window of x. */
#include <math.h>

#include "rows.h"
#include "window.h"

struct pool {
    struct view x, y;
    struct view index; /* of max_pool; data NULL: not wanted */
    struct window window;
    bool exclude_pad; /* of avg_pool */
};

/* What a window gave. */
struct pooled {
    double real;
    int64_t index;
};

typedef struct pooled (*pool_fn)(const struct pool *pool, const char *plane, const int64_t *place);

static char *place_at(const struct view *view, int64_t plane, const int64_t *place)
{
    char *at = view->data + plane;
    uint32_t missing = WINDOW_DIMS + 2 - view->rank;

    for (uint32_t d = missing; d < WINDOW_DIMS; d++)
        at += place[d] * view->strides[d - missing + 2];
    return at;
}

/* All windows of one plane; `at` says where it begins in x, y and index. */
static void pool_plane(const struct pool *pool, pool_fn fn, const int64_t *at)
{
    const struct window_dim *dim = pool->window.dim;
    int64_t place[WINDOW_DIMS];

    for (place[0] = 0; place[0] < dim[0].y_extent; place[0]++)
        for (place[1] = 0; place[1] < dim[1].y_extent; place[1]++)
            for (place[2] = 0; place[2] < dim[2].y_extent; place[2]++) {
                struct pooled pooled = fn(pool, pool->x.data + at[0], place);

                value_put(pool->y.dtype, place_at(&pool->y, at[1], place),
                          (union value){.real = pooled.real});
                if (pool->index.data)
                    value_put(pool->index.dtype, place_at(&pool->index, at[2], place),
                              (union value){.sint = pooled.index});
            }
}

static void pool_run(const struct pool *pool, pool_fn fn)
{
    struct view planes[3] = {pool->x, pool->y, pool->index};
    const struct view *views[] = {&planes[0], &planes[1], &planes[2]};
    struct walk walk;

    for (int k = 0; k < 3; k++)
        planes[k].rank = 2;
    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        pool_plane(pool, fn, walk.at);
}

static struct pooled window_mean(const struct pool *pool, const char *plane, const int64_t *place)
{
    const struct window_dim *dim = pool->window.dim;
    struct window_taps d = window_taps(&dim[0], place[0]), h = window_taps(&dim[1], place[1]);
    struct window_taps w = window_taps(&dim[2], place[2]);
    int64_t count = (d.end - d.first) * (h.end - h.first) * (w.end - w.first);
    double sum = 0;

    for (int64_t i = d.first; i < d.end; i++)
        for (int64_t j = h.first; j < h.end; j++)
            for (int64_t k = w.first; k < w.end; k++)
                sum += value_get(pool->x.dtype,
                                 plane + window_at(&dim[0], place[0], i) * dim[0].x_stride +
                                     window_at(&dim[1], place[1], j) * dim[1].x_stride +
                                     window_at(&dim[2], place[2], k) * dim[2].x_stride)
                           .real;
    if (!pool->exclude_pad)
        count = window_padded(&dim[0], place[0]) * window_padded(&dim[1], place[1]) *
                window_padded(&dim[2], place[2]);
    return (struct pooled){sum / (double)count, 0};
}

/* The first of the largest; the first NaN, if there is one. */
static struct pooled window_max(const struct pool *pool, const char *plane, const int64_t *place)
{
    const struct window_dim *dim = pool->window.dim;
    struct window_taps d = window_taps(&dim[0], place[0]), h = window_taps(&dim[1], place[1]);
    struct window_taps w = window_taps(&dim[2], place[2]);
    struct pooled best = {-INFINITY, -1};

    for (int64_t i = d.first; i < d.end; i++)
        for (int64_t j = h.first; j < h.end; j++)
            for (int64_t k = w.first; k < w.end; k++) {
                int64_t z = window_at(&dim[0], place[0], i), y = window_at(&dim[1], place[1], j);
                int64_t x = window_at(&dim[2], place[2], k);
                double real =
                    value_get(pool->x.dtype, plane + z * dim[0].x_stride + y * dim[1].x_stride +
                                                 x * dim[2].x_stride)
                        .real;

                if (best.index < 0 || (!isnan(best.real) && (isnan(real) || real > best.real)))
                    best = (struct pooled){real, (z * dim[1].x_extent + y) * dim[2].x_extent + x};
            }
    return best;
}

void ref_avg_pool(const struct call *call)
{
    const frit_attrs_avg_pool *attrs = call_attrs(call);
    struct pool pool = {
        .x = call_in(call, 0), .y = call_out(call, 0), .exclude_pad = attrs->exclude_pad != 0};

    window_init(&pool.window, &pool.x, &pool.y,
                &(const struct window_attrs){attrs->kernel, attrs->stride, attrs->padding, NULL});
    pool_run(&pool, window_mean);
}

void ref_max_pool(const struct call *call)
{
    const frit_attrs_max_pool *attrs = call_attrs(call);
    struct pool pool = {.x = call_in(call, 0), .y = call_out(call, 0), .index = call_out(call, 1)};

    window_init(&pool.window, &pool.x, &pool.y,
                &(const struct window_attrs){attrs->kernel, attrs->stride, attrs->padding,
                                             attrs->dilation});
    pool_run(&pool, window_max);
}
