/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolution F(2x2, 3x3), for windows of 3 x 3 at each place: Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2016.  A tile of 2 x 2 results is A^T M A, where
 * the 4 x 4 matrix M is a sum over channels of elementwise products of G g G^T, of the weights, and
 * B^T d B, of the 4 x 4 elements that the tile's windows cover: 16 products in place of 36.  These
 * are 16 products of matrices, of which lanes lie along tiles.
 *
 *     phase            reads                      writes
 *     weights, kept    w                          [16][tile of outputs][channel][output of the
 * tile] padded copy      x                          see contract_pad.c patches          the copy
 * [16][panel][channel][tile of the panel], as packed products         weights, patches
 * [16][output][tile] results          products                   y, with what follows
 *
 * Transforms add and subtract elements that no window has together, so that an infinity or a NaN,
 * or numbers near the largest one, spoil results that do not depend on them.  What is not finite is
 * therefore summed again, window by window. */
#include "lower/contract/contract_winograd.h"

#include <float.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_pack.h"
#include "lower/contract/contract_pad.h"

enum {
    WINDOW = 3,
    RESULT = 2,                  /* of a tile, along each dim */
    PATCH = WINDOW + RESULT - 1, /* elements of x likewise */
    MATRICES = PATCH * PATCH,
    WIDTH = 16,       /* tiles of a panel that are computed together */
    GROUP_TILES = 64, /* of a group of products, at most */
    GROUP_COST = 8,   /* of beginning such a group, in tiles */
    FEW_OUTPUTS = 6,  /* of a group: sums fit 16 registers with their operands */
    MANY_OUTPUTS = 8, /* likewise for more */
    LEAST_CHANNELS = 16,
    WEIGHT_LANES = 64,    /* of a group that transforms weights */
    CHANNELS = 8,         /* that a group of patches transforms, */
    OUTPUTS = 8,          /* and one of results */
    PATCH_COST = 380,     /* of making the patch of a tile and a channel, in products */
    RESULT_COST = 245,    /* likewise the results of a tile and an output */
    PLANNED_MAX = 1 << 28 /* elements of what is stored between phases */
};

/* ---- planning ---- */

struct shape {
    int64_t x[FRIT_MAX_RANK], w[FRIT_MAX_RANK], y[FRIT_MAX_RANK]; /* dims */
    int64_t tiles[2];                                             /* along each dim of a matrix */
    int64_t n_tiles;
};

