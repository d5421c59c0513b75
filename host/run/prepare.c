/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says of a signature, from its cache or by its prepare.  A query is remembered
 * by its bytes: struct head, then the signature's arguments, then the classes of scalars
 * and bounds. */
#include "run/prepare.h"

#include "run/bind_args.h"
#include "run/choice.h"
#include "run/launch_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/prepared_cache.h"
#include "graph/graph.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "record/context.h"
#include "run/batch.h"
#include "run/fallback.h"
#include "run/frame_batch.h"
#include "run/launch.h"
#include "run/prefetch.h"
#include "run/tune.h"
#include "tune/record.h"

/* Between the ops of a block: what takes longer to write and read than a program to compile. */
enum { HEAVY_BYTES = 256 << 20 };

/* What of a signature is not an argument or a class. */
struct head {
    uint32_t candidate, n_in, n_out, n_scalars, n_bounds, index_width, reserved[2];
};

/* ---- the signature ---- */

static void sign_value(const struct launch *l, const struct value *value, uint64_t flags,
                       frit_arg_sig *out)
{
    struct extent extent = launch_extent(value);
    const struct buffer *buffer = value->buffer;

    out->dtype = value->type.dtype;
    out->rank = value->type.rank;
    out->flags = flags;
    if (buffer && buffer_starts(buffer, extent.first))
        out->flags |= FRIT_ARG_START;
    out->align_log2 = launch_align_log2(l, buffer ? buffer->offset + extent.first : 0);
    if (buffer && extent.first + extent.bytes == buffer->bytes)
        out->tail = buffer->tail;
    for (uint32_t d = 0; d < value->type.rank; d++) {
        out->dims[d] = value->type.dims[d];
        out->strides[d] = value->layout.strides[d];
    }
}

static uint32_t index_width(const struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_in + l->call->n_out; i++) {
        const struct value *v = launch_value(l, i);
        int64_t low, high;

        if (v->type.dtype == FRIT_NO_DTYPE)
            continue;
        layout_span(&v->type, &v->layout, &low, &high);
        if (high - low > INT32_MAX)
            return 64;
    }
    return 32;
}

/* Outputs are signed as the host would give them: dense, from the start of a buffer, or where they
 * are assigned to. */
static void sign(struct launch *l, uint32_t candidate, frit_signature *out)
{
    const struct launch_call *call = l->call;
    uint32_t n = call->n_in + call->n_out;
    struct head head = {.candidate = candidate,
                        .n_in = call->n_in,
                        .n_out = call->n_out,
                        .n_scalars = l->scalars.n_scalars,
                        .n_bounds = l->scalars.n_bounds,
                        .index_width = index_width(l)};
    frit_arg_sig *args = (frit_arg_sig *)(void *)(l->key + sizeof(head));

    memset(args, 0, n * sizeof(*args));
    for (uint32_t i = 0; i < n; i++) {
        const struct value *value = launch_value(l, i);
        uint64_t flags = i < call->n_in  ? FRIT_ARG_READ
                         : value->buffer ? FRIT_ARG_WRITE | FRIT_ARG_PREASSIGNED
                                         : FRIT_ARG_WRITE;

        if (value->type.dtype != FRIT_NO_DTYPE)
            sign_value(l, value, flags, &args[i]);
    }
    memcpy(l->key, &head, sizeof(head));
    memcpy(args + n, l->scalars.classes, l->scalars.n_scalars);
    memcpy((uint8_t *)(args + n) + l->scalars.n_scalars, l->scalars.bound_classes,
           l->scalars.n_bounds);
    *out = (frit_signature){.struct_size = sizeof(*out),
                            .n_in = call->n_in,
                            .n_out = call->n_out,
                            .arg_stride = sizeof(frit_arg_sig),
                            .n_scalars = l->scalars.n_scalars,
                            .index_width = head.index_width,
                            .args = args,
                            .scalar_classes = l->scalars.classes,
                            .bound_classes = l->scalars.bound_classes,
                            .n_bounds = l->scalars.n_bounds};
}

/* ---- prepare ---- */

static frit_status prepare_once(struct launch *l, uint32_t candidate, frit_err *err)
{
    frit_signature signature;
    struct prepare_query query = {.candidate = candidate,
                                  .signature = &signature,
                                  .key = l->key,
                                  .n_ops = l->call->n_ops,
                                  .wait = l->wait,
                                  .peek = l->peek};

    prepared_unref(l->prepared);
    l->prepared = NULL;
    sign(l, candidate, &signature);
    query.key_bytes = l->key_bytes;
    TRY(prepared_cache_get(l->call->cache, &query, &l->prepared, err));
    if (l->prepared->status < 0)
        return fail(err, l->prepared->status, "%s", l->prepared->text);
    return l->prepared->status;
}

/* Repeats until the candidate accepts the strides of its operands; it may require a copy of each
 * one once. */
