/* SPDX-License-Identifier: Apache-2.0 */
/* copy and cast. */
#include <assert.h>
#include <math.h>

#include "rows.h"

void ref_copy(const struct call *call)
{
    const struct view y = call_out(call, 0), x = call_in(call, 0);

    view_copy(&y, &x);
}

/* ---- conversions of one value ---- */

/* Truncated and saturated to a signed type of `bits`. */
static int64_t to_signed(double real, uint32_t bits)
{
    double limit = ldexp(1, (int)bits - 1);

    assert(bits >= 1 && bits <= 64);
    if (isnan(real))
        return 0;
    if (real >= limit)
        return INT64_MAX >> (64 - bits);
    return real < -limit ? INT64_MIN >> (64 - bits) : (int64_t)real;
}

static uint64_t to_unsigned(double real, uint32_t bits)
{
    assert(bits >= 1 && bits <= 64);
    if (real >= ldexp(1, (int)bits))
        return UINT64_MAX >> (64 - bits);
    return real > 0 ? (uint64_t)real : 0;
}

/* An integer as a double that rounds to every narrower type as the integer itself would: of more
 * than 53 bits the lost ones are summed up in the last. */
static double from_magnitude(uint64_t magnitude)
{
    if (magnitude >> 53 == 0)
        return (double)magnitude;
    return ldexp((double)(magnitude >> 11 | (magnitude << 53 != 0)), 11);
}

static double from_integer(union value value, enum value_kind kind, uint32_t dtype)
{
    bool negative = kind == VALUE_SINT && value.sint < 0;

    if (dtype == FRIT_F64)
        return kind == VALUE_SINT ? (double)value.sint : (double)value.uint;
    return negative ? -from_magnitude(0 - value.uint) : from_magnitude(value.uint);
}

static union value convert(union value value, enum value_kind kind, uint32_t dtype)
{
    uint32_t bits = frit_dtype_bits(dtype);

    if (dtype == FRIT_BOOL)
        return (union value){.uint = kind == VALUE_REAL ? value.real != 0 : value.uint != 0};
    if (value_kind(dtype) == VALUE_REAL)
        return kind == VALUE_REAL ? value : (union value){.real = from_integer(value, kind, dtype)};
    if (kind != VALUE_REAL)
        return value;
    if (value_kind(dtype) == VALUE_SINT)
        return (union value){.sint = to_signed(value.real, bits)};
    return (union value){.uint = to_unsigned(value.real, bits)};
}

void ref_cast(const struct call *call)
{
    const struct view y = call_out(call, 0), x = call_in(call, 0);
    const struct view *views[] = {&y, &x};
    enum value_kind kind = value_kind(x.dtype);
    union value lanes[VALUE_LANES];
    struct walk walk;

    view_walk(&walk, WALK_ROWS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t done = 0, n; done < walk.count; done += n) {
            n = walk.count - done < VALUE_LANES ? walk.count - done : VALUE_LANES;
            value_load(x.dtype, x.data + walk.at[1] + done * walk.step[1], walk.step[1], n, lanes);
            for (int64_t i = 0; i < n; i++)
                lanes[i] = convert(lanes[i], kind, y.dtype);
            value_store(y.dtype, y.data + walk.at[0] + done * walk.step[0], walk.step[0], n, lanes);
        }
}
