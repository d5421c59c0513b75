/* SPDX-License-Identifier: Apache-2.0 */
/* Completes a bound plan when the recorded run has ended.  The steps are in this order because each
 * reads what earlier ones wrote: values, buffers, lists of both, submits, addresses, scalars. */
#include "run/bound_finish.h"

#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/segment.h"
#include "run/explore.h"
#include "run/run.h"

/* ---- values and buffers ---- */

static void learn_external(struct bound_value *to, const struct buffer *buffer)
{
    to->external = true;
    to->at = (struct bound_ref){.place = BOUND_OPERAND};
    to->start = buffer_starts(buffer, 0);
    to->bytes = buffer->bytes;
    to->tail = buffer->tail;
}

static bool learn_values(struct bound_plan *bound, const struct run_value *values)
{
    for (uint32_t v = 0; v < bound->n_values; v++) {
        const struct run_value *from = &values[v];
        struct bound_value *to = &bound->values[v];

        if (from->failure || (from->external && (!from->value.buffer || from->value.buffer->whole)))
            return false;
        to->type = from->value.type;
        to->layout = from->value.layout;
        to->wanted = from->wanted;
        to->last = from->last;
        to->segment_value = SEGMENT_EXTERNAL;
        if (from->external) {
            learn_external(to, from->value.buffer);
            to->at.index = v;
        }
        if (to->dies_after == 0) /* no death was recorded: it dies at the end */
            to->dies_after = bound->n_submits;
    }
    return true;
}

/* Determines which value takes each buffer, and after which submit the other buffers are free. */
static void learn_lifetimes(struct bound_plan *bound)
{
    for (uint32_t v = 0; v < bound->n_values; v++) {
        const struct bound_value *value = &bound->values[v];
        struct bound_buffer *buffer;

        if (value->at.place != BOUND_BUFFER)
            continue;
        buffer = &bound->buffers[value->at.index];
        if (value->wanted)
            buffer->taker = buffer->taker == BOUND_NOWHERE ? v : buffer->taker;
        else if (buffer->dies_after < value->dies_after)
            buffer->dies_after = value->dies_after;
    }
    for (uint32_t i = 0; i < bound->n_buffers; i++) {
        struct bound_buffer *buffer = &bound->buffers[i];

        if (buffer->dies_after == 0 || buffer->dies_after > bound->n_submits ||
            buffer->taker != BOUND_NOWHERE)
            buffer->dies_after = bound->n_submits;
    }
}

static bool can_share_memory(const struct bound_buffer *before, const struct bound_buffer *buffer)
{
    return before->taker == BOUND_NOWHERE && before->dies_after < buffer->made_in &&
           before->bytes == buffer->bytes && before->persistent == buffer->persistent;
}

/* The recorded run freed buffers after each submit and allocated them again; a replay allocates all
 * of its buffers before the first submit.  To need no more memory than the recorded run, a buffer
 * that is made after another one has died shares that one's memory. */
static void share_buffers(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_buffers; i++) {
        struct bound_buffer *buffer = &bound->buffers[i];

        for (uint32_t k = 0; k < i && buffer->memory_of == i; k++) {
            struct bound_buffer *before = &bound->buffers[k];

            if (before->memory_of != k || !can_share_memory(before, buffer))
                continue;
            buffer->memory_of = k;
            before->dies_after = buffer->dies_after;
            before->taker = buffer->taker;
        }
    }
}

/* ---- scalars and what must be equal ---- */

/* The recorded op that an op of the graph belongs to. */
static uint32_t record_of(const struct explorer *explorer, uint32_t op)
{
    uint32_t low = 0, high = explorer->n_calls;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (explorer->call_end[middle] <= op)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_decomposed(const struct explorer *explorer, const struct segment *segment,
                          uint32_t record)
{
    uint32_t from = record ? explorer->call_end[record - 1] : 0;

    return explorer->call_end[record] != from + 1 ||
           explorer->graph.ops[from].op != segment->ops[record]->op;
}

/* The operand with the op's only scalar, if the op has no bounds either; else UINT32_MAX. */
static uint32_t only_scalar_operand(const struct graph_op *op, const struct scalar_counts *count)
{
    if (count->n_scalars != 1 || count->n_bounds)
        return UINT32_MAX;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            return i;
    }
    return UINT32_MAX;
}

