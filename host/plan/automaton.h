/* SPDX-License-Identifier: Apache-2.0 */
/* The known plans of one device: a trie over exact op keys, whose nodes store the search's answers
 * for the ops on the path from the root.
 *
 * A key has 256 bits and is exact: parts that do not fit are interned, and the key contains their
 * number.  A node has two answers.  `lazy`: unknown, wait for more ops, or run a plan over the
 * first plan->n_calls ops.  `sync`: the plan over all ops, or unknown.  Each answer is set once; a
 * saved plan is then replaced by what is made of it.
 *
 * Nodes, answers and interned bytes belong to a generation.  When the current generation exceeds
 * half of `store_bytes`, a new one begins.  A new node takes over the answers of the same path in
 * the previous generation, and interned bytes keep their number, so that everything in use moves to
 * the new generation.  Only the two newest generations and those that walkers use are kept.
 *
 * Any number of threads may use walkers, each walker one thread at a time.  Steps to existing
 * nodes, restarts and queries take no lock and write no shared memory, except restarts that change
 * the generation.  Adding nodes or answers takes the automaton's lock. */
#ifndef PLAN_AUTOMATON_H
#define PLAN_AUTOMATON_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/status.h>

#include "plan/walker.h"

struct plan;

frit_status automaton_create(uint64_t store_bytes, struct automaton **out, frit_err *err);
void automaton_destroy(struct automaton *automaton); /* no walker may be left; NULL does nothing */

/* Whether there are unused generations; and frees them.  Freeing destroys programs, so the caller
 * must hold no lock. */
bool automaton_has_gone(struct automaton *automaton);
void automaton_reap(struct automaton *automaton);

/* Begins a new generation: what streams predict from the one before is matched again.  Does nothing
 * if out of memory. */
void automaton_renew(struct automaton *automaton);

struct automaton_stats {
    uint64_t nodes, plans, bytes; /* of the two newest generations; a plan counts once per node */
    uint64_t generations;         /* begun so far */
    uint64_t store_bytes;         /* as created */
};
void automaton_stats(struct automaton *automaton, struct automaton_stats *out);

/* Starts at the root of the newest generation. */
void walker_init(struct walker *walker, struct automaton *automaton);
void walker_fini(struct walker *walker);
/* Returns to the root of the newest generation. */
void walker_restart(struct walker *walker);
/* Advances by one op; adds the node if it does not exist. */
void walker_step(struct walker *walker, const struct op_key *key);

/* Returns the number (>= 1) of a byte string, 0 if out of memory.  A number is never reused for
 * other bytes; equal bytes keep their number while they are interned in each generation. */
uint32_t walker_intern(struct walker *walker, const void *bytes, size_t n_bytes);
/* The bytes of a number, valid while the walker stays in this generation; NULL if they were
 * dropped. */
const void *walker_interned(const struct walker *walker, uint32_t id, size_t *n_bytes);

enum lazy_kind { LAZY_UNKNOWN, LAZY_GO_ON, LAZY_RUN };

/* Returns the answers at this node.  Plans live while the walker stays in this generation. */
enum lazy_kind walker_lazy(const struct walker *walker, struct plan **plan);
struct plan *walker_sync(const struct walker *walker);
/* Sets an answer unless it is set.  `plan` NULL: wait for more ops.  The node takes a reference. */
void walker_set_lazy(struct walker *walker, struct plan *plan);
void walker_set_sync(struct walker *walker, struct plan *plan);
/* Replaces a saved plan at this node, in both answers, by the plan that was made of it, or (NULL)
 * makes them unknown.  Does nothing where another thread has done so. */
void walker_replace_saved(struct walker *walker, const struct plan *saved, struct plan *plan);

/* ---- saving ---- */

/* Nodes with answers, valid while the walker stays in the generation in which they were taken. */
struct automaton_list {
    struct automaton_node **nodes;
    uint32_t count, capacity;
    uint32_t n_before; /* how many of them, the first, are of the previous generation */
};

enum automaton_part {
    AUTOMATON_ALL, /* all nodes of the walker's generation */
    AUTOMATON_NEW  /* nodes of it and the previous one with answers that were not taken yet */
};

/* Returns a list of nodes and marks their answers as taken. */
frit_status automaton_take(const struct walker *walker, enum automaton_part part,
                           struct automaton_list *out, frit_err *err);
/* Marks the answers as not taken again. */
void automaton_put_back(const struct walker *walker, const struct automaton_list *list);
void automaton_list_fini(struct automaton_list *list);

/* A node passed to a visitor, valid during the call. */
struct automaton_place {
    const struct op_key *key;
    enum lazy_kind lazy;
    struct plan *plan; /* LAZY_RUN */
    struct plan *sync; /* or NULL */
    int64_t parent;    /* the mark that the visitor set at the parent; 0: the parent is the root */
    int64_t *mark;     /* set by the visitor for the node's children; initially 0 */
};

/* A status other than FRIT_OK ends the visit. */
typedef frit_status (*automaton_visitor)(void *ctx, const struct automaton_place *place,
                                         frit_err *err);

/* Visits each node of the list with its answers, after those of its ancestors that were not visited
 * yet, without answers.  One visit at a time. */
frit_status automaton_visit(const struct walker *walker, const struct automaton_list *list,
                            automaton_visitor visitor, void *ctx, frit_err *err);

#endif
