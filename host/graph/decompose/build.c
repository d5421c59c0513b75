/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/decompose/build.h"

#include <math.h>
#include <string.h>

#include "graph/attrs.h"
#include "graph/dtype.h"
#include "graph/scalar.h"

term b_number(double value)
{
    return b_scalar(scalar_f(value));
}

term b_scalar(frit_scalar scalar)
{
    return (term){.kind = FRIT_OPERAND_SCALAR, .scalar = scalar};
}

term b_in(const struct build *b, uint32_t index)
{
    return b->in[index];
}

bool b_has(const struct build *b, uint32_t index)
{
    return b->in[index].kind != FRIT_OPERAND_ABSENT;
}

struct op_type b_type(const struct build *b, term x)
{
    return b->status ? (struct op_type){0} : b->graph->values[x.value].type;
}

void b_op_all(struct build *b, const struct graph_call *call, term out[FRIT_OP_MAX_OUT])
{
    uint32_t value[FRIT_OP_MAX_OUT] = {0};
    struct graph_call all = *call;

    all.wanted = UINT32_MAX;
    if (!b->status)
        b->status = graph_append(b->graph, &all, value, b->err);
    for (int k = 0; k < FRIT_OP_MAX_OUT; k++)
        out[k] = (term){.kind = FRIT_OPERAND_TENSOR, .value = value[k]};
}

term b_op(struct build *b, uint32_t op, uint32_t n_in, const term *in, const void *attrs)
{
    const struct graph_call call = {.op = op, .n_in = n_in, .in = in, .attrs = attrs};
    uint32_t out[FRIT_OP_MAX_OUT] = {0};

    if (!b->status)
        b->status = graph_append(b->graph, &call, out, b->err);
    return (term){.kind = FRIT_OPERAND_TENSOR, .value = out[0]};
}

/* ---- elementwise ---- */

