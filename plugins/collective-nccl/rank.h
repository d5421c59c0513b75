/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a rank, which alone uses the rank's communicator of the library, from its creation
 * to its end: that of a group that has failed is aborted here, which may take long.
 *
 * It launches what the ranks of this process agreed on, one operation behind the other on the
 * rank's stream, and polls the events behind them and the library's asynchronous errors.  Nothing
 * is launched behind an operation that the library still prepares. */
#ifndef NCCL_RANK_H
#define NCCL_RANK_H

#include "communicator.h"

/* Starts the thread; false: there is none.  `id` is the library's, the same on all ranks. */
bool rank_start(frit_group *group, const struct nccl_id *id);

/* With the communicator's lock: waits for the end of the thread; false: it has not ended in this
 * time. */
bool rank_await_end(frit_group *group, uint64_t timeout_ns);
/* Without: leaves the group, if the thread has ended, else lets the thread do so at its end. */
void rank_release(frit_group *group);

#endif
