/* SPDX-License-Identifier: Apache-2.0 */
#include "run/route.h"

#include "device/device.h"
#include "device/programs.h"
#include "graph/decompose/decompose.h"
#include "memory/memory.h"
#include "plan/plan.h"
#include "run/collective.h"
#include "run/frame_batch.h"

/* Prices are times in ps, from what drivers report of their links.  Between two devices without a
 * link the host copies at the rate of one thread, about 10 GB/s, and an op on the fallback device
 * is taken to run at eight times that. */
enum {
    PS_PER_BYTE_COPIED = 96,
    PS_PER_BYTE_OF_OP = PS_PER_BYTE_COPIED / 8,
    MAX_PS_PER_BYTE = 1000000, /* so that no sum overflows */
    MAX_ROUNDS = 8,            /* of moving steps */
    MAX_STEPS = 512            /* that are looked at, from the first on */
};

enum role { STAYS_HOME, STAYS_THERE, MOVES };

/* Where the bytes of a value lie before the steps run. */
enum place { PLACE_HOME, PLACE_AWAY, PLACE_BOTH };

struct route_step {
    uint32_t *in, *out;
    uint32_t n_in, n_out;
    enum role role;
    bool there;
};

struct route_value {
    uint64_t bytes;
    uint32_t maker; /* step, PLAN_NO_STEP: before the first */
    uint32_t first_use, n_uses;
    enum place place; /* without a maker */
    bool wanted;
};

struct route {
    struct frame *frame;
    struct arena *arena;
    uint32_t first, n_steps; /* of the frame; numbers below count from the first */
    uint64_t ps_per_crossing, ps_per_byte;
    struct route_step *steps;
    struct route_value *values;
    uint32_t *uses; /* steps, by value */
};

/* ---- what is there ---- */

static bool is_single(const struct frame_step *step)
{
    return !step->program && step->n_ops == 1;
}

/* Whether the op has no way to run here. */
static bool is_lacking(struct frame *frame, const struct graph_op *op)
{
    struct op_type out[FRIT_OP_MAX_OUT];
    struct arena arena = {0};
    struct op_input *in;
    bool has, lacking = false;

    if (op_row(op->op)->cls == FRIT_CLASS_VIEW || collective_is(op->op) ||
        decompose_has(op->op, op->n_in))
        return false;
    in = arena_array(&arena, op->n_in + 1, sizeof(*in));
    if (in) {
        struct program_call call = program_call_of(frame->graph, op, in, out);

        lacking = !programs_have(frame->device, &call, &has, NULL) && !has;
    }
    arena_fini(&arena);
    return lacking;
}

static bool can_move(const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);

    return (row->cls == FRIT_CLASS_MAP || row->cls == FRIT_CLASS_CAST ||
            row->cls == FRIT_CLASS_VIEW) &&
           op->n_out == 1 && !(row->traits & (FRIT_OP_ORDERED | FRIT_OP_SEEDED));
}

static enum role role_of(struct frame *frame, const struct frame_step *step)
{
    for (uint32_t i = 0; i < step->n_ops; i++) {
        if (!can_move(&frame->graph->ops[step->ops[i]]))
            return is_single(step) && is_lacking(frame, &frame->graph->ops[step->ops[0]])
                       ? STAYS_THERE
                       : STAYS_HOME;
    }
    if (is_single(step) && is_lacking(frame, &frame->graph->ops[step->ops[0]]))
        return STAYS_THERE;
    return MOVES;
}

/* Values that the step takes and makes; with a plan they are known. */
static bool list_values(struct route *r, const struct frame_step *from, struct route_step *to)
{
    const struct graph_op *op = &r->frame->graph->ops[from->ops[0]];

    to->n_in = to->n_out = 0;
    to->in = arena_array(r->arena, (size_t)op->n_in + from->n_in + 1, sizeof(*to->in));
    to->out = arena_array(r->arena, (size_t)op->n_out + from->n_out + 1, sizeof(*to->out));
    if (!to->in || !to->out)
        return false;
    for (uint32_t i = 0; i < from->n_in; i++)
        to->in[to->n_in++] = from->in[i];
    for (uint32_t k = 0; k < from->n_out; k++)
        to->out[to->n_out++] = from->out[k];
    if (r->frame->plan)
        return true;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            to->in[to->n_in++] = op->in[i].value;
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k] != GRAPH_NO_VALUE)
            to->out[to->n_out++] = op->out[k];
    }
    return true;
}

