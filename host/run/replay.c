/* SPDX-License-Identifier: Apache-2.0 */
/* Every made value owns its buffer once, however it came by it: created, or shared with another
 * value whose memory it took or is a view of.  So a run that is given up gives all of them back;
 * only writes into the memory of operands could not be undone, and these are allowed where there is
 * one submit. */
#include "run/replay.h"

#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "device/label.h"
#include "run/bound_plan.h"

enum { LOOK_EVERY = 64 }; /* plays between two looks at the generation of a program */

/* ---- does it fit ---- */

static bool same_scalars(const struct same_record *same, const struct recorded_op *record)
{
    for (uint32_t i = 0; i < same->n_in; i++) {
        if (same->in[i].kind == FRIT_OPERAND_SCALAR &&
            same->in[i].scalar.bits != record->in[i].scalar.bits)
            return false;
    }
    return !same->attrs_bytes || memcmp(same->attrs, record->attrs, same->attrs_bytes) == 0;
}

static bool same_layout(const struct bound_value *bound, const struct value *value)
{
    const struct op_type *a = &bound->type, *b = &value->type;

    if (a->dtype != b->dtype || a->rank != b->rank || bound->layout.offset != value->layout.offset)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d] || bound->layout.strides[d] != value->layout.strides[d])
            return false;
    }
    return true;
}

/* An operand as the bound had it, at a place of the same kind, in a buffer of the same size: what
 * lies behind it is its or not. */
static bool matches_external(struct bound_value *bound, const struct seg_value *from)
{
    const struct slot *slot = from->slot;
    const struct value *value;
    const struct buffer *buffer;

    if (slot && slot->state != SLOT_READY)
        return false;
    value = slot ? &slot->value : &from->alias->value;
    buffer = value->buffer;
    bound->buffer = value->buffer;
    if (!same_layout(bound, value) || buffer->bytes != bound->bytes ||
        (buffer->offset == 0) != bound->start)
        return false;
    if (bound->last != (slot && slot->owners == 0 && slot->holds == 1))
        return false;
    return !bound->overwritten || (buffer_owners(buffer) == 1 && buffer_pins(buffer) == 0);
}

static bool same_persistence(const struct bound_plan *bound, const struct segment *segment)
{
    if (!bound->persistent)
        return !segment->persistent;
    for (uint32_t r = 0; r < bound->n_calls; r++) {
        if (bound->persistent[r] != segment->ops[r]->persistent)
            return false;
    }
    return true;
}

bool replay_matches(struct bound_plan *bound, const struct segment *segment)
{
    for (uint32_t i = 0; i < bound->asked.count; i++) {
        const struct bound_value *value = &bound->values[bound->asked.list[i]];
        const struct slot *slot = segment->values[value->seg].slot;

        if (value->wanted != (slot->owners > 0 || slot->holds > 1))
            return false;
    }
    for (uint32_t i = 0; i < bound->external.count; i++) {
        struct bound_value *value = &bound->values[bound->external.list[i]];

        if (!matches_external(value, &segment->values[value->seg]))
            return false;
    }
    if (!same_persistence(bound, segment))
        return false;
    for (uint32_t i = 0; i < bound->n_same; i++) {
        if (!same_scalars(&bound->same[i], segment->ops[bound->same[i].record]))
            return false;
    }
    return true;
}

/* Classes are part of what prepare answered. */
static bool write_update(const struct bound_launch *l, const struct bound_scalars *w,
                         const struct recorded_op *record)
{
    struct launch_scalars to = {.scalars = l->scalars + w->scalar,
                                .classes = l->classes + w->scalar,
                                .bounds = l->bounds + w->bound};

    if (!w->inner)
        return launch_scalars_update(record, &w->count, &to);
    launch_scalars_update_random(record, &w->count, &to);
    return true;
}

static bool write_scalars(struct bound_launch *l, const struct segment *segment)
{
    for (uint32_t i = 0; i < l->n_updates; i++) {
        const struct bound_scalars *w = &l->updates[i];
        const struct recorded_op *record = segment->ops[w->record];

        /* As a rule a program's numbers are what they were. */
        if (w->alone < record->n_in &&
            record->in[w->alone].scalar.bits == l->scalars[w->scalar].bits)
            continue;
        if (!write_update(l, w, record))
            return false;
    }
    return true;
}

