/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops, and short patterns of them. */
#include "ops.h"

bool generate_unary(struct generator *g)
{
    static const struct simple_op ops[] = {
        {FRIT_OP_abs, NUMBERS, ANY_EXPONENT, OF_OPERAND, true},
        {FRIT_OP_neg, NUMBERS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_relu, NUMBERS, ANY_EXPONENT, OF_OPERAND, true},
        {FRIT_OP_square, NUMBERS, MAX_EXPONENT / 2, OF_SQUARE, true},
        {FRIT_OP_exp, REALS, 3, 12, true},
        {FRIT_OP_tanh, REALS, ANY_EXPONENT, 0, false},
        {FRIT_OP_sigmoid, REALS, ANY_EXPONENT, 0, true},
        {FRIT_OP_silu, REALS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_gelu, REALS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_floor, REALS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_softplus, REALS, ANY_EXPONENT, OF_OPERAND, true},
        {FRIT_OP_not, LOGICS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_copy, ANY, ANY_EXPONENT, OF_OPERAND, false},
    };
    const struct simple_op *op = &ops[chance_below(&g->chance, sizeof(ops) / sizeof(ops[0]))];
    struct want want = {.dtypes = op->dtypes, .exponent = op->most, .max_rank = SCRIPT_RANK};
    struct action action = begin_op(g, op->id, ATTR_NONE);
    const struct var *var;
    uint16_t x;
    int exponent;

    g->discrete = op->id == FRIT_OP_floor;
    x = pick(g, &want);
    var = value_of(g, x);
    if (x == NO_VAR)
        return false;
    exponent = op->exponent == OF_OPERAND  ? var->exponent
               : op->exponent == OF_SQUARE ? 2 * var->exponent
                                           : op->exponent;
    action.n_in = 1;
    action.in[0] = use(g, x);
    add_output(g, &action, var->dtype, &var->shape, exponent, op->positive);
    return commit(g, &action);
}

/* In a well-conditioned script: a value that is at least 1, made of `x`; else `x`. */
uint16_t away_from_zero(struct generator *g, uint16_t x)
{
    if (!g->script->well_conditioned || x == NO_VAR)
        return x;
    for (uint32_t k = g->script->vars[x].positive ? 1 : 0; k < 2; k++) {
        struct action action = begin_op(g, k ? FRIT_OP_add : FRIT_OP_abs, ATTR_NONE);
        const struct var *var = value_of(g, x);

        action.n_in = (uint8_t)(1 + k);
        action.in[0] = (struct operand){x, false};
        action.in[1] = scalar();
        action.scalars = SCALARS_ONE;
        add_output(g, &action, var->dtype, &var->shape, var->exponent + 1, true);
        if (!commit(g, &action))
            return NO_VAR;
        x = action.out[0];
    }
    return x;
}

static bool is_positive(const struct var *var)
{
    return var->positive;
}

bool generate_root(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_sqrt, FRIT_OP_log, FRIT_OP_recip, FRIT_OP_rsqrt};
    struct want want = {.dtypes = REALS, .exponent = ANY_EXPONENT, .max_rank = SCRIPT_RANK};
    uint16_t x;
    struct action action = begin_op(g, ops[chance_below(&g->chance, 4)], ATTR_NONE);

    want.fits = chance_of(&g->chance, 85) || g->script->well_conditioned ? is_positive : NULL;
    x = away_from_zero(g, pick(g, &want));
    if (x == NO_VAR)
        return false;
    action.n_in = 1;
    action.in[0] = use(g, x);
    add_output(g, &action, g->script->vars[x].dtype, &g->script->vars[x].shape,
               g->script->vars[x].exponent + 4, action.op == FRIT_OP_sqrt);
    return commit(g, &action);
}

static bool goes_with(const struct var *a, const struct var *b)
{
    struct shape shape;

    return a->dtype == b->dtype && shape_broadcast(&a->shape, &b->shape, &shape) &&
           shape_most(&shape) <= MAX_ELEMENTS;
}

/* Two operands of one type, one of them perhaps a scalar; gives what they broadcast to. */
static bool two_operands(struct generator *g, uint32_t dtypes, int most, struct action *action,
                         struct var *out)
{
    struct want want = {.dtypes = dtypes, .exponent = most, .max_rank = SCRIPT_RANK};
    uint16_t a = pick(g, &want), b;

    if (a == NO_VAR)
        return false;
    b = chance_of(&g->chance, 30) ? (uint16_t)NO_VAR : pick_beside(g, a, goes_with);
    *out = g->script->vars[a];
    out->positive = false;
    action->n_in = 2;
    action->in[0] = use(g, a);
    action->in[1] = scalar();
    if (b == NO_VAR) {
        out->exponent = out->exponent > 2 ? out->exponent : 2;
        if (chance_of(&g->chance, 25)) { /* the scalar comes first */
            action->in[1] = action->in[0];
            action->in[0] = scalar();
        }
        return true;
    }
    action->in[1] = use(g, b);
    shape_broadcast(&g->script->vars[a].shape, &g->script->vars[b].shape, &out->shape);
    out->exponent =
        out->exponent > g->script->vars[b].exponent ? out->exponent : g->script->vars[b].exponent;
    return true;
}

