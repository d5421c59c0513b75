/* SPDX-License-Identifier: Apache-2.0 */
/* Kahn's algorithm over chunks, with a heap of those that are ready. */
#include "search/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"

struct sorting {
    const struct search_ctx *ctx;
    struct arena arena;
    struct plan_block *items;
    uint32_t count, first, end;
    uint32_t *chunk_of; /* per op from `first` on */
    uint32_t *maker;    /* per value: 1 + op of the range that makes it */
    uint32_t *killer;   /* per value: 1 + op of the range in which it dies */
    uint32_t *key;      /* per chunk: its earliest op */
    uint32_t *waits;    /* per chunk: edges into it */
    uint32_t *edge_at;  /* per chunk: where its edges begin; count + 1 */
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
        !array_grow(&chunks->items, &chunks->room, chunks->count, 1, sizeof(*chunks->items)))
        return fail_memory(err, chunk->n_ops * sizeof(*ops));
    memcpy(ops, chunk->ops, chunk->n_ops * sizeof(*ops));
    chunks->items[chunks->count] = *chunk;
    chunks->items[chunks->count++].ops = ops;
    return FRIT_OK;
}

/* ---- edges ---- */

static void survey(struct sorting *s)
{
    for (uint32_t i = s->first; i < s->end; i++) {
        const frit_op_desc *op = &s->ctx->ops.ops[i];

        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                s->maker[op->out[k].value] = i + 1;
        }
        for (uint32_t k = 0; k < op->n_dead; k++)
            s->killer[op->dead[k]] = i + 1;
    }
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

/* Counts an edge while `edges` is NULL, else stores it. */
static void add_edge(struct sorting *s, uint32_t from_op, uint32_t to_op)
{
    uint32_t from = s->chunk_of[from_op - s->first], to = s->chunk_of[to_op - s->first];

    if (from == to)
        return;
    if (!s->edges) {
        s->edge_at[from + 1]++;
        s->waits[to]++;
    } else {
        s->edges[s->edge_at[from]++] = to;
    }
}

static void walk_edges(struct sorting *s)
{
    uint32_t ordered = 0;

    for (uint32_t i = s->first; i < s->end; i++) {
        const frit_op_desc *op = &s->ctx->ops.ops[i];
        const frit_op_info *row = op_row(op->id);

        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t value = op->in[k].value;

            if (op->in[k].kind != FRIT_OPERAND_TENSOR)
                continue;
            if (s->maker[value])
                add_edge(s, s->maker[value] - 1, i);
            if (s->killer[value])
                add_edge(s, i, s->killer[value] - 1);
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

    walk_edges(s);
    for (uint32_t c = 0; c < s->count; c++)
        s->edge_at[c + 1] += s->edge_at[c];
    n = s->edge_at[s->count];
    edges = arena_array(&s->arena, (size_t)n + 1, sizeof(*edges));
    if (!edges)
        return fail_memory(err, n * sizeof(*edges));
    s->edges = edges;
    walk_edges(s);
    /* Storing moved each start to its end, which is the next one's start. */
    memmove(s->edge_at + 1, s->edge_at, s->count * sizeof(*s->edge_at));
    s->edge_at[0] = 0;
    return FRIT_OK;
}

/* ---- sorting ---- */

static bool is_before(const struct sorting *s, uint32_t a, uint32_t b)
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
    for (; at && is_before(s, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(s, at, (at - 1) / 2);
}

static uint32_t heap_pop(struct sorting *s)
{
    uint32_t chunk = s->heap[0], at = 0;

    s->heap[0] = s->heap[--s->n_heap];
    for (;;) {
        uint32_t least = at, left = 2 * at + 1;

        if (left < s->n_heap && is_before(s, left, least))
            least = left;
        if (left + 1 < s->n_heap && is_before(s, left + 1, least))
            least = left + 1;
        if (least == at)
            return chunk;
        swap(s, at, least);
        at = least;
    }
}

static void run_ready(struct sorting *s)
{
    for (uint32_t c = 0; c < s->count; c++) {
        if (!s->waits[c])
            heap_push(s, c);
    }
    while (s->n_heap) {
        uint32_t c = heap_pop(s);

        s->sorted[s->n_sorted++] = s->items[c];
        for (uint32_t e = s->edge_at[c]; e < s->edge_at[c + 1]; e++) {
            if (!--s->waits[s->edges[e]])
                heap_push(s, s->edges[e]);
        }
    }
}

static frit_status sort(struct sorting *s, frit_err *err)
{
    size_t n_values = (size_t)s->ctx->ops.n_values + 1, n = (size_t)s->count + 2;

    s->chunk_of = arena_array(&s->arena, s->end - s->first, sizeof(*s->chunk_of));
    s->maker = arena_array(&s->arena, n_values, sizeof(*s->maker));
    s->killer = arena_array(&s->arena, n_values, sizeof(*s->killer));
    s->key = arena_array(&s->arena, n, sizeof(*s->key));
    s->waits = arena_array(&s->arena, n, sizeof(*s->waits));
    s->edge_at = arena_array(&s->arena, n, sizeof(*s->edge_at));
    s->heap = arena_array(&s->arena, n, sizeof(*s->heap));
    s->sorted = arena_array(&s->arena, n, sizeof(*s->sorted));
    if (!s->chunk_of || !s->maker || !s->killer || !s->key || !s->waits || !s->edge_at ||
        !s->heap || !s->sorted)
        return fail_memory(err, n_values * sizeof(*s->maker));
    survey(s);
    TRY(make_edges(s, err));
    run_ready(s);
    return FRIT_OK;
}

/* ---- cycles ---- */

/* Of the programs that wait the one that saves least, the last of several. */
static uint32_t least_worth(const struct sorting *s)
{
    uint32_t least = s->count;

    for (uint32_t c = 0; c < s->count; c++) {
        if (s->waits[c] && s->items[c].program &&
            (least == s->count || s->items[c].score < s->items[least].score ||
             (s->items[c].score == s->items[least].score && s->key[c] > s->key[least])))
            least = c;
    }
    return least;
}

static frit_status split(struct search_ctx *ctx, struct chunks *chunks, uint32_t number,
                         frit_err *err)
{
    struct plan_block whole = chunks->items[number];

    plan_program_unref(whole.program);
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

frit_status order_chunks(struct search_ctx *ctx, struct chunks *chunks, uint32_t begin,
                         uint32_t first, uint32_t end, frit_err *err)
{
    bool done = false;

    while (!done) {
        struct sorting s = {.ctx = ctx,
                            .items = chunks->items + begin,
                            .count = chunks->count - begin,
                            .first = first,
                            .end = end};
        frit_status st = sort(&s, err);
        uint32_t victim = s.count;

        done = st || s.n_sorted == s.count;
        if (!st && done)
            memcpy(s.items, s.sorted, s.count * sizeof(*s.items));
        else if (!st)
            victim = least_worth(&s);
        if (victim < s.count) {
            ctx->stats.repairs++;
            st = split(ctx, chunks, begin + victim, err);
        } else if (!done) {
            st = fail(err, FRIT_INTERNAL, "the ops wait for each other");
        }
        arena_fini(&s.arena);
        TRY(st);
    }
    return FRIT_OK;
}
