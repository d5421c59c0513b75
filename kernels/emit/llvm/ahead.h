/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is wanted next, asked for while what is there is computed. */
#ifndef LLVM_AHEAD_H
#define LLVM_AHEAD_H

#include <stdint.h>

#include "emit/llvm/api.h"
#include "emit/llvm/emit.h"

struct ll;

/* ahead.c: from where a load of an argument reads, in elements of `bytes`, to where it reads next,
 * I64; NULL: unknown, or not worth asking memory for.  Asking loads into a cache. */
ll_value ll_next_place(struct ll *l, uint32_t at, uint32_t bytes);
void ll_ask(struct ll *l, ll_value place);
struct ll_around ll_loops_around(const struct ll *l, uint32_t at);
/* How many instructions there are for a vector from one on, before another, without memory's. */
uint32_t ll_work(const struct ll *l, uint32_t from, uint32_t end);

#endif
