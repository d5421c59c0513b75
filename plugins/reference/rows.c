/* SPDX-License-Identifier: Apache-2.0 */
/* The table from op to function, derived from rows.def. */
#include "rows.h"

const struct row *row_of(uint32_t op)
{
    static const struct row rows[FRIT_OP_LIMIT] = {
#define REF_ROW(name, needs) [FRIT_OP_##name] = {#name, ref_##name, ROW_##needs},
#include "rows.def"
    };

    return op < FRIT_OP_LIMIT && rows[op].run ? &rows[op] : NULL;
}
