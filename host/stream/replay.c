/* SPDX-License-Identifier: Apache-2.0 */
/* Every made value owns its buffer once, however it came by it: created, or shared with another
 * value whose memory it took or is a view of.  So a run that is given up gives all of them back;
 * only writes into the memory of operands could not be undone, and these are allowed where there is
 * one submit. */
#include "stream/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "stream/words.h"

enum { LOOK_EVERY = 64 }; /* plays between two looks at the generation of a program */

enum tape_kind { TAPE_NONE, TAPE_EXTERNAL, TAPE_CREATED, TAPE_SHARED };

struct tape_value {
    enum tape_kind kind;
    uint32_t seg;        /* value of the segment, or SEGMENT_EXTERNAL: inside a composite */
    uint32_t of;         /* SHARED: whose buffer */
    uint32_t dies_after; /* submits; UINT32_MAX: wanted */
    bool wanted, last, persistent;
    bool written;     /* SHARED: by a launch */
    bool overwritten; /* EXTERNAL: through a value that shares it */
    bool start;       /* EXTERNAL: the buffer lies at the start of its block */
    uint64_t tail, bytes;
    struct op_type type;
    struct layout layout;
    struct buffer *buffer; /* while the tape plays; as recorded before */
};

/* An argument: where it lies in its buffer. */
struct tape_arg {
    uint32_t value; /* GRAPH_NO_VALUE: no tensor */
    uint64_t first;
};

/* Numbers that come from the records: of one op of a launch. */
struct tape_words {
    uint32_t record;
    uint32_t scalar, bound; /* the first ones in the launch */
    struct words_count count;
    bool inner; /* part of a composite: only its random words are written */
    bool seeded;
};

struct played_launch {
    frit_launch launch;
    struct answers *answers;
    struct prepared *prepared;
    struct tape_arg *args;
    uint32_t *ops; /* of the graph */
    struct tape_words *words;
    uint8_t *classes;
    frit_scalar *scalars;
    int64_t *bounds;
    uint32_t n_ops, n_in, n_words;
    uint64_t workspace_bytes;
    struct buffer *workspace; /* while the tape plays */
    bool barrier;
    bool block;
    bool submit_after;
};

/* What must be the same to play: the numbers of a record that stands as its parts, attributes on
 * which sizes or places depend. */
struct same_record {
    uint32_t record;
    uint32_t n_in;
    struct record_input *in;
    void *attrs;
    uint32_t attrs_bytes;
};

/* Numbers of values, by what is to be done with them. */
struct tape_list {
    uint32_t *list;
    uint32_t count;
};

struct tape {
    struct arena arena;
    bool spoiled;
    struct tape_value *values;
    struct tape_list external, created, shared, asked; /* asked: made, and known to the segment */
    struct tape_list wanted;
    struct tape_list dying; /* in the order of the submits after which they go */
    struct played_launch *launches;
    struct same_record *same;
    bool *persistent; /* by record */
    uint32_t n_values, n_launches, launches_room, n_same, n_submits, n_calls;
    uint32_t n_seg; /* values of the segment */
    uint32_t plays;
    frit_cmd *cmds;
    uint32_t cmds_room;
};

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
    struct played_launch *to;

    const frit_launch_spec *spec = &from->prepared->spec;

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
        to->tail = from->value.buffer->tail;
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

void tape_add_made(struct tape *tape, uint32_t value, const struct tape_made *made)
{
    struct tape_value *to = &tape->values[value];

    to->kind = made->of == GRAPH_NO_VALUE ? TAPE_CREATED : TAPE_SHARED;
    to->of = made->of;
    to->written = made->written;
    to->bytes = made->bytes;
    to->persistent = made->persistent;
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
    const frit_record_info *info = frit_record_info_at(op_row(record->op)->record);

    for (uint32_t i = 0; i < info->n_fields; i++) {
        const frit_field_info *field = &info->field[i];

        if (field->use == FRIT_USE_SHAPE ||
            (field->use == FRIT_USE_LAUNCH && field->type != FRIT_ATTR_REAL))
            return true;
    }
    return false;
}

