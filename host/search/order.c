/* SPDX-License-Identifier: Apache-2.0 */
/* Kahn's algorithm over chunks, with a heap of ready chunks. */
#include "search/order.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"
#include "graph/op.h"
#include "plan/program.h"

struct sorting {
    struct search_ctx *ctx;
    struct arena arena;
    struct plan_block *items;
    uint32_t count, first, end;
    uint32_t *chunk_of;  /* per op from `first` on: its chunk */
    uint32_t *key;       /* per chunk: its earliest op */
    uint32_t *n_waiting; /* per chunk: number of incoming edges of unsorted chunks */
    uint32_t *edge_at;   /* per chunk: index of its first outgoing edge; count + 1 elements */
    uint32_t *edges;
    uint32_t *heap;
    uint32_t n_heap;
    struct plan_block *sorted;
    uint32_t n_sorted;
};

frit_status chunks_add(struct search_ctx *ctx, struct chunks *chunks,
                       const struct plan_block *chunk, frit_err *err)
{
    uint32_t *ops = arena_array(&ctx->arena, chunk->n_ops, sizeof(*ops));

    if (!ops ||
        !array_grow(&chunks->items, &chunks->capacity, chunks->count, 1, sizeof(*chunks->items)))
        return fail_memory(err, chunk->n_ops * sizeof(*ops));
    memcpy(ops, chunk->ops, chunk->n_ops * sizeof(*ops));
    chunks->items[chunks->count] = *chunk;
    chunks->items[chunks->count++].ops = ops;
    return FRIT_OK;
}

/* ---- edges ---- */

/* Records which ops of the range make and end each value. */
static void record_values(const struct sorting *s)
{
    for (uint32_t i = s->first; i < s->end; i++) {
        const frit_op_desc *op = &s->ctx->ops.ops[i];

        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                s->ctx->values[op->out[k].value].from = i + 1;
        }
        for (uint32_t k = 0; k < op->n_dead; k++)
            s->ctx->values[op->dead[k]].to = i + 1;
    }
}

static void clear_values(const struct sorting *s)
{
    for (uint32_t i = s->first; i < s->end; i++) {
        const frit_op_desc *op = &s->ctx->ops.ops[i];

        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                s->ctx->values[op->out[k].value].from = 0;
        }
        for (uint32_t k = 0; k < op->n_dead; k++)
            s->ctx->values[op->dead[k]].to = 0;
    }
}

static void index_ops(struct sorting *s)
{
    for (uint32_t c = 0; c < s->count; c++) {
        const struct plan_block *block = &s->items[c];

        s->key[c] = block->ops[0];
        for (uint32_t i = 0; i < block->n_ops; i++) {
            s->chunk_of[block->ops[i] - s->first] = c;
            if (block->ops[i] < s->key[c])
                s->key[c] = block->ops[i];
        }
    }
}

/* Counts an edge while `edges` is NULL; later stores it. */
static void add_edge(struct sorting *s, uint32_t from_op, uint32_t to_op)
{
    uint32_t from = s->chunk_of[from_op - s->first], to = s->chunk_of[to_op - s->first];

    if (from == to)
        return;
    if (!s->edges) {
        s->edge_at[from + 1]++;
        s->n_waiting[to]++;
    } else {
        s->edges[s->edge_at[from]++] = to;
    }
}

static void visit_edges(struct sorting *s)
{
    uint32_t ordered = 0;

    for (uint32_t i = s->first; i < s->end; i++) {
        const frit_op_desc *op = &s->ctx->ops.ops[i];
        const frit_op_info *row = op_row(op->id);

        for (uint32_t k = 0; k < op->n_in; k++) {
            const struct search_value *value = &s->ctx->values[op->in[k].value];

            if (op->in[k].kind != FRIT_OPERAND_TENSOR)
                continue;
            if (value->from)
                add_edge(s, value->from - 1, i);
            if (value->to)
                add_edge(s, i, value->to - 1);
        }
        if (!row || !(row->traits & FRIT_OP_ORDERED))
            continue;
        if (ordered)
            add_edge(s, ordered - 1, i);
        ordered = i + 1;
    }
}

static frit_status make_edges(struct sorting *s, frit_err *err)
{
    uint32_t *edges, n;

    visit_edges(s);
    for (uint32_t c = 0; c < s->count; c++)
        s->edge_at[c + 1] += s->edge_at[c];
    n = s->edge_at[s->count];
    edges = arena_array(&s->arena, (size_t)n + 1, sizeof(*edges));
    if (!edges)
        return fail_memory(err, n * sizeof(*edges));
    s->edges = edges;
    visit_edges(s);
    /* Storing advanced each start to its end, which is the next one's start. */
    memmove(s->edge_at + 1, s->edge_at, s->count * sizeof(*s->edge_at));
    s->edge_at[0] = 0;
    return FRIT_OK;
}

/* ---- sorting ---- */

static bool heap_less(const struct sorting *s, uint32_t a, uint32_t b)
{
    return s->key[s->heap[a]] < s->key[s->heap[b]];
}

static void swap(struct sorting *s, uint32_t a, uint32_t b)
{
    uint32_t chunk = s->heap[a];

    s->heap[a] = s->heap[b];
    s->heap[b] = chunk;
}

