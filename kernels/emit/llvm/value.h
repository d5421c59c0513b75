/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, constants, and vectors made of scalars. */
#ifndef LLVM_VALUE_H
#define LLVM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "emit/llvm/api.h"
#include "ir/facts.h"

struct ll;

/* value.c: constants, shapes. */
ll_type ll_shape(const struct ll *l, ll_type type); /* as `wide` says */
ll_type ll_vector_of(const struct ll *l, ll_type type);
ll_value ll_int(const struct ll *l, ll_type type, uint64_t value);
ll_value ll_num(const struct ll *l, ll_type type, uint64_t value); /* of ll_shape */
ll_value ll_real(const struct ll *l, uint32_t type, double value); /* of ll_shape */
ll_value ll_lanes(const struct ll *l, ll_type type, const uint64_t *numbers);
ll_value ll_mask(const struct ll *l, const uint32_t *lanes);
ll_value ll_splat(struct ll *l, ll_value scalar, ll_type type);
ll_value ll_spread(struct ll *l, uint32_t value, ll_value scalar, uint32_t unit);
ll_value ll_at(struct ll *l, uint32_t value, uint32_t unit); /* as a vector */
void ll_set(struct ll *l, uint32_t value, ll_value scalar);  /* uniform or linear */
bool ll_is(const struct ll *l, uint32_t value, enum fact_kind kind);

#endif
