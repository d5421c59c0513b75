/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: rows that are neighbours in memory, as of folds over the first or the middle dim, where
 * several passes need the elements.  A group has a few such rows (`columns` of memory): lane number
 * l has column l % columns, and every (lanes / columns)-th of its elements.  All of them stay in
 * registers, so that memory is read once, and neighbouring lanes read neighbouring elements. */
#include "lower/schedule/row_slab.h"

#include "lower/rows/cost.h"
#include "lower/schedule/row.h"

enum {
    GRAIN = 4, /* elements per lane are a multiple, so that rows of many lengths share a module */
    WORD_BYTES = 8 /* of a value in a tile, at most */
};

static uint32_t type_bytes(enum kir_type type)
{
    return type == KIR_I64 || type == KIR_F64 ? 8 : 4;
}

/* Marks the nodes that passes after this one request, down to those that `known` has. */
static void find_later(const struct row_schedule *row, uint32_t pass, const bool *known,
                       bool *later)
{
    for (uint32_t i = 0; i < row->n_folds; i++)
        later[row->folds[i].node] |=
            row->folds[i].level - 1 > pass && row->folds[i].computed_by == BLOCK_NONE;
    for (uint32_t i = 0; i < row->e.n_stores; i++)
        later[row->e.stores[i].node] |=
            row->whole_rows[i] && row->level[row->e.stores[i].node] > pass;
    for (uint32_t i = row->e.n_nodes; i-- > 0;) {
        const struct expr_node *node = &row->e.nodes[i];

        for (uint32_t k = 0; later[i] && !known[i] && node->kind == EXPR_OP && k < node->n_in; k++)
            if (node->in[k] != BLOCK_NONE)
                later[node->in[k]] = true;
    }
}

/* The most bytes of an element's values that one pass leaves to later ones; 0 if out of memory. */
static uint32_t resident_bytes(struct row_schedule *row)
{
    uint32_t n = row->e.n_nodes, most = 0;
    bool *known = arena_array(&row->e.arena, n + 1u, sizeof(*known));

    for (uint32_t pass = 0; known && pass < row_passes(row); pass++) {
        const bool *needed = row_needs(row, pass);
        bool *later = arena_array(&row->e.arena, n + 1u, sizeof(*later));
        uint32_t bytes = 0;

        if (!needed || !later)
            return 0;
        for (uint32_t i = 0; i < n; i++)
            known[i] |= needed[i] && row->varies[i];
        find_later(row, pass, known, later);
        for (uint32_t i = 0; i < n; i++)
            if (known[i] && later[i])
                bytes += type_bytes(expr_type(&row->e, i));
        if (bytes > most)
            most = bytes;
    }
    return most;
}

/* Instructions per element, about. */
static uint32_t element_cost(const struct row_schedule *row)
{
    const struct block *block = row->e.s->block;
    uint32_t cost = row->n_folds;

    for (uint32_t i = 0; i < row->e.n_nodes; i++)
        if (row->varies[i] && row->e.nodes[i].kind == EXPR_OP)
            cost += lower_cost(block->ops[block->values[row->e.nodes[i].value].maker].id);
        else if (row->varies[i])
            cost += 2;
    return cost;
}

/* Bytes of an element in memory, of the loaded argument with the smallest elements. */
static uint32_t loaded_bytes(const struct row_schedule *row)
{
    uint32_t least = WORD_BYTES;

    for (uint32_t i = 0; i < row->e.n_nodes; i++) {
        const struct expr_node *node = &row->e.nodes[i];
        uint32_t bytes;

        if (node->kind != EXPR_LOAD || !row->varies[i])
            continue;
        bytes = (uint32_t)frit_storage_bytes(row->e.s->block->values[node->value].dtype, 1);
        if (bytes < least)
            least = bytes;
    }
    return least;
}

/* The most elements that a lane may have. */
static uint32_t max_elements(struct row_schedule *row)
{
    const struct kir_tuning tuning = sched_tuning(row->e.s);
    uint32_t bytes = resident_bytes(row), cost = element_cost(row), most;

    if (!bytes)
        return 0;
    most = tuning.slab_bytes / bytes;
    if (most > tuning.slab_cost / cost)
        most = tuning.slab_cost / cost;
    if (most > ROW_RESIDENT)
        most = ROW_RESIDENT;
    return most - most % GRAIN;
}

/* Whether groups of this many lanes have tiles for what their lanes combine. */
static bool tiles_fit(const struct row_schedule *row, uint32_t lanes, uint32_t columns)
{
    const struct kir_target *target = row->e.s->target;
    uint64_t near = target->near_lanes ? target->near_lanes : lanes, bytes = 0;

    if (lanes > target->lanes)
        bytes = (uint64_t)(lanes - target->lanes) * target->lane_bytes;
    for (uint32_t i = 0; i < row->n_folds && near < lanes; i++)
        bytes += row->folds[i].fold.kind->n_parts * (lanes / near) * columns * WORD_BYTES;
    return bytes <= target->group_bytes;
}

/* The number of columns of a slab with `slices` lanes on each: the fewest that make wide accesses.
 * 0: none pay. */
static uint32_t choose_columns(const struct row_schedule *row, int64_t slices)
{
    const struct kir_target *target = row->e.s->target;
    const struct kir_tuning tuning = sched_tuning(row->e.s);
    uint32_t bytes = loaded_bytes(row), best = 0;

    for (uint32_t lanes = target->lanes / 2; lanes <= target->max_lanes; lanes *= 2) {
        int64_t columns = lanes / slices;

        if (target->near_lanes && columns > target->near_lanes)
            columns = target->near_lanes;
        if (columns * bytes < tuning.slab_least)
            continue;
        if (!tiles_fit(row, (uint32_t)(columns * slices), (uint32_t)columns))
            break;
        best = (uint32_t)columns;
        if (columns * bytes >= tuning.slab_wide)
            break;
    }
    return best;
}

bool slab_plan(struct row_schedule *row)
{
    uint32_t most, columns;
    int64_t slices = 2, elements;

    if (!sched_tuning(row->e.s).slab_bytes || row_passes(row) < 2)
        return false;
    most = max_elements(row);
    if (!most)
        return false;
    while (slices * most < row->n_row)
        slices *= 2;
    columns = choose_columns(row, slices);
    if (!columns)
        return false;
    row->form = ROW_SLAB;
    row->n_chunks = 1;
    partition_init_lines(&row->partition, &row->e, &row->outer, columns, columns);
    row->lanes_per_row = (uint32_t)slices;
    row->lanes = row->partition.lanes * row->lanes_per_row;
    elements = (row->n_row + slices - 1) / slices;
    row->resident = (uint32_t)((elements + GRAIN - 1) / GRAIN * GRAIN);
    row->unmasked = row->resident * slices == row->n_row ? row->resident : row->resident - GRAIN;
    return true;
}
