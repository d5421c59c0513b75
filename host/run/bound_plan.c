/* SPDX-License-Identifier: Apache-2.0 */
/* Recording.  A buffer of the run is found again by its address, the newest first: one that was
 * given back and handed out anew is another buffer. */
#include "run/bound_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/prepared_cache.h"
#include "run/bind_args.h"
#include "run/bind_derived.h"
#include "run/capture.h"
#include "run/collective.h"

/* ---- life ---- */

struct bound_plan *bound_plan_create(uint32_t n_values)
{
    struct bound_plan *bound = calloc(1, sizeof(*bound));

    if (!bound)
        return NULL;
    bound->n_values = n_values;
    bound->values = arena_array(&bound->arena, (size_t)n_values + 1, sizeof(*bound->values));
    if (bound->values)
        return bound;
    bound_plan_destroy(bound);
    return NULL;
}

void bound_plan_destroy(struct bound_plan *bound)
{
    if (!bound)
        return;
    capture_destroy(bound->capture);
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        if (bound->launches[i].collective)
            continue;
        prepared_unref(bound->launches[i].prepared);
        program_unref(program_of(bound->launches[i].launch.program));
    }
    free(bound->launches);
    free(bound->serials);
    free(bound->buffers);
    free(bound->cmds);
    arena_fini(&bound->arena);
    free(bound);
}

uint64_t bound_plan_bytes(const struct bound_plan *bound)
{
    return sizeof(*bound) + arena_bytes(&bound->arena) +
           (uint64_t)bound->launches_capacity * sizeof(*bound->launches) +
           (uint64_t)bound->buffers_capacity * sizeof(*bound->buffers) +
           (uint64_t)bound->cmds_capacity * sizeof(*bound->cmds) + capture_bytes(bound->capture);
}

/* ---- recording ---- */

void bound_plan_spoil(struct bound_plan *bound)
{
    if (bound)
        bound->spoiled = true;
}

static void *copy(struct bound_plan *bound, const void *from, size_t count, size_t bytes)
{
    void *to = arena_array(&bound->arena, count + 1, bytes);

    if (to && count)
        memcpy(to, from, count * bytes);
    bound->spoiled |= !to;
    return to;
}

void bound_plan_add_buffer(struct bound_plan *bound, const struct buffer *buffer, bool persistent)
{
    if (!bound)
        return;
    if (!array_grow(&bound->buffers, &bound->buffers_capacity, bound->n_buffers, 1,
                    sizeof(*bound->buffers))) {
        bound->spoiled = true;
        return;
    }
    bound->buffers[bound->n_buffers] = (struct bound_buffer){.bytes = buffer->bytes,
                                                             .persistent = persistent,
                                                             .made_in = bound->n_submits + 1,
                                                             .taker = BOUND_NOWHERE,
                                                             .in = bound->n_buffers,
                                                             .seen = buffer};
    bound->n_buffers++;
}

/* BOUND_ABSENT: the run did not allocate it. */
static struct bound_ref find_buffer(const struct bound_plan *bound, const struct buffer *buffer)
{
    for (uint32_t i = bound->n_buffers; i-- > 0;) {
        if (bound->buffers[i].seen == buffer)
            return (struct bound_ref){.place = BOUND_BUFFER, .index = i};
    }
    return (struct bound_ref){.place = BOUND_ABSENT};
}

/* Where a value of the plan lies; one that was not made is an operand. */
static struct bound_ref place_of(const struct bound_plan *bound, uint32_t value)
{
    const struct bound_ref *at = &bound->values[value].at;

    return at->place == BOUND_ABSENT ? (struct bound_ref){.place = BOUND_OPERAND, .index = value}
                                     : *at;
}

void bound_plan_add_made(struct bound_plan *bound, uint32_t value, const struct buffer *buffer,
                         uint32_t of)
{
    struct bound_ref *at;

    if (!bound)
        return;
    at = &bound->values[value].at;
    *at = find_buffer(bound, buffer);
    if (at->place == BOUND_ABSENT && of != GRAPH_NO_VALUE)
        *at = place_of(bound, of);
    bound->spoiled |= at->place == BOUND_ABSENT;
}

void bound_plan_add_assigned(struct bound_plan *bound, uint32_t value, const frit_arg *arg,
                             const struct buffer *memory)
{
    struct bound_value *v;

    if (!bound)
        return;
    v = &bound->values[value];
    v->at = (struct bound_ref){.place = BOUND_ASSIGNED, .index = value};
    v->start = buffer_starts(memory, 0);
    v->align_log2 = arg->align_log2;
    v->bytes = memory->bytes;
    v->tail = memory->tail;
}

static uint64_t first_of(const struct value *value)
{
    return launch_extent(value).first;
}

