/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder of the test's own, and automata that are saved to it. */
#ifndef TESTS_PLAN_STORE_RIG_H
#define TESTS_PLAN_STORE_RIG_H

#include "host/plan/rig.h"
#include "plan/store.h"

/* The folder, and the file in a folder of it that is not there yet. */
struct store_rig {
    char folder[64];
    char path[96];
    struct store_fuser fuser;
    struct store_context context;
};

struct store_rig store_rig_open(void);
/* Valid while the rig is where it is. */
struct store_context *store_rig_context(struct store_rig *world);
void store_rig_close(struct store_rig *world);
/* Whether there is a file of that name with `suffix` behind it. */
bool store_rig_has(const struct store_rig *world, const char *suffix);

struct automaton *store_rig_automaton(void);
/* A way of `depth` keys from `first` on; odd ones have interned attributes, each third is interned
 * as a whole. */
void store_rig_walk(struct walker *walker, uint64_t first, uint32_t depth);
/* Way `w` gets an answer of each kind somewhere; how many plans there are. */
uint32_t store_rig_learn(struct automaton *automaton, uint32_t first, uint32_t n_ways);
struct store_saved store_rig_save(const struct store_context *context, struct automaton *automaton);
/* As another process that learnt ways 1 to `n_ways` and found no file. */
void store_rig_save_anew(const struct store_context *context, uint32_t n_ways);
/* How many plans came. */
uint32_t store_rig_load(const struct store_context *context, struct automaton *automaton);
/* What a new process finds. */
uint32_t store_rig_count(const struct store_context *context);

#endif