static bool learn_same(struct tape *tape, const struct explorer *explorer,
                       const struct segment *segment, uint32_t n_calls)
{
    tape->same = arena_array(&tape->arena, (size_t)n_calls + 1, sizeof(*tape->same));
    tape->persistent = arena_array(&tape->arena, (size_t)n_calls + 1, sizeof(*tape->persistent));
    if (!tape->same || !tape->persistent)
        return false;
    for (uint32_t r = 0; r < n_calls; r++)
        tape->persistent[r] = segment->records[r]->persistent;
    tape->n_calls = n_calls;
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
            same->attrs_bytes = frit_record_info_at(op_row(record->op)->record)->size;
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
        add(&tape->asked, value->kind != TAPE_EXTERNAL && value->seg != SEGMENT_EXTERNAL, v);
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
    if (!learn_lists(tape))
        return false;
    return learn_words(tape, explorer, segment) && learn_same(tape, explorer, segment, n_calls) &&
           can_go_back(tape, &explorer->graph) && !tape->spoiled;
}

/* ---- playing ---- */

static bool same_scalars(const struct same_record *same, const struct op_record *record)
{
    for (uint32_t i = 0; i < same->n_in; i++) {
        if (same->in[i].kind == FRIT_OPERAND_SCALAR &&
            same->in[i].scalar.bits != record->in[i].scalar.bits)
            return false;
    }
    return !same->attrs_bytes || memcmp(same->attrs, record->attrs, same->attrs_bytes) == 0;
}

static bool same_layout(const struct tape_value *tape, const struct value *value)
{
    const struct op_type *a = &tape->type, *b = &value->type;

    if (a->dtype != b->dtype || a->rank != b->rank || tape->layout.offset != value->layout.offset)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d] || tape->layout.strides[d] != value->layout.strides[d])
            return false;
    }
    return true;
}

/* An operand as the tape had it, at a place of the same kind; sizes of buffers only matter for
 * their tails. */
static bool matches_external(struct tape_value *tape, const struct seg_value *from)
{
    const struct slot *slot = from->slot;
    const struct value *value;
    const struct buffer *buffer;

    if (slot && slot->state != SLOT_READY)
        return false;
    value = slot ? &slot->value : &from->alias->value;
    buffer = value->buffer;
    tape->buffer = value->buffer;
    if (!same_layout(tape, value) || buffer->bytes != tape->bytes || buffer->tail != tape->tail ||
        (buffer->offset == 0) != tape->start)
        return false;
    if (tape->last != (slot && slot->owners == 0 && slot->holds == 1))
        return false;
    return !tape->overwritten || (buffer_owners(buffer) == 1 && buffer_pins(buffer) == 0);
}

bool tape_matches(struct tape *tape, const struct segment *segment)
{
    for (uint32_t i = 0; i < tape->asked.count; i++) {
        const struct tape_value *value = &tape->values[tape->asked.list[i]];
        const struct slot *slot = segment->values[value->seg].slot;

        if (value->wanted != (slot->owners > 0 || slot->holds > 1))
            return false;
    }
    for (uint32_t i = 0; i < tape->external.count; i++) {
        struct tape_value *value = &tape->values[tape->external.list[i]];

        if (!matches_external(value, &segment->values[value->seg]))
            return false;
    }
    for (uint32_t r = 0; r < tape->n_calls; r++) {
        if (tape->persistent[r] != segment->records[r]->persistent)
            return false;
    }
    for (uint32_t i = 0; i < tape->n_same; i++) {
        if (!same_scalars(&tape->same[i], segment->records[tape->same[i].record]))
            return false;
    }
    return true;
}

/* Classes are part of what prepare answered. */
static bool write_words(struct played_launch *l, const struct segment *segment)
{
    for (uint32_t i = 0; i < l->n_words; i++) {
        const struct tape_words *w = &l->words[i];
        const struct op_record *record = segment->records[w->record];
        struct words to = {l->scalars + w->scalar, l->classes + w->scalar, l->bounds + w->bound, 0,
                           0};

        if (w->inner)
            words_random_again(record, &w->count, &to);
        else if (!words_again(record, &w->count, &to))
            return false;
    }
    return true;
}

