/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of a graph, recorded as if the program had called them. */
#ifndef API_RECORD_OP_H
#define API_RECORD_OP_H

#include <frit/frit.h>

struct graph_op;

/* `tensors`: by the numbers of the graph's values; gets those that the op makes.  `in` has space
 * for the op's operands. */
void record_op(frit_device *device, const struct graph_op *op, frit_input *in,
               frit_tensor **tensors);

#endif
