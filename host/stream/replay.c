/* SPDX-License-Identifier: Apache-2.0 */
/* Every made value owns its buffer once, however it came by it: created, or shared with another
 * value whose memory it took or is a view of.  So a run that is given up gives all of them back;
 * only writes into the memory of operands could not be undone, and these are allowed where there is
 * one submit. */
#include "stream/replay.h"

#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "stream/label.h"
#include "stream/tape.h"

enum { LOOK_EVERY = 64 }; /* plays between two looks at the generation of a program */

/* ---- does it fit ---- */

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

/* An operand as the tape had it, at a place of the same kind, in a buffer of the same size: what
 * lies behind it is its or not. */
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
    if (!same_layout(tape, value) || buffer->bytes != tape->bytes ||
        (buffer->offset == 0) != tape->start)
        return false;
    if (tape->last != (slot && slot->owners == 0 && slot->holds == 1))
        return false;
    return !tape->overwritten || (buffer_owners(buffer) == 1 && buffer_pins(buffer) == 0);
}

static bool same_persistence(const struct tape *tape, const struct segment *segment)
{
    if (!tape->persistent)
        return !segment->persistent;
    for (uint32_t r = 0; r < tape->n_calls; r++) {
        if (tape->persistent[r] != segment->records[r]->persistent)
            return false;
    }
    return true;
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
    if (!same_persistence(tape, segment))
        return false;
    for (uint32_t i = 0; i < tape->n_same; i++) {
        if (!same_scalars(&tape->same[i], segment->records[tape->same[i].record]))
            return false;
    }
    return true;
}

/* Classes are part of what prepare answered. */
static bool write_word(const struct played_launch *l, const struct tape_words *w,
                       const struct op_record *record)
{
    struct words to = {.scalars = l->scalars + w->scalar,
                       .classes = l->classes + w->scalar,
                       .bounds = l->bounds + w->bound};

    if (!w->inner)
        return words_again(record, &w->count, &to);
    words_random_again(record, &w->count, &to);
    return true;
}

static bool write_words(struct played_launch *l, const struct segment *segment)
{
    for (uint32_t i = 0; i < l->n_words; i++) {
        const struct tape_words *w = &l->words[i];
        const struct op_record *record = segment->records[w->record];

        /* As a rule a program's numbers are what they were. */
        if (w->alone < record->n_in &&
            record->in[w->alone].scalar.bits == l->scalars[w->scalar].bits)
            continue;
        if (!write_word(l, w, record))
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

static bool a_block_failed(const struct tape *tape, frit_device *device)
{
    for (uint32_t i = 0; i < tape->n_launches; i++) {
        const struct played_launch *l = &tape->launches[i];

        if (l->block && label_has_failed(device->labels, (uint32_t)l->launch.cookie))
            return true;
    }
    return false;
}

bool tape_is_sound(struct tape *tape, frit_device *device)
{
    struct failure *failure;

    if (!atomic_load(&device->n_poisons))
        return true;
    tape->spoiled |= a_block_failed(tape, device);
    failure = tape_failure(tape, device, 0);
    failure_unref(failure);
    return !tape->spoiled && !failure;
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
