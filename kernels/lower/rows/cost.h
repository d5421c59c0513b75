/* SPDX-License-Identifier: Apache-2.0 */
/* What ops cost in a kernel, counted in instructions: bounds the size of kernels. */
#ifndef LOWER_COST_H
#define LOWER_COST_H

#include <stdint.h>

/* The most of one kernel.  Compile time grows faster than linearly: a common compiler takes half a
 * second for this many, and 15 s for twenty times as many.  Little is lost if further ops get a
 * kernel of their own, since computing this many takes longer than the memory accesses between the
 * two. */
enum { LOWER_MAX_COST = 4096 };

/* About how many instructions an op takes: those of an element of a row of rows.def, of an access
 * by a map of its own, or of a loop over many elements. */
uint32_t lower_cost(uint32_t op);

#endif
