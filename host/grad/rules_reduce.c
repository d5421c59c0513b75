/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of powers, reductions, scans, softmax and sorting. */
#include "grad/rules_reduce.h"

#include <math.h>

/* ---- powers ---- */

/* By a: b * a^(b - 1), 0 for b = 0. */
static term pow_by_base(term g, term a, term b)
{
    if (!b.tensor)
        return t_mul(t_mul(g, t_num(t_number(b))),
                     t_number(b) == 0 ? t_num(0) : t_pow(a, t_num(t_number(b) - 1)));
    return t_where(t_eq(b, t_num(0)), t_num(0), t_mul(g, t_mul(b, t_pow(a, t_sub(b, t_num(1))))));
}

/* By b: y * log(a), 0 for a = 0 where the power has a value. */
static term pow_by_exponent(term g, term a, term b, term y)
{
    const term slope = t_mul(g, t_mul(y, a.tensor ? t_log(a) : t_num(log(t_number(a)))));

    if (!a.tensor)
        return t_number(a) == 0
                   ? t_where(t_le(t_num(0), b), t_num(0), t_mul(g, t_mul(y, t_num(-1))))
                   : slope;
    return t_where(t_and(t_eq(a, t_num(0)), t_le(t_num(0), b)), t_num(0), slope);
}

term rule_pow(const struct grad_rule *r, uint32_t i)
{
    return i == 0 ? pow_by_base(r->g[0], r->in[0], r->in[1])
                  : pow_by_exponent(r->g[0], r->in[0], r->in[1], r->y[0]);
}

/* ---- borders ---- */

/* `g` where x is at a border that is a tensor, which takes the other half; all of it where the two
 * borders are one. */
static term at_border(term g, term x, term low, term high)
{
    const term half = t_mul(g, t_num(0.5)), zero = t_num(0);
    const term at_low = low.tensor ? t_where(t_eq(x, low), half, zero) : zero;
    const term at_high = high.tensor ? t_where(t_eq(x, high), half, zero) : zero;

    return t_keep(t_le(low, high), t_add(at_low, at_high));
}

/* PyTorch's: x at a border that is a number gets nothing, as relu at 0. */
term rule_clamp(const struct grad_rule *r, uint32_t i)
{
    const term g = r->g[0], x = r->in[0], low = r->in[1], high = r->in[2];
    const term border = r->in[i];

    if (i == 0 && !low.tensor && !high.tensor)
        return t_keep(t_and(t_lt(low, x), t_lt(x, high)), g);
    if (i == 0)
        return t_where(t_and(t_lt(low, x), t_lt(x, high)), g, at_border(g, x, low, high));
    return t_where(i == 1 ? t_and(t_lt(x, low), t_le(low, high))
                          : t_or(t_lt(high, x), t_lt(high, low)),
                   g, t_keep(t_and(t_eq(x, border), t_lt(low, high)), t_mul(g, t_num(0.5))));
}

/* ---- reductions ---- */

/* The operand's dims with 1 in place of those that were reduced. */
static struct op_type kept_type(const struct grad_rule *r)
{
    struct op_type type = r->types[0].type;
    const frit_axes *axes = &r->attrs->reduce.axes;

    for (int64_t d = 0; d < axes->count; d++)
        type.dims[axes->axis[d]] = 1;
    return type;
}

/* A result of a reduction with the dims that it lost. */
static term kept(const struct grad_rule *r, term t)
{
    const struct op_type type = kept_type(r);

    return r->attrs->reduce.keep ? t : t_reshape(t, &type);
}

term rule_sum(const struct grad_rule *r, uint32_t i)
{
    return t_expand(kept(r, r->g[0]), &r->types[i].type);
}

static double reduced_count(const struct grad_rule *r)
{
    double n = 1;

    for (int64_t d = 0; d < r->attrs->reduce.axes.count; d++)
        n *= (double)r->types[0].type.dims[r->attrs->reduce.axes.axis[d]];
    return n;
}

term rule_mean(const struct grad_rule *r, uint32_t i)
{
    return t_expand(t_mul(kept(r, r->g[0]), t_num(1 / reduced_count(r))), &r->types[i].type);
}

term rule_var(const struct grad_rule *r, uint32_t i)
{
    frit_attrs_reduce attrs = {
        .struct_size = sizeof(attrs), .axes = r->attrs->reduce.axes, .keep = true};
    const term x = r->in[0], mean = t_op(FRIT_OP_mean, 1, &x, &attrs);

    (void)i;
    return t_mul(t_mul(kept(r, r->g[0]), t_num(2 / reduced_count(r))), t_sub(x, mean));
}

/* Equally to all elements that are the largest (smallest). */
term rule_extreme(const struct grad_rule *r, uint32_t i)
{
    const uint32_t dtype = r->types[i].type.dtype;
    const term is = t_eq(r->in[0], kept(r, r->y[0]));
    const term count = t_sum(t_cast(is, dtype), &r->attrs->reduce.axes, true);

    return t_keep(is, t_div(kept(r, r->g[0]), count));
}

static term scan(uint32_t op, term x, int64_t axis)
{
    frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = axis};

    return t_op(op, 1, &x, &attrs);
}

