/* SPDX-License-Identifier: Apache-2.0 */
/* Views, fillings, indexing and joining. */
#include "graph/decompose/build.h"
#include "graph/scalar.h"
#include "graph/shape/shape.h"

static const struct op_type *operand(const struct build *b, uint32_t index)
{
    return &b->call->in[index].type;
}

/* ---- views ---- */

term decompose_transpose(struct build *b)
{
    const frit_attrs_swap *a = b->call->attrs;
    frit_attrs_order attrs = {.struct_size = sizeof(attrs), .order = {.count = b->out.rank}};
    const term x = b_in(b, 0);

    for (uint32_t i = 0; i < b->out.rank; i++)
        attrs.order.axis[i] = i == a->axis ? a->with : i == a->with ? a->axis : i;
    return b_op(b, FRIT_OP_permute, 1, &x, &attrs);
}

static term reshaped(struct build *b)
{
    return b_reshape(b, b_in(b, 0), b->out.rank, b->out.dims);
}

term decompose_squeeze(struct build *b)
{
    return reshaped(b);
}

term decompose_unsqueeze(struct build *b)
{
    return reshaped(b);
}

/* ---- from nothing ---- */

static term filled(struct build *b, int64_t value)
{
    return b_full(b, b->out.dtype, scalar_i(value), b->out.rank, b->out.dims);
}

term decompose_zeros(struct build *b)
{
    return filled(b, 0);
}

term decompose_ones(struct build *b)
{
    return filled(b, 1);
}

term decompose_empty(struct build *b)
{
    return filled(b, 0);
}

static term count_up(struct build *b, int64_t n)
{
    const frit_attrs_init attrs = {.struct_size = sizeof(attrs),
                                   .dtype = n <= INT32_MAX ? FRIT_I32 : FRIT_I64,
                                   .dims = {.rank = 1, .dim = {n}}};
    const term start_step[2] = {b_number(0), b_number(1)};

    return b_op(b, FRIT_OP_arange, 2, start_step, &attrs);
}

/* Row number against column number, both counted up in the type of the longer one. */
term decompose_eye(struct build *b)
{
    int64_t rows = b->out.dims[b->out.rank - 2], columns = b->out.dims[b->out.rank - 1];
    term all = count_up(b, rows > columns ? rows : columns);
    term row = b_reshape(b, b_slice(b, all, 0, 0, rows), 2, (const int64_t[]){rows, 1});
    term y = b_cast(b, b_eq(b, row, b_slice(b, all, 0, 0, columns)), b->out.dtype);

    return b->out.rank > 2 ? b_expand(b, y, b->out.rank, b->out.dims) : y;
}

/* ---- indexing ---- */

static term flat(struct build *b, term x)
{
    return b_reshape(b, x, 1, (const int64_t[]){-1});
}

static term select_rows(struct build *b, term x, term index)
{
    const frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = 0};

    return b_op(b, FRIT_OP_select, 2, (const term[]){x, index}, &attrs);
}

/* scatter with the same number for all of a slice: `index` of rank 1 is stretched to the dims of
 * the values, of type `type`. */
static term scatter_slices(struct build *b, const term in[3], const struct op_type *type,
                           int64_t axis, int64_t update)
{
    const frit_attrs_scatter attrs = {.struct_size = sizeof(attrs), .axis = axis, .update = update};
    int64_t dims[FRIT_MAX_RANK];
    term index;

    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = i == axis ? type->dims[i] : 1;
    index = b_expand(b, b_reshape(b, in[1], type->rank, dims), type->rank, type->dims);
    return b_op(b, FRIT_OP_scatter, 3, (const term[]){in[0], index, in[2]}, &attrs);
}

term decompose_select_assign(struct build *b)
{
    const frit_attrs_scatter *a = b->call->attrs;
    const term in[3] = {b_in(b, 0), b_in(b, 1), b_in(b, 2)};

    return scatter_slices(b, in, operand(b, 2), a->axis, a->update);
}

term decompose_embedding(struct build *b)
{
    term rows = select_rows(b, b_in(b, 0), flat(b, b_in(b, 1)));

    return b_reshape(b, rows, b->out.rank, b->out.dims);
}

/* Narrow floats are summed in f32.  The table itself is not read. */
term decompose_embedding_backward(struct build *b)
{
    struct op_type rows = {.rank = 2, .dims = {op_elements(operand(b, 2)), b->out.dims[1]}};
    uint32_t dtype = b->dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32;
    term in[3];

    in[0] = b_full(b, dtype, scalar_i(0), 2, b->out.dims);
    in[1] = flat(b, b_in(b, 2));
    in[2] = b_cast(b, b_reshape(b, b_in(b, 1), 2, rows.dims), dtype);
    return b_cast(b, scatter_slices(b, in, &rows, 0, FRIT_CHOICE_update_add), b->out.dtype);
}

/* x as rows: the first k dims are counted by one row-major number. */
static struct op_type as_rows(const struct op_type *x, uint32_t k)
{
    struct op_type rows = {.rank = 2, .dims = {1, 1}};

    for (uint32_t i = 0; i < x->rank; i++)
        rows.dims[i >= k] *= x->dims[i];
    return rows;
}

/* The coordinates in the last dim of operand 1 as row numbers of rank 1.  Coordinates outside of x
 * are moved to its border (reading), or make the number -1, which writes nothing. */
