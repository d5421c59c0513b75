/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts: threads, phases, scopes, lives and deaths; the ops themselves are ops.c's.
 *
 * Phase by phase and thread by thread, each thread gets a share of the ops; between them values are
 * read, written, released, kept and lent to other threads.  The first phase of the main thread is
 * the whole script where there are no others; else it comes last and finds what the others left
 * behind, also in queues whose threads are gone. */
#include "generate.h"

#include <string.h>

/* ---- values ---- */

uint16_t pick(struct generator *g, const struct want *want)
{
    const struct script *script = g->script;

    for (uint32_t attempt = 0; attempt < 24 && script->n_vars; attempt++) {
        uint32_t back = chance_of(&g->chance, 70) ? 10 : script->n_vars; /* young ones, mostly */
        uint32_t span = back < script->n_vars ? back : script->n_vars;
        uint16_t v = (uint16_t)(script->n_vars - 1 - chance_below(&g->chance, span));
        const struct var *var = &script->vars[v];

        if (!world_has(&g->world, g->thread, v) || !(want->dtypes & BIT(var->dtype)) ||
            var->shape.rank < want->min_rank || var->shape.rank > want->max_rank ||
            (BIT(var->dtype) & REALS && var->exponent > want->exponent) ||
            (want->fits && !want->fits(var)) ||
            (g->discrete && script->well_conditioned && !var->exact))
            continue;
        if ((g->alone[v] && var->home != g->thread) || (attempt < 6 && g->used[v]))
            continue;
        return v;
    }
    return NO_VAR;
}

uint16_t pick_simple(struct generator *g, uint32_t dtypes, uint32_t min_rank)
{
    return pick(g, &(struct want){.dtypes = dtypes,
                                  .exponent = ANY_EXPONENT,
                                  .min_rank = min_rank,
                                  .max_rank = SCRIPT_RANK});
}

uint16_t pick_beside(struct generator *g, uint16_t first,
                     bool (*fits)(const struct var *a, const struct var *b))
{
    const struct var *var = &g->script->vars[first];

    for (uint32_t attempt = 0; attempt < 8; attempt++) {
        uint16_t other = pick_simple(g, BIT(var->dtype), 0);

        if (other != NO_VAR && fits(var, &g->script->vars[other]))
            return other;
    }
    return NO_VAR;
}

struct operand use(struct generator *g, uint16_t var)
{
    bool take = world_may_end(&g->world, g->thread, var) && chance_of(&g->chance, 28);

    return (struct operand){var, take};
}

struct operand consume(struct generator *g, uint16_t var)
{
    return (struct operand){var, world_may_end(&g->world, g->thread, var)};
}

struct operand scalar(void)
{
    return (struct operand){NO_VAR, false};
}

/* ---- actions ---- */

struct action begin(struct generator *g, enum action_kind kind)
{
    return (struct action){.kind = (uint8_t)kind,
                           .thread = g->thread,
                           .phase = g->phase,
                           .in[0].var = NO_VAR,
                           .seed = (uint32_t)chance_next(&g->chance)};
}

struct action begin_op(struct generator *g, uint16_t op, enum attr_form attrs)
{
    struct action action = begin(g, ACT_OP);

    action.op = op;
    action.attrs = (uint8_t)attrs;
    return action;
}

/* Of an output of this type; operands are `exact`. */
static bool is_exact(const struct generator *g, const struct action *action, uint32_t dtype,
                     bool exact)
{
    const struct var *first = value_of(g, action->in[0].var);

    if (action->kind != ACT_OP || !(BIT(dtype) & REALS))
        return true;
    if (action->op == FRIT_OP_cast && first->dtype != dtype)
        return exact && (dtype == FRIT_F64 || first->dtype == FRIT_BOOL);
    return exact && rounding_of(action) == OP_KEEPS;
}

void add_output(struct generator *g, struct action *action, uint32_t dtype,
                const struct shape *shape, int exponent, bool positive)
{
    struct script *script = g->script;
    uint16_t v = (uint16_t)(script->n_vars + action->n_out);
    bool exact = true;

    if (v >= SCRIPT_VARS)
        return;
    script->vars[v] = (struct var){.dtype = dtype,
                                   .shape = *shape,
                                   .exponent = (int8_t)(exponent < 0 ? 0 : exponent),
                                   .positive = positive,
                                   .tainted = action->kind == ACT_BROKEN,
                                   .home = g->thread};
    for (uint32_t i = 0; i < action->n_in; i++)
        if (action->in[i].var != NO_VAR) {
            script->vars[v].tainted |= script->vars[action->in[i].var].tainted;
            exact &= script->vars[action->in[i].var].exact;
        }
    script->vars[v].exact = is_exact(g, action, dtype, exact);
    action->out[action->n_out++] = v;
}

