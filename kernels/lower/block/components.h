/* SPDX-License-Identifier: Apache-2.0 */
/* Connected components of a block: ops that depend on each other's results, directly or not, are in
 * one component.  Components share only arguments that both read, so each can be lowered as a block
 * of its own. */
#ifndef LOWER_COMPONENTS_H
#define LOWER_COMPONENTS_H

#include "lower/block/block.h"

/* One component as a closed block.  Its extents have the numbers of the whole block. */
struct component {
    struct block block;
    uint32_t *args;    /* the whole block's numbers of its inputs, then of its outputs */
    uint32_t *scalars; /* the whole block's numbers of its scalars */
    uint32_t *bounds;  /* the whole block's numbers of its bounds */
};

/* Returns the components of a closed block, in the order of their first ops.  They are allocated in
 * `arena`, borrow from `block`, and need no block_fini. */
frit_status components_of(const struct block *block, struct arena *arena,
                          struct component **components, uint32_t *n_components, frit_err *err);

#endif
