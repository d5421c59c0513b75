/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the distinct index expressions of nodes, stores, leaves and checks, and decides whether
 * 64-bit indices are needed. */
#include "lower/expr/expr_index.h"

#include <stdlib.h>

#include "lower/expr/expr_emit.h"

static uint32_t add_index(struct expr_emitter *emit, const struct space_expr *at)
{
    uint32_t i = 0;

    while (i < emit->n_indices && !space_equal(&emit->indices[i].at, at))
        i++;
    if (i == emit->n_indices)
        emit->indices[emit->n_indices++] = (struct index){.at = *at};
    return i;
}

static void add_check(struct expr_emitter *emit, const struct expr_within *within, uint32_t *number)
{
    uint32_t index = add_index(emit, &within->at), i = 0;

    while (i < emit->n_checks &&
           (emit->checks[i].index != index || emit->checks[i].end != within->end))
        i++;
    if (i == emit->n_checks)
        emit->checks[emit->n_checks++] = (struct check){.index = index, .end = within->end};
    *number = i;
}

static struct expr_emitter *emit_create(struct expr *e)
{
    struct expr_emitter *emit = arena_alloc(&e->arena, sizeof(*emit));
    size_t n = (size_t)e->n_nodes + 1, n_stores = (size_t)e->n_stores + 1, n_within = 1;
    size_t n_coords = (size_t)e->n_coords + 1;

    if (!emit)
        return NULL;
    e->emit = emit;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        n_within += e->nodes[i].n_within;
    emit->indices = arena_array(&e->arena, n + n_stores + n_coords + n_within + SPACE_LEAVES,
                                sizeof(*emit->indices));
    emit->coord_index = arena_array(&e->arena, n_coords, sizeof(uint32_t));
    emit->checks = arena_array(&e->arena, n_within, sizeof(*emit->checks));
    emit->first_check = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->node_check = arena_array(&e->arena, n_within, sizeof(uint32_t));
    emit->fill = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->node_index = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->store_index = arena_array(&e->arena, n_stores, sizeof(uint32_t));
    emit->value = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->end = arena_array(&e->arena, n, sizeof(*emit->end));
    emit->scalar = arena_array(&e->arena, e->s->block->n_scalars + 1u, sizeof(uint32_t));
    return emit->indices && emit->checks && emit->first_check && emit->node_check && emit->fill &&
                   emit->node_index && emit->store_index && emit->coord_index && emit->value &&
                   emit->end && emit->scalar
               ? emit
               : NULL;
}

/* The largest index magnitude for 32-bit code; the rest is a margin for intermediate sums. */
enum { MAX_NARROW = INT32_MAX - (1 << 16) };

/* Whether the index can exceed that. */
static bool exceeds_narrow(const struct space *space, const struct space_expr *at)
{
    int64_t low, high;

    space_range(space, at, &low, &high);
    return low < -MAX_NARROW || high > MAX_NARROW;
}

/* The largest number of points that a schedule linearises together. */
static int64_t max_points(const struct expr *e)
{
    int64_t together = 1, most;

    for (uint32_t i = 0; i < e->space.n_dims; i++)
        if (!(e->separate_tags >> e->space.tag[i] & 1))
            together *= e->space.extent[i];
    most = together;
    for (uint32_t tag = 0; e->separate_tags >> tag; tag++) {
        int64_t count = 1;

        for (uint32_t i = 0; e->separate_tags >> tag & 1 && i < e->space.n_dims; i++)
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

static int64_t max_alignment(const struct expr *e)
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
    emit->align_elems = max_alignment(e);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_LOAD || e->nodes[i].indexed)
            emit->node_index[i] = add_index(emit, &e->nodes[i].at);
    plan_checks(e);
    for (uint32_t i = 0; i < e->n_stores; i++)
        emit->store_index[i] = add_index(emit, &e->stores[i].at);
    for (uint32_t i = 0; i < e->n_coords; i++)
        emit->coord_index[i] = add_index(emit, &e->coords[i]);
    for (uint32_t i = 0; i < e->space.n_leaves; i++)
        if (e->space.leaf[i].kind == SPACE_LOADED)
            emit->leaf[i].node = e->space.leaf[i].source;
        else if (e->space.leaf[i].kind != SPACE_BOUND)
            emit->leaf[i].index = add_index(emit, &e->space.leaf[i].of);
    e->s->module->wide |= e->s->sig->index_width > 32 || max_points(e) > MAX_NARROW;
    for (uint32_t i = 0; i < emit->n_indices; i++)
        e->s->module->wide |= exceeds_narrow(&e->space, &emit->indices[i].at);
    if (e->s->module->wide && !e->s->target->i64)
        expr_fail(e, FRIT_UNSUPPORTED);
}

void emit_fini(struct expr *e)
{
    if (e->emit)
        free(e->emit->log);
}
