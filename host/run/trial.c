/* SPDX-License-Identifier: Apache-2.0 */
/* A trial has a frame of one step: the launch.  The ops one by one are a frame without a plan over
 * the same values. */
#include "run/trial.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/str.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/profile.h"
#include "device/wait.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "run/bind_args.h"
#include "run/frame.h"
#include "run/frame_batch.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/run_frame.h"
#include "run/transfer.h"
#include "tensor/failure.h"
#include "tune/sample.h"

enum {
    MAX_BYTES = 256 << 20, /* of operands and results */
    PAGE = 4096,           /* operands lie at the same place in one as the launch's */
    SAME_SLACK = 1 << 16,  /* more than twice what an operand has of its buffer: not the whole */
    UNTOUCHED = 0xff,      /* NaN in every float type */
    MAX_BELOW = 127        /* integers of every type */
};

/* A buffer in which operands of the launch lie, and the trial's in its place. */
struct memory_pair {
    const struct buffer *of;
    struct buffer *own;
    uint64_t low, high; /* bytes of `of` that operands lie in */
    uint64_t skipped;   /* of those in front, a multiple of PAGE */
    uint64_t bytes;
    uint32_t dtype;
    void *data; /* in the arena */
};

struct trial {
    frit_device *device;
    struct program *program; /* a reference */
    struct prepared_cache *cache;
    const char *label;
    bool block;
    struct arena arena;
    struct graph graph;
    struct run_op *extra;
    uint32_t *numbers; /* of its ops: 0, 1, .. */
    uint32_t *at_once; /* last steps of the frame of one launch: 0 */
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* values of `graph`, GRAPH_NO_VALUE */
    const int64_t *strides;
    struct value *given; /* by value: operands */
    struct run_value *values;
    struct memory_pair *memories;
    uint32_t n_memories;
    bool is_filled;  /* the operands hold their elements */
    void **of_ops;   /* by output: the ops' elements, dense; NULL: not computed */
    void **of_first; /* candidate 0's */
    struct run_scratch *scratch;
};

/* ---- the ops ---- */

static frit_status map_operand(struct trial *t, const struct launch *l, uint32_t from,
                               uint32_t *map, frit_err *err)
{
    if (map[from] != GRAPH_NO_VALUE)
        return FRIT_OK;
    return graph_add_value(&t->graph, GRAPH_INPUT, &l->frame->graph->values[from].type, &map[from],
                           err);
}

static frit_status copy_op(struct trial *t, const struct launch *l, uint32_t number, uint32_t *map,
                           frit_err *err)
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

static uint32_t *map_list(struct trial *t, const uint32_t *list, uint32_t n, const uint32_t *map)
{
    uint32_t *out = arena_array(&t->arena, n + 1u, sizeof(*out));

    for (uint32_t i = 0; out && i < n; i++)
        out[i] = list[i] == GRAPH_NO_VALUE ? GRAPH_NO_VALUE : map[list[i]];
    return out;
}

static frit_status copy_ops(struct trial *t, const struct launch *l, frit_err *err)
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
        t->extra[i].persistent = false;
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

static struct memory_pair *pair_of(struct trial *t, const struct value *value)
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

static uint64_t bytes_of_results(const struct trial *t)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < t->graph.n_values; v++)
        if (t->graph.values[v].kind == GRAPH_RESULT)
            bytes += frit_storage_bytes(t->graph.values[v].type.dtype,
                                        op_elements(&t->graph.values[v].type));
    return bytes;
}

/* Every byte offset in a whole number of pages is a whole number of elements. */
static void place_operand(const struct memory_pair *pair, struct value *value)
{
    const uint32_t bits = frit_dtype_bits(value->type.dtype);

    value->buffer = NULL;
    if (bits)
        value->layout.offset -= (int64_t)(pair->skipped * 8 / bits);
}

static frit_status place_operands(struct trial *t, const struct launch *l, frit_err *err)
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
    if (bytes > MAX_BYTES)
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
    uint64_t least = MAX_BELOW;

    for (uint32_t v = 0; v < graph->n_values; v++)
        for (uint32_t d = 0; d < graph->values[v].type.rank; d++)
            if ((uint64_t)graph->values[v].type.dims[d] < least)
                least = (uint64_t)graph->values[v].type.dims[d];
    return least ? least : 1;
}

