/* SPDX-License-Identifier: Apache-2.0 */
/* What ops cost in a kernel, counted in instructions: bounds the size of kernels. */
#ifndef LOWER_COST_H
#define LOWER_COST_H

#include <stdint.h>

/* Of a kernel at most.  Compilers take more than linear time: half a second for so many in a common
 * one, 15 s for twenty times as many.  Further ops are as well in a kernel of their own: so many
 * take longer than the memory between the two. */
enum { LOWER_MAX_COST = 4096 };

/* About how many instructions an op takes: those of an element of a row of rows.def, of an access
 * by a map of its own, or of a loop over many elements. */
uint32_t lower_cost(uint32_t op);

#endif
