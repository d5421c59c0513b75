/* SPDX-License-Identifier: Apache-2.0 */
/* The order of blocks, as the transitive closure of "must run before".  At most 64 blocks, which
 * are bits of a word. */
#ifndef SEARCH_DAG_H
#define SEARCH_DAG_H

#include <stdbool.h>
#include <stdint.h>

enum { DAG_BLOCKS = 64 };

/* All zeros: no blocks. */
struct dag {
    uint64_t live;               /* set of blocks that exist */
    uint64_t before[DAG_BLOCKS]; /* set of blocks that must run before this one */
};

static inline uint64_t dag_bit(uint32_t block)
{
    return (uint64_t)1 << block;
}

/* The lowest number in a set, which must not be empty. */
static inline uint32_t dag_first(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set);
}

/* Whether an op that must run after the blocks `needs` can be added to `block` without a cycle. */
bool dag_can_join(const struct dag *dag, uint32_t block, uint64_t needs);
/* Adds the order: `needs` before `block`. */
void dag_order(struct dag *dag, uint32_t block, uint64_t needs);
/* Whether the blocks can be merged without a cycle: no third block must run between them. */
bool dag_can_merge(const struct dag *dag, uint32_t a, uint32_t b);
/* Merges b into a. */
void dag_merge(struct dag *dag, uint32_t a, uint32_t b);

#endif
