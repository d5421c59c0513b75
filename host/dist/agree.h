/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all ranks have made the same schedule. */
#ifndef DIST_AGREE_H
#define DIST_AGREE_H

#include "dist/schedule.h"

struct frit_rank;

/* Waits for all ranks.  `own`: why this rank has no schedule, status FRIT_OK: it has.  Returns the
 * same on all ranks but for the words of a rank's own failure: FRIT_MISMATCH names the first
 * parameter that differs, with both descriptions. */
frit_status agree(struct frit_rank *rank, frit_device *device, const struct schedule *schedule,
                  const frit_err *own, frit_err *err);

#endif
