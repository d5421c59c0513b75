/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches: the lines that a load needs next are requested while the current ones are computed
 * on. */
#ifndef LLVM_PREFETCH_H
#define LLVM_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "emit/llvm/api.h"
#include "emit/llvm/emit.h"

struct ll;

/* How far after the element that the load `at` reads now lies the one that it reads next: an I64,
 * in elements of `bytes` bytes.  NULL: the distance is unknown, or a prefetch is not worth it. */
ll_value ll_next_distance(struct ll *l, uint32_t at, uint32_t bytes);
/* Where groups after each other read the same in a loop, up to a quotient of their number, they
 * share what those after them will read: each prefetches a part of it, a part of a line in a round.
 * Gives an I64, to be made before the loop: the element is that and the loop's counter times *each.
 * NULL: they do not. */
ll_value ll_shared_begin(struct ll *l, uint32_t loop, uint32_t at, ll_value *each);
/* Likewise where all lanes read the same element, in rounds of products: to the one that the next
 * group reads, or the first of those after it that reads another; for the last such load from an
 * argument, whose neighbours the others read. */
ll_value ll_same_distance(struct ll *l, uint32_t at);
/* `shared`: into a cache beyond the first one. */
void ll_prefetch(struct ll *l, ll_value address, bool shared);
struct ll_around ll_loops_around(const struct ll *l, uint32_t at);
/* How many instructions from `from` to before `end` compute, each on a vector; loads and stores do
 * not count. */
uint32_t ll_work(const struct ll *l, uint32_t from, uint32_t end);

#endif
