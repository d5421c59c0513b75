/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/fold.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/scalar.h"

/* ---- elements ---- */

bool fold_reads(uint32_t dtype)
{
    return dtype_class(dtype) != FRIT_DTYPE_PACKED;
}

int64_t fold_whole(double value)
{
    if (isnan(value))
        return 0;
    return value <= -0x1p63 ? INT64_MIN : value >= 0x1p63 ? INT64_MAX : (int64_t)value;
}

/* A float of 16 bits as a double. */
static double read_short(uint32_t dtype, uint16_t bits)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    int exponent = (bits & 0x7fff) >> info.fraction, top = (1 << info.exponent) - 1;
    int one = 1 << info.fraction, fraction = bits & (one - 1);
    double value;

    if (exponent == top)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - top / 2 - info.fraction);
    else
        value = ldexp(fraction | one, exponent - top / 2 - info.fraction);
    return bits & 0x8000 ? -value : value;
}

static uint16_t write_short(uint32_t dtype, double value)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    uint32_t sign = signbit(value) ? 0x8000 : 0, top = (1U << info.exponent) - 1;
    int exponent, lowest = 1 - (int)top / 2;
    double size = fabs(scalar_round(value, dtype));

    if (isnan(value))
        return (uint16_t)(top << info.fraction | 1U << (info.fraction - 1));
    if (isinf(size))
        return (uint16_t)(sign | top << info.fraction);
    frexp(size, &exponent);
    exponent = size == 0 || exponent - 1 < lowest ? lowest : exponent - 1;
    /* The carry of a normal number's leading bit makes the exponent. */
    return (uint16_t)(sign + ((uint32_t)(exponent - lowest) << info.fraction) +
                      (uint32_t)ldexp(size, info.fraction - exponent));
}

struct fold_number fold_get(uint32_t dtype, const void *data, int64_t index)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    size_t width = info.bits / CHAR_BIT;
    struct fold_number number = {0};
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + (size_t)index * width, width);
    if (info.cls == FRIT_DTYPE_FLOAT) {
        float narrow;

        if (dtype == FRIT_F64) {
            memcpy(&number.real, &bits, sizeof(number.real));
        } else if (dtype == FRIT_F32) {
            memcpy(&narrow, &bits, sizeof(narrow));
            number.real = (double)narrow;
        } else {
            number.real = read_short(dtype, (uint16_t)bits);
        }
        return number;
    }
    if (info.cls == FRIT_DTYPE_INT && info.bits < 64)
        number.whole = (int64_t)(bits << (64 - info.bits)) >> (64 - info.bits);
    else
        number.whole = (int64_t)bits;
    number.real = info.cls == FRIT_DTYPE_UINT ? (double)bits : (double)number.whole;
    return number;
}

void fold_put(uint32_t dtype, void *data, int64_t index, struct fold_number number)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    size_t width = info.bits / CHAR_BIT;
    uint64_t bits = (uint64_t)number.whole;
    float narrow = (float)number.real;

    if (dtype == FRIT_F64)
        memcpy(&bits, &number.real, sizeof(number.real));
    else if (dtype == FRIT_F32)
        memcpy(&bits, &narrow, sizeof(narrow));
    else if (info.cls == FRIT_DTYPE_FLOAT)
        bits = write_short(dtype, number.real);
    memcpy((char *)data + (size_t)index * width, &bits, width);
}

static struct fold_number get(const struct fold *fold, uint32_t operand, int64_t index)
{
    const struct fold_input *in = &fold->in[operand];
    struct fold_number number;

    if (in->data)
        return fold_get(in->type.dtype, in->data, index);
    number.real = scalar_number(&in->scalar);
    number.whole =
        in->scalar.kind == FRIT_SCALAR_F64 ? fold_whole(number.real) : (int64_t)in->scalar.bits;
    return number;
}

static void copy_element(const struct fold *fold, int64_t to, uint32_t operand, int64_t from)
{
    fold_put(fold->out.dtype, fold->result, to, get(fold, operand, from));
}

/* ---- places ---- */

/* The coordinates of an element of a type, and back. */
static void coordinates(const struct op_type *type, int64_t index, int64_t *at)
{
    for (uint32_t d = type->rank; d-- > 0;) {
        at[d] = index % type->dims[d];
        index /= type->dims[d];
    }
}

static int64_t place(const struct op_type *type, const int64_t *at)
{
    int64_t index = 0;

    for (uint32_t d = 0; d < type->rank; d++)
        index = index * type->dims[d] + at[d];
    return index;
}

