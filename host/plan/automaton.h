/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of one device that are known: a trie over exact op keys whose nodes remember what the
 * search says after exactly these ops.
 *
 * A key is 256 bits and exact; what does not fit is interned and its number is part of the key.  A
 * node has two answers.  `lazy`: nothing known, go on, or run a plan over the first plan->n_calls
 * ops.  `sync`: the plan over all ops, or nothing known.  Answers are set once.
 *
 * Two generations: when the current trie passes half of `store_bytes`, a new one begins; a path of
 * the old one moves over when it is next walked, and the old one is freed when the next begins and
 * no walker stands in it.
 *
 * Threads: any number of walkers, each used by one thread at a time; a warm step takes no lock and
 * writes no shared memory.  Growth takes the automaton's lock. */
#ifndef PLAN_AUTOMATON_H
#define PLAN_AUTOMATON_H

#include "plan/plan.h"

struct op_key {
    uint64_t word[4];
};

struct automaton;
struct automaton_node;

frit_status automaton_create(uint64_t store_bytes, struct automaton **out, frit_err *err);
void automaton_destroy(struct automaton *automaton); /* no walker is left */

/* The number of a byte string, the same for the same bytes as long as the automaton lives; from 1.
 * 0 without memory. */
uint32_t automaton_intern(struct automaton *automaton, const void *bytes, size_t n_bytes);

/* A place in the trie.  All zero: not begun. */
struct walker {
    struct automaton *automaton;
    struct automaton_generation *generation; /* kept alive by this walker */
    struct automaton_node *node;             /* NULL: off the trie for want of memory */
    struct automaton_node *old;              /* the same path in the generation before, or NULL */
    uint32_t depth;                          /* ops since the root */
};

void walker_init(struct walker *walker, struct automaton *automaton);
void walker_fini(struct walker *walker);
/* Back to the root, of the newest generation. */
void walker_restart(struct walker *walker);
/* One op further; makes the node where there is none. */
void walker_step(struct walker *walker, const struct op_key *key);

enum lazy_kind { LAZY_UNKNOWN, LAZY_GO_ON, LAZY_RUN };

/* What is known here.  The plan lives as long as the walker stays in this generation. */
enum lazy_kind walker_lazy(const struct walker *walker, struct plan **plan);
struct plan *walker_sync(const struct walker *walker);
/* Stores an answer; the first one stays.  `plan` NULL: go on.  The node takes a reference. */
void walker_set_lazy(struct walker *walker, struct plan *plan);
void walker_set_sync(struct walker *walker, struct plan *plan);

struct automaton_stats {
    uint64_t nodes, plans, bytes, generations;
};
void automaton_stats(struct automaton *automaton, struct automaton_stats *out);

#endif
