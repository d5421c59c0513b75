/* SPDX-License-Identifier: Apache-2.0 */
/* Emits the phases of the sort schedule. */
#include "lower/schedule/sort.h"

#include <string.h>

#include "lower/rows/rows.h"

/* Begins a phase with a lane per element of the result. */
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
    t->n_param = sched_add_index(s, t->n);
    t->stride_param = sched_add_index(s, t->stride);
    count = sched_add_index(s, t->outer.count);
    t->buffer[phase & 1] = kir_index(t->m, 0);
    t->buffer[~phase & 1] = count;
    t->keys = kir_binary(t->m, KIR_mul, count, kir_index(t->m, 2));
    t->point = sched_wide(s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    t->point = kir_binary(t->m, KIR_mul, t->point, kir_index(t->m, t->lanes));
    t->point =
        kir_binary(t->m, KIR_add, t->point, sched_wide(s, kir_unary(t->m, KIR_lane, KIR_NONE)));
    t->mask = t->outer.count % t->lanes ? kir_binary(t->m, KIR_lt, t->point, count) : KIR_NONE;
    delinearize_set(&t->outer, &t->e, t->point);
    expr_mask(&t->e, t->mask);
    expr_hoist(&t->e);
    t->position = expr_coord_value(&t->e, t->at);
}

/* Keys to workspace words and back. */
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

/* The row-major number of another position in the lane's line. */
static uint32_t point_at(const struct sort *t, uint32_t position)
{
    uint32_t away = kir_binary(t->m, KIR_mul, kir_binary(t->m, KIR_sub, position, t->position),
                               t->stride_param);

    return kir_binary(t->m, KIR_add, t->point, away);
}

/* The word at `from` + `at`, or at `from` where `mask` is false: unconditional loads are the
 * fastest. */
static uint32_t load_word(const struct sort *t, uint32_t from, uint32_t at, uint32_t mask)
{
    if (mask != KIR_NONE)
        at = kir_select(t->m, mask, at, kir_index(t->m, 0));
    return kir_emit_as(t->m, KIR_load, KIR_I32, t->workspace, kir_binary(t->m, KIR_add, from, at),
                       KIR_NONE, KIR_NONE);
}

static void store_word(const struct sort *t, uint32_t at, uint32_t word)
{
    kir_emit_imm(t->m, t->mask == KIR_NONE ? KIR_store : KIR_store_if, t->workspace, at, word,
                 t->mask);
}

/* The index of the element at a position. */
static uint32_t load_number(const struct sort *t, uint32_t position, uint32_t mask)
{
    return sched_wide(t->e.s, load_word(t, t->buffer[0], point_at(t, position), mask));
}

/* Stores the lane's element at its new position. */
static void store_own(const struct sort *t, uint32_t position, uint32_t number)
{
    uint32_t at = kir_binary(t->m, KIR_add, t->buffer[1], point_at(t, position));

    store_word(t, at, t->m->wide ? kir_unary(t->m, KIR_i32, number) : number);
    if (t->has_keys)
        store_word(t, kir_binary(t->m, KIR_add, at, t->keys), to_word(t, t->own));
}

/* The key of element `number` of the line. */
static uint32_t load_key(struct sort *t, uint32_t number)
{
    uint32_t mark = expr_mark(&t->e), value;

    delinearize_set(&t->inner, &t->e, number);
    value = expr_value(&t->e, t->node);
    expr_release(&t->e, mark);
    return t->dtype == FRIT_BOOL ? kir_unary(t->m, KIR_i32, value) : value;
}

/* The key of the element at a position; any other key where `mask` is false. */
static uint32_t load_key_at(struct sort *t, uint32_t position, uint32_t mask)
{
    if (!t->has_keys)
        return load_key(t, load_number(t, position, mask));
    return from_word(t, load_word(t, kir_binary(t->m, KIR_add, t->buffer[0], t->keys),
                                  point_at(t, position), mask));
}

static void set_own(struct sort *t, uint32_t own)
{
    t->own = own;
    t->is_nan = lower_is_float(t->dtype) ? kir_binary(t->m, KIR_ne, t->own, t->own) : KIR_NONE;
}

/* KIR_B: the key precedes the lane's; equal keys do if `earlier` is true. */
static uint32_t precedes(const struct sort *t, uint32_t value, uint32_t earlier)
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

