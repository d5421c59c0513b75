/* SPDX-License-Identifier: Apache-2.0 */
/* Products by the vendor's library (cuBLASLt, hipBLASLt, rocBLAS), where it is installed. */
#ifndef HIP_PRODUCT_H
#define HIP_PRODUCT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "api.h"

struct device;
struct kernels_product_launch;
struct launch_target;
struct product_library;

struct products {
    const struct product_library *library; /* NULL: none is installed */
    struct lt_api lt;                      /* of cuBLASLt or hipBLASLt */
    struct rocblas_api rocblas;
    char identity[64], reduced_identity[64]; /* name and version, see kernels.h */
    pthread_t loader;                        /* loads the library while `is_loading` */
    bool is_loading;
    pthread_mutex_t lock; /* of the handle */
    bool has_lock;
    void *handle; /* of the library, created when it is needed first */
};

/* Starts to load the library, which takes half as long as creating a context, on a thread that
 * products_wait ends. */
void products_load(struct device *device);
void products_wait(struct device *device);
/* Opens the library and makes it a candidate of the device's programs, unless it is missing.  The
 * device must be entered. */
void products_open(struct device *device);
/* The device must be entered. */
void products_close(struct device *device);

/* Enqueues a product.  `words` are its PRODUCT_WORDS addresses (gpu/arg_block.h). */
frit_status product_enqueue(const struct launch_target *target,
                            const struct kernels_product_launch *product, const uint64_t *words,
                            frit_err *err);

#endif
