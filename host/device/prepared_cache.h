/* SPDX-License-Identifier: Apache-2.0 */
/* The prepared launches of one program, by candidate and signature, and its compiles.
 *
 * Refusals are cached too, except those that may not come again: no memory, busy, FRIT_INTERNAL
 * from prepare (a compile that returned it is not tried again).  An entry is dropped when the
 * program reports a newer generation for it, or when it was not used for so long that it leaves the
 * device's cache.
 *
 * A variant that has to be compiled goes to the host's queue of compiles, if there is one and the
 * caller need not wait; until it is done, the status is FRIT_BUSY.  Each launch that runs without
 * the program meanwhile raises the priority of its compile.  A caller that waits takes the compile
 * from the queue if it did not begin, and runs it.  A compile is cancelled when no plan uses the
 * program any more, or when it leaves the device's cache.
 *
 * Threads: any; no lock is held during a driver call.  Locks in this order: the device's cache, the
 * program's, the queue's. */
#ifndef DEVICE_PREPARED_CACHE_H
#define DEVICE_PREPARED_CACHE_H

#include "device/prepared.h"

struct program;
struct prepared_cache;

/* Calls describe of the program, which owns the cache. */
frit_status prepared_cache_create(frit_device *device, struct program *program,
                                  struct prepared_cache **out, frit_err *err);
void prepared_cache_destroy(struct prepared_cache *cache); /* NULL does nothing */
/* Cancels its compiles: nobody wants the program any more. */
void prepared_cache_abandon(struct prepared_cache *cache);

/* Ends program and cache once nothing that was launched is pending. */
void prepared_cache_retire(struct prepared_cache *cache);

uint32_t prepared_cache_candidates(const struct prepared_cache *cache);
const frit_candidate *prepared_cache_candidate(const struct prepared_cache *cache, uint32_t index);
/* frit_program_info.serial. */
const uint64_t *prepared_cache_serial(const struct prepared_cache *cache);

/* Returns a new reference to the prepared launch, compiled and checked.  A refusal is a result too:
 * this fails only if out of memory. */
frit_status prepared_cache_get(struct prepared_cache *cache, const struct prepare_query *query,
                               struct prepared **out, frit_err *err);

#endif
