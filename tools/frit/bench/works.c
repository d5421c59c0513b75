/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/device.h"

enum { MAX_BLOCK = 256 /* rows */ };

static frit_tensor *copy(const struct bench_data *d)
{
    return frit_copy(d->x);
}

/* Ten ops, cheap ones. */
static frit_tensor *chain(const struct bench_data *d)
{
    frit_tensor *t = frit_add(d->x, d->x);

    t = frit_mul_f(frit_take(t), 0.5);
    t = frit_sub_f(frit_take(t), 1.0);
    t = frit_mul(frit_take(t), d->x);
    t = frit_add_f(frit_take(t), 3.0);
    t = frit_abs(frit_take(t));
    t = frit_mul_f(frit_take(t), 0.25);
    t = frit_add(frit_take(t), d->x);
    t = frit_neg(frit_take(t));
    return frit_add_f(frit_take(t), 0.125);
}

static frit_tensor *add(const struct bench_data *d)
{
    return frit_add(d->x, d->y);
}

static frit_tensor *broadcast(const struct bench_data *d)
{
    frit_tensor *t = frit_mul(d->x, d->row);

    return frit_add(frit_take(t), d->column);
}

static frit_tensor *transposed(const struct bench_data *d)
{
    frit_tensor *t = frit_permute(d->yt, FRIT_AXES(1, 0));

    return frit_add(d->x, frit_take(t));
}

/* x / 2 * (1 + erf(x / sqrt 2)) */
static frit_tensor *gelu(const struct bench_data *d)
{
    frit_tensor *t = frit_mul_f(d->x, 0.70710678118654752);

    t = frit_erf(frit_take(t));
    t = frit_add_f(frit_take(t), 1.0);
    t = frit_mul(frit_take(t), d->x);
    return frit_mul_f(frit_take(t), 0.5);
}

/* x / (1 + e^-x) */
static frit_tensor *silu(const struct bench_data *d)
{
    frit_tensor *t = frit_neg(d->x);

    t = frit_exp(frit_take(t));
    t = frit_add_f(frit_take(t), 1.0);
    return frit_div(d->x, frit_take(t));
}

static frit_tensor *softmax_over(frit_tensor *x, int64_t axis)
{
    frit_tensor *most = frit_max(x, .axes = FRIT_AXES(axis), .keep = 1), *e, *sum;

    e = frit_sub(x, frit_take(most));
    e = frit_exp(frit_take(e));
    sum = frit_sum(e, .axes = FRIT_AXES(axis), .keep = 1);
    return frit_div(frit_take(e), frit_take(sum));
}

static frit_tensor *softmax_last(const struct bench_data *d)
{
    return softmax_over(d->x, 1);
}

static frit_tensor *softmax_first(const struct bench_data *d)
{
    return softmax_over(d->x, 0);
}

/* The rows in blocks, as of images: over those of a block. */
static frit_tensor *softmax_middle(const struct bench_data *d)
{
    int64_t block = MAX_BLOCK;
    frit_tensor *x, *y;

    while (d->rows % block)
        block--;
    x = frit_reshape(d->x, FRIT_SHAPE(d->rows / block, block, d->columns));
    y = softmax_over(x, 1);
    frit_release(x);
    return y;
}

static frit_tensor *layernorm(const struct bench_data *d)
{
    double n = (double)d->columns;
    frit_tensor *mean = frit_sum(d->x, .axes = FRIT_AXES(1), .keep = 1), *centred, *var;

    mean = frit_mul_f(frit_take(mean), 1 / n);
    centred = frit_sub(d->x, frit_take(mean));
    var = frit_mul(centred, centred);
    var = frit_sum(frit_take(var), .axes = FRIT_AXES(1), .keep = 1);
    var = frit_mul_f(frit_take(var), 1 / n);
    var = frit_add_f(frit_take(var), 1e-5);
    var = frit_sqrt(frit_take(var));
    centred = frit_div(frit_take(centred), frit_take(var));
    centred = frit_mul(frit_take(centred), d->row);
    return frit_add(frit_take(centred), d->row);
}

static frit_tensor *rmsnorm(const struct bench_data *d)
{
    frit_tensor *square = frit_mul(d->x, d->x), *y;

    square = frit_sum(frit_take(square), .axes = FRIT_AXES(1), .keep = 1);
    square = frit_mul_f(frit_take(square), 1 / (double)d->columns);
    square = frit_add_f(frit_take(square), 1e-5);
    square = frit_sqrt(frit_take(square));
    y = frit_div(d->x, frit_take(square));
    return frit_mul(frit_take(y), d->row);
}

static frit_tensor *sum_all(const struct bench_data *d)
{
    return frit_sum(d->x, .axes = FRIT_AXES(0, 1));
}

static frit_tensor *sum_rows(const struct bench_data *d)
{
    return frit_sum(d->x, .axes = FRIT_AXES(1));
}

static frit_tensor *sum_columns(const struct bench_data *d)
{
    return frit_sum(d->x, .axes = FRIT_AXES(0));
}

static frit_tensor *max_rows(const struct bench_data *d)
{
    return frit_max(d->x, .axes = FRIT_AXES(1));
}

static frit_tensor *argmax_rows(const struct bench_data *d)
{
    return frit_argmax(d->x, .axes = FRIT_AXES(1));
}

const struct bench_work bench_works[] = {
    {"copy", "one matrix", LIMIT_COPY, 1, 1, 0, copy},
    {"add", "two matrices", LIMIT_COPY, 2, 1, 0, add},
    {"chain", "10 cheap ops", LIMIT_COPY, 1, 1, 0.85, chain},
    {"broadcast", "times a row, plus a column", LIMIT_COPY, 1, 1, 0, broadcast},
    {"transposed", "plus another one transposed", LIMIT_COPY, 2, 1, 0, transposed},
    {"gelu", "by its ops", LIMIT_COPY, 1, 1, 0, gelu},
    {"silu", "by its ops", LIMIT_COPY, 1, 1, 0, silu},
    {"softmax", "by its ops, over the last axis", LIMIT_COPY, 1, 1, 0.60, softmax_last},
    {"softmax-0", "by its ops, over the first axis", LIMIT_COPY, 1, 1, 0, softmax_first},
    {"softmax-1", "by its ops, over the middle axis of three", LIMIT_COPY, 1, 1, 0, softmax_middle},
    {"layernorm", "by its ops", LIMIT_COPY, 1, 1, 0.60, layernorm},
    {"rmsnorm", "by its ops", LIMIT_COPY, 1, 1, 0, rmsnorm},
    {"sum", "of all", LIMIT_READ, 1, 0, 0.85, sum_all},
    {"sum-rows", "over the last axis", LIMIT_READ, 1, 0, 0.85, sum_rows},
    {"sum-columns", "over the first axis", LIMIT_READ, 1, 0, 0.85, sum_columns},
    {"max", "over the last axis", LIMIT_READ, 1, 0, 0, max_rows},
    {"argmax", "over the last axis", LIMIT_READ, 1, 0, 0, argmax_rows},
};

const uint32_t n_bench_works = sizeof(bench_works) / sizeof(bench_works[0]);
