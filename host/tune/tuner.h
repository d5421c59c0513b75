/* SPDX-License-Identifier: Apache-2.0 */
/* What a device's launches were found to run fastest with: by key, in memory, and in the store if
 * there is one.  Threads: any. */
#ifndef TUNE_TUNER_H
#define TUNE_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

struct tune_record;
struct tuner;

frit_status tuner_create(struct tuner **out, frit_err *err);
void tuner_destroy(struct tuner *tuner); /* NULL does nothing */

/* The newest record of a key, which lives as long as the tuner; NULL: there is none. */
const struct tune_record *tuner_find(struct tuner *tuner, const void *key, size_t key_bytes);
/* Copies and keeps it; one that cannot be kept is lost. */
void tuner_add(struct tuner *tuner, const struct tune_record *record);

/* True: the caller measures the key, and calls tuner_release.  False: somebody else does, or did.
 */
bool tuner_claim(struct tuner *tuner, const void *key, size_t key_bytes);
void tuner_release(struct tuner *tuner, const void *key, size_t key_bytes);

#endif
