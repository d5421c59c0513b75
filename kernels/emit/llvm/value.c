/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, constants, and vectors made of scalars. */
#include "emit/llvm/value.h"

#include "emit/llvm/emit.h"

#include <string.h>

bool ll_is(const struct ll *l, uint32_t value, enum fact_kind kind)
{
    return l->facts.of[value].kind == (uint32_t)kind;
}

ll_type ll_vector_of(const struct ll *l, ll_type type)
{
    return l->api->VectorType(type, l->width);
}

ll_type ll_shape(const struct ll *l, ll_type type)
{
    return l->wide ? ll_vector_of(l, type) : type;
}

ll_value ll_int(const struct ll *l, ll_type type, uint64_t value)
{
    return l->api->ConstInt(type, value, 0);
}

static ll_value same_in_all(const struct ll *l, ll_value element)
{
    ll_value elements[LL_MAX_WIDTH];

    for (uint32_t i = 0; i < l->width; i++)
        elements[i] = element;
    return l->api->ConstVector(elements, l->width);
}

ll_value ll_num(const struct ll *l, ll_type type, uint64_t value)
{
    ll_value element = ll_int(l, type, value);

    return l->wide ? same_in_all(l, element) : element;
}

ll_value ll_real(const struct ll *l, uint32_t type, double value)
{
    float narrow = (float)value;
    uint32_t bits32;
    uint64_t bits;
    ll_value element;

    memcpy(&bits32, &narrow, sizeof(bits32));
    memcpy(&bits, &value, sizeof(bits));
    element = type == KIR_F32 ? ll_int(l, l->types.of[KIR_I32], bits32)
                              : ll_int(l, l->types.of[KIR_I64], bits);
    element = l->api->ConstBitCast(element, l->types.of[type]);
    return l->wide ? same_in_all(l, element) : element;
}

ll_value ll_lanes(const struct ll *l, ll_type type, const uint64_t *numbers)
{
    ll_value elements[LL_MAX_WIDTH];

    for (uint32_t i = 0; i < l->width; i++)
        elements[i] = ll_int(l, type, numbers[i]);
    return l->api->ConstVector(elements, l->width);
}

/* Of a shuffle. */
ll_value ll_mask(const struct ll *l, const uint32_t *lanes)
{
    uint64_t numbers[LL_MAX_WIDTH];

    for (uint32_t i = 0; i < l->width; i++)
        numbers[i] = lanes[i];
    return ll_lanes(l, l->types.of[KIR_I32], numbers);
}

ll_value ll_splat(struct ll *l, ll_value scalar, ll_type type)
{
    ll_type vector = ll_vector_of(l, type);
    ll_value one = BUILD(l, InsertElement, l->api->GetUndef(vector), scalar,
                         ll_int(l, l->types.of[KIR_I32], 0));

    return BUILD(l, ShuffleVector, one, l->api->GetUndef(vector),
                 l->api->ConstNull(ll_vector_of(l, l->types.of[KIR_I32])));
}

ll_value ll_spread(struct ll *l, uint32_t value, ll_value scalar, uint32_t unit)
{
    ll_type type = l->types.of[l->phase->inst[value].type];
    ll_value all = ll_splat(l, scalar, type);
    uint64_t steps[LL_MAX_WIDTH];

    if (ll_is(l, value, FACT_UNIFORM))
        return all;
    for (uint32_t i = 0; i < l->width; i++)
        steps[i] = ((uint64_t)unit * l->width + i) * (uint64_t)l->facts.of[value].stride;
    return BUILD(l, Add, all, ll_lanes(l, type, steps));
}

ll_value ll_at(struct ll *l, uint32_t value, uint32_t unit)
{
    ll_value vector = l->vector[(size_t)value * l->units + unit];

    return vector ? vector : ll_spread(l, value, l->scalar[value], unit);
}

void ll_set(struct ll *l, uint32_t value, ll_value scalar)
{
    ll_value *vector = l->vector + (size_t)value * l->units;

    l->scalar[value] = scalar;
    if (!l->regions.spread[value])
        return;
    for (uint32_t u = 0; u < l->units; u++)
        vector[u] = u && ll_is(l, value, FACT_UNIFORM) ? vector[0] : ll_spread(l, value, scalar, u);
}
