/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of the map schedule, among which map.c chooses. */
#ifndef LOWER_MAP_H
#define LOWER_MAP_H

#include "lower/expr/expr.h"

/* map_tile.c: emits a whole phase in which operands whose innermost dim has a large stride are read
 * through tiles of the group.  Returns the number of groups; 0 if there are no such operands or it
 * would not pay, and then nothing is emitted. */
int64_t map_tiled(struct expr *e);

#endif
