/* SPDX-License-Identifier: Apache-2.0 */
/* Heat on a square plate whose left edge is kept hot and whose other edges are kept cold.
 *
 * Explicit steps of u' = u + r * (up + down + left + right - 4 u) in the interior, written op by
 * op.  The run is checked against the law after it: what flows in through the edges is what the
 * plate holds more. */
#include <frit/frit.h>
#include <math.h>
#include <stdio.h>

enum { SIZE = 34, STEPS = 400, FRAMES = 4 };
#define RATE 0.2 /* of the difference that flows per step; stable up to 0.25 */

/* The interior, moved by (rows, columns). */
static frit_tensor *moved(frit_tensor *plate, int64_t rows, int64_t columns)
{
    return frit_slice(
        plate, FRIT_SLICES({1 + rows, SIZE - 1 + rows, 1}, {1 + columns, SIZE - 1 + columns, 1}));
}

static frit_tensor *step(frit_tensor *plate)
{
    frit_tensor *inner = moved(plate, 0, 0);
    frit_tensor *vertical = frit_add(moved(plate, -1, 0), moved(plate, 1, 0));
    frit_tensor *horizontal = frit_add(moved(plate, 0, -1), moved(plate, 0, 1));
    frit_tensor *flow = frit_sub(frit_add(vertical, horizontal), frit_mul_f(inner, 4));
    frit_tensor *next = frit_add(inner, frit_mul_f(flow, RATE));

    return frit_slice_assign(plate, next, FRIT_SLICES({1, -1, 1}, {1, -1, 1}));
}

/* Heat that flows into the interior in one step. */
static frit_tensor *inflow(frit_tensor *plate)
{
    frit_range inner = {1, -1, 1};
    frit_tensor *in = NULL;

    for (int side = 0; side < 4; side++) {
        frit_range edge = side % 2 ? (frit_range){-1, FRIT_SLICE_END, 1} : (frit_range){0, 1, 1};
        frit_range beside = side % 2 ? (frit_range){-2, -1, 1} : (frit_range){1, 2, 1};
        frit_slices at = side / 2 ? FRIT_SLICES(inner, edge) : FRIT_SLICES(edge, inner);
        frit_slices by = side / 2 ? FRIT_SLICES(inner, beside) : FRIT_SLICES(beside, inner);
        frit_tensor *part = frit_sum(frit_sub(frit_slice(plate, at), frit_slice(plate, by)));

        in = in ? frit_add(in, part) : part;
    }
    return frit_mul_f(in, RATE);
}

static void print_field(const double *field, int n)
{
    static const char shades[] = " .:-=+*#%@";

    printf("after %d steps\n", n);
    for (int row = 0; row < SIZE; row += 2) { /* characters are twice as high as wide */
        for (int column = 0; column < SIZE; column++)
            putchar(shades[(int)(field[row * SIZE + column] * (sizeof(shades) - 2))]);
        putchar('\n');
    }
    putchar('\n');
}

static double interior(const double *field)
{
    double heat = 0;

    for (int row = 1; row < SIZE - 1; row++)
        for (int column = 1; column < SIZE - 1; column++)
            heat += field[row * SIZE + column];
    return heat;
}

static int simulate(frit_device *dev)
{
    double field[SIZE * SIZE] = {0}, flowed;
    frit_tensor *plate, *heat;

    for (int row = 0; row < SIZE; row++)
        field[row * SIZE] = 1;
    plate = frit_from_host(dev, FRIT_F64, FRIT_SHAPE(SIZE, SIZE), field, sizeof(field));
    heat = frit_zeros(dev, FRIT_F64, FRIT_RANK0);
    for (int n = 1; n <= STEPS; n++) {
        /* Everything a step makes ends with its scope, but for the new plate and the new sum. */
        frit_scope scope = frit_scope_begin(dev);
        frit_tensor *sum = frit_keep(frit_add(frit_take(heat), inflow(plate)));
        frit_tensor *next = frit_keep(step(plate));

        frit_release(plate);
        frit_scope_end(scope);
        plate = next;
        heat = sum;
        if (n % (STEPS / FRAMES))
            continue;
        if (frit_read(plate, field, sizeof(field), NULL))
            return fprintf(stderr, "%s\n", frit_tensor_error(plate)), 1;
        print_field(field, n);
    }
    if (frit_read(heat, &flowed, sizeof(flowed), NULL))
        return fprintf(stderr, "%s\n", frit_tensor_error(heat)), 1;
    frit_release(plate);
    frit_release(heat);
    printf("%s: the plate holds %.6f, and %.6f flowed in\n", frit_device_name(dev), interior(field),
           flowed);
    return fabs(interior(field) - flowed) < 1e-9 ? 0 : 1;
}

int main(void)
{
    frit_host *host = NULL;
    frit_device *dev = NULL;
    frit_err err;
    int status;

    if (frit_host_open(NULL, &host, &err) || frit_device_open(host, NULL, &dev, &err)) {
        fprintf(stderr, "%s\n", err.text);
        frit_host_close(host);
        return 1;
    }
    status = simulate(dev);
    frit_device_close(dev);
    frit_host_close(host);
    return status;
}
