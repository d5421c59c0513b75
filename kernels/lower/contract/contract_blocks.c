/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights are unpacked in registers, on lanes that are parts of vectors.  A lane loads a
 * byte and multiplies each of its elements, the pieces of the byte.  Bytes that lie next to each
 * other are of neighbouring lanes: along k, or along the weights' other dims, where a lane has as
 * many places as a byte has pieces.
 *
 * k is [blocks][bytes or elements of a block][pieces of a byte].  The products of a block are added
 * up without its scale, by which their sum is multiplied: the same as the reference but for scales
 * that are infinite, and for products that leave the range without their scale. */
#include "lower/contract/contract_blocks.h"

#include "lower/rows/packed.h"
#include "lower/rows/rows.h"

enum {
    MAX_LANES_ALONG_K = 16,
    MAX_ACROSS = 8, /* rows of weights at a time, with lanes along k; half as many with several
                       places down */
    MAX_DOWN = 4,   /* likewise of the other side */
    FEW_SUMS = 12,  /* of a lane across, which fit 16 registers with their operands */
    UNROLLED = 4,   /* steps of a block */
    LONG_BLOCK = 4, /* blocks of a scale at most, in blocks of a sum */
    /* Rows of the other side: with more, unpacking weights to memory first takes less time, as
     * measured on 2 processors with vectors of 16 lanes, 1024 x 1024 q4. */
    MOST_ROWS = 192,
    MOST_ROWS_ALONG = 128 /* with lanes along k */
};

bool blocks_is_dequantized(const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];

    for (uint32_t i = 0; i < 2; i++) {
        const struct block_input *in = &op->in[i];

        while (in->kind == FRIT_OPERAND_TENSOR && block->values[in->value].maker != BLOCK_NONE) {
            const struct block_op *maker = &block->ops[block->values[in->value].maker];

            if (maker->id == FRIT_OP_dequantize)
                return true;
            in = &maker->in[0];
        }
    }
    return false;
}

/* ---- what fits ---- */

static bool has_leaves(const struct space_expr *at)
{
    for (uint32_t i = 0; i < SPACE_LEAVES; i++)
        if (at->k[SPACE_DIMS + i])
            return true;
    return false;
}

/* The dim whose coordinate is the number of the element in its byte; false: there is none such. */
static bool find_piece(const struct contract *c, const struct expr_node *node,
                       struct contract_blocks *out)
{
    const uint32_t width = 8 / out->pieces;

    out->piece_dim = SPACE_DIMS;
    if (out->pieces == 1)
        return true;
    if (has_leaves(&node->at) || node->at.c)
        return false;
    for (uint32_t d = 0; d < c->e.space.n_dims; d++) {
        if (!node->at.k[d])
            continue;
        if (out->piece_dim != SPACE_DIMS || node->at.k[d] != width ||
            c->e.space.extent[d] != out->pieces)
            return false;
        out->piece_dim = d;
    }
    return out->piece_dim != SPACE_DIMS;
}

/* The dims of k: of the blocks, if several have scales of their own, and within a block. */
static bool find_k(const struct contract *c, const struct space_expr *scale,
                   struct contract_blocks *out)
{
    const struct space *space = &c->e.space;
    uint32_t dims[2] = {SPACE_DIMS, SPACE_DIMS}, n = 0;

    for (uint32_t d = 0; d < space->n_dims; d++) {
        if (space->tag[d] != CONTRACT_K || d == out->piece_dim)
            continue;
        if (n == 2)
            return false;
        dims[n++] = d;
    }
    if (n == 0 || scale->k[dims[n - 1]])
        return false;
    if (out->piece_dim != SPACE_DIMS && space->tag[out->piece_dim] == CONTRACT_K &&
        scale->k[out->piece_dim])
        return false;
    out->block_dim = n == 2 ? dims[0] : SPACE_DIMS;
    out->inner_dim = dims[n - 1];
    return n == 1 || space->extent[out->inner_dim] <= (int64_t)LONG_BLOCK * SUM_BLOCK_CONTRACT;
}

