/* SPDX-License-Identifier: Apache-2.0 */
/* What the prepare of one program answered, by candidate and signature.
 *
 * Refusals are remembered like cache, but for those that may pass: no memory, busy, a prepare
 * that failed within (a compile that did fails again).  When the program's generation grows,
 * everything is forgotten and asked again.  What a program wants compiled is compiled by the
 * device's thread for that, if it has one and the asker need not wait; the answer is FRIT_BUSY
 * until it is done.  Threads: any; the lock is never held during a driver call. */
#ifndef DEVICE_PREPARED_H
#define DEVICE_PREPARED_H

#include <stdatomic.h>

#include "device/device.h"
#include "plan/plan.h"

/* One answer.  Counted; constant. */
struct prepared {
    atomic_uint refs;
    frit_status status; /* FRIT_OK, FRIT_PREPARE_RELAYOUT or why not */
    bool passing;       /* it may be another one next time */
    frit_launch_spec spec;
    frit_variant variant;
    char text[160]; /* of a refusal */
};
void prepared_ref(struct prepared *prepared);
void prepared_unref(struct prepared *prepared); /* NULL does nothing */

struct prepared_cache;

/* Asks the program to describe itself.  It is that of `owner`, which has the cache; of NULL: of
 * the device, which waits for its compiles before it ends. */
frit_status prepared_cache_create(const frit_program *program, struct plan_program *owner,
                                  struct prepared_cache **out, frit_err *err);
void prepared_cache_destroy(struct prepared_cache *cache); /* NULL does nothing */

/* Asks whether better code is ready; then everything is forgotten. */
bool prepared_cache_outdated(struct prepared_cache *cache);
uint32_t prepared_cache_candidates(const struct prepared_cache *cache);

/* What to ask: the signature, and exact bytes that stand for candidate and signature. */
struct prepare_query {
    uint32_t candidate;
    const frit_signature *signature;
    const void *key;
    size_t key_bytes;
    bool wait; /* for a compile */
};

/* The answer, compiled where it asks for it and checked: a new reference.  Fails only where there
 * is no memory; a refusal is an answer. */
frit_status prepared_cache_get(frit_device *device, struct prepared_cache *cache,
                               const struct prepare_query *asked, struct prepared **out,
                               frit_err *err);

#endif
