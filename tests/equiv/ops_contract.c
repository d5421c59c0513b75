/* SPDX-License-Identifier: Apache-2.0 */
/* Rows whose results are sums or choices along lines of several operands or windows. */
#include "ops.h"

static bool chains_to(const struct var *a, const struct var *b)
{
    return b->shape.rank == 2 && b->shape.code[0] == a->shape.code[a->shape.rank - 1];
}

bool generate_matmul(struct generator *g)
{
    struct want want = {.dtypes = NUMBERS, .exponent = 8, .min_rank = 2, .max_rank = 3};
    uint16_t a = pick(g, &want), b;
    struct action action = begin_op(g, FRIT_OP_matmul, ATTR_NONE);
    struct shape shape;

    if (a == NO_VAR)
        return false;
    b = pick_beside(g, a, chains_to);
    if (b == NO_VAR || g->script->vars[b].exponent > 8)
        return false;
    shape = g->script->vars[a].shape;
    shape.code[shape.rank - 1] = g->script->vars[b].shape.code[1];
    if (shape_most(&shape) > MAX_ELEMENTS)
        return false;
    action.n_in = 2;
    action.in[0] = use(g, a);
    action.in[1] = use(g, b);
    add_output(g, &action, g->script->vars[a].dtype, &shape, 20, false);
    return commit(g, &action);
}

