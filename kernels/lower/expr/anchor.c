/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/expr/anchor.h"

#include <stdlib.h>
#include <string.h>

#include "lower/rows/rows.h"

enum { NO_LINEAGE, FIRST_LINEAGE };

/* ---- views after the anchor ---- */

struct forward {
    struct space *space;
    const void *attrs;
    uint32_t rank; /* of the result */
    int64_t in[FRIT_MAX_RANK], out[FRIT_MAX_RANK];
};

/* Computes the map of a view's result from that of its operand. */
typedef void (*forward_fn)(const struct forward *f, const struct space_map *in,
                           struct space_map *out);

static void forward_number(const struct forward *f, const struct space_map *in,
                           struct space_map *out)
{
    struct space_expr number = space_linear(in, f->in);

    space_unlinear(f->space, &number, f->rank, f->out, out);
}

static void forward_permute(const struct forward *f, const struct space_map *in,
                            struct space_map *out)
{
    const frit_attrs_order *attrs = f->attrs;

    out->rank = f->rank;
    for (uint32_t d = 0; d < f->rank; d++)
        out->at[d] = in->at[attrs->order.axis[d]];
}

static void forward_transpose(const struct forward *f, const struct space_map *in,
                              struct space_map *out)
{
    const frit_attrs_swap *attrs = f->attrs;

    *out = *in;
    out->at[attrs->axis] = in->at[attrs->with];
    out->at[attrs->with] = in->at[attrs->axis];
}

static void forward_flip(const struct forward *f, const struct space_map *in, struct space_map *out)
{
    const frit_attrs_axes *attrs = f->attrs;

    *out = *in;
    for (int64_t i = 0; i < attrs->axes.count; i++) {
        int64_t axis = attrs->axes.axis[i];

        out->at[axis] = (struct space_expr){.c = f->in[axis] - 1};
        space_add(&out->at[axis], &in->at[axis], -1);
    }
}

static const struct {
    uint32_t id;
    forward_fn fn;
} forwards[] = {
    {FRIT_OP_reshape, forward_number},      {FRIT_OP_squeeze, forward_number},
    {FRIT_OP_unsqueeze, forward_number},    {FRIT_OP_permute, forward_permute},
    {FRIT_OP_transpose, forward_transpose}, {FRIT_OP_flip, forward_flip},
};

static forward_fn forward_of(uint32_t id)
{
    for (uint32_t i = 0; i < sizeof(forwards) / sizeof(forwards[0]); i++)
        if (forwards[i].id == id)
            return forwards[i].fn;
    return NULL;
}

/* ---- operands ---- */

static bool is_argument_view(const struct block *block, const struct block_input *in)
{
    while (in->kind == FRIT_OPERAND_TENSOR) {
        uint32_t maker = block->values[in->value].maker;

        if (maker == BLOCK_NONE)
            return true;
        if (!view_row_of(block->ops[maker].id))
            return false;
        in = &block->ops[maker].in[0];
    }
    return false;
}

bool anchor_reads_args(const struct block *block, uint32_t op)
{
    const struct block_op *o = &block->ops[op];

    for (uint32_t i = 0; i < o->n_in; i++)
        if (!is_argument_view(block, &o->in[i]))
            return false;
    return true;
}

static void mark_operands(const struct block_op *op, bool *needed)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            needed[op->in[i].value] = true;
}

bool anchor_is_cheap(const struct block *block, uint32_t number, uint32_t also)
{
    bool *needed = calloc(block->n_values + 1u, sizeof(*needed)), cheap = needed != NULL;

    if (needed)
        mark_operands(&block->ops[number], needed);
    for (uint32_t n = number; cheap && n-- > 0;) {
        const struct block_op *op = &block->ops[n];

        for (uint32_t i = 0; i < op->n_out; i++) {
            if (op->out[i] == BLOCK_NONE || !needed[op->out[i]])
                continue;
            cheap = cheap && (lower_is_cheap(op->id) ||
                              (also & ANCHOR_DEQUANTIZED && op->id == FRIT_OP_dequantize) ||
                              (also & ANCHOR_VIEWS && view_row_of(op->id)));
            mark_operands(op, needed);
        }
    }
    free(needed);
    return cheap;
}

