/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops.  Their arguments are the row's operands, then its outputs; scalar and
 * absent operands and outputs that nobody wants keep their places, which the block does not know.
 */
#include <string.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "fuse/program.h"

/* The op as the only one of an open block, with all its outputs alive. */
static frit_status push_op(struct block *block, const frit_op_desc *op, frit_err *err)
{
    frit_op_desc alone = *op;

    alone.n_dead = 0;
    alone.dead = NULL;
    return block_push(block, &alone, err);
}

static bool types_fit(const struct kir_target *target, const frit_op_desc *op,
                      const frit_operand *first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const frit_operand *operand =
            (const frit_operand *)(const void *)((const char *)first +
                                                 (size_t)i * op->operand_stride);
        enum kir_type type =
            operand->kind == FRIT_OPERAND_ABSENT ? KIR_VOID : kir_type_of(operand->dtype);

        if ((type == KIR_F64 && !target->f64) || (type == KIR_I64 && !target->i64))
            return false;
    }
    return true;
}

/* Words of the random generator are 64 bits wide. */
bool op_types_fit(const struct kir_target *target, const frit_op_desc *op)
{
    return types_fit(target, op, op->in, op->n_in) && types_fit(target, op, op->out, op->n_out) &&
           (!op->n_extra || target->i64);
}

/* Whether a schedule takes it. */
static frit_status has_schedule(const frit_op_desc *op, bool *out, frit_err *err)
{
    struct block block;
    frit_status st;

    *out = false;
    block_init(&block);
    st = push_op(&block, op, NULL);
    for (uint32_t i = 0; i < n_schedules && !st && !*out; i++) {
        uint32_t covered;
        bool open;

        st = match_block(schedules[i], &block, &covered, &open, err);
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
            TRY(has_schedule(op, &has, err));
        if (has)
            bits[i / 64] |= 1ull << i % 64;
    }
    return FRIT_OK;
}

static uint32_t place_of_input(const struct block_op *op, uint32_t value)
{
    uint32_t i = 0;

    while (op->in[i].kind != FRIT_OPERAND_TENSOR || op->in[i].value != value)
        i++;
    return i;
}

static uint32_t place_of_output(const struct block_op *op, uint32_t value)
{
    uint32_t i = 0;

    while (op->out[i] != value)
        i++;
    return op->n_in + i;
}

static void place_operands(struct program *p)
{
    const struct block *b = &p->block;
    const struct block_op *op = &b->ops[0];

    p->n_in = op->n_in;
    p->n_out = op->n_out;
    for (uint32_t i = 0; i < b->n_inputs; i++)
        p->places[i] = place_of_input(op, b->inputs[i]);
    for (uint32_t i = 0; i < b->n_outputs; i++)
        p->places[b->n_inputs + i] = place_of_output(op, b->outputs[i]);
}

frit_status kernels_op(const struct kernels_device *device, const frit_op_desc *op,
                       frit_program *out, frit_err *err)
{
    const frit_op_info *row = frit_op_info_at(op->id);
    struct program *program;
    struct block block;
    frit_status st;

    if (!row)
        return fail(err, FRIT_UNSUPPORTED, "op %u is not known here", op->id);
    if (!op_types_fit(&device->target, op))
        return fail(err, FRIT_UNSUPPORTED, "%s: the device lacks a type of 64 bits", row->name);
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
    place_operands(program);
    program->name = row->name;
    out->table = &program_of_op;
    out->self = program;
    return FRIT_OK;
}
