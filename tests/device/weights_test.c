/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that a device packs are packed once: again only when they are written. */
#include "device/rig.h"

#include <string.h>

enum { IMAGES = 2, INPUTS = 5, OUTPUTS = 19, SIDE = 7, WINDOW = 3, PAD = 1, RUNS = 4 };
enum {
    N_X = IMAGES * INPUTS * SIDE * SIDE,
    N_W = OUTPUTS * INPUTS * WINDOW * WINDOW,
    N_Y = IMAGES * OUTPUTS * SIDE * SIDE
};

/* Whole numbers, so that each device has the same sums. */
static void fill(float *to, int n, int seed)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)((i * 7 + i / 11 * 3 + seed * 5) % 9 - 4);
}

static float x_at(const float *x, int image, int channel, int row, int column)
{
    if (row < 0 || row >= SIDE || column < 0 || column >= SIDE)
        return 0;
    return x[((image * INPUTS + channel) * SIDE + row) * SIDE + column];
}

static float element_of(const float *x, const float *w, int number)
{
    const int column = number % SIDE, row = number / SIDE % SIDE;
    const int output = number / SIDE / SIDE % OUTPUTS, image = number / SIDE / SIDE / OUTPUTS;
    float sum = 0;

    for (int k = 0; k < INPUTS * WINDOW * WINDOW; k++)
        sum += w[output * INPUTS * WINDOW * WINDOW + k] * x_at(x, image, k / WINDOW / WINDOW,
                                                               row + k / WINDOW % WINDOW - PAD,
                                                               column + k % WINDOW - PAD);
    return sum;
}

static void check(frit_tensor *x, frit_tensor *w, const float *of_x, const float *of_w)
{
    float *y = rig_read(frit_conv(x, w, NULL, .padding = {PAD, PAD}));

    for (int i = 0; i < N_Y; i++)
        if (y[i] != element_of(of_x, of_w, i))
            fail_msg("element %d is %g, not %g", i, y[i], element_of(of_x, of_w, i));
    free(y);
}

static void test_packed_once(void **unused)
{
    static float of_x[N_X], of_w[N_W];
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *x, *w;
    struct rig rig;

    (void)unused;
    rig_open(&rig);
    fill(of_x, N_X, 1);
    fill(of_w, N_W, 2);
    x = rig_tensor(&rig, FRIT_SHAPE(IMAGES, INPUTS, SIDE, SIDE), of_x);
    w = rig_tensor(&rig, FRIT_SHAPE(OUTPUTS, INPUTS, WINDOW, WINDOW), of_w);
    for (int i = 0; i < RUNS; i++)
        check(x, w, of_x, of_w);
    assert_int_equal(rig_stats(&rig).derived_fills, 1);
    assert_int_equal(rig_stats(&rig).derived_hits, RUNS - 1);
    fill(of_w, N_W, 3);
    assert_int_equal(frit_write(w, of_w, sizeof(of_w), &err), FRIT_OK);
    for (int i = 0; i < RUNS; i++)
        check(x, w, of_x, of_w);
    assert_int_equal(rig_stats(&rig).derived_fills, 2);
    frit_release(x);
    frit_release(w);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
