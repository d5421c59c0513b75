/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a workgroup in a launch over several. */
#ifndef SPIRV_SPACE_H
#define SPIRV_SPACE_H

struct emit;

/* Finds the workgroup's space: from here on emit_launch_word and emit_group are of that. */
void emit_space(struct emit *e);

#endif
