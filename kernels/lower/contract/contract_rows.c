/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows multiply: matmul, linear, and conv as the product of its weights and of the windows
 * over x.  Neither is made: a window's element is x at the map that puts the window's place and the
 * place within it together, 0 outside of x. */
#include "lower/contract/contract.h"

#include "lower/contract/contract_pack.h"
#include "lower/contract/contract_pad.h"

enum {
    LONG_CHANNELS = 16, /* or as many, for which weights are packed */
    PAD_READERS = 8,    /* outputs that read an element of the copy, at least */
    THIN_READERS = 64,  /* likewise, where it leaves elements out, */
    TURN_READERS = 64,  /* or has channels last, */
    MANY_CHANNELS = 64, /* of which there are so many then: a copy of fewer stays in caches */
    FEW_PLACES = 64,    /* of an image, whose channels are lines of a cache */
    PAD_WINDOW = 9,     /* or elements of a window, */
    FEW_REGISTERS = 16, /* where vectors have no registers for masks either */
    PAD_MAX = 1 << 28,  /* its elements */
};

/* Operand 2, of rank 1, where there is one: along one coordinate of the result. */
static void plan_bias(struct contract *c, const struct block_op *op, const struct space_expr *along)
{
    const struct space_map map = {.rank = 1, .at = {*along}};

    if (op->n_in > 2 && op->in[2].kind == FRIT_OPERAND_TENSOR)
        c->bias = expr_node(&c->e, op->in[2].value, &map);
}

/* ---- products of matrices ---- */

/* The extent of an operand along dim `d` of a result of `rank`; 1 where it has none. */
static int64_t extent_at(const struct block_value *value, const int64_t *dims, uint32_t rank,
                         uint32_t d)
{
    uint32_t missing = rank - value->rank;

    return d < missing ? 1 : dims[d - missing];
}

/* Who has a leading dim: one that a alone has is like more rows. */
static uint32_t leading_tag(int64_t of_a, int64_t of_b)
{
    return of_a > 1 && of_b == 1 ? CONTRACT_M : CONTRACT_BOTH;
}

/* The map of an operand whose last two coordinates are given. */
static struct space_map matrix_map(const struct contract *c, uint32_t value,
                                   const struct space_expr *row, const struct space_expr *column)
{
    struct space_map full = c->root, map;
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = c->e.s->block->values[value].rank;

    full.at[full.rank - 2] = *row;
    full.at[full.rank - 1] = *column;
    expr_dims(&c->e, value, dims);
    space_broadcast(&full, rank, dims, &map);
    return map;
}

static bool plan_matmul(struct contract *c, const struct block_op *op)
{
    const struct block_value *values = c->e.s->block->values;
    uint32_t a = op->in[0].value, b = op->in[1].value, rank = values[op->out[0]].rank;
    int64_t a_dims[FRIT_MAX_RANK], b_dims[FRIT_MAX_RANK], dims[FRIT_MAX_RANK];
    struct space_map map;
    struct space_expr k;

    expr_dims(&c->e, a, a_dims);
    expr_dims(&c->e, b, b_dims);
    expr_dims(&c->e, op->out[0], dims);
    c->root.rank = rank;
    for (uint32_t tag = CONTRACT_BOTH; tag <= CONTRACT_M; tag++)
        for (uint32_t d = 0; d + 2 < rank; d++)
            if (leading_tag(extent_at(&values[a], a_dims, rank, d),
                            extent_at(&values[b], b_dims, rank, d)) == tag)
                c->root.at[d] = space_dim(&c->e.space, dims[d], tag);
    c->root.at[rank - 2] = space_dim(&c->e.space, dims[rank - 2], CONTRACT_M);
    c->root.at[rank - 1] = space_dim(&c->e.space, dims[rank - 1], CONTRACT_N);
    c->n_k = a_dims[values[a].rank - 1];
    if (c->n_k == 0)
        return true;
    k = space_dim(&c->e.space, c->n_k, CONTRACT_K);
    map = matrix_map(c, a, &c->root.at[rank - 2], &k);
    c->a.node = expr_node(&c->e, a, &map);
    map = matrix_map(c, b, &k, &c->root.at[rank - 1]);
    c->b.node = expr_node(&c->e, b, &map);
    return true;
}

/* x [.., i], w [i, o]. */
static bool plan_linear(struct contract *c, const struct block_op *op)
{
    const struct block_value *values = c->e.s->block->values;
    uint32_t x = op->in[0].value, w = op->in[1].value, last = values[x].rank - 1;
    struct space_map of_x, of_w = {.rank = 2};
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&c->e, x, dims);
    c->root.rank = values[x].rank;
    for (uint32_t d = 0; d < last; d++)
        c->root.at[d] = space_dim(&c->e.space, dims[d], CONTRACT_M);
    c->n_k = dims[last];
    expr_dims(&c->e, w, dims);
    c->root.at[last] = space_dim(&c->e.space, dims[1], CONTRACT_N);
    plan_bias(c, op, &c->root.at[last]);
    if (c->n_k == 0)
        return true;
    of_x = c->root;
    of_x.at[last] = of_w.at[0] = space_dim(&c->e.space, c->n_k, CONTRACT_K);
    of_w.at[1] = c->root.at[last];
    c->a.node = expr_node(&c->e, x, &of_x);
    c->b.node = expr_node(&c->e, w, &of_w);
    return true;
}

