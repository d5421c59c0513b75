/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and branches. */
#ifndef EMIT_LLVM_CONTROL_H
#define EMIT_LLVM_CONTROL_H

#include <stdint.h>

#include "emit/llvm/api.h"

struct ll;

/* What is built from now on is at the end of a block. */
void ll_go_to(struct ll *l, ll_block block);
/* How many values the loop carries that an instruction opens; their phis follow it. */
uint32_t ll_phis_of(const struct ll *l, uint32_t opener);
ll_value ll_phi(struct ll *l, ll_type type, ll_value first, ll_block from);

/* The instructions `for`, `next`, `if` and `end` inside of a region; `next` is both that follow. */
void ll_for(struct ll *l, uint32_t at);
void ll_next(struct ll *l, uint32_t at);
void ll_if(struct ll *l, uint32_t at);
void ll_end(struct ll *l, uint32_t at);
/* After so many rounds the loop begins again. */
void ll_repeat(struct ll *l, uint32_t at, uint32_t rounds);
/* What the loop carried goes into its slots. */
void ll_leave(struct ll *l, uint32_t at);

/* Likewise between regions; `end` is the same. */
void ll_group_for(struct ll *l, uint32_t at);
void ll_group_next(struct ll *l, uint32_t at);
void ll_group_if(struct ll *l, uint32_t at);

#endif
