/* SPDX-License-Identifier: Apache-2.0 */
/* Losses. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* -weight * log_prob at the target's class, reduced as the node says. */
static val *likelihood_loss(struct import_node *n, val *log_prob, val *target, val *weight)
{
    bool ignores = attr_has(n, "ignore_index");
    int64_t ignored = attr_int(n, "ignore_index", 0);
    const char *reduction = attr_text(n, "reduction", "mean");
    const frit_axes all = {0};
    val *loss, *weights = NULL, *total;

    if (!log_prob || !target)
        return NULL;
    target = target->type.dtype == FRIT_I32 ? target : e_cast(n, target, FRIT_I64);
    loss = e_squeeze(n, e_gather(n, log_prob, e_unsqueeze(n, target, 1), 1), 1);
    loss = e_un(n, FRIT_OP_neg, loss);
    if (weight) {
        weights = e_select(n, weight, e_reshape(n, target, FRIT_SHAPE(e_elements(target))), 0);
        weights = e_reshape(n, weights, e_dims(target));
    }
    if (ignores) {
        val *counts = e_bin(n, FRIT_OP_ne, target, e_whole(n, ignored));

        weights = weights ? e_where(n, counts, weights, e_num(n, 0)) : e_like(n, counts, loss);
        loss = e_where(n, counts, loss, e_num(n, 0));
    }
    loss = weights ? e_mul(n, loss, weights) : loss;
    if (strcmp(reduction, "none") == 0)
        return loss;
    total = e_reduce(n, FRIT_OP_sum, loss, all, false);
    if (strcmp(reduction, "sum") == 0)
        return total;
    return weights ? e_div(n, total, e_reduce(n, FRIT_OP_sum, weights, all, false))
                   : e_reduce(n, FRIT_OP_mean, loss, all, false);
}

void onnx_row_likelihood_loss(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, likelihood_loss(n, e_in(n, 0), e_in(n, 1), e_has(n, 2) ? e_in(n, 2) : NULL));
}

void onnx_row_cross_entropy(struct import_node *n, uint32_t arg)
{
    val *log_prob = e_softmax(n, FRIT_OP_log_softmax, e_in(n, 0), 1);

    (void)arg;
    e_out(n, 0, likelihood_loss(n, log_prob, e_in(n, 1), e_has(n, 2) ? e_in(n, 2) : NULL));
    e_out(n, 1, log_prob);
}
