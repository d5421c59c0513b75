/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are parts of sort. */
#include "graph/decompose/build.h"

/* Appends a sort of operand 0; `out` gets its results. */
static void append_sort(struct build *b, int64_t axis, bool descending, term out[FRIT_OP_MAX_OUT])
{
    const frit_attrs_sort attrs = {
        .struct_size = sizeof(attrs), .axis = axis, .descending = descending};
    const term x = b_in(b, 0);

    b_op_all(b, &(struct graph_call){.op = FRIT_OP_sort, .n_in = 1, .in = &x, .attrs = &attrs},
             out);
}

term decompose_argsort(struct build *b)
{
    const frit_attrs_sort *a = b->call->attrs;
    term out[FRIT_OP_MAX_OUT];

    append_sort(b, a->axis, a->descending, out);
    return out[1];
}

term decompose_topk(struct build *b)
{
    const frit_attrs_topk *a = b->call->attrs;
    term out[FRIT_OP_MAX_OUT];

    append_sort(b, a->axis, true, out);
    if (b->call->wanted & 2)
        b->results[1] = b_slice(b, out[1], (uint32_t)a->axis, 0, a->k);
    return b_slice(b, out[0], (uint32_t)a->axis, 0, a->k);
}
