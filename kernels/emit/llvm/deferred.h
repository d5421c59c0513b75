/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred stores: non-temporal stores of one group that the next group carries out. */
#ifndef LLVM_DEFERRED_H
#define LLVM_DEFERRED_H

#include "emit/llvm/api.h"

struct ll;

/* Finds the store to defer and the loop that carries it out, and sets l->deferred. */
void ll_plan_deferred(struct ll *l);
/* Before the loop: loads the address and the size of what the last group held back. */
void ll_take_held(struct ll *l);
/* In each round of the loop: stores a part of it. */
void ll_store_held(struct ll *l);
/* Writes a round's vectors to scratch memory, to be stored at `to` by the next group, and continues
 * at `after`.  Jumps to `full` if they do not fit, or if `to` does not follow what is held already.
 */
void ll_hold_back(struct ll *l, const ll_value *raw, ll_value to, ll_block full, ll_block after);

#endif
