/* SPDX-License-Identifier: Apache-2.0 */
/* Recording: a run tells what it does while it does it; when it has ended, what playing asks for is
 * worked out once (whose memory a value has, where an argument begins, which record a number comes
 * from, what must be the same).  Nothing here fails: what cannot be kept spoils the tape. */
#include "stream/tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- recording ---- */

struct tape *tape_create(uint32_t n_values)
{
    struct tape *tape = calloc(1, sizeof(*tape));

    if (!tape)
        return NULL;
    tape->n_values = n_values;
    tape->values = arena_array(&tape->arena, (size_t)n_values + 1, sizeof(*tape->values));
    if (tape->values)
        return tape;
    tape_destroy(tape);
    return NULL;
}

void tape_destroy(void *pointer)
{
    struct tape *tape = pointer;

    if (!tape)
        return;
    for (uint32_t i = 0; i < tape->n_launches; i++)
        prepared_unref(tape->launches[i].prepared);
    free(tape->launches);
    free(tape->cmds);
    arena_fini(&tape->arena);
    free(tape);
}

void tape_spoil(struct tape *tape)
{
    if (tape)
        tape->spoiled = true;
}

static void *copy(struct tape *tape, const void *from, size_t count, size_t bytes)
{
    void *to = arena_array(&tape->arena, count + 1, bytes);

    if (to && count)
        memcpy(to, from, count * bytes);
    tape->spoiled |= !to;
    return to;
}

static struct tape_arg *copy_args(struct tape *tape, const struct tape_launch *from)
{
    uint32_t n = from->n_in + from->n_out;
    struct tape_arg *args = arena_array(&tape->arena, (size_t)n + 1, sizeof(*args));

    tape->spoiled |= !args;
    for (uint32_t i = 0; i < n && args; i++)
        args[i].value = i < from->n_in ? from->in[i] : from->out[i - from->n_in];
    return args;
}

void tape_add_launch(struct tape *tape, const struct tape_launch *from)
{
    const frit_launch *l = from->launch;
    const frit_launch_spec *spec = &from->prepared->spec;
    struct played_launch *to;

    if (tape->spoiled || (spec->workspace_bytes && spec->workspace_zeroed) || l->n_derived ||
        !array_grow(&tape->launches, &tape->launches_room, tape->n_launches, 1,
                    sizeof(*tape->launches))) {
        tape->spoiled = true;
        return;
    }
    to = &tape->launches[tape->n_launches++];
    *to = (struct played_launch){.launch = *l,
                                 .answers = from->answers,
                                 .prepared = from->prepared,
                                 .n_ops = from->n_ops,
                                 .n_in = from->n_in,
                                 .workspace_bytes = spec->workspace_bytes,
                                 .barrier = from->barrier,
                                 .block = from->block};
    prepared_ref(to->prepared);
    to->args = copy_args(tape, from);
    to->ops = copy(tape, from->ops, from->n_ops, sizeof(*from->ops));
    to->classes = copy(tape, from->classes, l->n_scalars, 1);
    to->scalars = copy(tape, l->scalars, l->n_scalars, sizeof(*l->scalars));
    to->bounds = copy(tape, l->bounds, l->n_bounds, sizeof(*l->bounds));
    to->launch.args = copy(tape, l->args, l->n_args, sizeof(*l->args));
    to->launch.scalars = to->scalars;
    to->launch.bounds = to->bounds;
}

void tape_add_made(struct tape *tape, uint32_t value, const struct tape_made *made)
{
    struct tape_value *to = &tape->values[value];

    to->kind = made->of == GRAPH_NO_VALUE ? TAPE_CREATED : TAPE_SHARED;
    to->of = made->of;
    to->written = made->written;
    to->bytes = made->bytes;
    to->persistent = made->persistent;
}

void tape_add_submit(struct tape *tape)
{
    if (tape->n_launches == 0 || tape->launches[tape->n_launches - 1].submit_after)
        return;
    tape->launches[tape->n_launches - 1].submit_after = true;
    tape->n_submits++;
}

void tape_add_death(struct tape *tape, uint32_t value)
{
    tape->values[value].dies_after = tape->n_submits + 1;
}

/* ---- the end of a recorded run ---- */

static uint64_t begin_of(const struct value *value)
{
    int64_t low, high;

    layout_span(&value->type, &value->layout, &low, &high);
    return op_elements(&value->type) ? frit_storage_bytes(value->type.dtype, low) : 0;
}

