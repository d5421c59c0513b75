/* SPDX-License-Identifier: Apache-2.0 */
/* Split rows: each chunk of a row is folded by a group of its own.  Each level has two phases: the
 * first writes one state (partial result) per chunk; in the second one group, or lane, per row
 * folds these states.  Later phases load the results of a level.  Outputs of whole rows are stored
 * by chunk, outputs with one element per row in the last phase that folds.
 *
 * The workspace has one 64-bit word per row for the result of each fold, then the states of a
 * level, with a word for each part of a state. */
#include "lower/schedule/row_split.h"

#include "lower/schedule/row_emit.h"
#include "lower/schedule/row_lanes.h"
#include "lower/schedule/row_rounds.h"

/* ---- the workspace ---- */

static uint32_t workspace(const struct row_emitter *w)
{
    return w->m->n_args - 1;
}

static uint32_t to_bits(const struct row_emitter *w, uint32_t value)
{
    enum kir_type type = kir_type_at(w->m, value);

    if (type == KIR_F32)
        value = kir_emit_as(w->m, KIR_bits, KIR_I32, 0, value, KIR_NONE, KIR_NONE);
    if (type == KIR_F64)
        return kir_emit_as(w->m, KIR_bits, KIR_I64, 0, value, KIR_NONE, KIR_NONE);
    return type == KIR_I64 ? value : kir_unary(w->m, KIR_i64, value);
}

static uint32_t from_bits(const struct row_emitter *w, enum kir_type type, uint32_t bits)
{
    if (type == KIR_I64)
        return bits;
    if (type == KIR_F64)
        return kir_emit_as(w->m, KIR_bits, KIR_F64, 0, bits, KIR_NONE, KIR_NONE);
    if (type == KIR_B)
        return kir_binary(w->m, KIR_ne, bits, kir_const_i(w->m, KIR_I64, 0));
    bits = kir_unary(w->m, KIR_i32, bits);
    return type == KIR_I32 ? bits
                           : kir_emit_as(w->m, KIR_bits, KIR_F32, 0, bits, KIR_NONE, KIR_NONE);
}

static void store_word(const struct row_emitter *w, uint32_t at, uint32_t value)
{
    uint32_t mask = w->row->form == ROW_GROUP ? w->lane_0 : w->mask;

    kir_emit_imm(w->m, mask == KIR_NONE ? KIR_store : KIR_store_if, workspace(w), at,
                 to_bits(w, value), mask);
}

static uint32_t load_word(const struct row_emitter *w, enum kir_type type, uint32_t at,
                          uint32_t mask)
{
    enum kir_op op = mask == KIR_NONE ? KIR_load : KIR_load_if;
    uint32_t other = mask == KIR_NONE ? KIR_NONE : kir_const_i(w->m, KIR_I64, 0);

    return from_bits(w, type, kir_emit_as(w->m, op, KIR_I64, workspace(w), at, mask, other));
}

/* The position of word number `number` of the lane's row; word i of all rows precedes word i + 1.
 */
static uint32_t word_of(const struct row_emitter *w, uint32_t number)
{
    return kir_binary(w->m, KIR_add, kir_binary(w->m, KIR_mul, number, w->n_rows), w->row_number);
}

static uint32_t result_word(const struct row_emitter *w, uint32_t fold)
{
    return word_of(w, kir_index(w->m, fold));
}

static uint32_t part_word(const struct row_emitter *w, uint32_t part, uint32_t chunk)
{
    int64_t before = w->row->n_folds + part * w->row->n_chunks;

    return word_of(w, kir_binary(w->m, KIR_add, chunk, sched_add_index(w->e->s, before)));
}

static void split_begin(struct row_emitter *w)
{
    phase_begin(w);
    w->n_rows = sched_add_index(w->e->s, w->row->outer.count);
}

/* ---- chunks ---- */

/* Binds the results of earlier levels. */
static void load_results(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        const struct row_fold *fold = &w->row->folds[i];
        enum kir_type type = fold->fold.kind->indexed ? KIR_I64 : kir_type_of(fold->fold.dtype);

        if (fold->level <= w->pass)
            rows_bind(w, fold, load_word(w, type, result_word(w, i), w->mask));
    }
}

static void emit_chunks(struct row_emitter *w)
{
    const struct row_schedule *row = w->row;
    struct sched_divisor by_n_chunks;
    uint32_t group, block, chunk, n_chunks, parts[ROW_STATES], n;
    struct row_region region;

    split_begin(w);
    by_n_chunks = sched_add_divisor(w->e->s, row->n_chunks);
    n_chunks = sched_add_index(w->e->s, row->n_chunks);
    group = phase_group(w);
    block = sched_divide(w->e->s, &by_n_chunks, group);
    chunk = kir_binary(w->m, KIR_sub, group, kir_binary(w->m, KIR_mul, block, n_chunks));
    rows_select(w, block);
    load_results(w);
    rows_emit_constant(w);
    region = region_chunk(w, kir_binary(w->m, KIR_mul, chunk, kir_index(w->m, row->chunk_size)));
    region_emit(w, &region);
    lanes_combine(w);
    n = states_pack(w, parts);
    for (uint32_t i = 0; i < n; i++)
        store_word(w, part_word(w, i, chunk), parts[i]);
    phase_end(w, rows_blocks(row) * row->n_chunks);
}

/* ---- folding states of chunks ---- */

enum { PREFETCH = 16 /* chunks whose states are prefetched where each lane has a row */ };

/* The positions of the state of chunk number `chunk`, in the order of states_pack; returns their
 * number. */
