/* SPDX-License-Identifier: Apache-2.0 */
/* A collective row as an item of a frame. */
#ifndef RUN_ITEM_COLLECTIVE_H
#define RUN_ITEM_COLLECTIVE_H

#include "run/frame.h"

/* Submits what the batch holds and begins the op, which is not undone then.  *went_back:
 * that submit was refused, and the op did not run. */
frit_status item_collective(struct frame *frame, uint32_t number, bool *went_back, frit_err *err);
/* Waits for the frame's operations that use the value's buffer, after what the batch holds was
 * submitted.  A bound plan waits at the same place.  False: that submit was refused. */
bool item_await(struct frame *frame, uint32_t value);
/* The op does not run, as an operand has failed: the other ranks must not wait. */
void item_give_up_collective(struct frame *frame, uint32_t number, const struct failure *why);

#endif
