/* SPDX-License-Identifier: Apache-2.0 */
/* Products as programs write them: operands that are views, a softmax behind them and a second
 * product behind that, elementwise ops behind them with one result or two. */
#include "ops.h"

/* An op of one operand and its type, which it uses up if `dies`. */
static uint16_t unary(struct generator *g, uint16_t op, uint16_t x, bool dies, int exponent)
{
    struct action action = begin_op(g, op, ATTR_NONE);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return NO_VAR;
    action.n_in = 1;
    action.in[0] = dies ? consume(g, x) : (struct operand){x, false};
    add_output(g, &action, var->dtype, &var->shape, exponent, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

/* The last two dims swapped; uses up `x`. */
static uint16_t swapped(struct generator *g, uint16_t x)
{
    struct action action = begin_op(g, FRIT_OP_transpose, ATTR_SWAP);
    const struct var *var = value_of(g, x);
    struct shape shape;

    if (x == NO_VAR)
        return NO_VAR;
    shape = var->shape;
    action.axis = (uint8_t)(shape.rank - 2);
    action.other_axis = (uint8_t)(shape.rank - 1);
    shape.code[action.axis] = var->shape.code[action.other_axis];
    shape.code[action.other_axis] = var->shape.code[action.axis];
    action.n_in = 1;
    action.in[0] = consume(g, x);
    add_output(g, &action, var->dtype, &shape, var->exponent, false);
    if (!commit(g, &action))
        return NO_VAR;
    g->script->n_views++;
    return action.out[0];
}

/* All of it, some dims backwards; uses up `x`. */
static uint16_t turned(struct generator *g, uint16_t x)
{
    struct action action = begin_op(g, FRIT_OP_flip, ATTR_AXES);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return NO_VAR;
    for (uint8_t d = 0; d < var->shape.rank; d++)
        if (chance_of(&g->chance, 50))
            action.axes[action.n_axes++] = d;
    action.n_in = 1;
    action.in[0] = consume(g, x);
    add_output(g, &action, var->dtype, &var->shape, var->exponent, false);
    if (!commit(g, &action))
        return NO_VAR;
    g->script->n_views++;
    return action.out[0];
}

/* New values [rows, columns], perhaps as a view of others. */
static uint16_t matrix(struct generator *g, uint32_t dtype, uint8_t rows, uint8_t columns)
{
    const bool is_swapped = chance_of(&g->chance, 50);
    struct shape shape = {.rank = 2, .code = {rows, columns}};
    uint16_t x;

    if (is_swapped) {
        shape.code[0] = columns;
        shape.code[1] = rows;
    }
    x = generate_fresh(g, dtype, &shape);
    if (chance_of(&g->chance, 25))
        x = turned(g, x);
    return is_swapped ? swapped(g, x) : x;
}

/* `a`, used up if it `dies`, times a new matrix with this many columns. */
static uint16_t product(struct generator *g, uint16_t a, bool dies, uint8_t columns)
{
    struct action action = begin_op(g, FRIT_OP_matmul, ATTR_NONE);
    struct shape shape;
    uint16_t b;

    if (a == NO_VAR)
        return NO_VAR;
    shape = g->script->vars[a].shape;
    b = matrix(g, g->script->vars[a].dtype, shape.code[shape.rank - 1], columns);
    shape.code[shape.rank - 1] = columns;
    if (b == NO_VAR || shape_most(&shape) > MAX_ELEMENTS)
        return NO_VAR;
    action.n_in = 2;
    action.in[0] = dies ? consume(g, a) : (struct operand){a, false};
    action.in[1] = consume(g, b);
    add_output(g, &action, g->script->vars[a].dtype, &shape, 12, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

static uint16_t softmax(struct generator *g, uint16_t x)
{
    struct action action = begin_op(g, FRIT_OP_softmax, ATTR_AXIS);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return NO_VAR;
    action.axis = (uint8_t)(var->shape.rank - 1);
    action.n_in = 1;
    action.in[0] = consume(g, x);
    add_output(g, &action, var->dtype, &var->shape, 0, true);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

/* A new row is added to `x`. */
static uint16_t with_bias(struct generator *g, uint16_t x)
{
    struct action action = begin_op(g, FRIT_OP_add, ATTR_NONE);
    const struct var *var = value_of(g, x);
    struct shape row = {.rank = 1};
    uint16_t bias;

    if (x == NO_VAR)
        return NO_VAR;
    row.code[0] = var->shape.code[var->shape.rank - 1];
    bias = generate_fresh(g, var->dtype, &row);
    if (bias == NO_VAR)
        return NO_VAR;
    var = value_of(g, x);
    action.n_in = 2;
    action.in[0] = consume(g, x);
    action.in[1] = consume(g, bias);
    add_output(g, &action, var->dtype, &var->shape, var->exponent + 1, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

bool generate_product(struct generator *g)
{
    struct want want = {
        .dtypes = REALS, .exponent = 3, .min_rank = 2, .max_rank = 3, .fits = has_elements};
    const uint8_t columns = (uint8_t)(1u << chance_below(&g->chance, SCRIPT_SYMBOLS));
    uint16_t x = pick(g, &want), y;

    if (x == NO_VAR)
        return false;
    y = product(g, x, chance_of(&g->chance, 30), columns);
    if (chance_of(&g->chance, 40)) /* attention, written out, or its scores */
        return (y = softmax(g, y)) != NO_VAR &&
               (chance_of(&g->chance, 30) ||
                product(g, y, true, (uint8_t)(1u << chance_below(&g->chance, SCRIPT_SYMBOLS))) !=
                    NO_VAR);
    if (chance_of(&g->chance, 60))
        y = with_bias(g, y);
    if (y == NO_VAR || chance_of(&g->chance, 20))
        return y != NO_VAR;
    /* One result; or two, of which a later op may be the third reader. */
    if (chance_of(&g->chance, 60) && unary(g, FRIT_OP_relu, y, false, 12) == NO_VAR)
        return false;
    return unary(g, chance_of(&g->chance, 50) ? FRIT_OP_gelu : FRIT_OP_tanh, y,
                 chance_of(&g->chance, 60), 12) != NO_VAR;
}
