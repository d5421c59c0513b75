/* SPDX-License-Identifier: Apache-2.0 */
/* One launch of a program in a frame: signature, prepare, outputs and workspace, arguments,
 * command.
 */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/frit.h>

struct buffer;
struct frame;
struct frame_step;
struct prepared_cache;
struct program;
struct value;

struct launch_call {
    struct frame *frame;
    struct program *program; /* the caller's reference */
    struct prepared_cache *cache;
    const char *label;
    bool block;          /* the program covers a block */
    const uint32_t *ops; /* covered; of the graph */
    uint32_t n_ops;
    uint32_t n_in, n_out;
    const uint32_t *in;     /* values of the frame; GRAPH_NO_VALUE: the operand is not a tensor */
    const uint32_t *out;    /* likewise: nobody wants it */
    const int64_t *strides; /* of the first output, NULL: dense */
    const uint32_t *only;   /* the candidate that runs, NULL: the first that takes the signature */
    bool *in_parts; /* written: the caller has to run the ops one by one instead, and launch_add
                       failed; NULL: it cannot */
};

/* That of a step with a program, but for its cache. */
struct launch_call launch_call_of_block(struct frame *frame, const struct frame_step *step);

/* Adds a copy of the frame's value of this number under other strides (NULL: dense), by the
 * driver's program of the row `copy`.  The copy dies with this item. */
frit_status launch_copy(struct frame *frame, uint32_t number, const int64_t *strides,
                        struct value *out, frit_err *err);

/* A COPY between buffers is in the batch: enters it as what it is, see device/lineage.h. */
void launch_enter_copy(struct frame *frame, const struct buffer *from, struct buffer *to);

/* Adds the launch to the batch; the outputs have their layouts and buffers then.  On failure
 * everything is as before.  FRIT_NO_DEVICE_MEMORY and FRIT_NO_HOST_MEMORY are about this call; any
 * other failure means that no candidate of the program takes the signature. */
frit_status launch_add(const struct launch_call *call, frit_err *err);

/* FRIT_INTERNAL: a command that a program wrote is of a kind that it may not write, or exceeds a
 * limit of the device. */
frit_status launch_check_commands(const frit_device *device, const frit_cmd *cmds, uint32_t n,
                                  frit_err *err);

/* Whether the failure of a launch says nothing about its program. */
bool launch_lacked_memory(frit_status status);

#endif
