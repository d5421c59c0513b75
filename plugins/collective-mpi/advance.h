/* SPDX-License-Identifier: Apache-2.0 */
/* The side of groups that runs on the thread that drives the job. */
#ifndef MPI_ADVANCE_H
#define MPI_ADVANCE_H

#include <frit/collective.h>

#include "job.h"

/* Sends to all ranks that this one has come. */
void advance_begin_to_join(frit_group *group);
void advance_receive(frit_group *group, const struct message *message);
/* Sends the headers of what has been begun.  True: there was one. */
bool advance_announce(frit_group *group);
/* True: something moved.  Else sets `*expected`.  The group may be gone. */
bool advance_step(frit_group *group, enum expected *expected);

#endif
