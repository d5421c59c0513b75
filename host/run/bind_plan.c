/* SPDX-License-Identifier: Apache-2.0 */
/* Recording: a run tells what it does while it does it; when it has ended, what playing asks for is
 * worked out once (whose memory a value has, where an argument begins, which record a number comes
 * from, what must be the same).  Nothing here fails: what cannot be kept spoils the bound. */
#include "run/bound_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- recording ---- */

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

void bound_plan_destroy(void *pointer)
{
    struct bound_plan *bound = pointer;

    if (!bound)
        return;
    for (uint32_t i = 0; i < bound->n_launches; i++)
        prepared_unref(bound->launches[i].prepared);
    free(bound->launches);
    free(bound->cmds);
    arena_fini(&bound->arena);
    free(bound);
}

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

static struct bound_arg *copy_args(struct bound_plan *bound, const struct bind_launch *from)
{
    uint32_t n = from->n_in + from->n_out;
    struct bound_arg *args = arena_array(&bound->arena, (size_t)n + 1, sizeof(*args));

    bound->spoiled |= !args;
    for (uint32_t i = 0; i < n && args; i++)
        args[i].value = i < from->n_in ? from->in[i] : from->out[i - from->n_in];
    return args;
}

void bound_plan_add_launch(struct bound_plan *bound, const struct bind_launch *from)
{
    const frit_launch *l = from->launch;
    const frit_launch_spec *spec = &from->prepared->spec;
    struct bound_launch *to;

    if (bound->spoiled || (spec->workspace_bytes && spec->workspace_zeroed) || l->n_derived ||
        !array_grow(&bound->launches, &bound->launches_capacity, bound->n_launches, 1,
                    sizeof(*bound->launches))) {
        bound->spoiled = true;
        return;
    }
    to = &bound->launches[bound->n_launches++];
    *to = (struct bound_launch){.launch = *l,
                                .cache = from->cache,
                                .prepared = from->prepared,
                                .n_ops = from->n_ops,
                                .n_in = from->n_in,
                                .workspace_bytes = spec->workspace_bytes,
                                .barrier = from->barrier,
                                .block = from->block};
    prepared_ref(to->prepared);
    to->args = copy_args(bound, from);
    to->ops = copy(bound, from->ops, from->n_ops, sizeof(*from->ops));
    to->classes = copy(bound, from->classes, l->n_scalars, 1);
    to->scalars = copy(bound, l->scalars, l->n_scalars, sizeof(*l->scalars));
    to->bounds = copy(bound, l->bounds, l->n_bounds, sizeof(*l->bounds));
    to->launch.args = copy(bound, l->args, l->n_args, sizeof(*l->args));
    to->launch.scalars = to->scalars;
    to->launch.bounds = to->bounds;
}

void bound_plan_add_made(struct bound_plan *bound, uint32_t value, const struct bind_value *made)
{
    struct bound_value *to = &bound->values[value];

    to->kind = made->of == GRAPH_NO_VALUE ? BOUND_CREATED : BOUND_SHARED;
    to->of = made->of;
    to->written = made->written;
    to->bytes = made->bytes;
    to->persistent = made->persistent;
}

void bound_plan_add_submit(struct bound_plan *bound)
{
    if (bound->n_launches == 0 || bound->launches[bound->n_launches - 1].submit_after)
        return;
    bound->launches[bound->n_launches - 1].submit_after = true;
    bound->n_submits++;
}

void bound_plan_add_death(struct bound_plan *bound, uint32_t value)
{
    bound->values[value].dies_after = bound->n_submits + 1;
}

/* ---- the end of a recorded run ---- */

static uint64_t begin_of(const struct value *value)
{
    int64_t low, high;

    layout_span(&value->type, &value->layout, &low, &high);
    return op_elements(&value->type) ? frit_storage_bytes(value->type.dtype, low) : 0;
}

static void learn_value(struct bound_plan *bound, uint32_t v, const struct run_value *from)
{
    struct bound_value *to = &bound->values[v];

    to->type = from->value.type;
    to->layout = from->value.layout;
    to->wanted = from->wanted;
    to->last = from->last;
    if (from->external) {
        to->kind = BOUND_EXTERNAL;
        to->start = from->value.buffer->offset == 0;
        to->bytes = from->value.buffer->bytes;
    }
}

static bool learn_values(struct bound_plan *bound, const struct run_value *values)
{
    for (uint32_t v = 0; v < bound->n_values; v++) {
        if (values[v].failure || (values[v].external && !values[v].value.buffer))
            return false;
        learn_value(bound, v, &values[v]);
        if (values[v].wanted && !values[v].external)
            bound->values[v].dies_after = UINT32_MAX;
        else if (bound->values[v].dies_after == 0) /* nobody buried it: at the end */
            bound->values[v].dies_after = bound->n_submits + 1;
    }
    return true;
}