/* False: a value made here begins where prepare did not see it begin. */
static bool write_args(struct bound_plan *bound, struct bound_launch *l)
{
    frit_arg *args = (frit_arg *)l->launch.args;

    for (uint32_t i = 0; i < l->launch.n_args; i++) {
        const struct buffer *buffer;

        if (l->args[i].value == GRAPH_NO_VALUE)
            continue;
        buffer = bound->values[l->args[i].value].buffer;
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
static void drop_dead(struct bound_plan *bound, uint32_t submits, uint32_t *from)
{
    for (; *from < bound->dying.count; ++*from) {
        struct bound_value *value = &bound->values[bound->dying.list[*from]];

        if (value->dies_after > submits)
            break;
        buffer_disown(value->buffer);
        value->buffer = NULL;
    }
}

static void drop_list(struct bound_plan *bound, const struct bound_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        buffer_disown(bound->values[list->list[i]].buffer);
        bound->values[list->list[i]].buffer = NULL;
    }
}

static void drop_workspace(struct bound_launch *l)
{
    buffer_disown(l->workspace);
    l->workspace = NULL;
}

static frit_status take_workspace(struct bound_launch *l, frit_device *device, frit_err *err)
{
    if (!l->workspace_bytes)
        return FRIT_OK;
    TRY(buffer_create(device->memory, l->workspace_bytes, false, &l->workspace, err));
    l->launch.workspace = l->workspace->handle;
    l->launch.workspace_offset = l->workspace->offset;
    return FRIT_OK;
}

static frit_status take_memory(struct bound_plan *bound, frit_device *device, frit_err *err)
{
    for (uint32_t i = 0; i < bound->created.count; i++) {
        struct bound_value *value = &bound->values[bound->created.list[i]];

        TRY(buffer_create(device->memory, value->bytes, value->persistent, &value->buffer, err));
    }
    for (uint32_t i = 0; i < bound->n_launches; i++)
        TRY(take_workspace(&bound->launches[i], device, err));
    for (uint32_t i = 0; i < bound->shared.count; i++) {
        struct bound_value *value = &bound->values[bound->shared.list[i]];

        value->buffer = bound->values[value->of].buffer;
        buffer_own(value->buffer);
    }
    return FRIT_OK;
}

static void note_writers(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->external.count; i++) {
        struct bound_value *value = &bound->values[bound->external.list[i]];

        if (value->overwritten)
            value->writer = atomic_load(&value->buffer->writer);
    }
}

static void restore_writers(struct bound_plan *bound, frit_device *device)
{
    for (uint32_t i = 0; i < bound->external.count; i++) {
        struct bound_value *value = &bound->values[bound->external.list[i]];

        if (value->overwritten && atomic_load(&value->buffer->writer) != value->writer)
            lineage_restore(device->lineage, value->buffer, value->writer);
    }
}

static bool up_to_date(struct bound_plan *bound)
{
    if (++bound->plays % LOOK_EVERY)
        return true;
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        if (prepared_cache_outdated(bound->launches[i].cache)) {
            bound->spoiled = true;
            return false;
        }
    }
    return true;
}

