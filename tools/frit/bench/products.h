/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `frit bench DEVICE` whose work is multiplying. */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/frit.h>

struct bench;

/* A row whose figure is operations per second. */
struct bench_rate {
    const char *name, *what;
    double flops;
    frit_tensor *(*run)(const void *self);
    const void *self;
};

/* Whether the row is wanted, and with so many operations not too large for the kind of device. */
bool bench_wants_rate(const struct bench *bench, const frit_device_desc *desc, const char *name,
                      double flops);
/* Measures and prints it. */
int bench_rate(const struct bench *bench, frit_device *device, const struct bench_rate *rate);

/* Rows of products. */
int bench_products(const struct bench *bench, frit_device *device, const frit_device_desc *desc);
/* Its names; NULL beyond the last. */
const char *bench_product_at(size_t index);

#endif