static uint32_t part_words(const struct row_emitter *w, uint32_t chunk, uint32_t *at)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        const struct row_fold *fold = &w->row->folds[i];

        for (uint32_t p = 0; pass_has_fold(w, fold) && p < fold->fold.kind->n_parts; p++, n++)
            at[n] = part_word(w, n, chunk);
    }
    return n;
}

static void load_parts(const struct row_emitter *w, const uint32_t *at, uint32_t mask,
                       uint32_t *parts)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        const struct row_fold *fold = &w->row->folds[i];

        for (uint32_t p = 0; pass_has_fold(w, fold) && p < fold->fold.kind->n_parts; p++)
            *parts++ = load_word(w, fold_part_type(&fold->fold, p), *at++, mask);
    }
}

static void fold_parts(const struct row_emitter *w, const uint32_t *parts, uint32_t mask)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];
        struct fold_state state = {0};

        if (!pass_has_fold(w, fold))
            continue;
        for (uint32_t p = 0; p < fold->fold.kind->n_parts; p++)
            state.part[p] = *parts++;
        state = state_masked(w, fold, state, mask);
        fold->state = fold->fold.kind->combine(&fold->fold, &fold->state, &state);
    }
}

/* Folds the chunks begin .. end, `n` of them per round; n > 1 only where each lane has a row. */
static void fold_chunks(const struct row_emitter *w, uint32_t begin, uint32_t end, uint32_t n)
{
    uint32_t phis[ROW_STATES], at[ROW_STATES] = {0}, parts[PREFETCH][ROW_STATES] = {0}, chunk,
                               n_parts;

    chunk = loop_open(w, begin, end, n * round_step(w), phis);
    n_parts = part_words(w, round_element(w, chunk), at);
    for (uint32_t k = 0; k < n; k++) {
        load_parts(w, at, w->mask, parts[k]);
        for (uint32_t i = 0; i < n_parts && k + 1 < n; i++)
            at[i] = kir_binary(w->m, KIR_add, at[i], w->n_rows);
    }
    for (uint32_t k = 0; k < n; k++)
        fold_parts(w, parts[k], KIR_NONE);
    loop_close(w, phis);
}

static bool prefetches(const struct row_schedule *row)
{
    return row->form == ROW_LANE && !row->e.s->target->rereads_are_cached &&
           row->n_chunks >= PREFETCH;
}

/* Folds all chunks of each lane's row. */
static void fold_all(const struct row_emitter *w)
{
    const struct row_region region = region_whole(w, w->row->n_chunks);
    uint32_t begin = region.begin, at[ROW_STATES], parts[ROW_STATES] = {0}, chunk, mask;

    if (prefetches(w->row)) {
        begin = kir_binary(w->m, KIR_and, region.full_end, kir_index(w->m, -PREFETCH));
        fold_chunks(w, region.begin, begin, PREFETCH);
    }
    if (region.rounds)
        fold_chunks(w, begin, region.full_end, 1);
    if (region.tail) {
        chunk = kir_binary(w->m, KIR_add, region.full_end, w->lane);
        mask = kir_binary(w->m, KIR_lt, chunk, region.end);
        part_words(w, chunk, at);
        load_parts(w, at, mask, parts);
        fold_parts(w, parts, mask);
    }
}

static void emit_parts(struct row_emitter *w)
{
    const bool last = w->pass + 1 == w->row->n_levels;

    split_begin(w);
    rows_select(w, phase_group(w));
    if (last)
        load_results(w);
    states_identity(w);
    fold_all(w);
    lanes_combine(w);
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        const struct row_fold *fold = &w->row->folds[i];
        uint32_t value;

        if (!pass_has_result(w, fold))
            continue;
        value = rows_result(w, fold);
        rows_bind(w, fold, value);
        store_word(w, result_word(w, i), value);
    }
    w->pass++;
    if (last)
        rows_store(w);
    phase_end(w, rows_blocks(w->row));
}

/* ---- all phases ---- */

/* The largest number of words of a level's state. */
static uint32_t max_parts(struct row_emitter *w)
{
    uint32_t parts[ROW_STATES], most = 0;

    for (w->pass = 0; w->pass < w->row->n_levels; w->pass++) {
        uint32_t n = states_pack(w, parts);

        if (n > most)
            most = n;
    }
    return most;
}

/* Lanes of the phases that fold states: where each lane has a row, fewer lanes spread few
 * rows over more groups. */
static uint32_t parts_lanes(const struct row_schedule *row)
{
    const struct kir_target *target = row->e.s->target;

    if (row->form == ROW_GROUP)
        return row->lanes;
    return sched_spread_lanes(row->e.s, sched_lanes(target->lanes, row->outer.count),
                              row->outer.count);
}

void row_emit_split(struct row_emitter *w)
{
    struct row_schedule *row = w->row;
    const uint32_t lanes = row->lanes, fold_lanes = parts_lanes(row);
    uint64_t words = row->n_folds + (uint64_t)row->n_chunks * max_parts(w);

    kir_arg(w->m, FRIT_I64, KIR_READ | KIR_WRITE);
    w->e->s->numbers->workspace_bytes = words * (uint64_t)row->outer.count * sizeof(uint64_t);
    w->pass = 0;
    while (w->pass < row->n_levels) {
        emit_chunks(w);
        row_partition(row, fold_lanes);
        emit_parts(w);
        row_partition(row, lanes);
    }
    if (pass_has_rounds(w))
        emit_chunks(w);
}
