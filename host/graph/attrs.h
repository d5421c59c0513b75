/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute records, whatever their fields: copying and the checks that need no operand. */
#ifndef GRAPH_ATTRS_H
#define GRAPH_ATTRS_H

#include <frit/custom.h>

#include "graph/op.h"

/* Room for any record. */
union attrs {
    unsigned char custom[FRIT_CUSTOM_RECORD];
#define FRIT_ATTRS_END(record) frit_attrs_##record record;
#include <frit/attrs.def>
};

/* Copies a record that a caller gave (NULL: all defaults) into one of today's size at `out`: fields
 * the caller does not know are 0.  Fields that we do not know must be 0. */
frit_status attrs_copy(const frit_op_info *row, const void *given, void *out, frit_err *err);

/* Checks each field by itself and clears what lies beyond the counts of lists. */
frit_status attrs_check(const frit_op_info *row, void *attrs, frit_err *err);

/* The field `dtype` of a checked record; FRIT_NO_DTYPE if it has none. */
uint32_t attrs_dtype(const frit_op_info *row, const void *attrs);

#endif