static struct bound_ref bind_arg(const struct bound_plan *bound, const struct bind_launch *from,
                                 uint32_t index)
{
    const struct value *value = &from->values[index];
    struct bound_ref at;

    if (value->type.dtype == FRIT_NO_DTYPE)
        return (struct bound_ref){.place = BOUND_ABSENT};
    at = find_buffer(bound, value->buffer);
    if (at.place == BOUND_ABSENT)
        at = place_of(bound, index < from->n_in ? from->in[index] : from->out[index - from->n_in]);
    at.first = first_of(value);
    return at;
}

static struct bound_ref *bind_args(struct bound_plan *bound, const struct bind_launch *from)
{
    uint32_t n = from->n_in + from->n_out;
    struct bound_ref *args = arena_array(&bound->arena, (size_t)n + 1, sizeof(*args));

    bound->spoiled |= !args;
    for (uint32_t i = 0; i < n && args; i++) {
        args[i] = bind_arg(bound, from, i);
        if (i >= from->n_in && args[i].place == BOUND_OPERAND)
            bound->values[args[i].index].overwritten = true;
    }
    return args;
}

/* Memory that is free when the launch has ended. */
static struct bound_ref *bind_spaces(struct bound_plan *bound, const struct bind_launch *from)
{
    struct bound_ref *spaces =
        arena_array(&bound->arena, (size_t)from->n_spaces + 1, sizeof(*spaces));

    bound->spoiled |= !spaces;
    for (uint32_t i = 0; i < from->n_spaces && spaces; i++) {
        spaces[i] = find_buffer(bound, from->spaces[i]);
        bound->spoiled |= spaces[i].place == BOUND_ABSENT;
        if (spaces[i].place == BOUND_BUFFER)
            bound->buffers[spaces[i].index].dies_after = bound->n_submits + 1;
    }
    return spaces;
}

static struct bound_derived *bind_derived(struct bound_plan *bound, const struct bind_launch *from)
{
    uint32_t n = from->launch->n_derived;
    struct bound_derived *derived = arena_array(&bound->arena, (size_t)n + 1, sizeof(*derived));

    bound->spoiled |= !derived;
    bound->n_derived += n;
    for (uint32_t i = 0; i < n && derived; i++) {
        const struct derived_use *use = &from->derived[i];

        derived[i] = (struct bound_derived){.kept = use->kept, .arg = use->arg, .key = use->key};
    }
    return derived;
}

/* Programs of one driver share one, as a rule. */
static void add_serial(struct bound_plan *bound, const uint64_t *at)
{
    for (uint32_t i = 0; at && i < bound->n_serials; i++) {
        if (bound->serials[i].at == at)
            return;
    }
    if (!at)
        return;
    if (!array_grow(&bound->serials, &bound->serials_capacity, bound->n_serials, 1,
                    sizeof(*bound->serials))) {
        bound->spoiled = true;
        return;
    }
    bound->serials[bound->n_serials++] =
        (struct bound_serial){at, __atomic_load_n(at, __ATOMIC_ACQUIRE)};
}

/* NULL: nothing is recorded any more. */
static struct bound_launch *add_launch(struct bound_plan *bound)
{
    if (!bound || bound->spoiled)
        return NULL;
    if (array_grow(&bound->launches, &bound->launches_capacity, bound->n_launches, 1,
                   sizeof(*bound->launches)))
        return &bound->launches[bound->n_launches++];
    bound->spoiled = true;
    return NULL;
}

void bound_plan_add_launch(struct bound_plan *bound, const struct bind_launch *from)
{
    const frit_launch *l = from->launch;
    const frit_launch_spec *spec = &from->prepared->spec;
    struct bound_launch *to = add_launch(bound);

    if (!to)
        return;
    *to = (struct bound_launch){.launch = *l,
                                .cache = from->cache,
                                .prepared = from->prepared,
                                .n_ops = from->n_ops,
                                .n_in = from->n_in,
                                .n_spaces = from->n_spaces,
                                .n_cmds = from->n_cmds,
                                .barrier = from->barrier,
                                .block = from->block};
    prepared_ref(to->prepared);
    program_ref(program_of(l->program));
    if (spec->workspace_bytes && spec->workspace_zeroed)
        to->zeroed_bytes = spec->workspace_bytes;
    bound->n_blocks += from->block;
    add_serial(bound, prepared_cache_serial(from->cache));
    bound->spoiled |= prepared_is_outdated(to->prepared);
    to->args = bind_args(bound, from);
    to->spaces = bind_spaces(bound, from);
    to->derived = bind_derived(bound, from);
    to->ops = copy(bound, from->ops, from->n_ops, sizeof(*from->ops));
    to->classes = copy(bound, from->classes, l->n_scalars, 1);
    to->scalars = copy(bound, l->scalars, l->n_scalars, sizeof(*l->scalars));
    to->bounds = copy(bound, l->bounds, l->n_bounds, sizeof(*l->bounds));
    to->launch.args = copy(bound, l->args, l->n_args, sizeof(*l->args));
    to->launch.derived = copy(bound, l->derived, l->n_derived, sizeof(*l->derived));
    to->launch.scalars = to->scalars;
    to->launch.bounds = to->bounds;
    /* A copy for the launch that follows, in a buffer that is free after that one. */
    for (uint32_t i = from->n_in; !from->out && to->args && i < l->n_args; i++) {
        if (to->args[i].place == BOUND_BUFFER)
            bound->buffers[to->args[i].index].dies_after = bound->n_submits + 1;
    }
}

