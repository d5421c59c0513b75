/* SPDX-License-Identifier: Apache-2.0 */
/* Turning. */
#ifndef LOWER_CONTRACT_TURN_H
#define LOWER_CONTRACT_TURN_H

#include <stdint.h>

struct contract_emitter;

/* Stores the results of a lane's sums, turned. */
void turn_results(const struct contract_emitter *w, uint32_t *sums);

#endif
