/* SPDX-License-Identifier: Apache-2.0 */
/* One op of a frame as a frame of its own. */
#ifndef RUN_INNER_H
#define RUN_INNER_H

#include <stdint.h>

#include <frit/status.h>

struct frame;

/* Runs what a composite op stands for, or the op on the fallback device.  The batch is empty. */
frit_status inner_run_decomposed(struct frame *frame, uint32_t op, frit_err *err);
frit_status inner_elsewhere(struct frame *frame, uint32_t op, frit_err *err);

#endif
