/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers in the program's own memory. */
#ifndef MEMORY_ADOPTED_H
#define MEMORY_ADOPTED_H

#include <frit/status.h>

#include "memory/memory.h"

struct buffer;
struct lent_bytes;
struct memory;
struct pool_chunk;

/* A buffer whose memory is the program's.  Nobody writes it: it counts as one of its own owners, so
 * that none is alone with it.  When its owners and pins are gone and no command uses it any more,
 * `release` is called, outside of the lock.  FRIT_UNSUPPORTED, with nothing done, where the device
 * does not adopt it. */
frit_status buffer_adopt(struct memory *memory, const struct lent_bytes *lent, struct buffer **out,
                         frit_err *err);

/* The buffer of this adopted chunk is gone: it is released when no command uses it any more. */
void adopted_return(struct memory *memory, struct pool_chunk *chunk);
/* Releases those whose commands are done. */
void adopted_poll(struct memory *memory, enum memory_progress how);

#endif
