/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that move elements: by their order, by indices, into one tensor. */
#include "ops.h"

/* ---- by their order ---- */

bool cast_index(struct generator *g, const struct action *action, uint32_t k)
{
    struct action cast = begin_op(g, FRIT_OP_cast, ATTR_CAST);
    const struct shape shape = value_of(g, action->out[k])->shape;

    cast.n_in = 1;
    cast.in[0] = consume(g, action->out[k]);
    add_output(g, &cast, FRIT_I32, &shape, 0, false);
    return commit(g, &cast);
}

/* Values, or where they were, or both: places only of exact values, among which all devices see
 * the same ties. */
static bool by_order(struct generator *g, uint16_t op, enum attr_form attrs)
{
    bool places = op == FRIT_OP_argsort || chance_of(&g->chance, 50);
    struct action action = begin_op(g, op, attrs);
    struct shape shape;
    uint16_t x;
    uint8_t *code;

    g->discrete = places;
    x = pick_simple(g, ANY, 1);
    if (x == NO_VAR)
        return false;
    shape = value_of(g, x)->shape;
    action.axis = (uint8_t)chance_below(&g->chance, shape.rank);
    action.choice = chance_of(&g->chance, 50); /* descending */
    code = &shape.code[action.axis];
    if (op == FRIT_OP_topk && *code != DIM_ZERO)
        *code = is_symbol(*code) && chance_of(&g->chance, 50) ? *code >> 1 : DIM_ONE;
    action.size = *code;
    action.n_in = 1;
    action.in[0] = use(g, x);
    if (op != FRIT_OP_argsort)
        add_output(g, &action, value_of(g, x)->dtype, &shape, value_of(g, x)->exponent,
                   value_of(g, x)->positive);
    if (places)
        add_output(g, &action, FRIT_I64, &shape, 0, false);
    return commit(g, &action) && (!places || cast_index(g, &action, action.n_out - 1u));
}

bool generate_sort(struct generator *g)
{
    return by_order(g, chance_of(&g->chance, 60) ? FRIT_OP_sort : FRIT_OP_argsort, ATTR_SORT);
}

bool generate_topk(struct generator *g)
{
    return by_order(g, FRIT_OP_topk, ATTR_TOPK);
}

/* ---- by indices ---- */

/* Places along `axis` of x for each of its elements, some of them beyond it: x itself as integers,
 * or numbers counted along its last dim. */
static uint16_t places_in(struct generator *g, uint16_t x)
{
    const struct shape shape = value_of(g, x)->shape;
    bool count = value_of(g, x)->dtype == FRIT_BOOL || !value_of(g, x)->exact;
    struct action from = begin_op(g, FRIT_OP_cast, ATTR_CAST), to;

    if (value_of(g, x)->dtype == FRIT_I32)
        return x;
    if (!count) {
        from.n_in = 1;
        from.in[0] = (struct operand){x, false};
        add_output(g, &from, FRIT_I32, &shape, 0, false);
        return commit(g, &from) ? from.out[0] : (uint16_t)NO_VAR;
    }
    from = begin_op(g, FRIT_OP_arange, ATTR_INIT);
    from.n_in = 2;
    from.in[0] = from.in[1] = scalar();
    add_output(g, &from, FRIT_I32, &(struct shape){.rank = 1, .code = {shape.code[shape.rank - 1]}},
               6, false);
    if (!commit(g, &from))
        return NO_VAR;
    to = begin_op(g, FRIT_OP_expand, ATTR_DIMS);
    to.n_in = 1;
    to.in[0] = consume(g, from.out[0]);
    add_output(g, &to, FRIT_I32, &shape, 6, false);
    return commit(g, &to) ? to.out[0] : (uint16_t)NO_VAR;
}

bool generate_gather(struct generator *g)
{
    struct want want = {.dtypes = ANY,
                        .exponent = ANY_EXPONENT,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = has_elements};
    uint16_t x = pick(g, &want), index = x == NO_VAR ? x : places_in(g, x);
    struct action action = begin_op(g, FRIT_OP_gather, ATTR_AXIS);
    const struct var *var = value_of(g, x);

    if (index == NO_VAR)
        return false;
    action.axis = (uint8_t)chance_below(&g->chance, var->shape.rank);
    action.n_in = 2;
    action.in[0] = use(g, x);
    action.in[1] = (struct operand){index, false};
    add_output(g, &action, var->dtype, &var->shape, var->exponent, var->positive);
    return commit(g, &action);
}

/* How values meet what is there, as an exponent that the result may have: products stay below 1. */
static bool choose_update(struct generator *g, struct action *action, const struct var *x,
                          const struct var *values, int *exponent)
{
    static const uint8_t updates[] = {FRIT_CHOICE_update_assign, FRIT_CHOICE_update_add,
                                      FRIT_CHOICE_update_add,    FRIT_CHOICE_update_mul,
                                      FRIT_CHOICE_update_min,    FRIT_CHOICE_update_max};
    bool real = BIT(x->dtype) & REALS;

    action->choice = updates[chance_below(&g->chance, sizeof(updates))];
    *exponent = x->exponent > values->exponent ? x->exponent : values->exponent;
    if (action->choice == FRIT_CHOICE_update_add) {
        *exponent += 11;
        return !real || *exponent <= MAX_EXPONENT;
    }
    return action->choice != FRIT_CHOICE_update_mul || !real || values->exponent == 0;
}

bool generate_scatter(struct generator *g)
{
    struct want want = {.dtypes = NUMBERS,
                        .exponent = ANY_EXPONENT,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = has_elements};
    uint16_t x = pick(g, &want), index, values;
    struct action action = begin_op(g, FRIT_OP_scatter, ATTR_SCATTER);
    const struct var *var = value_of(g, x);
    int exponent;

    if (x == NO_VAR)
        return false;
    values = pick_beside(g, x, same_type);
    if (values == NO_VAR)
        values = x;
    if (!choose_update(g, &action, var, value_of(g, values), &exponent))
        return false;
    index = places_in(g, x);
    if (index == NO_VAR)
        return false;
    action.axis = (uint8_t)chance_below(&g->chance, var->shape.rank);
    action.n_in = 3;
    action.in[0] = use(g, x);
    action.in[1] = (struct operand){index, false};
    action.in[2] = (struct operand){values, false};
    add_output(g, &action, var->dtype, &var->shape, exponent, false);
    return commit(g, &action);
}

/* ---- into one tensor ---- */

static bool starts_with_one(const struct var *var)
{
    return var->shape.code[0] == DIM_ONE && shape_most(&var->shape) <= MAX_ELEMENTS / 2;
}

bool same_type(const struct var *a, const struct var *b)
{
    return a->dtype == b->dtype && shape_same(&a->shape, &b->shape);
}

bool generate_cat(struct generator *g)
{
    struct want want = {.dtypes = ANY,
                        .exponent = ANY_EXPONENT,
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
    add_output(g, &action, g->script->vars[a].dtype, &shape, ANY_EXPONENT, false);
    return commit(g, &action);
}
