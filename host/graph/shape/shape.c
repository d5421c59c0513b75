/* SPDX-License-Identifier: Apache-2.0 */
/* The table from rows to rules, and what the rules share. */
#include "graph/shape/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static const shape_rule rules[FRIT_OP_LIMIT] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    [id] = shape_rule_##shape,
#include <frit/ops.def>
};

frit_status shape_infer(const frit_op_info *row, struct op_call *call, struct op_type *out,
                        frit_err *err)
{
    struct shape_call s = {.row = row, .call = call, .out = out, .err = err};

    return row->id < FRIT_OP_LIMIT ? rules[row->id](&s) : shape_custom(&s);
}

frit_status shape_fail(const struct shape_call *s, const char *format, ...)
{
    char why[256], types[256] = "", type[128];
    size_t used = 0;
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    for (uint32_t i = 0; i < s->call->n_in && used < sizeof(types); i++) {
        if (!shape_has(s, i))
            continue;
        used += (size_t)snprintf(types + used, sizeof(types) - used, "%s%s %s", used ? ", " : "; ",
                                 op_slot(s->row, s->call->n_in, i)->name,
                                 op_type_text(shape_in(s, i), type, sizeof(type)));
    }
    return fail(s->err, FRIT_INVALID, "%s: %s%s", s->row->name, why, types);
}

const struct op_type *shape_in(const struct shape_call *s, uint32_t index)
{
    return &s->call->in[index].type;
}

bool shape_has(const struct shape_call *s, uint32_t index)
{
    return s->call->in[index].kind == FRIT_OPERAND_TENSOR;
}

static const char *operand(const struct shape_call *s, uint32_t index)
{
    return op_slot(s->row, s->call->n_in, index)->name;
}

frit_status shape_rank(const struct shape_call *s, uint32_t index, uint32_t low, uint32_t high)
{
    uint32_t rank = shape_in(s, index)->rank;

    if (rank >= low && rank <= high)
        return FRIT_OK;
    if (low == high)
        return shape_fail(s, "%s must have rank %u", operand(s, index), low);
    if (high == FRIT_MAX_RANK)
        return shape_fail(s, "%s must have rank %u or more", operand(s, index), low);
    return shape_fail(s, "%s must have a rank of %u to %u", operand(s, index), low, high);
}

frit_status shape_dims(const struct shape_call *s, uint32_t index, uint32_t rank,
                       const int64_t *dims)
{
    struct op_type want = {.dtype = shape_in(s, index)->dtype, .rank = rank};
    char text[128];

    if (!shape_has(s, index))
        return FRIT_OK;
    if (rank > FRIT_MAX_RANK)
        return shape_fail(s, "%s would need rank %u, the largest is 8", operand(s, index), rank);
    if (rank)
        memcpy(want.dims, dims, rank * sizeof(dims[0]));
    if (!op_type_equal(&want, shape_in(s, index)))
        return shape_fail(s, "%s must be %s", operand(s, index),
                          op_type_text(&want, text, sizeof(text)));
    return FRIT_OK;
}

frit_status shape_axis(const struct shape_call *s, int64_t *axis, uint32_t rank)
{
    if (*axis < -(int64_t)rank || *axis >= (int64_t)rank)
        return shape_fail(s, "there is no axis %lld in rank %u", (long long)*axis, rank);
    *axis += *axis < 0 ? rank : 0;
    return FRIT_OK;
}

frit_status shape_axes(const struct shape_call *s, frit_axes *axes, uint32_t rank)
{
    bool set[FRIT_MAX_RANK] = {false};
    int64_t count = 0;

    for (int64_t i = 0; i < axes->count; i++) {
        TRY(shape_axis(s, &axes->axis[i], rank));
        if (set[axes->axis[i]])
            return shape_fail(s, "axis %lld is given twice", (long long)axes->axis[i]);
        set[axes->axis[i]] = true;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (set[i])
            axes->axis[count++] = i;
    }
    return FRIT_OK;
}

frit_status shape_axes_or_all(const struct shape_call *s, frit_axes *axes, uint32_t rank)
{
    if (axes->count)
        return shape_axes(s, axes, rank);
    axes->count = rank;
    for (uint32_t i = 0; i < rank; i++)
        axes->axis[i] = i;
    return FRIT_OK;
}

frit_status shape_set(const struct shape_call *s, uint32_t output, uint32_t rank,
                      const int64_t *dims)
{
    if (rank > FRIT_MAX_RANK)
        return shape_fail(s, "the result would have rank %u, the largest is 8", rank);
    s->out[output].rank = rank;
    if (rank)
        memcpy(s->out[output].dims, dims, rank * sizeof(dims[0]));
    return FRIT_OK;
}

frit_status shape_set_like(const struct shape_call *s, uint32_t output, uint32_t index)
{
    return shape_set(s, output, shape_in(s, index)->rank, shape_in(s, index)->dims);
}

bool shape_broadcast_dims(uint32_t *rank, int64_t *dims, const struct op_type *with,
                          uint32_t *clash)
{
    uint32_t result = *rank > with->rank ? *rank : with->rank;

    for (uint32_t i = 1; i <= result; i++) {
        int64_t a = i <= *rank ? dims[*rank - i] : 1;
        int64_t b = i <= with->rank ? with->dims[with->rank - i] : 1;

        if (a != b && a != 1 && b != 1) {
            *clash = result - i;
            return false;
        }
    }
    if (result > *rank)
        memmove(dims + (result - *rank), dims, *rank * sizeof(dims[0]));
    for (uint32_t i = 0; i < result - *rank; i++)
        dims[i] = 1;
    for (uint32_t i = 0; i < with->rank; i++) {
        int64_t *dim = &dims[result - with->rank + i];

        *dim = *dim == 1 ? with->dims[i] : *dim;
    }
    *rank = result;
    return true;
}

bool shape_empty(const struct op_type *type)
{
    for (uint32_t i = 0; i < type->rank; i++) {
        if (type->dims[i] == 0)
            return true;
    }
    return false;
}

frit_status shape_indexable(const struct shape_call *s, int64_t extent)
{
    if (extent == 0 && !shape_empty(&s->out[0]))
        return shape_fail(s, "there is no element to read, the extent is 0");
    return FRIT_OK;
}

frit_status shape_mul(const struct shape_call *s, int64_t a, int64_t b, int64_t *out)
{
    if (__builtin_mul_overflow(a, b, out))
        return shape_fail(s, "shape overflow: %lld * %lld", (long long)a, (long long)b);
    return FRIT_OK;
}

frit_status shape_add(const struct shape_call *s, int64_t a, int64_t b, int64_t *out)
{
    if (__builtin_add_overflow(a, b, out))
        return shape_fail(s, "shape overflow: %lld + %lld", (long long)a, (long long)b);
    return FRIT_OK;
}
