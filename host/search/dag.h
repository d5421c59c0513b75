/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks must run before which, closed under "before".  At most 64 blocks, numbered by their
 * bits; sets of them are words. */
#ifndef SEARCH_DAG_H
#define SEARCH_DAG_H

#include <stdbool.h>
#include <stdint.h>

enum { DAG_BLOCKS = 64 };

/* All zero has no blocks. */
struct dag {
    uint64_t live;
    uint64_t before[DAG_BLOCKS]; /* all that must run before this one */
};

static inline uint64_t dag_bit(uint32_t block)
{
    return (uint64_t)1 << block;
}

/* The lowest number in a set that is not empty. */
static inline uint32_t dag_first(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set);
}

/* Whether an op that needs these blocks can be put into this one without a cycle. */
bool dag_can_join(const struct dag *dag, uint32_t block, uint64_t needs);
/* From now on `needs` run before the block. */
void dag_order(struct dag *dag, uint32_t block, uint64_t needs);
/* Whether no third block must run between the two. */
bool dag_can_merge(const struct dag *dag, uint32_t a, uint32_t b);
/* b becomes part of a. */
void dag_merge(struct dag *dag, uint32_t a, uint32_t b);

#endif