/* The first position of the run of 2^bits elements around a position. */
static uint32_t run_of(const struct sort *t, uint32_t position, uint32_t bits)
{
    return kir_binary(t->m, KIR_and, position, kir_index(t->m, -(INT64_C(1) << bits)));
}

/* Ranks elements in their runs.  Beyond the line's end the lane compares its own element, which
 * does not precede itself. */
static void emit_runs(struct sort *t)
{
    uint32_t first, k, position, other, rank;

    begin_phase(t, 0);
    set_own(t, load_key(t, t->position));
    first = run_of(t, t->position, SORT_RUN_BITS);
    k = kir_for(t->m, kir_index(t->m, 0), kir_index(t->m, SORT_RUN), 1);
    rank = kir_phi(t->m, first);
    position = kir_binary(t->m, KIR_add, first, k);
    position =
        kir_select(t->m, kir_binary(t->m, KIR_lt, position, t->n_param), position, t->position);
    other = precedes(t, load_key(t, position), kir_binary(t->m, KIR_lt, position, t->position));
    other = kir_binary(t->m, KIR_add, rank,
                       kir_select(t->m, other, kir_index(t->m, 1), kir_index(t->m, 0)));
    kir_next(t->m, &other, 1);
    store_own(t, rank, t->position);
}

/* The number of elements that precede the lane's, in the sorted run of up to 2^bits elements at
 * `first`: a binary search that finds the bits of the number from the highest on. */
static uint32_t emit_rank(struct sort *t, uint32_t first, uint32_t bits)
{
    struct kir_module *m = t->m;
    uint32_t zero = kir_index(t->m, 0), full = kir_index(t->m, INT64_C(1) << bits), count, bit,
             more;
    uint32_t length, earlier, has, next[2];

    length = kir_binary(t->m, KIR_smin, kir_binary(t->m, KIR_sub, t->n_param, first), full);
    earlier = kir_binary(t->m, KIR_le, kir_binary(t->m, KIR_add, first, full), t->position);
    (void)kir_for(m, zero, kir_index(t->m, bits + 1), 1);
    count = kir_phi(m, zero);
    bit = kir_phi(m, full);
    more = kir_binary(t->m, KIR_add, count, bit);
    has = kir_binary(t->m, KIR_le, more, length);
    if (t->mask != KIR_NONE)
        has = kir_binary(t->m, KIR_and, has, t->mask);
    next[0] = kir_binary(t->m, KIR_sub, kir_binary(t->m, KIR_add, first, more), kir_index(t->m, 1));
    next[0] = precedes(t, load_key_at(t, next[0], has), earlier);
    next[0] = kir_select(t->m, kir_binary(t->m, KIR_and, has, next[0]), more, count);
    next[1] = kir_binary(t->m, KIR_shr, bit, kir_index(t->m, 1));
    kir_next(m, next, 2);
    return count;
}

/* Merges SORT_WAYS runs of 2^bits elements each. */
static void emit_merge(struct sort *t, uint32_t phase, uint32_t bits)
{
    struct kir_module *m = t->m;
    uint32_t number, all, way, first, is_own, position, next;

    begin_phase(t, phase);
    number = load_number(t, t->position, t->mask);
    set_own(t, load_key_at(t, t->position, t->mask));
    all = run_of(t, t->position, bits + SORT_WAYS_BITS);
    way = kir_for(m, kir_index(t->m, 0), kir_index(t->m, SORT_WAYS), 1);
    position = kir_phi(m, all);
    first = kir_binary(t->m, KIR_add, all, kir_binary(t->m, KIR_shl, way, kir_index(t->m, bits)));
    is_own = kir_binary(t->m, KIR_eq, first, run_of(t, t->position, bits));
    next = emit_rank(t, first, bits);
    next = kir_select(t->m, is_own, kir_binary(t->m, KIR_sub, t->position, first), next);
    next = kir_binary(t->m, KIR_add, position, next);
    kir_next(m, &next, 1);
    store_own(t, position, number);
}

static void emit_results(struct sort *t, uint32_t phase)
{
    struct expr *e = &t->e;
    uint32_t number;

    begin_phase(t, phase);
    number = load_number(t, t->position, t->mask);
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
