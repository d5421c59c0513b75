/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of reads and writes at numbers.  A read outside takes the nearest element, whose gradient
 * it is then; a write outside writes nothing, and its value gets none. */
#include "grad/rules_index.h"

/* How a kind of index addresses slices of a tensor. */
struct addressing {
    uint32_t read, write; /* ops */
    int64_t axis;         /* -1: coordinates in the last dim of the index */
};

static term read_at(const struct addressing *how, term x, term index)
{
    frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = how->axis};

    return t_op(how->read, 2, (term[]){x, index}, how->axis < 0 ? NULL : &attrs);
}

static term write_at(const struct addressing *how, term x, term index, term values, int64_t update)
{
    frit_attrs_scatter attrs = {.struct_size = sizeof(attrs), .axis = how->axis, .update = update};
    frit_attrs_update nd = {.struct_size = sizeof(nd), .update = update};

    return t_op(how->write, 3, (term[]){x, index, values},
                how->axis < 0 ? (void *)&nd : (void *)&attrs);
}

/* The largest valid number: along the axis, or for each coordinate. */
static term limit_of(const struct grad_rule *r, const struct addressing *how,
                     const struct op_type *x, const struct op_type *index)
{
    const int64_t k = index->dims[index->rank - 1];
    const struct op_type one = {.dtype = index->dtype, .rank = 1, .dims = {1}};
    frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = 0};
    term limits[FRIT_MAX_RANK];

    if (how->axis >= 0)
        return api_i(x->dims[how->axis] - 1);
    for (int64_t d = 0; d < k; d++)
        limits[d] = t_full(r, &one, (double)(x->dims[d] - 1));
    return t_op(FRIT_OP_cat, (uint32_t)k, limits, &attrs);
}

static term nearest(const struct grad_rule *r, const struct addressing *how,
                    const struct op_type *x)
{
    const term in[] = {r->in[1], api_i(0), limit_of(r, how, x, &r->types[1].type)};

    return t_op(FRIT_OP_clamp, 3, in, NULL);
}

static term read_rule(const struct grad_rule *r, const struct addressing *how)
{
    const struct op_type *x = &r->types[0].type;

    return write_at(how, t_full(r, x, 0), nearest(r, how, x), r->g[0], FRIT_CHOICE_update_add);
}

/* ---- writes ---- */

/* Whether each value was written, with the dims of the values: 1 or 0 of their element type.  Not
 * one outside, and not one that a later one replaced. */
static term was_written(const struct grad_rule *r, const struct addressing *how)
{
    const struct op_type *x = &r->types[0].type, *v = &r->types[2].type;
    struct op_type target = *x, values = *v, flat = {.dtype = FRIT_I64, .rank = 1};
    term mine, winner;

    /* Each value's number is written; who finds its own number there was the last. */
    target.dtype = values.dtype = FRIT_I64;
    flat.dims[0] = op_elements(&values);
    mine = t_reshape(t_iota(r, &flat, 0, FRIT_I64), &values);
    winner = read_at(
        how, write_at(how, t_full(r, &target, -1), r->in[1], mine, FRIT_CHOICE_update_assign),
        r->in[1]);
    return t_cast(t_eq(winner, mine), v->dtype);
}

/* 1 where the index is valid, else 0, with dims that broadcast to those of the values. */
static term is_inside(const struct grad_rule *r, const struct addressing *how)
{
    const struct op_type *index = &r->types[1].type, *v = &r->types[2].type;
    const term same = t_cast(t_eq(nearest(r, how, &r->types[0].type), r->in[1]), v->dtype);
    const frit_axes last = {.count = 1, .axis = {index->rank - 1}};
    frit_attrs_reduce reduce = {.struct_size = sizeof(reduce), .axes = last};
    struct op_type like = *v;

    if (how->write == FRIT_OP_scatter)
        return same;
    for (uint32_t d = 0; d < like.rank; d++) {
        const bool is_of_index = how->axis < 0 ? d + 1 < index->rank : d == how->axis;

        like.dims[d] = is_of_index ? v->dims[d] : 1;
    }
    return t_reshape(how->axis < 0 ? t_op(FRIT_OP_min, 1, &same, &reduce) : same, &like);
}

static term assign_rule(const struct grad_rule *r, const struct addressing *how, uint32_t i)
{
    if (i == 0)
        return write_at(how, r->g[0], r->in[1], t_full(r, &r->types[2].type, 0),
                        FRIT_CHOICE_update_assign);
    return t_mul(read_at(how, r->g[0], r->in[1]), was_written(r, how));
}

