/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan again as it ran before.
 *
 * The first run of a plan leaves a tape: its launches with their arguments bound, which value each
 * argument is, where BARRIERs stood, and where submits ended.  When the plan comes again with
 * values of the same types, layouts and places, only addresses, scalars and bounds are written into
 * it.  What is out of the ordinary (a fallback, a copy, a workspace, memory used twice, poison)
 * leaves no tape; what does not match, or a submit that is refused, goes back and takes the long
 * way, so that nothing here needs a way round.  One tape serves one run at a time; a plan keeps a
 * few.
 *
 * Threads: one at a time per tape. */
#ifndef STREAM_REPLAY_H
#define STREAM_REPLAY_H

#include "stream/explore.h"
#include "stream/launch.h"

struct tape;

/* ---- recording, from inside a run; each is free to give up, which the end tells ---- */

struct tape *tape_create(uint32_t n_values); /* NULL without memory */
void tape_destroy(void *tape);               /* NULL does nothing */
/* This run is out of the ordinary. */
void tape_spoil(struct tape *tape); /* NULL does nothing */

/* A launch as it is added to the batch. */
struct tape_launch {
    const frit_launch *launch;
    struct answers *answers;
    struct prepared *prepared;
    const uint32_t *ops, *in, *out; /* as in launch_call */
    uint32_t n_ops, n_in, n_out;
    bool barrier; /* one stands before it */
    bool block;
    const uint8_t *classes;
};
void tape_add_launch(struct tape *tape, const struct tape_launch *launch);
/* A value that has a buffer now. */
struct tape_made {
    uint32_t of;  /* value whose buffer it has; GRAPH_NO_VALUE: one of its own */
    bool written; /* a launch writes it */
    bool persistent;
    uint64_t bytes; /* of its own */
};
void tape_add_made(struct tape *tape, uint32_t value, const struct tape_made *made);
/* A submit went through. */
void tape_add_submit(struct tape *tape);
/* A value that was made died; it goes after the next submit. */
void tape_add_death(struct tape *tape, uint32_t value);

/* ---- the end of a recorded run ---- */

/* The values after the run, buffers of dead ones included as the tape saw them.  True: it can be
 * played.  `explorer` and `segment` are what the graph was made from. */
bool tape_finish(struct tape *tape, const struct run_value *values, const struct explorer *explorer,
                 const struct segment *segment, uint32_t n_calls);

/* ---- playing ---- */

/* Inside the stream's lock: whether values and wishes are those of the tape; notes the buffers. */
bool tape_matches(struct tape *tape, const struct segment *segment);
/* Outside, after tape_matches: whether no failed command that is known wrote an operand, and no
 * block of the tape has failed; with such a block it must not be played again. */
bool tape_is_sound(struct tape *tape, frit_device *device);
/* Outside: writes addresses and numbers, allocates, submits.  Anything but FRIT_OK: nothing has
 * happened.  *value is the timeline's. */
frit_status tape_play(struct tape *tape, frit_device *device, const struct segment *segment,
                      uint32_t stream, uint64_t *value);
/* The first failure that is known of what the tape wrote or read, a new reference, or NULL. */
struct failure *tape_failure(const struct tape *tape, frit_device *device, uint64_t value);
/* Inside the lock: gives the slots their values, or the failure (borrowed). */
void tape_land(struct tape *tape, const struct segment *segment, struct failure *failure);
/* What one play launches; of these, blocks. */
uint32_t tape_launches(const struct tape *tape);
uint32_t tape_blocks(const struct tape *tape);
/* Whether it must not be played again. */
bool tape_is_spoiled(const struct tape *tape);
/* Outside: gives back what nobody wants. */
void tape_end(struct tape *tape);

#endif
