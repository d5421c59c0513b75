/* SPDX-License-Identifier: Apache-2.0 */
#include "op_bytes.h"
#include "graph/dtype.h"

#include <math.h>
#include <stdlib.h>

uint32_t bytes_take(struct bytes *bytes)
{
    if (!bytes->left)
        return 0;
    bytes->left--;
    return *bytes->at++;
}

/* One in `n`. */
static bool seldom(struct bytes *bytes, uint32_t n)
{
    return bytes_take(bytes) % n == n - 1;
}

static uint32_t a_dtype(struct bytes *bytes)
{
    static const uint32_t dtypes[] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    FRIT_##NAME,
#include <frit/dtypes.def>
    };

    return dtypes[bytes_take(bytes) % (sizeof(dtypes) / sizeof(dtypes[0]))];
}

static int64_t a_number(struct bytes *bytes, enum op_sizes sizes)
{
    static const int64_t few[] = {0, 1, 2, 3, 4, 5, -1, -2};
    static const int64_t any[] = {INT64_MIN,
                                  INT64_MIN + 1,
                                  INT64_MAX,
                                  INT64_MAX - 1,
                                  INT32_MIN,
                                  INT32_MAX,
                                  (int64_t)1 << 32,
                                  (int64_t)1 << 62,
                                  -3,
                                  7,
                                  100,
                                  (int64_t)1 << 20};
    uint32_t at = bytes_take(bytes);

    if (sizes == OP_SMALL || at < 192)
        return few[at % (sizeof(few) / sizeof(few[0]))];
    return any[at % (sizeof(any) / sizeof(any[0]))];
}

static int64_t an_extent(struct bytes *bytes, enum op_sizes sizes)
{
    static const int64_t few[] = {1, 2, 3, 4, 2, 3, 5, 0};
    int64_t n;

    if (sizes == OP_SMALL)
        return few[bytes_take(bytes) % (sizeof(few) / sizeof(few[0]))];
    n = a_number(bytes, sizes);
    return n < 0 ? -(n + 1) : n;
}

static uint32_t a_rank(struct bytes *bytes, enum op_sizes sizes)
{
    return bytes_take(bytes) % (sizes == OP_SMALL ? 5 : FRIT_MAX_RANK + 1);
}

/* Often like another value, in all dims or all but one: most rows want that. */
static void set_input_dims(struct bytes *bytes, enum op_sizes sizes, const struct graph *graph,
                           struct op_type *type)
{
    uint32_t how = bytes_take(bytes) % 4;

    if (how >= 2 && graph->n_values) {
        const struct op_type *like = &graph->values[bytes_take(bytes) % graph->n_values].type;

        type->rank = like->rank;
        memcpy(type->dims, like->dims, sizeof(type->dims));
        if (how == 3 && type->rank)
            type->dims[bytes_take(bytes) % type->rank] = an_extent(bytes, sizes);
        return;
    }
    type->rank = a_rank(bytes, sizes);
    for (uint32_t d = 0; d < type->rank; d++)
        type->dims[d] = an_extent(bytes, sizes);
}

void op_bytes_input(struct bytes *bytes, enum op_sizes sizes, struct graph *graph)
{
    struct op_type type = {.dtype = a_dtype(bytes)};
    uint32_t value;

    if (sizes == OP_SMALL && dtype_class(type.dtype) == FRIT_DTYPE_PACKED)
        type.dtype = FRIT_F32;
    set_input_dims(bytes, sizes, graph, &type);
    if (op_type_check(&type, NULL))
        type.rank = 0;
    if (graph_input(graph, GRAPH_INPUT, NULL, &type, &value, NULL))
        abort();
}

/* ---- attributes ---- */

static double a_real(struct bytes *bytes)
{
    static const double reals[] = {0, 1, -1, 0.5, 2, 1e-5, 100, -0.0, NAN, INFINITY, 1e300, 5e-324};

    return reals[bytes_take(bytes) % (sizeof(reals) / sizeof(reals[0]))];
}

