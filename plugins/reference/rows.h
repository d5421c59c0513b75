/* SPDX-License-Identifier: Apache-2.0 */
/* The rows this driver runs, by op id. */
#ifndef ROWS_H
#define ROWS_H

#include <frit/op.h>

#include "call.h"

#define ROW_NOTHING 0x0u
#define ROW_INPLACE 0x1u
#define ROW_WIDE    0x2u
#define ROW_LINES   0x4u
#define ROW_PATHS   0x8u

struct row {
    const char *name;
    void (*run)(const struct call *call);
    uint32_t needs; /* ROW_* */
};

/* NULL for an op that is not in rows.def. */
const struct row *row_of(uint32_t op);

/* The functions, one per row: ref_add and so on. */
#define REF_ROW(name, needs) void ref_##name(const struct call *call);
#include "rows.def"

#endif