static bool learn_updates(struct bound_plan *bound, const struct explorer *explorer,
                          const struct segment *segment)
{
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        struct bound_launch *l = &bound->launches[i];
        uint32_t scalar = 0, n_bounds = 0;

        l->updates = arena_array(&bound->arena, l->n_ops + 1, sizeof(*l->updates));
        if (!l->updates)
            return false;
        for (uint32_t k = 0; k < l->n_ops; k++) {
            struct bound_scalars *w = &l->updates[l->n_updates];
            const struct graph_op *op = &explorer->graph.ops[l->ops[k]];

            w->count = launch_scalars_count(op, explorer->graph.values);
            w->record = record_of(explorer, l->ops[k]);
            w->in_composite = is_decomposed(explorer, segment, w->record);
            w->seeded = op_row(op->op)->traits & FRIT_OP_SEEDED;
            w->only_operand = w->in_composite ? UINT32_MAX : only_scalar_operand(op, &w->count);
            w->scalar = scalar;
            w->bound = n_bounds;
            scalar += w->count.n_scalars;
            n_bounds += w->count.n_bounds;
            l->n_updates +=
                w->count.n_scalars + w->count.n_bounds > 0 && (!w->in_composite || w->seeded);
        }
        if (scalar != l->launch.n_scalars || n_bounds != l->launch.n_bounds)
            return false;
    }
    return true;
}

/* Whether the size or the position of any value depends on the attributes. */
static bool attrs_affect_layout(const struct recorded_op *record)
{
    const frit_record_info *info = op_record(op_row(record->op));

    for (uint32_t i = 0; i < info->n_fields; i++) {
        const frit_field_info *field = &info->field[i];

        if (field->use == FRIT_USE_SHAPE ||
            (field->use == FRIT_USE_LAUNCH && field->type != FRIT_ATTR_REAL))
            return true;
    }
    return false;
}

static bool learn_contexts(struct bound_plan *bound, const struct segment *segment,
                           uint32_t n_calls)
{
    bound->n_calls = n_calls;
    if (!segment->context)
        return true;
    bound->contexts = arena_array(&bound->arena, (size_t)n_calls + 1, sizeof(*bound->contexts));
    for (uint32_t r = 0; r < n_calls && bound->contexts; r++)
        bound->contexts[r] = segment->ops[r]->context;
    return bound->contexts;
}

static bool learn_required(struct bound_plan *bound, const struct explorer *explorer,
                           const struct segment *segment, uint32_t n_calls)
{
    bound->required = arena_array(&bound->arena, (size_t)n_calls + 1, sizeof(*bound->required));
    if (!bound->required || !learn_contexts(bound, segment, n_calls))
        return false;
    for (uint32_t r = 0; r < n_calls; r++) {
        const struct recorded_op *record = segment->ops[r];
        struct required_record *required = &bound->required[bound->n_required];
        bool decomposed = is_decomposed(explorer, segment, r);

        if (!decomposed && !attrs_affect_layout(record))
            continue;
        required->record = r;
        required->n_in = decomposed ? record->n_in : 0;
        required->in = bound_plan_copy(bound, record->in, required->n_in, sizeof(*record->in));
        if (record->attrs) {
            required->attrs_bytes = op_record(op_row(record->op))->size;
            required->attrs = bound_plan_copy(bound, record->attrs, required->attrs_bytes, 1);
        }
        bound->n_required++;
    }
    return true;
}

/* ---- the end of a recorded run ---- */

static void learn_segment_values(struct bound_plan *bound, const struct explorer *explorer)
{
    for (uint32_t i = 0; i < explorer->n_values; i++) {
        if (explorer->value_of[i] < bound->n_values)
            bound->values[explorer->value_of[i]].segment_value = i;
    }
}

/* Marks the values whose death is part of the plan's key: they are never wanted. */
static void learn_deaths(struct bound_plan *bound, const struct explorer *explorer,
                         const struct segment *segment, uint32_t n_calls)
{
    for (uint32_t r = 0; r < n_calls; r++) {
        const struct recorded_op *record = segment->ops[r];

        for (uint32_t i = 0; i < record->n_dead; i++) {
            uint32_t v = explorer->value_of[record->dead[i]];

            if (v < bound->n_values)
                bound->values[v].buried = true;
        }
    }
}

static void add_if(struct bound_list *list, bool yes, uint32_t number)
{
    if (yes)
        list->list[list->count++] = number;
}

static bool list_create(struct bound_plan *bound, struct bound_list *list, uint32_t most)
{
    list->list = arena_array(&bound->arena, (size_t)most + 1, sizeof(*list->list));
    return list->list;
}

