/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, scans, norms, and what is made of them op by op. */
#include <string.h>

#include "ops.h"

bool has_elements(const struct var *var)
{
    return shape_most(&var->shape) > 0;
}

/* The dims without the axes, or with 1 in their place. */
static struct shape reduced(const struct shape *shape, const struct action *action)
{
    struct shape out = {0};

    for (uint32_t d = 0; d < shape->rank; d++) {
        if (!memchr(action->axes, (int)d, action->n_axes))
            out.code[out.rank++] = shape->code[d];
        else if (action->keep)
            out.code[out.rank++] = DIM_ONE;
    }
    return out;
}

bool generate_reduce(struct generator *g)
{
    static const struct simple_op ops[] = {
        {FRIT_OP_sum, NUMBERS, MAX_EXPONENT, 10, false},
        {FRIT_OP_sum, NUMBERS, MAX_EXPONENT, 10, false},
        {FRIT_OP_mean, REALS, MAX_EXPONENT, 0, false},
        {FRIT_OP_max, ANY, ANY_EXPONENT, 0, false},
        {FRIT_OP_min, ANY, ANY_EXPONENT, 0, false},
        {FRIT_OP_var, REALS, MAX_EXPONENT / 2, 12, true},
        {FRIT_OP_any, ANY, ANY_EXPONENT, 0, false},
        {FRIT_OP_argmax, ANY, ANY_EXPONENT, 0, false},
    };
    const struct simple_op *op = &ops[chance_below(&g->chance, 8)];
    struct want want = {.dtypes = op->dtypes,
                        .exponent = op->most,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = has_elements};
    struct action action = begin_op(g, op->id, ATTR_REDUCE);
    const struct var *var;
    struct shape shape;
    uint16_t x;

    g->discrete = op->id == FRIT_OP_any || op->id == FRIT_OP_argmax;
    x = pick(g, &want);
    var = value_of(g, x);
    if (x == NO_VAR)
        return false;
    action.keep = chance_of(&g->chance, 50);
    for (uint8_t d = 0; d < var->shape.rank; d++)
        if (chance_of(&g->chance, 40))
            action.axes[action.n_axes++] = d;
    if (action.n_axes == 0 || chance_of(&g->chance, 30) || op->id == FRIT_OP_argmax) {
        action.n_axes = 1;
        action.axes[0] = (uint8_t)chance_below(&g->chance, var->shape.rank);
    }
    action.n_in = 1;
    action.in[0] = use(g, x);
    shape = reduced(&var->shape, &action);
    if (op->id == FRIT_OP_argmax) {
        add_output(g, &action, FRIT_I64, &shape, 0, false);
        return commit(g, &action) && cast_index(g, &action, 0);
    }
    add_output(g, &action, op->id == FRIT_OP_any ? FRIT_BOOL : var->dtype, &shape,
               var->exponent + op->exponent, op->positive);
    return commit(g, &action);
}

bool generate_along_axis(struct generator *g)
{
    static const struct simple_op ops[] = {
        {FRIT_OP_softmax, REALS, ANY_EXPONENT, 0, true},
        {FRIT_OP_log_softmax, REALS, ANY_EXPONENT, 8, false},
        {FRIT_OP_cumsum, NUMBERS, MAX_EXPONENT, 10, false},
        {FRIT_OP_softmin, REALS, ANY_EXPONENT, 0, true},
        {FRIT_OP_cummax, NUMBERS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_cummin, NUMBERS, ANY_EXPONENT, OF_OPERAND, false},
        {FRIT_OP_cumprod, NUMBERS, 0, OF_OPERAND, false}, /* a product of many has no other bound */
    };
    const struct simple_op *op = &ops[chance_below(&g->chance, sizeof(ops) / sizeof(ops[0]))];
    struct want want = {
        .dtypes = op->dtypes, .exponent = op->most, .min_rank = 1, .max_rank = SCRIPT_RANK};
    uint16_t x = pick(g, &want);
    struct action action = begin_op(g, op->id, ATTR_AXIS);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return false;
    action.axis = (uint8_t)chance_below(&g->chance, var->shape.rank);
    action.n_in = 1;
    action.in[0] = use(g, x);
    add_output(g, &action, var->dtype, &var->shape,
               op->exponent < 0 ? var->exponent : var->exponent + op->exponent, op->positive);
    return commit(g, &action);
}

