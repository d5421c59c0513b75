/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a run: what an op that is run by itself takes, as a view, without elements, or by the
 * driver's program, and how the values that it uses end. */
#ifndef RUN_OP_ITEM_H
#define RUN_OP_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct frame;
struct graph_op;
struct launch_call;

/* Whether the op only changes a layout, as a rule. */
bool op_item_is_view(const struct graph_op *op);
/* A view shares its operand's buffer; where strides cannot say it, the buffer of a dense copy,
 * which is `*copied` then.  FRIT_UNSUPPORTED: the driver cannot copy it. */
frit_status op_item_view(struct frame *frame, const struct graph_op *op, bool *copied,
                         frit_err *err);

/* Outputs without elements, and memory of none for them. */
bool op_item_is_empty(const struct frame *frame, const uint32_t *out, uint32_t n_out);
frit_status op_item_empty(struct frame *frame, const uint32_t *out, uint32_t n_out, frit_err *err);

/* The launch of the driver's program for an op; `in` has room for its operands.  `out->program` is
 * a new reference, also on failure, or NULL.  FRIT_UNSUPPORTED where the driver has none. */
frit_status op_item_call(struct frame *frame, const uint32_t *number, uint32_t *in,
                         struct launch_call *out, frit_err *err);

/* The ends of values whose last use was the item at the cursor; if the log is out of memory they
 * stay until the end of the frame. */
void op_item_bury_value(struct frame *frame, uint32_t value);
void op_item_bury(struct frame *frame, const struct graph_op *op);

#endif
