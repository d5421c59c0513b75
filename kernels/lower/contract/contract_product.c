/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices.  The rows of contract_rows.c plan the operands; where both are loaded at
 * offsets that are linear in the dims, the factors are the strides.  Dims of m that do not merge
 * into one become batches in which b does not move. */
#include "lower/contract/contract_product.h"

#include "base/fail.h"
#include "lower/contract/contract.h"

static bool is_float(uint32_t dtype)
{
    const enum kir_type type = kir_type_of(dtype);

    return type == KIR_F32 || type == KIR_F64;
}

uint32_t contract_product_find(const struct block *block)
{
    uint32_t found = BLOCK_NONE;

    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (!contract_row_of(block->ops[i].id))
            continue;
        if (found != BLOCK_NONE)
            return BLOCK_NONE;
        found = i;
    }
    if (block->n_outputs != 1 || found == BLOCK_NONE ||
        block->ops[found].out[0] != block->outputs[0] || block->ops[found].id == FRIT_OP_conv ||
        block->ops[found].n_scalars || !is_float(block->values[block->outputs[0]].dtype))
        return BLOCK_NONE;
    return found;
}

/* ---- operands ---- */

/* The node, or what it is a cast of. */
static const struct expr_node *before_cast(const struct expr *e, uint32_t number)
{
    const struct expr_node *node = number == BLOCK_NONE ? NULL : &e->nodes[number];
    const struct block *block = e->s->block;
    uint32_t maker = node ? block->values[node->value].maker : BLOCK_NONE;

    if (node && node->kind == EXPR_OP && maker != BLOCK_NONE &&
        block->ops[maker].id == FRIT_OP_cast && node->in[0] != BLOCK_NONE)
        return &e->nodes[node->in[0]];
    return node;
}

/* The load, or the load under a cast, whose offset is linear in the space's dims; NULL: the node is
 * something else. */
static const struct expr_node *linear_load(const struct expr *e, uint32_t number)
{
    const struct expr_node *node = before_cast(e, number);

    if (!node || node->kind != EXPR_LOAD || e->s->block->values[node->value].maker != BLOCK_NONE)
        return NULL;
    for (uint32_t i = 0; i < SPACE_LEAVES; i++)
        if (node->at.k[SPACE_DIMS + i])
            return NULL;
    return node;
}

static uint32_t dtype_of(const struct expr *e, const struct expr_node *load)
{
    return e->s->block->values[load->value].dtype;
}

static uint32_t input_of(const struct expr *e, const struct expr_node *load)
{
    return e->s->block->values[load->value].input;
}

/* ---- dims ---- */

/* The parts of a product while its dims are collected. */
struct product_plan {
    const struct contract *c;
    const struct space_expr *a, *b, *out;
    struct kernels_product *product;
    uint32_t n_batches;
};

/* The dims of a tag, outermost first; returns their number. */
static uint32_t dims_of(const struct space *space, uint32_t tag, uint32_t out[SPACE_DIMS])
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < space->n_dims; d++)
        if (space->tag[d] == tag)
            out[n++] = d;
    return n;
}

static bool add_batch(struct product_plan *p, uint32_t dim)
{
    struct kernels_product *to = p->product;
    uint32_t i = p->n_batches++;

    if (i >= KERNELS_BATCHES)
        return false;
    to->batch[i] = p->c->e.space.extent[dim];
    to->a.batch[i] = p->a->k[dim];
    to->b.batch[i] = p->b->k[dim];
    to->c.batch[i] = p->out->k[dim];
    return true;
}

/* All dims of a tag but the last become batches; *last is SPACE_DIMS where there is none. */
static bool split_dims(struct product_plan *p, uint32_t tag, uint32_t *last)
{
    uint32_t dims[SPACE_DIMS], n = dims_of(&p->c->e.space, tag, dims);

    *last = n ? dims[n - 1] : SPACE_DIMS;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!add_batch(p, dims[i]))
            return false;
    return true;
}

static int64_t extent_of(const struct product_plan *p, uint32_t dim)
{
    return dim == SPACE_DIMS ? 1 : p->c->e.space.extent[dim];
}

static int64_t step_of(const struct space_expr *at, uint32_t dim)
{
    return dim == SPACE_DIMS ? 0 : at->k[dim];
}

static bool collect(struct product_plan *p)
{
    struct kernels_product *to = p->product;
    uint32_t both[SPACE_DIMS], m, n, k[SPACE_DIMS], n_k = dims_of(&p->c->e.space, CONTRACT_K, k);

    for (uint32_t i = 0; i < KERNELS_BATCHES; i++)
        to->batch[i] = 1;
    for (uint32_t i = 0, count = dims_of(&p->c->e.space, CONTRACT_BOTH, both); i < count; i++)
        if (!add_batch(p, both[i]))
            return false;
    if (!split_dims(p, CONTRACT_M, &m) || !split_dims(p, CONTRACT_N, &n) || n_k > 1)
        return false;
    k[0] = n_k ? k[0] : SPACE_DIMS;
    to->m = extent_of(p, m);
    to->n = extent_of(p, n);
    to->k = extent_of(p, k[0]);
    to->a.row = step_of(p->a, m);
    to->a.column = step_of(p->a, k[0]);
    to->b.row = step_of(p->b, k[0]);
    to->b.column = step_of(p->b, n);
    to->c.row = step_of(p->out, m);
    to->c.column = step_of(p->out, n);
    return true;
}

