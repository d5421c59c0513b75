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

/* Where groups share sums, of any form: memory for theirs, [split][both][down][across]; a lane's
 * sum where the mask is, at its places, which are set; the phase that adds up what groups stored, a
 * lane for each result, and goes on. */
void slices_reserve(struct contract_emitter *w);
void slices_store(const struct contract_emitter *w, const uint32_t *places, uint32_t mask,
                  uint32_t sum);
void slices_join(struct contract_emitter *w);

#endif
