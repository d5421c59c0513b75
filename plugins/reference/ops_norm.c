/* SPDX-License-Identifier: Apache-2.0 */
/* Layer, RMS, group and batch normalisation.  The first three share one shape: each element of an
 * outer space has an inner space that is read for its statistics and then written. */
#include <math.h>

#include "rows.h"

/* Operands of both spaces, in this order. */
enum { NORM_X, NORM_Y, NORM_GAMMA, NORM_BETA, NORM_OPERANDS };

struct norm {
    struct view view[NORM_OPERANDS]; /* data of gamma and beta NULL: absent */
    struct walk outer, inner;
    double eps;
    bool centred; /* the mean is taken off */
};

static double eps_of(const struct call *call)
{
    double eps = call_real(call, 0);

    return eps == 0 ? 1e-5 : eps;
}

static int64_t load_some(const struct view *view, const struct walk *walk, uint32_t operand,
                         const char *base, int64_t done, union value *lanes)
{
    int64_t n = walk->count - done < VALUE_LANES ? walk->count - done : VALUE_LANES;
    int64_t step = walk->step[operand];

    value_load(view->dtype, base + walk->at[operand] + done * step, step, n, lanes);
    return n;
}

/* The mean distance from `centre` to the power of 1 or 2. */
static double mean_power(struct norm *norm, double centre, int power)
{
    const char *x = norm->view[NORM_X].data + norm->outer.at[NORM_X];
    union value lanes[VALUE_LANES];
    int64_t count = 0;
    double sum = 0;

    for (bool more = walk_first(&norm->inner); more; more = walk_next(&norm->inner))
        for (int64_t done = 0, n; done < norm->inner.count; done += n, count += n) {
            n = load_some(&norm->view[NORM_X], &norm->inner, NORM_X, x, done, lanes);
            for (int64_t i = 0; i < n; i++) {
                double distance = lanes[i].real - centre;

                sum += power == 1 ? distance : distance * distance;
            }
        }
    return sum / (double)count;
}

/* x becomes (x - mean) * scale * gamma + beta. */
static void apply(struct norm *norm, double mean, double scale)
{
    const struct view *view = norm->view;
    const struct walk *outer = &norm->outer;
    struct walk *inner = &norm->inner;
    union value x[VALUE_LANES], gamma[VALUE_LANES], beta[VALUE_LANES];

    for (bool more = walk_first(inner); more; more = walk_next(inner))
        for (int64_t done = 0, n; done < inner->count; done += n) {
            int64_t step = inner->step[NORM_Y];
            char *to = view[NORM_Y].data + outer->at[NORM_Y] + inner->at[NORM_Y] + done * step;

            n = load_some(&view[NORM_X], inner, NORM_X, view[NORM_X].data + outer->at[NORM_X], done,
                          x);
            if (view[NORM_GAMMA].data)
                load_some(&view[NORM_GAMMA], inner, NORM_GAMMA,
                          view[NORM_GAMMA].data + outer->at[NORM_GAMMA], done, gamma);
            if (view[NORM_BETA].data)
                load_some(&view[NORM_BETA], inner, NORM_BETA,
                          view[NORM_BETA].data + outer->at[NORM_BETA], done, beta);
            for (int64_t i = 0; i < n; i++) {
                x[i].real = (x[i].real - mean) * scale;
                x[i].real *= view[NORM_GAMMA].data ? gamma[i].real : 1;
                x[i].real += view[NORM_BETA].data ? beta[i].real : 0;
            }
            value_store(view[NORM_Y].dtype, to, step, n, x);
        }
}

static void norm_run(struct norm *norm)
{
    for (bool more = walk_first(&norm->outer); more; more = walk_next(&norm->outer)) {
        double mean = norm->centred ? mean_power(norm, 0, 1) : 0;
        double power = mean_power(norm, mean, 2);

        apply(norm, mean, 1 / sqrt(power + norm->eps));
    }
}

static void norm_init(struct norm *norm, const struct call *call)
{
    norm->view[NORM_X] = call_in(call, 0);
    norm->view[NORM_Y] = call_out(call, 0);
    norm->eps = eps_of(call);
    walk_init(&norm->outer, WALK_ELEMENTS, NORM_OPERANDS);
    walk_init(&norm->inner, WALK_ROWS, NORM_OPERANDS);
}

static bool has_axis(const frit_axes *axes, uint32_t axis)
{
    for (int64_t i = 0; i < axes->count; i++)
        if (axes->axis[i] == axis)
            return true;
    return false;
}

