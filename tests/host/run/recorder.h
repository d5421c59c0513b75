/* SPDX-License-Identifier: Apache-2.0 */
/* frit.capture/1 of the driver inside the test: copies of commands, which are submitted with what a
 * replay gives.  One recorder at a time. */
#ifndef TESTS_RUN_RECORDER_H
#define TESTS_RUN_RECORDER_H

#include "run/driver.h"

struct recorder {
    /* Script. */
    frit_status record_status, replay_status; /* of each call */
    uint32_t max_cmds;                        /* of a recording, 0: any number */
    uint32_t busy;                            /* calls of record that are too early */
    /* What happened. */
    uint32_t records, replays;
    uint32_t n_places; /* parameters of the last recording that are places of arguments */
    uint32_t alive;    /* recordings */
};

/* A device on the driver that records, with a recorder that is all zero. */
frit_device *recorder_device(struct driver *driver, struct recorder *recorder, int64_t max_ops);

#endif