static void set_axes(struct bytes *bytes, enum op_sizes sizes, frit_axes *axes)
{
    axes->count = bytes_take(bytes) % 5;
    for (int64_t k = 0; k < axes->count; k++)
        axes->axis[k] = a_number(bytes, sizes);
}

static void set_dims(struct bytes *bytes, enum op_sizes sizes, frit_dims *dims)
{
    dims->rank = a_rank(bytes, sizes);
    for (int64_t d = 0; d < dims->rank; d++)
        dims->dim[d] = a_number(bytes, sizes);
}

static void set_slices(struct bytes *bytes, enum op_sizes sizes, frit_slices *slices)
{
    slices->count = a_rank(bytes, sizes);
    for (int64_t d = 0; d < slices->count; d++) {
        frit_range *range = &slices->dim[d];

        range->start = a_number(bytes, sizes);
        range->stop = seldom(bytes, 4) ? FRIT_SLICE_END : a_number(bytes, sizes);
        range->step = a_number(bytes, sizes);
    }
}

static void set_field(struct bytes *bytes, enum op_sizes sizes, const frit_field_info *field,
                      char *at)
{
    union {
        int64_t whole[3];
        double real;
        frit_axes axes;
        frit_dims dims;
        frit_slices slices;
    } value = {{0}};

    switch (field->type) {
    case FRIT_ATTR_FLAG:
    case FRIT_ATTR_CHOICE:
        value.whole[0] = bytes_take(bytes) % (field->type == FRIT_ATTR_FLAG ? 2 : 7);
        break;
    case FRIT_ATTR_DTYPE:
        value.whole[0] = a_dtype(bytes);
        break;
    case FRIT_ATTR_AXES:
        set_axes(bytes, sizes, &value.axes);
        break;
    case FRIT_ATTR_DIMS:
        set_dims(bytes, sizes, &value.dims);
        break;
    case FRIT_ATTR_VEC:
        for (uint32_t k = 0; k < 3; k++)
            value.whole[k] = a_number(bytes, sizes);
        break;
    case FRIT_ATTR_SLICES:
        set_slices(bytes, sizes, &value.slices);
        break;
    case FRIT_ATTR_REAL:
        value.real = a_real(bytes);
        break;
    default:
        value.whole[0] = a_number(bytes, sizes);
    }
    memcpy(at, &value, field->size);
}

/* Half of the fields that need not be there are left out. */
static void set_attrs(struct bytes *bytes, enum op_sizes sizes, struct op_record *record)
{
    const frit_record_info *info = frit_record_info_at(record->row->record);

    record->call.attrs = info->n_fields ? &record->attrs : NULL;
    memset(&record->attrs, 0, sizeof(record->attrs));
    memcpy(&record->attrs, &(uint64_t){info->size}, sizeof(uint64_t));
    for (uint32_t k = 0; k < info->n_fields; k++)
        if (info->field[k].place == FRIT_PLACE_POS || seldom(bytes, 2))
            set_field(bytes, sizes, &info->field[k],
                      (char *)&record->attrs + info->field[k].offset);
}

/* ---- operands ---- */

static bool is_of_letter(uint32_t dtype, uint32_t letter)
{
    uint32_t cls = dtype_class(dtype);
    bool whole = cls == FRIT_DTYPE_INT || cls == FRIT_DTYPE_UINT;

    switch (letter) {
    case FRIT_LETTER_N:
        return cls == FRIT_DTYPE_FLOAT || whole;
    case FRIT_LETTER_F:
        return cls == FRIT_DTYPE_FLOAT;
    case FRIT_LETTER_Z:
        return whole;
    case FRIT_LETTER_L:
        return whole || cls == FRIT_DTYPE_BOOL;
    case FRIT_LETTER_R:
        return cls != FRIT_DTYPE_PACKED;
    case FRIT_LETTER_I:
        return dtype == FRIT_I32 || dtype == FRIT_I64;
    case FRIT_LETTER_BOOL:
        return dtype == FRIT_BOOL;
    case FRIT_LETTER_I64:
        return dtype == FRIT_I64;
    case FRIT_LETTER_P:
        return cls == FRIT_DTYPE_PACKED;
    default:
        return true;
    }
}

