/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a run: the loop over the items of a frame, and the submits between them. */
#ifndef RUN_RUN_FRAME_H
#define RUN_RUN_FRAME_H

#include <stdbool.h>

#include <frit/status.h>

struct arena;
struct frame;

/* Submits what the batch holds and returns true.  If the submit was refused, moves the frame's
 * cursor back to where the batch began and returns false. */
bool run_settle(struct frame *frame);
/* Runs a frame from its cursor to its end. */
void run_frame(struct frame *frame);
/* For a frame without a plan: computes the order of its ops and the last uses of values, in the
 * arena. */
frit_status run_without_plan(struct frame *frame, struct arena *arena, frit_err *err);

#endif
