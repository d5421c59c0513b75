/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised models: numbers as integers with a scale and a zero point.  Products are exact:
 * integers are multiplied as such, or as floats that hold the sums. */
#include <string.h>

#include "graph/dtype.h"
#include "onnx/emit.h"
#include "onnx/fold.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"
#include "onnx/window.h"

/* ---- scales ---- */

/* A scale or zero point of one number, of one per index of the axis, or of one per block of it, in
 * a form that broadcasts to x. */
static val *spread(struct import_node *n, val *scale, const val *x, int64_t axis_given,
                   int64_t block)
{
    frit_dims dims = {.rank = e_rank(x)};
    uint32_t axis;

    if (!scale || dtype_class(scale->type.dtype) == FRIT_DTYPE_PACKED)
        return scale; /* a zero point of such a type is 0 */
    if (!x || e_elements(scale) == 1)
        return e_reshape(n, scale, FRIT_RANK0);
    axis = e_axis(n, axis_given, x->type.rank);
    if (n->failed)
        return NULL;
    if (block && scale->type.rank == x->type.rank) {
        frit_dims wide;

        scale = e_unsqueeze(n, scale, axis + 1);
        if (!scale)
            return NULL;
        wide = e_dims(scale);
        wide.dim[axis + 1] = block;
        scale = e_expand(n, scale, wide);
        dims = e_dims(x);
        for (uint32_t d = 0; d < dims.rank; d++)
            dims.dim[d] = d == axis ? wide.dim[axis] * block : wide.dim[d < axis ? d : d + 1];
        scale = e_reshape(n, scale, dims);
        return e_slice(n, scale, axis, 0, x->type.dims[axis], 1);
    }
    for (uint32_t d = 0; d < dims.rank; d++)
        dims.dim[d] = d == axis ? e_elements(scale) : 1;
    return scale->type.rank == 1 ? e_reshape(n, scale, dims) : scale;
}

/* The least and the greatest number of an integer type. */
static void range_of(uint32_t dtype, int32_t narrow, double *low, double *high)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    uint32_t bits = narrow ? tensor_bits(narrow) : info.bits;
    bool is_signed = info.cls == FRIT_DTYPE_INT;

    *low = is_signed ? -(double)(1ULL << (bits - 1)) : 0;
    *high = (double)((1ULL << (bits - (is_signed ? 1 : 0))) - 1);
}

/* round(x) + zero, cut to the type. */
static val *to_integer(struct import_node *n, val *x, val *zero, uint32_t dtype, int32_t narrow)
{
    double low, high;
    uint32_t cls = dtype_class(dtype);

    if ((cls != FRIT_DTYPE_INT && cls != FRIT_DTYPE_UINT) || frit_dtype_info_of(dtype).bits > 32) {
        problem_node(n, "quantising to %s", dtype_name(dtype));
        return NULL;
    }
    range_of(dtype, narrow, &low, &high);
    x = e_un(n, FRIT_OP_round, x);
    if (zero)
        x = e_add(n, x, e_like(n, zero, x));
    x = e_cast(n, e_min(n, e_max(n, x, e_num(n, low)), e_num(n, high)), dtype);
    return e_narrowed(n, x, narrow);
}

/* ---- quantising ---- */

