/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Commands that are recorded once and run many times.  Offered by a plugin with a backend;
 * optional.
 *
 * A recording is the commands of one submit.  What may differ between its replays is listed when it
 * is recorded and comes in a block of bytes with each replay; all else is constant: grids, dims,
 * strides, sizes, fills, and each address, scalar and bound that is not listed.  A replay is
 * ordered, reaches a value and reports failures exactly as a submit of the same commands. */
#ifndef FRIT_CAPTURE_H
#define FRIT_CAPTURE_H

#include <frit/backend.h>

#define FRIT_CAPTURE_TABLE "frit.capture/1"

/* What a parameter is of its command, and its bytes in the block. */
enum {
    FRIT_PARAM_SCALAR = 1, /* scalars[index] of the launch: its 8 bytes of `bits`; the kind stays */
    FRIT_PARAM_BOUND = 2,  /* bounds[index] of the launch: an int64_t */
    FRIT_PARAM_ARG = 3,    /* where args[index] of the launch lies: a frit_place */
    FRIT_PARAM_WORKSPACE = 4, /* where its workspace lies: a frit_place */
    FRIT_PARAM_DERIVED = 5,   /* where derived[index] lies: a frit_place; `fill` stays */
    FRIT_PARAM_DST = 6,       /* where a COPY, FILL or TIMESTAMP writes: a frit_place */
    FRIT_PARAM_SRC = 7,       /* where a COPY reads: a frit_place */
    FRIT_PARAM_COOKIE = 8     /* of the launch: a uint64_t */
};

/* A place is at least as aligned as that of the recorded launch was said to be (`align_log2`,
 * `workspace_align`), has its `tail`, and has or lacks FRIT_ARG_START as it did; origin, extent and
 * strides stay. */
typedef struct frit_place {
    frit_memory *memory; /* NULL where there are no elements */
    uint64_t offset;
} frit_place;

typedef struct frit_param {
    uint32_t command; /* number in the recording, from 0 */
    uint32_t kind;    /* FRIT_PARAM_* */
    uint32_t index;
    uint32_t reserved;
    uint64_t at; /* bytes from the start of the block, a multiple of 8 */
} frit_param;

typedef struct frit_capture_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [queue] +mayblock  required.  Nothing runs.  Commands, launches and parameters are borrowed
     * for the call; programs, what specs of prepare point to and kernels are needed until release.
     * FRIT_UNSUPPORTED: submit them each time instead.  FRIT_BUSY: what the recording needs is being
     * compiled in the background; submit them, and record them some replays later. */
    frit_status (*record)(void *device, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_param *params, uint32_t n_params,
                          uint32_t param_stride, frit_recording **out, frit_err *err);
    /* [queue] +nonblock (INLINE_QUEUE: +mayblock)  required.  In the queue of the recording; any
     * number of replays may be pending at once.  `block` is borrowed for the call. */
    frit_status (*replay)(void *device, frit_recording *recording, const void *block,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value,
                          frit_err *err);
    /* [any] +mayblock  required; no replay of it is pending.  NULL does nothing. */
    void (*release)(void *device, frit_recording *recording);
} frit_capture_table;

FRIT_STATIC_ASSERT(sizeof(frit_place) == 16 && sizeof(frit_param) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_capture_table, release) == 32, "0.2");

#endif
