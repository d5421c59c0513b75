/* SPDX-License-Identifier: Apache-2.0 */
/* An anchor: the one op of a block that elementwise code cannot compute, with elementwise ops and
 * views around it.  Ops before the anchor are computed where its operands are read, ops after it on
 * its results.
 *
 * Values that depend on the anchor have a lineage, a number that stands for how their elements are
 * arranged in the space: an elementwise op keeps its operands' lineage, a view that only reorders
 * elements begins a new one.  All of this is independent of sizes; anchor_stores finds the maps
 * once dims are known. */
#ifndef LOWER_ANCHOR_H
#define LOWER_ANCHOR_H

#include "lower/expr/expr.h"

/* Whether the schedule accepts this op of the block as its anchor.  May look at earlier ops only.
 */
typedef bool (*anchor_fn)(const struct block *block, uint32_t op);

/* Whether all operands are arguments or views of arguments, so that reading an element twice
 * computes nothing twice. */
bool anchor_reads_args(const struct block *block, uint32_t op);
/* Whether all that the operands are made of in the block may be done again and again; also, as
 * bits, dequantizing, or views that cost more than an offset; false if out of memory too. */
enum { ANCHOR_DEQUANTIZED = 1, ANCHOR_VIEWS = 2 };
bool anchor_is_cheap(const struct block *block, uint32_t op, uint32_t also);

struct anchor {
    uint32_t n_ops; /* matched: a prefix of the block's ops */
    bool found;     /* an anchor is among them */
    uint32_t op;
    uint32_t n_lineages; /* without that of the anchor's results */
    uint32_t *lineage;   /* per value of the block; 0: it does not depend on the anchor */
};

/* Matches as many ops of the block as possible.  Returns false if out of memory. */
bool anchor_init(struct anchor *anchor, const struct block *block, anchor_fn takes);
/* The same for a schedule whose anchor stands for ops before it, too: of these `inner` accepts
 * those that elementwise code cannot compute. */
bool anchor_init_inner(struct anchor *anchor, const struct block *block, anchor_fn takes,
                       anchor_fn inner);
void anchor_fini(struct anchor *anchor);

/* `match` and `fits` of a schedule whose state is a struct anchor and whose value state is a
 * lineage.  A program covers an anchor and ops whose outputs can all be stored element by element
 * with the anchor's result.  Trailing views are left to the host. */
bool anchor_match(struct matcher *matcher, const struct block *block, anchor_fn takes);
bool anchor_match_inner(struct matcher *matcher, const struct block *block, anchor_fn takes,
                        anchor_fn inner);
bool anchor_fits(const struct matcher *matcher, const struct block *block);

/* Plans stores of all outputs of the closed block.  The anchor's results have their elements at the
 * map `root`; every output has as many elements.  Results are EXPR_EXTERNAL nodes; expr_status
 * reports a failure if one is needed at another map. */
void anchor_stores(const struct anchor *anchor, struct expr *e, const struct space_map *root);

/* The node of the anchor's result number `out`; BLOCK_NONE: it is not used.  To be called after
 * anchor_stores. */
uint32_t anchor_result(const struct anchor *anchor, const struct expr *e, uint32_t out);

#endif
