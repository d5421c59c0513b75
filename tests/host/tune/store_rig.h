/* SPDX-License-Identifier: Apache-2.0 */
/* A file of decisions in a folder of the test's own. */
#ifndef TESTS_TUNE_STORE_RIG_H
#define TESTS_TUNE_STORE_RIG_H

#include "host/tune/record_rig.h"
#include "tune/store.h"

enum { TUNE_RIG_PATIENCE_MS = 60000 /* a machine may be busy */ };

/* The folder, and the path of the file, in a subfolder that does not exist yet. */
struct tune_rig {
    char folder[64];
    char path[96];
};

struct tune_rig tune_rig_make(void);
void tune_rig_remove(struct tune_rig *rig);
/* Whether the file `path` + `suffix` exists. */
bool tune_rig_has(const struct tune_rig *rig, const char *suffix);

/* Of namespace "s". */
struct tune_store *tune_rig_open(const char *path);
/* The time of the first sample of the record of a key; 0: there is none. */
uint64_t tune_rig_find(struct tune_store *store, uint64_t key);
/* Adds record_rig_small(key, ns). */
void tune_rig_add(struct tune_store *store, uint64_t key, uint64_t ns);
bool tune_rig_claim(struct tune_store *store, uint64_t key);
/* tune_rig_find as a new process would. */
uint64_t tune_rig_read(const char *path, uint64_t key);

#endif
