/* SPDX-License-Identifier: Apache-2.0 */
/* Random views.  What they give is said in codes, so that they fit whatever the extents are. */
#include <string.h>

#include "generate.h"

static bool view(struct generator *g, struct action *action, uint16_t x, const struct shape *shape)
{
    const struct var *var = value_of(g, x);

    action->n_in = 1;
    action->in[0] = use(g, x);
    add_output(g, action, var->dtype, shape, var->exponent, var->positive);
    if (!commit(g, action))
        return false;
    g->script->n_views++;
    return true;
}

/* ---- reshape ---- */

/* Joins two dims whose product has a code. */
static void join_dims(struct generator *g, struct shape *shape)
{
    for (uint32_t d = 0; d + 1 < shape->rank; d++) {
        uint8_t a = shape->code[d], b = shape->code[d + 1];

        if (!is_product(a) || !is_product(b) || a & b || chance_of(&g->chance, 30))
            continue;
        shape->code[d] = a | b;
        memmove(&shape->code[d + 1], &shape->code[d + 2], shape->rank - d - 2);
        shape->rank--;
    }
}

static void insert_dim(struct shape *shape, uint32_t at, uint8_t code)
{
    if (shape->rank == SCRIPT_RANK)
        return;
    memmove(&shape->code[at + 1], &shape->code[at], shape->rank - at);
    shape->code[at] = code;
    shape->rank++;
}

static void split_dims(struct shape *shape)
{
    for (uint32_t d = 0; d < shape->rank && shape->rank < SCRIPT_RANK; d++) {
        uint8_t code = shape->code[d], low = (uint8_t)(code & -code);

        if (!is_product(code) || code == low)
            continue;
        shape->code[d] = low;
        insert_dim(shape, d + 1, code & (uint8_t)~low);
    }
}

static void shuffle_dims(struct generator *g, struct shape *shape)
{
    for (uint32_t d = shape->rank; d > 1; d--) {
        uint32_t with = chance_below(&g->chance, d);
        uint8_t code = shape->code[d - 1];

        shape->code[d - 1] = shape->code[with];
        shape->code[with] = code;
    }
}

static void drop_ones(struct shape *shape)
{
    uint32_t rank = 0;

    for (uint32_t d = 0; d < shape->rank; d++)
        if (shape->code[d] != DIM_ONE)
            shape->code[rank++] = shape->code[d];
    shape->rank = rank;
}

static bool reshape(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 0);
    struct action action = begin_op(g, FRIT_OP_reshape, ATTR_DIMS);
    struct shape shape;

    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    if (chance_of(&g->chance, 40))
        drop_ones(&shape);
    if (chance_of(&g->chance, 40))
        split_dims(&shape);
    if (chance_of(&g->chance, 60))
        join_dims(g, &shape);
    if (chance_of(&g->chance, 30))
        shuffle_dims(g, &shape);
    if (chance_of(&g->chance, 30) && shape.rank < 4)
        insert_dim(&shape, chance_below(&g->chance, shape.rank + 1), DIM_ONE);
    return view(g, &action, x, &shape);
}

/* ---- the others ---- */

static bool permute(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 2);
    struct action action = begin_op(g, FRIT_OP_permute, ATTR_ORDER);
    struct shape shape = {0};

    if (x == NO_VAR)
        return false;
    shape.rank = g->script->vars[x].shape.rank;
    action.n_axes = (uint8_t)shape.rank;
    for (uint8_t d = 0; d < shape.rank; d++)
        shape.code[d] = d;
    shuffle_dims(g, &shape);
    for (uint8_t d = 0; d < shape.rank; d++) {
        action.axes[d] = shape.code[d];
        shape.code[d] = g->script->vars[x].shape.code[action.axes[d]];
    }
    return view(g, &action, x, &shape);
}

static bool transpose(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 2);
    struct action action = begin_op(g, FRIT_OP_transpose, ATTR_SWAP);
    struct shape shape;

    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    action.axis = (uint8_t)chance_below(&g->chance, shape.rank);
    action.other_axis = (uint8_t)chance_below(&g->chance, shape.rank);
    shape.code[action.axis] = g->script->vars[x].shape.code[action.other_axis];
    shape.code[action.other_axis] = g->script->vars[x].shape.code[action.axis];
    return view(g, &action, x, &shape);
}

