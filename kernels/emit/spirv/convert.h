/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of one lane. */
#ifndef SPIRV_CONVERT_H
#define SPIRV_CONVERT_H

#include <stdint.h>

struct emit;
struct kir_inst;

uint32_t convert_emit(struct emit *e, const struct kir_inst *inst, uint32_t id);
uint32_t convert_wrap(struct emit *e, const struct kir_inst *inst, uint32_t id);
uint32_t convert_half(struct emit *e, const struct kir_inst *inst, uint32_t id);
/* From what memory has, in the low bits of a word, to a value, and back (other bits 0). */
uint32_t convert_load(struct emit *e, uint32_t dtype, uint32_t raw);
uint32_t convert_store(struct emit *e, uint32_t dtype, uint32_t id);
/* Two values as neighbours in memory, floats of 16 bits, in a word. */
uint32_t convert_pair(struct emit *e, uint32_t dtype, uint32_t low, uint32_t high);

#endif
