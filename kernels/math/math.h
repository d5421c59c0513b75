/* SPDX-License-Identifier: Apache-2.0 */
/* Mathematical functions as kernel IR.  Each row of math.def is a function here, which appends the
 * instructions that compute the function of x (and y) to the module's last phase and returns the
 * result's value.
 *
 * Operands are F32, or F64 if the target has f64 and i64, both of the result's type.  The code has
 * no branches, no memory accesses and no loops except in `rem`.  README.md lists errors and
 * instruction counts; where the target's exact_div is false, the errors of its divisions and square
 * roots add to these.  If out of memory, the module's `failed` is set, as by the builder.  A module
 * may be used by one thread at a time. */
#ifndef MATH_H
#define MATH_H

#include <stdint.h>

struct kir_module;
struct kir_target;

#define MATH_1(name, cost, meaning) \
    uint32_t math_##name(struct kir_module *module, const struct kir_target *target, uint32_t x);
#define MATH_2(name, cost, meaning)                                                              \
    uint32_t math_##name(struct kir_module *module, const struct kir_target *target, uint32_t x, \
                         uint32_t y);
#define MATH_1_16(name, cost, meaning) \
    MATH_1(name, cost, meaning)        \
    MATH_1(name##_16, cost, meaning)
#include "math/math.def"

#endif
