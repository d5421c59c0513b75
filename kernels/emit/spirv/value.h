/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and comparisons of one lane. */
#ifndef SPIRV_VALUE_H
#define SPIRV_VALUE_H

#include <stdint.h>

struct emit;
struct kir_inst;

uint32_t value_emit(struct emit *e, const struct kir_inst *inst, const uint32_t *v);
uint32_t value_bits(struct emit *e, uint32_t kir_type, uint32_t id); /* a float's */
uint32_t value_is_nan(struct emit *e, uint32_t kir_type, uint32_t id);
uint32_t value_round(struct emit *e, uint32_t op, uint32_t kir_type, uint32_t a, uint32_t b);
/* A value as other threads and phis get it: B as a word, since phis of booleans are what compilers
 * in drivers were seen to break on. */
uint32_t value_packed_type(struct emit *e, uint32_t kir_type);
uint32_t value_packed(struct emit *e, uint32_t kir_type, uint32_t id);
uint32_t value_unpacked(struct emit *e, uint32_t kir_type, uint32_t id);

#endif