/* A bias is a vector along n, which dims that became batches do not move. */
static bool plan_bias(const struct contract *c, const struct product_plan *p,
                      struct contract_product *out)
{
    const struct expr_node *load = linear_load(&c->e, c->bias);
    uint32_t dims[SPACE_DIMS], n = dims_of(&c->e.space, CONTRACT_N, dims);

    out->bias = BLOCK_NONE;
    if (c->bias == BLOCK_NONE)
        return true;
    if (!load || n > 1 || dtype_of(&c->e, load) != p->product->result)
        return false;
    for (uint32_t d = 0; d < c->e.space.n_dims; d++)
        if (load->at.k[d] != (n && d == dims[0] ? 1 : 0))
            return false;
    out->bias = input_of(&c->e, load);
    out->bias_first = load->at.c;
    p->product->has_bias = true;
    return true;
}

/* ---- the plan ---- */

/* The result has the operands' type, or is what narrow operands are computed in. */
static bool types_fit(uint32_t dtype, uint32_t result)
{
    return is_float(dtype) &&
           (dtype == result || (kir_is_16_bit_float(dtype) && result == FRIT_F32));
}

static bool take(const struct contract *c, uint32_t coord, struct contract_product *out)
{
    const struct expr_node *a = linear_load(&c->e, c->a.node), *b = linear_load(&c->e, c->b.node);
    struct product_plan p = {.c = c, .out = &c->e.coords[coord], .product = &out->product};

    if (!a || !b || c->n_k == 0)
        return false;
    p.a = &a->at;
    p.b = &b->at;
    out->product.dtype = dtype_of(&c->e, a);
    if (dtype_of(&c->e, b) != out->product.dtype ||
        !types_fit(out->product.dtype, out->product.result))
        return false;
    out->a = input_of(&c->e, a);
    out->b = input_of(&c->e, b);
    out->a_first = a->at.c;
    out->b_first = b->at.c;
    return collect(&p) && plan_bias(c, &p, out);
}

/* ---- alignment ---- */

/* The largest power of two, up to 256, that divides all of these bytes. */
static uint32_t common_align(uint32_t align, int64_t bytes)
{
    while (align > 1 && bytes % align)
        align /= 2;
    return align;
}

static uint32_t operand_align(const struct contract *c, uint32_t align, uint32_t argument,
                              int64_t first, const int64_t *batch)
{
    const frit_arg_sig *arg = expr_arg(&c->e, argument);
    const int64_t each = (int64_t)frit_storage_bytes(arg->dtype, 1);

    align = common_align(align, arg->align_log2 < 8 ? 1 << arg->align_log2 : 256);
    align = common_align(align, first * each);
    for (uint32_t i = 0; i < KERNELS_BATCHES && batch; i++)
        align = common_align(align, batch[i] * each);
    return align;
}

static void find_align(const struct contract *c, const struct block_op *op,
                       struct contract_product *out)
{
    const struct block_value *result = &c->e.s->block->values[op->out[0]];
    struct kernels_product *p = &out->product;
    const int64_t each = (int64_t)frit_storage_bytes(p->result, 1);
    uint32_t align = 256;

    align = operand_align(c, align, out->a, out->a_first, p->a.batch);
    align = operand_align(c, align, out->b, out->b_first, p->b.batch);
    if (p->has_bias)
        align = operand_align(c, align, out->bias, out->bias_first, NULL);
    if (result->output != BLOCK_NONE)
        align = operand_align(c, align, c->e.s->block->n_inputs + result->output, 0, NULL);
    for (uint32_t i = 0; i < KERNELS_BATCHES; i++)
        align = common_align(align, p->c.batch[i] * each);
    p->align = align;
}

static frit_status plan(struct contract *c, const struct block_op *op, struct contract_product *out,
                        frit_err *err)
{
    int64_t dims[FRIT_MAX_RANK];
    struct space_expr linear;
    uint32_t coord;

    expr_dims(&c->e, op->out[0], dims);
    for (uint32_t d = 0; d < c->e.s->block->values[op->out[0]].rank; d++)
        if (dims[d] == 0)
            return fail(err, FRIT_UNSUPPORTED, "kernels: a product without elements");
    if (!contract_row_of(op->id)->plan(c, op))
        expr_fail(&c->e, FRIT_UNSUPPORTED);
    TRY(expr_status(&c->e, err));
    linear = space_linear(&c->root, dims);
    coord = expr_coord(&c->e, &linear);
    expr_settle(&c->e);
    TRY(expr_status(&c->e, err));
    out->product.result = c->e.s->block->values[op->out[0]].dtype;
    if (!take(c, coord, out))
        return fail(err, FRIT_UNSUPPORTED, "kernels: not a product of matrices in arguments");
    find_align(c, op, out);
    return FRIT_OK;
}

frit_status contract_product_plan(const struct sched *s, uint32_t op, struct contract_product *out,
                                  frit_err *err)
{
    struct contract c = {.a = {.node = BLOCK_NONE, .tag = CONTRACT_M},
                         .b = {.node = BLOCK_NONE, .tag = CONTRACT_N},
                         .bias = BLOCK_NONE};
    struct sched_numbers numbers = {0};
    struct kir_module module;
    struct sched own = *s;
    frit_status status;

    *out = (struct contract_product){0};
    kir_init(&module, "product"); /* nothing is emitted */
    own.module = &module;
    own.numbers = &numbers;
    expr_init(&c.e, &own);
    c.e.separate_tags = 1u << CONTRACT_K;
    status = plan(&c, &s->block->ops[op], out, err);
    expr_fini(&c.e);
    arena_fini(&numbers.arena);
    kir_fini(&module);
    return status;
}