static uint32_t group_tiles(int64_t n)
{
    uint32_t best = GROUP_TILES;

    for (uint32_t lanes = GROUP_TILES; lanes >= WIDTH; lanes /= 2)
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
static bool is_cheaper(const struct shape *s)
{
    uint32_t lanes = group_tiles(s->n_tiles);
    int64_t results = s->y[0] * s->y[2] * s->y[3], tiles = tiles_of(s->n_tiles, lanes) * lanes;
    double direct = (double)(WINDOW * WINDOW * results) / (double)s->n_tiles;
    double products = MATRICES * (double)tiles / (double)s->n_tiles;

    return products + (double)PATCH_COST / (double)s->w[0] + (double)RESULT_COST / (double)s->w[1] <
           direct;
}

static bool shape_init(struct shape *s, const struct contract *c, const struct block_op *op)
{
    if (!contract_has_vectors(c) || !c->e.s->target->keeps_derived || !c->e.s->target->fma ||
        !is_plain(c->e.s->block, op))
        return false;
    expr_dims(&c->e, op->in[0].value, s->x);
    expr_dims(&c->e, op->in[1].value, s->w);
    expr_dims(&c->e, op->out[0], s->y);
    for (uint32_t d = 0; d < 2; d++)
        s->tiles[d] = tiles_of(s->y[d + 2], RESULT);
    s->n_tiles = s->y[0] * s->tiles[0] * s->tiles[1];
    return s->w[2] == WINDOW && s->w[3] == WINDOW && s->w[1] == s->x[1] && s->w[0] == s->y[1] &&
           s->w[0] >= LEAST_CHANNELS && s->w[1] >= LEAST_CHANNELS && s->n_tiles >= WIDTH &&
           (s->n_tiles + GROUP_TILES) * (s->w[0] > s->w[1] ? s->w[0] : s->w[1]) <
               PLANNED_MAX / MATRICES &&
           is_cheaper(s);
}

static struct space_expr sum_of(const struct space_expr *a, int64_t factor,
                                const struct space_expr *b)
{
    struct space_expr sum = {0};

    space_add(&sum, a, factor);
    space_add(&sum, b, 1);
    return sum;
}

/* The copy of x has all patches, those of tiles that reach beyond y too. */
static void plan_copy(struct contract *c, const struct shape *s, const struct block_op *op,
                      const struct space_map *at)
{
    const frit_attrs_conv *attrs = op->attrs;
    struct pad_dim dims[FRIT_MAX_RANK] = {{s->x[0], 1, 0}, {s->x[1], 1, 0}};

    for (uint32_t d = 0; d < 2; d++)
        dims[d + 2] = (struct pad_dim){.extent = RESULT * s->tiles[d] + PATCH - RESULT,
                                       .step = 1,
                                       .before = attrs->padding[d]};
    dims[3].extent = pad_pitch(dims[3].extent);
    pad_plan(c, op->in[0].value, dims, at);
}

bool winograd_plan(struct contract *c, const struct block_op *op)
{
    struct space *space = &c->e.space;
    struct space_map of_w = {.rank = 4}, of_x = {.rank = 4};
    struct space_expr tile[2], channel, inner;
    struct shape s;

    if (!shape_init(&s, c, op))
        return false;
    c->winograd.used = true;
    space_dim(space, MATRICES, CONTRACT_BOTH);
    c->root.rank = 4;
    c->root.at[1] = of_w.at[0] = space_dim(space, s.w[0], CONTRACT_M);
    c->root.at[0] = of_x.at[0] = space_dim(space, s.y[0], CONTRACT_N);
    for (uint32_t d = 0; d < 2; d++)
        tile[d] = space_dim(space, s.tiles[d], CONTRACT_N);
    c->n_k = s.w[1];
    channel = of_w.at[1] = of_x.at[1] = space_dim(space, s.w[1], CONTRACT_K);
    for (uint32_t d = 0; d < 2; d++) {
        of_w.at[d + 2] = space_dim(space, WINDOW, CONTRACT_WINDOW + d);
        inner = space_dim(space, PATCH, CONTRACT_PATCH + d);
        of_x.at[d + 2] = sum_of(&tile[d], RESULT, &inner);
        inner = space_dim(space, RESULT, CONTRACT_RESULT + d);
        c->root.at[d + 2] = sum_of(&tile[d], RESULT, &inner);
        c->winograd.row[d] = expr_coord(&c->e, &c->root.at[d + 2]);
        c->winograd.rows[d] = s.y[d + 2];
    }
    c->pack.is_numbered = true;
    c->pack.number = expr_coord(&c->e, &channel);
    c->a.node = expr_node(&c->e, op->in[1].value, &of_w);
    plan_copy(c, &s, op, &of_x);
    return true;
}

/* ---- choices ---- */

void winograd_choose(struct contract *c)
{
    int64_t n = contract_points(&c->e.space, CONTRACT_M);
    uint32_t most = c->e.s->target->registers > 16 ? MANY_OUTPUTS : FEW_OUTPUTS, best = most;

    for (uint32_t each = most; each > most / 2; each--)
        if (tiles_of(n, each) * (each + 1) < tiles_of(n, best) * (best + 1))
            best = each;
    c->form = CONTRACT_LINES;
    c->across = &c->b;
    c->down = &c->a;
    c->n_down = best;
    c->n_across = 1;
    c->lanes = group_tiles(contract_points(&c->e.space, CONTRACT_N));
    c->pack.used = true;
    c->pack.width = WIDTH;
}

/* ---- memory ---- */

/* Tiles of all groups of products. */
static int64_t panel_tiles(const struct contract *c)
{
    return tiles_of(c->across->points.count, c->lanes) * c->lanes;
}

static int64_t output_tiles(const struct contract *c)
{
    return tiles_of(c->down->points.count, c->n_down);
}

/* Elements of one of the MATRICES. */
static int64_t weights_size(const struct contract *c)
{
    return output_tiles(c) * c->n_down * c->n_k;
}

/* Identifies the order of transformed weights among all those of operands with equal dims and
 * strides. */
static uint64_t tag_of(const struct contract *c, const struct expr_node *operand)
{
    const struct space *space = &c->e.space;
    int64_t numbers[3 + 3 * SPACE_DIMS] = {MATRICES, c->n_down, operand->at.c};
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
        .bytes = frit_storage_bytes(contract_dtype(c), MATRICES * weights_size(c)),
        .tag = tag_of(c, operand),
        .input = c->e.s->block->values[operand->value].input,
        .phase = 0,
    };
    pad_reserve(c);
    c->pack.first = contract_reserve(c, MATRICES * c->n_k * panel_tiles(c), &c->pack.arg);
    c->winograd.first_sum =
        contract_reserve(c, MATRICES * c->down->points.count * panel_tiles(c), &c->winograd.sums);
}

