/* SPDX-License-Identifier: Apache-2.0 */
/* Between types, and between values and memory. */
#ifndef LLVM_CONVERT_H
#define LLVM_CONVERT_H

#include <stdint.h>

#include "emit/llvm/api.h"

struct kir_inst;
struct ll;

/* convert.c */
ll_value ll_convert(struct ll *l, const struct kir_inst *inst, uint32_t from, ll_value a);
ll_type ll_memory_type(const struct ll *l, uint32_t dtype);
ll_value ll_from_memory(struct ll *l, uint32_t dtype, ll_value raw);
ll_value ll_to_memory(struct ll *l, uint32_t dtype, ll_value value);

#endif
