/* SPDX-License-Identifier: Apache-2.0 */
/* Who touched which byte of the arguments in a phase. */
#ifndef IR_EVAL_SHADOW_H
#define IR_EVAL_SHADOW_H

#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

struct eval;

/* Of a run; then per phase, for which everything is forgotten. */
frit_status eval_shadow_init(struct eval *e);
void eval_shadow_fini(struct eval *e);
frit_status eval_shadow_reset(struct eval *e);
/* A lane touches an element of the instruction's argument; FRIT_INVALID where the order matters.
 * `bits`: what is to be there. */
frit_status eval_shadow_read(const struct eval *e, uint32_t lane, const unsigned char *element,
                             size_t bytes);
frit_status eval_shadow_write(const struct eval *e, uint32_t lane, const unsigned char *element,
                              const void *bits, size_t bytes);
frit_status eval_shadow_add(const struct eval *e, uint32_t lane, const unsigned char *element,
                            size_t bytes);

#endif
