/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a launch and the memory of their operands, copied. */
#include "run/trial.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"
#include "base/str.h"
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "record/context.h"
#include "run/bind_args.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/trial_run.h"
#include "tune/sample.h"

enum {
    PAGE = 4096,         /* operands lie at the same place in one as the launch's */
    SAME_SLACK = 1 << 16 /* more than twice what an operand has of its buffer: not the whole */
};

/* ---- the ops ---- */

static frit_status map_operand(struct launch_trial *t, const struct launch *l, uint32_t from,
                               uint32_t *map, frit_err *err)
{
    if (map[from] != GRAPH_NO_VALUE)
        return FRIT_OK;
    return graph_add_value(&t->graph, GRAPH_INPUT, &l->frame->graph->values[from].type, &map[from],
                           err);
}

static frit_status copy_op(struct launch_trial *t, const struct launch *l, uint32_t number,
                           uint32_t *map, frit_err *err)
{
    const struct graph *graph = l->frame->graph;
    struct graph_op op = graph->ops[number];
    struct graph_operand *in = arena_array(&t->arena, op.n_in + 1u, sizeof(*in));

    if (!in)
        return fail_memory(err, op.n_in * sizeof(*in));
    for (uint32_t i = 0; i < op.n_in; i++) {
        in[i] = op.in[i];
        if (in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        TRY(map_operand(t, l, op.in[i].value, map, err));
        in[i].value = map[op.in[i].value];
    }
    op.in = in;
    for (uint32_t k = 0; k < op.n_out; k++) {
        if (op.out[k] == GRAPH_NO_VALUE)
            continue;
        TRY(graph_add_value(&t->graph, GRAPH_RESULT, &graph->values[op.out[k]].type,
                            &map[op.out[k]], err));
        op.out[k] = map[op.out[k]];
    }
    return graph_add_op(&t->graph, &op, err);
}

static uint32_t *map_list(struct launch_trial *t, const uint32_t *list, uint32_t n,
                          const uint32_t *map)
{
    uint32_t *out = arena_array(&t->arena, n + 1u, sizeof(*out));

    for (uint32_t i = 0; out && i < n; i++)
        out[i] = list[i] == GRAPH_NO_VALUE ? GRAPH_NO_VALUE : map[list[i]];
    return out;
}

static frit_status copy_ops(struct launch_trial *t, const struct launch *l, frit_err *err)
{
    const struct launch_call *call = l->call;
    const uint32_t n_values = l->frame->graph->n_values;
    uint32_t *map = arena_array(&t->arena, n_values + 1u, sizeof(*map));

    t->extra = arena_array(&t->arena, call->n_ops, sizeof(*t->extra));
    t->numbers = arena_array(&t->arena, call->n_ops, sizeof(*t->numbers));
    if (!map || !t->extra || !t->numbers)
        return fail_memory(err, n_values * sizeof(*map));
    memset(map, 0xff, n_values * sizeof(*map));
    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in[i] != GRAPH_NO_VALUE)
            TRY(map_operand(t, l, call->in[i], map, err));
    for (uint32_t i = 0; i < call->n_ops; i++) {
        TRY(copy_op(t, l, call->ops[i], map, err));
        t->extra[i] = l->frame->ops[call->ops[i]];
        t->extra[i].context &= ~(uint32_t)CONTEXT_PERSISTENT;
        t->numbers[i] = i;
    }
    t->in = map_list(t, call->in, call->n_in, map);
    t->out = map_list(t, call->out, call->n_out, map);
    t->given = arena_array(&t->arena, t->graph.n_values + 1u, sizeof(*t->given));
    t->values = arena_array(&t->arena, t->graph.n_values + 1u, sizeof(*t->values));
    t->at_once = arena_array(&t->arena, t->graph.n_values + 1u, sizeof(*t->at_once));
    t->of_ops = arena_array(&t->arena, call->n_out + 1u, sizeof(*t->of_ops));
    t->of_first = arena_array(&t->arena, call->n_out + 1u, sizeof(*t->of_first));
    if (!t->in || !t->out || !t->given || !t->values || !t->at_once || !t->of_ops || !t->of_first)
        return fail_memory(err, t->graph.n_values * sizeof(*t->values));
    return FRIT_OK;
}

/* ---- where the operands lie ---- */