void onnx_row_quantize(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *scale = e_in(n, 1), *zero = e_has(n, 2) ? e_in(n, 2) : NULL;
    int64_t axis = attr_int(n, "axis", 1), block = attr_int(n, "block_size", 0);
    int32_t type = (int32_t)attr_int(n, "output_dtype", 0);
    int32_t narrow = zero ? zero->narrow : type && tensor_bits(type) ? type : 0;
    uint32_t dtype = zero ? zero->type.dtype : type ? tensor_dtype(type) : FRIT_U8;
    int32_t precision = (int32_t)attr_int(n, "precision", 0);

    (void)arg;
    if (n->failed || !x || !scale)
        return;
    if (dtype == FRIT_NO_DTYPE) {
        problem_node(n, "results of type %s, which Frit does not have", tensor_dtype_name(type));
        return;
    }
    if (precision && tensor_dtype(precision) != FRIT_NO_DTYPE)
        x = e_cast(n, x, tensor_dtype(precision));
    else if (!e_is_float(x))
        x = e_cast(n, x, FRIT_F32);
    scale = spread(n, e_like(n, scale, x), x, axis, block);
    x = e_div(n, x, scale);
    if (dtype_class(dtype) == FRIT_DTYPE_PACKED) {
        e_out(n, 0, type_convert(n, x, dtype));
        return;
    }
    x = e_cast(n, x, e_dtype(x) == FRIT_F64 ? FRIT_F64 : FRIT_F32);
    e_out(n, 0, to_integer(n, x, spread(n, zero, x, axis, block), dtype, narrow));
}

/* (x - zero) * scale, in the type of the scale. */
static val *dequantize(struct import_node *n, val *x, val *scale, val *zero)
{
    if (!x || !scale)
        return NULL;
    if (dtype_class(x->type.dtype) == FRIT_DTYPE_PACKED)
        x = e_convert(n, x, FRIT_F32);
    else
        x = e_cast(n, x, FRIT_I32);
    if (zero && dtype_class(zero->type.dtype) != FRIT_DTYPE_PACKED)
        x = e_sub(n, x, e_cast(n, zero, FRIT_I32));
    return e_mul(n, e_cast(n, x, FRIT_F32), e_cast(n, scale, FRIT_F32));
}

/* ---- weights ---- */

/* The packed type that holds known integers less their zero point exactly: signed ones whose zero
 * point is 0, unsigned ones whose zero point is the middle of their range.  FRIT_NO_DTYPE: none. */
static uint32_t packed_of(const val *x, const val *zero)
{
    static const uint32_t types[] = {[2] = FRIT_Q2, [4] = FRIT_Q4, [8] = FRIT_Q8};
    const uint32_t cls = dtype_class(x->type.dtype);
    const uint32_t bits =
        x->narrow ? tensor_bits(x->narrow) : frit_dtype_info_of(x->type.dtype).bits;
    const uint32_t middle = cls == FRIT_DTYPE_UINT && bits <= 8 ? 1U << (bits - 1) : 0;
    const int64_t count = zero ? e_elements(zero) : 0;

    if (!x->data || bits > 8 || (cls != FRIT_DTYPE_INT && cls != FRIT_DTYPE_UINT) ||
        (zero ? !zero->data || zero->type.dtype != x->type.dtype : middle != 0))
        return FRIT_NO_DTYPE;
    for (int64_t i = 0; i < count; i++)
        if (((const unsigned char *)zero->data)[i] != middle)
            return FRIT_NO_DTYPE;
    return types[bits];
}

/* The elements, of a byte each, less their zero point: what is less than the middle of an unsigned
 * range becomes negative when the highest bit is flipped. */
static val *packed_weights(struct import_node *n, const val *x, uint32_t dtype)
{
    const uint32_t bits = frit_dtype_info_of(dtype).bits, per = 8 / bits;
    const bool is_signed = dtype_class(x->type.dtype) == FRIT_DTYPE_INT;
    const uint32_t flip = is_signed ? 0 : 1U << (bits - 1);
    const unsigned char *from = x->data;
    struct op_type type = x->type;
    unsigned char *to;

    type.dtype = dtype;
    if (bits == 8 && is_signed)
        return import_constant(n->import, &type, x->data, NULL);
    to = import_elements(n->import, frit_storage_bytes(dtype, op_elements(&type)) + 1);
    if (!to)
        return NULL;
    memset(to, 0, frit_storage_bytes(dtype, op_elements(&type)));
    for (int64_t i = 0; i < op_elements(&type); i++) {
        const uint32_t value = (from[i] ^ flip) & ((1U << bits) - 1);

        to[i / per] = (unsigned char)(to[i / per] | value << i % per * bits);
    }
    return import_constant(n->import, &type, to, NULL);
}

