/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and normalisation. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* Up to opset 12 all dims from the axis on are one. */
void row_softmax(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", n->opset < 13 ? 1 : -1), e_rank(x)) : 0;
    val *y;

    if (n->opset >= 13) {
        e_out(n, 0, e_softmax(n, arg, x, axis));
        return;
    }
    y = e_softmax(n, arg, e_reshape(n, x, e_dims_2d(x, axis)), 1);
    e_out(n, 0, e_reshape(n, y, e_dims(x)));
}

void row_batch_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *in[5] = {0};
    frit_attrs_norm attrs = E_ATTRS(norm);
    uint32_t dtype = e_dtype(x);

    (void)arg;
    if (attr_int(n, "training_mode", 0)) {
        problem_node(n, "training_mode: the statistics of the batch are for training");
        return;
    }
    attrs.eps = attr_float(n, "epsilon", 1e-5F);
    in[0] = x;
    for (uint32_t i = 1; i < 5; i++)
        in[i] = e_cast(n, e_in(n, i), dtype);
    e_out(n, 0, e_op(n, FRIT_OP_batch_norm, &attrs, 5, in));
}