/* ---- conv ---- */

static int64_t or_one(int64_t number)
{
    return number ? number : 1;
}

/* x [n, c, ..], w [o, c / groups, ..], y [n, o, ..]. */
struct conv {
    const frit_attrs_conv *attrs;
    uint32_t rank;
    int64_t groups;
    int64_t x[FRIT_MAX_RANK], w[FRIT_MAX_RANK], y[FRIT_MAX_RANK]; /* dims */
    struct space_map of_x, of_w;
};

static bool conv_init(struct conv *conv, const struct contract *c, const struct block_op *op)
{
    const struct block_value *values = c->e.s->block->values;

    *conv = (struct conv){.attrs = op->attrs, .rank = values[op->in[0].value].rank};
    conv->groups = or_one(conv->attrs->groups);
    expr_dims(&c->e, op->in[0].value, conv->x);
    expr_dims(&c->e, op->in[1].value, conv->w);
    expr_dims(&c->e, op->out[0], conv->y);
    conv->of_x.rank = conv->of_w.rank = conv->rank;
    return conv->rank >= 3 && conv->rank <= 5 && values[op->in[1].value].rank == conv->rank &&
           conv->groups > 0 && conv->w[0] == conv->y[1] && conv->y[1] % conv->groups == 0 &&
           conv->w[1] * conv->groups == conv->x[1];
}

/* The places of y, which are those of x at the window's first element. */
static void conv_places(struct conv *conv, struct contract *c)
{
    struct space *space = &c->e.space;
    struct space_expr group = space_dim(space, conv->groups, CONTRACT_BOTH);
    struct space_expr output = space_dim(space, conv->y[1] / conv->groups, CONTRACT_M);

    c->root.rank = conv->rank;
    c->root.at[1] = output;
    space_add(&c->root.at[1], &group, conv->y[1] / conv->groups);
    conv->of_w.at[0] = c->root.at[1];
    space_add(&conv->of_x.at[1], &group, conv->w[1]);
    conv->of_x.at[0] = c->root.at[0] = space_dim(space, conv->y[0], CONTRACT_N);
    for (uint32_t d = 2; d < conv->rank; d++) {
        c->root.at[d] = space_dim(space, conv->y[d], CONTRACT_N);
        space_add(&conv->of_x.at[d], &c->root.at[d], or_one(conv->attrs->stride[d - 2]));
        conv->of_x.at[d].c -= conv->attrs->padding[d - 2];
    }
}

/* The dim of k along which the window has the most products is the innermost one where loads do not
 * depend on that: rounds of its loop are long. */
static bool sums_channels(const struct conv *conv, const struct contract *c)
{
    return contract_has_vectors(c) && conv->w[1] >= LONG_CHANNELS &&
           conv->y[1] / conv->groups >= LONG_CHANNELS;
}

static void add_window_dim(struct conv *conv, struct contract *c, uint32_t d)
{
    int64_t step = d == 1 ? 1 : or_one(conv->attrs->dilation[d - 2]);

    conv->of_w.at[d] = space_dim(&c->e.space, conv->w[d], CONTRACT_K);
    space_add(&conv->of_x.at[d], &conv->of_w.at[d], step);
}

/* Plans the number of a product of a sum, by which packed weights are read: that of its place in k,
 * whose last dim is `last`. */
static void plan_number(const struct conv *conv, struct contract *c, bool channels_last)
{
    struct space_expr number = {0};
    int64_t stride = 1;

    if (channels_last) {
        space_add(&number, &conv->of_w.at[1], 1);
        stride = conv->w[1];
    }
    for (uint32_t d = conv->rank; d-- > 1; stride *= conv->w[d])
        if (d > 1 || !channels_last)
            space_add(&number, &conv->of_w.at[d], stride);
    c->pack.is_numbered = true;
    c->pack.number = expr_coord(&c->e, &number);
}

/* The places within a window. */
static void conv_window(struct conv *conv, struct contract *c)
{
    bool channels_last = sums_channels(conv, c);

    c->n_k = conv->w[1];
    for (uint32_t d = 2; d < conv->rank; d++)
        c->n_k *= conv->w[d];
    if (c->n_k == 0)
        return;
    if (!channels_last)
        add_window_dim(conv, c, 1);
    for (uint32_t d = 2; d < conv->rank; d++)
        add_window_dim(conv, c, d);
    if (channels_last)
        add_window_dim(conv, c, 1);
    if (contract_has_vectors(c))
        plan_number(conv, c, channels_last);
    c->sums_inside = channels_last;
}