/* Weights stay packed, so that products read no more than their bits.  False: they are no such. */
static bool dequantize_packed(struct import_node *n, val *x, val *scale, const val *zero,
                              int64_t axis_given, int64_t block, val **out)
{
    const uint32_t dtype = x && scale ? packed_of(x, zero) : FRIT_NO_DTYPE;
    frit_attrs_dequantize attrs = E_ATTRS(dequantize);
    frit_dims line = e_dims(x);
    uint32_t axis;

    if (dtype == FRIT_NO_DTYPE || x->type.rank < 2 || e_elements(x) <= FOLD_MAX_ELEMENTS ||
        !e_is_float(scale))
        return false;
    if (e_elements(scale) == 1) {
        scale = e_reshape(n, scale, FRIT_RANK0);
    } else {
        axis = e_axis(n, axis_given, x->type.rank);
        if (n->failed ||
            (block ? scale->type.rank != x->type.rank : e_elements(scale) != x->type.dims[axis]))
            return false;
        attrs.block = line;
        for (uint32_t d = 0; d < line.rank; d++) {
            if (block)
                attrs.block.dim[d] = d == axis ? block : 1;
            else if (d == axis)
                attrs.block.dim[d] = 1;
            else
                line.dim[d] = 1;
        }
        scale = block ? scale : e_reshape(n, scale, line);
    }
    *out = E_OP(n, FRIT_OP_dequantize, &attrs, packed_weights(n, x, dtype), scale, e_none(n));
    return true;
}

void onnx_row_dequantize(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *scale = e_in(n, 1), *zero = e_has(n, 2) ? e_in(n, 2) : NULL;
    val *packed;
    int64_t axis = attr_int(n, "axis", 1), block = attr_int(n, "block_size", 0);
    int32_t type = (int32_t)attr_int(n, "output_dtype", 0);
    uint32_t dtype = type ? tensor_dtype(type) : e_dtype(scale);

    (void)arg;
    if (n->failed)
        return;
    if (dequantize_packed(n, x, scale, zero, axis, block, &packed)) {
        e_out(n, 0, e_cast(n, packed, dtype));
        return;
    }
    x = dequantize(n, x, spread(n, scale, x, axis, block),
                   zero ? spread(n, zero, x, axis, block) : NULL);
    e_out(n, 0, e_cast(n, x, dtype));
}

/* The scale that maps the range of x, with 0 in it, to 0..255. */
void onnx_row_dynamic_quantize(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *low, *high, *scale, *zero;
    const frit_axes all = {0};

    (void)arg;
    high = e_max(n, e_reduce(n, FRIT_OP_max, x, all, false), e_num(n, 0));
    low = e_min(n, e_reduce(n, FRIT_OP_min, x, all, false), e_num(n, 0));
    scale = e_div(n, e_sub(n, high, low), e_num(n, 255));
    zero = e_un(n, FRIT_OP_round, e_div(n, e_un(n, FRIT_OP_neg, low), scale));
    zero = e_cast(n, e_min(n, e_max(n, zero, e_num(n, 0)), e_num(n, 255)), FRIT_U8);
    e_out(n, 0, to_integer(n, e_div(n, x, scale), zero, FRIT_U8, 0));
    e_out(n, 1, scale);
    e_out(n, 2, zero);
}

/* ---- products ---- */

/* x - zero as i32; a zero point per row is a column. */
static val *centred(struct import_node *n, val *x, val *zero, bool rows)
{
    x = e_cast(n, x, FRIT_I32);
    if (!zero)
        return x;
    zero = e_cast(n, zero, FRIT_I32);
    if (rows && e_rank(zero) == 1 && e_elements(zero) != 1)
        zero = e_unsqueeze(n, zero, 1);
    if (e_elements(zero) == 1)
        zero = e_reshape(n, zero, FRIT_RANK0);
    return e_sub(n, x, zero);
}

static val *optional(struct import_node *n, uint32_t index)
{
    return e_has(n, index) ? e_in(n, index) : NULL;
}

