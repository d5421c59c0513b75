/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a TensorProto lie in one of five lists, as raw bytes or in a file beside the
 * model.  Types of four bits have two elements in a byte there; here each has its own. */
#include "onnx/tensor.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/model.h"

/* The list in which a type's elements lie where they are not raw. */
enum list { NO_LIST, FLOATS, INTS, LONGS, DOUBLES, UNSIGNED };

/* One of ONNX's element types. */
struct element {
    const char *name;
    uint32_t dtype; /* in Frit; FRIT_NO_DTYPE: none */
    enum list list;
    uint32_t bits; /* in the file, where they are fewer than in Frit; 0: the same */
    bool is_signed;
};

static const struct element elements[] = {
    {"undefined", FRIT_NO_DTYPE, NO_LIST, 0, false},
    {"float", FRIT_F32, FLOATS, 0, false},
    {"uint8", FRIT_U8, INTS, 0, false},
    {"int8", FRIT_I8, INTS, 0, false},
    {"uint16", FRIT_U16, INTS, 0, false},
    {"int16", FRIT_I16, INTS, 0, false},
    {"int32", FRIT_I32, INTS, 0, false},
    {"int64", FRIT_I64, LONGS, 0, false},
    {"string", FRIT_NO_DTYPE, NO_LIST, 0, false},
    {"bool", FRIT_BOOL, INTS, 0, false},
    {"float16", FRIT_F16, INTS, 0, false},
    {"double", FRIT_F64, DOUBLES, 0, false},
    {"uint32", FRIT_U32, UNSIGNED, 0, false},
    {"uint64", FRIT_U64, UNSIGNED, 0, false},
    {"complex64", FRIT_NO_DTYPE, NO_LIST, 0, false},
    {"complex128", FRIT_NO_DTYPE, NO_LIST, 0, false},
    {"bfloat16", FRIT_BF16, INTS, 0, false},
    {"float8e4m3fn", FRIT_F8E4M3, INTS, 0, false},
    {"float8e4m3fnuz", FRIT_F8E4M3FNUZ, INTS, 0, false},
    {"float8e5m2", FRIT_F8E5M2, INTS, 0, false},
    {"float8e5m2fnuz", FRIT_F8E5M2FNUZ, INTS, 0, false},
    {"uint4", FRIT_U8, INTS, 4, false},
    {"int4", FRIT_I8, INTS, 4, true},
    {"float4e2m1", FRIT_F4E2M1, INTS, 0, false},
    {"float8e8m0", FRIT_F8E8M0, INTS, 0, false},
    {"uint2", FRIT_U8, INTS, 2, false},
    {"int2", FRIT_I8, INTS, 2, true},
};

static const struct element *element_of(int32_t number)
{
    const uint32_t count = sizeof(elements) / sizeof(elements[0]);

    return &elements[number >= 0 && (uint32_t)number < count ? number : 0];
}

uint32_t tensor_dtype(int32_t number)
{
    return element_of(number)->dtype;
}

uint32_t tensor_bits(int32_t number)
{
    return element_of(number)->bits;
}

const char *tensor_dtype_name(int32_t number)
{
    return element_of(number)->name;
}

/* The elements of a source, before they are converted. */
struct stored {
    const void *bytes;
    size_t n_bytes;
    size_t width; /* bytes of an element; 0: as the type says */
};

/* ---- where the elements lie ---- */

static const char *entry_of(const Onnx__TensorProto *tensor, const char *key)
{
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];

        if (entry->key && entry->value && strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}

static frit_status read_number(const char *text, uint64_t *out, frit_err *err)
{
    char *end;

    *out = strtoull(text, &end, 10);
    if (!*text || *end)
        return fail(err, FRIT_INVALID, "external data: '%s' is no number of bytes", text);
    return FRIT_OK;
}

static frit_status read_external(struct onnx_model *model, const Onnx__TensorProto *tensor,
                                 struct stored *out, frit_err *err)
{
    const char *name = entry_of(tensor, "location");
    const char *offset_text = entry_of(tensor, "offset");
    const char *length_text = entry_of(tensor, "length");
    uint64_t offset = 0, length;
    const void *bytes;
    size_t n_bytes;

    if (!name)
        return fail(err, FRIT_INVALID, "external data without a location");
    TRY(model_file_bytes(model, name, &bytes, &n_bytes, err));
    if (offset_text)
        TRY(read_number(offset_text, &offset, err));
    length = offset < n_bytes ? n_bytes - offset : 0;
    if (length_text)
        TRY(read_number(length_text, &length, err));
    if (offset > n_bytes || length > n_bytes - offset)
        return fail(err, FRIT_INVALID,
                    "external data: %llu bytes from byte %llu on are not in %s, which has %zu",
                    (unsigned long long)length, (unsigned long long)offset, name, n_bytes);
    out->bytes = (const char *)bytes + offset;
    out->n_bytes = (size_t)length;
    return FRIT_OK;
}

