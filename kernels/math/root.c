/* SPDX-License-Identifier: Apache-2.0 */
/* rsqrt, hypot. */
#include <math.h>

#include "math/kit.h"

uint32_t math_rsqrt(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);

    return kit_div(&kit, kit_f(&kit, 1), kit_sqrt(&kit, x));
}

/* Scales x and y so that no square overflows and the larger one does not underflow. */
uint32_t math_hypot(struct kir_module *module, const struct kir_target *target, uint32_t x,
                    uint32_t y)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t a = kit_abs(&kit, x), b = kit_abs(&kit, y), one = kit_f(&kit, 1);
    uint32_t up = kit_per_type(&kit, 0x1p100, 0x1p700),
             down = kit_per_type(&kit, 0x1p-100, 0x1p-700);
    uint32_t infinity = kit_f(&kit, INFINITY), most = kit_fmax(&kit, a, b);
    uint32_t large = kit_lt(&kit, kit_per_type(&kit, 0x1p60, 0x1p500), most);
    uint32_t small = kit_lt(&kit, most, kit_per_type(&kit, 0x1p-40, 0x1p-400));
    uint32_t scale = kit_select(&kit, large, down, kit_select(&kit, small, up, one));
    uint32_t back = kit_select(&kit, large, up, kit_select(&kit, small, down, one));
    uint32_t infinite = kit_or(&kit, kit_eq(&kit, a, infinity), kit_eq(&kit, b, infinity));
    uint32_t sum;

    a = kit_mul(&kit, a, scale);
    b = kit_mul(&kit, b, scale);
    sum = kit_mad(&kit, a, a, kit_mul(&kit, b, b));
    return kit_select(&kit, infinite, infinity, kit_mul(&kit, kit_sqrt(&kit, sum), back));
}
