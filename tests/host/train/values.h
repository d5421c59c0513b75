/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that expected.py computes too, and comparisons with what it wrote. */
#ifndef TESTS_TRAIN_VALUES_H
#define TESTS_TRAIN_VALUES_H

#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <frit/grad.h>
#include <frit/train.h>

enum { MOST = 64 };

#define OK(call)                                                              \
    do {                                                                      \
        frit_err rig_err = {.struct_size = sizeof(rig_err)}, *err = &rig_err; \
        if (call)                                                             \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, err->text);             \
    } while (0)

static inline void numbers(float *out, int count, int seed, double scale)
{
    for (int i = 0; i < count; i++)
        out[i] = (float)(((i * 7 + seed * 13) % 17 - 8) / scale);
}

static inline uint64_t count_of(frit_dims dims)
{
    uint64_t count = 1;

    for (int64_t d = 0; d < dims.rank; d++)
        count *= (uint64_t)dims.dim[d];
    return count;
}

/* numbers() as a tensor of this type. */
static inline frit_tensor *tensor_of(frit_device *device, uint32_t dtype, frit_dims dims, int seed,
                                     double scale)
{
    float data[MOST];
    frit_tensor *plain;

    numbers(data, (int)count_of(dims), seed, scale);
    plain = frit_from_host(device, FRIT_F32, dims, data, count_of(dims) * sizeof(*data));
    return dtype == FRIT_F32 ? plain : frit_cast(frit_take(plain), dtype);
}

/* The elements as double, at most MOST; returns how many. */
static inline uint64_t read_doubles(frit_tensor *tensor, double *out)
{
    const uint64_t count = count_of(frit_tensor_dims(tensor));
    frit_tensor *wide = frit_cast(tensor, FRIT_F64);

    OK(frit_read(wide, out, count * sizeof(*out), err));
    frit_release(wide);
    return count;
}

static inline bool is_near(double have, double want, double tolerance)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(have) : have == want;
    return fabs(have - want) <= tolerance * (1 + fabs(want));
}

/* The first element that differs; -1: none does. */
static inline int64_t first_difference(frit_tensor *tensor, const double *want, double tolerance,
                                       double *have)
{
    const uint64_t count = read_doubles(tensor, have);

    for (uint64_t i = 0; i < count; i++) {
        if (!is_near(have[i], want[i], tolerance))
            return (int64_t)i;
    }
    return -1;
}

static inline void expect_doubles(const char *what, frit_tensor *tensor, const double *want,
                                  double tolerance)
{
    double have[MOST] = {0};
    const int64_t at = first_difference(tensor, want, tolerance, have);

    if (at >= 0)
        fail_msg("%s: element %d is %.9g, not %.9g", what, (int)at, have[at], want[at]);
}

/* Exactly these. */
#define EXPECT_DOUBLES(what, tensor, ...)            \
    do {                                             \
        const double rig_want[MOST] = {__VA_ARGS__}; \
        expect_doubles(what, tensor, rig_want, 0);   \
    } while (0)

#endif