static void read_list(const Onnx__TensorProto *t, enum list list, struct stored *out)
{
    const struct stored lists[] = {
        [NO_LIST] = {0},
        [FLOATS] = {t->float_data, t->n_float_data * sizeof(float), sizeof(float)},
        [INTS] = {t->int32_data, t->n_int32_data * sizeof(int32_t), sizeof(int32_t)},
        [LONGS] = {t->int64_data, t->n_int64_data * sizeof(int64_t), sizeof(int64_t)},
        [DOUBLES] = {t->double_data, t->n_double_data * sizeof(double), sizeof(double)},
        [UNSIGNED] = {t->uint64_data, t->n_uint64_data * sizeof(uint64_t), sizeof(uint64_t)},
    };

    *out = lists[list];
}

/* ---- converting ---- */

/* Numbers of `from` bytes each, cut to `to` bytes: little endian. */
static void narrow(char *to, size_t to_bytes, const char *from, size_t from_bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * to_bytes, from + i * from_bytes, to_bytes);
}

/* Elements of a few bits, low bits first, into a byte each. */
static void unpack_bits(uint8_t *to, const uint8_t *from, size_t count, const struct element *kind)
{
    const uint32_t per_byte = 8 / kind->bits;
    const uint32_t mask = (1U << kind->bits) - 1, top = 1U << (kind->bits - 1);

    for (size_t i = 0; i < count; i++) {
        uint32_t value = (uint32_t)from[i / per_byte] >> i % per_byte * kind->bits & mask;

        if (kind->is_signed)
            value = (value ^ top) - top;
        to[i] = (uint8_t)value;
    }
}

static frit_status read_type(const Onnx__TensorProto *tensor, struct op_type *type, frit_err *err)
{
    *type = (struct op_type){.dtype = tensor_dtype(tensor->data_type)};
    if (type->dtype == FRIT_NO_DTYPE)
        return fail(err, FRIT_UNSUPPORTED, "elements of type %s, which Frit does not have",
                    tensor_dtype_name(tensor->data_type));
    if (tensor->n_dims > FRIT_MAX_RANK)
        return fail(err, FRIT_UNSUPPORTED, "%zu dims, Frit has at most %d", tensor->n_dims,
                    FRIT_MAX_RANK);
    type->rank = (uint32_t)tensor->n_dims;
    for (uint32_t i = 0; i < type->rank; i++)
        type->dims[i] = tensor->dims[i];
    return op_type_check(type, err);
}

/* How many bytes the elements take in the source. */
static size_t stored_bytes(const struct element *kind, const struct op_type *type,
                           const struct stored *stored)
{
    uint64_t count = (uint64_t)op_elements(type);
    uint64_t bytes = frit_storage_bytes(type->dtype, (int64_t)count);

    if (kind->bits)
        bytes = (count * kind->bits + 7) / 8;
    if (stored->width && type->dtype == FRIT_F4E2M1)
        count = bytes;
    if (stored->width && kind->bits)
        count = bytes;
    return stored->width ? count * stored->width : bytes;
}

/* Elements that the file has in another form. */
static frit_status convert(struct onnx_model *model, const Onnx__TensorProto *tensor,
                           const struct op_type *type, struct stored stored, const void **data,
                           frit_err *err)
{
    const struct element *kind = element_of(tensor->data_type);
    const size_t bytes = frit_storage_bytes(type->dtype, op_elements(type));
    const void *key = tensor;
    char *copy = map_get(&model->converted, &key, sizeof(key));
    size_t width;

    *data = copy;
    if (copy)
        return FRIT_OK;
    copy = arena_alloc(&model->arena, bytes + stored.n_bytes);
    if (!copy || !map_add(&model->converted, &key, sizeof(key), copy))
        return fail_memory(err, bytes);
    *data = copy;
    if (!kind->bits) {
        width = stored.width * bytes / stored.n_bytes;
        narrow(copy, width, stored.bytes, stored.width, bytes / width);
        return FRIT_OK;
    }
    if (stored.width) {
        narrow(copy + bytes, 1, stored.bytes, stored.width, stored.n_bytes / stored.width);
        stored.bytes = copy + bytes;
    }
    unpack_bits((uint8_t *)copy, stored.bytes, (size_t)op_elements(type), kind);
    return FRIT_OK;
}

frit_status tensor_read(struct onnx_model *model, const Onnx__TensorProto *tensor,
                        struct op_type *type, const void **data, frit_err *err)
{
    const struct element *kind = element_of(tensor->data_type);
    struct stored stored = {tensor->raw_data.data, tensor->raw_data.len, 0};
    size_t bytes, want;

    TRY(read_type(tensor, type, err));
    bytes = frit_storage_bytes(type->dtype, op_elements(type));
    if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        TRY(read_external(model, tensor, &stored, err));
    else if (!tensor->has_raw_data)
        read_list(tensor, kind->list, &stored);
    want = stored_bytes(kind, type, &stored);
    if (stored.n_bytes != want)
        return fail(err, FRIT_INVALID, "%zu bytes of elements where dims and type want %zu",
                    stored.n_bytes, want);
    *data = bytes ? stored.bytes : "";
    if (!bytes || (!kind->bits && (!stored.width || stored.n_bytes == bytes)))
        return FRIT_OK;
    return convert(model, tensor, type, stored, data, err);
}
