/* SPDX-License-Identifier: Apache-2.0 */
/* One random op: a form from a table of weights, a row that has this form, operands that fit. */
#include <string.h>

#include "generate.h"

/* ---- elementwise ---- */

struct map_row {
    uint16_t op;
    uint32_t dtypes;
    int8_t most;  /* level that an operand may have */
    int8_t level; /* of the result; -1: the operand's, -2: twice it */
    bool positive;
};

static bool unary(struct generator *g)
{
    static const struct map_row rows[] = {
        {FRIT_OP_abs, NUMBERS, NO_LEVEL, -1, true},
        {FRIT_OP_neg, NUMBERS, NO_LEVEL, -1, false},
        {FRIT_OP_relu, NUMBERS, NO_LEVEL, -1, true},
        {FRIT_OP_square, NUMBERS, MOST_LEVEL / 2, -2, true},
        {FRIT_OP_exp, REALS, 3, 12, true},
        {FRIT_OP_tanh, REALS, NO_LEVEL, 0, false},
        {FRIT_OP_sigmoid, REALS, NO_LEVEL, 0, true},
        {FRIT_OP_silu, REALS, NO_LEVEL, -1, false},
        {FRIT_OP_gelu, REALS, NO_LEVEL, -1, false},
        {FRIT_OP_floor, REALS, NO_LEVEL, -1, false},
        {FRIT_OP_softplus, REALS, NO_LEVEL, -1, true},
        {FRIT_OP_not, LOGICS, NO_LEVEL, -1, false},
        {FRIT_OP_copy, ANY, NO_LEVEL, -1, false},
    };
    const struct map_row *row = &rows[chance_below(&g->chance, sizeof(rows) / sizeof(rows[0]))];
    struct want want = {.dtypes = row->dtypes, .level = row->most, .max_rank = SCRIPT_RANK};
    uint16_t x = pick(g, &want);
    struct action action = begin_op(g, row->op, ATTR_NONE);
    const struct var *var = value_of(g, x);
    int level;

    if (x == NO_VAR)
        return false;
    level = row->level == -1 ? var->level : row->level == -2 ? 2 * var->level : row->level;
    action.n_in = 1;
    action.in[0] = use(g, x);
    give(g, &action, var->dtype, &var->shape, level, row->positive);
    return commit(g, &action);
}

static bool is_positive(const struct var *var)
{
    return var->positive;
}

static bool root(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_sqrt, FRIT_OP_log, FRIT_OP_recip, FRIT_OP_rsqrt};
    struct want want = {.dtypes = REALS, .level = NO_LEVEL, .max_rank = SCRIPT_RANK};
    uint16_t x;
    struct action action = begin_op(g, ops[chance_below(&g->chance, 4)], ATTR_NONE);

    want.fits = chance_of(&g->chance, 85) ? is_positive : NULL;
    x = pick(g, &want);
    if (x == NO_VAR)
        return false;
    action.n_in = 1;
    action.in[0] = use(g, x);
    give(g, &action, g->script->vars[x].dtype, &g->script->vars[x].shape,
         g->script->vars[x].level + 4, action.op == FRIT_OP_sqrt);
    return commit(g, &action);
}

static bool goes_with(const struct var *a, const struct var *b)
{
    struct shape shape;

    return a->dtype == b->dtype && shape_broadcast(&a->shape, &b->shape, &shape) &&
           shape_most(&shape) <= MOST_ELEMENTS;
}

/* Two operands of one type, one of them perhaps a scalar; gives what they broadcast to. */
static bool two_operands(struct generator *g, uint32_t dtypes, int most, struct action *action,
                         struct var *out)
{
    struct want want = {.dtypes = dtypes, .level = most, .max_rank = SCRIPT_RANK};
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
        if (chance_of(&g->chance, 25)) { /* the scalar comes first */
            action->in[1] = action->in[0];
            action->in[0] = scalar();
        }
        return true;
    }
    action->in[1] = use(g, b);
    shape_broadcast(&g->script->vars[a].shape, &g->script->vars[b].shape, &out->shape);
    out->level = out->level > g->script->vars[b].level ? out->level : g->script->vars[b].level;
    return true;
}

