/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between element types, and constants. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "graph/dtype.h"
#include "onnx/emit.h"
#include "onnx/model.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"

/* The low bits of an integer, as a number of a type that has no more. */
static val *wrap(struct import_node *n, val *x, int32_t type)
{
    int64_t top = INT64_C(1) << (tensor_bits(type) - 1);

    if (e_is_float(x))
        x = e_cast(n, x, FRIT_I32);
    x = e_bin(n, FRIT_OP_and, e_cast(n, x, FRIT_I32), e_whole(n, 2 * top - 1));
    if (dtype_class(tensor_dtype(type)) == FRIT_DTYPE_INT)
        x = e_sub(n, e_bin(n, FRIT_OP_xor, x, e_whole(n, top)), e_whole(n, top));
    return e_narrowed(n, e_cast(n, x, tensor_dtype(type)), type);
}

/* The least size that rounds to what is beyond the largest number of a float of 8 bits. */
static double beyond_of(uint32_t dtype)
{
    switch (dtype) {
    case FRIT_F8E4M3:
        return nextafter(464, 465); /* 464 is halfway, and 448 is even */
    case FRIT_F8E4M3FNUZ:
        return 248;
    default:
        return 61440;
    }
}

/* The upper half of an f16, which has the same exponent: infinity is among its numbers. */
static val *with_infinity(struct import_node *n, val *x)
{
    val *bits = e_bitcast(n, e_cast(n, x, FRIT_F16), FRIT_U16);

    bits = e_cast(n, e_bin(n, FRIT_OP_shr, bits, e_whole(n, 8)), FRIT_U8);
    return e_bitcast(n, bits, FRIT_F8E5M2);
}

/* Without saturation what lies beyond the range is infinite, or no number where the type has no
 * infinity. */
static val *unsaturated(struct import_node *n, val *x, uint32_t dtype)
{
    const bool infinite = dtype == FRIT_F8E5M2;
    val *beyond, *most;

    x = e_convert(n, x, FRIT_F32);
    beyond = e_bin(n, FRIT_OP_ge, e_un(n, FRIT_OP_abs, x), e_num(n, beyond_of(dtype)));
    if (!infinite)
        return e_where(n, beyond, e_num(n, (double)NAN), x);
    most = e_mul(n, e_un(n, FRIT_OP_sign, x), e_num(n, (double)INFINITY));
    x = e_convert(n, e_convert(n, x, dtype), FRIT_F32);
    return with_infinity(n, e_where(n, beyond, most, x));
}

/* A power of two: what is no number or infinite is no number, a sign is passed over. */
static val *to_scale(struct import_node *n, val *x)
{
    const char *mode = attr_text(n, "round_mode", "up");
    const int64_t fraction = (1 << 23) - 1, top = INT64_C(0xff) << 23;
    val *bits = e_bitcast(n, e_un(n, FRIT_OP_abs, e_cast(n, x, FRIT_F32)), FRIT_I32), *number;

    number = e_bin(n, FRIT_OP_lt, bits, e_whole(n, top));
    if (strcmp(mode, "up") == 0)
        bits = e_add(n, bits, e_whole(n, fraction));
    else if (strcmp(mode, "nearest") == 0)
        bits = e_add(n, bits, e_whole(n, (1 << 22)));
    else if (strcmp(mode, "down") != 0)
        problem_node(n, "round_mode '%.40s'", mode);
    bits = e_min(n, e_bin(n, FRIT_OP_shr, bits, e_whole(n, 23)),
                 e_whole(n, attr_int(n, "saturate", 1) ? 254 : 255));
    bits = e_where(n, number, bits, e_whole(n, 255));
    return e_bitcast(n, e_cast(n, bits, FRIT_U8), FRIT_F8E8M0);
}

val *type_convert(struct import_node *n, val *x, uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.bits == 8 && info.cls == FRIT_DTYPE_PACKED && dtype != FRIT_F8E8M0 &&
        e_dtype(x) != dtype && !attr_int(n, "saturate", 1))
        x = unsaturated(n, x, dtype);
    return e_convert(n, x, dtype);
}

static void cast_to(struct import_node *n, val *x, uint32_t dtype, int32_t narrow)
{
    if (narrow)
        x = wrap(n, dtype_class(e_dtype(x)) == FRIT_DTYPE_PACKED ? e_convert(n, x, FRIT_F32) : x,
                 narrow);
    else if (dtype == FRIT_F8E8M0 && e_dtype(x) != dtype)
        x = to_scale(n, e_convert(n, x, FRIT_F32));
    x = type_convert(n, x, dtype);
    e_out(n, 0, narrow || !x || !x->narrow ? x : e_narrowed(n, x, narrow));
}

void onnx_row_cast(struct import_node *n, uint32_t arg)
{
    int32_t to = (int32_t)attr_int(n, "to", 0);
    uint32_t dtype = tensor_dtype(to);

    (void)arg;
    if (dtype == FRIT_NO_DTYPE)
        problem_node(n, "a cast to %s, which Frit does not have", tensor_dtype_name(to));
    else
        cast_to(n, e_in(n, 0), dtype, tensor_bits(to) ? to : 0);
}

void onnx_row_cast_like(struct import_node *n, uint32_t arg)
{
    val *like = e_in(n, 1);

    (void)arg;
    if (like)
        cast_to(n, e_in(n, 0), like->type.dtype, like->narrow);
}

