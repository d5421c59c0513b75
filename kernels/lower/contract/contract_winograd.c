/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolution F(2x2, 3x3), for windows of 3 x 3 at each place: Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2016.  A tile of 2 x 2 results is A^T M A, where
 * the 4 x 4 matrix M is a sum over channels of elementwise products of G g G^T, of the weights, and
 * B^T d B, of the 4 x 4 elements that the tile's windows cover: 16 products in place of 36.  These
 * are 16 products of matrices, of which lanes lie along tiles.
 *
 * The phases, and what they write:
 * - weights, once for the operand: [16][tile of outputs][channel][output of the tile];
 * - lines of patches, which are transformed: [channel][element of the line][line][tile], so that
 *   lanes of tiles that follow each other read neighbours; in one image a patch's third line is the
 *   first one of the tile below, and two lines of one more row of tiles do for four;
 * - patches, as a packed side: [16][panel of tiles][channel][tile of the panel];
 * - products: [16][output][tile];
 * - y, with what follows.
 *
 * Transforms add and subtract elements that no window has together, so that an infinity or a NaN,
 * or numbers near the largest one, spoil results that do not depend on them.  What is not finite is
 * therefore summed again, window by window. */
#include "lower/contract/contract_winograd.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_pack.h"
#include "lower/contract/contract_pad.h"

enum {
    GROUP_TILES = 64, /* of a group of products, at most */
    GROUP_COST = 8,   /* of beginning such a group, in tiles */
    FEW_OUTPUTS = 6,  /* of a group: sums fit 16 registers with their operands */
    MANY_OUTPUTS = 8, /* likewise for more */
    LEAST_CHANNELS = 16,
    PATCH_COST = 310,     /* of making the patch of a tile and a channel, in products, as
                             measured on one processor with vectors of 8 */
    RESULT_COST = 200,    /* likewise the results of a tile and an output */
    WEIGHT_COST = 10,     /* with vectors of 16, of reading a weight, likewise */
    FAR = 1 << 22,        /* elements between phases that stay in the last cache, at most; */
    FAR_COST = 5,         /* of making others, in halves of those costs, likewise */
    PLANNED_MAX = 1 << 25 /* elements of patches, or of products, at most */
};

/* ---- planning ---- */

struct conv_shape {
    int64_t x[FRIT_MAX_RANK], w[FRIT_MAX_RANK], y[FRIT_MAX_RANK]; /* dims */
    int64_t tiles[2];                                             /* along each dim of a matrix */
    int64_t n_tiles;
};

/* Few registers hold the sums of one panel; with more a group has several panels, which share the
 * weights. */
static uint32_t group_tiles(const struct contract *c, int64_t n)
{
    uint32_t best = GROUP_TILES;

    if (!winograd_is_wide(c))
        return WINOGRAD_WIDTH;
    for (uint32_t lanes = GROUP_TILES; lanes >= WINOGRAD_WIDTH; lanes /= 2)
        if (tiles_of(n, lanes) * (lanes + GROUP_COST) < tiles_of(n, best) * (best + GROUP_COST))
            best = lanes;
    return best;
}

static bool is_plain(const struct block *block, const struct block_op *op)
{
    const frit_attrs_conv *attrs = op->attrs;

    for (uint32_t d = 0; d < 2; d++)
        if (attrs->stride[d] > 1 || attrs->dilation[d] > 1)
            return false;
    for (uint32_t i = 0; i < 2; i++)
        if (block->values[op->in[i].value].dtype != FRIT_F32 ||
            block->values[op->in[i].value].rank != 4)
            return false;
    return attrs->groups <= 1 && block->values[op->out[0]].dtype == FRIT_F32 &&
           block->values[op->in[1].value].maker == BLOCK_NONE;
}

/* Whether that is predicted to cost less than the products of a convolution, each in the products
 * of one tile and a channel. */
static bool is_cheaper(const struct contract *c, const struct conv_shape *s)
{
    const int n_more = WINOGRAD_MATRICES - WINOGRAD_WINDOW * WINOGRAD_WINDOW; /* weights */
    uint32_t lanes = group_tiles(c, s->n_tiles);
    int64_t results = s->y[0] * s->y[2] * s->y[3], tiles = tiles_of(s->n_tiles, lanes) * lanes;
    double direct = (double)(WINOGRAD_WINDOW * WINOGRAD_WINDOW * results) / (double)s->n_tiles;
    double products = WINOGRAD_MATRICES * (double)tiles / (double)s->n_tiles;
    double others = (double)PATCH_COST / (double)s->w[0] + (double)RESULT_COST / (double)s->w[1];

    if (WINOGRAD_MATRICES * s->n_tiles * (s->w[0] + s->w[1]) > FAR)
        others *= FAR_COST / 2.0;
    if (winograd_is_wide(c)) {
        others += WEIGHT_COST * (double)n_more / (double)s->n_tiles;
        others *= sched_tuning(c->e.s).winograd_wide;
    }
    return products + others < direct;
}

