/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `frit bench DEVICE` whose work is multiplying. */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

#include <stddef.h>

#include <frit/frit.h>

struct bench;

/* Rows of products. */
int bench_products(const struct bench *bench, frit_device *device, const frit_device_desc *desc);
/* Its names; NULL beyond the last. */
const char *bench_product_at(size_t index);

#endif
