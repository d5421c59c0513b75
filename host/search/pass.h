/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over ops in program order that puts each into a block.
 *
 * An op goes to the open block that shares a value with it.  If several do, they are merged where
 * that is legal (no third block between) and their fusers gain; otherwise the op joins the latest
 * of them that it can join without a cycle, or begins a block of its own.  An op that no fuser of
 * its block takes closes the block and begins another.  At most max_blocks blocks are open: where
 * one too many is begun two are merged that gain, best such as make tensors alike and are of one
 * size; the walk stops before an op that has no place.
 *
 * Merging is tried while the pushes of the whole search are within a budget for each op that it has
 * seen.  So all costs together grow with the ops, whatever they share. */
#ifndef SEARCH_PASS_H
#define SEARCH_PASS_H

#include "search/block.h"
#include "search/dag.h"

enum { PASS_NO_BLOCK = 255 };

/* All zero is empty. */
struct pass {
    struct dag dag;
    struct block *blocks[DAG_BLOCKS]; /* those of dag.live */
    uint64_t apart[DAG_BLOCKS];       /* blocks that this one did not merge with */
    uint64_t ordered;                 /* the block of the last ORDERED op */
    bool stopped;
    uint8_t *place; /* per op: its block, or PASS_NO_BLOCK */
    uint32_t place_capacity;
};

void pass_fini(struct search_ctx *ctx, struct pass *pass);
/* Forgets all blocks. */
void pass_reset(struct search_ctx *ctx, struct pass *pass);
/* Makes room for `n_ops` ops. */
frit_status pass_reserve(struct pass *pass, uint32_t n_ops, frit_err *err);

/* Takes the next op, a later one than all before it; or stops and takes none any more. */
frit_status pass_take(struct search_ctx *ctx, struct pass *pass, uint32_t op, frit_err *err);
/* No more ops come: merges open blocks as long as two gain. */
frit_status pass_merge_rest(struct search_ctx *ctx, struct pass *pass, frit_err *err);
/* A value died with an op that may have been taken already. */
void pass_bury(const struct search_ctx *ctx, struct pass *pass, uint32_t op, uint32_t value);
/* Whether an op more could get into a block that is there. */
bool pass_open(const struct pass *pass);

#endif
