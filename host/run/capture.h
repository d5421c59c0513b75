/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of a bound plan's submits, on devices of drivers that offer frit.capture/1.
 *
 * A bound plan that was replayed a few times is recorded at its next replay: all its submits as
 * one, with BARRIERs where they ended, or, where the driver refuses that, submit by submit.  From
 * then on a replay of it hands one block of bytes over for each recording, in place of commands.
 * Parameters of a recording are what differs between replays: scalars and bounds of recorded ops,
 * cookies, and those arguments and workspaces that lie elsewhere than before.  All others are
 * constant, since kernels whose operands are known run as fast as submitted ones; where one of them
 * has moved, the submit is recorded again with that one as a parameter.  Whether a place begins its
 * memory, and what may be used after it, follows from the sizes that are matched before a replay.
 *
 * What cannot be recorded, or fails to be replayed, is submitted, and so is what the driver is
 * still compiling for.  A recording is released when all that was submitted before has run.
 * Threads: one at a time. */
#ifndef RUN_CAPTURE_H
#define RUN_CAPTURE_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/frit.h>

struct bound_plan;
struct points;

/* Replays of a bound plan before it is recorded. */
enum { CAPTURE_AFTER = 3 };

struct capture;

/* NULL does nothing.  Its launches' programs are still there. */
void capture_destroy(struct capture *capture);
/* Bytes of host memory, with a guess at the driver's. */
uint64_t capture_bytes(const struct capture *capture);

/* Whether the replay that begins is one submit, however many the recorded run had: a recording of
 * all launches exists or is to be made. */
bool capture_is_one_submit(const struct bound_plan *bound, const frit_device *device);

/* The launches of one submit, and how it is submitted. */
struct replay_range {
    frit_device *device;
    uint32_t queue;
    uint32_t from, end; /* launches from..end-1 of the plan */
    const struct submit_after *after;
};

/* The launches are in `cmds`: records them, where this is the time for it and it was not tried
 * before with these places. */
void capture_record(struct bound_plan *bound, const struct replay_range *range,
                    const frit_cmd *cmds, uint32_t count);
/* Whether the submit that begins with launch `from` is recorded, derives from operands what it
 * derived then, and has its constant places where they were; after replay_take_derived. */
bool capture_fits(const struct bound_plan *bound, const frit_device *device, uint32_t from);
/* Replays it: with the scalars, bounds and cookies of the launches, and where the
 * buffers lie now.  Anything but FRIT_OK: nothing was submitted. */
frit_status capture_replay(struct bound_plan *bound, const struct replay_range *range,
                           uint64_t *point, frit_err *err);
/* Drops the recording; the submit is not recorded again. */
void capture_drop(struct bound_plan *bound, uint32_t from);

#endif
