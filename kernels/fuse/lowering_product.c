/* SPDX-License-Identifier: Apache-2.0 */
/* A product by the vendor's library, and the rest of the block as a map over its result.  The result
 * is an output of the launch if it is one of the block; else it lies at the start of the workspace,
 * before the library's own. */
#include <string.h>

#include "base/fail.h"
#include "fuse/lowering.h"
#include "kernels.h"
#include "lower/schedule/contract_product.h"

enum { ALIGN = 256, ALIGN_LOG2 = 8 /* of the result and of the library's workspace */ };

struct product_lowering {
    struct lowering *l;
    struct contract_product plan;
    struct component rest;
    uint32_t result;   /* value of the block */
    frit_arg_sig sig;  /* of the result */
    uint64_t bytes;    /* of the result in the workspace; 0: it is an output */
    struct kernels_product_launch *launch;
};

static uint32_t result_output(const struct product_lowering *p)
{
    return p->l->program->block.values[p->result].output;
}

static void describe_result(struct product_lowering *p)
{
    const struct block_value *value = &p->l->program->block.values[p->result];
    int64_t step = 1;

    p->sig = (frit_arg_sig){
        .dtype = value->dtype, .rank = value->rank, .align_log2 = ALIGN_LOG2};
    for (uint32_t d = value->rank; d-- > 0;) {
        p->sig.dims[d] = p->l->extents[value->extent[d]];
        p->sig.strides[d] = step;
        step *= p->sig.dims[d];
    }
    if (result_output(p) == BLOCK_NONE)
        p->bytes =
            ((uint64_t)frit_storage_bytes(value->dtype, step) + ALIGN - 1) / ALIGN * ALIGN;
}

/* The library writes the result without gaps. */
static frit_status check_result(const struct product_lowering *p, frit_err *err)
{
    const frit_signature *sig = p->l->sig;
    const frit_arg_sig *given;

    if (p->bytes)
        return FRIT_OK;
    given = &sig->args[sig->n_in + result_output(p)]; /* those of a lowering have no other stride */
    for (uint32_t d = 0; d < given->rank; d++)
        if (given->dims[d] > 1 && given->strides[d] != p->sig.strides[d])
            return fail(err, FRIT_UNSUPPORTED, "kernels: a product into memory with gaps");
    return FRIT_OK;
}

static struct kernels_place place_of_input(const struct product_lowering *p, uint32_t input,
                                           int64_t first)
{
    const uint32_t dtype = p->plan.product.dtype;

    return (struct kernels_place){p->l->program->arg_numbers[input],
                                  (uint64_t)first * frit_storage_bytes(dtype, 1)};
}

/* Plans the product and adds its body. */
static frit_status add_product(struct product_lowering *p, frit_err *err)
{
    struct lowering *l = p->l;
    const struct program *program = l->program;
    const struct kernels_device *device = program->device;
    struct kernels_product_launch *launch = arena_alloc(&l->out->arena, sizeof(*launch));
    uint64_t workspace = 0;
    frit_status st;

    if (!launch)
        return fail_memory(err, sizeof(*launch));
    *launch = (struct kernels_product_launch){.product = p->plan.product};
    launch->a = place_of_input(p, p->plan.a, p->plan.a_first);
    launch->b = place_of_input(p, p->plan.b, p->plan.b_first);
    if (p->plan.product.has_bias)
        launch->bias = place_of_input(p, p->plan.bias, p->plan.bias_first);
    launch->c.arg = KERNELS_WORKSPACE;
    if (!p->bytes)
        launch->c.arg = program->arg_numbers[program->block.n_inputs + result_output(p)];
    launch->workspace = (struct kernels_place){KERNELS_WORKSPACE, p->bytes};
    TRY(device->product_plan(device->self, &launch->product, &launch->plan, &workspace, err));
    launch->workspace_bytes = workspace;
    l->out->workspace_bytes = p->bytes + workspace;
    st = lowering_add_product(l, launch, &launch->product, sizeof(launch->product), err);
    if (st)
        device->product_release(device->self, launch->plan);
    return st;
}

/* ---- the rest ---- */

