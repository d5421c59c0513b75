/* SPDX-License-Identifier: Apache-2.0 */
/* The map schedule's forms: map.c chooses. */
#ifndef LOWER_MAP_H
#define LOWER_MAP_H

#include "lower/expr/expr.h"

/* map_tile.c: the whole phase, with operands that lie across the lanes read through tiles of the
 * group; gives the groups.  0: there are none, or it would not pay, and nothing was emitted. */
int64_t map_tiled(struct expr *e);

#endif
