/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of custom ops. */
#ifndef SHAPE_SHAPE_CUSTOM_H
#define SHAPE_SHAPE_CUSTOM_H

#include <frit/custom.h>
#include <frit/op_table.h>
#include <frit/status.h>

struct custom_view;
struct op_call;
struct op_type;

/* `out`: a type per result.  Tensor operands are numbered in order. */
frit_status custom_view_init(struct custom_view *view, const frit_op_info *row,
                             const struct op_call *call, const struct op_type *out, frit_err *err);
void custom_view_fini(struct custom_view *view);
frit_custom_type custom_type(const struct op_type *type);
/* What a slot that did not return FRIT_OK said: never FRIT_OK, with a text that names op and
 * plugin or is the plugin's own. */
frit_status custom_fail(const frit_op_info *row, const char *slot, frit_status status,
                        frit_err *said, frit_err *err);

#endif
