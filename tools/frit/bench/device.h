/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `frit bench DEVICE`: what a person would write by ops, and the bytes that must move.
 */
#ifndef CLI_BENCH_DEVICE_H
#define CLI_BENCH_DEVICE_H

#include <frit/frit.h>

struct bench;

enum bench_limit { LIMIT_COPY, LIMIT_READ };

/* What all rows use: f32 matrices of `side` * `side` elements, vectors of a row and a column. */
struct bench_data {
    int64_t side, rows, columns;
    frit_tensor *x, *y, *row, *column;
    frit_tensor *yt; /* columns x rows */
};

struct bench_work {
    const char *name;
    const char *what;
    enum bench_limit limit;
    uint32_t reads, writes; /* matrices */
    double target;          /* of the limit, on a processor; 0: none */
    frit_tensor *(*run)(const struct bench_data *data);
};

/* Something that is run again and again. */
struct bench_job {
    frit_device *device;
    frit_tensor *(*run)(const void *self);
    const void *self;
    frit_err *err; /* of the first failure */
};

/* Runs it `n` times and waits; nanoseconds of each, below 0 after a failure. */
double bench_run(const struct bench_job *job, uint32_t n);
/* How often it goes into one queue. */
uint32_t bench_queue(const struct bench *bench, const struct bench_job *job);

extern const struct bench_work bench_works[];
extern const uint32_t n_bench_works;

/* The suite of a device: the first usable one whose name begins so. */
int bench_device(const struct bench *bench, const char *name);

#endif