void bound_plan_add_collective(struct bound_plan *bound, const struct collective_call *call,
                               uint32_t in)
{
    struct bound_launch *to = add_launch(bound);

    if (!to)
        return;
    *to = (struct bound_launch){.submit_after = true,
                                .collective = copy(bound, call, 1, sizeof(*call)),
                                .n_spaces = in == GRAPH_NO_VALUE ? 0 : 2};
    to->spaces = arena_array(&bound->arena, 2, sizeof(*to->spaces));
    bound->spoiled |= !to->spaces;
    if (to->spaces && to->n_spaces) {
        to->spaces[0] = place_of(bound, in);
        to->spaces[1] = find_buffer(bound, call->out);
    }
    bound->n_collectives++;
    bound->n_submits++;
}

void bound_plan_add_submit(struct bound_plan *bound)
{
    if (!bound || bound->n_launches == 0 || bound->launches[bound->n_launches - 1].submit_after)
        return;
    bound->launches[bound->n_launches - 1].submit_after = true;
    bound->n_submits++;
}

void bound_plan_add_death(struct bound_plan *bound, uint32_t value)
{
    if (bound)
        bound->values[value].dies_after = bound->n_submits + 1;
}

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
        to->seg = SEGMENT_EXTERNAL;
        if (from->external) {
            learn_external(to, from->value.buffer);
            to->at.index = v;
        }
        if (to->dies_after == 0) /* nobody buried it: at the end */
            to->dies_after = bound->n_submits;
    }
    return true;
}

/* Who keeps each buffer, and when the others are free. */
static void learn_ends(struct bound_plan *bound)
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

static bool can_follow(const struct bound_buffer *before, const struct bound_buffer *buffer)
{
    return before->taker == BOUND_NOWHERE && before->dies_after < buffer->made_in &&
           before->bytes == buffer->bytes && before->persistent == buffer->persistent;
}

/* The recorded run gave buffers back after each submit and got them again; a replay allocates all
 * of them before the first.  So one that is made after another has died shares its memory. */
static void share_buffers(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_buffers; i++) {
        struct bound_buffer *buffer = &bound->buffers[i];

        for (uint32_t k = 0; k < i && buffer->in == i; k++) {
            struct bound_buffer *before = &bound->buffers[k];

            if (before->in != k || !can_follow(before, buffer))
                continue;
            buffer->in = k;
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

static bool stands_as_parts(const struct explorer *explorer, const struct segment *segment,
                            uint32_t record)
{
    uint32_t from = record ? explorer->call_end[record - 1] : 0;

    return explorer->call_end[record] != from + 1 ||
           explorer->graph.ops[from].op != segment->ops[record]->op;
}

/* The operand whose scalar is the only word of the op, UINT32_MAX: there is none. */
static uint32_t scalar_alone(const struct graph_op *op, const struct scalar_counts *count)
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
            w->inner = stands_as_parts(explorer, segment, w->record);
            w->seeded = op_row(op->op)->traits & FRIT_OP_SEEDED;
            w->alone = w->inner ? UINT32_MAX : scalar_alone(op, &w->count);
            w->scalar = scalar;
            w->bound = n_bounds;
            scalar += w->count.n_scalars;
            n_bounds += w->count.n_bounds;
            l->n_updates += w->count.n_scalars + w->count.n_bounds > 0 && (!w->inner || w->seeded);
        }
        if (scalar != l->launch.n_scalars || n_bounds != l->launch.n_bounds)
            return false;
    }
    return true;
}

/* Whether sizes or places of values depend on the attributes. */
static bool attrs_shape(const struct recorded_op *record)
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

static bool learn_persistent(struct bound_plan *bound, const struct segment *segment,
                             uint32_t n_calls)
{
    bound->n_calls = n_calls;
    if (!segment->persistent)
        return true;
    bound->persistent = arena_array(&bound->arena, (size_t)n_calls + 1, sizeof(*bound->persistent));
    for (uint32_t r = 0; r < n_calls && bound->persistent; r++)
        bound->persistent[r] = segment->ops[r]->persistent;
    return bound->persistent;
}

