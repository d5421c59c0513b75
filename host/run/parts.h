/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a run: a block in parts, that is its ops one by one, each by the driver's program, as
 * one item of the frame.  For blocks whose program was measured to be slower than that (tune.h);
 * what runs where a program failed is item.c's, with all ways round. */
#ifndef RUN_PARTS_H
#define RUN_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct frame;
struct launch;

/* Whether the block of the launch may run in parts: the caller can do so (launch_call.in_parts),
 * each op has a program, and the numeric class that is allowed has results of another order. */
bool parts_may_run(const struct launch *l, uint32_t numeric_class);

/* Adds the ops of the step at the cursor to the batch; what their values had between them is buried
 * then.  On failure everything is as before, and the block's program may be used instead. */
frit_status parts_add(struct frame *frame, frit_err *err);

#endif