static struct memory_pair *pair_of(struct launch_trial *t, const struct value *value)
{
    const struct extent extent = launch_extent(value);
    struct memory_pair *pair = t->memories;

    while (pair < t->memories + t->n_memories && pair->of != value->buffer)
        pair++;
    if (pair == t->memories + t->n_memories) {
        t->n_memories++;
        *pair = (struct memory_pair){.of = value->buffer,
                                     .low = extent.first,
                                     .high = extent.first + extent.bytes,
                                     .dtype = value->type.dtype};
    }
    if (extent.first < pair->low)
        pair->low = extent.first;
    if (extent.first + extent.bytes > pair->high)
        pair->high = extent.first + extent.bytes;
    return pair;
}

/* The whole buffer, or where that is much more than the operands what is around them. */
static void place_memory(struct memory_pair *pair)
{
    if (pair->of->bytes <= 2 * (pair->high - pair->low) + SAME_SLACK) {
        pair->bytes = pair->of->bytes;
        return;
    }
    pair->skipped = pair->low / PAGE * PAGE;
    pair->bytes = pair->high - pair->skipped;
}

static uint64_t bytes_of_results(const struct launch_trial *t)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < t->graph.n_values; v++)
        if (t->graph.values[v].kind == GRAPH_RESULT)
            bytes += frit_storage_bytes(t->graph.values[v].type.dtype,
                                        op_elements(&t->graph.values[v].type));
    return bytes;
}

/* How many elements lie in this many bytes. */
static int64_t elements_in(uint32_t dtype, uint64_t bytes)
{
    const uint64_t eight = frit_storage_bytes(dtype, 8);

    return eight ? (int64_t)(bytes * 8 / eight) : 0;
}

/* Whole pages hold whole numbers of elements. */
static void place_operand(const struct memory_pair *pair, struct value *value)
{
    value->buffer = NULL;
    value->layout.offset -= elements_in(value->type.dtype, pair->skipped);
}

static frit_status place_operands(struct launch_trial *t, const struct launch *l, frit_err *err)
{
    const struct launch_call *call = l->call;
    uint64_t bytes = bytes_of_results(t);

    t->memories = arena_array(&t->arena, call->n_in + 1u, sizeof(*t->memories));
    if (!t->memories)
        return fail_memory(err, call->n_in * sizeof(*t->memories));
    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in[i] != GRAPH_NO_VALUE)
            (void)pair_of(t, &l->frame->values[call->in[i]].value);
    for (uint32_t m = 0; m < t->n_memories; m++) {
        place_memory(&t->memories[m]);
        bytes += t->memories[m].bytes;
    }
    if (bytes > TRIAL_BYTES)
        return fail(err, FRIT_UNSUPPORTED, "a trial of %s would need %llu MiB", t->label,
                    (unsigned long long)(bytes >> 20));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in[i] == GRAPH_NO_VALUE)
            continue;
        t->given[t->in[i]] = l->frame->values[call->in[i]].value;
        place_operand(pair_of(t, &l->frame->values[call->in[i]].value), &t->given[t->in[i]]);
    }
    return FRIT_OK;
}

/* ---- elements ---- */

/* Integers may be positions in any dim. */
static uint64_t least_extent(const struct graph *graph)
{
    uint64_t least = TRIAL_BELOW;

    for (uint32_t v = 0; v < graph->n_values; v++)
        for (uint32_t d = 0; d < graph->values[v].type.rank; d++)
            if ((uint64_t)graph->values[v].type.dims[d] < least)
                least = (uint64_t)graph->values[v].type.dims[d];
    return least ? least : 1;
}

static frit_status make_memory(struct launch_trial *t, struct memory_pair *pair, uint64_t *random,
                               frit_err *err)
{
    pair->data = arena_alloc(&t->arena, pair->bytes + sizeof(uint64_t));
    if (!pair->data)
        return fail_memory(err, pair->bytes);
    sample_fill(pair->data, pair->dtype, elements_in(pair->dtype, pair->bytes),
                least_extent(&t->graph), random);
    return buffer_create(t->device->memory, pair->bytes, false, &pair->own, err);
}

static frit_status make_memories(struct launch_trial *t, const struct launch *l, frit_err *err)
{
    uint64_t random = TRIAL_RANDOM;

    for (uint32_t m = 0; m < t->n_memories; m++)
        TRY(make_memory(t, &t->memories[m], &random, err));
    for (uint32_t i = 0; i < l->call->n_in; i++)
        if (l->call->in[i] != GRAPH_NO_VALUE)
            t->given[t->in[i]].buffer = pair_of(t, &l->frame->values[l->call->in[i]].value)->own;
    return FRIT_OK;
}

