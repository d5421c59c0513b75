/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of custom ops as their plugins see them. */
#ifndef GRAPH_CUSTOM_CALL_H
#define GRAPH_CUSTOM_CALL_H

#include "graph/op.h"

/* A call with the memory it points to, but for the attributes. */
struct custom_view {
    frit_custom_call call;
    frit_custom_operand *in; /* in `fixed` where they fit */
    frit_custom_operand fixed[FRIT_CUSTOM_IN];
    frit_custom_type out[FRIT_CUSTOM_OUT];
    uint64_t none[1]; /* the record of an op without attributes */
};

/* `out`: a type per result.  Tensor operands are numbered in order. */
frit_status custom_view_init(struct custom_view *view, const frit_op_info *row,
                             const struct op_call *call, const struct op_type *out, frit_err *err);
void custom_view_fini(struct custom_view *view);

frit_custom_type custom_type(const struct op_type *type);

/* What a slot that did not return FRIT_OK said: never FRIT_OK, with a text that names op and
 * plugin or is the plugin's own. */
frit_status custom_failed(const frit_op_info *row, const char *slot, frit_status status,
                          frit_err *said, frit_err *err);

#endif