/* Lanes along k, which its bytes in a block fill; 1: they do not. */
static uint32_t lanes_along_k(const struct contract *c, const struct contract_blocks *blocks)
{
    uint32_t lanes = MAX_LANES_ALONG_K;

    while (c->e.space.extent[blocks->inner_dim] % lanes)
        lanes /= 2;
    return lanes;
}

static bool fits(const struct contract *c, const struct contract_side *side,
                 struct contract_blocks *out)
{
    const struct expr_node *nodes = c->e.nodes, *node = &nodes[side->node], *byte, *scale;
    const struct block *block = c->e.s->block;
    const struct space *space = &c->e.space;
    uint32_t last = SPACE_DIMS;

    if (node->kind != EXPR_OP || node->n_in < 2 ||
        block->ops[block->values[node->value].maker].id != FRIT_OP_dequantize)
        return false;
    byte = &nodes[node->in[0]];
    scale = &nodes[node->in[1]];
    *out = (struct contract_blocks){.used = true, .node = side->node};
    out->pieces = 8 / packed_width(block->values[byte->value].dtype);
    if (has_leaves(&byte->at) || has_leaves(&scale->at) || !find_piece(c, node, out) ||
        !find_k(c, &scale->at, out))
        return false;
    for (uint32_t d = 0; d < space->n_dims; d++)
        if (space->tag[d] == side->tag && d != out->piece_dim)
            last = d;
    if (out->piece_dim != SPACE_DIMS && space->tag[out->piece_dim] != CONTRACT_K &&
        space->tag[out->piece_dim] != side->tag)
        return false;
    out->along_k = byte->at.k[out->inner_dim] == 1;
    if (out->piece_dim != SPACE_DIMS && out->along_k != (space->tag[out->piece_dim] == CONTRACT_K))
        return false;
    if (out->along_k)
        return lanes_along_k(c, out) > 1;
    return last != SPACE_DIMS && byte->at.k[last] == 1;
}

/* ---- how lanes lie ---- */

/* The fewest rounds, of places as equal as can be. */
static uint32_t even_places(uint32_t most, int64_t n)
{
    return (uint32_t)tiles_of(n, (uint32_t)tiles_of(n, most));
}

static void choose_along(struct contract *c)
{
    c->form = CONTRACT_DOTS;
    c->lanes = lanes_along_k(c, &c->blocks);
    c->n_down = even_places(MAX_DOWN, contract_points(&c->e.space, c->down->tag));
    c->n_across = even_places(c->n_down > 1 ? MAX_ACROSS / 2 : MAX_ACROSS,
                              contract_points(&c->e.space, c->across->tag));
}

static void choose_across(struct contract *c)
{
    const struct kir_target *target = c->e.s->target;
    int64_t line = c->e.space.extent[contract_last_dim(&c->e.space, c->across->tag)], others;
    uint32_t sums = target->registers > 16 ? CONTRACT_SUMS : FEW_SUMS;
    uint32_t most = sums / c->blocks.pieces;

    contract_cut_line(c, line);
    c->form = CONTRACT_LINES;
    c->n_across = c->blocks.pieces;
    c->n_down = even_places(most < 8 ? most : 8, contract_points(&c->e.space, c->down->tag));
    c->lanes = sched_lanes(target->lanes, line);
    others = contract_points(&c->e.space, CONTRACT_BOTH) *
             tiles_of(contract_points(&c->e.space, c->down->tag), c->n_down);
    while (c->lanes > 64 && tiles_of(line, c->lanes) * others < 4 * (int64_t)target->units)
        c->lanes /= 2;
}

/* On lanes that are threads weights are unpacked for few places down; more share them in tiles. */
static bool fits_slices(const struct contract *c)
{
    const struct space *space = &c->e.space;

    return contract_points(space, c->across->tag) >= contract_points(space, c->down->tag) &&
           contract_fits_slices(c);
}

/* On lanes that are parts of vectors weights are unpacked again for every few rows. */
static bool fits_vectors(const struct contract *c)
{
    return contract_points(&c->e.space, c->down->tag) <=
           (c->blocks.along_k ? MOST_ROWS_ALONG : MOST_ROWS);
}

