/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder of the test's own, and automata that are saved to it. */
#ifndef TESTS_PLAN_STORE_RIG_H
#define TESTS_PLAN_STORE_RIG_H

#include "host/plan/rig.h"
#include "plan/store.h"

/* The folder, and the path of the file, in a subfolder that does not exist yet. */
struct store_rig {
    char folder[64];
    char path[96];
    struct store_fuser fuser;
    struct store_context context;
};

struct store_rig store_rig_open(void);
/* Points into the rig, which must not be moved. */
struct store_context *store_rig_context(struct store_rig *rig);
void store_rig_close(struct store_rig *rig);
/* Whether the file `path` + `suffix` exists. */
bool store_rig_has(const struct store_rig *rig, const char *suffix);

struct automaton *store_rig_automaton(void);
/* Steps from the root through the `depth` keys first, first + 1, ...: odd ones have interned
 * attributes, every third is interned as a whole. */
void store_rig_walk(struct walker *walker, uint64_t first, uint32_t depth);
/* Adds the sequences `first` to `first` + n_sequences - 1.  Sequence `w` has five keys from 10 * w
 * on; its first node answers LAZY_GO_ON, its last has a lazy plan and a sync plan.  Returns the
 * number of plans. */
uint32_t store_rig_learn(struct automaton *automaton, uint32_t first, uint32_t n_sequences);
/* What a saved plan of sequence `w` is of; NULL: it does not fit those ops. */
struct plan *store_rig_rebuild(const struct store_context *context, const struct plan *saved,
                               uint32_t w);
struct store_saved store_rig_save(const struct store_context *context, struct automaton *automaton);
/* Saves an automaton that has only the sequences 1 to `n_sequences`, as another process would. */
void store_rig_save_anew(const struct store_context *context, uint32_t n_sequences);
/* Returns how many plans were loaded. */
uint32_t store_rig_load(const struct store_context *context, struct automaton *automaton);
/* How many plans a new process would load. */
uint32_t store_rig_count(const struct store_context *context);

#endif
