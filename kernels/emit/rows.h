/* SPDX-License-Identifier: Apache-2.0 */
/* What rows.def needs beside an instruction.  Pure. */
#ifndef EMIT_ROWS_H
#define EMIT_ROWS_H

#include "ir/kir.h"

/* The `imm` that the expression of an instruction's row sees. */
static inline uint64_t rows_imm(const struct kir_inst *inst)
{
    return inst->op == KIR_round ? frit_dtype_info_of((uint32_t)inst->imm).fraction : inst->imm;
}

#endif
