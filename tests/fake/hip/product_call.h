/* SPDX-License-Identifier: Apache-2.0 */
/* What the libraries for products have in common. */
#ifndef FAKE_HIP_PRODUCT_CALL_H
#define FAKE_HIP_PRODUCT_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "fake.h"
#include "product_run.h"

/* The runtime of the process, which lies beside this library and is loaded already. */
struct fake_gpu *product_runtime(void);
/* Ends the process with a message unless `is`. */
void must_be(bool is, const char *what);
/* Hash of a product's numbers and the library's version. */
uint64_t product_hash(const struct product *p, uint64_t other);
/* Bytes that a third of all products, by their hash, need as a workspace; of the others 0. */
uint64_t product_workspace(uint64_t hash);
/* Operands and workspace must be in memory of the device; alpha must be 1, beta 0. */
void product_check_memory(const struct product *p);
void product_check_scalars(const struct product *p, const void *alpha, const void *beta);
/* Counts the product, and appends a line of words about it to the file FAKE_GPU_PRODUCTS. */
void product_count(const struct product *p);

#endif
