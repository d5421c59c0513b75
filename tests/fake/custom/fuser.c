/* SPDX-License-Identifier: Apache-2.0 */
/* A fuser of blocks of the driver's ops, custom ones among them. */
#include <string.h>

#include "custom.h"

struct made {
    uint32_t value; /* number in the ops that were pushed */
    bool dies;
};

struct block {
    const struct fake *fake;
    bool closed;
    struct recipe recipe; /* outputs and n_args are settled by finish */
    struct made made[MAX_NODES];
    uint32_t inputs[MAX_PLACES]; /* values */
    uint32_t n_inputs, n_scalars;
};

static frit_status prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    const struct fake *fake = instance;
    struct block *block;

    (void)stride;
    *count = device->same_plugin && capacity;
    if (!*count)
        return FRIT_OK;
    block = fake->core->mem_alloc(fake->host->self, sizeof(*block), 64);
    if (!block)
        return fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory for a fuser");
    *block = (struct block){.fake = fake};
    out->version = 1;
    out->name = FRIT_STR("map");
    out->prototype = block;
    return FRIT_OK;
}

static frit_status clone(const void *fuser, void **out, frit_err *err)
{
    const struct block *from = fuser;
    struct block *block = from->fake->core->mem_alloc(from->fake->host->self, sizeof(*block), 64);

    if (!block)
        return fake_fail(from->fake, err, FRIT_NO_HOST_MEMORY, "no memory for a fuser");
    *block = *from;
    *out = block;
    return FRIT_OK;
}

static void destroy(void *fuser)
{
    const struct block *block = fuser;

    if (block)
        block->fake->core->mem_free(block->fake->host->self, fuser);
}

static void reset(void *fuser)
{
    struct block *block = fuser;

    *block = (struct block){.fake = block->fake};
}

static struct place place_of(struct block *block, uint32_t value)
{
    for (uint32_t i = block->recipe.n_nodes; i-- > 0;)
        if (block->made[i].value == value)
            return (struct place){KIND_NODE, i};
    for (uint32_t i = 0; i < block->n_inputs; i++)
        if (block->inputs[i] == value)
            return (struct place){KIND_ARG, i};
    block->inputs[block->n_inputs] = value;
    return (struct place){KIND_ARG, block->n_inputs++};
}

/* No op that makes nothing: the number of elements comes from an argument all the same. */
static bool takes(const struct block *block, const frit_op_desc *op)
{
    return !block->closed && block->recipe.n_nodes < MAX_NODES && what_of(op) &&
           what_of(op) != WHAT_COPY && op->n_out == 1;
}

static void push_one(struct block *block, const frit_op_desc *op)
{
    uint32_t at = block->recipe.n_nodes;
    struct node *node = &block->recipe.nodes[at];

    if (!takes(block, op)) {
        block->closed = true;
        return;
    }
    node->what = what_of(op);
    node->first_scalar = block->n_scalars;
    block->n_scalars += scalars_of(node->what);
    for (uint32_t i = 0; i < op->n_in; i++)
        node->in[i] = frit_operand_at(op, op->in, i)->kind == FRIT_OPERAND_TENSOR
                          ? place_of(block, frit_operand_at(op, op->in, i)->value)
                          : (struct place){KIND_SCALAR, node->first_scalar};
    block->made[at].value = frit_operand_at(op, op->out, 0)->value;
    block->recipe.n_nodes++;
    for (uint32_t d = 0; d < op->n_dead; d++)
        for (uint32_t i = 0; i <= at; i++)
            block->made[i].dies = block->made[i].dies || block->made[i].value == op->dead[d];
}

static void push(void *fuser, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    for (uint32_t i = 0; i < count; i++)
        push_one(fuser,
                 (const frit_op_desc *)(const void *)((const char *)ops + (size_t)stride * i));
}

static void state(const void *fuser, frit_fuser_state *out)
{
    const struct block *block = fuser;

    out->open = !block->closed;
    out->accepted = block->recipe.n_nodes;
    out->ready = out->accepted > 0;
    out->quality = 900;
}

static void settle(struct block *block)
{
    block->recipe.n_args = block->n_inputs;
    for (uint32_t i = 0; i < block->recipe.n_nodes; i++)
        block->recipe.nodes[i].stored = block->made[i].dies ? 0 : ++block->recipe.n_args;
}

static frit_status finish(void *fuser, frit_program *out, frit_err *err)
{
    struct block *block = fuser;

    settle(block);
    return program_make(block->fake, &block->recipe, out, err);
}

static frit_status from_state(void *instance, const frit_fuser_device *device, frit_str name,
                              const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                              const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    struct block block = {.fake = instance};

    (void)device;
    (void)name;
    push(&block, ops, n_ops, op_stride);
    settle(&block);
    if (block.recipe.n_nodes != n_ops || n_bytes != sizeof(block.recipe) ||
        memcmp(&block.recipe, bytes, sizeof(block.recipe)) != 0)
        return fake_fail(instance, err, FRIT_INCOMPATIBLE, "no recipe of these ops");
    return program_make(instance, &block.recipe, out, err);
}

const frit_fuser_table custom_fusers = {.struct_size = sizeof(custom_fusers),
                                        .prototypes = prototypes,
                                        .clone = clone,
                                        .destroy = destroy,
                                        .reset = reset,
                                        .push = push,
                                        .state = state,
                                        .finish = finish,
                                        .from_state = from_state};
