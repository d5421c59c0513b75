/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over ops in program order that puts each op into a block.
 *
 * An op goes to the open block that shares a value with it.  If several do, they are merged where
 * that is legal (no third block must run between) and saves something; otherwise the op joins the
 * latest of them that it can join without a cycle, or begins a new block.  If no fuser of its block
 * accepts the op, the block is closed and the op begins a new one.  At most max_blocks blocks are
 * open.  When there is one too many, two whose merging saves something are merged, preferably with
 * equal result types and sizes; if there are none, the pass stops before the op.
 *
 * Merging is tried while the number of pushes of the whole search is within a budget proportional
 * to the ops that passes have reached, so that later ops have a budget too and the total cost grows
 * linearly. */
#ifndef SEARCH_PASS_H
#define SEARCH_PASS_H

#include "search/block.h"
#include "search/dag.h"

enum { PASS_NO_BLOCK = 255 };

/* All zeros: empty. */
struct pass {
    struct dag dag;
    struct block *blocks[DAG_BLOCKS]; /* those in dag.live are not NULL */
    uint64_t apart[DAG_BLOCKS];       /* set of blocks with which merging was tried in vain */
    uint64_t ordered;                 /* set: the block of the last ORDERED op */
    bool stopped;
    uint8_t *block_of; /* per op: its block, or PASS_NO_BLOCK */
    uint32_t block_of_capacity;
};

void pass_fini(struct search_ctx *ctx, struct pass *pass);
/* Removes all blocks. */
void pass_reset(struct search_ctx *ctx, struct pass *pass);
/* Reserves memory for `n_ops` ops. */
frit_status pass_reserve(struct pass *pass, uint32_t n_ops, frit_err *err);

/* Takes an op, which must come after all that it needs; or stops, and then takes no more. */
frit_status pass_take(struct search_ctx *ctx, struct pass *pass, uint32_t op, frit_err *err);
/* Takes the ops of a program that was found before, after whatever they need.  Nothing joins them;
 * blocks between which they run are not merged. */
frit_status pass_place(struct search_ctx *ctx, struct pass *pass, const uint32_t *ops,
                       uint32_t n_ops, frit_err *err);
/* Merges open blocks as long as that saves something, after the last op. */
frit_status pass_merge_rest(struct search_ctx *ctx, struct pass *pass, frit_err *err);
/* Records a death in an op, if the pass has taken it. */
void pass_add_death(const struct search_ctx *ctx, struct pass *pass, uint32_t op, uint32_t value);
/* Whether another op could join an existing block. */
bool pass_open(const struct pass *pass);

#endif
