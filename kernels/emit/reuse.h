/* SPDX-License-Identifier: Apache-2.0 */
/* Where the group's tiles lie in one memory: those that are never used at the same time share it.
 */
#ifndef EMIT_REUSE_H
#define EMIT_REUSE_H

#include <stdint.h>

#include "ir/kir.h"

/* Sets place[i] of each tile of the group, in bytes, a multiple of 16; returns what all of them
 * take. */
uint32_t reuse_tiles(const struct kir_phase *phase, uint32_t *place);

#endif
