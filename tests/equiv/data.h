/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a play: elements, scalars, and how inputs lie in memory. */
#ifndef EQUIV_DATA_H
#define EQUIV_DATA_H

#include "play.h"

/* A seed from an action's seed and the variant: for what plans depend on. */
uint64_t data_variant_seed(uint32_t seed, const struct play_params *params);
/* The same with the round: for data and scalars. */
uint64_t data_round_seed(uint32_t seed, const struct play_params *params);
/* Whether the play computes values of this type in a wider one. */
bool data_is_wide(uint32_t dtype, const struct play_params *params);
/* The type that a value has in a play. */
uint32_t data_dtype(const struct script *script, const struct play_params *params, uint16_t v);
/* Elements of `dtype`, in the type that `params` gives them; malloc'd. */
char *data_create(uint32_t dtype, int64_t count, uint32_t seed, const struct script *script,
                  const struct play_params *params);
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
