/* SPDX-License-Identifier: Apache-2.0 */
/* Which types the instructions take whose lanes are independent, for tests of all of them. */
#ifndef TESTS_KERNELS_EMIT_ROW_TYPES_H
#define TESTS_KERNELS_EMIT_ROW_TYPES_H

#include <stdbool.h>

#include "ir/kir.h"

static inline bool row_takes(char letter, uint32_t type)
{
    bool integer = type == KIR_I32 || type == KIR_I64, real = type == KIR_F32 || type == KIR_F64;

    switch (letter) {
    case 'x':
        return true;
    case 'a':
        return integer || real;
    case 'n':
        return integer;
    case 'f':
        return real;
    case 'b':
        return type == KIR_B;
    case 'l':
        return !real;
    default:
        return false;
    }
}

/* The type of an instruction whose operand a has this one; KIR_VOID: there is none, or its lanes
 * are not independent. */
static inline uint32_t row_result(uint32_t op, uint32_t type)
{
    static const uint32_t same_bits[KIR_TYPES] = {0, 0, KIR_F32, KIR_F64, KIR_I32, KIR_I64};
    const struct kir_op_info *info = kir_op_info(op);

    if (!info->n || info->imm == KIR_IMM_ARG || info->imm == KIR_IMM_TILE ||
        info->imm == KIR_IMM_LANES || info->imm == KIR_IMM_NUMBER || info->imm == KIR_IMM_LOOP ||
        info->result == KIR_RESULT_NONE || op == KIR_first)
        return KIR_VOID;
    if (op == KIR_bits)
        return same_bits[type];
    if (op == KIR_mulhi || op == KIR_wrap)
        return type == KIR_I32 ? KIR_I32 : KIR_VOID;
    if (op == KIR_round || op == KIR_scale || op == KIR_dot2 || op == KIR_exp2)
        return type == KIR_F32 ? KIR_F32 : KIR_VOID;
    if (op == KIR_select)
        return type;
    if (!row_takes(info->operands[0], type))
        return KIR_VOID;
    if (info->result == KIR_RESULT_SAME)
        return type;
    return op >= KIR_i32 && op <= KIR_uf64 && info->type == type ? KIR_VOID : info->type;
}

/* Of operand i, where operand a has this type. */
static inline uint32_t row_operand(uint32_t op, uint32_t type, uint32_t i)
{
    return i > 0 && kir_op_info(op)->operands[i] == 'b' ? KIR_B : type;
}

#endif
