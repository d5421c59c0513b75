/* SPDX-License-Identifier: Apache-2.0 */
/* The weights by distance that the rows of class RESAMPLE have in common. */
#include "graph/decompose/decompose_taps.h"

#include <math.h>

int64_t taps_count(int64_t mode)
{
    switch (mode) {
    case FRIT_CHOICE_resample_bilinear:
        return 2;
    case FRIT_CHOICE_resample_bicubic:
        return 4;
    case FRIT_CHOICE_resample_lanczos3:
        return 6;
    default:
        return 1;
    }
}

term taps_places(struct build *b, int64_t mode, uint32_t rank)
{
    int64_t dims[FRIT_MAX_RANK], n = taps_count(mode), before = (n - 1) / 2;

    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d + 1 < rank ? 1 : n;
    return b_sub(b, b_reshape(b, b_arange(b, n), rank, dims), b_number((double)before));
}

/* c0 + c1 d + c2 d^2 + c3 d^3. */
static term cubic_of(struct build *b, term d, const double c[4])
{
    term sum = b_add(b, b_mul(b, d, b_number(c[3])), b_number(c[2]));

    sum = b_add(b, b_mul(b, sum, d), b_number(c[1]));
    return b_add(b, b_mul(b, sum, d), b_number(c[0]));
}

/* Keys' cubic with a = -0.75: one polynomial up to distance 1, another up to 2. */
static term cubic(struct build *b, term d)
{
    const double a = -0.75;
    term near = cubic_of(b, d, (const double[]){1, 0, -(a + 3), a + 2});
    term far = cubic_of(b, d, (const double[]){-4 * a, 8 * a, -5 * a, a});

    return b_where(b, b_le(b, d, b_number(1)), near, far);
}

/* sinc(d) sinc(d / 3) over the sum of all. */
static term lanczos(struct build *b, term d, uint32_t rank)
{
    const frit_axes last = {.count = 1, .axis = {rank - 1}};
    term angle = b_mul(b, d, b_number(3.14159265358979323846)),
         third = b_div(b, angle, b_number(3));
    term product = b_mul(b, b_sin(b, angle), b_sin(b, third));
    term w = b_div(b, product, b_mul(b, angle, third));

    w = b_where(b, b_eq(b, d, b_number(0)), b_number(1), w);
    return b_div(b, w, b_reduce(b, FRIT_OP_sum, w, &last, true));
}

term taps_weights(struct build *b, int64_t mode, term fraction, term places)
{
    term d = b_abs(b, b_sub(b, fraction, b_cast(b, places, b->dtype)));

    if (mode == FRIT_CHOICE_resample_bicubic)
        return cubic(b, d);
    if (mode == FRIT_CHOICE_resample_lanczos3)
        return lanczos(b, d, b_type(b, d).rank);
    return b_sub(b, b_number(1), d);
}