static void look_at_value(struct route *r, uint32_t number)
{
    const struct run_value *from = &r->frame->values[number];
    const struct op_type *type = &r->frame->graph->values[number].type;
    const struct buffer *buffer = from->value.buffer;
    struct route_value *to = &r->values[number];

    *to = (struct route_value){.bytes = frit_storage_bytes(type->dtype, op_elements(type)),
                               .maker = PLAN_NO_STEP,
                               .wanted = !from->external && from->wanted};
    if (buffer && buffer_is_away(buffer))
        to->place = PLACE_AWAY;
    else if (buffer && atomic_load(&buffer->mirror))
        to->place = PLACE_BOTH;
}

static bool look_at_steps(struct route *r)
{
    for (uint32_t s = 0; s < r->n_steps; s++) {
        struct route_step *to = &r->steps[s];
        struct frame_step from;

        frame_step_at(r->frame, r->first + s, &from);
        if (!list_values(r, &from, to))
            return false;
        to->role = role_of(r->frame, &from);
        for (uint32_t i = 0; i < to->n_in; i++)
            r->values[to->in[i]].n_uses++;
        for (uint32_t k = 0; k < to->n_out; k++)
            r->values[to->out[k]].maker = s;
    }
    return true;
}

static bool index_uses(struct route *r)
{
    uint32_t total = 0;

    for (uint32_t v = 0; v < r->frame->n_values; v++) {
        r->values[v].first_use = total;
        total += r->values[v].n_uses;
        r->values[v].n_uses = 0;
    }
    r->uses = arena_array(r->arena, (size_t)total + 1, sizeof(*r->uses));
    for (uint32_t s = 0; s < r->n_steps && r->uses; s++) {
        for (uint32_t i = 0; i < r->steps[s].n_in; i++) {
            struct route_value *value = &r->values[r->steps[s].in[i]];

            r->uses[value->first_use + value->n_uses++] = s;
        }
    }
    return r->uses;
}

/* ---- prices ---- */

static void add_link(struct route *r, const frit_device_info *info)
{
    uint64_t rate = info->link_bytes_per_s;
    uint64_t per_byte = rate ? 1000000000000 / rate : 0;

    r->ps_per_crossing += (uint64_t)info->link_latency_ns * 1000;
    r->ps_per_byte += per_byte < MAX_PS_PER_BYTE ? per_byte : MAX_PS_PER_BYTE;
}

/* Bytes that cross two links cross one after the other. */
static void price_crossing(struct route *r, const frit_device *device)
{
    add_link(r, device->info);
    add_link(r, device->fallback->info);
    if (!r->ps_per_byte)
        r->ps_per_byte = PS_PER_BYTE_COPIED;
}

static uint64_t crossing_price(const struct route *r, uint64_t bytes)
{
    return bytes ? r->ps_per_crossing + bytes * r->ps_per_byte : 0;
}

/* A value crosses once, if a step on the other side uses it.  What somebody sees later counts as
 * used at home. */
static uint64_t value_price(const struct route *r, uint32_t number)
{
    const struct route_value *v = &r->values[number];
    bool there = v->maker == PLAN_NO_STEP ? v->place == PLACE_AWAY : r->steps[v->maker].there;

    if (v->maker == PLAN_NO_STEP && v->place == PLACE_BOTH)
        return 0;
    if (there && v->wanted)
        return crossing_price(r, v->bytes);
    for (uint32_t i = 0; i < v->n_uses; i++) {
        if (r->steps[r->uses[v->first_use + i]].there != there)
            return crossing_price(r, v->bytes);
    }
    return 0;
}

/* Of what a step's side has to do with. */
static uint64_t step_price(const struct route *r, uint32_t step)
{
    const struct route_step *s = &r->steps[step];
    uint64_t price = 0;

    for (uint32_t i = 0; i < s->n_in; i++)
        price += value_price(r, s->in[i]);
    for (uint32_t k = 0; k < s->n_out; k++) {
        price += value_price(r, s->out[k]);
        if (s->there && s->role == MOVES)
            price += r->values[s->out[k]].bytes * PS_PER_BYTE_OF_OP;
    }
    return price;
}

