/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of all ranks become those of one. */
#ifndef DIST_PARAMS_H
#define DIST_PARAMS_H

#include "dist/schedule.h"

struct frit_rank;

/* Bit for bit; waits for all ranks.  Handles of ranks other than `root` are released and replaced;
 * on failure all stay as they are. */
frit_status params_spread(struct frit_rank *rank, frit_device *device,
                          const struct schedule *schedule, uint32_t root, frit_tensor **params,
                          frit_err *err);

#endif