#define UNARY(row)                                  \
    term b_##row(struct build *b, term x)           \
    {                                               \
        return b_op(b, FRIT_OP_##row, 1, &x, NULL); \
    }

UNARY(abs)
UNARY(neg)
UNARY(exp)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(sqrt)
UNARY(erf)
UNARY(sin)
UNARY(cos)
UNARY(tanh)
UNARY(floor)
UNARY(not )
UNARY(copy)

/* A number from an attribute may exceed the largest value of the dtype that the ops compute in:
 * then it becomes infinite, as the result of an op with it would be. */
static void round_scalar(const struct build *b, term *x)
{
    double value = scalar_number(&x->scalar);

    if (x->kind == FRIT_OPERAND_SCALAR && x->scalar.kind == FRIT_SCALAR_F64 && isfinite(value) &&
        dtype_class(b->dtype) == FRIT_DTYPE_FLOAT && isinf(scalar_round(value, b->dtype)))
        *x = b_number(scalar_round(value, b->dtype));
}

static term binary(struct build *b, uint32_t op, term x, term y)
{
    round_scalar(b, &x);
    round_scalar(b, &y);
    if (x.kind == FRIT_OPERAND_SCALAR && y.kind == FRIT_OPERAND_SCALAR)
        x = b_full(b, b->dtype, x.scalar, 0, NULL);
    return b_op(b, op, 2, (const term[]){x, y}, NULL);
}

#define BINARY(row)                               \
    term b_##row(struct build *b, term x, term y) \
    {                                             \
        return binary(b, FRIT_OP_##row, x, y);    \
    }

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(rem)
BINARY(shr)
BINARY(and)
BINARY(or)
BINARY(maximum)
BINARY(minimum)
BINARY(atan2)
BINARY(hypot)
BINARY(eq)
BINARY(lt)
BINARY(le)
BINARY(matmul)

term b_where(struct build *b, term mask, term x, term y)
{
    return b_op(b, FRIT_OP_where, 3, (const term[]){mask, x, y}, NULL);
}

/* ---- other rows ---- */

static frit_dims dims_of(uint32_t rank, const int64_t *dims)
{
    frit_dims list = {.rank = rank};

    if (rank)
        memcpy(list.dim, dims, rank * sizeof(dims[0]));
    return list;
}

term b_full(struct build *b, uint32_t dtype, frit_scalar value, uint32_t rank, const int64_t *dims)
{
    const frit_attrs_init attrs = {
        .struct_size = sizeof(attrs), .dtype = dtype, .dims = dims_of(rank, dims)};
    const term x = b_scalar(value);

    return b_op(b, FRIT_OP_full, 1, &x, &attrs);
}

term b_cast(struct build *b, term x, uint32_t dtype)
{
    const frit_attrs_cast attrs = {.struct_size = sizeof(attrs), .dtype = dtype};

    return b_type(b, x).dtype == dtype ? x : b_op(b, FRIT_OP_cast, 1, &x, &attrs);
}

term b_reshape(struct build *b, term x, uint32_t rank, const int64_t *dims)
{
    const frit_attrs_dims attrs = {.struct_size = sizeof(attrs), .dims = dims_of(rank, dims)};

    return b_op(b, FRIT_OP_reshape, 1, &x, &attrs);
}

term b_expand(struct build *b, term x, uint32_t rank, const int64_t *dims)
{
    const frit_attrs_dims attrs = {.struct_size = sizeof(attrs), .dims = dims_of(rank, dims)};

    return b_op(b, FRIT_OP_expand, 1, &x, &attrs);
}

term b_slice(struct build *b, term x, uint32_t axis, int64_t start, int64_t stop)
{
    frit_attrs_slice attrs = {.struct_size = sizeof(attrs), .slices = {.count = axis + 1}};

    attrs.slices.dim[axis] = (frit_range){start, stop, 1};
    return b_op(b, FRIT_OP_slice, 1, &x, &attrs);
}

term b_swap_last(struct build *b, term x)
{
    uint32_t rank = b_type(b, x).rank;
    frit_attrs_order attrs = {.struct_size = sizeof(attrs), .order = {.count = rank}};

    for (uint32_t i = 0; i < rank; i++)
        attrs.order.axis[i] = i + 2 < rank ? i : i + 1 < rank ? i + 1 : i - 1;
    return b_op(b, FRIT_OP_permute, 1, &x, &attrs);
}

term b_permute(struct build *b, term x, const int64_t *order)
{
    uint32_t rank = b_type(b, x).rank;
    frit_attrs_order attrs = {.struct_size = sizeof(attrs), .order = {.count = rank}};

    memcpy(attrs.order.axis, order, rank * sizeof(order[0]));
    return b_op(b, FRIT_OP_permute, 1, &x, &attrs);
}

term b_pad(struct build *b, term x, const int64_t *low, const int64_t *high, const int64_t *inner)
{
    uint32_t rank = b_type(b, x).rank;
    const frit_attrs_pad attrs = {.struct_size = sizeof(attrs),
                                  .low = dims_of(low ? rank : 0, low),
                                  .high = dims_of(high ? rank : 0, high),
                                  .inner = dims_of(inner ? rank : 0, inner)};

    return b_op(b, FRIT_OP_pad, 2, (const term[]){x, b_number(0)}, &attrs);
}

term b_cat(struct build *b, uint32_t n, const term *xs, uint32_t axis)
{
    const frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = axis};

    return b_op(b, FRIT_OP_cat, n, xs, &attrs);
}

term b_select(struct build *b, term x, term index, uint32_t axis)
{
    const frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = axis};

    return b_op(b, FRIT_OP_select, 2, (const term[]){x, index}, &attrs);
}

term b_scatter(struct build *b, const term in[3], uint32_t axis, int64_t update)
{
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs), .axis = axis, .update = update};

    return b_op(b, FRIT_OP_scatter, 3, in, &attrs);
}

term b_arange(struct build *b, int64_t n)
{
    const frit_attrs_init attrs = {
        .struct_size = sizeof(attrs), .dtype = FRIT_I64, .dims = {.rank = 1, .dim = {n}}};

    return b_op(b, FRIT_OP_arange, 2, (const term[]){b_number(0), b_number(1)}, &attrs);
}

term b_reduce(struct build *b, uint32_t op, term x, const frit_axes *axes, bool keep)
{
    const frit_attrs_reduce attrs = {.struct_size = sizeof(attrs), .axes = *axes, .keep = keep};

    return b_op(b, op, 1, &x, &attrs);
}

term b_div_rows(struct build *b, term x, term y)
{
    return b->dtype == FRIT_F64 ? b_div(b, x, y) : b_mul(b, x, b_div(b, b_number(1), y));
}

term b_mean(struct build *b, term x, const frit_axes *axes, bool keep)
{
    struct op_type type = b_type(b, x);
    double count = 1;

    for (int64_t i = 0; i < axes->count; i++)
        count *= (double)type.dims[axes->axis[i]];
    return b_div(b, b_reduce(b, FRIT_OP_sum, x, axes, keep), b_number(count));
}