static uint64_t total_price(const struct route *r)
{
    uint64_t price = 0;

    for (uint32_t v = 0; v < r->frame->n_values; v++)
        price += value_price(r, v);
    for (uint32_t s = 0; s < r->n_steps; s++) {
        const struct route_step *step = &r->steps[s];

        for (uint32_t k = 0; k < step->n_out && step->there && step->role == MOVES; k++)
            price += r->values[step->out[k]].bytes * PS_PER_BYTE_OF_OP;
    }
    return price;
}

/* Moves steps to the other side while that is cheaper; in a tie a step goes home. */
static void settle_steps(struct route *r, bool there)
{
    bool moved = true;

    for (uint32_t s = 0; s < r->n_steps; s++)
        r->steps[s].there = r->steps[s].role == STAYS_THERE || (there && r->steps[s].role == MOVES);
    for (int round = 0; round < MAX_ROUNDS && moved; round++) {
        moved = false;
        for (uint32_t s = 0; s < r->n_steps; s++) {
            struct route_step *step = &r->steps[s];
            uint64_t before = step_price(r, s), after;

            if (step->role != MOVES)
                continue;
            step->there = !step->there;
            after = step_price(r, s);
            if (after < before || (after == before && !step->there))
                moved = true;
            else
                step->there = !step->there;
        }
    }
}

static bool *choose(struct route *r)
{
    bool *there = arena_array(r->arena, (size_t)r->frame->n_steps + 1, sizeof(*there));
    uint64_t at_home;

    settle_steps(r, false);
    at_home = total_price(r);
    settle_steps(r, true);
    if (at_home <= total_price(r))
        settle_steps(r, false);
    for (uint32_t s = 0; s < r->n_steps && there; s++)
        there[r->first + s] = r->steps[s].there && r->steps[s].role == MOVES;
    return there;
}

/* ---- the frame ---- */

static bool has_lacking(const struct route *r)
{
    for (uint32_t s = 1; s < r->n_steps; s++) {
        if (r->steps[s].role == STAYS_THERE)
            return true;
    }
    return false;
}

/* If out of memory, everything runs where it can. */
static void decide(struct frame *frame)
{
    struct arena *arena = &frame->scratch->arena;
    struct route r = {.frame = frame, .arena = arena, .first = frame->at.step};

    r.n_steps = frame->n_steps - r.first;
    if (r.n_steps > MAX_STEPS)
        r.n_steps = MAX_STEPS;
    frame->stays_home = true;
    r.steps = arena_array(arena, r.n_steps, sizeof(*r.steps));
    r.values = arena_array(arena, (size_t)frame->n_values + 1, sizeof(*r.values));
    if (!r.steps || !r.values)
        return;
    for (uint32_t v = 0; v < frame->n_values && v < frame->graph->n_values; v++)
        look_at_value(&r, v);
    price_crossing(&r, frame->device);
    if (!look_at_steps(&r) || !has_lacking(&r) || !index_uses(&r))
        return;
    frame->there = choose(&r);
    frame->stays_home = !frame->there;
}

static bool has_away_operand(const struct frame *frame)
{
    struct frame_step step;

    frame_step_at(frame, frame->at.step, &step);
    for (uint32_t i = 0; i < step.n_ops; i++) {
        const struct graph_op *op = &frame->graph->ops[step.ops[i]];

        for (uint32_t k = 0; k < op->n_in; k++) {
            const struct buffer *buffer = op->in[k].kind == FRIT_OPERAND_TENSOR
                                              ? frame->values[op->in[k].value].value.buffer
                                              : NULL;

            if (buffer && buffer_is_away(buffer))
                return true;
        }
    }
    return false;
}

bool route_is_there(struct frame *frame)
{
    if (!frame->device->fallback || frame->borrowed || frame->stays_home ||
        frame->at.step >= frame->n_steps)
        return false;
    if (!frame->there && has_away_operand(frame))
        decide(frame);
    return frame->there && frame->there[frame->at.step];
}

void route_stay_home(struct frame *frame)
{
    frame->there = NULL;
    frame->stays_home = true;
}
