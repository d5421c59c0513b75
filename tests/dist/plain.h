/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduces of f32 by plain calls of NCCL, to compare with: a communicator that blocks. */
#ifndef DIST_PLAIN_H
#define DIST_PLAIN_H

#include "rig.h"

struct plain {
    void *comm, *stream;
};

/* For threads of one process. */
void plain_open(struct plain *plain, const struct rank *rank);
void plain_reduce(const struct plain *plain, uint64_t at, uint64_t count);
/* What is enqueued between the two is one group. */
void plain_begin_group(void);
void plain_end_group(void);
void plain_wait(const struct plain *plain);
/* "2.28.9", once opened. */
const char *plain_version(void);

#endif
