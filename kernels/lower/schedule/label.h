/* SPDX-License-Identifier: Apache-2.0 */
/* Which dims of a block's values are which dims of the space of its folds.
 *
 * The space is that of the first fold's operand, the root.  What is made of folded values has a
 * label per dim: the number of the root's dim, or LABEL_ONE for an extent of 1.  Values that no
 * fold went into have no labels: they are computed wherever they are needed.  All of it is
 * relative: it depends on numbers of extents alone. */
#ifndef LOWER_LABEL_H
#define LOWER_LABEL_H

#include "lower/block/block.h"

enum { LABEL_ONE = 255 };

struct label {
    bool folded; /* `of` is meant */
    uint8_t of[FRIT_MAX_RANK];
};

struct labels {
    uint32_t n_ops; /* first ops that fit */
    uint32_t n_folds;
    uint32_t root; /* value; without folds no number */
    uint32_t axes; /* of the root that are folded, as bits */
    struct label *values;
};

/* Labels what the next op, number n_ops, makes; false: it does not fit and is not counted. `values`
 * has room for the block's values, with zeros for those that ops to come make. */
bool labels_add(struct labels *labels, const struct block *block);
/* False without memory.  Of the block's first ops those that elementwise code, views and folds of
 * one root make; what does not fit ends it. */
bool labels_init(struct labels *labels, const struct block *block);
void labels_fini(struct labels *labels);

enum label_place {
    LABEL_NOWHERE, /* it cannot be stored */
    LABEL_FULL,    /* one element per point of the space */
    LABEL_OUTER    /* one per point of the dims that are not folded */
};
/* Where an output can be stored. */
enum label_place label_place(const struct labels *labels, const struct block *block,
                             uint32_t value);

#endif
