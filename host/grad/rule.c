/* SPDX-License-Identifier: Apache-2.0 */
/* The words of rules, and the table of them. */
#include "grad/rule.h"

#include <math.h>
#include <string.h>

#include "grad/rules_contract.h"
#include "grad/rules_index.h"
#include "grad/rules_norm.h"
#include "grad/rules_reduce.h"
#include "grad/rules_shape.h"

/* ---- the table ---- */

enum {
    A = 1 << 0,
    B = 1 << 1,
    C = 1 << 2,
    D = 1 << 3,
    E = 1 << 4,
    Y = NEEDS_OUT(0),
    Y1 = NEEDS_OUT(1)
};

#define GRAD(op, operand, needs, expression)                            \
    static term op##_##operand(const struct grad_rule *r, uint32_t i)   \
    {                                                                   \
        const term g = r->g[0], y = r->y[0];                            \
        const term a = r->in[0], b = r->n_in > 1 ? r->in[1] : t_none(); \
        const term c = r->n_in > 2 ? r->in[2] : t_none();               \
                                                                        \
        (void)r, (void)i, (void)g, (void)y, (void)a, (void)b, (void)c;  \
        return expression;                                              \
    }
#include "grad/rules.def"

static const struct grad_row rows[FRIT_OP_LIMIT] = {
#define GRAD(op, k, needs, rule)         [FRIT_OP_##op].in[k] = {op##_##k, needs},
#define GRAD_FN(op, k, needs, fn, words) [FRIT_OP_##op].in[k] = {fn, needs},
#define GRAD_WANTS(op, k)                [FRIT_OP_##op].wants = 1u << (k),
#define GRAD_STEPS(op, why)              [FRIT_OP_##op] = {.kind = GRAD_ZERO},
#define GRAD_PARTS(op, why)              [FRIT_OP_##op] = {.kind = GRAD_PARTS},
#define NO_GRAD(op, why)                 [FRIT_OP_##op] = {.kind = GRAD_NONE},
#include "grad/rules.def"
};

const struct grad_row *grad_row_of(uint32_t op)
{
    return op < FRIT_OP_LIMIT ? &rows[op] : NULL;
}

/* ---- ops ---- */

term t_op(uint32_t op, uint32_t n_in, const term *in, void *attrs)
{
    const struct api_call call = {.op = op, .n_in = n_in, .in = in, .attrs = attrs};

    return t_of(api_op(&call));
}

term t_op1(uint32_t op, term x)
{
    return t_op(op, 1, &x, NULL);
}

term t_op2(uint32_t op, term a, term b)
{
    const term in[] = {a, b};

    return t_op(op, 2, in, NULL);
}

term t_where(term mask, term a, term b)
{
    const term in[] = {mask, a, b};

    return t_op(FRIT_OP_where, 3, in, NULL);
}

term t_share(term g, term wins, term ties)
{
    return t_where(wins, g, t_where(ties, t_mul(g, t_num(0.5)), t_num(0)));
}

term t_over_square(term x, term y)
{
    return t_div(t_div(x, y), y);
}

double t_number(term t)
{
    double value;

    memcpy(&value, &t.scalar.bits, sizeof(value)); /* a float, as op_check left it */
    return value;
}

term t_below_zero(term x)
{
    return x.tensor ? t_op2(FRIT_OP_minimum, x, t_num(0)) : t_num(fmin(t_number(x), 0));
}

term t_silu_slope(term x, term s)
{
    return t_mul(s, t_add(t_mul(x, t_sub(t_num(1), s)), t_num(1)));
}

/* ---- shapes ---- */

struct op_type t_type(term t)
{
    struct op_type type = {.dtype = frit_tensor_dtype(t.tensor)};
    const frit_dims dims = frit_tensor_dims(t.tensor);

    type.rank = (uint32_t)dims.rank;
    memcpy(type.dims, dims.dim, sizeof(type.dims));
    return type;
}

