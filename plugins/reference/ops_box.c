/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in which each element of y belongs to a box of x: adaptive_avg_pool, and the gradients of
 * both kinds of average.  The gradient of max_pool belongs to one element, whose number is given.
 */
#include "rows.h"
#include "window.h"

struct boxes {
    struct view x, y;
    struct window window; /* of adaptive pools only the extents and strides */
    bool adaptive, exclude_pad;
};

/* Elements first..end - 1 along each dim, and the number by which a sum over them is divided. */
struct box {
    int64_t first[WINDOW_DIMS], end[WINDOW_DIMS];
    double divisor;
};

/* Of place i: floor(i * n / size) .. ceil((i + 1) * n / size) - 1. */
static void adaptive_range(struct box *box, const struct window_dim *dim, int d, int64_t i)
{
    box->first[d] = i * dim->x_extent / dim->y_extent;
    box->end[d] = ((i + 1) * dim->x_extent + dim->y_extent - 1) / dim->y_extent;
    box->divisor *= (double)(box->end[d] - box->first[d]);
}

static void window_range(struct box *box, const struct window_dim *dim, int d, int64_t i,
                         bool exclude_pad)
{
    struct window_taps taps = window_taps(dim, i);

    box->first[d] = window_at(dim, i, taps.first);
    box->end[d] = window_at(dim, i, taps.end);
    box->divisor *= (double)(exclude_pad ? taps.end - taps.first : window_padded(dim, i));
}

static struct box box_at(const struct boxes *b, const int64_t *place)
{
    struct box box = {.divisor = 1};

    for (int d = 0; d < WINDOW_DIMS; d++)
        if (b->adaptive)
            adaptive_range(&box, &b->window.dim[d], d, place[d]);
        else
            window_range(&box, &b->window.dim[d], d, place[d], b->exclude_pad);
    return box;
}

static char *at3(const struct window_dim *dim, char *plane, int64_t i, int64_t j, int64_t k)
{
    return plane + i * dim[0].x_stride + j * dim[1].x_stride + k * dim[2].x_stride;
}

static void add_to(uint32_t dtype, char *sum, double value)
{
    union value old = value_get(dtype, sum);

    old.real += value;
    value_put(dtype, sum, old);
}

static void box_mean(const struct boxes *b, char *plane, char *y, const struct box *box)
{
    union value mean = {.real = 0};

    for (int64_t i = box->first[0]; i < box->end[0]; i++)
        for (int64_t j = box->first[1]; j < box->end[1]; j++)
            for (int64_t k = box->first[2]; k < box->end[2]; k++)
                mean.real += value_get(b->x.dtype, at3(b->window.dim, plane, i, j, k)).real;
    mean.real /= box->divisor;
    value_put(b->y.dtype, y, mean);
}

/* Every element of the box gets its share of the gradient at y. */
static void box_share(const struct boxes *b, char *plane, char *y, const struct box *box)
{
    double share = value_get(b->y.dtype, y).real / box->divisor;

    for (int64_t i = box->first[0]; i < box->end[0]; i++)
        for (int64_t j = box->first[1]; j < box->end[1]; j++)
            for (int64_t k = box->first[2]; k < box->end[2]; k++)
                add_to(b->x.dtype, at3(b->window.dim, plane, i, j, k), share);
}

typedef void (*box_fn)(const struct boxes *b, char *plane, char *y, const struct box *box);

static void each_box(const struct boxes *b, box_fn fn, char *x, char *y)
{
    const struct window_dim *dim = b->window.dim;
    int64_t place[WINDOW_DIMS];

    for (place[0] = 0; place[0] < dim[0].y_extent; place[0]++)
        for (place[1] = 0; place[1] < dim[1].y_extent; place[1]++)
            for (place[2] = 0; place[2] < dim[2].y_extent; place[2]++) {
                const struct box box = box_at(b, place);

                fn(b, x,
                   y + place[0] * dim[0].y_stride + place[1] * dim[1].y_stride +
                       place[2] * dim[2].y_stride,
                   &box);
            }
}

static void boxes_run(struct boxes *b, box_fn fn, const struct window_attrs *attrs)
{
    window_init(&b->window, &b->x, &b->y, attrs);
    for (int64_t n = 0; n < b->x.dims[0]; n++)
        for (int64_t c = 0; c < b->x.dims[1]; c++)
            each_box(b, fn, b->x.data + n * b->x.strides[0] + c * b->x.strides[1],
                     b->y.data + n * b->y.strides[0] + c * b->y.strides[1]);
}

/* An adaptive pool has no window of fixed size. */
static void adaptive_run(struct boxes *b, box_fn fn)
{
    static const int64_t none[WINDOW_DIMS] = {0};

    b->adaptive = true;
    boxes_run(b, fn, &(const struct window_attrs){none, none, none, NULL});
}

void ref_adaptive_avg_pool(const struct call *call)
{
    struct boxes b = {.x = call_in(call, 0), .y = call_out(call, 0)};

    adaptive_run(&b, box_mean);
}

void ref_adaptive_avg_pool_backward(const struct call *call)
{
    struct boxes b = {.x = call_sums(call, 0), .y = call_in(call, 1)};

    adaptive_run(&b, box_share);
    call_round(call, 0, &b.x);
}

void ref_avg_pool_backward(const struct call *call)
{
    const frit_attrs_avg_pool *attrs = call_attrs(call);
    struct boxes b = {
        .x = call_sums(call, 0), .y = call_in(call, 1), .exclude_pad = attrs->exclude_pad != 0};

    boxes_run(&b, box_share,
              &(const struct window_attrs){attrs->kernel, attrs->stride, attrs->padding, NULL});
    call_round(call, 0, &b.x);
}

/* ---- max_pool ---- */

/* Where element `number` of the flattened spatial dims lies; false: there is none. */
static bool element_at(const struct view *view, int64_t number, int64_t *at)
{
    *at = 0;
    if (number < 0)
        return false;
    for (uint32_t d = view->rank; d-- > 2; number /= view->dims[d])
        *at += number % view->dims[d] * view->strides[d];
    return number == 0;
}

/* grad and index have the same dims; those of a plane are walked together. */
void ref_max_pool_backward(const struct call *call)
{
    const struct view grad = call_in(call, 1), index = call_in(call, 2);
    const struct view sums = call_sums(call, 0);
    struct view planes = sums;
    const struct view *views[] = {&grad, &index, &planes};
    struct walk walk;
    int64_t at;

    for (uint32_t d = 2; d < planes.rank; d++) {
        planes.dims[d] = 1;
        planes.strides[d] = 0;
    }
    view_walk(&walk, WALK_ELEMENTS, views, 3);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        if (element_at(&sums, value_get(index.dtype, index.data + walk.at[1]).sint, &at))
            add_to(sums.dtype, sums.data + walk.at[2] + at,
                   value_get(grad.dtype, grad.data + walk.at[0]).real);
    call_round(call, 0, &sums);
}