static frit_status make_memory(struct trial *t, struct memory_pair *pair, uint64_t *random,
                               frit_err *err)
{
    const uint32_t bits = frit_dtype_bits(pair->dtype);

    pair->data = arena_alloc(&t->arena, pair->bytes + sizeof(uint64_t));
    if (!pair->data)
        return fail_memory(err, pair->bytes);
    if (bits)
        sample_fill(pair->data, pair->dtype, (int64_t)(pair->bytes * 8 / bits),
                    least_extent(&t->graph), random);
    return buffer_create(t->device->memory, pair->bytes, false, &pair->own, err);
}

static frit_status make_memories(struct trial *t, const struct launch *l, frit_err *err)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t m = 0; m < t->n_memories; m++)
        TRY(make_memory(t, &t->memories[m], &random, err));
    for (uint32_t i = 0; i < l->call->n_in; i++)
        if (l->call->in[i] != GRAPH_NO_VALUE)
            t->given[t->in[i]].buffer =
                pair_of(t, &l->frame->values[l->call->in[i]].value)->own;
    return FRIT_OK;
}

static frit_status fill_operands(struct trial *t, frit_err *err)
{
    for (uint32_t m = 0; m < t->n_memories && !t->is_filled; m++)
        if (t->memories[m].own->handle)
            TRY(transfer_fill(t->device, t->memories[m].own, t->memories[m].data, err));
    t->is_filled = true;
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

static frit_status init(struct trial *t, const struct launch *l, frit_err *err)
{
    TRY(copy_ops(t, l, err));
    TRY(place_operands(t, l, err));
    TRY(make_memories(t, l, err));
    return run_scratch_create(&t->scratch, err);
}

frit_status trial_create(const struct launch *l, struct trial **out, frit_err *err)
{
    struct trial *t;
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
    t->label = l->call->label;
    t->block = l->call->block;
    t->n_in = l->call->n_in;
    t->n_out = l->call->n_out;
    t->strides = l->call->strides;
    st = init(t, l, err);
    if (st)
        trial_destroy(t);
    else
        *out = t;
    return st;
}

void trial_destroy(struct trial *trial)
{
    if (!trial)
        return;
    run_scratch_destroy(trial->scratch);
    for (uint32_t m = 0; m < trial->n_memories; m++)
        buffer_disown(trial->memories[m].own);
    program_unref(trial->program);
    graph_fini(&trial->graph);
    arena_fini(&trial->arena);
    free(trial);
}

/* ---- frames ---- */

/* A frame over fresh values.  `last`: operands are not needed afterwards. */
static struct frame begin(struct trial *t, bool last)
{
    for (uint32_t v = 0; v < t->graph.n_values; v++)
        t->values[v] =
            t->graph.values[v].kind == GRAPH_INPUT
                ? (struct run_value){.external = true, .last = last, .value = t->given[v]}
                : (struct run_value){.value.type = t->graph.values[v].type};
    for (uint32_t k = 0; k < t->n_out; k++)
        if (t->out[k] != GRAPH_NO_VALUE)
            t->values[t->out[k]].wanted = true;
    return (struct frame){.device = t->device,
                          .scratch = t->scratch,
                          .graph = &t->graph,
                          .values = t->values,
                          .ops = t->extra,
                          .last_step = t->at_once,
                          .order = t->numbers,
                          .n_steps = 1,
                          .n_values = t->graph.n_values,
                          .stream = DEVICE_NO_STREAM,
                          .is_trial = true};
}

static void drop_results(struct trial *t, struct frame *frame)
{
    for (uint32_t v = 0; v < t->graph.n_values; v++) {
        if (t->values[v].external)
            continue;
        buffer_disown(t->values[v].value.buffer);
        failure_unref(t->values[v].failure);
        t->values[v].value.buffer = NULL;
        t->values[v].failure = NULL;
    }
    for (uint32_t i = 0; i < frame->n_zones; i++)
        buffer_disown(frame->zones[i]);
    frame->n_zones = 0;
    failure_unref(frame->first);
    frame->first = NULL;
}

static frit_status read_value(struct trial *t, const struct value *value, void *to, frit_err *err)
{
    struct transfer_read read;

    buffer_pin(value->buffer);
    return transfer_finish(&read, transfer_start(t->device, value, to, &read, err), err);
}

/* The elements of the frame's results, each in the arena. */
static frit_status read_results(struct trial *t, void **out, frit_err *err)
{
    for (uint32_t k = 0; k < t->n_out; k++) {
        const struct value *value;
        uint64_t bytes;

        if (t->out[k] == GRAPH_NO_VALUE)
            continue;
        value = &t->values[t->out[k]].value;
        bytes = frit_storage_bytes(value->type.dtype, op_elements(&value->type));
        out[k] = arena_alloc(&t->arena, bytes + sizeof(uint64_t));
        if (!out[k])
            return fail_memory(err, bytes);
        TRY(read_value(t, value, out[k], err));
    }
    return FRIT_OK;
}

/* ---- launches ---- */

static frit_status add_launch(struct trial *t, struct frame *frame, uint32_t candidate,
                              frit_err *err)
{
    const struct launch_call call = {.frame = frame,
                                     .program = t->program,
                                     .cache = t->cache,
                                     .label = t->label,
                                     .block = t->block,
                                     .ops = t->numbers,
                                     .n_ops = t->graph.n_ops,
                                     .n_in = t->n_in,
                                     .n_out = t->n_out,
                                     .in = t->in,
                                     .out = t->out,
                                     .strides = t->strides,
                                     .only = &candidate};

    return launch_add(&call, err);
}

static void forget(struct frame *frame)
{
    frame_undo(frame, &(struct frame_mark){0});
    batch_reset(&frame->scratch->batch);
}

/* Why what reached this point failed, a reference; NULL: it did not. */
static struct failure *failure_of(struct trial *t, uint64_t point)
{
    struct lineage *lineage = t->device->lineage;
    struct failure *failure = NULL;

    if (t->device->info->caps & FRIT_CAP_INLINE_QUEUE)
        return lineage_knows(lineage, point) ? lineage_failure_at(lineage, point) : NULL;
    for (uint32_t k = 0; k < t->n_out && !failure; k++)
        if (t->out[k] != GRAPH_NO_VALUE)
            failure = lineage_failure_of(lineage, t->values[t->out[k]].value.buffer);
    return failure;
}

/* Submits what the batch holds and waits.  `*failed`: a command failed, which `err` describes. */
static frit_status finish(struct trial *t, struct frame *frame, bool *failed, frit_err *err)
{
    struct batch *batch = &t->scratch->batch;
    struct failure *failure;
    uint64_t point = 0;
    frit_status st;

    *failed = false;
    st = batch_submit(batch, t->device, queue_of_stream(t->device, frame->stream), &point, err);
    if (st) {
        forget(frame);
        return st;
    }
    frame_commit(frame);
    batch_reset(batch);
    TRY(device_wait(t->device, point, err));
    failure = failure_of(t, point);
    if (failure) {
        *failed = true;
        st = fail(err, failure->status, "%s", failure->text);
        failure_unref(failure);
    }
    return st;
}

/* ---- what is expected ---- */

static frit_status run_ops(struct trial *t, frit_err *err)
{
    struct frame frame;
    frit_status st = fill_operands(t, err);

    if (st || t->of_ops[0])
        return st;
    frame = begin(t, false);
    TRY(run_without_plan(&frame, &t->arena, err));
    run_frame(&frame);
    st = frame.first ? fail(err, frame.first->status, "%s", frame.first->text)
                     : read_results(t, t->of_ops, err);
    if (st)
        memset(t->of_ops, 0, t->n_out * sizeof(*t->of_ops));
    drop_results(t, &frame);
    return st;
}

static frit_status run_first(struct trial *t, frit_err *err)
{
    struct frame frame;
    bool failed;
    frit_status st = fill_operands(t, err);

    if (st || t->of_first[0])
        return st;
    frame = begin(t, false);
    st = add_launch(t, &frame, 0, err);
    if (!st)
        st = finish(t, &frame, &failed, err);
    if (!st)
        st = read_results(t, t->of_first, err);
    if (st)
        memset(t->of_first, 0, t->n_out * sizeof(*t->of_first));
    drop_results(t, &frame);
    return st;
}

/* ---- checking ---- */

/* One run of a candidate whose results are compared. */
struct check {
    struct trial *trial;
    struct frame frame;
    uint32_t candidate, numeric_class;
    void *const *expected;
    bool in_place;
    struct buffer *zones[16];
    enum trial_finding finding;
    frit_err *why;
};

static void find(struct check *c, enum trial_finding finding, const frit_err *why)
{
    c->finding = finding;
    *c->why = *why;
}

/* The zones before and after an output or a workspace. */
static frit_status check_zone(struct check *c, const struct buffer *whole, frit_err *err)
{
    const uint64_t zone = c->frame.zone_bytes, inner = whole->bytes - 2 * zone;
    struct value value = {.buffer = (struct buffer *)(uintptr_t)whole,
                          .type = {.dtype = FRIT_U8, .rank = 1, .dims = {(int64_t)whole->bytes}}};
    unsigned char *bytes = arena_alloc(&c->trial->arena, whole->bytes);

    if (!bytes)
        return fail_memory(err, whole->bytes);
    layout_dense(&value.type, &value.layout);
    TRY(read_value(c->trial, &value, bytes, err));
    if (sample_is_untouched(bytes, zone, UNTOUCHED) &&
        sample_is_untouched(bytes + zone + inner, zone, UNTOUCHED))
        return FRIT_OK;
    c->finding = TRIAL_BEYOND;
    (void)fail(c->why, FRIT_INTERNAL, "it writes %s the %llu bytes of its output or workspace",
               sample_is_untouched(bytes, zone, UNTOUCHED) ? "after" : "before",
               (unsigned long long)inner);
    return FRIT_OK;
}

static bool is_silent(const struct check *c, void *const *got)
{
    const struct trial *t = c->trial;
    uint64_t n_bytes = 0;

    for (uint32_t k = 0; k < t->n_out && !c->in_place; k++) {
        const struct op_type *type;
        uint64_t bytes;

        if (t->out[k] == GRAPH_NO_VALUE)
            continue;
        type = &t->graph.values[t->out[k]].type;
        bytes = frit_storage_bytes(type->dtype, op_elements(type));
        if (!sample_is_untouched(got[k], bytes, UNTOUCHED) ||
            sample_is_untouched(c->expected[k], bytes, UNTOUCHED))
            return false;
        n_bytes += bytes;
    }
    return n_bytes;
}

static void compare(struct check *c, void *const *got)
{
    const struct trial *t = c->trial;

    for (uint32_t k = 0; k < t->n_out && c->finding == TRIAL_RIGHT; k++) {
        struct sample_difference difference;
        const struct op_type *type;

        if (t->out[k] == GRAPH_NO_VALUE)
            continue;
        type = &t->graph.values[t->out[k]].type;
        sample_compare(got[k], c->expected[k], type->dtype, op_elements(type), c->numeric_class,
                       &difference);
        if (!difference.count)
            continue;
        c->finding = TRIAL_WRONG;
        (void)fail(c->why, FRIT_INTERNAL,
                   "output %u, element %lld is %.9g, not %.9g%s; %lld of %lld differ", k,
                   (long long)difference.index, difference.got, difference.expected,
                   c->in_place ? " where it takes an operand's memory" : "",
                   (long long)difference.count, (long long)op_elements(type));
    }
}

static frit_status look(struct check *c, frit_err *err)
{
    void **got = arena_array(&c->trial->arena, c->trial->n_out + 1u, sizeof(*got));

    if (!got)
        return fail_memory(err, sizeof(*got));
    for (uint32_t i = 0; i < c->frame.n_zones && c->finding == TRIAL_RIGHT; i++)
        TRY(check_zone(c, c->frame.zones[i], err));
    if (c->finding != TRIAL_RIGHT)
        return FRIT_OK;
    TRY(read_results(c->trial, got, err));
    if (is_silent(c, got)) {
        c->finding = TRIAL_SILENT;
        (void)fail(c->why, FRIT_INTERNAL, "it writes nothing");
        return FRIT_OK;
    }
    compare(c, got);
    return FRIT_OK;
}

static bool may_take_zones(const frit_device *device)
{
    return !(device->info->caps & FRIT_CAP_NO_SUBALLOC);
}

static frit_status run_check(struct check *c, frit_err *err)
{
    struct trial *t = c->trial;
    frit_err own = ERR_INIT;
    bool failed = false;
    frit_status st;

    TRY(fill_operands(t, err));
    c->frame = begin(t, c->in_place);
    if (may_take_zones(t->device)) {
        c->frame.zone_bytes = PAGE;
        c->frame.zones = c->zones;
        c->frame.zones_capacity = sizeof(c->zones) / sizeof(*c->zones);
    }
    t->is_filled = !c->in_place;
    st = add_launch(t, &c->frame, c->candidate, &own);
    if (!st)
        st = finish(t, &c->frame, &failed, &own);
    if (launch_lacked_memory(st)) {
        if (err)
            *err = own;
    } else if (st) {
        find(c, failed ? TRIAL_FAILED : TRIAL_REFUSED, &own);
        st = FRIT_OK;
    } else {
        st = look(c, err);
    }
    drop_results(t, &c->frame);
    return st;
}

frit_status trial_check(struct trial *trial, uint32_t candidate, uint32_t numeric_class,
                        enum trial_finding *finding, frit_err *why, frit_err *err)
{
    const bool like_first = candidate && numeric_class == FRIT_NUMERIC_EXACT;
    struct check check = {.trial = trial,
                          .candidate = candidate,
                          .numeric_class = candidate ? numeric_class : FRIT_NUMERIC_REORDERED,
                          .expected = like_first ? trial->of_first : trial->of_ops,
                          .why = why};
    frit_status st;

    *finding = TRIAL_RIGHT;
    TRY(like_first ? run_first(trial, err) : run_ops(trial, err));
    st = run_check(&check, err);
    if (!st && check.finding == TRIAL_RIGHT && trial->n_memories) {
        check.in_place = true;
        st = run_check(&check, err);
    }
    *finding = check.finding;
    return st;
}

/* ---- timing ---- */

/* The next launch may take the memory of this one's results: it runs after it. */
static frit_status bury_results(struct trial *t, struct frame *frame, frit_err *err)
{
    TRY(frame_reserve(frame, t->n_out, err));
    for (uint32_t k = 0; k < t->n_out; k++)
        if (t->out[k] != GRAPH_NO_VALUE)
            frame_bury(frame, t->out[k]);
    frame->n_log = frame->scratch->n_log;
    return FRIT_OK;
}

static frit_status add_launches(struct trial *t, struct frame *frame, uint32_t candidate, uint32_t n,
                                frit_err *err)
{
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < n && !st; i++) {
        if (i)
            st = bury_results(t, frame, err);
        if (!st)
            st = add_launch(t, frame, candidate, err);
    }
    if (st)
        forget(frame);
    return st;
}

