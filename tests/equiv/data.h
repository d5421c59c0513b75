/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a play: elements, scalars, and how inputs lie in memory. */
#ifndef EQUIV_DATA_H
#define EQUIV_DATA_H

#include "play.h"

/* A number of an action's own for each variant: of what plans depend on. */
uint64_t data_form(uint32_t seed, const struct play_how *how);
/* The same, and another one in each round. */
uint64_t data_mix(uint32_t seed, const struct play_how *how);
/* Whether a value is of a wider type than its own: floats, but where plays are PLAY_OWN. */
bool data_is_wide(uint32_t dtype, const struct play_how *how);
/* The type that a value has in a play. */
uint32_t data_dtype(const struct script *script, const struct play_how *how, uint16_t v);
/* Elements of `dtype`, in the type that `how` gives them; malloc'd. */
char *data_create(uint32_t dtype, int64_t count, uint32_t seed, const struct script *script,
                  const struct play_how *how);
/* A scalar operand; of the classes that code may be specialised on, and others. */
frit_scalar data_scalar(uint32_t dtype, uint64_t chosen, bool not_zero);
/* A tensor of these elements that is not dense for two of three seeds.  Runs what is queued. */
frit_tensor *data_layout(frit_device *device, uint32_t dtype, frit_dims dims, const char *data,
                         uint64_t seed);
/* F64, of the dims of `like`: numbers that are up to two units in the last place of `dtype` at 1
 * away from `around`. */
frit_tensor *data_errors(frit_tensor *like, uint32_t dtype, double around, uint64_t seed);
/* The tensor times errors around 1. */
frit_tensor *data_disturb(frit_tensor *tensor, uint32_t dtype, uint64_t seed);

#endif