static bool shape_init(struct conv_shape *s, const struct contract *c, const struct block_op *op)
{
    const struct kir_target *target = c->e.s->target;

    if (!target->winograd || !contract_has_vectors(c) || !target->keeps_derived || !target->fma ||
        !is_plain(c->e.s->block, op))
        return false;
    expr_dims(&c->e, op->in[0].value, s->x);
    expr_dims(&c->e, op->in[1].value, s->w);
    expr_dims(&c->e, op->out[0], s->y);
    for (uint32_t d = 0; d < 2; d++)
        s->tiles[d] = tiles_of(s->y[d + 2], WINOGRAD_RESULT);
    s->n_tiles = s->y[0] * s->tiles[0] * s->tiles[1];
    return s->w[2] == WINOGRAD_WINDOW && s->w[3] == WINOGRAD_WINDOW && s->w[1] == s->x[1] &&
           s->w[0] == s->y[1] && s->w[0] >= LEAST_CHANNELS && s->w[1] >= LEAST_CHANNELS &&
           s->n_tiles >= WINOGRAD_WIDTH &&
           (s->n_tiles + GROUP_TILES) * (s->w[0] > s->w[1] ? s->w[0] : s->w[1]) <
               PLANNED_MAX / WINOGRAD_MATRICES &&
           is_cheaper(c, s);
}

/* Adds `step` * a new dim to the coordinate of x along dim number `of`. */
static void add_dim(struct expr *e, struct space_map *x, uint32_t of, int64_t extent, int64_t step,
                    uint32_t tag)
{
    struct space_expr place = space_dim(&e->space, extent, tag);

    space_add(&x->at[of], &place, step);
}

/* Lines of patches are made of elements of x, with zeros around it. */
static void plan_lines(struct contract *c, const struct conv_shape *s, const struct block_op *op)
{
    const frit_attrs_conv *attrs = op->attrs;
    const bool is_one = s->x[0] == 1;
    const int64_t lines = is_one ? WINOGRAD_RESULT : WINOGRAD_PATCH, rows = s->tiles[0] + is_one;
    struct expr *e = &c->pad.e;
    struct space_map x = {.rank = 4};

    expr_init(e, c->e.s);
    c->pad.used = true;
    e->const_factor = WINOGRAD_RESULT;
    add_dim(e, &x, 1, s->x[1], 1, WINOGRAD_CHANNEL);
    add_dim(e, &x, 3, WINOGRAD_PATCH, 1, WINOGRAD_COLUMN);
    add_dim(e, &x, 2, lines, 1, WINOGRAD_LINE);
    add_dim(e, &x, 0, s->x[0], 1, WINOGRAD_LINE);
    add_dim(e, &x, 2, rows, WINOGRAD_RESULT, WINOGRAD_LINE);
    add_dim(e, &x, 3, s->tiles[1], WINOGRAD_RESULT, WINOGRAD_TILE);
    for (uint32_t d = 0; d < 2; d++)
        x.at[d + 2].c -= attrs->padding[d];
    c->pad.node = expr_guard(e, op->in[0].value, &x, (struct expr_fill){.scalar = BLOCK_NONE});
    c->winograd.n_lines = (uint32_t)lines;
    c->winograd.tiles = s->tiles[1];
    c->winograd.plane = s->x[0] * rows * s->tiles[1];
    c->pad.matrix = WINOGRAD_PATCH * lines * c->winograd.plane;
    c->pad.count = s->x[1] * c->pad.matrix;
}

