/* SPDX-License-Identifier: Apache-2.0 */
/* Contests whose budget was spent at a launch go on while their device has nothing to do.
 *
 * A thread of the device takes one step at a time (a candidate compared, or timed in one submit),
 * each only after the device was idle for a moment, and drops times of launches beside which others
 * submitted.  Work that arrives waits for the step under way at most, where it shares its queue.
 * What is found at the end replaces the record of the key, and reaches bound plans at once.
 * Threads: any, but for idle_close. */
#ifndef RUN_IDLE_H
#define RUN_IDLE_H

#include <stdbool.h>

#include <frit/frit.h>

struct idle_tuner;
struct measure;

/* Takes a contest over that is to go on.  False: it may not, and stays the caller's: the user has
 * switched it off, its launches take so long that others would wait for them, or its memory and
 * that of those that wait would be too much. */
bool idle_add(frit_device *device, struct measure *m);

/* Keeps steps from being taken until idle_go_on gets what this returns; the one under way ends
 * first. */
struct idle_tuner *idle_stop(frit_device *device);
void idle_go_on(struct idle_tuner *stopped);
/* Between the two: the buffers of contests that wait, and their bytes. */
void idle_memory(struct idle_tuner *stopped, uint64_t *n_buffers, uint64_t *n_bytes);

/* Ends it: nothing is measured any more.  No other call is under way. */
void idle_close(frit_device *device);

#endif
