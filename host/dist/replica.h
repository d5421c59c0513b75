/* SPDX-License-Identifier: Apache-2.0 */
/* A replica: a rank's schedule, and where it is in its steps. */
#ifndef DIST_REPLICA_H
#define DIST_REPLICA_H

#include <frit/dist.h>

#include "dist/schedule.h"

struct frit_rank;
struct stream;

struct frit_replica {
    struct frit_rank *rank;
    frit_device *device;
    struct stream *stream;
    struct schedule schedule;
    uint64_t step; /* the number of steps that were begun */
    /* With UNEVEN: a flag for each rank that says whether it has a batch, f32. */
    frit_tensor *has_batch, *has_none; /* this rank's; zero for the others */
    frit_tensor *present;              /* the sums of all ranks' in the last step */
    /* Passes of the gradients that the thread follows now. */
    uint32_t session; /* number of the history */
    uint32_t mode;    /* of its last pass, 0: none */
};

/* Checks that the calling thread may use the replica and that its group goes on. */
frit_status replica_check(const frit_replica *replica, const char *call, frit_err *err);
/* This rank cannot take its part in the step: ends the group, and puts the step into `err`. */
frit_status replica_give_up(frit_replica *replica, frit_err *err);

#endif
