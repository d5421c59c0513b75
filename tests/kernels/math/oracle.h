/* SPDX-License-Identifier: Apache-2.0 */
/* The true values of the functions of math.def, by MPFR. */
#ifndef TESTS_KERNELS_MATH_ORACLE_H
#define TESTS_KERNELS_MATH_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

struct kir_module;
struct kir_target;

struct function {
    const char *name;
    uint32_t (*one)(struct kir_module *, const struct kir_target *, uint32_t); /* or two */
    uint32_t (*two)(struct kir_module *, const struct kir_target *, uint32_t, uint32_t);
};

enum { ORACLE_FUNCTIONS = 27 };

extern const struct function functions[ORACLE_FUNCTIONS];

void oracle_init(void);
void oracle_fini(void);
/* How far `got` is from the function's value at x, y: in units of the last place that the true
 * value has in the type (F64 if wide, else F32), infinity standing for the power of 2 after the
 * largest number.  Infinite where NaN, infinities or signed zeros are wrong. */
double oracle_error(uint32_t function, bool wide, double x, double y, double got);

#endif