static frit_status prepare_candidate(struct launch *l, uint32_t candidate, frit_err *err)
{
    for (uint32_t round = 0; round <= l->call->n_in; round++) {
        frit_status st = prepare_once(l, candidate, err);
        struct value copy;
        uint32_t arg;

        if (st != FRIT_PREPARE_RELAYOUT)
            return st;
        arg = l->prepared->spec.wanted_arg;
        if (l->copied[arg])
            break;
        TRY(launch_copy(l->frame, l->call->in[arg], l->prepared->spec.wanted_strides, &copy, err));
        l->in[arg] = copy;
        l->copied[arg] = true;
    }
    return fail(err, FRIT_INTERNAL, "%s: prepare requires a relayout again, or one that cannot be",
                l->frame->device->name);
}

static void take_operands(struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        if (l->copy_of)
            l->in[i] = *l->copy_of;
        else if (l->call->in[i] != GRAPH_NO_VALUE)
            l->in[i] = l->frame->values[l->call->in[i]].value;
        l->copied[i] = l->copy_of;
    }
}

static int32_t priority_of(const struct launch *l, uint32_t candidate, const frit_signature *sig)
{
    const frit_program *program = &l->call->program->program;

    return FRIT_HAS(program->table, frit_program_table, priority) && program->table->priority
               ? program->table->priority(program->self, candidate, sig)
               : 0;
}

/* The most that the user allows for these ops: the strictest of the configuration and of the
 * sections in which they were recorded. */
static uint32_t numeric_class_of(const struct launch *l)
{
    uint32_t strictest = l->frame->device->config.numeric_class;

    for (uint32_t i = 0; i < l->call->n_ops; i++) {
        const uint32_t allowed = context_numeric_class(l->frame->ops[l->call->ops[i]].context);

        strictest = allowed < strictest ? allowed : strictest;
    }
    return strictest;
}

/* Whether the program offers the candidate for the signature, and its numbers are allowed; the
 * first one always, unless its bits differ from run to run and must not. */
static bool is_offered(const struct launch *l, uint32_t candidate, int32_t priority,
                       uint32_t numeric_class)
{
    const struct device_config *config = &l->frame->device->config;
    const uint32_t limit = config->max_candidates;
    const uint32_t class = prepared_cache_candidate(l->call->cache, candidate)->numeric_class;

    if (!candidate)
        return !config->tune.deterministic || class < FRIT_NUMERIC_RELAXED;
    return priority >= 0 && (!limit || candidate < limit) && class <= numeric_class;
}

/* Those that are offered, the highest priority first. */
static frit_status order_by_priority(struct launch *l, struct candidates *out, frit_err *err)
{
    const uint32_t n = prepared_cache_candidates(l->call->cache);
    int32_t *priority = arena_array(&l->batch->arena, n, sizeof(*priority));
    frit_signature signature;

    *out = (struct candidates){.list = arena_array(&l->batch->arena, n, sizeof(*out->list)),
                               .numeric_class = numeric_class_of(l),
                               .chosen = "priority"};
    if (!priority || !out->list)
        return fail_memory(err, n * sizeof(*priority));
    if (n > 1)
        sign(l, 0, &signature);
    for (uint32_t i = 0; i < n; i++) {
        int32_t mine = n > 1 ? priority_of(l, i, &signature) : 0;
        uint32_t at = out->count;

        if (!is_offered(l, i, mine, out->numeric_class))
            continue;
        for (; at > 0 && priority[at - 1] < mine; at--) {
            priority[at] = priority[at - 1];
            out->list[at] = out->list[at - 1];
        }
        priority[at] = mine;
        out->list[at] = i;
        out->count++;
    }
    while (out->n_best < out->count && priority[out->n_best] == priority[0])
        out->n_best++;
    return out->count ? FRIT_OK
                      : fail(err, FRIT_UNSUPPORTED, "%s: results of %s differ from run to run",
                             l->frame->device->name, l->call->label);
}

/* There is something to choose from.  In a trial what was decided counts for parts alone. */
static bool may_be_tuned(const struct launch *l, const struct candidates *order)
{
    return (order->count > 1 || (l->call->in_parts && l->call->n_ops > 1)) &&
           (!l->frame->is_trial || l->frame->at.by_ops);
}

static frit_status order_candidates(struct launch *l, struct candidates *out, frit_err *err)
{
    frit_signature signature;

    take_operands(l);
    l->decisions = device_decisions(l->frame->device);
    TRY(order_by_priority(l, out, err));
    if (l->call->only) {
        out->list[0] = *l->call->only;
        out->count = out->n_best = 1;
    } else if (may_be_tuned(l, out)) {
        sign(l, 0, &signature);
        launch_tune(l, &signature, out);
    }
    if (!l->call->only && launch_may_be_measured(l))
        choice_measure(l);
    return FRIT_OK;
}

/* For people who look at the run: which one of several runs, and why.  Of a block, not of its ops.
 */
static void note_candidate(const struct launch *l, frit_str identity, const char *chosen)
{
    struct run_note *note = frame_note(l->frame);

    if (!note || l->copy_of || (l->frame->at.by_ops && !l->call->block))
        return;
    snprintf(note->candidate, sizeof(note->candidate), "%.*s", (int)identity.len, identity.ptr);
    note->chosen = chosen;
}

