/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions whose k is shared by lanes and groups. */
#ifndef LOWER_CONTRACT_SLICES_EMIT_H
#define LOWER_CONTRACT_SLICES_EMIT_H

#include <stdint.h>

struct contract_emitter;

/* SLICES: what a phase begins with when its places down are set, a lane's sum from begin to end,
 * and all that follows. */
void slices_begin(struct contract_emitter *w, uint32_t down, uint32_t across);
void slices_sum(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t *sums);
void slices_emit(struct contract_emitter *w);

#endif
