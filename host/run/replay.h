/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan again as it ran before.
 *
 * The first run of a plan leaves a bound: its launches with their arguments bound, which value each
 * argument is, where BARRIERs stood, and where submits ended.  When the plan comes again with
 * values of the same types, layouts and places, only addresses, scalars and bounds are written into
 * it.  What is out of the ordinary (a fallback, a copy, a workspace, memory used twice, poison)
 * leaves no bound; what does not match, or a submit that is refused, goes back and takes the long
 * way, so that nothing here needs a way round.  One bound serves one run at a time; a plan keeps a
 * few.
 *
 * Threads: one at a time per bound. */
#ifndef RUN_REPLAY_H
#define RUN_REPLAY_H

#include "run/explore.h"
#include "run/launch.h"

struct bound_plan;

/* ---- recording, from inside a run; each is free to give up, which the end tells ---- */

struct bound_plan *bound_plan_create(uint32_t n_values); /* NULL without memory */
void bound_plan_destroy(void *bound);                    /* NULL does nothing */
/* This run is out of the ordinary. */
void bound_plan_spoil(struct bound_plan *bound); /* NULL does nothing */

/* A launch as it is added to the batch. */
struct bind_launch {
    const frit_launch *launch;
    struct prepared_cache *cache;
    struct prepared *prepared;
    const uint32_t *ops, *in, *out; /* as in launch_call */
    uint32_t n_ops, n_in, n_out;
    bool barrier; /* one stands before it */
    bool block;
    const uint8_t *classes;
};
void bound_plan_add_launch(struct bound_plan *bound, const struct bind_launch *launch);
/* A value that has a buffer now. */
struct bind_value {
    uint32_t of;  /* value whose buffer it has; GRAPH_NO_VALUE: one of its own */
    bool written; /* a launch writes it */
    bool persistent;
    uint64_t bytes; /* of its own */
};
void bound_plan_add_made(struct bound_plan *bound, uint32_t value, const struct bind_value *made);
/* A submit went through. */
void bound_plan_add_submit(struct bound_plan *bound);
/* A value that was made died; it goes after the next submit. */
void bound_plan_add_death(struct bound_plan *bound, uint32_t value);

/* ---- the end of a recorded run ---- */

/* The values after the run, buffers of dead ones included as the bound saw them.  True: it can be
 * played.  `explorer` and `segment` are what the graph was made from. */
bool bound_plan_finish(struct bound_plan *bound, const struct run_value *values,
                       const struct explorer *explorer, const struct segment *segment,
                       uint32_t n_calls);

/* ---- playing ---- */

/* Inside the stream's lock: whether values and wishes are those of the bound; notes the buffers. */
bool replay_matches(struct bound_plan *bound, const struct segment *segment);
/* Outside, after replay_matches: whether no failed command that is known wrote an operand, and no
 * block of the bound has failed; with such a block it must not be played again. */
bool replay_is_sound(struct bound_plan *bound, frit_device *device);
/* Outside: writes addresses and numbers, allocates, submits.  Anything but FRIT_OK: nothing has
 * happened. */
frit_status replay_run(struct bound_plan *bound, frit_device *device, const struct segment *segment,
                       uint32_t stream);
/* A failure that is known of what the play wrote, a new reference, or NULL. */
struct failure *replay_failure(struct bound_plan *bound, frit_device *device);
/* Inside the lock: gives the slots their values, or the failure (borrowed). */
void replay_publish(struct bound_plan *bound, const struct segment *segment,
                    struct failure *failure);
/* What one play launches; of these, blocks. */
uint32_t bound_plan_launches(const struct bound_plan *bound);
uint32_t bound_plan_blocks(const struct bound_plan *bound);
/* Whether it must not be played again. */
bool bound_plan_is_spoiled(const struct bound_plan *bound);
/* Outside: gives back what nobody wants. */
void replay_end(struct bound_plan *bound);

#endif
