/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a group exchange while a replica is made or joins; each call waits for all.
 *
 * Threads: the rank's, outside of any lock. */
#ifndef DIST_EXCHANGE_H
#define DIST_EXCHANGE_H

#include "dist/schedule.h"

struct frit_rank;

/* The `n` words of each rank in the order of ranks: `all` has n for each. */
frit_status exchange_words(struct frit_rank *rank, frit_device *device, const int64_t *mine,
                           uint64_t n, int64_t *all, frit_err *err);
/* The parameters become those of rank `root`, bit for bit: handles are released and replaced.  On
 * failure all stay as they are. */
frit_status exchange_params(struct frit_rank *rank, frit_device *device,
                            const struct schedule *schedule, uint32_t root, frit_tensor **params,
                            frit_err *err);

#endif
