/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with windows of 3 x 3 and many channels, which a processor does by Winograd's
 * algorithm, against sums of doubles: sizes around those of tiles and groups, with what follows,
 * and elements that are not finite. */
#include "device/rig.h"

#include <math.h>
#include <string.h>

enum { WINDOW = 3, ULPS = 16 /* of the largest result, as conform allows */ };

struct shape {
    int64_t n, channels, outputs, rows, columns; /* of x */
    int32_t padding[2];
};

struct data {
    const struct shape *shape;
    int64_t rows, columns, count; /* of y */
    float *x, *w, *bias, *residual;
};

static void data_init(struct data *d, const struct shape *s)
{
    *d = (struct data){.shape = s,
                       .rows = s->rows + 2 * s->padding[0] - WINDOW + 1,
                       .columns = s->columns + 2 * s->padding[1] - WINDOW + 1};
    d->count = s->n * s->outputs * d->rows * d->columns;
    d->x = rig_numbers((uint64_t)(s->n * s->channels * s->rows * s->columns));
    d->w = rig_numbers((uint64_t)(s->outputs * s->channels * WINDOW * WINDOW));
    d->bias = rig_numbers((uint64_t)s->outputs);
    d->residual = rig_numbers((uint64_t)d->count);
}

static void data_fini(struct data *d)
{
    free(d->x);
    free(d->w);
    free(d->bias);
    free(d->residual);
}

/* Adds an element of x, to every output of a channel that has it in its window. */
static void add_line(const struct data *d, const float *w, const float *x, int64_t row, double *y)
{
    for (int64_t k = 0; k < WINDOW * WINDOW; k++) {
        int64_t at = row + k / WINDOW - d->shape->padding[0];

        for (int64_t column = 0; column < d->columns; column++) {
            int64_t from = column + k % WINDOW - d->shape->padding[1];
            bool inside = at >= 0 && at < d->shape->rows && from >= 0 && from < d->shape->columns;

            y[column] += (double)w[k] * (inside ? (double)x[at * d->shape->columns + from] : 0);
        }
    }
}

/* The conv alone. */
static double *sums_of(const struct data *d)
{
    const struct shape *s = d->shape;
    double *y = calloc((size_t)d->count, sizeof(*y));

    assert_non_null(y);
    for (int64_t i = 0; i < s->n * s->outputs * d->rows; i++) {
        int64_t output = i / d->rows % s->outputs, n = i / d->rows / s->outputs;

        for (int64_t c = 0; c < s->channels; c++)
            add_line(d, d->w + (output * s->channels + c) * WINDOW * WINDOW,
                     d->x + (n * s->channels + c) * s->rows * s->columns, i % d->rows,
                     y + i * d->columns);
    }
    return y;
}

/* relu(conv + bias + residual). */
static void finish(const struct data *d, double *y)
{
    for (int64_t i = 0; i < d->count; i++) {
        int64_t output = i / (d->rows * d->columns) % d->shape->outputs;

        y[i] = fmax(0, y[i] + (double)d->bias[output] + (double)d->residual[i]);
    }
}

static float *run(struct rig *rig, const struct data *d, bool finishes)
{
    const struct shape *s = d->shape;
    frit_tensor *x = rig_tensor(rig, FRIT_SHAPE(s->n, s->channels, s->rows, s->columns), d->x);
    frit_tensor *w = rig_tensor(rig, FRIT_SHAPE(s->outputs, s->channels, WINDOW, WINDOW), d->w);
    frit_tensor *bias = rig_tensor(rig, FRIT_SHAPE(s->outputs), d->bias);
    frit_tensor *residual =
        rig_tensor(rig, FRIT_SHAPE(s->n, s->outputs, d->rows, d->columns), d->residual);
    frit_tensor *y =
        frit_conv(x, w, finishes ? bias : NULL, .padding = {s->padding[0], s->padding[1]});
    float *got;

    if (finishes)
        y = frit_relu(frit_take(frit_add(frit_take(y), residual)));
    got = rig_read(y);
    frit_release(x);
    frit_release(w);
    frit_release(bias);
    frit_release(residual);
    return got;
}

