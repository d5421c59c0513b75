/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/rows/cost.h"

#include <frit/op_table.h>

enum { ACCESS = 8, LOOP = 64 };

uint32_t lower_cost(uint32_t op)
{
    static const uint32_t costs[FRIT_OP_LIMIT] = {
#define LOWER_ROW(name, RESULT, AT, SCALARS, COST) [FRIT_OP_##name] = (COST),
#define LOWER_VIEW(name, COUNT)                    [FRIT_OP_##name] = ACCESS,
#define LOWER_PICK(name)                           [FRIT_OP_##name] = ACCESS,
#define LOWER_JOIN(name, AXIS)                     [FRIT_OP_##name] = ACCESS,
#define LOWER_PART(name, part, rest)               [FRIT_OP_##name] = ACCESS,
#include "lower/rows/rows.def"
    };

    return op < FRIT_OP_LIMIT && costs[op] ? costs[op] : LOOP;
}
