/* SPDX-License-Identifier: Apache-2.0 */
/* Results from nothing. */
#include "rows.h"

static union value number(uint32_t dtype, int n)
{
    return value_kind(dtype) == VALUE_REAL ? (union value){.real = n} : (union value){.sint = n};
}

void ref_full(const struct call *call)
{
    const struct view y = call_out(call, 0);

    view_fill(&y, call_scalar(call, 0));
}

static void fill_number(const struct call *call, int n)
{
    const struct view y = call_out(call, 0);

    view_fill(&y, number(y.dtype, n));
}

void ref_zeros(const struct call *call)
{
    fill_number(call, 0);
}

void ref_ones(const struct call *call)
{
    fill_number(call, 1);
}

void ref_empty(const struct call *call)
{
    fill_number(call, 0);
}

/* Integers wrap in 64 bits; storing keeps the low ones. */
void ref_arange(const struct call *call)
{
    const struct view y = call_out(call, 0);
    const union value start = call_scalar(call, 0), step = call_scalar(call, 1);
    bool real = value_kind(y.dtype) == VALUE_REAL;

    for (int64_t i = 0; i < y.dims[0]; i++) {
        union value value = real ? (union value){.real = start.real + (double)i * step.real}
                                 : (union value){.uint = start.uint + (uint64_t)i * step.uint};

        value_put(y.dtype, y.data + i * y.strides[0], value);
    }
}

/* The diagonal is a view of y in which one dim stands for the last two. */
void ref_eye(const struct call *call)
{
    const struct view y = call_out(call, 0);
    struct view diagonal = y;
    uint32_t row = y.rank - 2, column = y.rank - 1;

    fill_number(call, 0);
    diagonal.rank--;
    diagonal.dims[row] = y.dims[row] < y.dims[column] ? y.dims[row] : y.dims[column];
    diagonal.strides[row] += y.strides[column];
    view_fill(&diagonal, number(y.dtype, 1));
}