static void compare(const struct data *d, const float *got, const double *want)
{
    double most = 0;

    for (int64_t i = 0; i < d->count; i++)
        most = isfinite(want[i]) && fabs(want[i]) > most ? fabs(want[i]) : most;
    for (int64_t i = 0; i < d->count; i++) {
        double y = (double)got[i];

        if (isnan(want[i]) != isnan(y) || (isinf(want[i]) && want[i] != y) ||
            (isfinite(want[i]) && !rig_near(y, want[i], most, ULPS)))
            fail_msg("%d to %d channels, %d x %d: element %d is %g, not %g",
                     (int)d->shape->channels, (int)d->shape->outputs, (int)d->shape->rows,
                     (int)d->shape->columns, (int)i, y, want[i]);
    }
}

static void check(struct rig *rig, const struct shape *shape, void (*spoil)(struct data *))
{
    struct data d;
    double *want;
    float *got;

    data_init(&d, shape);
    if (spoil)
        spoil(&d);
    want = sums_of(&d);
    got = run(rig, &d, false);
    compare(&d, got, want);
    free(got);
    if (!spoil) {
        finish(&d, want);
        got = run(rig, &d, true);
        compare(&d, got, want);
        free(got);
    }
    free(want);
    data_fini(&d);
}

static void test_sizes(void **unused)
{
    static const struct shape shapes[] = {
        {1, 64, 96, 10, 10, {0, 0}},  /* without padding */
        {2, 64, 66, 7, 12, {1, 0}},   /* odd rows; tiles of both matrices in a group */
        {1, 65, 80, 5, 33, {1, 2}},   /* odd columns */
        {1, 64, 64, 4, 130, {0, 1}},  /* two rows; several groups of tiles */
        {1, 300, 50, 8, 8, {1, 1}},   /* sums of more than one block */
        {2, 64, 70, 7, 7, {2, 2}},    /* tiles of zeros alone */
        {1, 64, 64, 3, 64, {0, 1}},   /* one row */
        {1, 40, 50, 14, 14, {1, 1}}}; /* outputs and channels beyond full tiles and lanes */
    struct rig rig;

    (void)unused;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i += rig_is_short() ? 3 : 1)
        check(&rig, &shapes[i], NULL);
    rig_close(&rig);
}

static void spoil_weights(struct data *d)
{
    const int64_t taps = d->shape->channels * WINDOW * WINDOW;

    d->w[7] = INFINITY;
    d->w[taps + 100] = -INFINITY;
    d->w[5 * taps + 100] = INFINITY;
    d->w[5 * taps + 101] = -INFINITY;
    d->w[(d->shape->outputs - 1) * taps] = NAN;
}

/* Some windows of a tile have both infinities. */
static void spoil_x(struct data *d)
{
    const int64_t columns = d->shape->columns, matrix = d->shape->rows * columns;

    d->x[columns + 1] = INFINITY;
    d->x[matrix + columns + 3] = -INFINITY;
    d->x[3 * matrix + 6 * columns + 8] = NAN;
    d->x[4 * matrix - 1] = INFINITY;
}

/* They do not spread to windows that do not have them. */
static void test_not_finite(void **unused)
{
    static const struct shape shape = {1, 48, 50, 14, 14, {1, 1}};
    struct rig rig;

    (void)unused;
    rig_open(&rig);
    check(&rig, &shape, spoil_weights);
    check(&rig, &shape, spoil_x);
    rig_close(&rig);
}

/* A conv with the weights again after they changed. */
static void test_changed_weights(void **unused)
{
    static const struct shape shape = {1, 64, 64, 14, 14, {1, 1}};
    frit_tensor *x, *w, *y;
    struct data d;
    struct rig rig;

    (void)unused;
    rig_open(&rig);
    data_init(&d, &shape);
    x = rig_tensor(&rig, FRIT_SHAPE(1, 64, 14, 14), d.x);
    w = rig_tensor(&rig, FRIT_SHAPE(64, 64, WINDOW, WINDOW), d.w);
    for (int round = 0; round < 2; round++) {
        double *want = sums_of(&d);
        float *got;

        y = frit_conv(x, w, NULL, .padding = {1, 1});
        got = rig_read(y);
        compare(&d, got, want);
        free(got);
        free(want);
        for (int i = 0; i < 64 * 64 * WINDOW * WINDOW; i++)
            d.w[i] = -d.w[i] / 2;
        w = frit_mul_f(frit_take(w), -0.5);
    }
    frit_release(x);
    frit_release(w);
    data_fini(&d);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_changed_weights)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
