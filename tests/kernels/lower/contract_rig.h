/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of contractions, and targets that lead to each form. */
#ifndef TESTS_KERNELS_LOWER_CONTRACT_RIG_H
#define TESTS_KERNELS_LOWER_CONTRACT_RIG_H

#include "kernels/lower/rig.h"

struct contract_target {
    uint32_t lanes, lanes_per_row, units;
    bool fma, stages, interleaved;
    uint32_t near_lanes, max_lanes; /* 0: 256 */
};

enum { CONTRACT_TARGETS = 7 };

extern const struct contract_target contract_targets[CONTRACT_TARGETS];

void contract_set_target(struct rig *rig, const struct contract_target *target);
void contract_fill(struct rig *rig, uint32_t value, uint64_t seed);
/* A filled operand.  `turned`: the last two dims lie swapped in memory. */
uint32_t contract_operand(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                          bool turned);
double contract_get(const struct rig *rig, uint32_t value, int64_t number);
/* The element of a value at coordinates of a result of `rank`, aligned at the right. */
double contract_at(const struct rig *rig, uint32_t value, uint32_t rank, const int64_t *place);
void contract_place(const struct rig_value *v, int64_t number, int64_t *place);
/* Fails unless an element is as wanted.  Products are multiples of 2^-8, exact in F32 while sums
 * stay small: only the rounding to the result's type is left.  `size`: of the sum of the products'
 * sizes. */
void contract_same(const char *what, uint32_t dtype, int64_t number, double seen, double want,
                   double size);

#endif
