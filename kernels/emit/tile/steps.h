/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of each instruction, by table. */
#ifndef TILE_STEPS_H
#define TILE_STEPS_H

#include <stdint.h>

struct make;

/* The steps of one instruction. */
void make_inst(struct make *m, uint32_t at);

#endif