static bool is_last_of(const struct var *x, const struct var *gamma)
{
    return gamma->shape.rank == 1 && gamma->shape.code[0] == x->shape.code[x->shape.rank - 1];
}

bool generate_norm(struct generator *g)
{
    bool layer = chance_of(&g->chance, 60);
    struct action action =
        begin_op(g, layer ? FRIT_OP_layer_norm : FRIT_OP_rms_norm, ATTR_NORM_AXES);
    uint16_t x = pick_simple(g, REALS, 1), gamma;
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return false;
    gamma = pick_beside(g, x, is_last_of);
    action.n_in = layer ? 3 : 2;
    action.in[0] = use(g, x);
    action.in[1] = action.in[2] = scalar(); /* absent */
    if (gamma != NO_VAR) {
        action.in[1] = use(g, gamma);
        if (layer && chance_of(&g->chance, 50))
            action.in[2] = use(g, gamma);
    }
    action.n_axes = 1;
    action.axes[0] = (uint8_t)(var->shape.rank - 1);
    add_output(g, &action, var->dtype, &var->shape, 6, false);
    return commit(g, &action);
}

/* ---- patterns ---- */

/* One op of a pattern: `x` beside `y` (NO_VAR: none), each used up if its letter says so. */
static uint16_t step(struct generator *g, uint16_t op, uint16_t x, bool x_dies, uint16_t y,
                     bool y_dies)
{
    struct action action = begin_op(g, op, ATTR_NONE);
    struct shape shape;
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return NO_VAR;
    shape = var->shape;
    action.n_in = y == NO_VAR ? 1 : 2;
    action.in[0] = x_dies ? consume(g, x) : (struct operand){x, false};
    if (y != NO_VAR) {
        action.in[1] = y_dies ? consume(g, y) : (struct operand){y, false};
        shape_broadcast(&var->shape, &g->script->vars[y].shape, &shape);
    }
    add_output(g, &action, var->dtype, &shape,
               op == FRIT_OP_square ? 2 * var->exponent : var->exponent, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

static uint16_t fold(struct generator *g, uint16_t op, uint16_t x, uint8_t axis)
{
    struct action action = begin_op(g, op, ATTR_REDUCE);
    struct shape shape;

    if (x == NO_VAR)
        return NO_VAR;
    action.keep = 1;
    action.n_axes = 1;
    action.axes[0] = axis;
    action.n_in = 1;
    action.in[0] = (struct operand){x, false};
    shape = reduced(&g->script->vars[x].shape, &action);
    add_output(g, &action, g->script->vars[x].dtype, &shape,
               g->script->vars[x].exponent + (op == FRIT_OP_sum ? 10 : 0), false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

/* softmax and the heart of layer_norm, op by op. */
bool generate_pattern(struct generator *g)
{
    struct want want = {.dtypes = REALS,
                        .exponent = 10,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = has_elements};
    bool soft = chance_of(&g->chance, 50);
    uint16_t x = pick(g, &want), low, away, up, total;
    uint8_t axis;

    if (x == NO_VAR)
        return false;
    axis = (uint8_t)chance_below(&g->chance, g->script->vars[x].shape.rank);
    low = fold(g, soft ? FRIT_OP_max : FRIT_OP_mean, x, axis);
    away = low == NO_VAR ? low : step(g, FRIT_OP_sub, x, chance_of(&g->chance, 30), low, true);
    up = step(g, soft ? FRIT_OP_exp : FRIT_OP_square, away, soft, NO_VAR, false);
    total = fold(g, soft ? FRIT_OP_sum : FRIT_OP_mean, up, axis);
    if (total == NO_VAR)
        return false;
    if (soft)
        return step(g, FRIT_OP_div, up, true, total, true) != NO_VAR;
    total = step(g, FRIT_OP_rsqrt, away_from_zero(g, total), true, NO_VAR, false);
    return total != NO_VAR && step(g, FRIT_OP_mul, away, true, total, true) != NO_VAR;
}
