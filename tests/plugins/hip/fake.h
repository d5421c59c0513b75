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
/* The library for products, without `reset`, and its file name. */
struct fake_gpu *fake_open_products(void);
const char *fake_products_file(void);
/* A function of the library by its two names. */
void *fake_find(const char *hip, const char *cuda);
/* Fails the test if the runtime has objects that nobody destroyed. */
void fake_expect_nothing_alive(void);

#endif
