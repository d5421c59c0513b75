/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a group say of themselves by the host's store, before the library makes its
 * communicator: rank 0 passes the library's id on, a missing rank is named, and ranks that cannot
 * be in one group are found. */
#ifndef NCCL_EXCHANGE_H
#define NCCL_EXCHANGE_H

#include "communicator.h"

bool exchange_has_store(const frit_group_params *params);
/* `*out` is the library's id.  FRIT_TIMEOUT with the ranks that did not come before the deadline,
 * FRIT_MISMATCH for another version of the library, FRIT_INVALID for a device that is two ranks. */
frit_status exchange_run(const frit_group *group, const frit_group_params *params,
                         const struct deadline *deadline, struct nccl_id *out, frit_err *err);

#endif
