/* SPDX-License-Identifier: Apache-2.0 */
/* What the rule of an op's gradient sees, and the words that rules are written in.
 *
 * A term is an operand of a call: a tensor, a number, or nothing.  Every function makes a tensor
 * that belongs to the scope that is open while a rule runs; errors travel in the tensors. */
#ifndef GRAD_RULE_H
#define GRAD_RULE_H

#include <frit/frit.h>

#include "api/call.h"
#include "graph/attrs.h"
#include "graph/op.h"

typedef frit_input term;

struct grad_rule {
    const frit_op_info *row;
    frit_device *device;
    uint32_t n_in;
    const struct op_input *types; /* of the operands */
    const struct op_type *out;    /* of the results */
    const union attrs *attrs;     /* as op_check left them */
    uint32_t wanted;              /* bits of the operands whose gradients are computed */
    const term *in;               /* operands; tensors that the rule does not need are absent */
    term y[FRIT_OP_MAX_OUT];      /* results, likewise */
    term g[FRIT_OP_MAX_OUT];      /* gradients of the results; absent: zero */
    term *shared; /* GRAD_SHARED terms of one node that the rules of its operands share */
};

enum { GRAD_SHARED = 4 };

/* What a rule needs: bit i for operand i, and these for result k. */
#define NEEDS_OUT(k) (1u << (16 + (k)))

typedef term (*rule_fn)(const struct grad_rule *r, uint32_t operand);

enum grad_kind {
    GRAD_RULES, /* of the operands that have a function */
    GRAD_ZERO,  /* constant but for steps: gradients are zero */
    GRAD_PARTS, /* by the core ops that it consists of, which run again */
    GRAD_NONE   /* not differentiable: no operand gets a gradient, and none is expected */
};

struct grad_row {
    enum grad_kind kind;
    struct {
        rule_fn fn;
        uint32_t needs;
    } in[FRIT_OP_MAX_IN];
    uint32_t wants; /* outputs that the rules need although the caller may not */
};

/* NULL beyond the table. */
const struct grad_row *grad_row_of(uint32_t op);

static inline term t_none(void)
{
    return (term){0};
}

static inline term t_num(double value)
{
    return api_f(value);
}

/* The number of a term that is one. */
double t_number(term t);

static inline bool t_has(term t)
{
    return t.tensor != NULL || t.scalar.kind != FRIT_SCALAR_NONE;
}

static inline term t_of(frit_tensor *tensor)
{
    return api_tensor(tensor);
}

/* Any op of one result; attrs NULL for the record `none`. */
term t_op(uint32_t op, uint32_t n_in, const term *in, void *attrs);
term t_op1(uint32_t op, term x);
term t_op2(uint32_t op, term a, term b);

#define T_UNARY(name)                    \
    static inline term t_##name(term x)  \
    {                                    \
        return t_op1(FRIT_OP_##name, x); \
    }
#define T_BINARY(name)                          \
    static inline term t_##name(term a, term b) \
    {                                           \
        return t_op2(FRIT_OP_##name, a, b);     \
    }
T_UNARY(neg)
T_UNARY(sign)
T_UNARY(exp)
T_UNARY(log)
T_UNARY(sin)
T_UNARY(cos)
T_UNARY(sinh)
T_UNARY(cosh)
T_UNARY(floor)
T_UNARY(rsqrt)
T_UNARY(recip)
T_UNARY(square)
T_UNARY(sigmoid)
T_UNARY(not )
T_BINARY(add)
T_BINARY(sub)
T_BINARY(mul)
T_BINARY(div)
T_BINARY(pow)
T_BINARY(hypot)
T_BINARY(eq)
T_BINARY(lt)
T_BINARY(le)
T_BINARY(and)
T_BINARY(or)
#undef T_UNARY
#undef T_BINARY

term t_where(term mask, term a, term b);
/* `g` where `wins`, half of it where `ties`, else 0. */
term t_share(term g, term wins, term ties);
/* x / y^2, where the square could overflow. */
term t_over_square(term x, term y);
/* The smaller of x and 0; of a number, too. */
term t_below_zero(term x);
/* The slope of x * s, where s is sigmoid(x). */
term t_silu_slope(term x, term s);
/* `t` where the mask is true, else 0. */
static inline term t_keep(term mask, term t)
{
    return t_where(mask, t, t_num(0));
}

term t_reshape(term x, const struct op_type *type);
term t_expand(term x, const struct op_type *type);
term t_sum(term x, const frit_axes *axes, bool keep);
term t_cast(term x, uint32_t dtype);
term t_permute(term x, const frit_axes *order);
term t_transpose(term x, int64_t axis, int64_t with);
term t_flip(term x, int64_t axis);
term t_slice(term x, const frit_slices *slices);
/* A tensor of the type, every element `value`. */
term t_full(const struct grad_rule *r, const struct op_type *type, double value);
/* A tensor of operand `i`'s type, for ops that only look at its dims. */
term t_shape(const struct grad_rule *r, uint32_t i);
/* 0, 1, 2 ... along `axis`, of this element type, with the rank of `like` and extent 1 elsewhere.
 */
term t_iota(const struct grad_rule *r, const struct op_type *like, int64_t axis, uint32_t dtype);
/* t summed over what broadcasting repeated, so that it has the type's dims. */
term t_sum_to(term t, const struct op_type *type);

struct op_type t_type(term t);

#endif
