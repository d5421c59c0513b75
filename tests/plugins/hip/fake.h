/* SPDX-License-Identifier: Apache-2.0 */
/* The fake runtime of a test program. */
#ifndef HIP_FAKE_H
#define HIP_FAKE_H

#include "../../fake/hip/fake.h"

/* Whether this is the test of cuda. */
bool fake_is_cuda(void);
/* The library, and that of the compiler if it is another one; else the same. */
struct fake_gpu *fake_open(void);
struct fake_gpu *fake_open_compiler(void);
/* Loads a fake library of the build tree. */
struct fake_gpu *fake_load(const char *name);
/* The library for products, without `reset`. */
struct fake_gpu *fake_open_products(void);

/* What differs between the libraries for products. */
struct fake_products {
    const char *name;     /* RIG_PRODUCTS, which chooses it, and in identities */
    const char *library;  /* file name in the build tree */
    const char *file;     /* the same with its folder */
    const char *version;  /* without its last number */
    const char *behind;   /* what follows the last number */
    bool has_bias;        /* products may have one */
    bool can_reduce;      /* it has a candidate with reduced products */
    bool chooses_late;    /* it has no heuristic: results of algorithms are those of products */
    uint32_t n_enqueuing; /* calls that enqueue a product */
};

const struct fake_products *fake_products(void);
/* The identity of a candidate of the library. */
void fake_write_identity(char to[64], bool is_reduced);
/* A function of the library by its two names. */
void *fake_find(const char *hip, const char *cuda);
/* Fails the test if the runtime has objects that nobody destroyed. */
void fake_expect_nothing_alive(void);

#endif