static bool binary(struct generator *g)
{
    static const struct map_row rows[] = {
        {FRIT_OP_add, NUMBERS, MOST_LEVEL, -1, false},
        {FRIT_OP_add, NUMBERS, MOST_LEVEL, -1, false},
        {FRIT_OP_sub, NUMBERS, MOST_LEVEL, -1, false},
        {FRIT_OP_mul, NUMBERS, MOST_LEVEL / 2, -2, false},
        {FRIT_OP_mul, NUMBERS, MOST_LEVEL / 2, -2, false},
        {FRIT_OP_div, NUMBERS, MOST_LEVEL / 2, MOST_LEVEL, false},
        {FRIT_OP_maximum, NUMBERS | BIT(FRIT_BOOL), NO_LEVEL, -1, false},
        {FRIT_OP_minimum, NUMBERS | BIT(FRIT_BOOL), NO_LEVEL, -1, false},
        {FRIT_OP_and, LOGICS, NO_LEVEL, -1, false},
        {FRIT_OP_or, LOGICS, NO_LEVEL, -1, false},
        {FRIT_OP_xor, LOGICS, NO_LEVEL, -1, false},
        {FRIT_OP_hypot, REALS, MOST_LEVEL / 2, -2, true},
    };
    const struct map_row *row = &rows[chance_below(&g->chance, sizeof(rows) / sizeof(rows[0]))];
    struct action action = begin_op(g, row->op, ATTR_NONE);
    struct var out;
    int level;

    if (!two_operands(g, row->dtypes, row->most, &action, &out))
        return false;
    level = row->level == -1 ? out.level + 1 : row->level == -2 ? 2 * out.level : row->level;
    give(g, &action, out.dtype, &out.shape, level, row->positive);
    return commit(g, &action);
}

static bool compare(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_eq, FRIT_OP_lt, FRIT_OP_le,
                                   FRIT_OP_ne, FRIT_OP_gt, FRIT_OP_ge};
    struct action action = begin_op(g, ops[chance_below(&g->chance, 6)], ATTR_NONE);
    struct var out;

    if (!two_operands(g, ANY, NO_LEVEL, &action, &out))
        return false;
    give(g, &action, FRIT_BOOL, &out.shape, 0, false);
    return commit(g, &action);
}

/* where, and mask_fill, whose mask comes second. */
static bool choose(struct generator *g)
{
    bool fill = chance_of(&g->chance, 30);
    struct action action = begin_op(g, fill ? FRIT_OP_mask_fill : FRIT_OP_where, ATTR_NONE);
    uint16_t mask = pick_simple(g, BIT(FRIT_BOOL), 0);
    struct operand first, second;
    struct shape shape;
    struct var out;

    if (mask == NO_VAR || !two_operands(g, ANY, NO_LEVEL, &action, &out) ||
        !shape_broadcast(&g->script->vars[mask].shape, &out.shape, &shape) ||
        shape_most(&shape) > MOST_ELEMENTS || (fill && action.in[0].var == NO_VAR))
        return false;
    first = action.in[0];
    second = action.in[1];
    action.n_in = 3;
    action.in[0] = fill ? first : use(g, mask);
    action.in[1] = fill ? use(g, mask) : first;
    action.in[2] = second;
    give(g, &action, out.dtype, &shape, out.level, false);
    return commit(g, &action);
}

static bool clamp(struct generator *g)
{
    struct action action = begin_op(g, FRIT_OP_clamp, ATTR_NONE);
    uint16_t x = pick_simple(g, NUMBERS, 0);

    if (x == NO_VAR)
        return false;
    action.n_in = 3;
    action.in[0] = use(g, x);
    action.in[1] = action.in[2] = scalar();
    give(g, &action, g->script->vars[x].dtype, &g->script->vars[x].shape, 3, false);
    return commit(g, &action);
}