static void heap_push(struct sorting *s, uint32_t chunk)
{
    uint32_t at = s->n_heap++;

    s->heap[at] = chunk;
    for (; at && heap_less(s, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(s, at, (at - 1) / 2);
}

static uint32_t heap_pop(struct sorting *s)
{
    uint32_t chunk = s->heap[0], at = 0;

    s->heap[0] = s->heap[--s->n_heap];
    for (;;) {
        uint32_t lowest = at, left = 2 * at + 1;

        if (left < s->n_heap && heap_less(s, left, lowest))
            lowest = left;
        if (left + 1 < s->n_heap && heap_less(s, left + 1, lowest))
            lowest = left + 1;
        if (lowest == at)
            return chunk;
        swap(s, at, lowest);
        at = lowest;
    }
}

static void run_ready(struct sorting *s)
{
    for (uint32_t c = 0; c < s->count; c++) {
        if (!s->n_waiting[c])
            heap_push(s, c);
    }
    while (s->n_heap) {
        uint32_t c = heap_pop(s);

        s->sorted[s->n_sorted++] = s->items[c];
        for (uint32_t e = s->edge_at[c]; e < s->edge_at[c + 1]; e++) {
            if (!--s->n_waiting[s->edges[e]])
                heap_push(s, s->edges[e]);
        }
    }
}

static frit_status sort(struct sorting *s, frit_err *err)
{
    size_t n = (size_t)s->count + 2;
    frit_status st;

    s->chunk_of = arena_array(&s->arena, s->end - s->first, sizeof(*s->chunk_of));
    s->key = arena_array(&s->arena, n, sizeof(*s->key));
    s->n_waiting = arena_array(&s->arena, n, sizeof(*s->n_waiting));
    s->edge_at = arena_array(&s->arena, n, sizeof(*s->edge_at));
    s->heap = arena_array(&s->arena, n, sizeof(*s->heap));
    s->sorted = arena_array(&s->arena, n, sizeof(*s->sorted));
    if (!s->chunk_of || !s->key || !s->n_waiting || !s->edge_at || !s->heap || !s->sorted)
        return fail_memory(err, n * sizeof(*s->key));
    index_ops(s);
    record_values(s);
    st = make_edges(s, err);
    clear_values(s);
    if (!st)
        run_ready(s);
    return st;
}

/* ---- cycles ---- */

static bool has_waiting_successor(const struct sorting *s, uint32_t chunk)
{
    for (uint32_t e = s->edge_at[chunk]; e < s->edge_at[chunk + 1]; e++) {
        if (s->n_waiting[s->edges[e]])
            return true;
    }
    return false;
}

/* Leaves `n_waiting` to chunks that are part of a cycle or lie between two: what only comes after
 * cycles is not at fault.  Chunks are nearly sorted, so that going backwards few rounds are needed.
 */
static void keep_cycles(struct sorting *s)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t c = s->count; c-- > 0;) {
            if (!s->n_waiting[c] || has_waiting_successor(s, c))
                continue;
            s->n_waiting[c] = 0;
            changed = true;
        }
    }
}

/* Of the programs in cycles the one with the lowest score; of several the last. */
static uint32_t lowest_score(const struct sorting *s)
{
    uint32_t lowest = s->count;

    for (uint32_t c = 0; c < s->count; c++) {
        if (s->n_waiting[c] && s->items[c].program &&
            (lowest == s->count || s->items[c].score < s->items[lowest].score ||
             (s->items[c].score == s->items[lowest].score && s->key[c] > s->key[lowest])))
            lowest = c;
    }
    return lowest;
}

static frit_status split(struct search_ctx *ctx, struct chunks *chunks, uint32_t number,
                         frit_err *err)
{
    struct plan_block whole = chunks->items[number];

    program_unref(whole.program);
    chunks->items[number].program = NULL;
    for (uint32_t i = 0; i < whole.n_ops; i++) {
        struct plan_block one = {.n_ops = 1, .ops = whole.ops + i, .end = PLAN_END_SINGLE};

        if (i)
            TRY(chunks_add(ctx, chunks, &one, err));
        else
            chunks->items[number] = one;
    }
    return FRIT_OK;
}

/* Splits the program in cycles with the lowest score, or with `all` every program in cycles. */
static frit_status repair(struct search_ctx *ctx, struct chunks *chunks, uint32_t begin,
                          struct sorting *s, bool all, frit_err *err)
{
    uint32_t lowest;

    keep_cycles(s);
    lowest = lowest_score(s);
    if (lowest == s->count)
        return fail(err, FRIT_INTERNAL, "cyclic dependencies between ops");
    for (uint32_t c = 0; c < s->count; c++) {
        if (c != lowest && !(all && s->n_waiting[c] && chunks->items[begin + c].program))
            continue;
        ctx->stats.repairs++;
        TRY(split(ctx, chunks, begin + c, err));
    }
    return FRIT_OK;
}

frit_status order_items(struct search_ctx *ctx, struct plan_block *items, uint32_t count,
                        uint32_t first, uint32_t end, bool *is_sorted, frit_err *err)
{
    struct sorting s = {.ctx = ctx, .items = items, .count = count, .first = first, .end = end};
    frit_status st = sort(&s, err);

    *is_sorted = !st && s.n_sorted == count;
    if (*is_sorted)
        memcpy(items, s.sorted, count * sizeof(*items));
    arena_fini(&s.arena);
    return st;
}

frit_status order_chunks(struct search_ctx *ctx, struct chunks *chunks, uint32_t begin,
                         uint32_t first, uint32_t end, frit_err *err)
{
    enum { ONE_BY_ONE = 16 }; /* repairs that split one program; each sorts again */
    bool done = false;

    for (uint32_t n = 0; !done; n++) {
        struct sorting s = {.ctx = ctx,
                            .items = chunks->items + begin,
                            .count = chunks->count - begin,
                            .first = first,
                            .end = end};
        frit_status st = sort(&s, err);

        done = st || s.n_sorted == s.count;
        if (!st && done)
            memcpy(s.items, s.sorted, s.count * sizeof(*s.items));
        else if (!st)
            st = repair(ctx, chunks, begin, &s, n >= ONE_BY_ONE, err);
        arena_fini(&s.arena);
        TRY(st);
    }
    return FRIT_OK;
}