/* ---- transforms ---- */

static uint32_t plus(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return op2(w, KIR_add, a, b);
}

static uint32_t minus(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return op2(w, KIR_sub, a, b);
}

/* A row of a transform: from one vector to another, whose elements lie `step` apart. */
typedef void (*transform_fn)(const struct contract_emitter *w, uint32_t *v, uint32_t step);

/* G. */
static void weights_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t half = kir_const_f(w->m, w->type, 0.5), sum = plus(w, v[0], v[2 * step]);
    uint32_t last = v[2 * step], middle = v[step];

    v[step] = op2(w, KIR_mul, plus(w, sum, middle), half);
    v[2 * step] = op2(w, KIR_mul, minus(w, sum, middle), half);
    v[3 * step] = last;
}

/* B^T. */
static void patch_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t d[PATCH] = {v[0], v[step], v[2 * step], v[3 * step]};

    v[0] = minus(w, d[0], d[2]);
    v[step] = plus(w, d[1], d[2]);
    v[2 * step] = minus(w, d[2], d[1]);
    v[3 * step] = minus(w, d[1], d[3]);
}

/* A^T. */
static void result_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t m[PATCH] = {v[0], v[step], v[2 * step], v[3 * step]};

    v[0] = plus(w, plus(w, m[0], m[1]), m[2]);
    v[step] = minus(w, minus(w, m[1], m[2]), m[3]);
}

/* Columns of a matrix with rows of PATCH elements, `columns` of them at first, then the `rows` that
 * these leave. */
static void transform(const struct contract_emitter *w, transform_fn row, uint32_t columns,
                      uint32_t rows, uint32_t *matrix)
{
    for (uint32_t i = 0; i < columns; i++)
        row(w, matrix + i, PATCH);
    for (uint32_t i = 0; i < rows; i++)
        row(w, matrix + (size_t)PATCH * i, 1);
}

static uint32_t dim_of(const struct contract_emitter *w, uint32_t tag)
{
    return contract_last_dim(&w->e->space, tag);
}

/* Sets the coordinates within a window, patch or tile of results. */
static void set_inner(const struct contract_emitter *w, uint32_t tag, uint32_t row, uint32_t column)
{
    expr_set(w->e, dim_of(w, tag), row);
    expr_set(w->e, dim_of(w, tag + 1), column);
}

static uint32_t times(const struct contract_emitter *w, uint32_t value, int64_t by)
{
    return op2(w, KIR_mul, value, sched_add_index(w->e->s, by));
}

/* Numbers of the group along two dims, of which the inner one has `n` points. */
static struct contract_emitter begin(struct contract *c, uint32_t lanes, int64_t outer, int64_t n,
                                     uint32_t *group, uint32_t *inner)
{
    struct contract_emitter w = {.c = c,
                                 .e = &c->e,
                                 .m = c->e.s->module,
                                 .type = contract_type(c),
                                 .mask = KIR_NONE,
                                 .side = {c->down, c->across}};

    contract_set_grid(c, outer * n);
    *group = work_begin(&w, lanes);
    *inner = work_part(&w, group, n);
    return w;
}

