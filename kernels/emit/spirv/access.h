/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments. */
#ifndef SPIRV_ACCESS_H
#define SPIRV_ACCESS_H

#include <stdint.h>

struct emit;

void access_load(struct emit *e, uint32_t at);
void access_store(struct emit *e, uint32_t at);
void access_atomic(struct emit *e, uint32_t at);

#endif
