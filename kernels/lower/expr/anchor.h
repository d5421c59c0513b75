/* SPDX-License-Identifier: Apache-2.0 */
/* One op that elementwise code does not know, the anchor, with elementwise ops and views around it:
 * those before it are planned as its operands' elements, those behind it over its result.
 *
 * What the anchor went into has a lineage: values of one lineage lie in the space alike.  An
 * elementwise op keeps its operands' lineage, a view that only reorders elements begins one.  All
 * of that is relative; anchor_stores finds the maps when the dims are known. */
#ifndef LOWER_ANCHOR_H
#define LOWER_ANCHOR_H

#include "lower/expr/expr.h"

/* Whether the schedule takes this op of the block as its anchor.  It looks at what stands before
 * the op alone. */
typedef bool (*anchor_fn)(const struct block *block, uint32_t op);

/* Whether an op's operands are arguments, as they are or through views: nothing is computed again
 * for each element that reads it. */
bool anchor_reads(const struct block *block, uint32_t op);

struct anchor {
    uint32_t n_ops; /* the block's first that fit */
    bool found;     /* there is an anchor among them: */
    uint32_t op;
    uint32_t n_lineages; /* beside that of the anchor's results */
    uint32_t *lineage;   /* per value of the block; 0: the anchor did not go into it */
};

/* False without memory. */
bool anchor_init(struct anchor *anchor, const struct block *block, anchor_fn takes);
void anchor_fini(struct anchor *anchor);

/* `match` and `fits` of a schedule whose state is a struct anchor, with a lineage per value.  A
 * program covers an anchor and ops whose outputs can all be stored over the anchor's result.  Views
 * at the end are left to the host. */
bool anchor_match(struct matcher *matcher, const struct block *block, anchor_fn takes);
bool anchor_fits(const struct matcher *matcher, const struct block *block);

/* Plans stores of all outputs of the closed block, whose anchor's results have their elements at
 * `root` in the space: all of them have as many.  Results are EXPR_BOUND nodes; where one is needed
 * at any other map, expr_status says so. */
void anchor_stores(const struct anchor *anchor, struct expr *e, const struct space_map *root);

/* The node of the anchor's result number `out`; BLOCK_NONE: nothing needs it.  After anchor_stores.
 */
uint32_t anchor_result(const struct anchor *anchor, const struct expr *e, uint32_t out);

#endif