/* A loop over `each` numbers from group * each on, to `count`. */
static uint32_t begin_loop(const struct contract_emitter *w, uint32_t group, uint32_t each,
                           int64_t count)
{
    uint32_t first = op2(w, KIR_mul, group, index_const(w, each));
    uint32_t end = plus(w, first, index_const(w, each));

    if (count % each)
        end = op2(w, KIR_smin, end, sched_add_index(w->e->s, count));
    return kir_for(w->m, first, end, 1);
}

/* ---- weights ---- */

static uint32_t load_weight(const struct contract_emitter *w, uint32_t row, uint32_t column)
{
    uint32_t mark = expr_mark(w->e), value;

    set_inner(w, CONTRACT_WINDOW, row, column);
    value = expr_value(w->e, w->c->a.node);
    expr_release(w->e, mark);
    return value;
}

/* A group has an output, its lanes channels. */
static void emit_weights(struct contract *c)
{
    uint32_t lanes = sched_lanes(WEIGHT_LANES, c->n_k), output, channel, at, size, in_tile;
    uint32_t m[MATRICES] = {0};
    struct contract_emitter w =
        begin(c, lanes, c->down->points.count, tiles_of(c->n_k, lanes), &output, &channel);

    delinearize_phase(&c->down->points, w.e);
    delinearize_phase(&c->k, w.e);
    delinearize_set(&c->down->points, w.e, output);
    channel = plus(&w, op2(&w, KIR_mul, channel, index_const(&w, lanes)), w.lane);
    if (c->n_k % lanes)
        w.mask = op2(&w, KIR_lt, channel, sched_add_index(w.e->s, c->n_k));
    delinearize_set(&c->k, w.e, channel);
    expr_mask(w.e, w.mask);
    in_tile = work_part(&w, &output, c->n_down);
    at = op2(&w, KIR_mul, plus(&w, times(&w, output, c->n_k), channel), index_const(&w, c->n_down));
    at = plus(&w, at, in_tile);
    for (uint32_t i = 0; i < WINDOW; i++)
        for (uint32_t j = 0; j < WINDOW; j++)
            m[PATCH * i + j] = load_weight(&w, index_const(&w, i), index_const(&w, j));
    transform(&w, weights_row, WINDOW, PATCH, m);
    size = sched_add_index(w.e->s, weights_size(c));
    for (uint32_t f = 0; f < MATRICES; f++)
        kir_emit_imm(w.m, w.mask == KIR_NONE ? KIR_store : KIR_store_if, c->winograd.weights,
                     plus(&w, at, op2(&w, KIR_mul, size, index_const(&w, f))), m[f], w.mask);
}

uint32_t winograd_first(const struct contract_emitter *w, uint32_t down)
{
    const struct contract *c = w->c;
    uint32_t tile = plus(w, times(w, w->both, output_tiles(c)), down);

    return times(w, tile, c->n_k * c->n_down);
}

uint32_t winograd_weight(const struct contract_emitter *w, uint32_t k, uint32_t i)
{
    const struct contract *c = w->c;
    uint32_t at = plus(w, op2(w, KIR_mul, k, index_const(w, c->n_down)), w->weights);

    return kir_emit_as(w->m, KIR_load, w->type, c->winograd.weights, plus(w, at, index_const(w, i)),
                       KIR_NONE, KIR_NONE);
}

/* ---- patches ---- */

/* The lane's tile, the last one for lanes beyond it; the number of the lane. */
static uint32_t set_tile(struct contract_emitter *w, uint32_t panel)
{
    const struct delinearizer *tiles = &w->c->across->points;
    uint32_t number = plus(w, op2(w, KIR_mul, panel, index_const(w, WIDTH)), w->lane);
    uint32_t tile = number;

    if (tiles->count % WIDTH || panel_tiles(w->c) > tiles->count) {
        w->mask = op2(w, KIR_lt, number, sched_add_index(w->e->s, tiles->count));
        tile = op2(w, KIR_smin, number, sched_add_index(w->e->s, tiles->count - 1));
    }
    delinearize_set(tiles, w->e, tile);
    return number;
}

static uint32_t load_patch(const struct contract_emitter *w, uint32_t row, uint32_t column)
{
    uint32_t mark = expr_mark(w->e), value;

    set_inner(w, CONTRACT_PATCH, row, column);
    value = pad_element(w, KIR_NONE);
    expr_release(w->e, mark);
    return value;
}