uint16_t generate_fresh(struct generator *g, uint32_t dtype, const struct shape *shape)
{
    struct action action = begin(g, ACT_FROM_HOST);

    if (shape_most(shape) > MAX_ELEMENTS)
        return NO_VAR;
    add_output(g, &action, dtype, shape, 2, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

static uint8_t some_symbol(struct generator *g)
{
    return (uint8_t)(1u << chance_below(&g->chance, SCRIPT_SYMBOLS));
}

/* With kernels of 1 or 2 elements; all channels, or each by itself. */
bool generate_conv(struct generator *g)
{
    struct want want = {
        .dtypes = REALS, .exponent = 8, .min_rank = 3, .max_rank = 3, .fits = has_elements};
    uint16_t x = pick(g, &want), w;
    struct shape shape, kernel = {.rank = 3};
    struct action action;

    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    kernel.code[2] = is_product(shape.code[2]) && chance_of(&g->chance, 60) ? DIM_TWO : DIM_ONE;
    if (chance_of(&g->chance, 30)) { /* as many groups as channels */
        kernel.code[0] = shape.code[1];
        kernel.code[1] = DIM_ONE;
    } else {
        kernel.code[0] = some_symbol(g);
        kernel.code[1] = shape.code[1];
    }
    w = generate_fresh(g, g->script->vars[x].dtype, &kernel);
    if (w == NO_VAR)
        return false;
    action = begin_op(g, FRIT_OP_conv, ATTR_CONV);
    action.size = kernel.code[1] == DIM_ONE ? shape.code[1] : DIM_ONE;
    shape.code[1] = kernel.code[0];
    if (kernel.code[2] == DIM_TWO)
        shape.code[2] |= DIM_MINUS;
    if (shape_most(&shape) > MAX_ELEMENTS)
        return false;
    action.n_in = 3;
    action.in[0] = use(g, x);
    action.in[1] = use(g, w);
    action.in[2] = scalar(); /* absent */
    add_output(g, &action, g->script->vars[x].dtype, &shape, 20, false);
    return commit(g, &action);
}

/* New values of attention.  Whole numbers: a NaN at a key that is hidden may show or not. */
static uint16_t fresh_values(struct generator *g, uint32_t dtype, const struct shape *shape)
{
    uint16_t whole = generate_fresh(g, FRIT_I32, shape);
    struct action action = begin_op(g, FRIT_OP_cast, ATTR_CAST);

    if (whole == NO_VAR)
        return NO_VAR;
    action.n_in = 1;
    action.in[0] = use(g, whole);
    add_output(g, &action, dtype, shape, 4, false);
    return commit(g, &action) ? action.out[0] : (uint16_t)NO_VAR;
}

/* The heads of keys that these heads share: all one, neighbours one, or each its own. */
static uint8_t shared_heads(struct generator *g, uint8_t heads)
{
    const uint8_t low = (uint8_t)(heads & -heads);

    if (!is_product(heads) || chance_of(&g->chance, 50))
        return heads;
    return heads != low && chance_of(&g->chance, 60) ? low : DIM_ONE;
}

/* One for each key, or for each score. */
static uint16_t score_bias(struct generator *g, uint32_t dtype, const struct shape *scores)
{
    struct shape shape = *scores;

    if (chance_of(&g->chance, 50))
        shape.code[shape.rank - 2] = DIM_ONE;
    return generate_fresh(g, dtype, &shape);
}

/* Of a value over itself, or over new keys; the values are new. */
bool generate_attention(struct generator *g)
{
    struct want want = {
        .dtypes = REALS, .exponent = 3, .min_rank = 3, .max_rank = 4, .fits = has_elements};
    uint16_t q = pick(g, &want), k = q, v, mask = NO_VAR, bias = NO_VAR;
    struct shape shape, keys, scores;
    struct action action;

    if (q == NO_VAR)
        return false;
    shape = keys = scores = g->script->vars[q].shape;
    if (chance_of(&g->chance, 70)) {
        keys.code[keys.rank - 3] = shared_heads(g, keys.code[keys.rank - 3]);
        keys.code[keys.rank - 2] = some_symbol(g);
        k = generate_fresh(g, g->script->vars[q].dtype, &keys);
    }
    scores.code[scores.rank - 1] = keys.code[keys.rank - 2];
    keys.code[keys.rank - 1] = shape.code[shape.rank - 1] = some_symbol(g);
    v = fresh_values(g, g->script->vars[q].dtype, &keys);
    if (k == NO_VAR || v == NO_VAR || shape_most(&scores) > MAX_ELEMENTS ||
        shape_most(&shape) > MAX_ELEMENTS)
        return false;
    if (chance_of(&g->chance, 30))
        mask = generate_fresh(g, FRIT_BOOL, &scores);
    if (chance_of(&g->chance, 40))
        bias = score_bias(g, g->script->vars[q].dtype, &scores);
    action = begin_op(g, FRIT_OP_attention, ATTR_ATTENTION);
    action.choice = chance_of(&g->chance, 40);
    action.n_in = 5;
    action.in[0] = use(g, q);
    action.in[1] = k == q ? (struct operand){q, false} : use(g, k);
    action.in[2] = use(g, v);
    action.in[3] = mask == NO_VAR ? scalar() : use(g, mask);
    action.in[4] = bias == NO_VAR ? scalar() : use(g, bias);
    add_output(g, &action, g->script->vars[q].dtype, &shape, 4, false);
    return commit(g, &action);
}

static bool can_pool(const struct var *var)
{
    uint8_t last = var->shape.code[2];

    return has_elements(var) && is_product(last);
}

bool generate_max_pool(struct generator *g)
{
    struct want want = {
        .dtypes = REALS, .exponent = ANY_EXPONENT, .min_rank = 3, .max_rank = 3, .fits = can_pool};
    struct action action = begin_op(g, FRIT_OP_max_pool, ATTR_POOL);
    struct shape shape;
    uint16_t x;

    g->discrete = true;
    x = pick(g, &want);
    if (x == NO_VAR)
        return false;
    shape = g->script->vars[x].shape;
    shape.code[2] |= DIM_MINUS;
    action.step = 2;
    action.n_in = 1;
    action.in[0] = use(g, x);
    add_output(g, &action, g->script->vars[x].dtype, &shape, g->script->vars[x].exponent, false);
    add_output(g, &action, FRIT_I64, &shape, 0, false);
    return commit(g, &action) && cast_index(g, &action, 1);
}

/* ---- Fourier transforms ---- */

static bool can_halve(const struct var *var)
{
    return has_elements(var) && var->exponent <= MAX_EXPONENT - 10;
}

/* Back again, of both parts or of one of them twice. */
static bool inverse(struct generator *g, const struct action *forward, const struct shape *shape)
{
    struct action action = begin_op(g, FRIT_OP_irfft, ATTR_FFT);
    uint16_t re = forward->out[0], im = chance_of(&g->chance, 80) ? forward->out[1] : re;
    const struct var *var = value_of(g, re);

    action.axis = forward->axis;
    action.size = shape->code[action.axis];
    action.n_in = 2;
    action.in[0] = use(g, re);
    action.in[1] = re == im ? (struct operand){im, false} : use(g, im);
    add_output(g, &action, var->dtype, shape, var->exponent + 6, false);
    return commit(g, &action);
}

bool generate_fft(struct generator *g)
{
    struct want want = {.dtypes = REALS,
                        .exponent = ANY_EXPONENT,
                        .min_rank = 1,
                        .max_rank = SCRIPT_RANK,
                        .fits = can_halve};
    uint16_t x = pick(g, &want);
    struct action action = begin_op(g, FRIT_OP_rfft, ATTR_FFT);
    const struct var *var = value_of(g, x);
    struct shape shape, half;

    if (x == NO_VAR)
        return false;
    half = shape = var->shape;
    action.axis = (uint8_t)chance_below(&g->chance, shape.rank);
    if (!is_product(shape.code[action.axis]))
        return false;
    half.code[action.axis] |= DIM_HALF;
    action.size = shape.code[action.axis];
    action.n_in = 1;
    action.in[0] = use(g, x);
    add_output(g, &action, var->dtype, &half, var->exponent + 6, false);
    add_output(g, &action, var->dtype, &half, var->exponent + 6, false);
    if (!commit(g, &action))
        return false;
    return chance_of(&g->chance, 50) || inverse(g, &action, &shape);
}
