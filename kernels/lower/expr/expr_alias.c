/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that nodes depend on, and which of them an output may overwrite. */
#include "lower/expr/expr_alias.h"

#include "lower/expr/expr_emit.h"

/* ---- inputs ---- */

/* The inputs that an index expression depends on, through loaded indices. */
static uint64_t index_inputs(const struct expr *e, const struct space_expr *at)
{
    uint64_t inputs = 0;

    for (uint32_t a = 0; a < e->space.n_leaves; a++) {
        const struct space_leaf *leaf = &e->space.leaf[a];

        if (at->k[SPACE_DIMS + a])
            inputs |= leaf->kind == SPACE_LOADED ? e->nodes[leaf->source].inputs
                                                 : index_inputs(e, &leaf->of);
    }
    return inputs;
}

void emit_inputs(struct expr *e)
{
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        struct expr_node *node = &e->nodes[i];
        uint32_t input = e->s->block->values[node->value].input;

        node->inputs = node->kind == EXPR_LOAD && input < 64 ? 1ull << input : 0;
        if (node->kind == EXPR_LOAD || node->indexed)
            node->inputs |= index_inputs(e, &node->at);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (node->in[k] != BLOCK_NONE)
                node->inputs |= e->nodes[node->in[k]].inputs;
        for (uint32_t k = 0; k < node->n_within; k++)
            node->inputs |= index_inputs(e, &node->within[k].at);
    }
}

/* ---- aliases ---- */

static const struct expr_store *store_of(const struct expr *e, uint32_t output)
{
    for (uint32_t i = 0; i < e->n_stores; i++)
        if (e->stores[i].output == output)
            return &e->stores[i];
    return NULL;
}

static int64_t count_of(const frit_arg_sig *arg)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < arg->rank; d++)
        count *= arg->dims[d];
    return count;
}

static bool same_size(const frit_arg_sig *a, const frit_arg_sig *b)
{
    return count_of(a) == count_of(b) &&
           frit_storage_bytes(a->dtype, 1) == frit_storage_bytes(b->dtype, 1);
}

/* Whether every load of the value reads the element that the store writes.  Stores cover a dense
 * tensor, so the value's memory then begins at its first element. */
static bool read_in_place(const struct expr *e, uint32_t value, const struct expr_store *store)
{
    bool found = false;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        if (e->nodes[i].kind != EXPR_LOAD || e->nodes[i].value != value)
            continue;
        if (!space_equal(&e->nodes[i].at, &store->at))
            return false;
        found = true;
    }
    return found;
}

uint64_t expr_alias(const struct expr *e, uint32_t output)
{
    const struct block *block = e->s->block;
    const struct expr_store *store = store_of(e, output);
    const frit_arg_sig *out = expr_arg(e, block->n_inputs + output);
    uint64_t set = 0;

    if (!store)
        return 0;
    for (uint32_t i = 0; i < block->n_inputs && i < 64; i++)
        if (same_size(expr_arg(e, i), out) && read_in_place(e, block->inputs[i], store))
            set |= 1ull << i;
    return set;
}