/* ---- lineages ---- */

/* Whether y has the dims of x, apart from leading ones of extent 1. */
static bool same_dims(const struct block_value *x, const struct block_value *y)
{
    uint32_t more = y->rank - x->rank;

    if (x->rank > y->rank)
        return false;
    for (uint32_t d = 0; d < more; d++)
        if (y->extent[d] != 1)
            return false;
    return memcmp(x->extent, y->extent + more, x->rank * sizeof(*x->extent)) == 0;
}

/* The common lineage of an op's operands; false if they have different ones. */
static bool lineage_of(const struct anchor *anchor, const struct block_op *op, uint32_t *out)
{
    *out = NO_LINEAGE;
    for (uint32_t i = 0; i < op->n_in; i++) {
        uint32_t own =
            op->in[i].kind == FRIT_OPERAND_TENSOR ? anchor->lineage[op->in[i].value] : NO_LINEAGE;

        if (own == NO_LINEAGE)
            continue;
        if (*out != NO_LINEAGE && *out != own)
            return false;
        *out = own;
    }
    return true;
}

/* Accepts an elementwise op if its operands with a lineage do not broadcast. */
static bool add_map(const struct anchor *anchor, const struct block *block,
                    const struct block_op *op, uint32_t lineage)
{
    const struct block_value *y = &block->values[op->out[0]];

    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR &&
            anchor->lineage[op->in[i].value] != NO_LINEAGE &&
            !same_dims(&block->values[op->in[i].value], y))
            return false;
    anchor->lineage[op->out[0]] = lineage;
    return true;
}

/* Matches op number n_ops. */
static bool add_op(struct anchor *anchor, const struct block *block, anchor_fn takes,
                   anchor_fn inner)
{
    uint32_t number = anchor->n_ops;
    const struct block_op *op = &block->ops[number];
    uint32_t lineage;

    if (!lineage_of(anchor, op, &lineage))
        return false;
    if (expr_supports(block, number)) {
        if (lineage == NO_LINEAGE)
            return true;
        if (lower_row_of(op->id))
            return add_map(anchor, block, op, lineage);
        if (forward_of(op->id))
            anchor->lineage[op->out[0]] = FIRST_LINEAGE + ++anchor->n_lineages;
        return forward_of(op->id) != NULL;
    }
    if (anchor->found || lineage != NO_LINEAGE)
        return false;
    if (!takes(block, number))
        return inner && inner(block, number);
    anchor->found = true;
    anchor->op = number;
    for (uint32_t i = 0; i < op->n_out; i++)
        if (op->out[i] != BLOCK_NONE)
            anchor->lineage[op->out[i]] = FIRST_LINEAGE;
    return true;
}

bool anchor_init(struct anchor *anchor, const struct block *block, anchor_fn takes)
{
    return anchor_init_inner(anchor, block, takes, NULL);
}

bool anchor_init_inner(struct anchor *anchor, const struct block *block, anchor_fn takes,
                       anchor_fn inner)
{
    *anchor = (struct anchor){0};
    anchor->lineage = calloc(block->n_values + 1u, sizeof(*anchor->lineage));
    if (!anchor->lineage)
        return false;
    while (anchor->n_ops < block->n_ops && add_op(anchor, block, takes, inner))
        anchor->n_ops++;
    return true;
}

void anchor_fini(struct anchor *anchor)
{
    free(anchor->lineage);
    *anchor = (struct anchor){0};
}

/* ---- matching ---- */

bool anchor_match(struct matcher *m, const struct block *block, anchor_fn takes)
{
    return anchor_match_inner(m, block, takes, NULL);
}

