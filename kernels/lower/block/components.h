/* SPDX-License-Identifier: Apache-2.0 */
/* Connected components of a block: ops that are connected by the values that they make.  Two
 * components share nothing but arguments that both only read, so each is a block by itself. */
#ifndef LOWER_COMPONENTS_H
#define LOWER_COMPONENTS_H

#include "lower/block/block.h"

/* One component as a closed block.  Extents keep their numbers in the whole block. */
struct component {
    struct block block;
    uint32_t *args;    /* numbers of its inputs, then outputs, among those of the whole block */
    uint32_t *scalars; /* numbers of its scalars in the whole block */
    uint32_t *bounds;  /* likewise of its bounds */
};

/* The components of a closed block, in the order of their first ops.  In `arena`, and borrowing
 * from `block`: they need no block_fini. */
frit_status components_of(const struct block *block, struct arena *arena,
                          struct component **components, uint32_t *n_components, frit_err *err);

#endif