void onnx_row_bit_cast(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    const int32_t to = (int32_t)attr_int(n, "to", 0);

    (void)arg;
    if (tensor_dtype(to) == FRIT_NO_DTYPE || tensor_bits(to) || (x && x->narrow))
        problem_node(n, "bits of %s, which Frit does not have as such, as %s",
                     x && x->narrow ? tensor_dtype_name(x->narrow) : "a tensor",
                     tensor_dtype_name(to));
    else
        e_out(n, 0, e_bitcast(n, x, tensor_dtype(to)));
}

/* ---- constants ---- */

static val *constant_of(struct import_node *n, const Onnx__TensorProto *tensor)
{
    frit_err err = ERR_INIT;
    struct op_type type;
    const void *data;

    if (!tensor_read(n->import->model, tensor, &type, &data, &err))
        return e_narrowed(n, import_constant(n->import, &type, data, NULL),
                          tensor_bits(tensor->data_type) ? tensor->data_type : 0);
    problem_node(n, "%s", err.text);
    return NULL;
}

static val *constant_floats(struct import_node *n, const Onnx__AttributeProto *attr)
{
    const struct op_type type = {FRIT_F32, 1, {(int64_t)attr->n_floats}};

    return import_constant(n->import, &type, attr->n_floats ? (const void *)attr->floats : "",
                           NULL);
}

void onnx_row_constant(struct import_node *n, uint32_t arg)
{
    struct ints ints;

    (void)arg;
    if (attr_has(n, "value"))
        e_out(n, 0, attr_tensor(n, "value") ? constant_of(n, attr_tensor(n, "value")) : NULL);
    else if (attr_has(n, "value_float"))
        e_out(n, 0, e_known(n, FRIT_F32, attr_float(n, "value_float", 0)));
    else if (attr_has(n, "value_int"))
        e_out(n, 0,
              e_reshape(n, e_known_ints(n, FRIT_I64, (int64_t[]){attr_int(n, "value_int", 0)}, 1),
                        FRIT_RANK0));
    else if (attr_has(n, "value_floats"))
        e_out(n, 0,
              attr_floats(n, "value_floats") ? constant_floats(n, attr_floats(n, "value_floats"))
                                             : NULL);
    else if (attr_ints(n, "value_ints", &ints))
        e_out(n, 0, e_known_ints(n, FRIT_I64, ints.at, ints.count));
    else
        problem_node(n, "a constant of strings or of a sparse tensor");
}

/* Dims in operand `index`. */
static bool read_dims(struct import_node *n, uint32_t index, frit_dims *out)
{
    struct ints ints;

    if (!e_ints(n, index, &ints))
        return false;
    if (ints.count > FRIT_MAX_RANK) {
        problem_node(n, "%u dims, Frit has at most %d", ints.count, FRIT_MAX_RANK);
        return false;
    }
    out->rank = ints.count;
    memcpy(out->dim, ints.at, ints.count * sizeof(int64_t));
    return true;
}

void onnx_row_constant_of_shape(struct import_node *n, uint32_t arg)
{
    const Onnx__TensorProto *tensor = attr_tensor(n, "value");
    val *value = tensor ? constant_of(n, tensor) : e_known(n, FRIT_F32, 0);
    frit_dims dims;

    (void)arg;
    if (value && read_dims(n, 0, &dims))
        e_out(n, 0, e_full_of(n, value, dims));
}

/* start, limit, step */
void onnx_row_range(struct import_node *n, uint32_t arg)
{
    val *start = e_in(n, 0);
    double first = e_real(n, 0, 0), limit = e_real(n, 1, 0), step = e_real(n, 2, 1);
    double count = step == 0 ? -1 : (limit - first) / step;

    (void)arg;
    if (step == 0 || !(count < 1e12)) {
        problem_node(n, "a range of step 0 or without an end");
        return;
    }
    count = count > 0 ? count : 0;
    e_out(n, 0,
          e_arange(n, e_dtype(start),
                   e_is_float(start) ? e_num(n, first) : e_whole(n, e_int(n, 0, 0)),
                   e_is_float(start) ? e_num(n, step) : e_whole(n, e_int(n, 2, 1)),
                   (int64_t)count + ((double)(int64_t)count < count)));
}

void onnx_row_shape(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    int64_t rank = e_rank(x), start = attr_int(n, "start", 0), end = attr_int(n, "end", rank);

    (void)arg;
    if (!x)
        return;
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    e_out(n, 0, e_known_ints(n, FRIT_I64, x->type.dims + start, end - start));
}

void onnx_row_size(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);

    (void)arg;
    if (x)
        e_out(n, 0,
              e_reshape(n, e_known_ints(n, FRIT_I64, (int64_t[]){e_elements(x)}, 1), FRIT_RANK0));
}

void onnx_row_eye_like(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *rows, *columns;
    uint32_t dtype =
        attr_has(n, "dtype") ? tensor_dtype((int32_t)attr_int(n, "dtype", 0)) : e_dtype(x);

    (void)arg;
    if (!x || x->type.rank != 2) {
        problem_node(n, "EyeLike of a tensor that has not two dims");
        return;
    }
    rows = e_arange(n, FRIT_I64, e_whole(n, attr_int(n, "k", 0)), e_whole(n, 1), x->type.dims[0]);
    columns = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), x->type.dims[1]);
    rows = e_bin(n, FRIT_OP_eq, e_unsqueeze(n, rows, 1), e_unsqueeze(n, columns, 0));
    e_out(n, 0, e_cast(n, rows, dtype));
}
