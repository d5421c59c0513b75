/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of elementwise rows, of rows without operands, and of the casts to and from packed
 * types. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/dtype.h"
#include "graph/scalar.h"
#include "graph/shape/shape.h"

frit_status shape_rule_same(struct shape_call *s)
{
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_same_all(struct shape_call *s)
{
    const struct op_type *x = shape_in(s, 0);

    for (uint32_t i = 1; i < s->call->n_in; i++)
        TRY(shape_dims(s, i, x->rank, x->dims));
    return shape_set_like(s, 0, 0);
}

/* "f32[3, 4], f32[5] and bool[2]" of the tensors up to operand `last`. */
static void list_types(const struct shape_call *s, uint32_t last, char *text, size_t size)
{
    size_t used = 0;
    char type[128];

    for (uint32_t i = 0; i <= last && used < size; i++) {
        if (!shape_has(s, i))
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 !used       ? ""
                                 : i == last ? " and "
                                             : ", ",
                                 op_type_text(shape_in(s, i), type, sizeof(type)));
    }
}

frit_status shape_rule_broadcast(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK] = {0}, extent;
    uint32_t rank = 0, clash;
    char types[384];

    for (uint32_t i = 0; i < s->call->n_in; i++) {
        const struct op_type *x = shape_in(s, i);

        if (!shape_has(s, i) || shape_broadcast_dims(&rank, dims, x, &clash))
            continue;
        list_types(s, i, types, sizeof(types));
        extent = x->dims[clash + x->rank - (rank > x->rank ? rank : x->rank)];
        return fail(s->err, FRIT_INVALID,
                    "%s: operands %s do not broadcast (dim %u: %lld and %lld)", s->row->name, types,
                    clash, (long long)dims[clash + rank - (rank > x->rank ? rank : x->rank)],
                    (long long)extent);
    }
    return shape_set(s, 0, rank, dims);
}

frit_status shape_rule_cross(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;

    TRY(shape_rule_broadcast(s));
    TRY(shape_axis(s, &a->axis, s->out[0].rank));
    for (uint32_t i = 0; i < 2; i++) {
        const struct op_type *x = shape_in(s, i);
        int64_t axis = a->axis + x->rank - s->out[0].rank; /* aligned at the right */

        if (axis < 0 || x->dims[axis] != 3)
            return shape_fail(s, "both operands must have extent 3 at axis %lld of the result",
                              (long long)a->axis);
    }
    return FRIT_OK;
}

frit_status shape_rule_nothing(struct shape_call *s)
{
    (void)s;
    return FRIT_OK;
}

/* ---- rows without tensor operands ---- */

static frit_status dtype_must(const struct shape_call *s, bool holds, const char *what)
{
    if (holds)
        return FRIT_OK;
    return shape_fail(s, "dtype is %s, it must be %s",
                      dtype_name(attrs_dtype(s->row, s->call->attrs)), what);
}

static uint32_t class_of(const struct shape_call *s)
{
    return dtype_class(attrs_dtype(s->row, s->call->attrs));
}

frit_status shape_rule_init(struct shape_call *s)
{
    const frit_attrs_init *a = s->call->attrs;

    return shape_set(s, 0, (uint32_t)a->dims.rank, a->dims.dim);
}

frit_status shape_rule_arange(struct shape_call *s)
{
    const frit_attrs_init *a = s->call->attrs;

    TRY(dtype_must(s, a->dtype != FRIT_BOOL, "a float or integer type"));
    if (a->dims.rank != 1)
        return shape_fail(s, "dims has %lld entries, it must have one", (long long)a->dims.rank);
    return shape_rule_init(s);
}

frit_status shape_rule_eye(struct shape_call *s)
{
    const frit_attrs_init *a = s->call->attrs;

    if (a->dims.rank < 2)
        return shape_fail(s, "dims has %lld entries, it must have two or more",
                          (long long)a->dims.rank);
    return shape_rule_init(s);
}

frit_status shape_rule_raw(struct shape_call *s)
{
    const frit_attrs_init *a = s->call->attrs;

    TRY(dtype_must(s, a->dtype == FRIT_U32 || a->dtype == FRIT_U64, "u32 or u64"));
    return shape_rule_init(s);
}

frit_status shape_rule_normal(struct shape_call *s)
{
    TRY(dtype_must(s, class_of(s) == FRIT_DTYPE_FLOAT, "a float type"));
    return shape_rule_init(s);
}

frit_status shape_rule_uniform(struct shape_call *s)
{
    const frit_attrs_init *a = s->call->attrs;
    double low = scalar_number(&s->call->in[0].scalar);
    double high = scalar_number(&s->call->in[1].scalar);

    TRY(dtype_must(s, class_of(s) == FRIT_DTYPE_FLOAT, "a float type"));
    if (!isfinite(scalar_round(high - low, a->dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32)))
        return shape_fail(s, "low = %g and high = %g are not finite or too far apart", low, high);
    return shape_rule_init(s);
}

frit_status shape_rule_integers(struct shape_call *s)
{
    frit_scalar low = s->call->in[0].scalar, high = s->call->in[1].scalar;
    bool rises =
        low.kind == FRIT_SCALAR_U64 ? low.bits < high.bits : (int64_t)low.bits < (int64_t)high.bits;
    char from[64], to[64];

    TRY(dtype_must(s, class_of(s) == FRIT_DTYPE_INT || class_of(s) == FRIT_DTYPE_UINT,
                   "an integer type"));
    if (!rises)
        return shape_fail(s, "low = %s is not below high = %s", scalar_text(&low, from, 64),
                          scalar_text(&high, to, 64));
    return shape_rule_init(s);
}

/* ---- packed types ---- */

/* One scale for every block of x, at operand 1; one for all of them, at operand 2. */
static frit_status check_scales(const struct shape_call *s, const frit_dims *block, int64_t global)
{
    const struct op_type *x = shape_in(s, 0);
    int64_t blocks[FRIT_MAX_RANK];

    if (shape_has(s, 2) != (global != FRIT_CHOICE_quant_scale_none))
        return shape_fail(s, "operand global and attribute global must be given together");
    TRY(shape_dims(s, 2, 0, NULL));
    if (block->rank == 0)
        return shape_dims(s, 1, 0, NULL);
    if (block->rank != (int64_t)x->rank)
        return shape_fail(s, "block has %lld entries for rank %u", (long long)block->rank, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (block->dim[i] < 1)
            return shape_fail(s, "block extent %lld, it must be 1 or more",
                              (long long)block->dim[i]);
        blocks[i] = x->dims[i] / block->dim[i] + (x->dims[i] % block->dim[i] != 0);
    }
    return shape_dims(s, 1, x->rank, blocks);
}

frit_status shape_rule_quantize(struct shape_call *s)
{
    const frit_attrs_quantize *a = s->call->attrs;

    TRY(check_scales(s, &a->block, a->global));
    return shape_set_like(s, 0, 0);
}

frit_status shape_rule_dequantize(struct shape_call *s)
{
    const frit_attrs_dequantize *a = s->call->attrs;

    TRY(check_scales(s, &a->block, a->global));
    return shape_set_like(s, 0, 0);
}
