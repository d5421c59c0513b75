/* SPDX-License-Identifier: Apache-2.0 */
/* Emits scans.
 *
 * A round handles one element per lane along a row.  In a group, lanes scan their elements by
 * shifts of 1, 2, 4, ... lanes.  The last lane then passes its value to all lanes through a tile
 * with two elements, which rounds use alternately, so that one barrier per round is enough.  Where
 * F32 is accumulated, the carry is added to a base after every SUM_BLOCK_SCAN rounds and reset, so
 * that rounding errors grow slowly:
 *
 *     result = base o (carry o scan within the group) */
#include "lower/schedule/scan.h"

#include <string.h>

#include "lower/rows/rows.h"
#include "lower/sum_blocks.h"

/* A region of a row, as values of the module: full rounds cover begin .. full_end, a masked round
 * full_end
 * .. end. */
struct scan_region {
    uint32_t begin, full_end, end;
    bool rounds; /* there are full rounds */
    bool blocks; /* there may be more than SUM_BLOCK_SCAN rounds, and F32 is accumulated */
    bool tail;   /* full_end .. end may have elements */
};

/* State of emission. */
struct scan_emitter {
    struct scan *scan;
    struct expr *e;
    struct kir_module *m;
    uint32_t lane;      /* the lane's number, in the index type */
    uint32_t mask;      /* SCAN_LANE: B, the lane has a row; KIR_NONE: every lane has one */
    uint32_t tile;      /* SCAN_GROUP: passes the last lane's value to all lanes */
    uint32_t workspace; /* argument number, if rows are split */
    uint32_t base;      /* KIR_NONE: not used */
    uint32_t carried;
};

static uint32_t identity(const struct scan_emitter *w)
{
    return w->scan->fold.kind->identity(&w->scan->fold).part[0];
}

static uint32_t combine(const struct scan_emitter *w, uint32_t a, uint32_t b)
{
    const struct fold_state left = {{a, KIR_NONE}}, right = {{b, KIR_NONE}};

    return w->scan->fold.kind->combine(&w->scan->fold, &left, &right).part[0];
}

static enum kir_type state_type(const struct scan_emitter *w)
{
    return fold_part_type(&w->scan->fold, 0);
}

static bool is_group(const struct scan_emitter *w)
{
    return w->scan->form == SCAN_GROUP;
}

/* Converts an element to the accumulated type, and a result back. */
static uint32_t to_carry(const struct scan_emitter *w, uint32_t value)
{
    bool same = kir_type_of(w->scan->dtype) == state_type(w);

    return same ? value : kir_unary(w->m, KIR_f64, value);
}

static uint32_t result_of(const struct scan_emitter *w, uint32_t value)
{
    if (kir_type_of(w->scan->dtype) != state_type(w))
        value = kir_unary(w->m, KIR_f32, value);
    return lower_fit(w->m, w->scan->dtype, value);
}

/* ---- lanes of a group ---- */

static uint32_t scan_lanes(const struct scan_emitter *w, uint32_t value)
{
    for (uint32_t s = 1; s < w->scan->lanes; s *= 2) {
        uint32_t before = kir_emit_imm(w->m, KIR_shift, s, value, KIR_NONE, KIR_NONE);
        uint32_t has = kir_binary(w->m, KIR_le, kir_index(w->m, s), w->lane);

        value = kir_select(w->m, has, combine(w, before, value), value);
    }
    return value;
}

/* Folds the values of all lanes; the result is uniform. */
static uint32_t fold_lanes(const struct scan_emitter *w, uint32_t value)
{
    for (uint32_t s = 1; s < w->scan->lanes; s *= 2)
        value = combine(w, value, kir_emit_imm(w->m, KIR_exchange, s, value, KIR_NONE, KIR_NONE));
    return kir_unary(w->m, KIR_first, value);
}