/* False: a value made here begins where prepare did not see it begin. */
static bool write_args(struct tape *tape, struct played_launch *l)
{
    frit_arg *args = (frit_arg *)l->launch.args;

    for (uint32_t i = 0; i < l->launch.n_args; i++) {
        const struct buffer *buffer;

        if (l->args[i].value == GRAPH_NO_VALUE)
            continue;
        buffer = tape->values[l->args[i].value].buffer;
        args[i].memory = buffer->handle;
        args[i].offset = buffer->offset + l->args[i].first;
        if (i < l->n_in && (args[i].offset == 0) != !!(args[i].flags & FRIT_ARG_START))
            return false;
        if (i < l->n_in)
            continue;
        args[i].flags = args[i].offset == 0 ? args[i].flags | FRIT_ARG_START
                                            : args[i].flags & ~(uint64_t)FRIT_ARG_START;
        if (args[i].tail)
            args[i].tail = buffer->tail;
    }
    return true;
}

/* Gives back what died by the submit of this number; `from` counts the dying that are gone. */
static void drop_dead(struct tape *tape, uint32_t submits, uint32_t *from)
{
    for (; *from < tape->dying.count; ++*from) {
        struct tape_value *value = &tape->values[tape->dying.list[*from]];

        if (value->dies_after > submits)
            break;
        buffer_disown(value->buffer);
        value->buffer = NULL;
    }
}

static void drop_list(struct tape *tape, const struct tape_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        buffer_disown(tape->values[list->list[i]].buffer);
        tape->values[list->list[i]].buffer = NULL;
    }
}

static void drop_workspace(struct played_launch *l)
{
    buffer_disown(l->workspace);
    l->workspace = NULL;
}

static frit_status take_workspace(struct played_launch *l, frit_device *device, frit_err *err)
{
    if (!l->workspace_bytes)
        return FRIT_OK;
    TRY(buffer_create(device->memory, l->workspace_bytes, false, &l->workspace, err));
    l->launch.workspace = l->workspace->handle;
    l->launch.workspace_offset = l->workspace->offset;
    return FRIT_OK;
}

static frit_status take_memory(struct tape *tape, frit_device *device, frit_err *err)
{
    for (uint32_t i = 0; i < tape->shared.count; i++)
        tape->values[tape->shared.list[i]].buffer = NULL;
    for (uint32_t i = 0; i < tape->created.count; i++)
        tape->values[tape->created.list[i]].buffer = NULL;
    for (uint32_t i = 0; i < tape->created.count; i++) {
        struct tape_value *value = &tape->values[tape->created.list[i]];

        TRY(buffer_create(device->memory, value->bytes, value->persistent, &value->buffer, err));
    }
    for (uint32_t i = 0; i < tape->n_launches; i++)
        TRY(take_workspace(&tape->launches[i], device, err));
    for (uint32_t i = 0; i < tape->shared.count; i++) {
        struct tape_value *value = &tape->values[tape->shared.list[i]];

        value->buffer = tape->values[value->of].buffer;
        buffer_own(value->buffer);
    }
    return FRIT_OK;
}

static bool up_to_date(struct tape *tape)
{
    if (++tape->plays % LOOK_EVERY)
        return true;
    for (uint32_t i = 0; i < tape->n_launches; i++) {
        if (answers_have_grown(tape->launches[i].answers)) {
            tape->spoiled = true;
            return false;
        }
    }
    return true;
}

