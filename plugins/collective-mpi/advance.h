/* SPDX-License-Identifier: Apache-2.0 */
/* The side of groups that runs on the job's thread. */
#ifndef MPI_ADVANCE_H
#define MPI_ADVANCE_H

#include <frit/collective.h>

#include "job.h"

/* Sends to all ranks that this one has come. */
void advance_begin_to_join(frit_group *group);
void advance_receive(frit_group *group, const struct message *message);
/* True: something moved.  Sets `*is_busy` where others are waited for.  The group may be gone. */
bool advance_step(frit_group *group, bool *is_busy);

#endif
