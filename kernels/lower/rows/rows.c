/* SPDX-License-Identifier: Apache-2.0 */
/* The tables from op to function, derived from rows.def, and what is common to rows. */
#include "lower/rows/rows.h"

const struct lower_row *lower_row_of(uint32_t op)
{
    static const struct lower_row rows[FRIT_OP_LIMIT] = {
#define LOWER_ROW(name, RESULT, AT, SCALARS, COST) \
    [FRIT_OP_##name] = {lower_##name, LOWER_##RESULT, LOWER_##AT, LOWER_##SCALARS},
#include "lower/rows/rows.def"
    };

    return op < FRIT_OP_LIMIT && rows[op].fn ? &rows[op] : NULL;
}

const struct view_row *view_row_of(uint32_t op)
{
    static const struct view_row rows[FRIT_OP_LIMIT] = {
#define LOWER_VIEW(name, COUNT) [FRIT_OP_##name] = {view_##name, VIEW_##COUNT},
#include "lower/rows/rows.def"
    };

    return op < FRIT_OP_LIMIT && rows[op].fn ? &rows[op] : NULL;
}

pick_fn pick_row_of(uint32_t op)
{
    static const pick_fn rows[FRIT_OP_LIMIT] = {
#define LOWER_PICK(name) [FRIT_OP_##name] = pick_##name,
#include "lower/rows/rows.def"
    };

    return op < FRIT_OP_LIMIT ? rows[op] : NULL;
}

enum join_axis join_row_of(uint32_t op)
{
    static const enum join_axis rows[FRIT_OP_LIMIT] = {
#define LOWER_JOIN(name, AXIS) [FRIT_OP_##name] = JOIN_##AXIS,
#include "lower/rows/rows.def"
    };

    return op < FRIT_OP_LIMIT ? rows[op] : JOIN_NONE;
}

const struct part_row *part_row_of(uint32_t op)
{
    static const struct part_row rows[FRIT_OP_LIMIT] = {
#define LOWER_PART(name, part, rest) [FRIT_OP_##name] = {part_##name, part, rest},
#include "lower/rows/rows.def"
    };

    return op < FRIT_OP_LIMIT && rows[op].fn ? &rows[op] : NULL;
}

bool lower_is_float(uint32_t dtype)
{
    return kir_type_of(dtype) == KIR_F32 || kir_type_of(dtype) == KIR_F64;
}

bool lower_is_unsigned(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_UINT;
}

uint32_t lower_bits(uint32_t dtype)
{
    return 8 * (uint32_t)frit_storage_bytes(dtype, 1);
}

uint32_t lower_fit(struct kir_module *m, uint32_t dtype, uint32_t value)
{
    int64_t bits = lower_bits(dtype);

    if (kir_is_16_bit_float(dtype))
        return kir_emit_imm(m, KIR_round, dtype, value, KIR_NONE, KIR_NONE);
    if (kir_type_of(dtype) != KIR_I32 || bits == 32)
        return value;
    return kir_emit_imm(m, KIR_wrap, (uint64_t)(lower_is_unsigned(dtype) ? -bits : bits), value,
                        KIR_NONE, KIR_NONE);
}

uint32_t lower_const(struct kir_module *m, uint32_t dtype, double number)
{
    enum kir_type type = kir_type_of(dtype);

    if (type == KIR_B)
        return kir_const_b(m, number != 0);
    return lower_is_float(dtype) ? kir_const_f(m, type, number)
                                 : kir_const_i(m, type, (int64_t)number);
}

uint32_t lower_less(struct kir_module *m, uint32_t dtype, uint32_t a, uint32_t b)
{
    if (dtype == FRIT_BOOL)
        return kir_binary(m, KIR_and, kir_unary(m, KIR_not, a), b);
    return kir_binary(m, lower_is_unsigned(dtype) ? KIR_ult : KIR_lt, a, b);
}

/* The instruction of the dtype's kind. */
static uint32_t by_kind(struct kir_module *m, uint32_t dtype, const enum kir_op ops[4], uint32_t a,
                        uint32_t b)
{
    uint32_t kind = lower_is_float(dtype) ? 0
                    : dtype == FRIT_BOOL  ? 3
                                          : lower_is_unsigned(dtype) + 1;

    return kir_binary(m, ops[kind], a, b);
}

uint32_t lower_min(struct kir_module *m, uint32_t dtype, uint32_t a, uint32_t b)
{
    static const enum kir_op ops[4] = {KIR_fmin, KIR_smin, KIR_umin, KIR_and};

    return by_kind(m, dtype, ops, a, b);
}

uint32_t lower_max(struct kir_module *m, uint32_t dtype, uint32_t a, uint32_t b)
{
    static const enum kir_op ops[4] = {KIR_fmax, KIR_smax, KIR_umax, KIR_or};

    return by_kind(m, dtype, ops, a, b);
}

bool lower_is_cheap(uint32_t op)
{
    static const uint32_t cheap[] = {
        FRIT_OP_copy,     FRIT_OP_cast,    FRIT_OP_full,      FRIT_OP_zeros,   FRIT_OP_ones,
        FRIT_OP_empty,    FRIT_OP_abs,     FRIT_OP_neg,       FRIT_OP_add,     FRIT_OP_sub,
        FRIT_OP_mul,      FRIT_OP_maximum, FRIT_OP_minimum,   FRIT_OP_square,  FRIT_OP_relu,
        FRIT_OP_clamp,    FRIT_OP_where,   FRIT_OP_mask_fill, FRIT_OP_reshape, FRIT_OP_permute,
        FRIT_OP_expand,   FRIT_OP_flip,    FRIT_OP_unfold,    FRIT_OP_squeeze, FRIT_OP_unsqueeze,
        FRIT_OP_transpose};

    for (uint32_t i = 0; i < sizeof(cheap) / sizeof(cheap[0]); i++)
        if (cheap[i] == op)
            return true;
    return false;
}