static void learn_value(struct tape *tape, uint32_t v, const struct run_value *from)
{
    struct tape_value *to = &tape->values[v];

    to->type = from->value.type;
    to->layout = from->value.layout;
    to->wanted = from->wanted;
    to->last = from->last;
    if (from->external) {
        to->kind = TAPE_EXTERNAL;
        to->start = from->value.buffer->offset == 0;
        to->bytes = from->value.buffer->bytes;
    }
}

static bool learn_values(struct tape *tape, const struct run_value *values)
{
    for (uint32_t v = 0; v < tape->n_values; v++) {
        if (values[v].failure || (values[v].external && !values[v].value.buffer))
            return false;
        learn_value(tape, v, &values[v]);
        if (values[v].wanted && !values[v].external)
            tape->values[v].dies_after = UINT32_MAX;
        else if (tape->values[v].dies_after == 0) /* nobody buried it: at the end */
            tape->values[v].dies_after = tape->n_submits + 1;
    }
    return true;
}

/* From whom a value took its memory, to whose memory it is. */
static void learn_roots(struct tape *tape)
{
    for (uint32_t v = 0; v < tape->n_values; v++) {
        struct tape_value *value = &tape->values[v];

        if (value->kind != TAPE_SHARED)
            continue;
        while (tape->values[value->of].kind == TAPE_SHARED)
            value->of = tape->values[value->of].of;
        if (value->written)
            tape->values[value->of].overwritten = true;
    }
}

