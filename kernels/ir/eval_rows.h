/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose lanes are independent, over all lanes; see eval.def.  A value is held as 64
 * bits per lane: B as 0 or 1, types of 32 bits in the low ones. */
#ifndef KIR_EVAL_ROWS_H
#define KIR_EVAL_ROWS_H

#include <stdint.h>

struct eval_lanes {
    uint32_t count;
    uint64_t imm;
    uint64_t *out;
    const uint64_t *a, *b, *c; /* operands that the instruction lacks: any readable */
};

typedef void (*eval_row_fn)(const struct eval_lanes *lanes);

/* For an instruction whose first operand is of `type`; NULL: the lanes are not independent, or the
 * instruction is a leaf, of memory or control. */
eval_row_fn eval_row(uint32_t op, uint32_t type);

#endif
