/* SPDX-License-Identifier: Apache-2.0 */
/* A replica: a rank's schedule, and where it is in its steps. */
#ifndef DIST_REPLICA_H
#define DIST_REPLICA_H

#include <stdatomic.h>

#include <frit/dist.h>

#include "dist/schedule.h"
#include "run/rank.h"

struct stream;

enum { NOTED_STEPS = 64 };

struct frit_replica {
    struct frit_rank *rank;
    frit_device *device;
    struct stream *stream;
    struct schedule schedule;
    struct rank_user user;          /* its number is that of the replica's ops */
    uint64_t step;                  /* the number of steps that were recorded */
    uint32_t passes;                /* since then, which were not reduced */
    atomic_uint noted[NOTED_STEPS]; /* the same before each step, by its number; see replica_note */
    /* With UNEVEN: a flag for each rank that says whether it has a batch, f32. */
    frit_tensor *has_batch, *has_none; /* this rank's; zero for the others */
    frit_tensor *present;              /* the sums of all ranks' in the last step */
    /* Passes of the gradients that the thread follows now. */
    uint32_t session; /* number of the history */
    uint32_t mode;    /* of its last pass, 0: none */
};

/* Makes the replica the rank's user: its buckets are counted, and have texts.  FRIT_BUSY: the rank
 * has one. */
frit_status replica_bind(frit_replica *replica, frit_err *err);
void replica_unbind(frit_replica *replica);
/* A step begins.  Runs what is queued if this is too far ahead of what has run. */
void replica_note(frit_replica *replica);

/* Checks that the calling thread may use the replica and that its group goes on. */
frit_status replica_check(const frit_replica *replica, const char *call, frit_err *err);
/* This rank cannot take its part in the step: ends the group, and puts the step into `err`. */
frit_status replica_give_up(frit_replica *replica, frit_err *err);

#endif
