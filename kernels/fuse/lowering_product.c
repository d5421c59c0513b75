/* SPDX-License-Identifier: Apache-2.0 */
/* A product by the vendor's library.  It is all of the block: see sched_contract_alone. */
#include "base/fail.h"
#include "fuse/lowering.h"
#include "kernels.h"
#include "lower/contract/contract_product.h"

static struct kernels_place place_of(const struct lowering *l, uint32_t argument, int64_t first,
                                     uint32_t dtype)
{
    return (struct kernels_place){l->program->arg_numbers[argument],
                                  (uint64_t)first * frit_storage_bytes(dtype, 1)};
}

/* The library writes the result without gaps. */
static frit_status check_result(const struct lowering *l, frit_err *err)
{
    const frit_arg_sig *result = frit_arg_sig_at(l->sig, l->sig->n_in);
    int64_t step = 1;

    for (uint32_t d = result->rank; d-- > 0; step *= result->dims[d])
        if (result->dims[d] > 1 && result->strides[d] != step)
            return fail(err, FRIT_UNSUPPORTED, "kernels: a product into memory with gaps");
    return FRIT_OK;
}

/* A product that may be reduced, but which the library does not reduce, is an exact one. */
static frit_status choose(const struct lowering *l, struct kernels_product_launch *launch,
                          frit_err *err)
{
    const struct kernels_device *device = l->program->device;
    frit_status st = FRIT_UNSUPPORTED;

    launch->product.is_reduced = l->is_reduced && launch->product.dtype == FRIT_F32;
    if (launch->product.is_reduced)
        st = device->product_plan(device->self, launch, err);
    if (st != FRIT_UNSUPPORTED)
        return st;
    launch->product.is_reduced = false;
    return device->product_plan(device->self, launch, err);
}

static frit_status add_product(struct lowering *l, const struct contract_product *plan,
                               frit_err *err)
{
    const struct kernels_device *device = l->program->device;
    const uint32_t dtype = plan->product.dtype;
    struct kernels_product_launch *launch = arena_alloc(&l->out->arena, sizeof(*launch));
    frit_status st;

    if (!launch)
        return fail_memory(err, sizeof(*launch));
    *launch = (struct kernels_product_launch){
        .product = plan->product,
        .a = place_of(l, plan->a, plan->a_first, dtype),
        .b = place_of(l, plan->b, plan->b_first, dtype),
        .c = place_of(l, l->program->block.n_inputs, 0, dtype),
        .workspace = {KERNELS_WORKSPACE, 0},
    };
    if (plan->product.has_bias)
        launch->bias = place_of(l, plan->bias, plan->bias_first, plan->product.result);
    TRY(choose(l, launch, err));
    l->out->workspace_bytes = launch->workspace_bytes;
    st = lowering_add_product(l, launch, err);
    if (st)
        device->product_release(device->self, launch->plan);
    return st;
}

frit_status lowering_product(struct lowering *l, frit_err *err)
{
    const struct block *block = &l->program->block;
    const struct sched s = {
        .block = block, .sig = l->sig, .target = l->target, .extents = l->extents};
    struct contract_product plan;

    TRY(contract_product_plan(&s, l->program->product, &plan, err));
    TRY(check_result(l, err));
    TRY(add_product(l, &plan, err));
    l->out->flops = 2 * (uint64_t)(plan.product.m * plan.product.n * plan.product.k *
                                   plan.product.batch[0] * plan.product.batch[1]);
    return FRIT_OK;
}
