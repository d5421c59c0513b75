/* SPDX-License-Identifier: Apache-2.0 */
#include "api/record_op.h"

#include "graph/graph.h"

void record_op(frit_device *device, const struct graph_op *op, frit_input *in,
               frit_tensor **tensors)
{
    frit_call call = {
        .struct_size = sizeof(call), .op = op->op, .n_in = op->n_in, .in = in, .attrs = op->attrs};
    frit_tensor *out[FRIT_OP_MAX_OUT];
    uint32_t n_out = 0;

    for (uint32_t i = 0; i < op->n_in; i++) {
        in[i] = (frit_input){0};
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            in[i].tensor = tensors[op->in[i].value];
        else if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            in[i].scalar = op->in[i].scalar;
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        n_out = op->out[i] != GRAPH_NO_VALUE ? i + 1 : n_out;
    frit_op(device, &call, out, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        if (op->out[i] != GRAPH_NO_VALUE)
            tensors[op->out[i]] = out[i];
        else
            frit_release(out[i]);
    }
}