/* The last lane's value, uniform; `first` is the round's first element. */
static uint32_t last_lane(const struct scan_emitter *w, uint32_t value, uint32_t first)
{
    const int64_t lanes = w->scan->lanes;
    uint32_t bit = kir_binary(w->m, KIR_and, first, kir_index(w->m, lanes));
    uint32_t slot = kir_select(w->m, kir_binary(w->m, KIR_ne, bit, kir_index(w->m, 0)),
                               kir_index(w->m, 1), kir_index(w->m, 0));
    bool is_bool = state_type(w) == KIR_B;

    if (is_bool)
        value = kir_unary(w->m, KIR_i32, value);
    kir_emit_imm(w->m, KIR_tstore_if, w->tile, slot, value,
                 kir_binary(w->m, KIR_eq, w->lane, kir_index(w->m, lanes - 1)));
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    value = kir_emit_as(w->m, KIR_tload, is_bool ? KIR_I32 : state_type(w), w->tile, slot, KIR_NONE,
                        KIR_NONE);
    return is_bool ? kir_binary(w->m, KIR_ne, value, kir_const_i(w->m, KIR_I32, 0)) : value;
}

/* ---- one round ---- */

/* Loads the element of each lane; an arbitrary value where `mask` is false, which no other lane
 * uses, since these lanes are the row's last. */
static uint32_t load_element(const struct scan_emitter *w, uint32_t element, uint32_t mask)
{
    expr_mask(w->e, mask == KIR_NONE ? w->mask : mask);
    delinearize_set(&w->scan->inner, w->e, element);
    return to_carry(w, expr_value(w->e, w->scan->node));
}

/* Computes all values before the first store, since an output may overwrite another output's
 * operand. */
static void emit_stores(const struct scan_emitter *w)
{
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_emit_store(w->e, i);
}

/* Emits the round whose first element is `first`.  `mask`: the lane's element is in the row.
 * Returns each lane's result without the base. */
static uint32_t emit_round(const struct scan_emitter *w, uint32_t first, uint32_t mask)
{
    uint32_t mark = expr_mark(w->e), run, result;

    run = load_element(w, is_group(w) ? kir_binary(w->m, KIR_add, first, w->lane) : first, mask);
    if (is_group(w))
        run = scan_lanes(w, run);
    run = result = combine(w, w->carried, run);
    if (w->base != KIR_NONE)
        result = combine(w, w->base, run);
    expr_bind(w->e, w->scan->result, result_of(w, result));
    emit_stores(w);
    expr_release(w->e, mark);
    return run;
}

/* ---- a region ---- */

static int64_t step_of(const struct scan_emitter *w)
{
    return is_group(w) ? w->scan->lanes : 1;
}

static void emit_rounds(struct scan_emitter *w, uint32_t begin, uint32_t end)
{
    uint32_t first = kir_for(w->m, begin, end, (uint32_t)step_of(w)), next;

    if (is_group(w))
        w->tile = kir_tile(w->m, KIR_GROUP, state_type(w) == KIR_B ? KIR_I32 : state_type(w), 2);
    w->carried = kir_phi(w->m, w->carried);
    next = emit_round(w, first, KIR_NONE);
    if (is_group(w))
        next = last_lane(w, next, first);
    kir_next(w->m, &next, 1);
}

static void emit_blocks(struct scan_emitter *w, const struct scan_region *region)
{
    int64_t step = step_of(w) * SUM_BLOCK_SCAN;
    uint32_t begin = kir_for(w->m, region->begin, region->full_end, (uint32_t)step), end, next;

    w->base = kir_phi(w->m, w->base);
    end = kir_binary(w->m, KIR_smin, kir_binary(w->m, KIR_add, begin, kir_index(w->m, step)),
                     region->full_end);
    w->carried = identity(w);
    emit_rounds(w, begin, end);
    next = combine(w, w->base, w->carried);
    kir_next(w->m, &next, 1);
}

static void emit_region(struct scan_emitter *w, const struct scan_region *region)
{
    if (region->blocks && w->base == KIR_NONE)
        w->base = identity(w);
    w->carried = identity(w);
    if (region->rounds && region->blocks) {
        emit_blocks(w, region);
        w->carried = identity(w);
    } else if (region->rounds) {
        emit_rounds(w, region->begin, region->full_end);
    }
    if (region->tail)
        emit_round(w, region->full_end,
                   kir_binary(w->m, KIR_lt, kir_binary(w->m, KIR_add, region->full_end, w->lane),
                              region->end));
}

/* ---- phases ---- */

static uint32_t group_index(const struct scan_emitter *w, uint32_t dim)
{
    return sched_wide(w->e->s, kir_emit_imm(w->m, KIR_group, dim, KIR_NONE, KIR_NONE, KIR_NONE));
}

