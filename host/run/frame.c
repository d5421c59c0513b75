/* SPDX-License-Identifier: Apache-2.0 */
#include "run/frame.h"

#include "base/array.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/plan.h"
#include "run/batch.h"
#include "run/bound_plan.h"
#include "run/frame_batch.h"
#include "tensor/failure.h"

enum { REUSE_BYTES = 1 << 16 }; /* less is not worth the BARRIER that using it again costs */

void frame_step_at(const struct frame *frame, uint32_t step, struct frame_step *out)
{
    const struct plan_step *from;

    if (!frame->plan) {
        *out = (struct frame_step){.label = op_row(frame->graph->ops[step].op)->name,
                                   .ops = &frame->order[step],
                                   .n_ops = 1};
        return;
    }
    from = &frame->plan->steps[step];
    *out = (struct frame_step){.program = from->program,
                               .label = from->label,
                               .ops = from->ops,
                               .n_ops = from->n_ops,
                               .in = from->in,
                               .out = from->out,
                               .n_in = from->n_in,
                               .n_out = from->n_out};
}

/* ---- who still needs what ---- */

static bool op_uses(const struct graph_op *op, uint32_t value)
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_TENSOR && op->in[i].value == value)
            return true;
    }
    return false;
}

bool frame_is_used_later(const struct frame *frame, uint32_t value)
{
    uint32_t last = frame->last_step[value];
    struct frame_step step;

    if (last != frame->at.step)
        return last > frame->at.step;
    if (!frame->at.by_ops)
        return false;
    frame_step_at(frame, frame->at.step, &step);
    for (uint32_t i = frame->at.op + 1; i < step.n_ops; i++) {
        if (op_uses(&frame->graph->ops[step.ops[i]], value))
            return true;
    }
    return false;
}

bool frame_dies(const struct frame *frame, uint32_t value)
{
    const struct run_value *v = &frame->values[value];

    return !(v->external ? !v->last : v->wanted) && !frame_is_used_later(frame, value);
}

bool frame_is_sole_owner(const struct frame *frame, uint32_t value)
{
    const struct run_value *v = &frame->values[value];
    const struct buffer *buffer = v->value.buffer;
    uint32_t owners = buffer_owners(buffer), ours = 1;

    if (buffer_pins(buffer) > (v->external && v->pinned))
        return false;
    for (uint32_t i = 0; i < frame->scratch->n_log && ours < owners; i++)
        ours += frame->scratch->log[i].held == buffer;
    for (uint32_t i = 0; i < frame->n_values && ours < owners; i++) {
        if (i != value && frame->values[i].value.buffer == buffer) {
            if (!frame_dies(frame, i))
                return false;
            ours++;
        }
    }
    return ours == owners;
}

/* ---- changes ---- */

frit_status frame_reserve(struct frame *frame, uint32_t changes, frit_err *err)
{
    struct run_scratch *s = frame->scratch;

    if (!array_grow(&s->log, &s->log_capacity, s->n_log, changes, sizeof(*s->log)))
        return fail_memory(err, changes * sizeof(*s->log));
    return FRIT_OK;
}

static struct change *add(struct frame *frame, enum change_kind kind, uint32_t value)
{
    struct change *change = &frame->scratch->log[frame->scratch->n_log++];

    *change = (struct change){.kind = kind, .value = value, .reused = NO_CHANGE};
    return change;
}

/* A part of something larger. */
static frit_status claim_zoned(struct frame *frame, uint64_t bytes, struct buffer **out,
                               frit_err *err)
{
    const uint64_t zone = frame->zone_bytes;
    struct buffer *whole;
    frit_status st;

    if (frame->n_zones == frame->zones_capacity)
        return fail(err, FRIT_UNSUPPORTED,
                    "a launch that takes memory more than %u times is not checked",
                    frame->zones_capacity);
    TRY(buffer_create(frame->device->memory, bytes + 2 * zone, false, &whole, err));
    st = buffer_part(whole, zone, bytes, out, err);
    if (st)
        buffer_disown(whole);
    else
        frame->zones[frame->n_zones++] = whole;
    return st;
}

frit_status frame_claim(struct frame *frame, uint64_t bytes, bool persistent, struct buffer **out,
                        uint32_t *reused, frit_err *err)
{
    struct run_scratch *s = frame->scratch;

    *reused = NO_CHANGE;
    if (frame->zone_bytes && bytes)
        return claim_zoned(frame, bytes, out, err);
    for (uint32_t i = 0; i < frame->n_log && bytes >= REUSE_BYTES; i++) {
        struct buffer *held = s->log[i].held;

        if (held && held->bytes == bytes && buffer_owners(held) == 1 && !buffer_pins(held) &&
            buffer_is_persistent(held) == persistent && !buffer_is_away(held)) {
            s->log[i].held = NULL;
            *reused = i;
            *out = held;
            return FRIT_OK;
        }
    }
    TRY(buffer_create(frame->device->memory, bytes, persistent, out, err));
    bound_plan_add_buffer(frame->bound, *out, persistent);
    return FRIT_OK;
}

