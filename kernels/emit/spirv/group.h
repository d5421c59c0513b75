/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes of a group do together. */
#ifndef SPIRV_GROUP_H
#define SPIRV_GROUP_H

#include <stdint.h>

struct emit;

void group_barrier(struct emit *e, uint32_t at);
void group_exchange(struct emit *e, uint32_t at);
void group_shift(struct emit *e, uint32_t at);
void group_first(struct emit *e, uint32_t at);

#endif
