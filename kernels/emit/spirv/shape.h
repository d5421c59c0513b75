/* SPDX-License-Identifier: Apache-2.0 */
/* How lanes become threads, and where a thread's neighbouring lanes make one access. */
#ifndef SPIRV_SHAPE_H
#define SPIRV_SHAPE_H

#include <stdint.h>

#include <frit/status.h>

struct emit;

/* Fills even and shape from the facts. */
frit_status shape_init(struct emit *e);
/* How many neighbouring elements one access of a thread has, for an argument at this offset. */
uint32_t shape_chunk(const struct emit *e, uint32_t arg, uint32_t offset);

#endif
