/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in a model's file, as types and dense elements. */
#ifndef ONNX_TENSOR_H
#define ONNX_TENSOR_H

#include <stdint.h>

#include <frit/status.h>

struct onnx_model;
struct op_type;
struct Onnx__TensorProto;

/* The element type of one of ONNX's numbers; FRIT_NO_DTYPE if Frit has none. */
uint32_t tensor_dtype(int32_t number);
/* Bits of a type that Frit holds in a wider one, such as int4; 0 for all others. */
uint32_t tensor_bits(int32_t number);
/* "float16" and so on; "?" for a number that ONNX does not have. */
const char *tensor_dtype_name(int32_t number);

/* Type and elements, which lie in the model; what the file has in another form is converted once.
 */
frit_status tensor_read(struct onnx_model *model, const struct Onnx__TensorProto *tensor,
                        struct op_type *type, const void **data, frit_err *err);

#endif
