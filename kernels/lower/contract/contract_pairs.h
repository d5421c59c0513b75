/* SPDX-License-Identifier: Apache-2.0 */
/* Products of BF16 by dot2. */
#ifndef LOWER_CONTRACT_PAIRS_H
#define LOWER_CONTRACT_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

struct contract;
struct contract_emitter;

/* Whether packed LINES can be multiplied in pairs; then the operand of side `down` becomes an
 * argument of pairs. */
void pairs_choose(struct contract *c);
/* Steps of k: pairs, or products. */
int64_t pairs_depth(const struct contract *c);
/* Sets where the pairs of the places of `down` begin. */
void pairs_begin(struct contract_emitter *w);
/* Adds pair number `k` of all places to the sums. */
void pairs_add(const struct contract_emitter *w, uint32_t k, uint32_t across, uint32_t *sums);
/* Pair number `k` of `across`, which is not packed yet. */
uint32_t pairs_element(const struct contract_emitter *w, uint32_t k);

#endif
