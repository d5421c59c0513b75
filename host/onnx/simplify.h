/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that exporters write and that a cheaper one stands for, or none. */
#ifndef ONNX_SIMPLIFY_H
#define ONNX_SIMPLIFY_H

#include "onnx/import.h"

/* A value that equals the op's result, by an op that costs less or by none; NULL: the op itself has
 * to be emitted.  `operands` are those of `in` as the op takes them. */
val *simplify(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
              const struct graph_operand *operands);

#endif
