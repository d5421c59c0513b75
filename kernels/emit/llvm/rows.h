/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose lanes are independent. */
#ifndef LLVM_ROWS_H
#define LLVM_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "emit/llvm/api.h"

struct kir_inst;
struct ll;

/* rows.c: instructions whose lanes are independent; operands of the shape that `wide` says. */
bool ll_has_row(uint32_t op);
ll_value ll_row(struct ll *l, const struct kir_inst *inst, const ll_value *a);

#endif
