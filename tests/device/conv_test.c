/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with weights that are infinite or NaN: padding is zeros that are multiplied like any
 * other element. */
#include "device/rig.h"

#include <math.h>

enum { SIDE = 9, WINDOW = 3, PAD = 1 };

struct shape {
    int inputs, outputs, groups;
};

struct data {
    struct shape shape;
    const float *x, *w;
};

static double x_at(const struct data *d, int channel, int row, int column)
{
    if (row < 0 || row >= SIDE || column < 0 || column >= SIDE)
        return 0;
    return d->x[(channel * SIDE + row) * SIDE + column];
}

static double element_of(const struct data *d, int output, int row, int column)
{
    int channels = d->shape.inputs / d->shape.groups;
    int first = output / (d->shape.outputs / d->shape.groups) * channels;
    double sum = 0;

    for (int k = 0; k < channels * WINDOW * WINDOW; k++)
        sum += (double)d->w[output * channels * WINDOW * WINDOW + k] *
               x_at(d, first + k / WINDOW / WINDOW, row + k / WINDOW % WINDOW - PAD,
                    column + k % WINDOW - PAD);
    return sum;
}

static void check(struct rig *rig, struct shape shape)
{
    int channels = shape.inputs / shape.groups, taps = channels * WINDOW * WINDOW;
    float *of_x = rig_numbers((uint64_t)shape.inputs * SIDE * SIDE), *y;
    float *of_w = rig_numbers((uint64_t)shape.outputs * (uint64_t)taps);
    const struct data d = {shape, of_x, of_w};
    frit_tensor *x, *w;

    of_w[0] = INFINITY;
    of_w[taps - 1] = -INFINITY;
    of_w[(shape.outputs - 1) * taps + taps / 2] = NAN;
    if (shape.outputs > 2)
        of_w[taps + 2] = -INFINITY;
    x = rig_tensor(rig, FRIT_SHAPE(1, shape.inputs, SIDE, SIDE), of_x);
    w = rig_tensor(rig, FRIT_SHAPE(shape.outputs, channels, WINDOW, WINDOW), of_w);
    y = rig_read(frit_conv(x, w, NULL, .padding = {PAD, PAD}, .groups = shape.groups));
    for (int i = 0; i < shape.outputs * SIDE * SIDE; i++) {
        double want = element_of(&d, i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE);

        if (isnan(want) != isnan(y[i]) || (isinf(want) && want != y[i]) ||
            (isfinite(want) && !rig_near(y[i], want, 16 * taps, 16)))
            fail_msg("%d to %d: element %d is %g, not %g", shape.inputs, shape.outputs, i, y[i],
                     want);
    }
    free(y);
    free(of_x);
    free(of_w);
    frit_release(x);
    frit_release(w);
}

/* A few outputs, enough for a copy with zeros around it, enough for lanes along them; depthwise. */
static void test_padding_is_multiplied(void **unused)
{
    static const struct shape shapes[] = {{2, 3, 1}, {3, 8, 1}, {20, 33, 1}, {16, 16, 16}};
    struct rig rig;

    (void)unused;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        check(&rig, shapes[i]);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_padding_is_multiplied)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
