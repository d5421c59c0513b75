/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries for products, each a table of functions that product.c calls.  Matrices of the
 * libraries are stored by columns. */
#ifndef HIP_PRODUCT_LIBRARY_H
#define HIP_PRODUCT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

struct products;

/* `rows` and `columns` are those in memory; op() transposes them if `transposed`. */
struct product_matrix {
    uint64_t rows, columns;
    int64_t step;       /* elements between columns */
    int64_t batch_step; /* elements between the matrices of a batch; not negative */
    bool transposed;
};

/* For each matrix of a batch: c = op(a) op(b) + bias.  c has m rows and n columns, none of them
 * transposed; the bias is a column.  All extents are at most INT32_MAX. */
struct product_problem {
    uint32_t dtype, result;    /* as of struct kernels_product */
    bool has_bias, is_reduced; /* likewise */
    uint32_t align;            /* likewise */
    int64_t m, n, k, batches;
    struct product_matrix a, b, c;
};

/* How a library computes a problem.  A library's own plan begins with it. */
struct product_plan {
    struct product_problem problem;
    uint64_t workspace_bytes, algorithm; /* see struct kernels_product_launch; set by the library */
    int64_t n_loops;                     /* products that are enqueued one by one */
    uint64_t step_a, step_b, step_c;     /* bytes between their operands */
};

/* Addresses of one product's operands; 0: there is none. */
struct product_addresses {
    uint64_t a, b, c, bias, workspace;
};

/* Results are those of the library; 0 is success.  The device must be entered, but for `load`. */
struct product_functions {
    uint32_t plan_bytes; /* of the library's own plan */
    bool can_reduce;     /* it has arithmetic with tf32 */
    /* Sets the functions in `products`; false: the library lacks one. */
    bool (*load)(struct products *products, void *library);
    gpu_result (*create)(struct products *products, void **handle);
    gpu_result (*destroy)(struct products *products, void *handle);
    gpu_result (*write_version)(struct products *products, char *to, size_t capacity);
    /* Fills the library's own part of a zeroed plan whose `problem` is set, and what
     * product_plan says; *found: it has an algorithm.  There is a handle. */
    gpu_result (*plan)(struct products *products, struct product_plan *plan, bool *found);
    /* Releases what `plan` has filled, or a part of it. */
    void (*release)(struct products *products, struct product_plan *plan);
    gpu_result (*enqueue)(struct products *products, struct product_plan *plan,
                          const struct product_addresses *at, gpu_stream stream);
};

struct product_library {
    const char *name;         /* in identities of candidates, and of the option `products` */
    const char *const *files; /* NULL after the last; the first that opens */
    const struct product_functions *functions;
};

extern const struct product_functions product_lt;      /* cuBLASLt, hipBLASLt: product_lt.c */
extern const struct product_functions product_rocblas; /* product_rocblas.c */

/* Creates the library's handle, if there is none yet. */
gpu_result products_need_handle(struct products *products);

#endif