/* Sets the row of each lane of the group; returns its number if rows are split. */
static uint32_t set_rows(struct scan_emitter *w, uint32_t group)
{
    const struct partition *partition = &w->scan->partition;
    struct span span;

    w->mask = KIR_NONE;
    if (is_group(w)) {
        delinearize_set(&w->scan->outer, w->e, group);
        return group;
    }
    span = partition_span(partition, w->e, group, w->lane);
    w->mask = partition_mask(partition, w->e, &span);
    partition_set_uniform(partition, w->e, &span);
    partition_set_varying(partition, w->e, &span);
    return w->scan->n_chunks > 1 ? partition_number(partition, w->e, &span) : KIR_NONE;
}

/* Begins a phase with `pieces` groups per row, or per group of rows.  Returns the number of each
 * lane's row if rows are split. */
static uint32_t begin_phase(struct scan_emitter *w, uint32_t phase, int64_t pieces)
{
    struct scan *scan = w->scan;
    int64_t groups = is_group(w) ? scan->outer.count : scan->partition.groups;
    uint32_t grid[3] = {(uint32_t)groups, (uint32_t)pieces, 1}, rows;

    kir_phase(w->m, scan->lanes);
    expr_phase(w->e);
    if (is_group(w))
        delinearize_phase(&scan->outer, w->e);
    else
        partition_phase(&scan->partition, w->e);
    delinearize_phase(&scan->inner, w->e);
    w->lane = sched_wide(w->e->s, kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    rows = set_rows(w, group_index(w, 0));
    expr_mask(w->e, w->mask);
    expr_hoist(w->e);
    memcpy(w->e->s->numbers->grid[phase], grid, sizeof(grid));
    return rows;
}

/* The region of a whole row. */
static struct scan_region row_region(const struct scan_emitter *w)
{
    int64_t n = w->scan->n_row, step = step_of(w), full = n / step * step;
    struct scan_region region = {.begin = kir_index(w->m, 0),
                                 .rounds = full > 0,
                                 .blocks = state_type(w) == KIR_F32 && full / step > SUM_BLOCK_SCAN,
                                 .tail = full < n};

    region.full_end = full ? sched_add_index(w->e->s, full) : region.begin;
    region.end = region.tail ? sched_add_index(w->e->s, n) : region.full_end;
    return region;
}

/* The end of the chunk at `begin` of a row that ends at `end`, computed without overflow. */
static uint32_t chunk_end(const struct scan_emitter *w, uint32_t begin, int64_t end)
{
    uint32_t left = kir_binary(w->m, KIR_sub, sched_add_index(w->e->s, end), begin);

    return kir_binary(w->m, KIR_add, begin,
                      kir_binary(w->m, KIR_smin, left, kir_index(w->m, w->scan->chunk_size)));
}

/* The region of chunk number `chunk`. */
static struct scan_region chunk_region(const struct scan_emitter *w, uint32_t chunk)
{
    const struct scan *scan = w->scan;
    int64_t step = step_of(w), full = scan->n_row / step * step;
    struct scan_region region = {.rounds = true,
                                 .blocks = state_type(w) == KIR_F32 &&
                                           scan->chunk_size / step > SUM_BLOCK_SCAN,
                                 .tail = full < scan->n_row};

    region.begin = kir_binary(w->m, KIR_mul, chunk, kir_index(w->m, scan->chunk_size));
    region.full_end = chunk_end(w, region.begin, full);
    region.end = chunk_end(w, region.begin, scan->n_row);
    return region;
}

static void emit_one_phase(struct scan_emitter *w)
{
    struct scan_region region;

    begin_phase(w, 0, 1);
    region = row_region(w);
    emit_region(w, &region);
}

/* ---- split rows ---- */

/* The position of a chunk's total in the workspace. */
static uint32_t total_position(const struct scan_emitter *w, uint32_t chunk, uint32_t rows)
{
    uint32_t at = kir_binary(w->m, KIR_mul, chunk, sched_add_index(w->e->s, w->scan->outer.count));

    return kir_binary(w->m, KIR_add, at, rows);
}

/* Opens a loop that folds each lane's elements into `carried`. */
static uint32_t open_fold(struct scan_emitter *w, uint32_t begin, uint32_t end, int64_t step)
{
    uint32_t counter = kir_for(w->m, begin, end, (uint32_t)step);

    w->carried = kir_phi(w->m, w->carried);
    return counter;
}

static void close_fold(const struct scan_emitter *w, uint32_t value)
{
    uint32_t next = combine(w, w->carried, value);

    kir_next(w->m, &next, 1);
}

/* The total of a full chunk, in blocks as in emit_blocks. */
static uint32_t emit_total(struct scan_emitter *w, uint32_t begin)
{
    int64_t chunk = w->scan->chunk_size, step = step_of(w);
    int64_t span = chunk < step * SUM_BLOCK_SCAN ? chunk : step * SUM_BLOCK_SCAN;
    uint32_t block, total, element, mark, next;

    next = kir_binary(w->m, KIR_add, begin, kir_index(w->m, chunk));
    w->carried = identity(w);
    block = kir_for(w->m, begin, next, (uint32_t)span);
    total = kir_phi(w->m, w->carried);
    w->carried = identity(w);
    element = open_fold(w, block, kir_binary(w->m, KIR_add, block, kir_index(w->m, span)), step);
    mark = expr_mark(w->e);
    close_fold(w,
               load_element(w, is_group(w) ? kir_binary(w->m, KIR_add, element, w->lane) : element,
                            KIR_NONE));
    expr_release(w->e, mark);
    next = combine(w, total, w->carried);
    kir_next(w->m, &next, 1);
    return is_group(w) ? fold_lanes(w, total) : total;
}

/* Stores the totals of all chunks but the last, whose total is not needed. */
static void emit_totals(struct scan_emitter *w)
{
    uint32_t rows = begin_phase(w, 0, w->scan->n_chunks - 1), chunk = group_index(w, 1);
    uint32_t total =
        emit_total(w, kir_binary(w->m, KIR_mul, chunk, kir_index(w->m, w->scan->chunk_size)));
    uint32_t mask = w->mask;

    if (is_group(w))
        mask = kir_binary(w->m, KIR_eq, w->lane, kir_index(w->m, 0));
    kir_emit_imm(w->m, mask == KIR_NONE ? KIR_store : KIR_store_if, w->workspace,
                 total_position(w, chunk, rows), total, mask);
}

/* The fold of the totals of the chunks before `chunk`. */
static uint32_t emit_prefix(struct scan_emitter *w, uint32_t chunk, uint32_t rows)
{
    uint32_t at, mask = w->mask, value;

    w->carried = identity(w);
    at = open_fold(w, kir_index(w->m, 0), chunk, step_of(w));
    if (is_group(w)) {
        at = kir_binary(w->m, KIR_add, at, w->lane);
        mask = kir_binary(w->m, KIR_lt, at, chunk);
    }
    value =
        kir_emit_as(w->m, mask == KIR_NONE ? KIR_load : KIR_load_if, state_type(w), w->workspace,
                    total_position(w, at, rows), mask, mask == KIR_NONE ? KIR_NONE : identity(w));
    close_fold(w, value);
    return is_group(w) ? fold_lanes(w, w->carried) : w->carried;
}

static void emit_split(struct scan_emitter *w)
{
    static const uint32_t dtypes[KIR_TYPES] = {[KIR_B] = FRIT_BOOL,
                                               [KIR_I32] = FRIT_I32,
                                               [KIR_I64] = FRIT_I64,
                                               [KIR_F32] = FRIT_F32,
                                               [KIR_F64] = FRIT_F64};
    const struct scan *scan = w->scan;
    uint32_t dtype = dtypes[state_type(w)], rows, chunk;
    struct scan_region region;

    w->workspace = kir_arg(w->m, dtype, KIR_READ | KIR_WRITE);
    w->e->s->numbers->workspace_bytes =
        frit_storage_bytes(dtype, (scan->n_chunks - 1) * scan->outer.count);
    emit_totals(w);
    rows = begin_phase(w, 1, scan->n_chunks);
    chunk = group_index(w, 1);
    region = chunk_region(w, chunk);
    w->base = emit_prefix(w, chunk, rows);
    emit_region(w, &region);
}

void scan_emit(struct scan *scan)
{
    struct scan_emitter emitter = {
        .scan = scan, .e = &scan->e, .m = scan->e.s->module, .base = KIR_NONE};

    if (scan->n_chunks > 1)
        emit_split(&emitter);
    else
        emit_one_phase(&emitter);
}