/* The commands of one launch. */
static frit_status add_cmds(struct bound_plan *bound, struct bound_launch *l, uint32_t *n,
                            frit_err *err)
{
    const frit_program *program = l->launch.program;
    bool foreign = FRIT_HAS(program->table, frit_program_table, record) && program->table->record;
    uint32_t capacity = foreign ? 8 : 1, count = 1;
    frit_cmd *at;

    if (!array_grow(&bound->cmds, &bound->cmds_capacity, *n, capacity + 1, sizeof(*bound->cmds)))
        return fail_memory(err, sizeof(*bound->cmds));
    if (l->barrier)
        bound->cmds[(*n)++] = (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
    at = &bound->cmds[*n];
    for (uint32_t i = 0; i < capacity; i++)
        at[i] = (frit_cmd){.struct_size = sizeof(frit_cmd)};
    if (foreign) {
        TRY(program->table->record(program->self, &l->launch, at, capacity, &count, err));
        if (count > capacity || !launch_commands_known(at, count))
            return fail(err, FRIT_INTERNAL, "record gives other commands than before");
    } else {
        at->kind = FRIT_CMD_LAUNCH;
        at->launch = &l->launch;
    }
    *n += count;
    return FRIT_OK;
}

static void set_written(struct bound_plan *bound, const struct bound_launch *l, uint64_t value)
{
    for (uint32_t i = l->n_in; i < l->launch.n_args; i++) {
        if (l->args[i].value != GRAPH_NO_VALUE)
            atomic_store_explicit(&bound->values[l->args[i].value].buffer->last_write, value,
                                  memory_order_release);
    }
}

static struct buffer *arg_buffer(const struct bound_plan *bound, const struct bound_launch *l,
                                 uint32_t i)
{
    return l->args[i].value == GRAPH_NO_VALUE ? NULL : bound->values[l->args[i].value].buffer;
}

/* ---- what depends on what, see device/lineage.h ---- */

static atomic_bool *disabled_flag(const struct bound_launch *l)
{
    return l->block ? &plan_program_of(l->launch.program)->disabled : NULL;
}

static void enter_launch(const struct bound_plan *bound, struct bound_launch *l,
                         struct lineage *lineage, uint32_t stream, struct lineage_batch *batch)
{
    const struct lineage_launch launch = {
        .stream = stream, .label = lineage_label(l->launch.cookie), .disabled = disabled_flag(l)};

    l->launch.cookie = lineage_launch(lineage, batch, &launch);
    for (uint32_t i = 0; i < l->launch.n_args; i++) {
        struct buffer *buffer = arg_buffer(bound, l, i);

        if (buffer && i < l->n_in)
            lineage_reads(lineage, buffer);
        else if (buffer)
            lineage_writes(lineage, buffer);
    }
}

static void enter_launches(struct bound_plan *bound, frit_device *device, uint32_t from,
                           uint32_t end, uint32_t stream, struct lineage_batch *batch)
{
    if (!lineage_is_needed(device))
        return;
    lineage_enter(device->lineage);
    for (uint32_t i = from; i < end; i++)
        enter_launch(bound, &bound->launches[i], device->lineage, stream, batch);
    lineage_leave(device->lineage);
}

/* The submit itself failed: spoils what its launches were to write. */
static void look_inside(struct bound_plan *bound, frit_device *device, uint32_t from, uint32_t end,
                        uint64_t value)
{
    struct failure *failure;

    if (!(device->info->caps & FRIT_CAP_INLINE_QUEUE) || lineage_known(device->lineage) < value)
        return;
    failure = lineage_failure_at(device->lineage, value);
    for (uint32_t i = from; i < end && failure; i++) {
        struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = l->n_in; k < l->launch.n_args; k++) {
            if (arg_buffer(bound, l, k))
                lineage_spoil(device->lineage, arg_buffer(bound, l, k), failure);
        }
        if (l->block && !atomic_exchange(disabled_flag(l), true))
            device_note_disabled(device,
                                 label_text(device->labels, lineage_label(l->launch.cookie)),
                                 "a command of it failed");
    }
    if (bound->late_failure)
        failure_unref(failure);
    else
        bound->late_failure = failure;
}

/* The launches from `from` up to the next submit. */
static frit_status play_submit(struct bound_plan *bound, frit_device *device, uint32_t stream,
                               uint32_t from, uint32_t *end, frit_err *err)
{
    struct lineage_batch batch = {0};
    uint64_t value = 0;
    uint32_t n = 0;
    frit_status st = FRIT_OK;

    for (*end = from; !bound->launches[*end].submit_after;)
        ++*end;
    ++*end;
    enter_launches(bound, device, from, *end, stream, &batch);
    for (uint32_t i = from; i < *end && !st; i++)
        st = add_cmds(bound, &bound->launches[i], &n, err);
    if (!st)
        st = device_submit(device, bound->cmds, n, &value, err);
    lineage_end(device->lineage, &batch, 0, st ? 0 : value);
    if (st)
        return st;
    for (uint32_t i = from; i < *end; i++) {
        drop_workspace(&bound->launches[i]);
        set_written(bound, &bound->launches[i], value);
    }
    look_inside(bound, device, from, *end, value);
    return FRIT_OK;
}

