/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ops as a driver with a table of rows reads them: which ones it runs, and their attributes.
 * Threads: any. */
#ifndef UTIL_OP_H
#define UTIL_OP_H

#include <stdbool.h>

#include <frit/op_table.h>
#include <frit/program.h>

/* Whether the driver takes operands and outputs of an element type. */
typedef bool op_takes_dtype(const void *ctx, uint32_t dtype);

/* The row of ops.def.  NULL where these headers do not know the op in this revision or with these
 * flags, or where it has another number of operands than its row. */
const frit_op_info *op_known(const frit_op_desc *op);
/* Whether `takes` holds for all operands and outputs that are there. */
bool op_dtypes_fit(const frit_op_desc *op, op_takes_dtype *takes, const void *ctx);

/* The slot `supports` of frit.backend/1: sets the bits of the ops for which `runs` holds. */
void op_supports(const frit_op_desc *ops, uint32_t count, uint32_t stride, uint64_t *bits,
                 bool (*runs)(const void *ctx, const frit_op_desc *op), const void *ctx);

/* Copies the op's attributes to the size that these headers know; a shorter record is filled up
 * with zeros. */
void op_copy_attrs(const frit_op_desc *op, const frit_record_info *record, void *to);

#endif