/* Elements from one to the next one that a copy has along a dim: windows of one element need no
 * other one. */
static int64_t copy_step(const struct conv *conv, uint32_t d)
{
    return conv->w[d] == 1 ? or_one(conv->attrs->stride[d - 2]) : 1;
}

/* Places of an image. */
static int64_t places_of(const struct conv *conv)
{
    int64_t places = 1;

    for (uint32_t d = 2; d < conv->rank; d++)
        places *= conv->y[d];
    return places;
}

/* Where lanes lie along outputs, on packed weights, a lane's places go over the channels of one
 * element of the window after the other: these lie together in the copy then, and a line of a cache
 * serves many products.  Windows of one element read a channel's line once, and have that of what
 * lies beside them only in small images. */
static bool copies_channels_last(const struct conv *conv, const struct contract *c)
{
    return sums_channels(conv, c) && pack_can_keep(c, &c->a) && conv->w[1] >= MANY_CHANNELS &&
           conv->y[1] / conv->groups >= TURN_READERS &&
           (c->n_k > conv->w[1] || places_of(conv) <= FEW_PLACES);
}

/* Whether x is better copied, with zeros around it, without what strides step over, or with other
 * dims last: many read it, each in several windows or at neighbouring places, on lanes that are
 * parts of vectors. */
static bool wants_pad(const struct conv *conv, const struct contract *c)
{
    int64_t window = c->n_k / conv->w[1], count = conv->x[0] * conv->x[1];
    bool padded = false, thins = false;

    for (uint32_t d = 2; d < conv->rank; d++) {
        int64_t last = (conv->y[d] - 1) * or_one(conv->attrs->stride[d - 2]) +
                       (conv->w[d] - 1) * or_one(conv->attrs->dilation[d - 2]);

        padded = padded || conv->of_x.at[d].c < 0 || last + conv->of_x.at[d].c >= conv->x[d];
        thins = thins || copy_step(conv, d) > 1;
        count *= last < PAD_MAX && count < PAD_MAX ? last + 1 : 1;
    }
    if (count >= PAD_MAX || !contract_has_vectors(c))
        return false;
    if (thins && conv->w[1] >= LONG_CHANNELS && conv->y[1] / conv->groups >= THIN_READERS)
        return true;
    if (window == 1 && copies_channels_last(conv, c))
        return true;
    return padded && window > 1 &&
           (conv->y[1] / conv->groups >= PAD_READERS ||
            (window >= PAD_WINDOW && c->e.s->target->registers <= FEW_REGISTERS));
}

static void plan_pad(struct conv *conv, struct contract *c, uint32_t x)
{
    bool channels_last = copies_channels_last(conv, c);
    struct pad_dim dims[FRIT_MAX_RANK] = {{0, conv->x[0], 1, 0}};
    uint32_t last = conv->rank - 1;

    dims[channels_last ? last : 1] = (struct pad_dim){1, conv->x[1], 1, 0};
    for (uint32_t d = 2; d < conv->rank; d++) {
        int64_t step = copy_step(conv, d);

        dims[channels_last ? d - 1 : d] = (struct pad_dim){
            .of = d,
            .extent = (conv->y[d] - 1) * (or_one(conv->attrs->stride[d - 2]) / step) +
                      (conv->w[d] - 1) * or_one(conv->attrs->dilation[d - 2]) + 1,
            .step = step,
            .before = conv->attrs->padding[d - 2]};
        conv->of_x.at[d].c = 0;
        if (step > 1)
            conv->of_x.at[d] = c->root.at[d];
    }
    if (c->n_k > conv->w[1] && !channels_last)
        dims[last].extent = pad_pitch(dims[last].extent);
    pad_plan(c, x, dims, &conv->of_x);
}

static bool plan_conv(struct contract *c, const struct block_op *op)
{
    struct conv conv;

    if (!conv_init(&conv, c, op))
        return false;
    conv_places(&conv, c);
    plan_bias(c, op, &c->root.at[1]);
    conv_window(&conv, c);
    if (c->n_k == 0)
        return true;
    c->a.node = expr_node(&c->e, op->in[1].value, &conv.of_w);
    if (wants_pad(&conv, c))
        plan_pad(&conv, c, op->in[0].value);
    else
        c->b.node = expr_guard(&c->e, op->in[0].value, &conv.of_x,
                               (struct expr_fill){.scalar = BLOCK_NONE});
    return true;
}

/* ---- rows ---- */

static const struct contract_row rows[] = {
    {FRIT_OP_matmul, plan_matmul},
    {FRIT_OP_linear, plan_linear},
    {FRIT_OP_conv, plan_conv},
};

const struct contract_row *contract_row_of(uint32_t op)
{
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].id == op)
            return &rows[i];
    return NULL;
}
