/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by the distance between the point and the sample. */
#include "taps.h"

#include <math.h>

#include <frit/op.h>

static const double PI = 3.14159265358979323846264338327950288;

/* Keys' cubic with slope -0.75 at distance 1. */
static double cubic(double distance)
{
    const double a = -0.75;
    double d = fabs(distance);

    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static double lanczos(double distance)
{
    double angle = PI * distance;

    if (distance == 0)
        return 1;
    return fabs(distance) < 3 ? 3 * sin(angle) * sin(angle / 3) / (angle * angle) : 0;
}

static double linear(double distance)
{
    return 1 - fabs(distance);
}

/* Lanczos weights are divided by their sum; that of the others is 1. */
struct taps taps_at(int64_t mode, double at)
{
    double (*weight)(double distance) = linear;
    struct taps taps = {.n = 2};
    double sum = 0;

    if (mode == FRIT_CHOICE_resample_bicubic) {
        weight = cubic;
        taps.n = 4;
    } else if (mode == FRIT_CHOICE_resample_lanczos3) {
        weight = lanczos;
        taps.n = 6;
    }
    taps.first = (int64_t)floor(at) - taps.n / 2 + 1;
    for (int i = 0; i < taps.n; i++) {
        taps.weight[i] = weight(at - (double)(taps.first + i));
        sum += taps.weight[i];
    }
    for (int i = 0; i < taps.n && weight == lanczos; i++)
        taps.weight[i] /= sum;
    return taps;
}

struct taps taps_one(int64_t i)
{
    return (struct taps){.first = i, .n = 1, .weight = {1}};
}
