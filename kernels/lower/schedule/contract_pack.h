/* SPDX-License-Identifier: Apache-2.0 */
/* Packing. */
#ifndef SCHEDULE_CONTRACT_PACK_H
#define SCHEDULE_CONTRACT_PACK_H

#include <stdint.h>

struct contract;
struct contract_emitter;

/* Reserves memory for the copy; once the form is chosen. */
void pack_reserve(struct contract *c);
/* Emits the phase that packs, with its grid. */
void pack_emit(struct contract *c);
/* The first element of a lane in its panel, and the element of `across` at k. */
uint32_t pack_first(const struct contract_emitter *w, uint32_t panel);
uint32_t pack_element(const struct contract_emitter *w, uint32_t k);

#endif
