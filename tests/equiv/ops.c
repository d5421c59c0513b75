/* SPDX-License-Identifier: Apache-2.0 */
/* One random op: a form from a table of weights, an op of this form, operands that fit. */
#include "ops.h"

enum rounding rounding_of(const struct action *action)
{
    static const uint16_t rounds[] = {
        FRIT_OP_square, FRIT_OP_exp,    FRIT_OP_tanh,        FRIT_OP_sigmoid, FRIT_OP_silu,
        FRIT_OP_gelu,   FRIT_OP_sqrt,   FRIT_OP_softplus,    FRIT_OP_log,     FRIT_OP_recip,
        FRIT_OP_rsqrt,  FRIT_OP_add,    FRIT_OP_sub,         FRIT_OP_mul,     FRIT_OP_div,
        FRIT_OP_hypot,  FRIT_OP_arange, FRIT_OP_log_softmax, FRIT_OP_softmax, FRIT_OP_softmin,
    };
    static const uint16_t folds[] = {
        FRIT_OP_sum,        FRIT_OP_mean,     FRIT_OP_var,    FRIT_OP_cumsum,
        FRIT_OP_layer_norm, FRIT_OP_rms_norm, FRIT_OP_matmul, FRIT_OP_cumprod,
        FRIT_OP_rfft,       FRIT_OP_irfft,    FRIT_OP_conv,   FRIT_OP_attention,
    };

    for (size_t k = 0; k < sizeof(rounds) / sizeof(rounds[0]); k++)
        if (rounds[k] == action->op)
            return OP_ROUNDS;
    for (size_t k = 0; k < sizeof(folds) / sizeof(folds[0]); k++)
        if (folds[k] == action->op)
            return OP_FOLDS;
    if (action->op == FRIT_OP_scatter &&
        (action->choice == FRIT_CHOICE_update_add || action->step == FRIT_CHOICE_update_mul))
        return OP_FOLDS;
    return OP_KEEPS;
}

/* ---- from nothing ---- */

static bool init(struct generator *g)
{
    static const uint16_t ops[] = {FRIT_OP_full, FRIT_OP_full,           FRIT_OP_zeros,
                                   FRIT_OP_ones, FRIT_OP_random_uniform, FRIT_OP_random_bernoulli};
    /* What other threads draw depends on how many streams their device had before them, and the
     * measured driver has more of them. */
    bool draws = !g->script->well_conditioned || g->thread == SCRIPT_THREADS;
    struct action action = begin_op(g, ops[chance_below(&g->chance, draws ? 6 : 4)], ATTR_INIT);
    uint16_t like = pick_simple(g, BIT(FRIT_F32), 0); /* gives the dims */

    if (like == NO_VAR)
        return false;
    action.n_in = action.op == FRIT_OP_random_uniform                                  ? 2
                  : action.op == FRIT_OP_full || action.op == FRIT_OP_random_bernoulli ? 1
                                                                                       : 0;
    action.in[0] = action.in[1] = scalar();
    add_output(g, &action, FRIT_F32, &g->script->vars[like].shape, 3, false);
    return commit(g, &action);
}

static bool arange(struct generator *g)
{
    struct action action = begin_op(g, FRIT_OP_arange, ATTR_INIT);
    struct shape shape = {.rank = 1, .code = {(uint8_t)(1u << chance_below(&g->chance, 4))}};

    action.n_in = 2;
    action.in[0] = action.in[1] = scalar();
    add_output(g, &action, chance_of(&g->chance, 70) ? FRIT_F32 : FRIT_I32, &shape, 6, false);
    return commit(g, &action);
}

bool generate_op(struct generator *g)
{
    static const struct {
        bool (*form)(struct generator *g);
        uint32_t weight;
    } forms[] = {
        {generate_view, 47},
        {generate_unary, 12},
        {generate_root, 3},
        {generate_binary, 18},
        {generate_compare, 4},
        {generate_choose, 5},
        {generate_clamp, 2},
        {generate_cast, 4},
        {generate_chain, 3},
        {init, 5},
        {arange, 1},
        {generate_reduce, 9},
        {generate_norm, 2},
        {generate_along_axis, 4},
        {generate_matmul, 2},
        {generate_max_pool, 2},
        {generate_cat, 2},
        {generate_pattern, 2},
        {generate_sort, 2},
        {generate_topk, 1},
        {generate_gather, 1},
        {generate_scatter, 2},
        {generate_fft, 1},
        {generate_quant, 1},
        {generate_step, 1},
        {generate_conv, 2},
        {generate_attention, 2},
        {generate_product, 3},
    };
    uint32_t n = sizeof(forms) / sizeof(forms[0]), total = 0, at;

    g->discrete = false;
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