/* Where each argument begins in its buffer. */
static void learn_args(struct tape *tape)
{
    for (uint32_t i = 0; i < tape->n_launches; i++) {
        struct played_launch *l = &tape->launches[i];

        for (uint32_t k = 0; k < l->launch.n_args; k++) {
            const struct tape_value *v;

            if (l->args[k].value == GRAPH_NO_VALUE)
                continue;
            v = &tape->values[l->args[k].value];
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
           explorer->graph.ops[from].op != segment->records[record]->op;
}

/* The operand whose scalar is the only word of the op, UINT32_MAX: there is none. */
static uint32_t scalar_alone(const struct graph_op *op, const struct words_count *count)
{
    if (count->n_scalars != 1 || count->n_bounds)
        return UINT32_MAX;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            return i;
    }
    return UINT32_MAX;
}

static bool learn_words(struct tape *tape, const struct explorer *explorer,
                        const struct segment *segment)
{
    for (uint32_t i = 0; i < tape->n_launches; i++) {
        struct played_launch *l = &tape->launches[i];
        uint32_t scalar = 0, bound = 0;

        l->words = arena_array(&tape->arena, l->n_ops + 1, sizeof(*l->words));
        if (!l->words)
            return false;
        for (uint32_t k = 0; k < l->n_ops; k++) {
            struct tape_words *w = &l->words[l->n_words];
            const struct graph_op *op = &explorer->graph.ops[l->ops[k]];

            w->count = words_count(op, explorer->graph.values);
            w->record = record_of(explorer, l->ops[k]);
            w->inner = stands_as_parts(explorer, segment, w->record);
            w->seeded = op_row(op->op)->traits & FRIT_OP_SEEDED;
            w->alone = w->inner ? UINT32_MAX : scalar_alone(op, &w->count);
            w->scalar = scalar;
            w->bound = bound;
            scalar += w->count.n_scalars;
            bound += w->count.n_bounds;
            l->n_words += w->count.n_scalars + w->count.n_bounds > 0 && (!w->inner || w->seeded);
        }
        if (scalar != l->launch.n_scalars || bound != l->launch.n_bounds)
            return false;
    }
    return true;
}

/* Whether sizes or places of values depend on the attributes. */
static bool attrs_shape(const struct op_record *record)
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

static bool learn_persistent(struct tape *tape, const struct segment *segment, uint32_t n_calls)
{
    tape->n_calls = n_calls;
    if (!segment->persistent)
        return true;
    tape->persistent = arena_array(&tape->arena, (size_t)n_calls + 1, sizeof(*tape->persistent));
    for (uint32_t r = 0; r < n_calls && tape->persistent; r++)
        tape->persistent[r] = segment->records[r]->persistent;
    return tape->persistent;
}

static bool learn_same(struct tape *tape, const struct explorer *explorer,
                       const struct segment *segment, uint32_t n_calls)
{
    tape->same = arena_array(&tape->arena, (size_t)n_calls + 1, sizeof(*tape->same));
    if (!tape->same || !learn_persistent(tape, segment, n_calls))
        return false;
    for (uint32_t r = 0; r < n_calls; r++) {
        const struct op_record *record = segment->records[r];
        struct same_record *same = &tape->same[tape->n_same];
        bool parts = stands_as_parts(explorer, segment, r);

        if (!parts && !attrs_shape(record))
            continue;
        same->record = r;
        same->n_in = parts ? record->n_in : 0;
        same->in = copy(tape, record->in, same->n_in, sizeof(*record->in));
        if (record->attrs) {
            same->attrs_bytes = op_record(op_row(record->op))->size;
            same->attrs = copy(tape, record->attrs, same->attrs_bytes, 1);
        }
        tape->n_same++;
    }
    return true;
}

static void learn_places(struct tape *tape, const struct explorer *explorer)
{
    for (uint32_t v = 0; v < tape->n_values; v++)
        tape->values[v].seg = SEGMENT_EXTERNAL;
    for (uint32_t i = 0; i < explorer->n_values; i++) {
        if (explorer->value_of[i] < tape->n_values)
            tape->values[explorer->value_of[i]].seg = i;
    }
    tape->n_seg = explorer->n_values;
}

static bool has_effects(const struct tape *tape, const struct graph *graph)
{
    for (uint32_t i = 0; i < tape->n_launches; i++) {
        for (uint32_t k = 0; k < tape->launches[i].n_ops; k++) {
            if (op_row(graph->ops[tape->launches[i].ops[k]].op)->traits & FRIT_OP_ORDERED)
                return true;
        }
    }
    return false;
}

/* An operand that is overwritten cannot be undone, nor can an effect: only a run of one submit has
 * these. */
static bool can_go_back(const struct tape *tape, const struct graph *graph)
{
    if (tape->n_submits > 1 && has_effects(tape, graph))
        return false;
    for (uint32_t v = 0; v < tape->n_values; v++) {
        const struct tape_value *value = &tape->values[v];

        if (value->kind == TAPE_EXTERNAL && value->overwritten && tape->n_submits > 1)
            return false;
    }
    return tape->n_submits > 0;
}

static void add(struct tape_list *list, bool yes, uint32_t value)
{
    if (yes)
        list->list[list->count++] = value;
}

/* Values whose death is part of the plan's key: nobody asks for them. */
static void learn_deaths(struct tape *tape, const struct explorer *explorer,
                         const struct segment *segment, uint32_t n_calls)
{
    for (uint32_t r = 0; r < n_calls; r++) {
        const struct op_record *record = segment->records[r];

        for (uint32_t i = 0; i < record->n_dead; i++) {
            uint32_t v = explorer->value_of[record->dead[i]];

            if (v < tape->n_values)
                tape->values[v].buried = true;
        }
    }
}

static bool learn_lists(struct tape *tape)
{
    struct tape_list *lists[] = {&tape->external, &tape->created, &tape->shared,
                                 &tape->asked,    &tape->wanted,  &tape->dying};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        lists[i]->list = arena_array(&tape->arena, (size_t)tape->n_values + 1, sizeof(uint32_t));
        if (!lists[i]->list)
            return false;
    }
    for (uint32_t v = 0; v < tape->n_values; v++) {
        const struct tape_value *value = &tape->values[v];
        bool made = value->kind == TAPE_CREATED || value->kind == TAPE_SHARED;

        add(&tape->external, value->kind == TAPE_EXTERNAL, v);
        add(&tape->created, value->kind == TAPE_CREATED, v);
        add(&tape->shared, value->kind == TAPE_SHARED, v);
        add(&tape->asked,
            value->kind != TAPE_EXTERNAL && value->seg != SEGMENT_EXTERNAL && !value->buried, v);
        add(&tape->wanted, made && value->wanted, v);
    }
    for (uint32_t n = 1; n <= tape->n_submits + 1; n++) {
        for (uint32_t v = 0; v < tape->n_values; v++) {
            const struct tape_value *value = &tape->values[v];

            if (value->kind == TAPE_CREATED || value->kind == TAPE_SHARED)
                add(&tape->dying, !value->wanted && value->dies_after == n, v);
        }
    }
    return true;
}

bool tape_finish(struct tape *tape, const struct run_value *values, const struct explorer *explorer,
                 const struct segment *segment, uint32_t n_calls)
{
    if (tape->spoiled || !learn_values(tape, values))
        return false;
    learn_roots(tape);
    learn_args(tape);
    learn_places(tape, explorer);
    learn_deaths(tape, explorer, segment, n_calls);
    if (!learn_lists(tape))
        return false;
    return learn_words(tape, explorer, segment) && learn_same(tape, explorer, segment, n_calls) &&
           can_go_back(tape, &explorer->graph) && !tape->spoiled;
}
