/* SPDX-License-Identifier: Apache-2.0 */
/* A step: the gradients of all parameters are reduced once, bucket by bucket, in the order of the
 * schedule.  A bucket is recorded when the gradients of its parameters are complete and the buckets
 * before it have been recorded. */
#ifndef DIST_REDUCTION_H
#define DIST_REDUCTION_H

#include <stdbool.h>

#include "dist/replica.h"

/* A step that is being recorded.  Arrays are by parameter. */
struct reduction {
    frit_replica *replica;
    frit_tensor **grads;   /* of this rank; NULL: none */
    frit_tensor **reduced; /* references, of the buckets that were recorded */
    bool *is_complete;     /* `grads` has what is to be reduced */
    uint32_t n_recorded;   /* buckets */
    bool has_batch;
    frit_tensor *n_present; /* with UNEVEN and a mean: ranks that have a batch, f32, once known */
};

/* Begins a step of the replica; reduction_end is due also on failure. */
frit_status reduction_begin(struct reduction *reduction, frit_replica *replica, frit_err *err);
void reduction_end(struct reduction *reduction);
/* Parameter i has its gradient in `grads`: records the buckets that may be. */
frit_status reduction_complete(struct reduction *reduction, uint32_t i, frit_err *err);
/* All parameters are complete. */
frit_status reduction_complete_all(struct reduction *reduction, frit_err *err);

#endif
