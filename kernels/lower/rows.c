/* SPDX-License-Identifier: Apache-2.0 */
/* The tables from op to function, derived from rows.def. */
#include "lower/rows.h"

const struct lower_row *lower_row_of(uint32_t op)
{
    static const struct lower_row rows[FRIT_OP_LIMIT] = {
#define LOWER_ROW(name, RESULT, AT) [FRIT_OP_##name] = {lower_##name, LOWER_##RESULT, LOWER_##AT},
#include "lower/rows.def"
    };

    return op < FRIT_OP_LIMIT && rows[op].fn ? &rows[op] : NULL;
}

const struct view_row *view_row_of(uint32_t op)
{
    static const struct view_row rows[FRIT_OP_LIMIT] = {
#define LOWER_VIEW(name, COUNT) [FRIT_OP_##name] = {view_##name, VIEW_##COUNT},
#include "lower/rows.def"
    };

    return op < FRIT_OP_LIMIT && rows[op].fn ? &rows[op] : NULL;
}

uint32_t lower_round(struct kir_module *m, uint32_t dtype, uint32_t value)
{
    int64_t bits = frit_dtype_bits(dtype);

    switch (dtype) {
    case FRIT_F16:
    case FRIT_BF16:
        return kir_emit_imm(m, KIR_round, dtype, value, KIR_NONE, KIR_NONE);
    case FRIT_U8:
    case FRIT_U16:
        bits = -bits; /* fall through */
    case FRIT_I8:
    case FRIT_I16:
        return kir_emit_imm(m, KIR_wrap, (uint64_t)bits, value, KIR_NONE, KIR_NONE);
    default:
        return value;
    }
}
