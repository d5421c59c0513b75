/* SPDX-License-Identifier: Apache-2.0 */
/* Signed fields of four bits as floats. */
#ifndef EMIT_LLVM_NIBBLE_H
#define EMIT_LLVM_NIBBLE_H

#include "emit/llvm/emit.h"

/* Whether an instruction is the float of such a field, and the processor looks up 16 of them at
 * once. */
bool ll_is_nibble(const struct ll *l, uint32_t at);
/* Emits it. */
void ll_nibble(struct ll *l, uint32_t at);

#endif
