/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize.  F32 is enough where it rounds no more than the result does. */
#include "lower/rows/lower_cast.h"
#include "lower/rows/packed.h"
#include "lower/rows/rows.h"

enum { F32_DIGITS = 24 };

static uint32_t as_type(const struct lower *l, enum kir_type type, uint32_t value)
{
    if (kir_type_at(l->m, value) == type)
        return value;
    return kir_unary(l->m, type == KIR_F64 ? KIR_f64 : KIR_f32, value);
}

/* A product of two that is exact, or rounded once to the result; scales of scales may leave the
 * range on the way. */
static bool fits_f32(const struct lower *l, const frit_attrs_dequantize *attrs)
{
    uint32_t scale = packed_digits(l->in_dtype[1], attrs->scale);

    if (l->n > 2 || l->dtype == FRIT_F64)
        return false;
    return scale + packed_width(l->in_dtype[0]) <= F32_DIGITS ||
           (l->dtype == FRIT_F32 && scale <= F32_DIGITS);
}

uint32_t lower_dequantize(const struct lower *l)
{
    const frit_attrs_dequantize *attrs = l->attrs;
    bool wide = l->target->f64 && !fits_f32(l, attrs);
    enum kir_type type = wide ? KIR_F64 : KIR_F32;
    uint32_t at = l->at, value, scale;

    if (at != KIR_NONE && kir_type_at(l->m, at) == KIR_I64)
        at = kir_unary(l->m, KIR_i32, at);
    value = packed_decode(l->m, wide, l->in_dtype[0], l->in[0], at);
    scale = as_type(l, type, packed_scale(l->m, l->in_dtype[1], attrs->scale, l->in[1]));
    if (l->n > 2) {
        uint32_t global = packed_scale(l->m, l->in_dtype[2], attrs->global, l->in[2]);

        scale = kir_binary(l->m, KIR_mul, as_type(l, type, global), scale);
    }
    value = kir_binary(l->m, KIR_mul, value, scale);
    return lower_convert(l->m, wide ? FRIT_F64 : FRIT_F32, l->dtype, value);
}