static bool cast(struct generator *g)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F32, FRIT_F64, FRIT_I32, FRIT_BOOL};
    struct action action = begin_op(g, FRIT_OP_cast, ATTR_CAST);
    uint16_t x = pick_simple(g, ANY, 0);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return false;
    action.n_in = 1;
    action.in[0] = use(g, x);
    give(g, &action, dtypes[chance_below(&g->chance, 5)], &var->shape,
         BIT(var->dtype) & REALS ? var->level : 8, false);
    return commit(g, &action);
}

/* A run of rows in which each takes the one before: what can be done in place. */
static bool chain(struct generator *g)
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
        action.in[0] = k ? used_up(g, x) : use(g, x);
        action.in[1] = scalar();
        if (action.n_in == 2 && g->script->vars[x].level > 10)
            action.op = FRIT_OP_minimum;
        give(g, &action, g->script->vars[like].dtype, &g->script->vars[like].shape,
             g->script->vars[x].level + 2, false);
        if (!commit(g, &action))
            return false;
        x = action.out[0];
    }
    return true;
}

/* ---- from nothing ---- */

static bool init(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_full, FRIT_OP_full,           FRIT_OP_zeros,
                                   FRIT_OP_ones, FRIT_OP_random_uniform, FRIT_OP_random_bernoulli};
    struct action action = begin_op(g, ops[chance_below(&g->chance, 6)], ATTR_INIT);
    uint16_t like = pick_simple(g, BIT(FRIT_F32), 0); /* gives the dims */

    if (like == NO_VAR)
        return false;
    action.n_in = action.op == FRIT_OP_random_uniform                                  ? 2
                  : action.op == FRIT_OP_full || action.op == FRIT_OP_random_bernoulli ? 1
                                                                                       : 0;
    action.in[0] = action.in[1] = scalar();
    give(g, &action, FRIT_F32, &g->script->vars[like].shape, 3, false);
    return commit(g, &action);
}

static bool arange(struct generator *g)
{
    struct action action = begin_op(g, FRIT_OP_arange, ATTR_INIT);
    struct shape shape = {.rank = 1, .code = {(uint8_t)(1u << chance_below(&g->chance, 4))}};

    action.n_in = 2;
    action.in[0] = action.in[1] = scalar();
    give(g, &action, chance_of(&g->chance, 70) ? FRIT_F32 : FRIT_I32, &shape, 6, false);
    return commit(g, &action);
}

/* ---- reductions and their kin ---- */

static bool has_elements(const struct var *var)
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

static bool reduce(struct generator *g)
{
    static const struct map_row rows[] = {
        {FRIT_OP_sum, NUMBERS, MOST_LEVEL, 10, false},
        {FRIT_OP_sum, NUMBERS, MOST_LEVEL, 10, false},
        {FRIT_OP_mean, REALS, MOST_LEVEL, 0, false},
        {FRIT_OP_max, ANY, NO_LEVEL, 0, false},
        {FRIT_OP_min, ANY, NO_LEVEL, 0, false},
        {FRIT_OP_var, REALS, MOST_LEVEL / 2, 12, true},
        {FRIT_OP_any, ANY, NO_LEVEL, 0, false},
        {FRIT_OP_argmax, ANY, NO_LEVEL, 0, false},
    };
    const struct map_row *row = &rows[chance_below(&g->chance, 8)];
    struct want want = {.dtypes = row->dtypes,
                        .level = row->most,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = has_elements};
    uint16_t x = pick(g, &want);
    struct action action = begin_op(g, row->op, ATTR_REDUCE);
    const struct var *var = value_of(g, x);
    struct shape shape;

    if (x == NO_VAR)
        return false;
    action.keep = chance_of(&g->chance, 50);
    for (uint8_t d = 0; d < var->shape.rank; d++)
        if (chance_of(&g->chance, 40))
            action.axes[action.n_axes++] = d;
    if (action.n_axes == 0 || chance_of(&g->chance, 30) || row->op == FRIT_OP_argmax) {
        action.n_axes = 1;
        action.axes[0] = (uint8_t)chance_below(&g->chance, var->shape.rank);
    }
    action.n_in = 1;
    action.in[0] = use(g, x);
    shape = reduced(&var->shape, &action);
    if (row->op == FRIT_OP_argmax) { /* its type is not one of ours; cast at once */
        struct action back = begin_op(g, FRIT_OP_cast, ATTR_CAST);

        give(g, &action, FRIT_I64, &shape, 0, false);
        if (!commit(g, &action))
            return false;
        back.n_in = 1;
        back.in[0] = used_up(g, action.out[0]);
        give(g, &back, FRIT_I32, &shape, 0, false);
        return commit(g, &back);
    }
    give(g, &action, row->op == FRIT_OP_any ? FRIT_BOOL : var->dtype, &shape,
         var->level + row->level, row->positive);
    return commit(g, &action);
}

