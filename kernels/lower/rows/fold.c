/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/rows/fold.h"

#include <math.h>

#include <frit/op_table.h>

#include "lower/rows/rows.h"
#include "math/math.h"

static struct fold_state single(uint32_t value)
{
    return (struct fold_state){{value, KIR_NONE}};
}

/* A fold of one part combines as it merges. */
static struct fold_state combine_values(const struct fold *fold, const struct fold_state *a,
                                        const struct fold_state *b)
{
    return single(fold->kind->merge(fold, a->part[0], b->part[0]));
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

static uint32_t sum(const struct fold *fold, uint32_t a, uint32_t b)
{
    return kir_binary(fold->m, KIR_add, a, b);
}

static uint32_t product(const struct fold *fold, uint32_t a, uint32_t b)
{
    return kir_binary(fold->m, KIR_mul, a, b);
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

static uint32_t most(const struct fold *fold, uint32_t a, uint32_t b)
{
    return lower_max(fold->m, fold->dtype, a, b);
}

static uint32_t least(const struct fold *fold, uint32_t a, uint32_t b)
{
    return lower_min(fold->m, fold->dtype, a, b);
}

/* ---- argmax, argmin: the value, then its number; ties take the first, the first NaN wins ---- */

static uint32_t no_number(const struct fold *fold)
{
    return kir_const_i(fold->m, fold->number_type,
                       fold->number_type == KIR_I32 ? INT32_MAX : INT64_MAX);
}

static struct fold_state lowest_at(const struct fold *fold)
{
    return (struct fold_state){{end_of(fold, true), no_number(fold)}};
}

static struct fold_state highest_at(const struct fold *fold)
{
    return (struct fold_state){{end_of(fold, false), no_number(fold)}};
}

/* Whether `b`, which comes later, goes before `a`; of floats also where it is NaN and `a` is not.
 */
static uint32_t beats(const struct fold *fold, uint32_t a, uint32_t b)
{
    uint32_t worse = fold->kind->least ? b : a, better = fold->kind->least ? a : b, test;

    if (!lower_is_float(fold->dtype))
        return lower_less(fold->m, fold->dtype, worse, better);
    test = kir_binary(fold->m, KIR_le, better, worse);
    return kir_binary(fold->m, KIR_and, kir_unary(fold->m, KIR_not, test),
                      kir_binary(fold->m, KIR_eq, a, a));
}

static struct fold_state pick(const struct fold *fold, const struct fold_state *a,
                              const struct fold_state *b)
{
    uint32_t take = beats(fold, a->part[0], b->part[0]);

    return (struct fold_state){{kir_select(fold->m, take, b->part[0], a->part[0]),
                                kir_select(fold->m, take, b->part[1], a->part[1])}};
}

/* The number where the state has the value, else the identity's. */
static uint32_t number_at(const struct fold *fold, const struct fold_state *state, uint32_t value)
{
    uint32_t own = state->part[0], has = kir_binary(fold->m, KIR_eq, own, value);

    if (lower_is_float(fold->dtype))
        has = kir_binary(fold->m, KIR_or, has, kir_binary(fold->m, KIR_ne, own, own));
    return kir_select(fold->m, has, state->part[1], no_number(fold));
}

/* ---- max, and the sum of exponentials relative to it ---- */

static struct fold_state lowest_and_zero(const struct fold *fold)
{
    return (struct fold_state){{end_of(fold, true), lower_const(fold->m, fold->dtype, 0)}};
}

/* exp(x), and 1 where `same`: there x may be NaN, a difference of infinities. */
static uint32_t scale(const struct fold *fold, uint32_t x, uint32_t same)
{
    return kir_select(fold->m, same, lower_const(fold->m, fold->dtype, 1),
                      math_exp(fold->m, fold->target, x));
}

/* One exponential, of minus the distance of the maxima, serves whichever sum is rescaled. */
static struct fold_state combine_rescaled(const struct fold *fold, const struct fold_state *a,
                                          const struct fold_state *b)
{
    struct kir_module *m = fold->m;
    uint32_t above = kir_binary(m, KIR_sub, b->part[0], a->part[0]);
    uint32_t less = kir_unary(m, KIR_neg, kir_unary(m, KIR_abs, above));
    uint32_t by = scale(fold, less, kir_binary(m, KIR_eq, a->part[0], b->part[0]));
    uint32_t is_above = kir_binary(m, KIR_lt, a->part[0], b->part[0]);
    uint32_t scaled = kir_select(m, is_above, a->part[1], b->part[1]);
    uint32_t kept = kir_select(m, is_above, b->part[1], a->part[1]);

    scaled = kir_binary(m, KIR_mul, scaled, by);
    return (struct fold_state){
        {most(fold, a->part[0], b->part[0]), kir_binary(m, KIR_add, kept, scaled)}};
}

const struct fold_kind fold_max_exp_sum = {
    .id = FRIT_OP_max,
    .n_parts = 2,
    .rescaled = true,
    .identity = lowest_and_zero,
    .combine = combine_rescaled,
    .merge = most,
};

uint32_t fold_result_sum(const struct fold *fold, const struct fold_state *state)
{
    uint32_t zero = kir_binary(fold->m, KIR_sub, state->part[0], state->part[0]);

    return kir_binary(fold->m, KIR_add, state->part[1], zero);
}

/* ---- second parts ---- */

struct fold_state fold_element(const struct fold *fold, uint32_t value, uint32_t number)
{
    struct fold_state state = single(value);

    if (fold->kind->indexed)
        state.part[1] = number;
    if (fold->kind->rescaled)
        state.part[1] = lower_const(fold->m, fold->dtype, 1);
    return state;
}

uint32_t fold_second_part(const struct fold *fold, const struct fold_state *state, uint32_t value)
{
    uint32_t own = state->part[0], less, same;

    if (!fold->kind->rescaled)
        return number_at(fold, state, value);
    same = kir_binary(fold->m, KIR_eq, own, value);
    less = kir_binary(fold->m, KIR_sub, own, value);
    return kir_binary(fold->m, KIR_mul, state->part[1], scale(fold, less, same));
}

uint32_t fold_merge_second_parts(const struct fold *fold, uint32_t a, uint32_t b)
{
    return kir_binary(fold->m, fold->kind->rescaled ? KIR_add : KIR_smin, a, b);
}

/* ---- the table ---- */

static const struct fold_kind kinds[] = {
    {FRIT_OP_sum, 1, false, false, false, zero, combine_values, sum},
    {FRIT_OP_prod, 1, false, false, false, one, combine_values, product},
    {FRIT_OP_max, 1, false, false, false, lowest, combine_values, most},
    {FRIT_OP_min, 1, false, false, false, highest, combine_values, least},
    {FRIT_OP_argmax, 2, true, false, false, lowest_at, pick, most},
    {FRIT_OP_argmin, 2, true, true, false, highest_at, pick, least},
};

const struct fold_kind *fold_kind_of(uint32_t op)
{
    for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].id == op)
            return &kinds[i];
    return NULL;
}

/* The number of the best element.  If no element is better than the identity, all equal it: then
 * the first one, number 0. */
static uint32_t number_of(const struct fold *fold, uint32_t number)
{
    uint32_t none = kir_binary(fold->m, KIR_eq, number, no_number(fold));

    number = kir_select(fold->m, none, kir_const_i(fold->m, fold->number_type, 0), number);
    return fold->number_type == KIR_I64 ? number : kir_unary(fold->m, KIR_i64, number);
}

uint32_t fold_result(const struct fold *fold, const struct fold_state *state)
{
    if (fold->kind->indexed)
        return number_of(fold, state->part[1]);
    return lower_fit(fold->m, fold->dtype, state->part[0]);
}

enum kir_type fold_part_type(const struct fold *fold, uint32_t part)
{
    return part && fold->kind->indexed ? fold->number_type : kir_type_of(fold->dtype);
}
