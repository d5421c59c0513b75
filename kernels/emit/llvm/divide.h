/* SPDX-License-Identifier: Apache-2.0 */
/* Many numbers by one divisor, where a machine divides slowly. */
#ifndef LLVM_DIVIDE_H
#define LLVM_DIVIDE_H

#include <stdbool.h>
#include <stdint.h>

struct ll;

/* divide.c: whether, and the division of F32 by what all lanes have alike. */
bool ll_shares_divisor(const struct ll *l, uint32_t at);
void ll_divide(struct ll *l, uint32_t at);

#endif