static term row_numbers(struct build *b, uint32_t k, bool reading)
{
    const struct op_type *x = operand(b, 0), *index = operand(b, 1);
    int64_t table[2] = {op_elements(index) / k, k}, one = table[0];
    bool wide = as_rows(x, k).dims[0] > INT32_MAX;
    term all = b_reshape(b, b_in(b, 1), 2, table), number = b_number(0), valid = b_number(1);

    if (wide)
        all = b_cast(b, all, FRIT_I64);
    for (uint32_t j = 0; j < k; j++) {
        term c = b_reshape(b, b_slice(b, all, 1, j, j + 1), 1, &one);
        term extent = b_scalar(scalar_i(x->dims[j]));

        if (reading) {
            c = b_minimum(b, b_maximum(b, c, b_number(0)), b_scalar(scalar_i(x->dims[j] - 1)));
        } else {
            term inside = b_le(b, b_number(0), c);

            inside = b_and(b, inside, b_lt(b, c, extent));
            valid = j ? b_and(b, valid, inside) : inside;
        }
        number = j ? b_add(b, b_mul(b, number, extent), c) : c;
    }
    return reading ? number : b_where(b, valid, number, b_number(-1));
}

static uint32_t coordinates(const struct build *b)
{
    return (uint32_t)operand(b, 1)->dims[operand(b, 1)->rank - 1];
}

term decompose_gather_nd(struct build *b)
{
    uint32_t k = coordinates(b);
    struct op_type rows = as_rows(operand(b, 0), k);
    term x = b_reshape(b, b_in(b, 0), 2, rows.dims);

    return b_reshape(b, select_rows(b, x, row_numbers(b, k, true)), b->out.rank, b->out.dims);
}

term decompose_scatter_nd(struct build *b)
{
    const frit_attrs_update *a = b->call->attrs;
    uint32_t k = coordinates(b);
    struct op_type rows = as_rows(operand(b, 0), k), values = rows;
    term in[3];

    values.dims[0] = op_elements(operand(b, 1)) / k;
    in[0] = b_reshape(b, b_in(b, 0), 2, rows.dims);
    in[1] = row_numbers(b, k, false);
    in[2] = b_reshape(b, b_in(b, 2), 2, values.dims);
    return b_reshape(b, scatter_slices(b, in, &values, 0, a->update), b->out.rank, b->out.dims);
}

/* The places of the slices as padding around and between the values: which axes run backwards, and
 * for each dim what lies before, between and after. */
static frit_attrs_pad slice_places(const struct build *b, frit_attrs_axes *backwards)
{
    const frit_attrs_slice *a = b->call->attrs;
    const struct op_type *x = operand(b, 0), *values = operand(b, 1);
    frit_attrs_pad pad = {.struct_size = sizeof(pad)};

    *backwards = (frit_attrs_axes){.struct_size = sizeof(*backwards)};
    pad.low.rank = pad.high.rank = pad.inner.rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) {
        const frit_range *range = &a->slices.dim[i];
        int64_t reach = (values->dims[i] - 1) * range->step;

        if (reach < 0)
            backwards->axes.axis[backwards->axes.count++] = i;
        pad.low.dim[i] = reach < 0 ? range->start + reach : range->start;
        pad.inner.dim[i] = (range->step < 0 ? -range->step : range->step) - 1;
        pad.high.dim[i] = x->dims[i] - 1 - (reach < 0 ? range->start : range->start + reach);
    }
    return pad;
}

/* Values padded to x's dims, and a mask padded the same way that says where they are. */
term decompose_slice_assign(struct build *b)
{
    const struct op_type *values = operand(b, 1);
    frit_attrs_axes backwards;
    frit_attrs_pad pad = slice_places(b, &backwards);
    term padded[2] = {b_in(b, 1), b_number(0)}, mask[2] = {b_number(0), b_number(0)};

    if (shape_empty(values))
        return b_copy(b, b_in(b, 0));
    if (backwards.axes.count)
        padded[0] = b_op(b, FRIT_OP_flip, 1, padded, &backwards);
    mask[0] = b_full(b, FRIT_BOOL, scalar_i(1), values->rank, values->dims);
    mask[0] = b_op(b, FRIT_OP_pad, 2, mask, &pad);
    return b_where(b, mask[0], b_op(b, FRIT_OP_pad, 2, padded, &pad), b_in(b, 0));
}

/* ---- joining ---- */

/* What is repeated as one dim, a stretched dim before it. */
term decompose_repeat(struct build *b)
{
    const frit_attrs_repeat *a = b->call->attrs;
    const struct op_type *x = operand(b, 0);
    int64_t dims[3] = {1, 1, 1};
    term y;

    for (uint32_t i = 0; i < x->rank; i++)
        dims[i < a->axis ? 0 : 2] *= x->dims[i];
    y = b_reshape(b, b_in(b, 0), 3, dims);
    dims[1] = a->times;
    return b_reshape(b, b_expand(b, y, 3, dims), b->out.rank, b->out.dims);
}

/* Each round joins runs of as many as rows that name their operands have, which drivers take. */
term decompose_cat(struct build *b)
{
    const frit_attrs_axis *a = b->call->attrs;
    uint32_t n = b->call->n_in;

    while (n > 1) {
        uint32_t joined = 0;

        for (uint32_t i = 0; i < n; i += FRIT_OP_MAX_IN) {
            uint32_t run = n - i < FRIT_OP_MAX_IN ? n - i : FRIT_OP_MAX_IN;

            b->in[joined++] = run > 1 ? b_cat(b, run, &b->in[i], (uint32_t)a->axis) : b->in[i];
        }
        n = joined;
    }
    return b->in[0];
}

term decompose_stack(struct build *b)
{
    const frit_attrs_axis *a = b->call->attrs;
    struct op_type slice = b->out;

    slice.dims[a->axis] = 1;
    for (uint32_t i = 0; i < b->call->n_in; i++)
        b->in[i] = b_reshape(b, b_in(b, i), slice.rank, slice.dims);
    return b_cat(b, b->call->n_in, b->in, (uint32_t)a->axis);
}
