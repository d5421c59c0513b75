/* SPDX-License-Identifier: Apache-2.0 */
/* An operation as calls of the library. */
#ifndef NCCL_LAUNCH_H
#define NCCL_LAUNCH_H

#include "communicator.h"

/* Whether the library combines elements of the type. */
bool launch_can_combine(uint32_t dtype);
/* Enqueues buffers of the operation on the rank's stream, from `*first` on and as many as one group
 * of calls can have; `*first` is then the next one.  Returns the library's result, NCCL_IN_PROGRESS
 * among it, and the name of the call that gave it. */
int launch_operation(const frit_group *group, const struct operation *operation, uint32_t *first,
                     const char **call);

#endif
