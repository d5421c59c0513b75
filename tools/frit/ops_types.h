/* SPDX-License-Identifier: Apache-2.0 */
/* How a device runs the ops of the table, per dtype.  One thread. */
#ifndef CLI_OPS_TYPES_H
#define CLI_OPS_TYPES_H

#include <stdbool.h>

#include <frit/frit.h>
#include <frit/op_table.h>

struct ops_types {
    bool takes[FRIT_DTYPE_LIMIT];   /* the op's first operand, or result, can have the dtype */
    uint32_t how[FRIT_DTYPE_LIMIT]; /* FRIT_SUPPORT_* */
    uint32_t usual;                 /* FRIT_SUPPORT_* of f32, or of the first supported dtype */
};

/* Queries the support of an op of a typical shape for each dtype; runs nothing.  False if out of
 * memory. */
bool ops_types_of(frit_device *device, const frit_op_info *row, struct ops_types *out);

/* "native" etc.; "-" for ops that do not run. */
const char *ops_support_name(uint32_t support);

/* "native f32; fallback f64 f16" */
void ops_types_show(const struct ops_types *types);

#endif