static bool learn_same(struct bound_plan *bound, const struct explorer *explorer,
                       const struct segment *segment, uint32_t n_calls)
{
    bound->same = arena_array(&bound->arena, (size_t)n_calls + 1, sizeof(*bound->same));
    if (!bound->same || !learn_persistent(bound, segment, n_calls))
        return false;
    for (uint32_t r = 0; r < n_calls; r++) {
        const struct recorded_op *record = segment->ops[r];
        struct same_record *same = &bound->same[bound->n_same];
        bool parts = stands_as_parts(explorer, segment, r);

        if (!parts && !attrs_shape(record))
            continue;
        same->record = r;
        same->n_in = parts ? record->n_in : 0;
        same->in = copy(bound, record->in, same->n_in, sizeof(*record->in));
        if (record->attrs) {
            same->attrs_bytes = op_record(op_row(record->op))->size;
            same->attrs = copy(bound, record->attrs, same->attrs_bytes, 1);
        }
        bound->n_same++;
    }
    return true;
}

/* ---- the end of a recorded run ---- */

static void learn_places(struct bound_plan *bound, const struct explorer *explorer)
{
    for (uint32_t i = 0; i < explorer->n_values; i++) {
        if (explorer->value_of[i] < bound->n_values)
            bound->values[explorer->value_of[i]].seg = i;
    }
}

/* Values whose death is part of the plan's key: nobody wants them. */
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

static void add(struct bound_list *list, bool yes, uint32_t number)
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
        !list_create(bound, &bound->wanted, bound->n_values) ||
        !list_create(bound, &bound->made, bound->n_buffers) ||
        !list_create(bound, &bound->dying, bound->n_buffers))
        return false;
    bound->wishes = arena_array(&bound->arena, (size_t)bound->n_values + 1, sizeof(*bound->wishes));
    if (!bound->wishes)
        return false;
    for (uint32_t i = 0; i < bound->n_buffers; i++)
        add(&bound->made, bound->buffers[i].in == i, i);
    for (uint32_t v = 0; v < bound->n_values; v++) {
        const struct bound_value *value = &bound->values[v];
        bool made = !value->external && value->at.place != BOUND_ABSENT;

        add(&bound->external, value->external, v);
        add(&bound->assigned, value->at.place == BOUND_ASSIGNED && value->at.index == v, v);
        add(&bound->wanted, made && value->wanted, v);
        if (!value->external && value->seg != SEGMENT_EXTERNAL && !value->buried)
            bound->wishes[bound->n_wishes++] = (struct bound_wish){value->seg, value->wanted};
    }
    for (uint32_t n = 1; n <= bound->n_submits; n++) {
        for (uint32_t i = 0; i < bound->n_buffers; i++) {
            const struct bound_buffer *buffer = &bound->buffers[i];

            add(&bound->dying,
                buffer->in == i && buffer->taker == BOUND_NOWHERE && buffer->dies_after == n, i);
        }
    }
    return true;
}

/* Each buffer is found at one place from now on. */
static void resolve(struct bound_plan *bound, struct bound_ref *ref)
{
    if (ref->place == BOUND_BUFFER)
        ref->now = &bound->buffers[bound->buffers[ref->index].in].buffer;
    else if (ref->place != BOUND_ABSENT)
        ref->now = &bound->values[ref->index].buffer;
}

static void resolve_all(struct bound_plan *bound)
{
    for (uint32_t v = 0; v < bound->n_values; v++) {
        struct bound_value *value = &bound->values[v];

        resolve(bound, &value->at);
        value->takes = value->at.place == BOUND_BUFFER &&
                       bound->buffers[bound->buffers[value->at.index].in].taker == v;
    }
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_args; k++)
            resolve(bound, &l->args[k]);
        for (uint32_t k = 0; k < l->n_spaces; k++)
            resolve(bound, &l->spaces[k]);
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

/* An operand that is overwritten cannot be undone, nor an effect.  Such launches go in one submit,
 * which is done as a whole or not at all; BARRIERs stand where submits ended.  Collectives end one
 * all the same. */
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

bool bound_plan_finish(struct bound_plan *bound, const struct run_value *values,
                       const struct explorer *explorer, const struct segment *segment,
                       uint32_t n_calls)
{
    if (bound->spoiled || !bound->n_submits || !learn_values(bound, values))
        return false;
    learn_ends(bound);
    share_buffers(bound);
    learn_places(bound, explorer);
    learn_deaths(bound, explorer, segment, n_calls);
    if (!learn_lists(bound))
        return false;
    join_submits(bound, &explorer->graph);
    resolve_all(bound);
    return learn_updates(bound, explorer, segment) &&
           learn_same(bound, explorer, segment, n_calls) && !bound->spoiled;
}
