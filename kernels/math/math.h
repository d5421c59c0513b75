/* SPDX-License-Identifier: Apache-2.0 */
/* Mathematical functions as instructions of the kernel IR: one call per row of math.def appends to
 * the module's last phase what computes the function of x (and y) and gives its value.
 *
 * Operands are F32, or F64 where the target has f64 and i64; both of one type, which is that of the
 * result.  The code is straight: no branch, no loop but in `rem`, no memory.  How near the results
 * are to the true values, and how many instructions they take: README.md; where the target's
 * exact_div is false, add what its divisions and square roots are off.  Without memory the module's
 * `failed` is set, as by the builder.  Thread rule: that of the module. */
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
#include "math/math.def"

#endif