static frit_attrs_dims dims_of(const struct op_type *type)
{
    frit_attrs_dims attrs = {.struct_size = sizeof(attrs), .dims.rank = type->rank};

    memcpy(attrs.dims.dim, type->dims, type->rank * sizeof(*type->dims));
    return attrs;
}

term t_reshape(term x, const struct op_type *type)
{
    frit_attrs_dims attrs = dims_of(type);

    return t_op(FRIT_OP_reshape, 1, &x, &attrs);
}

term t_expand(term x, const struct op_type *type)
{
    frit_attrs_dims attrs = dims_of(type);

    return t_op(FRIT_OP_expand, 1, &x, &attrs);
}

term t_sum(term x, const frit_axes *axes, bool keep)
{
    frit_attrs_reduce attrs = {.struct_size = sizeof(attrs), .axes = *axes, .keep = keep};

    return t_op(FRIT_OP_sum, 1, &x, &attrs);
}

term t_cast(term x, uint32_t dtype)
{
    frit_attrs_cast attrs = {.struct_size = sizeof(attrs), .dtype = dtype};

    return t_op(FRIT_OP_cast, 1, &x, &attrs);
}

term t_permute(term x, const frit_axes *order)
{
    frit_attrs_order attrs = {.struct_size = sizeof(attrs), .order = *order};

    return t_op(FRIT_OP_permute, 1, &x, &attrs);
}

term t_transpose(term x, int64_t axis, int64_t with)
{
    frit_attrs_swap attrs = {.struct_size = sizeof(attrs), .axis = axis, .with = with};

    return t_op(FRIT_OP_transpose, 1, &x, &attrs);
}

term t_flip(term x, int64_t axis)
{
    frit_attrs_axes attrs = {.struct_size = sizeof(attrs), .axes = {.count = 1, .axis = {axis}}};

    return t_op(FRIT_OP_flip, 1, &x, &attrs);
}

term t_slice(term x, const frit_slices *slices)
{
    frit_attrs_slice attrs = {.struct_size = sizeof(attrs), .slices = *slices};

    return t_op(FRIT_OP_slice, 1, &x, &attrs);
}

term t_full(const struct grad_rule *r, const struct op_type *type, double value)
{
    const frit_attrs_dims dims = dims_of(type);
    frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = type->dtype, .dims = dims.dims};
    const term in = t_num(value);
    const struct api_call call = {
        .op = FRIT_OP_full, .n_in = 1, .device = r->device, .in = &in, .attrs = &attrs};

    return t_of(api_op(&call));
}

term t_shape(const struct grad_rule *r, uint32_t i)
{
    return t_full(r, &r->types[i].type, 0);
}

term t_iota(const struct grad_rule *r, const struct op_type *like, int64_t axis, uint32_t dtype)
{
    frit_attrs_init attrs = {.struct_size = sizeof(attrs),
                             .dtype = dtype,
                             .dims = {.rank = 1, .dim = {like->dims[axis]}}};
    const term in[] = {api_i(0), api_i(1)};
    const struct api_call call = {
        .op = FRIT_OP_arange, .n_in = 2, .device = r->device, .in = in, .attrs = &attrs};
    struct op_type type = {.dtype = dtype, .rank = like->rank};

    for (uint32_t d = 0; d < like->rank; d++)
        type.dims[d] = d == axis ? like->dims[d] : 1;
    return t_reshape(t_of(api_op(&call)), &type);
}

term t_sum_to(term t, const struct op_type *type)
{
    const struct op_type have = t_type(t);
    const uint32_t more = have.rank > type->rank ? have.rank - type->rank : 0;
    frit_axes axes = {0};

    if (have.dtype == FRIT_NO_DTYPE || op_type_equal(&have, type))
        return t;
    for (uint32_t d = 0; d < have.rank; d++) {
        if (d < more || type->dims[d - more] != have.dims[d])
            axes.axis[axes.count++] = d;
    }
    if (!axes.count)
        return t;
    if (axes.count == more) /* no view, so that the sum may be computed where it is needed */
        return t_sum(t, &axes, false);
    t = t_sum(t, &axes, true);
    return more ? t_reshape(t, type) : t;
}