/* ---- life ---- */

static bool has_effects(const struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_ops; i++)
        if (op_row(l->frame->graph->ops[l->call->ops[i]].op)->traits & FRIT_OP_ORDERED)
            return true;
    return false;
}

/* The trial may outlast the launch. */
static frit_status copy_call(struct launch_trial *t, const struct launch_call *call, frit_err *err)
{
    int64_t *strides = NULL;

    t->label = arena_text(&t->arena, call->label, strlen(call->label));
    if (call->strides)
        strides = arena_array(&t->arena, FRIT_MAX_RANK, sizeof(*strides));
    if (!t->label || (call->strides && !strides))
        return fail_memory(err, FRIT_MAX_RANK * sizeof(*strides));
    if (strides)
        memcpy(strides, call->strides,
               call->frame->graph->values[call->out[0]].type.rank * sizeof(*strides));
    t->strides = strides;
    return FRIT_OK;
}

static frit_status init(struct launch_trial *t, const struct launch *l, frit_err *err)
{
    TRY(copy_call(t, l->call, err));
    TRY(copy_ops(t, l, err));
    TRY(place_operands(t, l, err));
    TRY(make_memories(t, l, err));
    return run_scratch_create(&t->scratch, err);
}

frit_status trial_create(const struct launch *l, struct launch_trial **out, frit_err *err)
{
    struct launch_trial *t;
    frit_status st;

    *out = NULL;
    if (l->copy_of || has_effects(l))
        return fail(err, FRIT_UNSUPPORTED, "%s cannot be repeated", l->call->label);
    t = calloc(1, sizeof(*t));
    if (!t)
        return fail_memory(err, sizeof(*t));
    t->device = l->frame->device;
    t->program = program_ref(l->call->program);
    t->cache = l->call->cache;
    t->block = l->call->block;
    t->n_in = l->call->n_in;
    t->n_out = l->call->n_out;
    st = init(t, l, err);
    if (st)
        trial_destroy(t);
    else
        *out = t;
    return st;
}

void trial_destroy(struct launch_trial *trial)
{
    if (!trial)
        return;
    trial_destroy(trial->decomposed);
    run_scratch_destroy(trial->scratch);
    for (uint32_t m = 0; m < trial->n_memories; m++) {
        buffer_disown(trial->memories[m].own);
        for (uint32_t i = 0; trial->memories[m].copies && i + 1 < trial->n_sets; i++)
            buffer_disown(trial->memories[m].copies[i]);
    }
    program_unref(trial->program);
    graph_fini(&trial->graph);
    arena_fini(&trial->arena);
    free(trial);
}

/* ---- identity ---- */

static frit_status digest(struct launch_trial *t, uint8_t out[TUNE_DIGEST], frit_err *err)
{
    struct relative relative = {0};
    struct str bytes = {0};
    frit_status st = FRIT_OK;
    XXH128_canonical_t hash;

    for (uint32_t i = 0; i < t->graph.n_ops && !st; i++)
        st = relative_append(&relative, &t->graph, i, NULL, 0, err);
    if (!st) {
        relative_write(&relative, 0, t->graph.n_ops, &bytes);
        str_add(&bytes, (const char *)t->in, t->n_in * sizeof(*t->in));
        str_add(&bytes, (const char *)t->out, t->n_out * sizeof(*t->out));
        st = bytes.failed ? fail_memory(err, bytes.length) : FRIT_OK;
    }
    if (!st) {
        XXH128_canonicalFromHash(&hash, XXH3_128bits(bytes.text, bytes.length));
        memcpy(out, hash.digest, TUNE_DIGEST);
    }
    str_fini(&bytes);
    relative_fini(&relative);
    return st;
}

frit_status trial_digest(const struct launch *l, uint8_t out[TUNE_DIGEST], frit_err *err)
{
    struct launch_trial t = {.n_in = l->call->n_in, .n_out = l->call->n_out};
    frit_status st = copy_ops(&t, l, err);

    if (!st)
        st = digest(&t, out, err);
    graph_fini(&t.graph);
    arena_fini(&t.arena);
    return st;
}