/* The first candidate of the order was refused for good: where it was measured for other sizes,
 * these get a decision of their own. */
static void split_if_decided(struct launch *l, const struct candidates *order)
{
    frit_signature signature;

    if (!order->record || !l->prepared || l->prepared->status >= 0 || l->prepared->passing)
        return;
    take_operands(l);
    sign(l, 0, &signature);
    launch_split(l, &signature, order);
}

/* The first candidate that takes the signature; FRIT_BUSY if none does yet. */
static frit_status prepare_first(struct launch *l, const struct candidates *order, frit_err *err)
{
    struct frame_mark mark = frame_mark(l->frame);
    frit_err later = ERR_INIT;
    frit_status st = FRIT_OK;
    bool busy = false;

    for (uint32_t i = 0; i < order->count; i++) {
        take_operands(l);
        st = prepare_candidate(l, order->list[i], i ? &later : err);
        l->launch->candidate = order->list[i];
        if (!st && prepared_cache_candidates(l->call->cache) > 1)
            note_candidate(l, prepared_cache_candidate(l->call->cache, order->list[i])->identity,
                           order->chosen);
        if (!st || launch_lacked_memory(st))
            return st;
        if (st == FRIT_BUSY && i)
            *err = later;
        busy |= st == FRIT_BUSY;
        frame_undo(l->frame, &mark);
        if (!i)
            split_if_decided(l, order);
        if (busy && i + 1 >= order->n_best)
            return FRIT_BUSY;
        if (i + 1 < order->count)
            fallback_report(l->frame, l->call->label, FALLBACK_CANDIDATE, i ? &later : err);
    }
    return busy ? FRIT_BUSY : st;
}

static bool is_written(const struct launch *l, uint32_t value)
{
    for (uint32_t k = 0; k < l->call->n_out; k++)
        if (l->call->out[k] == value)
            return true;
    return false;
}

/* What the ops of a block write one by one, and its program keeps to itself. */
static uint64_t between_bytes(const struct launch *l)
{
    const struct graph *graph = l->frame->graph;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < l->call->n_ops; i++) {
        const struct graph_op *op = &graph->ops[l->call->ops[i]];
        bool view = op_row(op->op)->cls == FRIT_CLASS_VIEW;

        for (uint32_t k = 0; k < op->n_out && !view; k++)
            if (op->out[k] != GRAPH_NO_VALUE && !is_written(l, op->out[k])) {
                const struct op_type *type = &graph->values[op->out[k]].type;

                bytes += frit_storage_bytes(type->dtype, op_elements(type));
            }
    }
    return bytes;
}

static frit_status key_create(struct launch *l, frit_err *err)
{
    uint32_t n = l->call->n_in + l->call->n_out;

    l->key_bytes =
        sizeof(struct head) + n * sizeof(frit_arg_sig) + l->scalars.n_scalars + l->scalars.n_bounds;
    l->key = arena_alloc(&l->batch->arena, l->key_bytes);
    return l->key ? FRIT_OK : fail_memory(err, l->key_bytes);
}

/* Where the caller can run the block in parts. */
static frit_status leave_to_parts(struct launch *l, const struct candidates *order, frit_err *err)
{
    *l->call->in_parts = true;
    note_candidate(l, FRIT_STR(TUNE_PARTS), order->chosen);
    return fail(err, FRIT_UNSUPPORTED, "it runs in parts");
}

/* A block has its ops to run meanwhile, unless that takes longer, and memory that the program does
 * not, or has to wait for compiles too; a single op that has no other way waits. */
frit_status launch_prepare(struct launch *l, frit_err *err)
{
    struct candidates order;
    frit_status st;

    TRY(key_create(l, err));
    TRY(order_candidates(l, &order, err));
    if (order.in_parts)
        return leave_to_parts(l, &order, err);
    l->wait = l->frame->is_trial || (!l->call->block && order.n_best == 1);
    st = prepare_first(l, &order, err);
    if (st != FRIT_BUSY || l->wait ||
        (l->call->block && between_bytes(l) < HEAVY_BYTES && prefetch_ops_are_ready(l)))
        return st;
    l->wait = true;
    return prepare_first(l, &order, err);
}

frit_status launch_prepare_ahead(struct launch *l, bool queue)
{
    struct candidates order;
    frit_err err = ERR_INIT;
    frit_status st;

    l->ahead = true;
    TRY(launch_init(l, &err));
    TRY(key_create(l, &err));
    TRY(order_candidates(l, &order, &err));
    if (order.in_parts)
        return leave_to_parts(l, &order, &err);
    l->peek = !queue;
    st = FRIT_UNSUPPORTED;
    for (uint32_t i = 0; i < order.count && st < 0 && st != FRIT_BUSY; i++) {
        take_operands(l);
        st = prepare_once(l, order.list[i], &err);
    }
    prepared_unref(l->prepared);
    l->prepared = NULL;
    return st;
}