bool anchor_match_inner(struct matcher *m, const struct block *block, anchor_fn takes,
                        anchor_fn inner)
{
    struct anchor *anchor = m->state;

    anchor->lineage = m->values;
    if (!add_op(anchor, block, takes, inner))
        return false;
    anchor->n_ops++;
    return true;
}

/* A result of the anchor that is used. */
static const struct block_value *result_of(const struct anchor *anchor, const struct block *block)
{
    const struct block_op *op = &block->ops[anchor->op];
    uint32_t i = 0;

    while (i < op->n_out && op->out[i] == BLOCK_NONE)
        i++;
    return i < op->n_out ? &block->values[op->out[i]] : NULL;
}

/* Outputs that do not depend on the anchor are stored over its result's elements, so they need its
 * dims; at least one output must depend on it. */
bool anchor_fits(const struct matcher *m, const struct block *block)
{
    const struct anchor *anchor = m->state;
    const struct block_value *root = anchor->found ? result_of(anchor, block) : NULL;
    uint32_t n_dependent = 0;

    if (!root || view_row_of(block->ops[m->n_ops - 1].id))
        return false;
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        uint32_t v = m->outputs[i];

        if (anchor->lineage[v] != NO_LINEAGE)
            n_dependent++;
        else if (block->values[v].rank != root->rank || !same_dims(root, &block->values[v]))
            return false;
    }
    return n_dependent > 0;
}

/* ---- planning ---- */

/* Computes the map of an op's result from that of its operand `value`. */
static void forward(struct expr *e, const struct block_op *op, uint32_t value,
                    const struct space_map *in, struct space_map *out)
{
    struct forward f = {
        .space = &e->space, .attrs = op->attrs, .rank = e->s->block->values[op->out[0]].rank};
    forward_fn fn = forward_of(op->id);

    if (fn) {
        expr_dims(e, value, f.in);
        expr_dims(e, op->out[0], f.out);
        fn(&f, in, out);
        return;
    }
    *out = (struct space_map){.rank = f.rank};
    memcpy(out->at + f.rank - in->rank, in->at, in->rank * sizeof(*in->at));
}

/* Computes the maps of all values that depend on the anchor. */
static void find_maps(const struct anchor *anchor, struct expr *e, const struct space_map *root,
                      struct space_map *maps)
{
    const struct block *block = e->s->block;

    for (uint32_t v = 0; v < block->n_values; v++)
        maps[v] = *root;
    for (uint32_t n = anchor->op + 1; n < block->n_ops; n++) {
        const struct block_op *op = &block->ops[n];

        for (uint32_t i = 0; i < op->n_in; i++)
            if (op->in[i].kind == FRIT_OPERAND_TENSOR &&
                anchor->lineage[op->in[i].value] != NO_LINEAGE)
                forward(e, op, op->in[i].value, &maps[op->in[i].value], &maps[op->out[0]]);
    }
}

static bool same_map(const struct space_map *a, const struct space_map *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, a->rank * sizeof(*a->at)) == 0;
}

void anchor_stores(const struct anchor *anchor, struct expr *e, const struct space_map *root)
{
    const struct block *block = e->s->block;
    struct space_map *maps = arena_array(&e->arena, block->n_values + 1u, sizeof(*maps));

    if (!maps) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return;
    }
    find_maps(anchor, e, root, maps);
    for (uint32_t i = 0; i < block->n_outputs; i++)
        expr_store(e, block->outputs[i], &maps[block->outputs[i]]);
    for (uint32_t i = 0; i < e->n_nodes && !e->status; i++)
        if (e->nodes[i].kind == EXPR_EXTERNAL && !same_map(e->nodes[i].map, root))
            expr_fail(e, FRIT_UNSUPPORTED);
}

uint32_t anchor_result(const struct anchor *anchor, const struct expr *e, uint32_t out)
{
    uint32_t value = e->s->block->ops[anchor->op].out[out];

    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_EXTERNAL && e->nodes[i].value == value)
            return i;
    return BLOCK_NONE;
}
