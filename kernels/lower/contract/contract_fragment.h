/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions by products of fragments. */
#ifndef LOWER_CONTRACT_FRAGMENT_H
#define LOWER_CONTRACT_FRAGMENT_H

#include <stdbool.h>

struct contract;
struct contract_emitter;

/* Whether FRAGMENTS is the form: the target multiplies fragments of the operands' dtype, and the
 * sides are long enough. */
bool contract_fits_fragments(const struct contract *c);
void contract_choose_fragments(struct contract *c);
/* Whether it is so with few rows, which groups share along k. */
bool contract_fits_few(const struct contract *c);
void contract_choose_few(struct contract *c);
/* FRAGMENTS: the phase, from its begin on. */
void fragment_emit(struct contract_emitter *w);

#endif