struct buffer *frame_inherit(struct frame *frame, uint32_t value, uint32_t *reused)
{
    struct buffer *buffer = frame->values[value].value.buffer;

    *reused = NO_CHANGE;
    if (frame->values[value].external) {
        buffer_own(buffer);
        return buffer;
    }
    *reused = frame->scratch->n_log;
    frame_bury(frame, value);
    frame->scratch->log[*reused].held = NULL;
    return buffer;
}

void frame_add_made(struct frame *frame, uint32_t value, struct buffer *buffer, uint32_t reused)
{
    struct change *change = add(frame, CHANGE_MADE, value);

    change->reused = reused;
    change->last_write = atomic_load(&buffer->last_write);
    change->writer = atomic_load(&buffer->writer);
    frame->values[value].value.buffer = buffer;
}

void frame_add_workspace(struct frame *frame, struct buffer *buffer, uint32_t reused)
{
    struct change *change = add(frame, CHANGE_WORKSPACE, GRAPH_NO_VALUE);

    change->reused = reused;
    change->held = buffer;
}

void frame_bury(struct frame *frame, uint32_t value)
{
    bound_plan_add_death(frame->bound, value);
    add(frame, CHANGE_DIED, value)->held = frame->values[value].value.buffer;
    frame->values[value].value.buffer = NULL;
}

/* If the log is out of memory it cannot be undone: then a value that could be computed after all
 * stays failed. */
void frame_fail(struct frame *frame, uint32_t value, struct failure *failure)
{
    struct run_value *v = &frame->values[value];
    bool first = !frame->first;

    if (first)
        frame->first = failure_ref(failure);
    if (v->failure)
        return;
    v->failure = failure_ref(failure);
    if (!frame_reserve(frame, 1, NULL))
        add(frame, CHANGE_FAILED, value)->first = first;
}

bool frame_note_item(struct frame *frame)
{
    struct run_scratch *s = frame->scratch;

    if (!array_grow(&s->items, &s->items_capacity, s->n_items, 1, sizeof(*s->items)))
        return false;
    s->items[s->n_items++] = frame->at;
    return true;
}

/* ---- going back, and not ---- */

struct frame_mark frame_mark(const struct frame *frame)
{
    const struct run_scratch *s = frame->scratch;

    return (struct frame_mark){batch_mark(&s->batch), s->n_log, s->n_items};
}

static void give_back(struct frame *frame, uint32_t reused, struct buffer *buffer)
{
    if (reused == NO_CHANGE)
        buffer_disown(buffer);
    else
        frame->scratch->log[reused].held = buffer;
}

static void undo_one(struct frame *frame, const struct change *change)
{
    struct run_value *v;

    if (change->kind == CHANGE_WORKSPACE) {
        give_back(frame, change->reused, change->held);
        return;
    }
    v = &frame->values[change->value];
    switch (change->kind) {
    case CHANGE_MADE:
        atomic_store(&v->value.buffer->last_write, change->last_write);
        if (atomic_load(&v->value.buffer->writer) != change->writer)
            lineage_restore(frame->device->lineage, v->value.buffer, change->writer);
        give_back(frame, change->reused, v->value.buffer);
        v->value.buffer = NULL;
        break;
    case CHANGE_DIED:
        v->value.buffer = change->held;
        break;
    case CHANGE_WORKSPACE:
        break;
    case CHANGE_FAILED:
        failure_unref(v->failure);
        v->failure = NULL;
        if (change->first) {
            failure_unref(frame->first);
            frame->first = NULL;
        }
        break;
    }
}

void frame_undo(struct frame *frame, const struct frame_mark *mark)
{
    struct run_scratch *s = frame->scratch;

    if (s->n_log != mark->n_log || s->batch.n_cmds != mark->batch.n_cmds)
        bound_plan_spoil(frame->bound);
    while (s->n_log > mark->n_log) {
        s->n_log--;
        undo_one(frame, &s->log[s->n_log]);
    }
    s->n_items = mark->n_items;
    batch_cut(&s->batch, &mark->batch);
}

void frame_commit(struct frame *frame)
{
    struct run_scratch *s = frame->scratch;

    for (uint32_t i = 0; i < s->n_log; i++)
        buffer_disown(s->log[i].held);
    s->n_log = s->n_items = 0;
}
