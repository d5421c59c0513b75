/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a play: elements, scalars, and layouts of inputs. */
#ifndef EQUIV_DATA_H
#define EQUIV_DATA_H

#include "play.h"

/* A seed from an action's seed and the variant, for choices that plans depend on. */
uint64_t data_variant_seed(uint32_t seed, const struct play_params *params);
/* A seed that depends on the round, too, for elements and scalars. */
uint64_t data_value_seed(uint32_t seed, const struct play_params *params);
/* Whether the play computes values of this type in a wider one. */
bool data_is_wide(uint32_t dtype, const struct play_params *params);
/* The type that a value has in a play. */
uint32_t data_dtype(const struct script *script, const struct play_params *params, uint16_t v);
/* Elements of `dtype`, in the type that `params` gives them; malloc'd. */
char *data_create(uint32_t dtype, int64_t count, uint32_t seed, const struct script *script,
                  const struct play_params *params);
/* A scalar operand: 0, 1 or -1, on which code may be specialised, or another number. */
frit_scalar data_scalar(uint32_t dtype, uint64_t chosen, bool not_zero);
/* A tensor of these elements, whose layout is not dense for two of three seeds.  Flushes. */
frit_tensor *data_make_tensor(frit_device *device, uint32_t dtype, frit_dims dims, const char *data,
                              uint64_t seed);
/* An F64 tensor with the dims of `like`: random numbers that differ from `around` by at most twice
 * the epsilon of `dtype`. */
frit_tensor *data_errors(frit_tensor *like, uint32_t dtype, double around, uint64_t seed);
/* The tensor with random relative errors of at most twice the epsilon of `dtype`. */
frit_tensor *data_disturb(frit_tensor *tensor, uint32_t dtype, uint64_t seed);

#endif
