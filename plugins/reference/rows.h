/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows.def: for each op that this driver runs, its function and what that needs. */
#ifndef ROWS_H
#define ROWS_H

#include <frit/op.h>

#include "call.h"

/* See rows.def. */
#define ROW_NOTHING   0x0u
#define ROW_INPLACE   0x1u
#define ROW_WIDE_SUMS 0x2u
#define ROW_SORT_LINE 0x4u
#define ROW_CTC_PATHS 0x8u

struct row {
    const char *name;
    void (*run)(const struct call *call);
    uint32_t needs; /* ROW_* */
};

/* By op id; NULL for an op that is not in rows.def. */
const struct row *row_of(uint32_t op);

/* The functions, one per row: ref_add and so on. */
#define REF_ROW(name, needs) void ref_##name(const struct call *call);
#include "rows.def"

#endif
