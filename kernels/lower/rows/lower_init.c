/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that make values from nothing. */
#include "lower/rows/lower_cast.h"
#include "lower/rows/rows.h"

uint32_t lower_full(const struct lower *l)
{
    return lower_convert(l->m, l->in_dtype[0], l->dtype, l->in[0]);
}

uint32_t lower_zeros(const struct lower *l)
{
    return lower_const(l->m, l->dtype, 0);
}

uint32_t lower_ones(const struct lower *l)
{
    return lower_const(l->m, l->dtype, 1);
}

uint32_t lower_empty(const struct lower *l)
{
    return lower_const(l->m, l->dtype, 0);
}

/* Floats are computed in the type that the scalars come in, and rounded once. */
uint32_t lower_arange(const struct lower *l)
{
    static const enum kir_op from_index[KIR_TYPES] = {
        [KIR_I32] = KIR_i32, [KIR_I64] = KIR_i64, [KIR_F32] = KIR_f32, [KIR_F64] = KIR_f64};
    enum kir_type type = kir_type_of(l->in_dtype[0]);
    uint32_t i = l->at;

    if (kir_type_at(l->m, i) != type)
        i = kir_unary(l->m, from_index[type], i);
    i = kir_binary(l->m, KIR_mul, i, l->in[1]);
    i = kir_binary(l->m, KIR_add, l->in[0], i);
    return lower_is_float(l->dtype) ? lower_convert(l->m, l->in_dtype[0], l->dtype, i) : i;
}

uint32_t lower_eye(const struct lower *l)
{
    uint32_t zero = kir_const_i(l->m, kir_type_at(l->m, l->at), 0);
    uint32_t on = kir_binary(l->m, KIR_eq, l->at, zero);

    return lower_convert(l->m, FRIT_BOOL, l->dtype, on);
}
