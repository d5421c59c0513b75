/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of one program, by candidate and signature, and its compiles.
 *
 * Refusals are remembered like answers, but for those that may pass: no memory, busy, a prepare
 * that failed within (a compile that did fails again).  What the program has a newer
 * generation of is forgotten and asked again; what is not used for long leaves the device's cache.
 *
 * What a program wants compiled goes to the host's queue of compiles, if it has one and the caller
 * need not wait; the answer is FRIT_BUSY until it is done.  Each launch that goes another way
 * meanwhile raises the compile's priority; a caller who waits compiles it himself if it did not
 * begin.  A compile is cancelled when no plan uses the program any more, and when nobody asked for
 * it for so long that it leaves the device's cache.
 *
 * Threads: any; no lock is held during a driver call.  Locks in this order: the device's cache, the
 * program's, the queue's. */
#ifndef DEVICE_PREPARED_CACHE_H
#define DEVICE_PREPARED_CACHE_H

#include "device/prepared.h"

struct program;
struct prepared_cache;

/* Asks the program to describe itself; the program has the cache. */
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

/* The answer, compiled where it asks for it and checked: a new reference.  Fails only where there
 * is no memory; a refusal is an answer. */
frit_status prepared_cache_get(struct prepared_cache *cache, const struct prepare_query *asked,
                               struct prepared **out, frit_err *err);

#endif