frit_status trial_time(struct trial *trial, uint32_t candidate, uint32_t n, struct trial_time *out,
                       frit_err *err)
{
    struct profile *profile = trial->device->profile;
    frit_device_time time = {.struct_size = sizeof(time)};
    struct frame frame = begin(trial, false);
    uint64_t begun;
    bool failed, measured;
    frit_status st;

    TRY(fill_operands(trial, err));
    TRY(add_launches(trial, &frame, candidate, n, err));
    TRY(device_wait_all(trial->device, err));
    measured = profile && !profile_start(profile, NULL);
    begun = clock_ns();
    st = finish(trial, &frame, &failed, err);
    out->ns = (clock_ns() - begun) / n;
    out->from_device = measured && !profile_stop(profile, &time, NULL) && !time.lost &&
                       time.commands;
    if (out->from_device)
        out->ns = time.busy_ns / n;
    drop_results(trial, &frame);
    return st;
}

/* ---- identity ---- */

static frit_status digest(struct trial *t, uint8_t out[TUNE_DIGEST], frit_err *err)
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
    struct trial t = {.n_in = l->call->n_in, .n_out = l->call->n_out};
    frit_status st = copy_ops(&t, l, err);

    if (!st)
        st = digest(&t, out, err);
    graph_fini(&t.graph);
    arena_fini(&t.arena);
    return st;
}
