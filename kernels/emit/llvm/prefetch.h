/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches: the lines that a load needs next are requested while the current ones are computed
 * on. */
#ifndef LLVM_PREFETCH_H
#define LLVM_PREFETCH_H

#include <stdint.h>

#include "emit/llvm/api.h"
#include "emit/llvm/emit.h"

struct ll;

/* How far after the element that the load `at` reads now lies the one that it reads next: an I64,
 * in elements of `bytes` bytes.  NULL: the distance is unknown, or a prefetch is not worth it. */
ll_value ll_next_distance(struct ll *l, uint32_t at, uint32_t bytes);
void ll_prefetch(struct ll *l, ll_value address);
struct ll_around ll_loops_around(const struct ll *l, uint32_t at);
/* How many instructions from `from` to before `end` compute, each on a vector; loads and stores do
 * not count. */
uint32_t ll_work(const struct ll *l, uint32_t from, uint32_t end);

#endif
