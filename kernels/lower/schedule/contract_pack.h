/* SPDX-License-Identifier: Apache-2.0 */
/* Packing. */
#ifndef SCHEDULE_CONTRACT_PACK_H
#define SCHEDULE_CONTRACT_PACK_H

#include <stdint.h>

struct contract_emitter;

/* Packed: the first element of a lane in its panel, and the element of `across` at k. */
uint32_t pack_first(const struct contract_emitter *w, uint32_t panel);
uint32_t pack_element(const struct contract_emitter *w, uint32_t k);

#endif
