/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of layer_norm and rms_norm.  With n = (x - mean) * r, r = 1 / sqrt(var + eps), and the
 * gradient h = g * gamma of n: by x it is r * (h - mean(h) - n * mean(h * n)), by gamma the sum of
 * g * n over the other axes, by beta that of g.  rms_norm has no mean in n, and no mean(h).  16-bit
 * floats are computed in f32. */
#include "grad/rules_norm.h"

enum { SHARED_N, SHARED_R };

static term wide(term t)
{
    const uint32_t dtype = t_type(t).dtype;

    return dtype == FRIT_F16 || dtype == FRIT_BF16 ? t_cast(t, FRIT_F32) : t;
}

static term narrow(const struct grad_rule *r, term t)
{
    const uint32_t dtype = r->types[0].type.dtype;

    return dtype == FRIT_F16 || dtype == FRIT_BF16 ? t_cast(t, dtype) : t;
}

static term mean(const struct grad_rule *r, term t)
{
    const frit_axes *axes = &r->attrs->norm_axes.axes;
    double n = 1;

    for (int64_t d = 0; d < axes->count; d++)
        n *= (double)r->types[0].type.dims[axes->axis[d]];
    return t_mul(t_sum(t, axes, true), t_num(1 / n));
}

/* n and r, once for all operands. */
static void normalise(const struct grad_rule *r)
{
    const bool has_mean = r->row->id == FRIT_OP_layer_norm;
    term x, d;

    if (t_has(r->shared[SHARED_N]))
        return;
    x = wide(r->in[0]);
    d = has_mean ? t_sub(x, mean(r, x)) : x;
    r->shared[SHARED_R] = t_rsqrt(t_add(mean(r, t_square(d)), t_num(r->attrs->norm_axes.eps)));
    r->shared[SHARED_N] = t_mul(d, r->shared[SHARED_R]);
}

/* gamma with the rank of x. */
static term along_axes(const struct grad_rule *r, term gamma)
{
    const frit_axes *axes = &r->attrs->norm_axes.axes;
    struct op_type type = {.dtype = t_type(gamma).dtype, .rank = r->types[0].type.rank};

    for (uint32_t d = 0; d < type.rank; d++)
        type.dims[d] = 1;
    for (int64_t d = 0; d < axes->count; d++)
        type.dims[axes->axis[d]] = r->types[0].type.dims[axes->axis[d]];
    return t_reshape(gamma, &type);
}

/* Sums over all but the axes, with the dims of operand `i`. */
static term over_rest(const struct grad_rule *r, term t, uint32_t i)
{
    const frit_axes *axes = &r->attrs->norm_axes.axes;
    bool is_axis[FRIT_MAX_RANK] = {false};
    frit_axes rest = {0};

    for (int64_t d = 0; d < axes->count; d++)
        is_axis[axes->axis[d]] = true;
    for (uint32_t d = 0; d < r->types[0].type.rank; d++) {
        if (!is_axis[d])
            rest.axis[rest.count++] = d;
    }
    return t_reshape(rest.count ? t_sum(t, &rest, false) : t, &r->types[i].type);
}

term rule_norm(const struct grad_rule *r, uint32_t i)
{
    const term g = wide(r->g[0]);
    term h, dx;

    if (i == 2)
        return narrow(r, over_rest(r, g, i));
    normalise(r);
    if (i == 1)
        return narrow(r, over_rest(r, t_mul(g, r->shared[SHARED_N]), i));
    h = r->n_in > 1 && t_has(r->in[1]) ? t_mul(g, along_axes(r, wide(r->in[1]))) : g;
    dx = t_sub(h, t_mul(r->shared[SHARED_N], mean(r, t_mul(h, r->shared[SHARED_N]))));
    if (r->row->id == FRIT_OP_layer_norm)
        dx = t_sub(dx, mean(r, h));
    return narrow(r, t_mul(dx, r->shared[SHARED_R]));
}
