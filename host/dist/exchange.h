/* SPDX-License-Identifier: Apache-2.0 */
/* Words that the ranks of a group exchange while a replica is made or joins, by all_reduce of
 * integers that only one rank has and that are 0 on all others.  Each call waits for all ranks.
 *
 * Threads: the rank's, outside of any lock. */
#ifndef DIST_EXCHANGE_H
#define DIST_EXCHANGE_H

#include <frit/frit.h>

struct frit_rank;

/* The `n` words of each rank in the order of ranks: `all` has n for each. */
frit_status exchange_gather(struct frit_rank *rank, frit_device *device, const int64_t *mine,
                            uint64_t n, int64_t *all, frit_err *err);
/* The bytes of rank `root`, for all.  `bytes` is a multiple of 4. */
frit_status exchange_spread(struct frit_rank *rank, frit_device *device, uint32_t root, void *data,
                            uint64_t bytes, frit_err *err);

#endif
