/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a run: one item of a frame (a block, or one op), and the loop over them. */
#ifndef RUN_ITEM_H
#define RUN_ITEM_H

#include "run/frame.h"

/* Runs the item at the cursor and moves the cursor; where a submit that it needed was refused, the
 * cursor goes back instead. */
void item_run(struct frame *frame);
/* Whether the item at the cursor was refused when it was submitted by itself. */
bool item_was_refused(const struct frame *frame);

/* Why an operand has no value, a new reference; NULL if all have one. */
struct failure *item_input_failure(const struct frame *frame, const struct cursor *at);
/* After its submit: fails what the item made if that is spoiled.  `inside` is the failure of the
 * submit itself; NULL: none is known. */
void item_look_back(struct frame *frame, const struct cursor *at, struct failure *inside);
/* The outputs have no value, for this reason (not taken over). */
void item_fail(struct frame *frame, const struct cursor *at, struct failure *failure);

#endif
