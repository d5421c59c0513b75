/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions that are products of matrices which lie in arguments: what a vendor's library can
 * do. */
#ifndef LOWER_CONTRACT_PRODUCT_H
#define LOWER_CONTRACT_PRODUCT_H

#include "kernels.h"
#include "lower/sched.h"

/* A product, and where its operands lie. */
struct contract_product {
    struct kernels_product product;
    uint32_t a, b, bias;                  /* inputs of the block; BLOCK_NONE: no bias */
    int64_t a_first, b_first, bias_first; /* element offsets of their first elements */
};

/* The number of the op of a closed block whose result is the only output and a product of matrices
 * of floats; BLOCK_NONE: it has none, several, or another contraction. */
uint32_t contract_product_find(const struct block *block);
/* Sets `out` to the product of op number `op`, whose result is dense.  FRIT_UNSUPPORTED if an
 * operand is computed in the block, or is not a matrix of equal steps.  `s` needs no module. */
frit_status contract_product_plan(const struct sched *s, uint32_t op, struct contract_product *out,
                                  frit_err *err);

#endif
