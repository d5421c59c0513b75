/* SPDX-License-Identifier: Apache-2.0 */
#include "run/fuser.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "device/device.h"

enum { NO_VALUE = -2, SCALAR = -1, MAX_DEAD = 64 };

/* An op with the numbers of its values. */
struct taken {
    uint32_t op;
    int64_t a, b;
    int64_t out;
};

struct block {
    struct fusing *fusing;
    struct taken ops[RECIPE_OPS];
    uint32_t dead[MAX_DEAD];
    uint32_t n_ops, n_dead;
    bool closed;
};

static int64_t number_of(const frit_op_desc *op, uint32_t i)
{
    if (i >= op->n_in)
        return NO_VALUE;
    if (frit_operand_at(op, op->in, i)->kind != FRIT_OPERAND_TENSOR)
        return SCALAR;
    return frit_operand_at(op, op->in, i)->value;
}

static bool can_take(const struct block *block, const frit_op_desc *op)
{
    uint32_t most = block->fusing->most ? block->fusing->most : RECIPE_OPS;

    if (block->n_ops == most || block->n_dead + op->n_dead > MAX_DEAD)
        return false;
    return op->id == FRIT_OP_neg || op->id == FRIT_OP_exp || op->id == FRIT_OP_add ||
           op->id == FRIT_OP_mul || (op->id == driver_effect_op() && block->fusing->takes_effects);
}

static void fuser_push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    struct block *block = self;

    for (uint32_t i = 0; i < count && !block->closed; i++) {
        const frit_op_desc *op = (const void *)((const char *)ops + (size_t)i * stride);

        assert_int_not_equal(op_row(op->id)->cls, FRIT_CLASS_COLLECTIVE);
        if (!can_take(block, op)) {
            block->closed = true;
            return;
        }
        block->ops[block->n_ops++] = (struct taken){op->id, number_of(op, 0), number_of(op, 1),
                                                    frit_operand_at(op, op->out, 0)->value};
        for (uint32_t k = 0; k < op->n_dead; k++)
            block->dead[block->n_dead++] = op->dead[k];
    }
}

static void fuser_state(const void *self, frit_fuser_state *out)
{
    const struct block *block = self;

    out->open = !block->closed;
    out->ready = block->n_ops > 1;
    out->accepted = block->n_ops;
    out->quality = 900;
}

static void fuser_reset(void *self)
{
    struct block *block = self;

    block->n_ops = block->n_dead = 0;
    block->closed = false;
}

static frit_status fuser_clone(const void *self, void **out, frit_err *err)
{
    const struct block *from = self;
    struct block *block = malloc(sizeof(*block));

    *out = block;
    if (!block)
        return fail_memory(err, sizeof(*block));
    *block = *from;
    block->fusing->n_fusers++;
    return FRIT_OK;
}

static void fuser_destroy(void *self)
{
    struct block *block = self;

    if (!block)
        return;
    block->fusing->n_fusers--;
    free(block);
}

/* ---- programs ---- */

struct made {
    int64_t in[2 * RECIPE_OPS];
    uint32_t n_in;
};

static int find(const struct block *block, const struct made *made, int64_t value)
{
    if (value < 0)
        return (int)value;
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (block->ops[i].out == value)
            return (int)(made->n_in + i);
    }
    for (uint32_t i = 0; i < made->n_in; i++) {
        if (made->in[i] == value)
            return (int)i;
    }
    return NO_VALUE;
}

static void use(const struct block *block, struct made *made, int64_t value)
{
    if (find(block, made, value) == NO_VALUE && value >= 0)
        made->in[made->n_in++] = value;
}

static bool is_dead(const struct block *block, int64_t value)
{
    for (uint32_t i = 0; i < block->n_dead; i++) {
        if (block->dead[i] == value)
            return true;
    }
    return false;
}

static frit_status fuser_finish(void *self, frit_program *out, frit_err *err)
{
    struct block *block = self;
    struct fusing *fusing = block->fusing;
    struct made made = {.n_in = 0};
    struct recipe *recipe = &fusing->recipes[fusing->n_recipes];
    uint32_t n_out = 0;

    if (fusing->n_recipes == RECIPES)
        return fail(err, FRIT_INTERNAL, "no room for a program");
    fusing->n_recipes++;
    for (uint32_t i = 0; i < block->n_ops; i++) {
        use(block, &made, block->ops[i].a);
        use(block, &made, block->ops[i].b);
    }
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct taken *op = &block->ops[i];

        recipe->ops[i] =
            (struct driver_op){op->op, find(block, &made, op->a), find(block, &made, op->b)};
        if (!is_dead(block, op->out))
            recipe->out[n_out++] = (int)(made.n_in + i);
    }
    *out = driver_block(&fusing->driver, recipe->ops, block->n_ops, recipe->out, false);
    return FRIT_OK;
}

static const frit_fuser_table fuser_table = {.struct_size = sizeof(fuser_table),
                                             .clone = fuser_clone,
                                             .destroy = fuser_destroy,
                                             .reset = fuser_reset,
                                             .push = fuser_push,
                                             .state = fuser_state,
                                             .finish = fuser_finish};

/* ---- the device ---- */

void fusing_open(struct fusing *fusing)
{
    static const frit_fuser_device own = {.struct_size = sizeof(own), .same_plugin = 1};
    struct block *prototype = calloc(1, sizeof(*prototype));
    struct fuser *list = calloc(1, sizeof(*list));

    assert_non_null(prototype);
    assert_non_null(list);
    prototype->fusing = fusing;
    fusing->n_fusers = 1;
    *list = (struct fuser){
        .table = &fuser_table, .prototype = prototype, .name = "test", .device = &own};
    fusing->device = driver_device(&fusing->driver, 100);
    fusing->device->config.fusion = true;
    fusing->device->config.max_blocks = 5;
    fusing->device->fusers->list = list;
    fusing->device->fusers->count = fusing->device->fusers->capacity = 1;
}

void fusing_close(struct fusing *fusing)
{
    device_close(fusing->device);
    assert_int_equal(fusing->n_fusers, 0);
    assert_int_equal(fusing->driver.programs_alive, 0);
    assert_int_equal(fusing->driver.allocated, 0);
}
