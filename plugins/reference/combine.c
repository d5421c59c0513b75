/* SPDX-License-Identifier: Apache-2.0 */
/* One function per combination and kind.  Signed sums and products are taken unsigned, where
 * wrapping is defined; the bits are the same. */
#include "combine.h"

#include <math.h>

static union value assign(union value a, union value b)
{
    (void)a;
    return b;
}

#define COMBINE(name, member, expression)                 \
    static union value name(union value a, union value b) \
    {                                                     \
        return (union value){.member = (expression)};     \
    }
COMBINE(add_real, real, a.real + b.real)
COMBINE(add_int, uint, a.uint + b.uint)
COMBINE(mul_real, real, a.real *b.real)
COMBINE(mul_int, uint, a.uint *b.uint)
COMBINE(min_real, real, isnan(a.real) || !(isnan(b.real) || b.real < a.real) ? a.real : b.real)
COMBINE(min_sint, sint, b.sint < a.sint ? b.sint : a.sint)
COMBINE(min_uint, uint, b.uint < a.uint ? b.uint : a.uint)
COMBINE(max_real, real, isnan(a.real) || !(isnan(b.real) || b.real > a.real) ? a.real : b.real)
COMBINE(max_sint, sint, b.sint > a.sint ? b.sint : a.sint)
COMBINE(max_uint, uint, b.uint > a.uint ? b.uint : a.uint)
#undef COMBINE

combine_fn combine_of(enum combine how, enum value_kind kind)
{
    static const combine_fn table[][VALUE_KINDS] = {
        [COMBINE_ASSIGN] = {assign, assign, assign},
        [COMBINE_ADD] = {add_real, add_int, add_int},
        [COMBINE_MUL] = {mul_real, mul_int, mul_int},
        [COMBINE_MIN] = {min_real, min_sint, min_uint},
        [COMBINE_MAX] = {max_real, max_sint, max_uint},
    };

    return table[how][kind];
}

union value combine_start(enum combine how, enum value_kind kind)
{
    static const union value table[][VALUE_KINDS] = {
        [COMBINE_ADD] = {{.real = 0}, {.sint = 0}, {.uint = 0}},
        [COMBINE_MUL] = {{.real = 1}, {.sint = 1}, {.uint = 1}},
        [COMBINE_MIN] = {{.real = INFINITY}, {.sint = INT64_MAX}, {.uint = UINT64_MAX}},
        [COMBINE_MAX] = {{.real = -INFINITY}, {.sint = INT64_MIN}, {.uint = 0}},
    };

    return table[how][kind];
}