static bool along_axis(struct generator *g)
{
    static const struct map_row rows[] = {
        {FRIT_OP_softmax, REALS, NO_LEVEL, 0, true},
        {FRIT_OP_log_softmax, REALS, NO_LEVEL, 8, false},
        {FRIT_OP_cumsum, NUMBERS, MOST_LEVEL, 10, false},
        {FRIT_OP_softmin, REALS, NO_LEVEL, 0, true},
        {FRIT_OP_cummax, NUMBERS, NO_LEVEL, -1, false},
    };
    const struct map_row *row = &rows[chance_below(&g->chance, 5)];
    struct want want = {
        .dtypes = row->dtypes, .level = row->most, .min_rank = 1, .max_rank = SCRIPT_RANK};
    uint16_t x = pick(g, &want);
    struct action action = begin_op(g, row->op, ATTR_AXIS);
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return false;
    action.axis = (uint8_t)chance_below(&g->chance, var->shape.rank);
    action.n_in = 1;
    action.in[0] = use(g, x);
    give(g, &action, var->dtype, &var->shape, row->level < 0 ? var->level : var->level + row->level,
         row->positive);
    return commit(g, &action);
}

static bool is_last_of(const struct var *x, const struct var *gamma)
{
    return gamma->shape.rank == 1 && gamma->shape.code[0] == x->shape.code[x->shape.rank - 1];
}

static bool norm(struct generator *g)
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
    give(g, &action, var->dtype, &var->shape, 6, false);
    return commit(g, &action);
}

/* ---- rows that no fuser here takes ---- */

static bool chains_to(const struct var *a, const struct var *b)
{
    return b->shape.rank == 2 && b->shape.code[0] == a->shape.code[a->shape.rank - 1];
}

static bool matmul(struct generator *g)
{
    struct want want = {.dtypes = NUMBERS, .level = 8, .min_rank = 2, .max_rank = 3};
    uint16_t a = pick(g, &want), b;
    struct action action = begin_op(g, FRIT_OP_matmul, ATTR_NONE);
    struct shape shape;

    if (a == NO_VAR)
        return false;
    b = pick_beside(g, a, chains_to);
    if (b == NO_VAR || g->script->vars[b].level > 8)
        return false;
    shape = g->script->vars[a].shape;
    shape.code[shape.rank - 1] = g->script->vars[b].shape.code[1];
    if (shape_most(&shape) > MOST_ELEMENTS)
        return false;
    action.n_in = 2;
    action.in[0] = use(g, a);
    action.in[1] = use(g, b);
    give(g, &action, g->script->vars[a].dtype, &shape, 20, false);
    return commit(g, &action);
}

static bool can_pool(const struct var *var)
{
    uint8_t last = var->shape.code[2];

    return has_elements(var) && last & DIM_SYMBOLS && !(last & DIM_MINUS);
}

