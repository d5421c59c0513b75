/* SPDX-License-Identifier: Apache-2.0 */
/* Functions based on log(x). */
#ifndef MATH_LOG_H
#define MATH_LOG_H

#include <stdint.h>

#include "math/kit.h"

struct kit;

/* log(x 2^exponent): x is a pair of positive, finite, normal numbers (lo may be KIR_NONE for 0),
 * exponent a float with an integral value, or KIR_NONE for 0. */
uint32_t kit_log(const struct kit *kit, struct pair x, uint32_t exponent);

#endif