bool generate_binary(struct generator *g)
{
    static const struct simple_op ops[] = {
        {FRIT_OP_add, NUMBERS, MAX_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_add, NUMBERS, MAX_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_sub, NUMBERS, MAX_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_mul, NUMBERS, MAX_EXPONENT / 2, OF_SQUARE, false},
        {FRIT_OP_mul, NUMBERS, MAX_EXPONENT / 2, OF_SQUARE, false},
        {FRIT_OP_div, NUMBERS, MAX_EXPONENT / 2, MAX_EXPONENT, false},
        {FRIT_OP_maximum, NUMBERS | BIT(FRIT_BOOL), ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_minimum, NUMBERS | BIT(FRIT_BOOL), ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_and, LOGICS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_or, LOGICS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_xor, LOGICS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_hypot, REALS, MAX_EXPONENT / 2, OF_SQUARE, true},
    };
    const struct simple_op *op = &ops[chance_below(&g->chance, sizeof(ops) / sizeof(ops[0]))];
    struct action action = begin_op(g, op->id, ATTR_NONE);
    struct var out;
    int exponent;

    if (!two_operands(g, op->dtypes, op->most, &action, &out))
        return false;
    if (op->id == FRIT_OP_div && g->script->well_conditioned && action.in[1].var != NO_VAR) {
        action.in[1] = consume(g, away_from_zero(g, action.in[1].var));
        if (action.in[1].var == NO_VAR)
            return false;
    }
    exponent = op->exponent == OF_OPERAND  ? out.exponent + 1
               : op->exponent == OF_SQUARE ? 2 * out.exponent
                                           : op->exponent;
    add_output(g, &action, out.dtype, &out.shape, exponent, op->positive);
    return commit(g, &action);
}

bool generate_compare(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_eq, FRIT_OP_lt, FRIT_OP_le,
                                   FRIT_OP_ne, FRIT_OP_gt, FRIT_OP_ge};
    struct action action = begin_op(g, ops[chance_below(&g->chance, 6)], ATTR_NONE);
    struct var out;

    g->discrete = true;
    if (!two_operands(g, ANY, ANY_EXPONENT, &action, &out))
        return false;
    add_output(g, &action, FRIT_BOOL, &out.shape, 0, false);
    return commit(g, &action);
}

/* `where` or `mask_fill`; the mask is operand 0 of the first and operand 1 of the second. */
bool generate_choose(struct generator *g)
{
    bool fill = chance_of(&g->chance, 30);
    struct action action = begin_op(g, fill ? FRIT_OP_mask_fill : FRIT_OP_where, ATTR_NONE);
    uint16_t mask = pick_simple(g, BIT(FRIT_BOOL), 0);
    struct operand first, second;
    struct shape shape;
    struct var out;

    if (mask == NO_VAR || !two_operands(g, ANY, ANY_EXPONENT, &action, &out) ||
        !shape_broadcast(&g->script->vars[mask].shape, &out.shape, &shape) ||
        shape_most(&shape) > MAX_ELEMENTS || (fill && action.in[0].var == NO_VAR))
        return false;
    first = action.in[0];
    second = action.in[1];
    action.n_in = 3;
    action.in[0] = fill ? first : use(g, mask);
    action.in[1] = fill ? use(g, mask) : first;
    action.in[2] = second;
    add_output(g, &action, out.dtype, &shape, out.exponent, false);
    return commit(g, &action);
}

bool generate_clamp(struct generator *g)
{
    struct action action = begin_op(g, FRIT_OP_clamp, ATTR_NONE);
    uint16_t x = pick_simple(g, NUMBERS, 0);

    if (x == NO_VAR)
        return false;
    action.n_in = 3;
    action.in[0] = use(g, x);
    action.in[1] = action.in[2] = scalar();
    add_output(g, &action, g->script->vars[x].dtype, &g->script->vars[x].shape, 3, false);
    return commit(g, &action);
}

bool generate_cast(struct generator *g)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F32, FRIT_F64, FRIT_I32, FRIT_BOOL};
    struct action action = begin_op(g, FRIT_OP_cast, ATTR_CAST);
    uint32_t to = dtypes[chance_below(&g->chance, 5)];
    const struct var *var;
    uint16_t x;

    g->discrete = !(BIT(to) & REALS);
    x = pick_simple(g, ANY, 0);
    var = value_of(g, x);
    if (x == NO_VAR)
        return false;
    action.n_in = 1;
    action.in[0] = use(g, x);
    add_output(g, &action, to, &var->shape, BIT(var->dtype) & REALS ? var->exponent : 8, false);
    return commit(g, &action);
}

/* A chain of ops, each of which consumes the result of the one before, so that it can be computed
 * in place. */
