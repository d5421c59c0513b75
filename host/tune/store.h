/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the tuner for one device, from run to run: what this process has added, and what
 * is in a file that processes share.  Records have a namespace, which names everything that a
 * decision depends on (driver and its build, device, its fingerprint ...); those of other
 * namespaces are not looked at.
 *
 * The file never makes anything fail: if it is not there, not ours, locked, slow, damaged or
 * read-only, the store does what it can without, down to keeping records in memory only, with one
 * line in the log.  A process that ends at any point loses at most the record that it is writing.
 *
 * Thread-safe, but for opening and closing. */
#ifndef TUNE_STORE_H
#define TUNE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

#include "tune/record.h"

struct tune_store;

struct tune_store_params {
    const char *path;   /* of the file; its folder is created.  NULL: memory only */
    const char *space;  /* namespace, exact text */
    uint32_t wait_ms;   /* that the file may delay the process in all, computing not counted */
    bool named;         /* the user named the file: it is a warning that it cannot be written */
    uint64_t max_bytes; /* of the namespace in the file, beyond which the older half of its records
                           is deleted; 0: 32 MiB */
};

/* Reads nothing yet.  Fails only if out of memory. */
frit_status tune_store_open(const struct tune_store_params *params, struct tune_store **out,
                            frit_err *err);
/* Releases its claims.  NULL does nothing. */
void tune_store_close(struct tune_store *store);
const char *tune_store_space(const struct tune_store *store);

/* The newest record of the key; NULL: there is none.  Valid until the store is closed.  The first
 * call reads the file; others compare the key. */
const struct tune_record *tune_store_find(struct tune_store *store, const void *key,
                                          size_t key_bytes);
/* Keeps a copy in memory and writes it to the file, and ends this store's claim on the key.  Fails
 * as tune_record_copy does, and then nothing has changed. */
frit_status tune_store_add(struct tune_store *store, const struct tune_record *record,
                           frit_err *err);
/* Deletes the records of the key, NULL: of all keys.  Other processes that have read them keep them
 * until they end.  False: the file still has them. */
bool tune_store_forget(struct tune_store *store, const void *key, size_t key_bytes);
/* Calls `fn` for the newest record of each key, in the order of `what`, then of keys. */
frit_status tune_store_each(struct tune_store *store,
                            void (*fn)(void *ctx, const struct tune_record *record), void *ctx,
                            frit_err *err);

/* ---- claims ---- */

/* Whether the caller is the one to tune the key.  False: another thread or process does so, or has
 * just done so; where it has, tune_store_find returns its record from then on, and else the caller
 * claims the key again at a later launch, which is cheap.  A claim ends with tune_store_add or
 * tune_store_release, and when its process ends.  Without a file that can be written only the
 * threads of this store are kept apart. */
bool tune_store_claim(struct tune_store *store, const void *key, size_t key_bytes);
/* Does nothing if this store has no claim. */
void tune_store_release(struct tune_store *store, const void *key, size_t key_bytes);

#endif