/* A group has WIDTH tiles and CHANNELS channels. */
static void emit_patches(struct contract *c)
{
    int64_t panels = panel_tiles(c) / WIDTH;
    uint32_t panel, group, channel, at, size, mark, m[MATRICES];
    struct contract_emitter w = begin(c, WIDTH, tiles_of(c->n_k, CHANNELS), panels, &group, &panel);

    delinearize_phase(&c->k, w.e);
    set_tile(&w, panel);
    expr_hoist(w.e);
    size = sched_add_index(w.e->s, panels * c->n_k * WIDTH);
    at = times(&w, panel, c->n_k);
    channel = begin_loop(&w, group, CHANNELS, c->n_k);
    mark = expr_mark(w.e);
    delinearize_set(&c->k, w.e, channel);
    expr_hoist(w.e);
    at = plus(&w, op2(&w, KIR_mul, plus(&w, at, channel), index_const(&w, WIDTH)), w.lane);
    if (c->pack.first)
        at = plus(&w, at, sched_add_index(w.e->s, c->pack.first));
    for (uint32_t i = 0; i < MATRICES; i++)
        m[i] = load_patch(&w, index_const(&w, i / PATCH), index_const(&w, i % PATCH));
    transform(&w, patch_row, PATCH, PATCH, m);
    for (uint32_t f = 0; f < MATRICES; f++)
        kir_emit_imm(w.m, KIR_store, c->pack.arg,
                     plus(&w, at, op2(&w, KIR_mul, size, index_const(&w, f))), m[f], KIR_NONE);
    expr_release(w.e, mark);
    kir_next(w.m, NULL, 0);
}

void winograd_emit_operands(struct contract *c)
{
    emit_weights(c);
    pad_emit(c);
    emit_patches(c);
}

/* ---- results ---- */

void winograd_store(const struct contract_emitter *w, uint32_t place, uint32_t sum)
{
    const struct contract *c = w->c;
    uint32_t at = plus(w, times(w, w->both, c->down->points.count), place);

    at = plus(w, times(w, at, panel_tiles(c)), w->at[ACROSS]);
    at = plus(w, at, sched_add_index(w->e->s, c->winograd.first_sum));
    kir_emit_imm(w->m, KIR_store, c->winograd.sums, at, sum, KIR_NONE);
}

/* Whether any lane's flag, 0 or 1, is set: the same in all. */
static uint32_t any_lane(const struct contract_emitter *w, uint32_t flag)
{
    for (uint32_t by = 1; by < WIDTH; by *= 2)
        flag = op2(w, KIR_or, flag, kir_emit_imm(w->m, KIR_exchange, by, flag, KIR_NONE, KIR_NONE));
    return kir_emit(w->m, KIR_first, flag, KIR_NONE, KIR_NONE);
}

/* The lanes whose results are not all finite. */
static uint32_t spoilt(const struct contract_emitter *w, const uint32_t *y)
{
    uint32_t most = kir_const_f(w->m, w->type, FLT_MAX), fine = KIR_NONE, one;

    for (uint32_t i = 0; i < RESULT * RESULT; i++) {
        one = op2(w, KIR_le, kir_unary(w->m, KIR_abs, y[i]), most);
        fine = fine == KIR_NONE ? one : op2(w, KIR_and, fine, one);
    }
    fine = kir_unary(w->m, KIR_not, fine);
    return w->mask == KIR_NONE ? fine : op2(w, KIR_and, fine, w->mask);
}

/* One element of the window of each result, where the mask is. */
static void add_window(const struct contract_emitter *w, uint32_t row, uint32_t column,
                       uint32_t mask, uint32_t *y)
{
    uint32_t weight = load_weight(w, row, column);

    for (uint32_t i = 0; i < RESULT * RESULT; i++) {
        uint32_t x = load_patch(w, plus(w, row, index_const(w, i / RESULT)),
                                plus(w, column, index_const(w, i % RESULT)));

        y[i] = kir_select(w->m, mask, add_product(w, y[i], x, weight), y[i]);
    }
}