bool generate_chain(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_neg, FRIT_OP_tanh, FRIT_OP_abs, FRIT_OP_sigmoid,
                                   FRIT_OP_add, FRIT_OP_mul,  FRIT_OP_sub, FRIT_OP_maximum};
    uint16_t x = pick_simple(g, REALS, 0), like = x;
    uint32_t length = 2 + chance_below(&g->chance, 6);

    if (x == NO_VAR)
        return false;
    for (uint32_t k = 0; k < length; k++) {
        uint32_t n = chance_below(&g->chance, 8);
        struct action action = begin_op(g, ops[n], ATTR_NONE);

        action.n_in = n < 4 ? 1 : 2;
        action.in[0] = k ? consume(g, x) : use(g, x);
        action.in[1] = scalar();
        if (action.n_in == 2 && g->script->vars[x].exponent > 10)
            action.op = FRIT_OP_minimum;
        add_output(g, &action, g->script->vars[like].dtype, &g->script->vars[like].shape,
                   g->script->vars[x].exponent + 2, false);
        if (!commit(g, &action))
            return false;
        x = action.out[0];
    }
    return true;
}

/* ---- packed types ---- */

/* The scales: one, or one per line along the last dim.  Powers of two, by which every float type
 * divides exactly, so that all devices round the same ties. */
static uint16_t scales_of(struct generator *g, const struct var *x, struct action *quantize)
{
    struct action action = begin_op(g, FRIT_OP_full, ATTR_INIT);
    struct shape shape = {.rank = 0};

    if (x->shape.rank && chance_of(&g->chance, 50)) {
        shape = x->shape;
        quantize->keep = true;
        quantize->size = shape.code[shape.rank - 1];
        shape.code[shape.rank - 1] = DIM_ONE;
    }
    action.n_in = 1;
    action.in[0] = scalar();
    action.scalars = SCALARS_POWERS;
    add_output(g, &action, x->dtype, &shape, 2, true);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

/* Quantizes and dequantizes at once: scripts have no values of packed types. */
bool generate_quant(struct generator *g)
{
    static const uint32_t dtypes[] = {FRIT_Q8,     FRIT_Q4,     FRIT_Q2,         FRIT_F8E4M3,
                                      FRIT_F8E5M2, FRIT_F4E2M1, FRIT_F8E4M3FNUZ, FRIT_F8E5M2FNUZ};
    struct want want = {
        .dtypes = REALS, .exponent = 8, .max_rank = SCRIPT_RANK, .fits = has_elements};
    struct action there = begin_op(g, FRIT_OP_quantize, ATTR_QUANTIZE);
    struct action back = begin_op(g, FRIT_OP_dequantize, ATTR_DEQUANTIZE);
    struct var var;
    uint16_t x, scales;

    g->discrete = true;
    x = pick(g, &want);
    if (x == NO_VAR)
        return false;
    var = *value_of(g, x);
    scales = scales_of(g, &var, &there);
    if (scales == NO_VAR)
        return false;
    there.n_in = back.n_in = 3;
    there.in[0] = use(g, x);
    there.in[1] = (struct operand){scales, false};
    there.in[2] = back.in[2] = scalar();      /* absent */
    there.choice = chance_of(&g->chance, 50); /* symmetric */
    add_output(g, &there, dtypes[chance_below(&g->chance, 6)], &var.shape, 0, false);
    if (!commit(g, &there))
        return false;
    back.keep = there.keep;
    back.size = there.size;
    back.in[0] = consume(g, there.out[0]);
    back.in[1] = use(g, scales);
    add_output(g, &back, var.dtype, &var.shape, 8, false);
    return commit(g, &back);
}

/* |x| - x; the program never sees |x|. */
static bool step_value(struct generator *g)
{
    struct action inner = begin_op(g, FRIT_OP_abs, ATTR_NONE);
    struct action outer = begin_op(g, FRIT_OP_sub, ATTR_NONE);
    uint16_t x = pick_simple(g, BIT(FRIT_F32), 0);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return false;
    inner.n_in = 1;
    inner.in[0] = (struct operand){x, false};
    add_output(g, &inner, var->dtype, &var->shape, var->exponent, true);
    if (!commit(g, &inner))
        return false;
    var = value_of(g, x);
    outer.n_in = 2;
    outer.in[0] = consume(g, inner.out[0]);
    outer.in[1] = (struct operand){x, false};
    add_output(g, &outer, var->dtype, &var->shape, var->exponent + 1, false);
    return commit(g, &outer);
}

/* The same ops on many values, each with its own result, as in an optimiser's step. */
bool generate_step(struct generator *g)
{
    uint32_t n = 10 + chance_below(&g->chance, 20);
    struct action flush = begin(g, ACT_FLUSH);
    bool some = false;

    if (!chance_of(&g->chance, 15)) /* it has many ops */
        return generate_unary(g);
    for (uint32_t i = 0; i < n; i++)
        some |= step_value(g);
    return some && (chance_of(&g->chance, 50) || commit(g, &flush));
}
