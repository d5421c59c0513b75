/* SPDX-License-Identifier: Apache-2.0 */
/* Before emitting: the places that nodes, stores and checks are at, each once, and how wide they
 * are. */
#include <stdlib.h>

#include "lower/expr/expr_emit.h"

static uint32_t add_site(struct expr_emitter *emit, const struct space_expr *at)
{
    uint32_t i = 0;

    while (i < emit->n_sites && !space_equal(&emit->sites[i].at, at))
        i++;
    if (i == emit->n_sites)
        emit->sites[emit->n_sites++] = (struct site){.at = *at};
    return i;
}

static void add_check(struct expr_emitter *emit, const struct expr_within *within, uint32_t *number)
{
    uint32_t site = add_site(emit, &within->at), i = 0;

    while (i < emit->n_checks &&
           (emit->checks[i].site != site || emit->checks[i].end != within->end))
        i++;
    if (i == emit->n_checks)
        emit->checks[emit->n_checks++] = (struct check){.site = site, .end = within->end};
    *number = i;
}

static struct expr_emitter *emit_create(struct expr *e)
{
    struct expr_emitter *emit = arena_alloc(&e->arena, sizeof(*emit));
    size_t n = (size_t)e->n_nodes + 1, n_stores = (size_t)e->n_stores + 1, n_within = 1;
    size_t n_places = (size_t)e->n_places + 1;

    if (!emit)
        return NULL;
    e->emit = emit;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        n_within += e->nodes[i].n_within;
    emit->sites = arena_array(&e->arena, n + n_stores + n_places + n_within + SPACE_ATOMS,
                              sizeof(*emit->sites));
    emit->place_site = arena_array(&e->arena, n_places, sizeof(uint32_t));
    emit->checks = arena_array(&e->arena, n_within, sizeof(*emit->checks));
    emit->first_check = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->node_check = arena_array(&e->arena, n_within, sizeof(uint32_t));
    emit->fill = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->node_site = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->store_site = arena_array(&e->arena, n_stores, sizeof(uint32_t));
    emit->value = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->end = arena_array(&e->arena, n, sizeof(*emit->end));
    emit->scalar = arena_array(&e->arena, e->s->block->n_scalars + 1u, sizeof(uint32_t));
    return emit->sites && emit->checks && emit->first_check && emit->node_check && emit->fill &&
                   emit->node_site && emit->store_site && emit->place_site && emit->value &&
                   emit->end && emit->scalar
               ? emit
               : NULL;
}

/* Numbers beyond need more than 31 bits, here or somewhat further. */
enum { FAR = INT32_MAX - (1 << 16) };

/* Whether a place does anywhere on the way. */
static bool is_far(const struct space *space, const struct space_expr *at)
{
    int64_t low, high;

    space_range(space, at, &low, &high);
    return low < -FAR || high > FAR;
}

/* Of those that are numbered together. */
static int64_t most_points(const struct expr *e)
{
    int64_t together = 1, most;

    for (uint32_t i = 0; i < e->space.n_dims; i++)
        if (!(e->apart >> e->space.tag[i] & 1))
            together *= e->space.extent[i];
    most = together;
    for (uint32_t tag = 0; e->apart >> tag; tag++) {
        int64_t count = 1;

        for (uint32_t i = 0; e->apart >> tag & 1 && i < e->space.n_dims; i++)
            if (e->space.tag[i] == tag)
                count *= e->space.extent[i];
        most = count > most ? count : most;
    }
    return most;
}

static void plan_checks(struct expr *e)
{
    struct expr_emitter *emit = e->emit;
    uint32_t next = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        emit->first_check[i] = next;
        for (uint32_t k = 0; k < e->nodes[i].n_within; k++)
            add_check(emit, &e->nodes[i].within[k], &emit->node_check[next++]);
    }
}

static int64_t most_even(const struct expr *e)
{
    const struct sched *s = e->s;
    int64_t least = INT64_MAX;

    for (uint32_t i = 0; i < s->block->n_inputs + s->block->n_outputs; i++) {
        int64_t bytes = (int64_t)frit_storage_bytes(expr_arg(e, i)->dtype, 1);

        if (bytes > 0 && bytes < least)
            least = bytes;
    }
    return least < s->target->align_bytes ? s->target->align_bytes / least : 1;
}

void emit_plan(struct expr *e)
{
    struct expr_emitter *emit = emit_create(e);

    if (!emit) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return;
    }
    emit->even = most_even(e);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_LOAD || e->nodes[i].indexed)
            emit->node_site[i] = add_site(emit, &e->nodes[i].at);
    plan_checks(e);
    for (uint32_t i = 0; i < e->n_stores; i++)
        emit->store_site[i] = add_site(emit, &e->stores[i].at);
    for (uint32_t i = 0; i < e->n_places; i++)
        emit->place_site[i] = add_site(emit, &e->places[i]);
    for (uint32_t i = 0; i < e->space.n_atoms; i++)
        if (e->space.atom[i].kind == SPACE_FOUND)
            emit->atom[i].node = e->space.atom[i].name;
        else if (e->space.atom[i].kind != SPACE_NUMBER)
            emit->atom[i].site = add_site(emit, &e->space.atom[i].of);
    e->s->module->wide = e->s->sig->index_width > 32 || most_points(e) > FAR;
    for (uint32_t i = 0; i < emit->n_sites; i++)
        e->s->module->wide |= is_far(&e->space, &emit->sites[i].at);
    if (e->s->module->wide && !e->s->target->i64)
        expr_fail(e, FRIT_UNSUPPORTED);
}

void emit_fini(struct expr *e)
{
    if (e->emit)
        free(e->emit->log);
}