/* Begins a loop that carries the results, from 0 to end; `next` has them in a round. */
static uint32_t carry(const struct contract_emitter *w, uint32_t end, uint32_t *y, uint32_t *next)
{
    uint32_t counter = work_loop(w, index_const(w, 0), end, 1, y);

    memcpy(next, y, RESULT * RESULT * sizeof(*y));
    return counter;
}

/* Sums lanes that are spoilt window by window, if there are such: loops are empty else. */
static void mend(const struct contract_emitter *w, uint32_t *y)
{
    uint32_t mask = spoilt(w, y), window = index_const(w, WINDOW), mark, row, column, any;
    uint32_t of_channel[RESULT * RESULT], of_row[RESULT * RESULT], of_column[RESULT * RESULT];

    any = sched_wide(w->e->s, any_lane(w, kir_unary(w->m, KIR_i32, mask)));
    for (uint32_t i = 0; i < RESULT * RESULT; i++)
        y[i] = kir_select(w->m, mask, zero(w), y[i]);
    mark = expr_mark(w->e);
    delinearize_set(&w->c->k, w->e, carry(w, times(w, any, w->c->n_k), y, of_channel));
    row = carry(w, window, of_channel, of_row);
    column = carry(w, window, of_row, of_column);
    add_window(w, row, column, mask, of_column);
    kir_next(w->m, of_column, RESULT * RESULT);
    kir_next(w->m, of_row, RESULT * RESULT);
    kir_next(w->m, of_channel, RESULT * RESULT);
    expr_release(w->e, mark);
}

/* The mask of lanes whose tile has a result at the coordinates that are set. */
static uint32_t inside(const struct contract_emitter *w)
{
    uint32_t mask = w->mask;

    for (uint32_t d = 0; d < 2; d++) {
        uint32_t in;

        if (w->c->winograd.rows[d] % RESULT == 0)
            continue;
        in = op2(w, KIR_lt, expr_coord_value(w->e, w->c->winograd.row[d]),
                 sched_add_index(w->e->s, w->c->winograd.rows[d]));
        mask = mask == KIR_NONE ? in : op2(w, KIR_and, mask, in);
    }
    return mask;
}

static void store_results(const struct contract_emitter *w, const uint32_t *y)
{
    for (uint32_t i = 0; i < RESULT * RESULT; i++) {
        uint32_t mark = expr_mark(w->e);

        set_inner(w, CONTRACT_RESULT, index_const(w, i / RESULT), index_const(w, i % RESULT));
        expr_mask(w->e, inside(w));
        work_finish(w, y[i]);
        expr_release(w->e, mark);
    }
}

/* A group has WIDTH tiles and OUTPUTS outputs. */
void winograd_emit_results(struct contract *c)
{
    int64_t n = c->down->points.count, pitch = panel_tiles(c);
    uint32_t panel, group, output, at, size, mark, tile, m[MATRICES], y[RESULT * RESULT];
    struct contract_emitter w = begin(c, WIDTH, tiles_of(n, OUTPUTS),
                                      tiles_of(c->across->points.count, WIDTH), &group, &panel);

    w.n = RESULT * RESULT;
    delinearize_phase(&c->k, w.e);
    delinearize_phase(&c->down->points, w.e);
    tile = set_tile(&w, panel);
    tile = plus(&w, tile, sched_add_index(w.e->s, c->winograd.first_sum));
    expr_hoist(w.e);
    size = sched_add_index(w.e->s, n * pitch);
    output = begin_loop(&w, group, OUTPUTS, n);
    mark = expr_mark(w.e);
    delinearize_set(&c->down->points, w.e, output);
    expr_hoist(w.e);
    at = plus(&w, times(&w, output, pitch), tile);
    for (uint32_t f = 0; f < MATRICES; f++)
        m[f] = kir_emit_as(w.m, KIR_load, w.type, c->winograd.sums,
                           plus(&w, at, op2(&w, KIR_mul, size, index_const(&w, f))), KIR_NONE,
                           KIR_NONE);
    transform(&w, result_row, PATCH, RESULT, m);
    for (uint32_t i = 0; i < RESULT * RESULT; i++)
        y[i] = m[PATCH * (i / RESULT) + i % RESULT];
    mend(&w, y);
    store_results(&w, y);
    expr_release(w.e, mark);
    kir_next(w.m, NULL, 0);
}