bool commit(struct generator *g, const struct action *action)
{
    struct script *script = g->script;

    if (script->n_actions == SCRIPT_ACTIONS || script->n_vars + action->n_out >= SCRIPT_VARS)
        return false;
    script->n_vars += action->n_out;
    for (uint32_t i = 0; i < action->n_in; i++)
        if (action->kind == ACT_OP && action->in[i].var != NO_VAR)
            g->used[action->in[i].var] = true;
    world_apply(&g->world, action);
    script->actions[script->n_actions++] = *action;
    script->n_ops += action->kind == ACT_OP;
    return true;
}

static void simple(struct generator *g, enum action_kind kind)
{
    struct action action = begin(g, kind);

    commit(g, &action);
}

static void on_value(struct generator *g, enum action_kind kind, uint16_t var, uint8_t for_thread)
{
    struct action action = begin(g, kind);

    action.n_in = 1;
    action.in[0].var = var;
    action.in[0].take = kind == ACT_TAKE_READ;
    action.number = for_thread;
    if (world_allows(&g->world, &action))
        commit(g, &action);
}

static struct shape random_shape(struct generator *g)
{
    static const uint8_t codes[] = {DIM_ONE, DIM_ONE, DIM_ONE, 1, 2, 2, 4, 4, 4, 8, 8};
    struct shape shape;

    do {
        shape = (struct shape){.rank = chance_below(&g->chance, 5)};
        for (uint32_t d = 0; d < shape.rank; d++) {
            shape.code[d] = codes[chance_below(&g->chance, sizeof(codes))];
            if (d && chance_of(&g->chance, 25))
                shape.code[d] = shape.code[d - 1]; /* equal dims */
            if (chance_of(&g->chance, 2))
                shape.code[d] = DIM_ZERO;
        }
    } while (shape_most(&shape) > MAX_ELEMENTS / 4);
    return shape;
}

static void from_host(struct generator *g)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F32, FRIT_F32, FRIT_F32,
                                      FRIT_F32, FRIT_F64, FRIT_I32, FRIT_BOOL};
    struct action action = begin(g, ACT_FROM_HOST);
    struct shape shape = random_shape(g);

    add_output(g, &action, dtypes[chance_below(&g->chance, 8)], &shape, 2, false);
    commit(g, &action);
}

/* A broken value, and one that depends on it. */
static void broken(struct generator *g)
{
    struct action action = begin(g, ACT_BROKEN), add = begin_op(g, FRIT_OP_add, ATTR_NONE);
    uint16_t x = pick_simple(g, BIT(FRIT_F32), 0);

    add_output(g, &action, FRIT_F32, &(struct shape){.rank = 0}, 0, false);
    if (!commit(g, &action) || x == NO_VAR)
        return;
    add.n_in = 2;
    add.in[0] = use(g, x);
    add.in[1] = (struct operand){action.out[0], false};
    add_output(g, &add, FRIT_F32, &g->script->vars[x].shape, 0, false);
    commit(g, &add);
}

/* ---- lives ---- */

static uint32_t alive(const struct generator *g)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < g->script->n_vars; v++)
        n += world_has(&g->world, g->thread, (uint16_t)v);
    return n;
}

static void write_some(struct generator *g)
{
    uint16_t v = pick_simple(g, ANY, 0);

    if (v == NO_VAR || g->script->vars[v].tainted || g->script->vars[v].home != g->thread)
        return;
    if (g->world.vars[v].shared && !g->alone[v])
        return;
    g->script->vars[v].exponent = 2;
    g->script->vars[v].positive = false;
    g->script->vars[v].exact = true;
    on_value(g, ACT_WRITE, v, 0);
}

/* What may happen after an op. */
static void live_on(struct generator *g)
{
    uint32_t many = alive(g);
    uint16_t v;

    while (many > 14 || (many > 2 && chance_of(&g->chance, 22))) {
        v = pick_simple(g, ANY, 0);
        if (v != NO_VAR && (g->used[v] || chance_of(&g->chance, 10)))
            on_value(g, ACT_RELEASE, v, 0);
        many--;
    }
    v = pick_simple(g, ANY, 0);
    if (v == NO_VAR)
        return;
    if (chance_of(&g->chance, g->reading))
        on_value(g, chance_of(&g->chance, 50) ? ACT_READ : ACT_TAKE_READ, v, 0);
    if (chance_of(&g->chance, 3))
        on_value(g, ACT_REF, v, g->thread);
    if (chance_of(&g->chance, 3))
        write_some(g);
    if (chance_of(&g->chance, 2))
        simple(g, chance_of(&g->chance, 70)   ? ACT_FLUSH
                  : chance_of(&g->chance, 70) ? ACT_SYNC
                                              : ACT_SYNC_ALL);
}