/* The place of the operand's element that broadcasts to these coordinates of the result. */
static int64_t place_broadcast(const struct op_type *type, const struct op_type *out,
                               const int64_t *at)
{
    int64_t index = 0;

    for (uint32_t d = 0; d < type->rank; d++) {
        int64_t c = at[out->rank - type->rank + d];

        index = index * type->dims[d] + (type->dims[d] == 1 ? 0 : c);
    }
    return index;
}

/* ---- ops that move elements ---- */

static void run_same_order(const struct fold *fold)
{
    for (int64_t i = 0; i < op_elements(&fold->out); i++)
        copy_element(fold, i, 0, i);
}

static void run_expand(const struct fold *fold)
{
    int64_t at[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        coordinates(&fold->out, i, at);
        copy_element(fold, i, 0, place_broadcast(&fold->in[0].type, &fold->out, at));
    }
}

static void run_permute(const struct fold *fold)
{
    const frit_attrs_order *attrs = fold->attrs;
    int64_t at[FRIT_MAX_RANK], from[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        coordinates(&fold->out, i, at);
        for (uint32_t d = 0; d < fold->out.rank; d++)
            from[attrs->order.axis[d]] = at[d];
        copy_element(fold, i, 0, place(&fold->in[0].type, from));
    }
}

static void run_slice(const struct fold *fold)
{
    const frit_attrs_slice *attrs = fold->attrs;
    int64_t at[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        coordinates(&fold->out, i, at);
        for (uint32_t d = 0; d < fold->out.rank; d++) {
            if (d < attrs->slices.count && attrs->slices.dim[d].step)
                at[d] = attrs->slices.dim[d].start + at[d] * attrs->slices.dim[d].step;
        }
        copy_element(fold, i, 0, place(&fold->in[0].type, at));
    }
}

static void run_cat(const struct fold *fold)
{
    const int64_t axis = ((const frit_attrs_axis *)fold->attrs)->axis;
    int64_t at[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        uint32_t k = 0;

        coordinates(&fold->out, i, at);
        while (at[axis] >= fold->in[k].type.dims[axis])
            at[axis] -= fold->in[k++].type.dims[axis];
        copy_element(fold, i, k, place(&fold->in[k].type, at));
    }
}

/* The nearest valid index. */
static int64_t clip(int64_t index, int64_t extent)
{
    return index < 0 ? 0 : index >= extent ? extent - 1 : index;
}

static void run_select(const struct fold *fold)
{
    const int64_t axis = ((const frit_attrs_axis *)fold->attrs)->axis;
    int64_t at[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        coordinates(&fold->out, i, at);
        at[axis] = clip(get(fold, 1, at[axis]).whole, fold->in[0].type.dims[axis]);
        copy_element(fold, i, 0, place(&fold->in[0].type, at));
    }
}

static void run_gather(const struct fold *fold)
{
    const int64_t axis = ((const frit_attrs_axis *)fold->attrs)->axis;
    int64_t at[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        coordinates(&fold->out, i, at);
        at[axis] = clip(get(fold, 1, i).whole, fold->in[0].type.dims[axis]);
        copy_element(fold, i, 0, place(&fold->in[0].type, at));
    }
}

/* ---- ops from nothing ---- */

static void run_full(const struct fold *fold)
{
    for (int64_t i = 0; i < op_elements(&fold->out); i++)
        copy_element(fold, i, 0, 0);
}

static void run_arange(const struct fold *fold)
{
    const struct fold_number start = get(fold, 0, 0), step = get(fold, 1, 0);

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        struct fold_number number = {
            (int64_t)((uint64_t)start.whole + (uint64_t)i * (uint64_t)step.whole),
            start.real + (double)i * step.real};

        fold_put(fold->out.dtype, fold->result, i, number);
    }
}

/* ---- cast ---- */

static int64_t saturate(double value, uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    bool is_signed = info.cls == FRIT_DTYPE_INT;
    double high = ldexp(1, info.bits - (is_signed ? 1 : 0)), low = is_signed ? -high : 0;

    if (isnan(value))
        return 0;
    value = trunc(value);
    if (value <= low)
        return is_signed ? (int64_t)((uint64_t)-1 << (info.bits - 1)) : 0;
    if (value >= high)
        return (int64_t)(UINT64_MAX >> (64 - info.bits + (is_signed ? 1 : 0)));
    return is_signed ? (int64_t)value : (int64_t)(uint64_t)value;
}