/* gamma and beta have the dims of the axes, in the order of x. */
static void norm_over_axes(struct norm *norm, const struct call *call)
{
    const frit_attrs_norm_axes *attrs = call_attrs(call);
    const struct view *x = &norm->view[NORM_X], *y = &norm->view[NORM_Y];
    uint32_t own = 0; /* next dim of gamma and beta */

    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t strides[NORM_OPERANDS] = {x->strides[d], y->strides[d]};

        if (!has_axis(&attrs->axes, d)) {
            walk_push(&norm->outer, x->dims[d], strides);
            continue;
        }
        strides[NORM_GAMMA] = norm->view[NORM_GAMMA].strides[own];
        strides[NORM_BETA] = norm->view[NORM_BETA].strides[own];
        walk_push(&norm->inner, x->dims[d], strides);
        own++;
    }
    norm_run(norm);
}

void ref_layer_norm(const struct call *call)
{
    struct norm norm = {
        .centred = true, .view[NORM_GAMMA] = call_in(call, 1), .view[NORM_BETA] = call_in(call, 2)};

    norm_init(&norm, call);
    norm_over_axes(&norm, call);
}

void ref_rms_norm(const struct call *call)
{
    struct norm norm = {.centred = false, .view[NORM_GAMMA] = call_in(call, 1)};

    norm_init(&norm, call);
    norm_over_axes(&norm, call);
}

void ref_group_norm(const struct call *call)
{
    const frit_attrs_norm_groups *attrs = call_attrs(call);
    struct norm norm = {
        .centred = true, .view[NORM_GAMMA] = call_in(call, 1), .view[NORM_BETA] = call_in(call, 2)};
    const struct view *x = &norm.view[NORM_X], *y = &norm.view[NORM_Y];
    int64_t groups = attrs->groups ? attrs->groups : 1, size;
    int64_t gamma = norm.view[NORM_GAMMA].strides[0], beta = norm.view[NORM_BETA].strides[0];

    norm_init(&norm, call);
    size = x->dims[1] / groups;
    walk_push(&norm.outer, x->dims[0], (int64_t[]){x->strides[0], y->strides[0], 0, 0});
    walk_push(&norm.outer, groups,
              (int64_t[]){size * x->strides[1], size * y->strides[1], size * gamma, size * beta});
    walk_push(&norm.inner, size, (int64_t[]){x->strides[1], y->strides[1], gamma, beta});
    for (uint32_t d = 2; d < x->rank; d++)
        walk_push(&norm.inner, x->dims[d], (int64_t[]){x->strides[d], y->strides[d], 0, 0});
    norm_run(&norm);
}

/* ---- given statistics ---- */

/* Operands of the row, in its order, after y. */
enum { BATCH_Y, BATCH_X, BATCH_GAMMA, BATCH_BETA, BATCH_MEAN, BATCH_VAR, BATCH_OPERANDS };

void ref_batch_norm(const struct call *call)
{
    struct view view[BATCH_OPERANDS] = {call_out(call, 0)};
    const struct view *y = &view[BATCH_Y];
    union value lanes[BATCH_OPERANDS][VALUE_LANES];
    double eps = eps_of(call);
    struct walk walk;

    walk_init(&walk, WALK_ROWS, BATCH_OPERANDS);
    for (uint32_t k = BATCH_X; k < BATCH_OPERANDS; k++)
        view[k] = call_in(call, k - BATCH_X);
    for (uint32_t d = 0; d < y->rank; d++) {
        int64_t strides[BATCH_OPERANDS] = {y->strides[d], view[BATCH_X].strides[d]};

        for (uint32_t k = BATCH_GAMMA; k < BATCH_OPERANDS && d == 1; k++)
            strides[k] = view[k].strides[0];
        walk_push(&walk, y->dims[d], strides);
    }
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t done = 0, n; done < walk.count; done += n) {
            n = walk.count - done < VALUE_LANES ? walk.count - done : VALUE_LANES;
            for (uint32_t k = BATCH_X; k < BATCH_OPERANDS; k++)
                load_some(&view[k], &walk, k, view[k].data, done, lanes[k]);
            for (int64_t i = 0; i < n; i++)
                lanes[BATCH_Y][i].real = (lanes[BATCH_X][i].real - lanes[BATCH_MEAN][i].real) /
                                             sqrt(lanes[BATCH_VAR][i].real + eps) *
                                             lanes[BATCH_GAMMA][i].real +
                                         lanes[BATCH_BETA][i].real;
            value_store(y->dtype, y->data + walk.at[BATCH_Y] + done * walk.step[BATCH_Y],
                        walk.step[BATCH_Y], n, lanes[BATCH_Y]);
        }
}