static bool learn_lists(struct bound_plan *bound)
{
    if (!list_create(bound, &bound->external, bound->n_values) ||
        !list_create(bound, &bound->assigned, bound->n_values) ||
        !list_create(bound, &bound->in_buckets, bound->n_values) ||
        !list_create(bound, &bound->wanted, bound->n_values) ||
        !list_create(bound, &bound->made, bound->n_buffers) ||
        !list_create(bound, &bound->dying, bound->n_buffers))
        return false;
    bound->required_wanted =
        arena_array(&bound->arena, (size_t)bound->n_values + 1, sizeof(*bound->required_wanted));
    if (!bound->required_wanted)
        return false;
    for (uint32_t i = 0; i < bound->n_buffers; i++)
        add_if(&bound->made, bound->buffers[i].memory_of == i, i);
    for (uint32_t v = 0; v < bound->n_values; v++) {
        const struct bound_value *value = &bound->values[v];
        bool made = !value->external && value->at.place != BOUND_ABSENT;

        add_if(&bound->external, value->external, v);
        add_if(value->in_bucket ? &bound->in_buckets : &bound->assigned,
               value->at.place == BOUND_ASSIGNED && value->at.index == v, v);
        add_if(&bound->wanted, made && value->wanted, v);
        if (!value->external && value->segment_value != SEGMENT_EXTERNAL && !value->buried)
            bound->required_wanted[bound->n_required_wanted++] =
                (struct required_wanted){value->segment_value, value->wanted};
    }
    for (uint32_t n = 1; n <= bound->n_submits; n++) {
        for (uint32_t i = 0; i < bound->n_buffers; i++) {
            const struct bound_buffer *buffer = &bound->buffers[i];

            add_if(&bound->dying,
                   buffer->memory_of == i && buffer->taker == BOUND_NOWHERE &&
                       buffer->dies_after == n,
                   i);
        }
    }
    return true;
}

/* Sets the pointer that holds the address of the reference's buffer in every replay. */
static void resolve(struct bound_plan *bound, struct bound_ref *ref)
{
    if (ref->place == BOUND_BUFFER)
        ref->current = &bound->buffers[bound->buffers[ref->index].memory_of].buffer;
    else if (ref->place != BOUND_ABSENT)
        ref->current = &bound->values[ref->index].buffer;
}

static void resolve_all(struct bound_plan *bound)
{
    for (uint32_t v = 0; v < bound->n_values; v++) {
        struct bound_value *value = &bound->values[v];

        resolve(bound, &value->at);
        value->takes_owner = value->at.place == BOUND_BUFFER &&
                             bound->buffers[bound->buffers[value->at.index].memory_of].taker == v;
    }
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_args; k++)
            resolve(bound, &l->args[k]);
        for (uint32_t k = 0; k < l->n_workspaces; k++)
            resolve(bound, &l->workspaces[k]);
    }
}

static bool is_ordered(const struct bound_launch *l, const struct graph *graph)
{
    for (uint32_t k = 0; k < l->n_ops; k++) {
        if (op_row(graph->ops[l->ops[k]].op)->traits & FRIT_OP_ORDERED)
            return true;
    }
    return false;
}

/* Returns whether any launch has effects. */
static bool learn_effects(struct bound_plan *bound, const struct graph *graph)
{
    bool any = false;

    for (uint32_t i = 0; i < bound->n_launches; i++) {
        bound->launches[i].effects = is_ordered(&bound->launches[i], graph);
        any |= bound->launches[i].effects;
    }
    return any;
}

/* Neither an overwritten operand nor an effect can be undone.  A plan with either is therefore one
 * submit, which the driver accepts or refuses as a whole, and a BARRIER replaces each end of a
 * submit.  Only collectives still end a submit. */
static void join_submits(struct bound_plan *bound, const struct graph *graph)
{
    bool effects = learn_effects(bound, graph);
    bool joined = bound->n_submits > 1 && (effects || bound->assigned.count);

    for (uint32_t i = 0; i < bound->external.count && bound->n_submits > 1 && !joined; i++)
        joined = bound->values[bound->external.list[i]].overwritten;
    if (!joined)
        return;
    bound->n_submits = 1;
    for (uint32_t i = 0; i + 1 < bound->n_launches; i++) {
        struct bound_launch *l = &bound->launches[i];

        if (l->collective || l[1].collective) {
            bound->n_submits++;
            continue;
        }
        l[1].barrier |= l->submit_after;
        l->submit_after = false;
    }
    for (uint32_t i = 0; i < bound->n_buffers; i++)
        bound->buffers[i].dies_after = bound->n_submits;
}

bool bound_finish(struct bound_plan *bound, const struct run_value *values,
                  const struct explorer *explorer, const struct segment *segment, uint32_t n_calls)
{
    if (bound->spoiled || !bound->n_submits || !learn_values(bound, values))
        return false;
    learn_lifetimes(bound);
    share_buffers(bound);
    learn_segment_values(bound, explorer);
    learn_deaths(bound, explorer, segment, n_calls);
    if (!learn_lists(bound))
        return false;
    join_submits(bound, &explorer->graph);
    resolve_all(bound);
    return learn_updates(bound, explorer, segment) &&
           learn_required(bound, explorer, segment, n_calls) && !bound->spoiled;
}
