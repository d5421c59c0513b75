/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of plain arithmetic. */
#include "lower/rows.h"

static uint32_t two(const struct lower *l, enum kir_op op)
{
    return kir_emit(l->m, op, l->in[0], l->in[1], KIR_NONE);
}

uint32_t lower_add(const struct lower *l)
{
    return two(l, KIR_add);
}

uint32_t lower_sub(const struct lower *l)
{
    return two(l, KIR_sub);
}

uint32_t lower_mul(const struct lower *l)
{
    return two(l, KIR_mul);
}
