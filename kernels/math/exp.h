/* SPDX-License-Identifier: Apache-2.0 */
/* Functions based on e^x. */
#ifndef MATH_EXP_H
#define MATH_EXP_H

#include <stdint.h>

#include "math/kit.h"

struct kit;

struct exp_parts kit_exp_parts(const struct kit *kit, uint32_t x);
double kit_exp_least(const struct kit *kit);
/* e^x, x <= 0. */
uint32_t kit_exp(const struct kit *kit, uint32_t x);
/* The same, 0 where that is below normal numbers, about: in fewer instructions. */
uint32_t kit_exp_normal(const struct kit *kit, uint32_t x);
/* Likewise, with a relative error of 4e-6; F32. */
uint32_t kit_exp_rough(const struct kit *kit, uint32_t x);

#endif