bool blocks_can_be(const struct kir_target *target)
{
    return target && (!target->lanes_interleaved || !target->stages_tiles);
}

bool blocks_choose(struct contract *c)
{
    const enum kir_type type = contract_type(c);

    if (!c->n_k || c->pad.used || !blocks_can_be(c->e.s->target) ||
        (type != KIR_F32 && type != KIR_F64))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        c->across = i ? &c->a : &c->b;
        c->down = i ? &c->b : &c->a;
        if (fits(c, c->across, &c->blocks))
            break;
        c->blocks = (struct contract_blocks){0};
    }
    if (c->blocks.used && !(c->e.s->target->lanes_interleaved ? fits_vectors(c) : fits_slices(c)))
        c->blocks = (struct contract_blocks){0};
    if (!c->blocks.used)
        return false;
    if (c->blocks.piece_dim != SPACE_DIMS)
        c->e.space.tag[c->blocks.piece_dim] = CONTRACT_PIECE;
    c->e.const_factor = c->blocks.pieces; /* steps of lanes, which memory is read with */
    if (!c->e.s->target->lanes_interleaved)
        contract_choose_slices(c);
    else if (c->blocks.along_k)
        choose_along(c);
    else
        choose_across(c);
    return true;
}

/* ---- operands ---- */

void blocks_set_place(const struct contract_emitter *w, uint32_t j)
{
    const struct contract_blocks *blocks = &w->c->blocks;

    if (blocks->along_k)
        delinearize_set(&w->side[ACROSS]->points, w->e, w->place[ACROSS][j]);
    else if (blocks->piece_dim != SPACE_DIMS)
        expr_set(w->e, blocks->piece_dim, index_const(w, j));
}

/* A node of the weights at place number `j` across. */
static uint32_t weight(const struct contract_emitter *w, uint32_t node, uint32_t j)
{
    uint32_t mark = expr_mark(w->e), value;

    expr_mask(w->e, w->mask);
    blocks_set_place(w, j);
    value = expr_value(w->e, node);
    expr_release(w->e, mark);
    return value;
}

static uint32_t as_type(const struct contract_emitter *w, enum kir_type type, uint32_t value)
{
    if (kir_type_at(w->m, value) == type)
        return value;
    return kir_unary(w->m, type == KIR_F64 ? KIR_f64 : KIR_f32, value);
}

static uint32_t packed_dtype(const struct contract_emitter *w)
{
    const struct expr_node *nodes = w->e->nodes, *node = &nodes[w->c->blocks.node];

    return w->e->s->block->values[nodes[node->in[0]].value].dtype;
}

/* Whether a piece is decoded times 2^packed_top: one operation less. */
static bool is_top(const struct contract_emitter *w, uint32_t piece)
{
    return piece + 1 == w->c->blocks.pieces && frit_dtype_info_of(packed_dtype(w)).exponent == 0;
}

/* What undoes that. */
static uint32_t undo_top(const struct contract_emitter *w, uint32_t value)
{
    uint32_t top = packed_top(packed_dtype(w));

    return top ? op2(w, KIR_mul, value, kir_const_f(w->m, w->type, 1. / (1 << top))) : value;
}

/* The byte at place number `j` across; of integers extended by its sign. */
static uint32_t byte_at(const struct contract_emitter *w, uint32_t j)
{
    uint32_t byte = weight(w, w->e->nodes[w->c->blocks.node].in[0], j);

    if (frit_dtype_info_of(packed_dtype(w)).exponent)
        return byte;
    return kir_emit_imm(w->m, KIR_wrap, 8, byte, KIR_NONE, KIR_NONE);
}

static uint32_t decode(const struct contract_emitter *w, uint32_t byte, uint32_t piece)
{
    uint32_t dtype = packed_dtype(w), at = KIR_NONE;

    if (is_top(w, piece))
        return as_type(w, w->type, packed_decode_top(w->m, dtype, byte));
    if (w->c->blocks.pieces > 1)
        at = kir_const_i(w->m, KIR_I32, (int64_t)piece * packed_width(dtype));
    return as_type(w, w->type, packed_decode(w->m, w->type == KIR_F64, dtype, byte, at));
}