static bool expand(struct generator *g)
{
    static const uint8_t codes[] = {1, 2, 4, 2, DIM_TWO};
    uint16_t x = pick_simple(g, ANY, 0);
    struct action action = begin_op(g, FRIT_OP_expand, ATTR_DIMS);
    struct shape shape;

    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    for (uint32_t d = 0; d < shape.rank; d++)
        if (shape.code[d] == DIM_ONE && chance_of(&g->chance, 60))
            shape.code[d] = codes[chance_below(&g->chance, sizeof(codes))];
    if (shape.rank < 4 && chance_of(&g->chance, 40))
        insert_dim(&shape, 0, codes[chance_below(&g->chance, sizeof(codes))]);
    return shape_most(&shape) <= MAX_ELEMENTS && view(g, &action, x, &shape);
}

/* One dim of a slice: the form, and the code of what is left. */
static uint8_t slice_dim(struct generator *g, uint8_t code, uint8_t *form)
{
    uint32_t n = chance_below(&g->chance, 100);

    *form = SLICE_WHOLE;
    if (code == DIM_ZERO || n < 40)
        return code;
    if (n < 55) {
        *form = SLICE_BACK;
        return code;
    }
    if (n < 57) {
        *form = SLICE_NONE;
        return DIM_ZERO;
    }
    /* A single symbol but the smallest can shrink to the one before. */
    if (n < 80 && is_symbol(code)) {
        *form = SLICE_PART;
        return code >> 1;
    }
    *form = SLICE_ONE;
    return DIM_ONE;
}

static bool slice(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 1);
    struct action action = begin_op(g, FRIT_OP_slice, ATTR_SLICE);
    struct shape shape;

    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    action.n_axes = (uint8_t)shape.rank;
    for (uint32_t d = 0; d < shape.rank; d++)
        shape.code[d] = slice_dim(g, shape.code[d], &action.axes[d]);
    return view(g, &action, x, &shape);
}

static bool flip(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 1);
    struct action action = begin_op(g, FRIT_OP_flip, ATTR_AXES);

    if (x == NO_VAR)
        return false;
    for (uint8_t d = 0; d < g->script->vars[x].shape.rank; d++)
        if (chance_of(&g->chance, 50))
            action.axes[action.n_axes++] = d;
    return view(g, &action, x, &g->script->vars[x].shape);
}

static bool unfold(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 1);
    struct action action = begin_op(g, FRIT_OP_unfold, ATTR_UNFOLD);
    struct shape shape;
    uint8_t *code;

    if (x == NO_VAR || g->script->vars[x].shape.rank > 3)
        return false;
    shape = g->script->vars[x].shape;
    action.axis = (uint8_t)chance_below(&g->chance, shape.rank);
    code = &shape.code[action.axis];
    if (!is_product(*code))
        return false;
    action.step = 1;
    action.size = DIM_ONE; /* the window's size */
    if (chance_of(&g->chance, 60)) {
        action.size = DIM_TWO;
        *code |= DIM_MINUS;
    } else if (chance_of(&g->chance, 50)) {
        action.size = *code;
        *code = DIM_ONE;
    }
    insert_dim(&shape, shape.rank, action.size);
    return shape_most(&shape) <= MAX_ELEMENTS && view(g, &action, x, &shape);
}

static bool squeeze(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 1);
    struct action action = begin_op(g, FRIT_OP_squeeze, ATTR_AXES);
    struct shape shape = {0};
    const struct var *var = value_of(g, x);

    if (x == NO_VAR)
        return false;
    for (uint8_t d = 0; d < var->shape.rank; d++) {
        if (var->shape.code[d] == DIM_ONE)
            action.axes[action.n_axes++] = d;
        else
            shape.code[shape.rank++] = var->shape.code[d];
    }
    return action.n_axes > 0 && view(g, &action, x, &shape);
}

static bool unsqueeze(struct generator *g)
{
    uint16_t x = pick_simple(g, ANY, 0);
    struct action action = begin_op(g, FRIT_OP_unsqueeze, ATTR_AXIS);
    struct shape shape;

    if (x == NO_VAR || g->script->vars[x].shape.rank > 3)
        return false;
    shape = g->script->vars[x].shape;
    action.axis = (uint8_t)chance_below(&g->chance, shape.rank + 1);
    insert_dim(&shape, action.axis, DIM_ONE);
    return view(g, &action, x, &shape);
}

bool generate_view(struct generator *g)
{
    static bool (*const forms[])(struct generator * g) = {
        reshape, reshape, permute, permute,   expand,  expand,   slice,
        slice,   flip,    unfold,  transpose, squeeze, unsqueeze};

    return forms[chance_below(&g->chance, sizeof(forms) / sizeof(forms[0]))](g);
}