/* Along `axis`: element k is the product of those before it. */
static term product_before(const struct grad_rule *r, term x, const struct op_type *type,
                           int64_t axis)
{
    struct op_type one = *type;
    frit_slices but_last = {.count = axis + 1};
    frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = axis};

    one.dims[axis] = 1;
    but_last.dim[axis] = (frit_range){0, type->dims[axis] - 1, 1};
    if (type->dims[axis] <= 1)
        return t_full(r, type, 1);
    return scan(FRIT_OP_cumprod,
                t_op(FRIT_OP_cat, 2, (term[]){t_full(r, &one, 1), t_slice(x, &but_last)}, &attrs),
                axis);
}

/* The product of all other elements, without a division: elements may be 0.  The reduced dims go
 * last and become one. */
term rule_prod(const struct grad_rule *r, uint32_t i)
{
    const struct op_type *x = &r->types[i].type;
    const frit_axes *axes = &r->attrs->reduce.axes;
    frit_axes order = {.count = x->rank}, inverse = {.count = x->rank};
    struct op_type moved = {.dtype = x->dtype, .rank = x->rank}, flat = {.dtype = x->dtype};
    bool reduced[FRIT_MAX_RANK] = {false};
    int64_t at = 0, n = 1;
    term t, others;

    for (int64_t d = 0; d < axes->count; d++)
        reduced[axes->axis[d]] = true;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t d = 0; d < x->rank; d++) {
            if (reduced[d] != (pass == 1))
                continue;
            order.axis[at] = d;
            inverse.axis[d] = at;
            moved.dims[at++] = x->dims[d];
            if (pass == 0)
                flat.dims[flat.rank++] = x->dims[d];
            else
                n *= x->dims[d];
        }
    }
    flat.dims[flat.rank++] = n;
    if (flat.rank > FRIT_MAX_RANK || !axes->count)
        return t_mul(kept(r, r->g[0]), t_full(r, x, 1));
    t = t_reshape(t_permute(r->in[0], &order), &flat);
    others = t_mul(
        product_before(r, t, &flat, flat.rank - 1),
        t_flip(product_before(r, t_flip(t, flat.rank - 1), &flat, flat.rank - 1), flat.rank - 1));
    return t_mul(kept(r, r->g[0]), t_permute(t_reshape(others, &moved), &inverse));
}

/* ---- scans ---- */

/* Sums of the elements from each to the last. */
static term sum_after(term x, int64_t axis)
{
    return t_flip(scan(FRIT_OP_cumsum, t_flip(x, axis), axis), axis);
}

term rule_cumsum(const struct grad_rule *r, uint32_t i)
{
    (void)i;
    return sum_after(r->g[0], r->attrs->axis.axis);
}

/* Up to the first 0: the sum of g * y from there on, divided by the element.  At the first 0: with
 * 1 in its place.  Behind it every product holds the 0. */
term rule_cumprod(const struct grad_rule *r, uint32_t i)
{
    const int64_t axis = r->attrs->axis.axis;
    const struct op_type *x = &r->types[i].type;
    const term is_zero = t_eq(r->in[0], t_num(0));
    const term zeros = scan(FRIT_OP_cumsum, t_cast(is_zero, FRIT_I32), axis);
    const term is_first = t_and(is_zero, t_eq(zeros, api_i(1)));
    const term without = t_where(is_first, t_num(1), r->in[0]);
    const term at_first = sum_after(t_mul(r->g[0], scan(FRIT_OP_cumprod, without, axis)), axis);
    const term before =
        t_div(sum_after(t_mul(r->g[0], r->y[0]), axis), t_where(is_zero, t_num(1), r->in[0]));

    (void)x;
    return t_where(t_eq(zeros, api_i(0)), before, t_keep(is_first, at_first));
}

/* To the last element that set the running maximum (minimum). */
term rule_cumextreme(const struct grad_rule *r, uint32_t i)
{
    const int64_t axis = r->attrs->axis.axis;
    const struct op_type *x = &r->types[i].type;
    const term own = t_iota(r, x, axis, FRIT_I64);
    const term from = scan(FRIT_OP_cummax, t_where(t_eq(r->in[0], r->y[0]), own, api_i(0)), axis);
    frit_attrs_scatter attrs = {
        .struct_size = sizeof(attrs), .axis = axis, .update = FRIT_CHOICE_update_add};

    return t_op(FRIT_OP_scatter, 3, (term[]){t_full(r, x, 0), from, r->g[0]}, &attrs);
}

/* ---- softmax ---- */

term rule_softmax(const struct grad_rule *r, uint32_t i)
{
    const frit_axes axes = {.count = 1, .axis = {r->attrs->axis.axis}};
    const term g = r->g[0], y = r->y[0];
    term t;

    (void)i;
    if (r->row->id == FRIT_OP_log_softmax)
        return t_sub(g, t_mul(t_exp(y), t_sum(g, &axes, true)));
    t = t_mul(g, y);
    t = t_sub(t, t_mul(y, t_sum(t, &axes, true)));
    return r->row->id == FRIT_OP_softmin ? t_neg(t) : t;
}

/* ---- sorting ---- */

term rule_sort(const struct grad_rule *r, uint32_t i)
{
    const int64_t axis = r->row->id == FRIT_OP_sort ? r->attrs->sort.axis : r->attrs->topk.axis;
    frit_attrs_scatter attrs = {
        .struct_size = sizeof(attrs), .axis = axis, .update = FRIT_CHOICE_update_add};

    return t_op(FRIT_OP_scatter, 3, (term[]){t_full(r, &r->types[i].type, 0), r->y[1], r->g[0]},
                &attrs);
}