static uint32_t rounded_scale(const struct contract_emitter *w, uint32_t node, int64_t type,
                              uint32_t j)
{
    uint32_t dtype = w->e->s->block->values[w->e->nodes[node].value].dtype;

    return packed_scale(w->m, dtype, type, weight(w, node, j));
}

/* The scale of the block that is set, at place number `j` across. */
static uint32_t scale_at(const struct contract_emitter *w, uint32_t j)
{
    const struct expr_node *node = &w->e->nodes[w->c->blocks.node];
    const struct block *block = w->e->s->block;
    const frit_attrs_dequantize *attrs = block->ops[block->values[node->value].maker].attrs;
    enum kir_type wide = w->e->s->target->f64 ? KIR_F64 : KIR_F32;
    uint32_t scale = rounded_scale(w, node->in[1], attrs->scale, j), global;

    if (node->n_in > 2) { /* their product may leave the range on the way */
        global = as_type(w, wide, rounded_scale(w, node->in[2], attrs->global, j));
        scale = op2(w, KIR_mul, as_type(w, wide, scale), global);
    }
    return as_type(w, w->type, scale);
}

/* ---- sums ---- */

/* Whether scaling the elements of weights takes fewer operations than scaling sums of blocks. */
static bool scales_elements(const struct contract_emitter *w)
{
    const struct contract_blocks *blocks = &w->c->blocks;

    return blocks->along_k && blocks->block_dim != SPACE_DIMS &&
           w->n_places[DOWN] > blocks->pieces * w->e->space.extent[blocks->inner_dim] / w->c->lanes;
}

static void add_along_k(const struct contract_emitter *w, uint32_t *sums)
{
    const struct contract_blocks *blocks = &w->c->blocks;
    uint32_t n = w->n_places[ACROSS], bytes[CONTRACT_SUMS], values[CONTRACT_SUMS];
    uint32_t scales[CONTRACT_SUMS];

    for (uint32_t j = 0; j < n; j++) {
        bytes[j] = byte_at(w, j);
        if (scales_elements(w))
            scales[j] = scale_at(w, j);
    }
    for (uint32_t p = 0; p < blocks->pieces; p++) {
        uint32_t mark = expr_mark(w->e);

        if (blocks->piece_dim != SPACE_DIMS)
            expr_set(w->e, blocks->piece_dim, index_const(w, p));
        for (uint32_t j = 0; j < n; j++) {
            values[j] = decode(w, bytes[j], p);
            if (scales_elements(w))
                values[j] =
                    op2(w, KIR_mul, values[j], is_top(w, p) ? undo_top(w, scales[j]) : scales[j]);
        }
        for (uint32_t i = 0; i < w->n_places[DOWN]; i++) {
            uint32_t down = work_element(w, DOWN, w->place[DOWN][i], KIR_NONE);

            if (is_top(w, p) && !scales_elements(w))
                down = undo_top(w, down);
            for (uint32_t j = 0; j < n; j++)
                sums[i * n + j] = add_product(w, sums[i * n + j], down, values[j]);
        }
        expr_release(w->e, mark);
    }
}

static void add_across(const struct contract_emitter *w, uint32_t *sums)
{
    const struct contract_blocks *blocks = &w->c->blocks;
    uint32_t n = blocks->pieces, values[CONTRACT_SUMS];
    uint32_t byte = byte_at(w, 0);

    for (uint32_t p = 0; p < n; p++)
        values[p] = decode(w, byte, p);
    for (uint32_t i = 0; i < w->n_places[DOWN]; i++) {
        uint32_t down = work_element(w, DOWN, w->place[DOWN][i], KIR_NONE);

        for (uint32_t p = 0; p < n; p++)
            sums[i * n + p] = add_product(w, sums[i * n + p], down, values[p]);
    }
}

/* At the place in a block that is `k`, or where lanes lie along it the lanes' from there on. */
static void add_at(const struct contract_emitter *w, uint32_t k, uint32_t *sums)
{
    const struct contract_blocks *blocks = &w->c->blocks;
    uint32_t mark = expr_mark(w->e);

    if (blocks->along_k)
        k = op2(w, KIR_add, k, w->lane);
    expr_set(w->e, blocks->inner_dim, k);
    if (blocks->along_k)
        add_along_k(w, sums);
    else
        add_across(w, sums);
    expr_release(w->e, mark);
}