bool winograd_plan(struct contract *c, const struct block_op *op)
{
    struct space *space = &c->e.space;
    struct space_map of_w = {.rank = 4};
    struct space_expr channel;
    struct conv_shape s;

    if (!shape_init(&s, c, op))
        return false;
    c->winograd.used = true;
    for (uint32_t tag = CONTRACT_K; tag < CONTRACT_TAGS; tag++)
        c->e.separate_tags |= 1u << tag;
    space_dim(space, WINOGRAD_MATRICES, CONTRACT_BOTH);
    c->root.rank = 4;
    c->root.at[1] = of_w.at[0] = space_dim(space, s.w[0], CONTRACT_M);
    space_dim(space, s.n_tiles, CONTRACT_N);
    c->n_k = s.w[1];
    channel = of_w.at[1] = space_dim(space, s.w[1], CONTRACT_K);
    for (uint32_t d = 0; d < 2; d++)
        of_w.at[d + 2] = space_dim(space, WINOGRAD_WINDOW, CONTRACT_WINDOW + d);
    c->root.at[0] = space_dim(space, s.y[0], CONTRACT_RESULT);
    for (uint32_t d = 0; d < 2; d++)
        c->root.at[d + 2] = space_dim(space, WINOGRAD_RESULT * s.tiles[d], CONTRACT_RESULT + 1 + d);
    c->winograd.rows = s.y[2];
    c->winograd.columns = s.y[3];
    c->pack.is_numbered = true;
    c->pack.number = expr_coord(&c->e, &channel);
    c->a.node = expr_node(&c->e, op->in[1].value, &of_w);
    plan_lines(c, &s, op);
    return true;
}

/* ---- choices ---- */

/* Of a group.  Sums of one vector each are more, so that products do not wait for each other. */
static uint32_t most_outputs(const struct contract *c, uint32_t lanes)
{
    if (!winograd_is_wide(c))
        return FEW_OUTPUTS;
    return lanes > WINOGRAD_WIDTH ? MANY_OUTPUTS : CONTRACT_SUMS;
}

void winograd_choose(struct contract *c)
{
    int64_t n = contract_points(&c->e.space, CONTRACT_M);
    uint32_t lanes = group_tiles(c, contract_points(&c->e.space, CONTRACT_N));
    uint32_t most = most_outputs(c, lanes), best = most;

    for (uint32_t each = most; each > most / 2; each--)
        if (tiles_of(n, each) * (each + 1) < tiles_of(n, best) * (best + 1))
            best = each;
    c->form = CONTRACT_LINES;
    c->across = &c->b;
    c->down = &c->a;
    c->n_down = best;
    c->n_across = 1;
    c->lanes = lanes;
    c->pack.used = true;
    c->pack.width = WINOGRAD_WIDTH;
}

/* ---- memory ---- */

int64_t winograd_panel_tiles(const struct contract *c)
{
    return tiles_of(c->across->points.count, c->lanes) * c->lanes;
}

bool winograd_is_wide(const struct contract *c)
{
    return c->e.s->target->registers > 16;
}

bool winograd_repeats(const struct contract *c)
{
    return c->across->points.count % WINOGRAD_WIDTH != 0;
}

int64_t winograd_output_tiles(const struct contract *c)
{
    return tiles_of(c->down->points.count, c->n_down);
}

int64_t winograd_weights_size(const struct contract *c)
{
    return winograd_output_tiles(c) * c->n_down * c->n_k;
}

/* Identifies the order of transformed weights among all those of operands with equal dims and
 * strides. */
static uint64_t tag_of(const struct contract *c, const struct expr_node *operand)
{
    const struct space *space = &c->e.space;
    int64_t numbers[3 + 3 * SPACE_DIMS] = {WINOGRAD_MATRICES, c->n_down, operand->at.c};
    uint32_t n = 3;

    for (uint32_t d = 0; d < space->n_dims; d++) {
        if (!operand->at.k[d])
            continue;
        numbers[n++] = space->tag[d];
        numbers[n++] = space->extent[d];
        numbers[n++] = operand->at.k[d];
    }
    return XXH3_64bits(numbers, n * sizeof(*numbers));
}

void winograd_reserve(struct contract *c)
{
    const struct expr_node *operand = &c->e.nodes[c->a.node];

    c->winograd.weights = kir_arg(c->e.s->module, contract_dtype(c), KIR_READ | KIR_WRITE);
    c->e.s->numbers->derived = (struct sched_derived){
        .bytes =
            frit_storage_bytes(contract_dtype(c), WINOGRAD_MATRICES * winograd_weights_size(c)),
        .tag = tag_of(c, operand),
        .input = c->e.s->block->values[operand->value].input,
        .phase = 0,
    };
    pad_reserve(c);
    c->pack.first =
        contract_reserve(c, WINOGRAD_MATRICES * c->n_k * winograd_panel_tiles(c), &c->pack.arg);
    c->winograd.first_sum = contract_reserve(
        c, WINOGRAD_MATRICES * c->down->points.count * winograd_panel_tiles(c), &c->winograd.sums);
}
