/* SPDX-License-Identifier: Apache-2.0 */
/* Relates the dims of a block's values to the dims of the space that its folds share.
 *
 * The space has the dims of the first fold's operand, the root.  A value that depends on a fold has
 * a label per dim: the root's dim that it is, or LABEL_ONE for an extent of 1.  Values that depend
 * on no fold have no labels; they are computed where they are needed.  Labels do not depend on
 * sizes. */
#ifndef LOWER_LABEL_H
#define LOWER_LABEL_H

#include "lower/block/block.h"

enum { LABEL_ONE = 255 };

struct label {
    bool folded; /* it depends on a fold: `of` is valid */
    uint8_t of[FRIT_MAX_RANK];
};

struct labels {
    uint32_t n_ops; /* matched: a prefix of the block's ops */
    uint32_t n_folds;
    uint32_t root; /* a value; valid if there are folds */
    uint32_t axes; /* folded dims of the root, as bits */
    struct label *values;
};

/* Labels the results of op number n_ops; false, and the op is not counted, if it does not fit.
 * `values` has an element for each value of the block, zeros for values that are not labelled yet.
 */
bool labels_add(struct labels *labels, const struct block *block);
/* Labels as many of the block's first ops as fit: elementwise ops, views, and folds with one root.
 * Returns false if out of memory. */
bool labels_init(struct labels *labels, const struct block *block);
void labels_fini(struct labels *labels);

enum label_storage {
    LABEL_NOWHERE, /* it cannot be stored */
    LABEL_FULL,    /* one element per point of the space */
    LABEL_OUTER    /* one per point of the dims that are not folded */
};
/* How an output can be stored. */
enum label_storage label_storage(const struct labels *labels, const struct block *block,
                                 uint32_t value);

#endif