static frit_status play(struct bound_plan *bound, frit_device *device, uint32_t stream,
                        frit_err *err)
{
    uint32_t submits = 0, dropped = 0;

    for (uint32_t at = 0; at < bound->n_launches;) {
        TRY(play_submit(bound, device, stream, at, &at, err));
        if (++submits < bound->n_submits)
            drop_dead(bound, submits, &dropped);
    }
    return FRIT_OK;
}

static bool has_disabled_block(const struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        const atomic_bool *disabled = disabled_flag(&bound->launches[i]);

        if (disabled && atomic_load(disabled))
            return true;
    }
    return false;
}

bool replay_is_sound(struct bound_plan *bound, frit_device *device)
{
    uint64_t n_disabled = atomic_load_explicit(&device->count.disabled, memory_order_relaxed);

    if (bound->n_disabled != n_disabled) {
        bound->n_disabled = n_disabled;
        bound->spoiled |= has_disabled_block(bound);
    }
    if (bound->spoiled || !atomic_load(&device->n_spoiled))
        return !bound->spoiled;
    for (uint32_t i = 0; i < bound->external.count; i++) {
        if (atomic_load(&bound->values[bound->external.list[i]].buffer->failure))
            return false;
    }
    return true;
}

frit_status replay_run(struct bound_plan *bound, frit_device *device, const struct segment *segment,
                       uint32_t stream)
{
    frit_err err = ERR_INIT;
    frit_status st = up_to_date(bound) ? FRIT_OK : FRIT_UNSUPPORTED;

    for (uint32_t i = 0; i < bound->n_launches && !st; i++) {
        struct bound_launch *l = &bound->launches[i];

        if (!write_scalars(l, segment))
            st = FRIT_UNSUPPORTED;
    }
    if (st)
        return st;
    note_writers(bound);
    st = take_memory(bound, device, &err);
    for (uint32_t i = 0; i < bound->n_launches && !st; i++) {
        if (!write_args(bound, &bound->launches[i]))
            st = FRIT_INTERNAL;
    }
    if (!st)
        st = play(bound, device, stream, &err);
    if (st) {
        bound->spoiled |= !launch_lacked_memory(st);
        for (uint32_t i = 0; i < bound->n_launches; i++)
            drop_workspace(&bound->launches[i]);
        restore_writers(bound, device);
        drop_list(bound, &bound->created);
        drop_list(bound, &bound->shared);
    }
    return st;
}

struct failure *replay_failure(struct bound_plan *bound, frit_device *device)
{
    struct failure *failure = bound->late_failure;

    bound->late_failure = NULL;
    if (!atomic_load(&device->n_spoiled))
        return failure;
    for (uint32_t i = 0; i < bound->wanted.count && !failure; i++)
        failure = lineage_failure_of(device->lineage, bound->values[bound->wanted.list[i]].buffer);
    return failure;
}

void replay_publish(struct bound_plan *bound, const struct segment *segment,
                    struct failure *failure)
{
    for (uint32_t i = 0; i < bound->wanted.count; i++) {
        struct bound_value *value = &bound->values[bound->wanted.list[i]];
        struct slot *slot = segment->values[value->seg].slot;

        slot->value.layout = value->layout;
        slot->value.buffer = value->buffer;
        slot->state = SLOT_READY;
        value->buffer = NULL;
        if (failure && atomic_load(&slot->value.buffer->failure))
            slot_set_failed(slot, failure_ref(failure));
    }
}

void replay_end(struct bound_plan *bound)
{
    drop_list(bound, &bound->dying);
}

bool bound_plan_is_spoiled(const struct bound_plan *bound)
{
    return bound->spoiled;
}

uint32_t bound_plan_launches(const struct bound_plan *bound)
{
    return bound->n_launches;
}

uint32_t bound_plan_blocks(const struct bound_plan *bound)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < bound->n_launches; i++)
        count += bound->launches[i].block;
    return count;
}