static frit_status number_args(struct product_lowering *p, struct body *body, frit_err *err)
{
    const struct program *program = p->l->program;
    const uint32_t n = p->rest.block.n_inputs + p->rest.block.n_outputs;
    uint32_t result = KERNELS_WORKSPACE;

    if (!p->bytes)
        result = program->arg_numbers[program->block.n_inputs + result_output(p)];
    body->args = arena_array(&p->l->out->arena, n + 1u, sizeof(*body->args));
    if (!body->args)
        return fail_memory(err, n * sizeof(*body->args));
    for (uint32_t i = 0; i < n; i++)
        body->args[i] = p->rest.args[i] == BLOCK_NONE ? result
                                                      : program->arg_numbers[p->rest.args[i]];
    return FRIT_OK;
}

static frit_status copy_numbers(struct product_lowering *p, const struct sched_numbers *n,
                                frit_err *err)
{
    struct prepared *to = p->l->out;

    to->n_words = n->n_words;
    to->words = arena_array(&to->arena, n->n_words + 1u, sizeof(*to->words));
    to->late = arena_array(&to->arena, n->n_late + 1u, sizeof(*to->late));
    if (!to->words || !to->late)
        return fail_memory(err, n->n_words * sizeof(*to->words));
    if (n->n_words)
        memcpy(to->words, n->words, n->n_words * sizeof(*to->words));
    lowering_copy_late(to, &p->rest, n->late, n->n_late, 0);
    to->bytes += n->bytes;
    to->flops += n->flops;
    return FRIT_OK;
}

/* Outputs may take the memory of inputs that the map reads element by element: the product has run
 * by then.  Inputs are those that the block has, without the result. */
static frit_status add_aliases(struct product_lowering *p, const struct sched_numbers *n,
                               frit_err *err)
{
    const struct component *rest = &p->rest;
    uint64_t known = 0;

    for (uint32_t i = 0; i < rest->block.n_inputs && i < 64; i++)
        if (rest->args[i] != BLOCK_NONE)
            known |= 1ull << i;
    for (uint32_t i = 0; i < rest->block.n_outputs; i++) {
        const uint32_t output =
            rest->args[rest->block.n_inputs + i] - p->l->program->block.n_inputs;

        TRY(lowering_add_alias(p->l, n->alias[i] & known, rest->args,
                               lowering_output(p->l, output), err));
    }
    return FRIT_OK;
}

static frit_status finish_rest(struct product_lowering *p, const struct sched *s, frit_err *err)
{
    struct body *body;

    if (s->numbers->workspace_bytes) {
        kir_fini(s->module);
        return fail(err, FRIT_UNSUPPORTED, "kernels: what follows the product needs a workspace");
    }
    TRY(lowering_add_body(p->l, s, &body, err));
    body->n_spaces = 1;
    memcpy(body->grid, s->numbers->grid, sizeof(body->grid));
    TRY(number_args(p, body, err));
    TRY(copy_numbers(p, s->numbers, err));
    return add_aliases(p, s->numbers, err);
}

static frit_status lower_rest(struct product_lowering *p, frit_err *err)
{
    struct lowering *l = p->l;
    frit_signature sig;
    struct kir_module module;
    struct sched_numbers numbers = {0};
    struct sched s = {
        .block = &p->rest.block, .sig = &sig, .module = &module, .numbers = &numbers};
    frit_status st;

    TRY(lowering_component_sig(l, &p->rest, &p->sig, &sig, err));
    numbers.arena = l->arena;
    st = lowering_build(l, &sched_map, &s, err);
    l->arena = numbers.arena;
    return st ? st : finish_rest(p, &s, err);
}

frit_status lowering_product(struct lowering *l, frit_err *err)
{
    const struct block *block = &l->program->block;
    const struct sched s = {.block = block,
                            .sig = l->sig,
                            .target = &l->program->device->target,
                            .extents = l->extents};
    struct product_lowering p = {.l = l, .result = block->ops[l->program->product].out[0]};

    TRY(contract_product_plan(&s, l->program->product, &p.plan, err));
    TRY(component_without(block, l->program->product, &l->arena, &p.rest, err));
    describe_result(&p);
    TRY(check_result(&p, err));
    TRY(add_product(&p, err));
    l->out->flops = 2 * (uint64_t)(p.plan.product.m * p.plan.product.n * p.plan.product.k *
                                   p.plan.product.batch[0] * p.plan.product.batch[1]);
    return p.rest.block.n_ops ? lower_rest(&p, err) : FRIT_OK;
}
