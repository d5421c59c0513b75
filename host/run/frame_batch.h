/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame keeps until its commands are submitted, and undoing of what was added to it. */
#ifndef RUN_FRAME_BATCH_H
#define RUN_FRAME_BATCH_H

#include "run/batch.h"
#include "run/frame.h"

/* Memory of the frames of a run, from the outermost to the innermost. */
struct run_scratch {
    struct batch batch;
    struct change *log;
    uint32_t n_log, log_capacity;
    struct cursor *items; /* steps and ops of steps that are in the batch */
    uint32_t n_items, items_capacity;
    struct arena arena; /* of the outermost frame */
};

/* A state to come back to. */
struct frame_mark {
    struct batch_mark batch;
    uint32_t n_log, n_items;
};
struct frame_mark frame_mark(const struct frame *frame);
/* Removes the commands and reverts the changes since the mark. */
void frame_undo(struct frame *frame, const struct frame_mark *mark);

#endif