/* The type that an operand of the letter has already, FRIT_NO_DTYPE: none. */
static uint32_t bound(const struct graph *graph, const struct op_record *record, uint32_t letter)
{
    for (uint32_t i = 0; i < record->call.n_in; i++) {
        const frit_slot_info *slot = op_slot(record->row, record->call.n_in + 1, i);

        if (slot && slot->letter == letter && record->in[i].kind == FRIT_OPERAND_TENSOR)
            return graph->values[record->in[i].value].type.dtype;
    }
    return FRIT_NO_DTYPE;
}

/* From a number on, the next value that fits; now and then whatever is there. */
static uint32_t a_value(struct bytes *bytes, const struct graph *graph,
                        const struct op_record *record, uint32_t letter)
{
    uint32_t from = bytes_take(bytes), dtype = bound(graph, record, letter);

    for (uint32_t k = 0; k < graph->n_values && from < 240; k++) {
        uint32_t value = (from + k) % graph->n_values;
        uint32_t has = graph->values[value].type.dtype;

        if (dtype ? has == dtype : is_of_letter(has, letter))
            return value;
    }
    return from % graph->n_values;
}

static frit_scalar a_scalar(struct bytes *bytes, enum op_sizes sizes)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
    double real;
    int64_t whole;

    if (seldom(bytes, 2)) {
        real = a_real(bytes);
        memcpy(&scalar.bits, &real, sizeof(real));
        return scalar;
    }
    scalar.kind = seldom(bytes, 4) ? FRIT_SCALAR_U64 : FRIT_SCALAR_I64;
    whole = a_number(bytes, sizes);
    memcpy(&scalar.bits, &whole, sizeof(whole));
    return scalar;
}

static struct graph_operand an_operand(struct bytes *bytes, enum op_sizes sizes,
                                       const struct graph *graph, const struct op_record *record,
                                       const frit_slot_info *slot)
{
    uint32_t how = bytes_take(bytes);
    bool scalars = record->row->traits & FRIT_OP_SCALARS;

    if (slot->role == FRIT_ROLE_OPT ? how % 2 : how == 255)
        return (struct graph_operand){.kind = FRIT_OPERAND_ABSENT};
    if (slot->role == FRIT_ROLE_NUM ? how < 250 : how >= (scalars ? 200 : 250))
        return (struct graph_operand){.kind = FRIT_OPERAND_SCALAR,
                                      .scalar = a_scalar(bytes, sizes)};
    return (struct graph_operand){.kind = FRIT_OPERAND_TENSOR,
                                  .value = a_value(bytes, graph, record, slot->letter)};
}

/* ---- records ---- */

static const frit_op_info *a_row(struct bytes *bytes)
{
    static const uint32_t ids[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) id,
#include <frit/ops.def>
    };

    return op_row(ids[bytes_take(bytes) % (sizeof(ids) / sizeof(ids[0]))]);
}

void op_bytes_record(struct bytes *bytes, enum op_sizes sizes, const struct graph *graph,
                     struct op_record *record)
{
    struct graph_call *call = &record->call;
    uint32_t n_in;

    *record = (struct op_record){.row = a_row(bytes)};
    n_in = op_n_slots(record->row);
    if (n_in && record->row->in[0].role == FRIT_ROLE_MANY)
        n_in += bytes_take(bytes) % (FRIT_OP_MAX_IN + 1 - n_in);
    *call = (struct graph_call){
        .op = record->row->id, .wanted = bytes_take(bytes) & 31u, .in = record->in};
    for (; call->n_in < n_in; call->n_in++)
        record->in[call->n_in] =
            an_operand(bytes, sizes, graph, record, op_slot(record->row, n_in, call->n_in));
    set_attrs(bytes, sizes, record);
}
