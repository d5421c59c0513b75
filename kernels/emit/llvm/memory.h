/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and tiles. */
#ifndef LLVM_MEMORY_H
#define LLVM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "emit/llvm/api.h"

struct ll;

/* memory.c */
void ll_access(struct ll *l, uint32_t at);
void ll_atomic_add(struct ll *l, uint32_t at);
/* Whether stores may go around the caches: not where the module reads what it writes. */
bool ll_may_stream(const struct ll *l);
/* A vector around the caches; how places of vectors of such elements are to be aligned for it. */
void ll_stream(struct ll *l, ll_value vector, ll_value to, uint32_t align);
uint32_t ll_stream_align(const struct ll *l, uint32_t bytes);

#endif