/* The commands of one launch. */
static frit_status add_cmds(struct tape *tape, struct played_launch *l, uint32_t *n, frit_err *err)
{
    const frit_program *program = l->launch.program;
    bool foreign = FRIT_HAS(program->table, frit_program_table, record) && program->table->record;
    uint32_t room = foreign ? 8 : 1, count = 1;
    frit_cmd *at;

    if (!array_grow(&tape->cmds, &tape->cmds_room, *n, room + 1, sizeof(*tape->cmds)))
        return fail_memory(err, sizeof(*tape->cmds));
    if (l->barrier)
        tape->cmds[(*n)++] = (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
    at = &tape->cmds[*n];
    for (uint32_t i = 0; i < room; i++)
        at[i] = (frit_cmd){.struct_size = sizeof(frit_cmd)};
    if (foreign) {
        TRY(program->table->record(program->self, &l->launch, at, room, &count, err));
        if (count > room || !launch_commands_known(at, count))
            return fail(err, FRIT_INTERNAL, "record gives other commands than before");
    } else {
        at->kind = FRIT_CMD_LAUNCH;
        at->launch = &l->launch;
    }
    *n += count;
    return FRIT_OK;
}

static void set_written(struct tape *tape, const struct played_launch *l, uint64_t value)
{
    for (uint32_t i = l->n_in; i < l->launch.n_args; i++) {
        if (l->args[i].value != GRAPH_NO_VALUE)
            atomic_store_explicit(&tape->values[l->args[i].value].buffer->last_write, value,
                                  memory_order_release);
    }
}

/* The launches from `from` up to the next submit. */
static frit_status play_submit(struct tape *tape, frit_device *device, uint32_t from, uint32_t *end,
                               uint64_t *value, frit_err *err)
{
    uint32_t n = 0, i = from;

    do
        TRY(add_cmds(tape, &tape->launches[i], &n, err));
    while (!tape->launches[i++].submit_after);
    TRY(device_submit(device, tape->cmds, n, value, err));
    *end = i;
    for (i = from; i < *end; i++) {
        drop_workspace(&tape->launches[i]);
        set_written(tape, &tape->launches[i], *value);
    }
    return FRIT_OK;
}

static frit_status play(struct tape *tape, frit_device *device, uint64_t *value, frit_err *err)
{
    uint32_t submits = 0, dropped = 0;

    for (uint32_t at = 0; at < tape->n_launches;) {
        TRY(play_submit(tape, device, at, &at, value, err));
        if (++submits < tape->n_submits)
            drop_dead(tape, submits, &dropped);
    }
    return FRIT_OK;
}

frit_status tape_play(struct tape *tape, frit_device *device, const struct segment *segment,
                      uint32_t stream, uint64_t *value)
{
    frit_err err = ERR_INIT;
    frit_status st = up_to_date(tape) ? FRIT_OK : FRIT_UNSUPPORTED;

    for (uint32_t i = 0; i < tape->n_launches && !st; i++) {
        struct played_launch *l = &tape->launches[i];

        if (!write_words(l, segment))
            st = FRIT_UNSUPPORTED;
        l->launch.cookie = (uint32_t)l->launch.cookie | (uint64_t)stream << 32;
    }
    if (st)
        return st;
    st = take_memory(tape, device, &err);
    for (uint32_t i = 0; i < tape->n_launches && !st; i++) {
        if (!write_args(tape, &tape->launches[i]))
            st = FRIT_INTERNAL;
    }
    if (!st)
        st = play(tape, device, value, &err);
    if (st) {
        tape->spoiled |= !launch_lacked_memory(st);
        for (uint32_t i = 0; i < tape->n_launches; i++)
            drop_workspace(&tape->launches[i]);
        drop_list(tape, &tape->created);
        drop_list(tape, &tape->shared);
    }
    return st;
}

struct failure *tape_failure(const struct tape *tape, frit_device *device, uint64_t value)
{
    struct failure *failure = device_poison_of(device, value);

    for (uint32_t i = 0; i < tape->external.count && !failure; i++) {
        const struct buffer *buffer = tape->values[tape->external.list[i]].buffer;

        failure = device_poison_of(device, atomic_load(&buffer->last_write));
    }
    return failure;
}

void tape_land(struct tape *tape, const struct segment *segment, struct failure *failure)
{
    for (uint32_t i = 0; i < tape->wanted.count; i++) {
        struct tape_value *value = &tape->values[tape->wanted.list[i]];
        struct slot *slot = segment->values[value->seg].slot;

        slot->value.layout = value->layout;
        slot->value.buffer = value->buffer;
        slot->state = SLOT_READY;
        value->buffer = NULL;
        if (failure)
            slot_set_failed(slot, failure_ref(failure));
    }
}

void tape_end(struct tape *tape)
{
    drop_list(tape, &tape->dying);
}

bool tape_is_spoiled(const struct tape *tape)
{
    return tape->spoiled;
}

uint32_t tape_launches(const struct tape *tape)
{
    return tape->n_launches;
}

uint32_t tape_blocks(const struct tape *tape)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < tape->n_launches; i++)
        count += tape->launches[i].block;
    return count;
}