void onnx_row_matmul_integer(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0,
          e_matmul_any(n, centred(n, e_in(n, 0), optional(n, 2), true),
                       centred(n, e_in(n, 1), optional(n, 3), false)));
}

/* A scale per row of the left side is a column. */
static val *as_rows(struct import_node *n, val *scale, bool rows)
{
    if (scale && e_elements(scale) == 1)
        return e_reshape(n, scale, FRIT_RANK0);
    return rows && e_rank(scale) == 1 ? e_unsqueeze(n, scale, 1) : scale;
}

void onnx_row_qlinear_matmul(struct import_node *n, uint32_t arg)
{
    val *zero = e_in(n, 7), *y, *scale;

    (void)arg;
    y = e_matmul_any(n, centred(n, e_in(n, 0), e_in(n, 2), true),
                     centred(n, e_in(n, 3), e_in(n, 5), false));
    scale = e_mul(n, as_rows(n, e_cast(n, e_in(n, 1), FRIT_F32), true),
                  as_rows(n, e_cast(n, e_in(n, 4), FRIT_F32), false));
    scale = e_div(n, scale, as_rows(n, e_cast(n, e_in(n, 6), FRIT_F32), true));
    y = e_mul(n, e_cast(n, y, FRIT_F32), scale);
    e_out(n, 0,
          zero ? to_integer(n, y, as_rows(n, zero, true), zero->type.dtype, zero->narrow) : NULL);
}

/* Sums of products of bytes fit exactly into the 24 bits of f32 up to this many; then f64 is taken.
 */
enum { EXACT_F32 = (1 << 24) / (255 * 255) };

/* The convolution of centred integers, as floats without rounding. */
static val *integer_conv(struct import_node *n, val *x, val *x_zero, val *w, val *w_zero)
{
    frit_dims dims = {.rank = e_rank(w)};
    int64_t terms = 1;
    uint32_t dtype;

    for (uint32_t d = 1; d < e_rank(w); d++)
        terms *= w->type.dims[d];
    dtype = terms <= EXACT_F32 ? FRIT_F32 : FRIT_F64;
    if (w_zero && e_elements(w_zero) != 1) {
        for (uint32_t d = 0; d < dims.rank; d++)
            dims.dim[d] = d ? 1 : e_elements(w_zero);
        w_zero = e_reshape(n, w_zero, dims);
    }
    return window_conv(n, e_cast(n, centred(n, x, x_zero, false), dtype),
                       e_cast(n, centred(n, w, w_zero, false), dtype), NULL);
}

void onnx_row_conv_integer(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0,
          e_cast(n, integer_conv(n, e_in(n, 0), optional(n, 2), e_in(n, 1), optional(n, 3)),
                 FRIT_I32));
}

static val *per_channel(struct import_node *n, val *x, uint32_t rank)
{
    frit_dims dims = {.rank = rank};

    if (e_elements(x) == 1)
        return e_reshape(n, x, FRIT_RANK0);
    for (uint32_t d = 0; d < rank; d++)
        dims.dim[d] = d == 1 ? e_elements(x) : 1;
    return e_reshape(n, x, dims);
}

void onnx_row_qlinear_conv(struct import_node *n, uint32_t arg)
{
    val *zero = e_in(n, 7), *y, *scale;

    (void)arg;
    y = integer_conv(n, e_in(n, 0), e_in(n, 2), e_in(n, 3), e_in(n, 5));
    if (e_has(n, 8))
        y = e_add(n, y, per_channel(n, e_like(n, e_in(n, 8), y), e_rank(y)));
    scale = e_mul(n, e_reshape(n, e_in(n, 1), FRIT_RANK0), per_channel(n, e_in(n, 4), e_rank(y)));
    scale = e_div(n, scale, e_reshape(n, e_in(n, 6), FRIT_RANK0));
    y = e_mul(n, e_cast(n, y, FRIT_F32), scale);
    e_out(n, 0,
          zero ? to_integer(n, y, e_reshape(n, zero, FRIT_RANK0), zero->type.dtype, 0) : NULL);
}
