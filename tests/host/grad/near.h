/* SPDX-License-Identifier: Apache-2.0 */
/* Small f32 vectors, for tests of gradients. */
#ifndef GRAD_NEAR_H
#define GRAD_NEAR_H

#include "host/api/rig.h"

#include <math.h>

#include <frit/grad.h>

#define COUNT_OF(...) (sizeof((float[]){__VA_ARGS__}) / sizeof(float))
/* A new vector; checks that a tensor has these elements, within a rounding, and keeps it. */
#define VEC(rig, ...) vec(rig, COUNT_OF(__VA_ARGS__), (float[]){__VA_ARGS__})
#define EXPECT(tensor, ...) \
    expect(tensor, COUNT_OF(__VA_ARGS__), (float[]){__VA_ARGS__}, __FILE__, __LINE__)
#define OK(call) ok((call), &error, __FILE__, __LINE__)

static frit_err error = {.struct_size = sizeof(error)};

static inline frit_tensor *vec(struct rig *rig, size_t n, const float *numbers)
{
    return rig_f32(rig, FRIT_SHAPE((int64_t)n), numbers);
}

static inline void ok(frit_status status, const frit_err *err, const char *file, int line)
{
    if (!status)
        return;
    print_error("%s\n", err->text);
    _fail(file, line);
}

static inline void expect(frit_tensor *tensor, size_t n, const float *numbers, const char *file,
                          int line)
{
    float got[64];

    ok(frit_read(tensor, got, n * sizeof(*got), &error), &error, file, line);
    for (size_t i = 0; i < n; i++) {
        if (fabsf(got[i] - numbers[i]) <= 1e-5f * (1 + fabsf(numbers[i])))
            continue;
        print_error("element %zu is %g, not %g\n", i, (double)got[i], (double)numbers[i]);
        _fail(file, line);
    }
}

/* Releases the argument. */
static inline frit_tensor *sum_of(frit_tensor *tensor)
{
    return frit_sum(frit_take(tensor));
}

/* The status of a call that has to fail, and its text. */
static inline void expect_failure(frit_status got, frit_status wanted, const char *part)
{
    assert_int_equal(got, wanted);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" does not say \"%s\"", error.text, part);
}

#endif
