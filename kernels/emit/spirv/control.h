/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and branches of the IR; labels and conditions of the emitter's own are in emit.h. */
#ifndef EMIT_SPIRV_CONTROL_H
#define EMIT_SPIRV_CONTROL_H

#include "emit/spirv/emit.h"

void control_for(struct emit *e, uint32_t at);
void control_phi(struct emit *e, uint32_t at);
void control_next(struct emit *e, uint32_t at);
void control_if(struct emit *e, uint32_t at);
void control_end(struct emit *e, uint32_t at);

#endif
