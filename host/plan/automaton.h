/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of one device that are known: a trie over exact op keys whose nodes remember what the
 * search says after exactly these ops.
 *
 * A key is 256 bits and exact; what does not fit is interned and its number is part of the key.  A
 * node has two answers.  `lazy`: nothing known, go on, or run a plan over the first plan->n_calls
 * ops.  `sync`: the plan over all ops, or nothing known.  Answers are set once.
 *
 * Two generations, each with its nodes, answers and interned bytes: when the current one passes
 * half of `store_bytes`, a new one begins.  A node that is made in it takes the answers that the
 * same path has in the one before, and interned bytes keep their number, so what is still used
 * moves over.  A generation is gone when it is neither of the two newest and no walker needs it.
 *
 * Threads: any number of walkers, each used by one thread at a time; a step to a node that is
 * there, a restart and a question take no lock and write no shared memory, but for a restart that
 * changes the generation.  Growth takes the automaton's lock. */
#ifndef PLAN_AUTOMATON_H
#define PLAN_AUTOMATON_H

#include "plan/plan.h"

struct op_key {
    uint64_t word[4];
};

struct automaton;
struct automaton_node;

frit_status automaton_create(uint64_t store_bytes, struct automaton **out, frit_err *err);
void automaton_destroy(struct automaton *automaton); /* no walker is left; NULL does nothing */

/* Whether generations are gone, and frees these: their programs end, so no lock is held. */
bool automaton_has_gone(struct automaton *automaton);
void automaton_reap(struct automaton *automaton);

struct automaton_stats {
    uint64_t nodes, plans, bytes; /* of the two newest generations; a plan counts per node */
    uint64_t generations;         /* begun */
    uint64_t store_bytes;         /* as created */
};
void automaton_stats(struct automaton *automaton, struct automaton_stats *out);

/* A place in the trie.  All zero: not begun. */
struct walker {
    struct automaton *automaton;
    struct automaton_generation *generation; /* kept alive by this walker, as is the one before */
    struct automaton_node *node;             /* NULL: off the trie for want of memory */
    uint64_t serial; /* of the generation: never that of another one of this automaton */
    uint32_t depth;  /* ops since the root */
};

/* At the root of the newest generation. */
void walker_init(struct walker *walker, struct automaton *automaton);
void walker_fini(struct walker *walker);
/* Back to the root, of the newest generation. */
void walker_restart(struct walker *walker);
/* One op further; makes the node where there is none. */
void walker_step(struct walker *walker, const struct op_key *key);

/* The number of a byte string, from 1: never that of other bytes as long as the automaton lives,
 * and the same for the same bytes as long as they are asked for in each generation.  0 without
 * memory. */
uint32_t walker_intern(struct walker *walker, const void *bytes, size_t n_bytes);
/* The bytes of a number, as long as the walker stays in this generation; NULL if they are gone. */
const void *walker_interned(const struct walker *walker, uint32_t id, size_t *n_bytes);

enum lazy_kind { LAZY_UNKNOWN, LAZY_GO_ON, LAZY_RUN };

/* What is known here.  The plan lives as long as the walker stays in this generation. */
enum lazy_kind walker_lazy(const struct walker *walker, struct plan **plan);
struct plan *walker_sync(const struct walker *walker);
/* Stores an answer; the first one stays.  `plan` NULL: go on.  The node takes a reference. */
void walker_set_lazy(struct walker *walker, struct plan *plan);
void walker_set_sync(struct walker *walker, struct plan *plan);

/* ---- for who saves ---- */

/* Nodes with answers, as long as the walker that they were taken with stays in its generation. */
struct automaton_list {
    struct automaton_node **nodes;
    uint32_t count, capacity;
    uint32_t n_before; /* the first ones are of the generation before */
};

enum automaton_part {
    AUTOMATON_ALL, /* of the walker's generation */
    AUTOMATON_NEW  /* of it and the one before: those with answers that were never taken */
};

/* Takes a list out; new answers are none any more. */
frit_status automaton_take(const struct walker *walker, enum automaton_part part,
                           struct automaton_list *out, frit_err *err);
/* They are new again. */
void automaton_put_back(const struct walker *walker, const struct automaton_list *list);
void automaton_list_fini(struct automaton_list *list);

/* A node as automaton_visit shows it, valid for the call. */
struct automaton_place {
    const struct op_key *key;
    enum lazy_kind lazy;
    struct plan *plan; /* LAZY_RUN */
    struct plan *sync; /* or NULL */
    int64_t parent;    /* what the visitor left at the node's parent; 0: that is the root */
    int64_t *mark;     /* the visitor's, for the nodes below: 0 when the node is shown first */
};

/* A status other than FRIT_OK ends the visit. */
typedef frit_status (*automaton_visitor)(void *ctx, const struct automaton_place *place,
                                         frit_err *err);

/* Shows each node of the list with its answers, and before it, without answers, those on the way
 * from the root that were not shown yet.  One visit at a time. */
frit_status automaton_visit(const struct walker *walker, const struct automaton_list *list,
                            automaton_visitor visitor, void *ctx, frit_err *err);

#endif