/* Opens or closes a scope now and then; a closing one keeps one or two of its values. */
static void scopes(struct generator *g)
{
    uint32_t depth = g->world.threads[g->thread].depth;

    if (depth < 2 && chance_of(&g->chance, 5)) {
        struct action action = begin(g, ACT_SCOPE_BEGIN);

        action.number = (uint16_t)g->script->n_scopes++;
        commit(g, &action);
    } else if (depth && chance_of(&g->chance, 12)) {
        struct action action = begin(g, ACT_SCOPE_END);

        for (uint32_t k = 0; k < 2; k++) {
            uint16_t v = pick_simple(g, ANY, 0);

            if (v != NO_VAR && g->world.vars[v].scope != NO_VAR)
                on_value(g, ACT_KEEP, v, 0);
        }
        action.number = g->world.threads[g->thread].open[chance_below(&g->chance, depth)];
        commit(g, &action);
    }
}

/* At the end of a phase values are lent to other threads; of the shared ones some are left to their
 * homes alone in the next phase. */
static void lend(struct generator *g, uint8_t to)
{
    for (uint32_t k = 0; k < 4; k++) {
        uint16_t v = pick_simple(g, ANY, 0);

        if (v != NO_VAR && g->script->vars[v].home == g->thread && to != g->thread)
            on_value(g, ACT_REF, v, to);
        if (v != NO_VAR && chance_of(&g->chance, 20))
            g->alone_next[v] = true;
    }
}

/* ---- scripts ---- */

static void generate_part(struct generator *g, uint32_t n_ops)
{
    uint32_t until = g->script->n_ops + n_ops;

    while (alive(g) < 3)
        from_host(g);
    for (uint32_t guard = 0; g->script->n_ops < until && guard < 8 * n_ops + 64; guard++) {
        if (!generate_op(g) ? chance_of(&g->chance, 25) : chance_of(&g->chance, 2))
            from_host(g);
        if (g->breaks && chance_of(&g->chance, 5)) {
            broken(g);
            g->breaks = false;
        }
        live_on(g);
        scopes(g);
    }
}

static void end_scopes(struct generator *g)
{
    if (g->world.threads[g->thread].depth) {
        struct action action = begin(g, ACT_SCOPE_END);

        action.number = g->world.threads[g->thread].open[0];
        commit(g, &action);
    }
}

static void generate_threads(struct generator *g, uint32_t n_ops)
{
    struct script *script = g->script;
    uint32_t parts = (script->n_phases - 1) * script->n_threads;

    for (g->phase = 0; g->phase + 1u < script->n_phases; g->phase++) {
        memcpy(g->alone, g->alone_next, sizeof(g->alone));
        memset(g->alone_next, 0, sizeof(g->alone_next));
        for (g->thread = 0; g->thread < script->n_threads; g->thread++) {
            generate_part(g, n_ops / parts + 1);
            if (g->phase + 2u == script->n_phases)
                end_scopes(g);
            for (uint8_t to = 0; to < script->n_threads; to++)
                lend(g, to);
            lend(g, SCRIPT_THREADS);
        }
    }
}

/* Half of what is left is read. */
static void generate_end(struct generator *g)
{
    for (uint16_t v = 0; v < g->script->n_vars; v++)
        if (chance_of(&g->chance, 75))
            on_value(g, chance_of(&g->chance, 50) ? ACT_READ : ACT_TAKE_READ, v, 0);
}

void script_generate(struct script *script, uint64_t seed, bool well_conditioned)
{
    struct generator g = {.script = script, .chance = {seed * 0x2545f4914f6cdd1du + 1}};
    uint32_t n_ops = 16 + chance_below(&g.chance, 241);
    uint8_t left[SCRIPT_VARS];

    memset(script, 0, sizeof(*script));
    script->seed = seed;
    script->well_conditioned = well_conditioned;
    script->n_phases = 1;
    g.breaks = chance_of(&g.chance, 15);
    g.reading = (uint32_t[]){1, 3, 6, 12}[chance_below(&g.chance, 4)];
    world_init(&g.world, script);
    if (chance_of(&g.chance, 30)) {
        script->n_threads = 3 + chance_below(&g.chance, SCRIPT_THREADS - 2);
        script->n_phases = 2 + chance_below(&g.chance, 4);
        generate_threads(&g, n_ops - 8);
        n_ops = 8;
    }
    g.thread = SCRIPT_THREADS;
    g.phase = (uint8_t)(script->n_phases - 1);
    generate_part(&g, n_ops);
    end_scopes(&g);
    generate_end(&g);
    script_settle(script, left);
}
