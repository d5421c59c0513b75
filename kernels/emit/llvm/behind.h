/* SPDX-License-Identifier: Apache-2.0 */
/* Stores around the caches that the next group carries out. */
#ifndef LLVM_BEHIND_H
#define LLVM_BEHIND_H

#include "emit/llvm/api.h"

struct ll;

/* behind.c: such a store is looked for; before the loop what is held is taken, and stored round by
 * round; a round's vectors are held if there is room and they go on with what is, else control goes
 * to `full`. */
void ll_plan_behind(struct ll *l);
void ll_take_held(struct ll *l);
void ll_store_held(struct ll *l);
void ll_hold_back(struct ll *l, const ll_value *raw, ll_value to, ll_block full, ll_block after);

#endif