static void run_cast(const struct fold *fold)
{
    const bool from_float = dtype_class(fold->in[0].type.dtype) == FRIT_DTYPE_FLOAT;

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        struct fold_number number = get(fold, 0, i);

        if (fold->out.dtype == FRIT_BOOL)
            number.whole = from_float ? number.real != 0 : number.whole != 0;
        else if (from_float)
            number.whole = saturate(number.real, fold->out.dtype);
        fold_put(fold->out.dtype, fold->result, i, number);
    }
}

static void run_bitcast(const struct fold *fold)
{
    memcpy(fold->result, fold->in[0].data,
           frit_storage_bytes(fold->out.dtype, op_elements(&fold->out)));
}

/* ---- reductions ---- */

static void run_reduce(const struct fold *fold)
{
    const frit_attrs_reduce *attrs = fold->attrs;
    const bool real = dtype_class(fold->out.dtype) == FRIT_DTYPE_FLOAT;
    fold_map *step = fold_math(fold->op == FRIT_OP_sum    ? FRIT_OP_add
                               : fold->op == FRIT_OP_prod ? FRIT_OP_mul
                               : fold->op == FRIT_OP_max  ? FRIT_OP_maximum
                                                          : FRIT_OP_minimum);
    const struct op_type *in = &fold->in[0].type;
    struct fold_number sums[2] = {{0}};
    bool reduced[FRIT_MAX_RANK] = {false};
    bool begun[FOLD_MAX_ELEMENTS] = {false};
    int64_t at[FRIT_MAX_RANK], one = fold->op == FRIT_OP_prod;

    for (int64_t i = 0; i < attrs->axes.count; i++)
        reduced[attrs->axes.axis[i]] = true;
    for (int64_t i = 0; i < op_elements(&fold->out); i++)
        fold_put(fold->out.dtype, fold->result, i, (struct fold_number){one, (double)one});
    for (int64_t i = 0; i < op_elements(in); i++) {
        int64_t to = 0;

        coordinates(in, i, at);
        for (uint32_t d = 0; d < in->rank; d++)
            to = reduced[d] ? to : to * in->dims[d] + at[d];
        sums[0] = fold_get(fold->out.dtype, fold->result, to);
        sums[1] = get(fold, 0, i);
        fold_put(fold->out.dtype, fold->result, to,
                 begun[to] ? step(sums, real, fold->out.dtype) : sums[1]);
        begun[to] = true;
    }
}

/* ---- the table ---- */

static const struct {
    uint32_t op;
    void (*run)(const struct fold *fold);
} movers[] = {
    {FRIT_OP_reshape, run_same_order},
    {FRIT_OP_squeeze, run_same_order},
    {FRIT_OP_unsqueeze, run_same_order},
    {FRIT_OP_copy, run_same_order},
    {FRIT_OP_expand, run_expand},
    {FRIT_OP_permute, run_permute},
    {FRIT_OP_slice, run_slice},
    {FRIT_OP_cat, run_cat},
    {FRIT_OP_select, run_select},
    {FRIT_OP_gather, run_gather},
    {FRIT_OP_full, run_full},
    {FRIT_OP_arange, run_arange},
    {FRIT_OP_cast, run_cast},
    {FRIT_OP_bitcast, run_bitcast},
    {FRIT_OP_sum, run_reduce},
    {FRIT_OP_prod, run_reduce},
    {FRIT_OP_max, run_reduce},
    {FRIT_OP_min, run_reduce},
};

static int find(uint32_t op)
{
    for (size_t i = 0; i < sizeof(movers) / sizeof(movers[0]); i++) {
        if (movers[i].op == op)
            return (int)i;
    }
    return -1;
}

bool fold_knows(uint32_t op)
{
    return find(op) >= 0 || fold_math(op);
}

static void run_map(const struct fold *fold, fold_map *map)
{
    const uint32_t dtype = fold->in[fold->n_in - 1].type.dtype;
    const bool real = dtype_class(dtype) == FRIT_DTYPE_FLOAT;
    struct fold_number in[3];
    int64_t at[FRIT_MAX_RANK];

    for (int64_t i = 0; i < op_elements(&fold->out); i++) {
        coordinates(&fold->out, i, at);
        for (uint32_t k = 0; k < fold->n_in && k < 3; k++)
            in[k] = get(fold, k, place_broadcast(&fold->in[k].type, &fold->out, at));
        fold_put(fold->out.dtype, fold->result, i, map(in, real, dtype));
    }
}

void fold_run(const struct fold *fold)
{
    int mover = find(fold->op);

    if (mover >= 0)
        movers[mover].run(fold);
    else
        run_map(fold, fold_math(fold->op));
}
