/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments as cooperative matrices. */
#ifndef EMIT_SPIRV_FRAGMENT_H
#define EMIT_SPIRV_FRAGMENT_H

#include "emit/spirv/emit.h"

/* Of elements of a dtype in memory and in matrices. */
uint32_t fragment_element_type(struct emit *e, uint32_t dtype);
/* Declares the variables of the phase's fragments, and what a module with them needs. */
void fragment_declare(struct emit *e);
void fragment_fill(struct emit *e, uint32_t at);
void fragment_load(struct emit *e, uint32_t at);
void fragment_store(struct emit *e, uint32_t at);
void fragment_multiply(struct emit *e, uint32_t at);
void fragment_scale(struct emit *e, uint32_t at);
void fragment_each(struct emit *e, uint32_t at);
void fragment_done(struct emit *e, uint32_t at);
void fragment_coordinate(struct emit *e, uint32_t at);

#endif