/* From whom a value took its memory, to whose memory it is. */
static void learn_roots(struct bound_plan *bound)
{
    for (uint32_t v = 0; v < bound->n_values; v++) {
        struct bound_value *value = &bound->values[v];

        if (value->kind != BOUND_SHARED)
            continue;
        while (bound->values[value->of].kind == BOUND_SHARED)
            value->of = bound->values[value->of].of;
        if (value->written)
            bound->values[value->of].overwritten = true;
    }
}

/* Where each argument begins in its buffer. */
static void learn_args(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_args; k++) {
            const struct bound_value *v;

            if (l->args[k].value == GRAPH_NO_VALUE)
                continue;
            v = &bound->values[l->args[k].value];
            l->args[k].first = begin_of(&(struct value){.type = v->type, .layout = v->layout});
        }
    }
}

static uint32_t record_of(const struct explorer *explorer, uint32_t op)
{
    uint32_t record = 0;

    while (explorer->call_end[record] <= op)
        record++;
    return record;
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

static void learn_places(struct bound_plan *bound, const struct explorer *explorer)
{
    for (uint32_t v = 0; v < bound->n_values; v++)
        bound->values[v].seg = SEGMENT_EXTERNAL;
    for (uint32_t i = 0; i < explorer->n_values; i++) {
        if (explorer->value_of[i] < bound->n_values)
            bound->values[explorer->value_of[i]].seg = i;
    }
    bound->n_seg = explorer->n_values;
}

static bool has_effects(const struct bound_plan *bound, const struct graph *graph)
{
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        for (uint32_t k = 0; k < bound->launches[i].n_ops; k++) {
            if (op_row(graph->ops[bound->launches[i].ops[k]].op)->traits & FRIT_OP_ORDERED)
                return true;
        }
    }
    return false;
}

/* An operand that is overwritten cannot be undone, nor can an effect: only a run of one submit has
 * these. */
static bool can_go_back(const struct bound_plan *bound, const struct graph *graph)
{
    if (bound->n_submits > 1 && has_effects(bound, graph))
        return false;
    for (uint32_t v = 0; v < bound->n_values; v++) {
        const struct bound_value *value = &bound->values[v];

        if (value->kind == BOUND_EXTERNAL && value->overwritten && bound->n_submits > 1)
            return false;
    }
    return bound->n_submits > 0;
}

static void add(struct bound_list *list, bool yes, uint32_t value)
{
    if (yes)
        list->list[list->count++] = value;
}

/* Values whose death is part of the plan's key: nobody asks for them. */
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

static bool learn_lists(struct bound_plan *bound)
{
    struct bound_list *lists[] = {&bound->external, &bound->created, &bound->shared,
                                  &bound->asked,    &bound->wanted,  &bound->dying};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        lists[i]->list = arena_array(&bound->arena, (size_t)bound->n_values + 1, sizeof(uint32_t));
        if (!lists[i]->list)
            return false;
    }
    for (uint32_t v = 0; v < bound->n_values; v++) {
        const struct bound_value *value = &bound->values[v];
        bool made = value->kind == BOUND_CREATED || value->kind == BOUND_SHARED;

        add(&bound->external, value->kind == BOUND_EXTERNAL, v);
        add(&bound->created, value->kind == BOUND_CREATED, v);
        add(&bound->shared, value->kind == BOUND_SHARED, v);
        add(&bound->asked,
            value->kind != BOUND_EXTERNAL && value->seg != SEGMENT_EXTERNAL && !value->buried, v);
        add(&bound->wanted, made && value->wanted, v);
    }
    for (uint32_t n = 1; n <= bound->n_submits + 1; n++) {
        for (uint32_t v = 0; v < bound->n_values; v++) {
            const struct bound_value *value = &bound->values[v];

            if (value->kind == BOUND_CREATED || value->kind == BOUND_SHARED)
                add(&bound->dying, !value->wanted && value->dies_after == n, v);
        }
    }
    return true;
}

bool bound_plan_finish(struct bound_plan *bound, const struct run_value *values,
                       const struct explorer *explorer, const struct segment *segment,
                       uint32_t n_calls)
{
    if (bound->spoiled || !learn_values(bound, values))
        return false;
    learn_roots(bound);
    learn_args(bound);
    learn_places(bound, explorer);
    learn_deaths(bound, explorer, segment, n_calls);
    if (!learn_lists(bound))
        return false;
    return learn_updates(bound, explorer, segment) &&
           learn_same(bound, explorer, segment, n_calls) && can_go_back(bound, &explorer->graph) &&
           !bound->spoiled;
}
