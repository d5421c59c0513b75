/* SPDX-License-Identifier: Apache-2.0 */
/* Turning. */
#ifndef LOWER_CONTRACT_TURN_H
#define LOWER_CONTRACT_TURN_H

#include <stdint.h>

struct contract_emitter;

enum { TURN_SIDE = 8 };

/* The first lane of the lane's matrix, as emitters see that a run of lanes has the same. */
uint32_t turn_first_lane(const struct contract_emitter *w);
/* Transposes matrices of TURN_SIDE lanes and as many values: value j of lane l becomes value
 * l % TURN_SIDE of lane l - l % TURN_SIDE + j. */
void turn_transpose(const struct contract_emitter *w, uint32_t *rows);
/* Stores the results of a lane's sums, turned. */
void turn_results(const struct contract_emitter *w, const uint32_t *sums);

#endif
