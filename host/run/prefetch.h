/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a run that are not compiled yet.
 *
 * A plan that runs for the first time wants many programs.  Their compiles are queued before its
 * first launch, so that they run beside each other while the run waits for the first of them.  The
 * signatures of its launches are predicted: values that do not exist yet are assumed to be dense,
 * in memory of their own.  A wrong prediction costs an unnecessary compile. */
#ifndef RUN_PREFETCH_H
#define RUN_PREFETCH_H

#include <stdbool.h>

struct frame;
struct launch;

/* Queues the compiles of all programs of the frame's plan. */
void prefetch_programs(struct frame *frame);

/* Whether the programs of a block's ops, one by one, could be launched now.  If not, waiting for
 * the program of the block is one compile instead of many.  True where nothing is known. */
bool prefetch_ops_are_ready(const struct launch *l);

#endif
