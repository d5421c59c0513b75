/* SPDX-License-Identifier: Apache-2.0 */
/* The distributions from random_raw: one per op, so that its words are those of the op's own
 * counter. */
#include "graph/decompose/build.h"
#include "graph/scalar.h"

static term words(struct build *b, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    frit_attrs_init attrs = {.struct_size = sizeof(attrs), .dtype = dtype, .dims = {.rank = rank}};

    for (uint32_t i = 0; i < rank; i++)
        attrs.dims.dim[i] = dims[i];
    return b_op(b, FRIT_OP_random_raw, 0, NULL, &attrs);
}

/* 24 bits in f32, 53 in f64. */
static term uniform(struct build *b, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    bool f64 = dtype == FRIT_F64;
    term w = b_shr(b, words(b, f64 ? FRIT_U64 : FRIT_U32, rank, dims), b_number(f64 ? 11 : 8));

    return b_mul(b, b_cast(b, w, f64 ? FRIT_F64 : FRIT_F32), b_number(f64 ? 0x1p-53 : 0x1p-24));
}

static double number(const struct build *b, uint32_t index)
{
    return scalar_number(&b->call->in[index].scalar);
}

term decompose_random_uniform(struct build *b)
{
    double low = number(b, 0), span = number(b, 1) - low;
    term u = uniform(b, b->out.dtype, b->out.rank, b->out.dims);

    if (b->out.dtype != FRIT_F64)
        span = (float)number(b, 1) - (float)low;
    return b_cast(b, b_add(b, b_mul(b, u, b_number(span)), b_number(low)), b->out.dtype);
}

/* Box-Muller over pairs of uniforms in the last dim. */
term decompose_random_normal(struct build *b)
{
    const double two_pi = 6.28318530717958647693;
    int64_t count = op_elements(&b->out), pairs[2] = {count / 2 + count % 2, 2};
    int64_t flat = 2 * pairs[0];
    term uv = uniform(b, b->out.dtype, 2, pairs);
    term u = b_slice(b, uv, 1, 0, 1), v = b_slice(b, uv, 1, 1, 2);
    term r = b_sqrt(b, b_mul(b, b_log1p(b, b_neg(b, u)), b_number(-2)));
    term angle = b_mul(b, v, b_number(two_pi));
    term even = b_mul(b, r, b_cos(b, angle)), odd = b_mul(b, r, b_sin(b, angle));
    const term both[2] = {even, odd};
    term g = b_slice(b, b_reshape(b, b_cat(b, 2, both, 1), 1, &flat), 0, 0, count);
    term y = b_add(b, b_mul(b, g, b_number(number(b, 1))), b_number(number(b, 0)));

    return b_reshape(b, b_cast(b, y, b->out.dtype), b->out.rank, b->out.dims);
}

term decompose_random_bernoulli(struct build *b)
{
    term u = uniform(b, FRIT_F32, b->out.rank, b->out.dims);

    return b_cast(b, b_lt(b, u, b_scalar(b->call->in[0].scalar)), b->out.dtype);
}

/* In u64 throughout: differences and sums of signed numbers wrap to the right bits. */
term decompose_random_int(struct build *b)
{
    uint64_t low = b->call->in[0].scalar.bits, span = b->call->in[1].scalar.bits - low;
    term w = words(b, FRIT_U64, b->out.rank, b->out.dims);

    w = b_add(b, b_rem(b, w, b_scalar(scalar_u(span))), b_scalar(scalar_u(low)));
    return b_cast(b, w, b->out.dtype);
}