static uint32_t step_of(const struct contract_emitter *w)
{
    return w->c->blocks.along_k ? w->c->lanes : 1;
}

/* Places in a block from begin to end. */
static void sum_inner(const struct contract_emitter *w, uint32_t begin, uint32_t end,
                      uint32_t *sums)
{
    uint32_t next[CONTRACT_SUMS], k = work_loop(w, begin, end, step_of(w), sums);

    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    add_at(w, k, next);
    kir_next(w->m, next, w->n);
}

static void sum_block(const struct contract_emitter *w, uint32_t *sums)
{
    const struct delinearizer *k = &w->c->k;
    int64_t extent = w->e->space.extent[w->c->blocks.inner_dim];

    if (extent / step_of(w) > UNROLLED) {
        sum_inner(w, index_const(w, 0), k->extent[k->n - 1], sums);
        return;
    }
    for (int64_t i = 0; i < extent; i += step_of(w))
        add_at(w, index_const(w, i), sums);
}

static void add_scaled(const struct contract_emitter *w, const uint32_t *parts, uint32_t *sums)
{
    uint32_t n = w->n_places[ACROSS];

    for (uint32_t j = 0; j < n; j++) {
        uint32_t scale = scale_at(w, j);

        if (!w->c->blocks.along_k && is_top(w, j))
            scale = undo_top(w, scale);
        for (uint32_t i = j; i < w->n; i += n)
            sums[i] = add_product(w, sums[i], parts[i], scale);
    }
}

void blocks_range(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t *sums)
{
    const struct contract_blocks *blocks = &w->c->blocks;
    uint32_t mark = expr_mark(w->e), next[CONTRACT_SUMS], parts[CONTRACT_SUMS], counter;

    if (blocks->block_dim == SPACE_DIMS) {
        sum_inner(w, begin, end, sums);
        return;
    }
    counter = work_loop(w, begin, end, 1, sums);
    if (!blocks->along_k && w->n_places[DOWN] > 1) /* all lanes read lines while they are near */
        kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    for (uint32_t i = 0; i < w->n; i++) {
        next[i] = sums[i];
        parts[i] = zero(w);
    }
    expr_set(w->e, blocks->block_dim, counter);
    expr_hoist(w->e);
    if (scales_elements(w)) {
        sum_block(w, next);
    } else {
        sum_block(w, parts);
        add_scaled(w, parts, next);
    }
    expr_release(w->e, mark);
    kir_next(w->m, next, w->n);
}

/* How many of what blocks_range counts have as many products of a lane as a block of a sum. */
static int64_t rounds_of(const struct contract_emitter *w)
{
    const struct contract_blocks *blocks = &w->c->blocks;
    int64_t each = blocks->along_k ? blocks->pieces : 1, rounds;

    if (blocks->block_dim == SPACE_DIMS)
        return (int64_t)SUM_BLOCK_CONTRACT * step_of(w) / each;
    each *= w->e->space.extent[blocks->inner_dim] / step_of(w);
    rounds = SUM_BLOCK_CONTRACT / each;
    return rounds > 1 ? rounds : 1;
}

void blocks_sums(const struct contract_emitter *w, uint32_t *sums)
{
    const struct contract_blocks *blocks = &w->c->blocks;
    bool has_blocks = blocks->block_dim != SPACE_DIMS;
    int64_t count = w->e->space.extent[has_blocks ? blocks->block_dim : blocks->inner_dim];
    uint32_t parts[CONTRACT_SUMS];

    work_range(w, index_const(w, 0), sched_add_index(w->e->s, count), count > rounds_of(w),
               rounds_of(w), sums);
    if (has_blocks)
        return;
    for (uint32_t i = 0; i < w->n; i++) {
        parts[i] = sums[i];
        sums[i] = zero(w);
    }
    add_scaled(w, parts, sums);
}
