/* SPDX-License-Identifier: Apache-2.0 */
/* A position in the trie of known plans.  Apart from automaton.h, which has the functions, for
 * headers that embed a walker or a key. */
#ifndef PLAN_WALKER_H
#define PLAN_WALKER_H

#include <stdint.h>

struct automaton;
struct automaton_generation;
struct automaton_node;

/* The key of a step from a node to a child. */
struct op_key {
    uint64_t word[4];
};

/* All zeros: not initialised. */
struct walker {
    struct automaton *automaton;
    struct automaton_generation *generation; /* the walker holds references to it and to
                                                the generation before it */
    struct automaton_node *node;             /* NULL: a node could not be allocated */
    uint64_t serial;                         /* the generation's number, unique in the automaton */
    uint32_t depth;                          /* number of ops since the root */
};

#endif
