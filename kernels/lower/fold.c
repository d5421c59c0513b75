/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/fold.h"

#include <math.h>

#include <frit/op_table.h>

#include "lower/rows.h"

static uint32_t op2(const struct fold *fold, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(fold->m, op, a, b, KIR_NONE);
}

static uint32_t choose(const struct fold *fold, uint32_t c, uint32_t a, uint32_t b)
{
    return kir_emit(fold->m, KIR_select, a, b, c);
}

static struct fold_state single(uint32_t value)
{
    return (struct fold_state){{value, KIR_NONE}};
}

static struct fold_state take_itself(const struct fold *fold, uint32_t element, uint32_t number)
{
    (void)fold, (void)number;
    return single(element);
}

/* ---- sum, prod ---- */

static struct fold_state zero(const struct fold *fold)
{
    return single(lower_const(fold->m, fold->dtype, 0));
}

static struct fold_state one(const struct fold *fold)
{
    return single(lower_const(fold->m, fold->dtype, 1));
}

static struct fold_state sum(const struct fold *fold, const struct fold_state *a,
                             const struct fold_state *b)
{
    return single(op2(fold, KIR_add, a->part[0], b->part[0]));
}

static struct fold_state product(const struct fold *fold, const struct fold_state *a,
                                 const struct fold_state *b)
{
    return single(op2(fold, KIR_mul, a->part[0], b->part[0]));
}

/* ---- max, min ---- */

/* The number that every other one of the type is at least, or at most. */
static uint32_t end_of(const struct fold *fold, bool least)
{
    static const struct {
        uint32_t dtype;
        int64_t least, most;
    } ends[] = {{FRIT_I8, INT8_MIN, INT8_MAX},
                {FRIT_I16, INT16_MIN, INT16_MAX},
                {FRIT_I32, INT32_MIN, INT32_MAX},
                {FRIT_I64, INT64_MIN, INT64_MAX},
                {FRIT_U8, 0, UINT8_MAX},
                {FRIT_U16, 0, UINT16_MAX},
                {FRIT_U32, 0, UINT32_MAX},
                {FRIT_U64, 0, -1},
                {FRIT_BOOL, 0, 1}};

    for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (ends[i].dtype != fold->dtype)
            continue;
        if (fold->dtype == FRIT_BOOL)
            return kir_const_b(fold->m, !least);
        return kir_const_i(fold->m, kir_type_of(fold->dtype), least ? ends[i].least : ends[i].most);
    }
    return lower_const(fold->m, fold->dtype, least ? (double)-INFINITY : (double)INFINITY);
}

static struct fold_state lowest(const struct fold *fold)
{
    return single(end_of(fold, true));
}

static struct fold_state highest(const struct fold *fold)
{
    return single(end_of(fold, false));
}

static struct fold_state most(const struct fold *fold, const struct fold_state *a,
                              const struct fold_state *b)
{
    return single(lower_most(fold->m, fold->dtype, a->part[0], b->part[0]));
}

static struct fold_state least(const struct fold *fold, const struct fold_state *a,
                               const struct fold_state *b)
{
    return single(lower_least(fold->m, fold->dtype, a->part[0], b->part[0]));
}

/* ---- argmax, argmin: the value, then its number; ties take the first, the first NaN wins ---- */

static struct fold_state numbered(const struct fold *fold, uint32_t value)
{
    return (struct fold_state){{value, kir_const_i(fold->m, KIR_I64, INT64_MAX)}};
}

static struct fold_state lowest_at(const struct fold *fold)
{
    return numbered(fold, end_of(fold, true));
}

static struct fold_state highest_at(const struct fold *fold)
{
    return numbered(fold, end_of(fold, false));
}

static struct fold_state take_at(const struct fold *fold, uint32_t element, uint32_t number)
{
    (void)fold;
    return (struct fold_state){{element, number}};
}

static uint32_t is_nan(const struct fold *fold, uint32_t x)
{
    return op2(fold, KIR_ne, x, x);
}

/* Whether `a` goes before `b`, which `beats` says of numbers. */
static struct fold_state pick(const struct fold *fold, const struct fold_state *a,
                              const struct fold_state *b, uint32_t a_beats, uint32_t b_beats)
{
    uint32_t first = op2(fold, KIR_lt, a->part[1], b->part[1]), tie, take;

    if (lower_is_float(fold->dtype)) {
        uint32_t nan_a = is_nan(fold, a->part[0]), nan_b = is_nan(fold, b->part[0]);

        a_beats =
            op2(fold, KIR_or, a_beats,
                op2(fold, KIR_and, nan_a, kir_emit(fold->m, KIR_not, nan_b, KIR_NONE, KIR_NONE)));
        b_beats =
            op2(fold, KIR_or, b_beats,
                op2(fold, KIR_and, nan_b, kir_emit(fold->m, KIR_not, nan_a, KIR_NONE, KIR_NONE)));
    }
    tie = op2(fold, KIR_and, first, kir_emit(fold->m, KIR_not, b_beats, KIR_NONE, KIR_NONE));
    take = op2(fold, KIR_or, a_beats, tie);
    return (struct fold_state){
        {choose(fold, take, a->part[0], b->part[0]), choose(fold, take, a->part[1], b->part[1])}};
}

static struct fold_state most_at(const struct fold *fold, const struct fold_state *a,
                                 const struct fold_state *b)
{
    return pick(fold, a, b, lower_less(fold->m, fold->dtype, b->part[0], a->part[0]),
                lower_less(fold->m, fold->dtype, a->part[0], b->part[0]));
}

static struct fold_state least_at(const struct fold *fold, const struct fold_state *a,
                                  const struct fold_state *b)
{
    return pick(fold, a, b, lower_less(fold->m, fold->dtype, a->part[0], b->part[0]),
                lower_less(fold->m, fold->dtype, b->part[0], a->part[0]));
}

/* ---- the table ---- */

static const struct fold_row rows[] = {
    {FRIT_OP_sum, 1, false, zero, take_itself, sum},
    {FRIT_OP_prod, 1, false, one, take_itself, product},
    {FRIT_OP_max, 1, false, lowest, take_itself, most},
    {FRIT_OP_min, 1, false, highest, take_itself, least},
    {FRIT_OP_argmax, 2, true, lowest_at, take_at, most_at},
    {FRIT_OP_argmin, 2, true, highest_at, take_at, least_at},
};

const struct fold_row *fold_row_of(uint32_t op)
{
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].id == op)
            return &rows[i];
    return NULL;
}

uint32_t fold_result(const struct fold *fold, const struct fold_state *state)
{
    if (fold->row->indexed)
        return state->part[1];
    return lower_fit(fold->m, fold->dtype, state->part[0]);
}

enum kir_type fold_part_type(const struct fold *fold, uint32_t part)
{
    return part ? KIR_I64 : kir_type_of(fold->dtype);
}
