/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as op records over the whole table: what they say is taken so that most calls come close to
 * what their rows want, and many keep all rules. */
#ifndef FUZZ_OP_BYTES_H
#define FUZZ_OP_BYTES_H

#include "graph/attrs.h"
#include "graph/graph.h"

struct bytes {
    const uint8_t *at;
    size_t left;
};

/* The next one; 0 beyond the last. */
uint32_t bytes_take(struct bytes *bytes);

/* Extents of inputs and numbers of attributes.  Small graphs can run: their inputs are not packed,
 * since programs give no such elements. */
enum op_sizes { OP_SMALL, OP_ANY };

/* A call with room for its operands; `call.attrs` points at `attrs`, or is NULL. */
struct op_record {
    const frit_op_info *row;
    struct graph_operand in[FRIT_OP_MAX_IN];
    union attrs attrs;
    struct graph_call call;
};

/* A new input of the graph. */
void op_bytes_input(struct bytes *bytes, enum op_sizes sizes, struct graph *graph);
/* A call over the graph's values, of which there is one at least. */
void op_bytes_record(struct bytes *bytes, enum op_sizes sizes, const struct graph *graph,
                     struct op_record *record);

#endif
