/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/op.h"

#include <string.h>

static uint32_t count_slots(const frit_slot_info *slots)
{
    uint32_t n = 0;

    while (slots[n].name)
        n++;
    return n;
}

const frit_op_info *op_known(const frit_op_desc *op)
{
    const frit_op_info *info = frit_op_info_at(op->id);

    if (!info || op->rev != info->rev || op->flags & FRIT_MUST_UNDERSTAND ||
        op->n_out != count_slots(info->out))
        return NULL;
    return info->in[0].role == FRIT_ROLE_MANY || op->n_in == count_slots(info->in) ? info : NULL;
}

static bool dtypes_fit(const frit_op_desc *op, const frit_operand *first, uint32_t n,
                       op_takes_dtype *takes, const void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        const frit_operand *operand = frit_operand_at(op, first, i);

        if (operand->kind != FRIT_OPERAND_ABSENT && !takes(ctx, operand->dtype))
            return false;
    }
    return true;
}

bool op_dtypes_fit(const frit_op_desc *op, op_takes_dtype *takes, const void *ctx)
{
    return dtypes_fit(op, op->in, op->n_in, takes, ctx) &&
           dtypes_fit(op, op->out, op->n_out, takes, ctx);
}

void op_supports(const frit_op_desc *ops, uint32_t count, uint32_t stride, uint64_t *bits,
                 bool (*runs)(const void *ctx, const frit_op_desc *op), const void *ctx)
{
    memset(bits, 0, (count + 63) / 64 * sizeof *bits);
    for (uint32_t i = 0; i < count; i++)
        if (runs(ctx, (const void *)((const char *)ops + (size_t)i * stride)))
            bits[i / 64] |= 1ull << i % 64;
}

void op_copy_attrs(const frit_op_desc *op, const frit_record_info *record, void *to)
{
    uint32_t given = 0;

    memset(to, 0, record->size);
    if (!op->attrs)
        return;
    memcpy(&given, op->attrs, sizeof given);
    memcpy(to, op->attrs, given < record->size ? given : record->size);
}
