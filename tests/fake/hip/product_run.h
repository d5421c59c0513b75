/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices as the vendors' libraries define them: d = op(a) op(b) + bias, all stored by
 * columns. */
#ifndef FAKE_HIP_PRODUCT_RUN_H
#define FAKE_HIP_PRODUCT_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* Element types, which have the same numbers in both libraries. */
enum { PRODUCT_F32 = 0, PRODUCT_F64 = 1, PRODUCT_F16 = 2, PRODUCT_BF16 = 14 };

struct matrix {
    uint64_t at, rows, columns;
    int64_t leading;    /* elements between columns */
    int64_t batch_step; /* elements between batches */
    int type;
    bool transposed; /* op() */
};

struct product {
    int64_t m, n, k, batches;
    bool is_tf32; /* a and b, of f32, are rounded to tf32 */
    struct matrix a, b, d;
    uint64_t bias; /* address of one element of d's type per row of d; 0: none */
    uint64_t workspace, workspace_bytes;
    bool (*has_memory)(uint64_t address, uint64_t bytes);
};

/* 0: not one of these types. */
uint64_t product_type_bytes(int type);
/* Whether device memory has all elements of the matrix, in all batches. */
bool product_has_matrix(const struct product *p, const struct matrix *matrix);
/* Runs the struct product at `data`.  If any of its memory was freed, ends the process. */
void product_run(const void *data);

#endif
