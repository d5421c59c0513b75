/* SPDX-License-Identifier: Apache-2.0 */
/* Code of the sort schedule's phases. */
#include "lower/schedule/sort.h"

#include <string.h>

#include "lower/rows/rows.h"

/* The phase's lanes: one for each element of the result. */
static void begin_phase(struct sort *t, uint32_t phase)
{
    struct sched *s = t->e.s;
    struct kir_module *m = s->module;
    uint32_t groups = (uint32_t)((t->outer.count + t->lanes - 1) / t->lanes), count;

    kir_phase(m, t->lanes);
    memcpy(s->numbers->grid[phase], (const uint32_t[3]){groups, 1, 1},
           sizeof(s->numbers->grid[phase]));
    expr_phase(&t->e);
    delinearize_phase(&t->outer, &t->e);
    delinearize_phase(&t->inner, &t->e);
    t->n_param = sched_index(s, t->n);
    t->step_param = sched_index(s, t->step);
    count = sched_index(s, t->outer.count);
    t->half[phase & 1] = kir_index(t->m, 0);
    t->half[~phase & 1] = count;
    t->keys = kir_binary(t->m, KIR_mul, count, kir_index(t->m, 2));
    t->point = sched_wide(s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    t->point = kir_binary(t->m, KIR_mul, t->point, kir_index(t->m, t->lanes));
    t->point =
        kir_binary(t->m, KIR_add, t->point, sched_wide(s, kir_unary(t->m, KIR_lane, KIR_NONE)));
    t->mask = t->outer.count % t->lanes ? kir_binary(t->m, KIR_lt, t->point, count) : KIR_NONE;
    delinearize_set(&t->outer, &t->e, t->point);
    expr_mask(&t->e, t->mask);
    expr_hoist(&t->e);
    t->place = expr_place_value(&t->e, t->at);
}

/* What is compared, as bits of a word and back. */
static uint32_t to_word(const struct sort *t, uint32_t value)
{
    struct kir_module *m = t->m;

    return kir_type_at(m, value) == KIR_F32
               ? kir_emit_as(m, KIR_bits, KIR_I32, 0, value, KIR_NONE, KIR_NONE)
               : value;
}

static uint32_t from_word(const struct sort *t, uint32_t word)
{
    return kir_type_of(t->dtype) == KIR_F32
               ? kir_emit_as(t->m, KIR_bits, KIR_F32, 0, word, KIR_NONE, KIR_NONE)
               : word;
}

/* The point of another place of the line. */
static uint32_t point_at(const struct sort *t, uint32_t place)
{
    uint32_t away =
        kir_binary(t->m, KIR_mul, kir_binary(t->m, KIR_sub, place, t->place), t->step_param);

    return kir_binary(t->m, KIR_add, t->point, away);
}

/* The word at `at` behind `from`, or `from`'s own where `mask` is false: loads that all lanes make
 * are the quickest. */
static uint32_t word_load(const struct sort *t, uint32_t from, uint32_t at, uint32_t mask)
{
    if (mask != KIR_NONE)
        at = kir_select(t->m, mask, at, kir_index(t->m, 0));
    return kir_emit_as(t->m, KIR_load, KIR_I32, t->workspace, kir_binary(t->m, KIR_add, from, at),
                       KIR_NONE, KIR_NONE);
}

static void word_store(const struct sort *t, uint32_t at, uint32_t word)
{
    kir_emit_imm(t->m, t->mask == KIR_NONE ? KIR_store : KIR_store_if, t->workspace, at, word,
                 t->mask);
}

/* The number that stands at a place. */
static uint32_t number_load(const struct sort *t, uint32_t place, uint32_t mask)
{
    return sched_wide(t->e.s, word_load(t, t->half[0], point_at(t, place), mask));
}

/* The lane's own element is at this place from now on. */
static void own_store(const struct sort *t, uint32_t place, uint32_t number)
{
    uint32_t at = kir_binary(t->m, KIR_add, t->half[1], point_at(t, place));

    word_store(t, at, t->m->wide ? kir_unary(t->m, KIR_i32, number) : number);
    if (t->has_keys)
        word_store(t, kir_binary(t->m, KIR_add, at, t->keys), to_word(t, t->own));
}

/* Element `number` of the line as what is compared. */
static uint32_t take(struct sort *t, uint32_t number)
{
    uint32_t mark = expr_mark(&t->e), value;

    delinearize_set(&t->inner, &t->e, number);
    value = expr_value(&t->e, t->node);
    expr_release(&t->e, mark);
    return t->dtype == FRIT_BOOL ? kir_unary(t->m, KIR_i32, value) : value;
}

/* What is compared of the element that stands at a place; of another where `mask` is false. */
static uint32_t take_at(struct sort *t, uint32_t place, uint32_t mask)
{
    if (!t->has_keys)
        return take(t, number_load(t, place, mask));
    return from_word(
        t, word_load(t, kir_binary(t->m, KIR_add, t->half[0], t->keys), point_at(t, place), mask));
}

static void set_own(struct sort *t, uint32_t own)
{
    t->own = own;
    t->is_nan = lower_is_float(t->dtype) ? kir_binary(t->m, KIR_ne, t->own, t->own) : KIR_NONE;
}

/* Whether an element comes before the lane's own, or where `earlier` holds is as good. */
static uint32_t before(const struct sort *t, uint32_t value, uint32_t earlier)
{
    bool is_unsigned = lower_is_unsigned(t->dtype);
    uint32_t a = t->descending ? t->own : value, b = t->descending ? value : t->own;
    uint32_t less = kir_binary(t->m, is_unsigned ? KIR_ult : KIR_lt, a, b);
    uint32_t most = kir_binary(t->m, is_unsigned ? KIR_ule : KIR_le, a, b);

    if (t->is_nan != KIR_NONE) {
        less = kir_binary(
            t->m, KIR_or, less,
            kir_binary(t->m, KIR_and, t->is_nan, kir_binary(t->m, KIR_eq, value, value)));
        most = kir_binary(t->m, KIR_or, most, t->is_nan);
    }
    return kir_select(t->m, earlier, most, less);
}

/* The first place of the run of 2^bits elements that a place is in. */
static uint32_t run_of(const struct sort *t, uint32_t place, uint32_t bits)
{
    return kir_binary(t->m, KIR_and, place, kir_index(t->m, -(INT64_C(1) << bits)));
}

/* Behind the end of the line the element itself is looked at, which is not before itself. */
static void emit_runs(struct sort *t)
{
    uint32_t first, k, place, other, rank;

    begin_phase(t, 0);
    set_own(t, take(t, t->place));
    first = run_of(t, t->place, SORT_RUN_BITS);
    k = kir_for(t->m, kir_index(t->m, 0), kir_index(t->m, SORT_RUN), 1);
    rank = kir_phi(t->m, first);
    place = kir_binary(t->m, KIR_add, first, k);
    place = kir_select(t->m, kir_binary(t->m, KIR_lt, place, t->n_param), place, t->place);
    other = before(t, take(t, place), kir_binary(t->m, KIR_lt, place, t->place));
    other = kir_binary(t->m, KIR_add, rank,
                       kir_select(t->m, other, kir_index(t->m, 1), kir_index(t->m, 0)));
    kir_next(t->m, &other, 1);
    own_store(t, rank, t->place);
}

/* How many of the run at `first`, of 2^bits elements at most, come before the lane's own: bits of
 * the count from the highest on. */
static uint32_t emit_count(struct sort *t, uint32_t first, uint32_t bits)
{
    struct kir_module *m = t->m;
    uint32_t zero = kir_index(t->m, 0), full = kir_index(t->m, INT64_C(1) << bits), count, bit,
             more;
    uint32_t length, earlier, has, next[2];

    length = kir_binary(t->m, KIR_smin, kir_binary(t->m, KIR_sub, t->n_param, first), full);
    earlier = kir_binary(t->m, KIR_le, kir_binary(t->m, KIR_add, first, full), t->place);
    (void)kir_for(m, zero, kir_index(t->m, bits + 1), 1);
    count = kir_phi(m, zero);
    bit = kir_phi(m, full);
    more = kir_binary(t->m, KIR_add, count, bit);
    has = kir_binary(t->m, KIR_le, more, length);
    if (t->mask != KIR_NONE)
        has = kir_binary(t->m, KIR_and, has, t->mask);
    next[0] = kir_binary(t->m, KIR_sub, kir_binary(t->m, KIR_add, first, more), kir_index(t->m, 1));
    next[0] = before(t, take_at(t, next[0], has), earlier);
    next[0] = kir_select(t->m, kir_binary(t->m, KIR_and, has, next[0]), more, count);
    next[1] = kir_binary(t->m, KIR_shr, bit, kir_index(t->m, 1));
    kir_next(m, next, 2);
    return count;
}

/* Runs of 2^bits elements become such of SORT_WAYS times as many. */
static void emit_merge(struct sort *t, uint32_t phase, uint32_t bits)
{
    struct kir_module *m = t->m;
    uint32_t number, all, way, first, is_own, place, next;

    begin_phase(t, phase);
    number = number_load(t, t->place, t->mask);
    set_own(t, take_at(t, t->place, t->mask));
    all = run_of(t, t->place, bits + SORT_WAYS_BITS);
    way = kir_for(m, kir_index(t->m, 0), kir_index(t->m, SORT_WAYS), 1);
    place = kir_phi(m, all);
    first = kir_binary(t->m, KIR_add, all, kir_binary(t->m, KIR_shl, way, kir_index(t->m, bits)));
    is_own = kir_binary(t->m, KIR_eq, first, run_of(t, t->place, bits));
    next = emit_count(t, first, bits);
    next = kir_select(t->m, is_own, kir_binary(t->m, KIR_sub, t->place, first), next);
    next = kir_binary(t->m, KIR_add, place, next);
    kir_next(m, &next, 1);
    own_store(t, place, number);
}

static void emit_results(struct sort *t, uint32_t phase)
{
    struct expr *e = &t->e;
    uint32_t number;

    begin_phase(t, phase);
    number = number_load(t, t->place, t->mask);
    delinearize_set(&t->inner, e, number);
    if (t->result != BLOCK_NONE)
        expr_bind(e, t->result, expr_value(e, t->node));
    if (t->index != BLOCK_NONE)
        expr_bind(e, t->index, e->s->module->wide ? number : kir_unary(t->m, KIR_i64, number));
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_value(e, e->stores[i].node);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_emit_store(e, i);
}

void sort_emit(struct sort *t)
{
    uint32_t bits = SORT_RUN_BITS;

    t->workspace = kir_arg(t->m, FRIT_I32, KIR_READ | KIR_WRITE);
    t->e.s->numbers->workspace_bytes =
        frit_storage_bytes(FRIT_I32, (t->has_keys ? 4 : 2) * t->outer.count);
    emit_runs(t);
    for (uint32_t phase = 1; phase + 1 < t->n_phases; phase++, bits += SORT_WAYS_BITS)
        emit_merge(t, phase, bits);
    emit_results(t, t->n_phases - 1);
}
