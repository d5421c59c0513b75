/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of each instruction, by table. */
#ifndef TILE_STEPS_H
#define TILE_STEPS_H

#include <stdint.h>

#include "emit/tile/code.h"

struct make;

/* The steps of one instruction. */
void make_inst(struct make *m, uint32_t at);
/* Those of the instructions from `first` to before `end` that give single elements and need nothing
 * but such, made before `outside` or by this: before their place. */
void make_early(struct make *m, uint32_t first, uint32_t end, uint32_t outside);
/* A load's step but for its register. */
struct tile_step make_load_step(struct make *m, uint32_t at);

#endif
