/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops.  Their arguments are all operands of the op, then all its outputs.
 * Scalar and absent operands and unused outputs have an argument number too, although they are no
 * inputs or outputs of the block. */
#include "fuse/op.h"

#include <string.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "fuse/program.h"
#include "kernels.h"

/* Pushes the op as the only one, with all its outputs live. */
static frit_status push_op(struct block *block, const frit_op_desc *op, frit_err *err)
{
    frit_op_desc single = *op;

    single.n_dead = 0;
    single.dead = NULL;
    return block_push(block, &single, err);
}

static bool types_fit(const struct kir_target *target, const frit_op_desc *op,
                      const frit_operand *first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const frit_operand *operand = frit_operand_at(op, first, i);
        enum kir_type type =
            operand->kind == FRIT_OPERAND_ABSENT ? KIR_VOID : kir_type_of(operand->dtype);

        if ((type == KIR_F64 && !target->f64) || (type == KIR_I64 && !target->i64))
            return false;
    }
    return true;
}

/* Seed and counter of random ops are 64-bit. */
bool op_types_fit(const struct kir_target *target, const frit_op_desc *op)
{
    return types_fit(target, op, op->in, op->n_in) && types_fit(target, op, op->out, op->n_out) &&
           (!op->n_extra || target->i64);
}

/* Whether a schedule accepts the op. */
static frit_status has_schedule(const struct kir_target *target, const frit_op_desc *op, bool *out,
                                frit_err *err)
{
    struct block block;
    frit_status st;

    *out = false;
    block_init(&block);
    st = push_op(&block, op, NULL);
    for (uint32_t i = 0; i < n_schedules && !st && !*out; i++) {
        uint32_t covered;
        bool open;

        st = match_block(schedules[i], target, &block, &covered, &open, err);
        *out = covered == 1;
    }
    block_fini(&block);
    return st == FRIT_NO_HOST_MEMORY ? fail_memory(err, sizeof(block)) : FRIT_OK;
}

frit_status kernels_supports(const struct kernels_device *device, const frit_op_desc *ops,
                             uint32_t count, uint32_t stride, uint64_t *bits, frit_err *err)
{
    memset(bits, 0, (count + 63) / 64 * sizeof(*bits));
    for (uint32_t i = 0; i < count; i++) {
        const frit_op_desc *op =
            (const frit_op_desc *)(const void *)((const char *)ops + (size_t)i * stride);
        bool has = op_types_fit(&device->target, op);

        if (has)
            TRY(has_schedule(&device->target, op, &has, err));
        if (has)
            bits[i / 64] |= 1ull << i % 64;
    }
    return FRIT_OK;
}

static uint32_t arg_of_input(const struct block_op *op, uint32_t value)
{
    uint32_t i = 0;

    while (op->in[i].kind != FRIT_OPERAND_TENSOR || op->in[i].value != value)
        i++;
    return i;
}

static uint32_t arg_of_output(const struct block_op *op, uint32_t value)
{
    uint32_t i = 0;

    while (op->out[i] != value)
        i++;
    return op->n_in + i;
}

static void number_args(struct program *p)
{
    const struct block *b = &p->block;
    const struct block_op *op = &b->ops[0];

    p->n_in = op->n_in;
    p->n_out = op->n_out;
    for (uint32_t i = 0; i < b->n_inputs; i++)
        p->arg_numbers[i] = arg_of_input(op, b->inputs[i]);
    for (uint32_t i = 0; i < b->n_outputs; i++)
        p->arg_numbers[b->n_inputs + i] = arg_of_output(op, b->outputs[i]);
}

frit_status kernels_op(const struct kernels_device *device, const frit_op_desc *op,
                       frit_program *out, frit_err *err)
{
    const frit_op_info *row = frit_op_info_at(op->id);
    struct program *program;
    struct block block;
    frit_status st;

    if (!row)
        return fail(err, FRIT_UNSUPPORTED, "op %u is not supported", op->id);
    if (!op_types_fit(&device->target, op))
        return fail(err, FRIT_UNSUPPORTED, "%s: the device lacks a 64-bit type", row->name);
    block_init(&block);
    st = push_op(&block, op, err);
    if (!st)
        st = block_close(&block, 1, err);
    if (st) {
        block_fini(&block);
        return st;
    }
    st = program_create(device, NULL, &block, &program, err);
    if (st == FRIT_UNSUPPORTED)
        fail_context(err, "%s", row->name);
    if (st)
        return st;
    number_args(program);
    program->name = row->name;
    out->table = &program_of_op;
    out->self = program;
    return FRIT_OK;
}