static term add_rule(const struct grad_rule *r, const struct addressing *how, uint32_t i)
{
    if (i == 0)
        return r->g[0];
    return t_mul(read_at(how, r->g[0], r->in[1]), is_inside(r, how));
}

/* A value's gradient is the product of all others at its place, also where one of them is 0. */
static term mul_rule(const struct grad_rule *r, const struct addressing *how, uint32_t i)
{
    const struct op_type *x = &r->types[0].type, *v = &r->types[2].type;
    const term index = r->in[1], values = r->in[2];
    term is_zero, zeros, rest, slope;

    if (i == 0)
        return t_mul(r->g[0],
                     write_at(how, t_full(r, x, 1), index, values, FRIT_CHOICE_update_mul));
    is_zero = t_eq(values, t_num(0));
    zeros = read_at(
        how,
        write_at(how, t_full(r, x, 0), index, t_cast(is_zero, v->dtype), FRIT_CHOICE_update_add),
        index);
    rest = read_at(how,
                   t_mul(r->g[0], write_at(how, r->in[0], index, t_where(is_zero, t_num(1), values),
                                           FRIT_CHOICE_update_mul)),
                   index);
    slope = t_where(is_zero, t_keep(t_eq(zeros, t_num(1)), rest),
                    t_keep(t_eq(zeros, t_num(0)), t_div(rest, t_where(is_zero, t_num(1), values))));
    return t_mul(slope, is_inside(r, how));
}

/* Equally to all that have the value of the result. */
static term extreme_rule(const struct grad_rule *r, const struct addressing *how, uint32_t i)
{
    const uint32_t dtype = r->types[0].type.dtype;
    const term index = r->in[1], y = r->y[0];
    const term own = t_cast(t_eq(r->in[0], y), dtype);
    const term theirs =
        t_mul(t_cast(t_eq(r->in[2], read_at(how, y, index)), dtype), is_inside(r, how));
    const term each = t_div(r->g[0], write_at(how, own, index, theirs, FRIT_CHOICE_update_add));

    return i == 0 ? t_where(t_eq(r->in[0], y), each, t_num(0))
                  : t_keep(t_eq(theirs, t_num(1)), read_at(how, each, index));
}

static term write_rule(const struct grad_rule *r, const struct addressing *how, int64_t update,
                       uint32_t i)
{
    switch (update) {
    case FRIT_CHOICE_update_assign:
        return assign_rule(r, how, i);
    case FRIT_CHOICE_update_add:
        return add_rule(r, how, i);
    case FRIT_CHOICE_update_mul:
        return mul_rule(r, how, i);
    default:
        return extreme_rule(r, how, i);
    }
}

/* ---- the rows ---- */

static struct addressing along(uint32_t read, uint32_t write, int64_t axis)
{
    return (struct addressing){read, write, axis};
}

term rule_select(const struct grad_rule *r, uint32_t i)
{
    const struct addressing how = along(FRIT_OP_select, FRIT_OP_select_assign, r->attrs->axis.axis);

    (void)i;
    return read_rule(r, &how);
}

term rule_gather(const struct grad_rule *r, uint32_t i)
{
    const struct addressing how = along(FRIT_OP_gather, FRIT_OP_scatter, r->attrs->axis.axis);

    (void)i;
    return read_rule(r, &how);
}

term rule_gather_nd(const struct grad_rule *r, uint32_t i)
{
    const struct addressing how = along(FRIT_OP_gather_nd, FRIT_OP_scatter_nd, -1);

    (void)i;
    return read_rule(r, &how);
}

term rule_scatter(const struct grad_rule *r, uint32_t i)
{
    const struct addressing how = along(FRIT_OP_gather, FRIT_OP_scatter, r->attrs->scatter.axis);

    return write_rule(r, &how, r->attrs->scatter.update, i);
}

term rule_select_assign(const struct grad_rule *r, uint32_t i)
{
    const struct addressing how =
        along(FRIT_OP_select, FRIT_OP_select_assign, r->attrs->scatter.axis);

    return write_rule(r, &how, r->attrs->scatter.update, i);
}

term rule_scatter_nd(const struct grad_rule *r, uint32_t i)
{
    const struct addressing how = along(FRIT_OP_gather_nd, FRIT_OP_scatter_nd, -1);

    return write_rule(r, &how, r->attrs->update.update, i);
}

term rule_embedding(const struct grad_rule *r, uint32_t i)
{
    const struct op_type *table = &r->types[i].type;
    const term in[] = {r->in[1], api_i(0), api_i(table->dims[0] - 1)};

    return t_op(FRIT_OP_embedding_backward, 3,
                (term[]){t_shape(r, i), r->g[0], t_op(FRIT_OP_clamp, 3, in, NULL)}, NULL);
}