/* The one row here with two outputs. */
static bool max_pool(struct generator *g)
{
    struct want want = {
        .dtypes = REALS, .level = NO_LEVEL, .min_rank = 3, .max_rank = 3, .fits = can_pool};
    uint16_t x = pick(g, &want);
    struct action action = begin_op(g, FRIT_OP_max_pool, ATTR_POOL);
    struct action back = begin_op(g, FRIT_OP_cast, ATTR_CAST);
    struct shape shape;

    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    shape.code[2] |= DIM_MINUS;
    action.step = 2;
    action.n_in = 1;
    action.in[0] = use(g, x);
    give(g, &action, g->script->vars[x].dtype, &shape, g->script->vars[x].level, false);
    give(g, &action, FRIT_I64, &shape, 0, false);
    if (!commit(g, &action))
        return false;
    back.n_in = 1;
    back.in[0] = used_up(g, action.out[1]);
    give(g, &back, FRIT_I32, &shape, 0, false);
    return commit(g, &back);
}

static bool starts_with_one(const struct var *var)
{
    return var->shape.code[0] == DIM_ONE && shape_most(&var->shape) <= MOST_ELEMENTS / 2;
}

static bool same_type(const struct var *a, const struct var *b)
{
    return a->dtype == b->dtype && shape_same(&a->shape, &b->shape);
}

static bool cat(struct generator *g)
{
    struct want want = {.dtypes = ANY,
                        .level = NO_LEVEL,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = starts_with_one};
    uint16_t a = pick(g, &want), b;
    struct action action = begin_op(g, FRIT_OP_cat, ATTR_AXIS);
    struct shape shape;

    if (a == NO_VAR)
        return false;
    b = pick_beside(g, a, same_type);
    if (b == NO_VAR)
        return false;
    shape = g->script->vars[a].shape;
    shape.code[0] = DIM_TWO;
    action.n_in = 2;
    action.in[0] = use(g, a);
    action.in[1] = use(g, b);
    give(g, &action, g->script->vars[a].dtype, &shape, NO_LEVEL, false);
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
    action.in[0] = x_dies ? used_up(g, x) : (struct operand){x, false};
    if (y != NO_VAR) {
        action.in[1] = y_dies ? used_up(g, y) : (struct operand){y, false};
        shape_broadcast(&var->shape, &g->script->vars[y].shape, &shape);
    }
    give(g, &action, var->dtype, &shape, var->level, false);
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
    give(g, &action, g->script->vars[x].dtype, &shape, g->script->vars[x].level, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

/* softmax and the heart of layer_norm, op by op. */
static bool pattern(struct generator *g)
{
    struct want want = {
        .dtypes = REALS, .level = 10, .min_rank = 1, .max_rank = SCRIPT_RANK, .fits = has_elements};
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
    total = step(g, FRIT_OP_rsqrt, total, true, NO_VAR, false);
    return total != NO_VAR && step(g, FRIT_OP_mul, away, true, total, true) != NO_VAR;
}

bool generate_op(struct generator *g)
{
    static const struct {
        bool (*form)(struct generator *g);
        uint32_t weight;
    } forms[] = {
        {generate_view, 38}, {unary, 12}, {root, 3},    {binary, 18},    {compare, 4},
        {choose, 5},         {clamp, 2},  {cast, 4},    {chain, 3},      {init, 5},
        {arange, 1},         {reduce, 9}, {norm, 2},    {along_axis, 3}, {matmul, 2},
        {max_pool, 2},       {cat, 2},    {pattern, 2},
    };
    uint32_t n = sizeof(forms) / sizeof(forms[0]), total = 0, at;

    for (uint32_t k = 0; k < n; k++)
        total += forms[k].weight;
    at = chance_below(&g->chance, total);
    for (uint32_t k = 0; k < n; k++) {
        if (at < forms[k].weight)
            return forms[k].form(g);
        at -= forms[k].weight;
    }
    return false;
}
