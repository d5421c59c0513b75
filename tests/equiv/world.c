/* SPDX-License-Identifier: Apache-2.0 */
/* Owners.  A thread uses a value only while it has an owner of its own, given at the value's birth
 * or by its home in an earlier phase; so whatever other threads do meanwhile, what happens is
 * determined.  A scope's owner counts as one of the home's. */
#include "script.h"

#include <string.h>

void world_init(struct world *world, const struct script *script)
{
    memset(world, 0, sizeof(*world));
    world->script = script;
}

bool world_has(const struct world *world, uint8_t thread, uint16_t var)
{
    return world->vars[var].made && world->vars[var].owners[thread] > 0;
}

bool world_may_end(const struct world *world, uint8_t thread, uint16_t var)
{
    if (!world_has(world, thread, var))
        return false;
    /* The scope's owner must be left to the scope, unless it is the last of all. */
    return world->vars[var].scope == NO_VAR || world->script->vars[var].home != thread ||
           world->vars[var].owners[thread] > 1 || !world->vars[var].shared;
}

static bool scope_is_open(const struct world *world, uint8_t thread, uint16_t scope)
{
    for (uint32_t k = 0; k < world->threads[thread].depth; k++)
        if (world->threads[thread].open[k] == scope)
            return true;
    return false;
}

bool world_allows(const struct world *world, const struct action *action)
{
    uint16_t var = action->in[0].var;

    for (uint32_t i = 0; i < action->n_in; i++) {
        const struct operand *in = &action->in[i];

        if (in->var == NO_VAR)
            continue;
        if (!world_has(world, action->thread, in->var) ||
            (in->take && !world_may_end(world, action->thread, in->var)))
            return false;
    }
    switch ((enum action_kind)action->kind) {
    case ACT_RELEASE:
        return world_may_end(world, action->thread, var);
    case ACT_KEEP:
        return world->vars[var].scope != NO_VAR && world->script->vars[var].home == action->thread;
    case ACT_SCOPE_BEGIN:
        return world->threads[action->thread].depth < 4;
    case ACT_SCOPE_END:
        return scope_is_open(world, action->thread, action->number);
    default:
        return true;
    }
}

/* ---- what actions do ---- */

static bool is_owned(const struct world *world, uint16_t var)
{
    for (uint32_t t = 0; t <= SCRIPT_THREADS; t++)
        if (world->vars[var].owners[t] || world->vars[var].coming[t])
            return true;
    return false;
}

static void give_back(struct world *world, uint8_t thread, uint16_t var)
{
    uint8_t home = world->script->vars[var].home;

    if (world->vars[var].owners[thread] == 0)
        return; /* an operand that is taken twice goes once */
    world->vars[var].owners[thread]--;
    if (is_owned(world, var))
        return;
    world->vars[var].scope = NO_VAR;
    world->n_early += world->vars[var].drains == world->threads[home].drains;
}

static void make(struct world *world, const struct action *action, uint16_t var)
{
    uint32_t depth = world->threads[action->thread].depth;

    world->vars[var].made = true;
    world->vars[var].owners[action->thread] = 1;
    world->vars[var].scope =
        depth ? world->threads[action->thread].open[depth - 1] : (uint16_t)NO_VAR;
    world->vars[var].drains = world->threads[action->thread].drains;
    world->n_made++;
}

/* Ends the scope and those inside it. */
static void scope_end(struct world *world, uint8_t thread, uint16_t scope)
{
    uint32_t depth = world->threads[thread].depth;
    uint16_t ended;

    do {
        ended = world->threads[thread].open[--depth];
        for (uint32_t v = 0; v < world->script->n_vars; v++)
            if (world->vars[v].made && world->vars[v].scope == ended) {
                world->vars[v].scope = NO_VAR;
                give_back(world, thread, (uint16_t)v);
            }
    } while (ended != scope);
    world->threads[thread].depth = depth;
    world->threads[thread].drains++;
}

static void keep(struct world *world, uint8_t thread, uint16_t var)
{
    uint32_t k = 0;

    while (world->threads[thread].open[k] != world->vars[var].scope)
        k++;
    world->vars[var].scope = k ? world->threads[thread].open[k - 1] : (uint16_t)NO_VAR;
}

static void next_phase(struct world *world, uint32_t phase)
{
    for (; world->phase < phase; world->phase++)
        for (uint32_t v = 0; v < world->script->n_vars; v++)
            for (uint32_t t = 0; t <= SCRIPT_THREADS; t++) {
                world->vars[v].owners[t] =
                    (uint8_t)(world->vars[v].owners[t] + world->vars[v].coming[t]);
                world->vars[v].coming[t] = 0;
            }
}

void world_apply(struct world *world, const struct action *action)
{
    uint8_t thread = action->thread;
    uint16_t var = action->in[0].var;

    next_phase(world, action->phase);
    for (uint32_t k = 0; k < action->n_out; k++)
        make(world, action, action->out[k]);
    for (uint32_t i = 0; i < action->n_in; i++) {
        bool again = false;

        for (uint32_t j = 0; j < i; j++)
            again |= action->in[j].take && action->in[j].var == action->in[i].var;
        if (action->in[i].take && !again)
            give_back(world, thread, action->in[i].var);
    }
    switch ((enum action_kind)action->kind) {
    case ACT_RELEASE:
        give_back(world, thread, var);
        break;
    case ACT_REF:
        if (action->number == thread) {
            world->vars[var].owners[thread]++;
            break;
        }
        world->vars[var].shared = true;
        world->vars[var].coming[action->number]++;
        break;
    case ACT_KEEP:
        keep(world, thread, var);
        break;
    case ACT_SCOPE_BEGIN:
        world->threads[thread].open[world->threads[thread].depth++] = action->number;
        break;
    case ACT_SCOPE_END:
        scope_end(world, thread, action->number);
        break;
    case ACT_READ:
    case ACT_TAKE_READ:
    case ACT_SYNC:
    case ACT_SYNC_ALL:
    case ACT_FLUSH:
        world->threads[thread].drains++;
        break;
    default:
        break;
    }
}

void script_settle(struct script *script, uint8_t *left)
{
    struct world world;

    world_init(&world, script);
    for (uint32_t i = 0; i < script->n_actions; i++) {
        struct action *action = &script->actions[i];

        if (action->off)
            continue;
        next_phase(&world, action->phase);
        if (world_allows(&world, action))
            world_apply(&world, action);
        else
            action->off = true;
    }
    for (uint8_t t = 0; t <= SCRIPT_THREADS; t++)
        if (world.threads[t].depth)
            scope_end(&world, t, world.threads[t].open[0]);
    next_phase(&world, script->n_phases);
    script->n_made = world.n_made;
    script->n_early = world.n_early;
    for (uint32_t v = 0; v < script->n_vars; v++) {
        left[v] = 0;
        for (uint32_t t = 0; t <= SCRIPT_THREADS; t++)
            left[v] = (uint8_t)(left[v] + world.vars[v].owners[t]);
    }
}
