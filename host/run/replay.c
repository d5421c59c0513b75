/* SPDX-License-Identifier: Apache-2.0 */
/* During a replay the bound plan holds one ownership of each of its buffers.  At the end it passes
 * this ownership to one wanted value; other wanted values in the same buffer get ownerships of
 * their own.  A replay that fails before its first submit can therefore give all buffers back.
 * Writes into the memory of operands cannot be undone: a plan with such writes is one submit. */
#include "run/replay.h"

#include "base/array.h"
#include "base/err.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/lineage_batch.h"
#include "device/pending.h"
#include "device/prepared.h"
#include "device/profile.h"
#include "device/queue.h"
#include "device/submit_after.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/segment.h"
#include "run/bound_plan.h"
#include "run/capture.h"
#include "run/launch.h"
#include "run/mirror.h"
#include "run/replay_collective.h"
#include "run/replay_derived.h"
#include "run/replay_lineage.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

/* ---- scalars ---- */

/* False: a scalar is of another class than the launch was prepared for. */
static bool write_update(const struct bound_launch *l, const struct bound_scalars *update,
                         const struct recorded_op *record)
{
    struct launch_scalars to = {.scalars = l->scalars + update->scalar,
                                .classes = l->classes + update->scalar,
                                .bounds = l->bounds + update->bound};

    if (!update->in_composite)
        return launch_scalars_update(record, &update->count, &to);
    launch_scalars_update_random(record, &update->count, &to);
    return true;
}

static bool write_scalars(struct bound_launch *l, const struct segment *segment)
{
    for (uint32_t i = 0; i < l->n_updates; i++) {
        const struct bound_scalars *update = &l->updates[i];
        const struct recorded_op *record = segment->ops[update->record];

        /* The scalars of an application usually stay the same. */
        if (update->only_operand < record->n_in &&
            record->in[update->only_operand].scalar.bits == l->scalars[update->scalar].bits)
            continue;
        if (!write_update(l, update, record))
            return false;
    }
    return true;
}

/* ---- memory ---- */

/* False: whether an operand that this plan makes is at the start of its chunk has changed since the
 * launch was prepared. */
static bool write_args(struct bound_launch *l)
{
    frit_arg *args = (frit_arg *)l->launch.args;

    for (uint32_t i = 0; i < l->launch.n_args; i++) {
        const struct buffer *buffer;
        bool start;

        if (!l->args[i].current)
            continue;
        buffer = *l->args[i].current;
        args[i].memory = buffer->handle;
        args[i].offset = buffer->offset + l->args[i].first;
        start = buffer_starts(buffer, l->args[i].first);
        if (i < l->n_in && start != !!(args[i].flags & FRIT_ARG_START))
            return false;
        if (i < l->n_in)
            continue;
        args[i].flags = (args[i].flags & ~(uint64_t)FRIT_ARG_START) | (start ? FRIT_ARG_START : 0);
        if (args[i].tail)
            args[i].tail = buffer->tail;
    }
    return true;
}

static void write_workspaces(struct bound_launch *l)
{
    frit_derived *derived = (frit_derived *)l->launch.derived;
    uint32_t n = 0;

    if (l->launch.workspace) {
        const struct buffer *workspace = *l->workspaces[n++].current;

        l->launch.workspace = workspace->handle;
        l->launch.workspace_offset = workspace->offset;
    }
    for (uint32_t i = 0; i < l->launch.n_derived; i++) {
        const struct bound_derived *use = &l->derived[i];
        const struct buffer *memory = use->kept ? use->memory : *l->workspaces[n++].current;

        derived[i] = (frit_derived){memory->handle, memory->offset, !use->kept || use->fill, 0};
        ((frit_arg *)l->launch.args)[use->arg].content_id = use->content;
    }
}

static bool write_addresses(struct bound_plan *bound, uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end; i++) {
        if (!write_args(&bound->launches[i]))
            return false;
        if (bound->launches[i].n_workspaces || bound->launches[i].launch.n_derived)
            write_workspaces(&bound->launches[i]);
    }
    return true;
}

/* Gives the first `n` buffers back. */
static void drop_memory(struct bound_plan *bound, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        buffer_disown(bound->buffers[bound->made.list[i]].buffer);
}

static frit_status take_memory(struct bound_plan *bound, frit_device *device, frit_err *err)
{
    for (uint32_t i = 0; i < bound->made.count; i++) {
        struct bound_buffer *buffer = &bound->buffers[bound->made.list[i]];
        frit_status st =
            buffer_create(device->memory, buffer->bytes, buffer->persistent, &buffer->buffer, err);

        if (st) {
            drop_memory(bound, i);
            return st;
        }
    }
    return FRIT_OK;
}

static void drop_parts(struct bound_plan *bound, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        buffer_disown(bound->values[bound->in_buckets.list[i]].buffer);
}

/* Of memory that was taken. */
static frit_status take_parts(struct bound_plan *bound, frit_err *err)
{
    for (uint32_t i = 0; i < bound->in_buckets.count; i++) {
        struct bound_value *value = &bound->values[bound->in_buckets.list[i]];
        const struct bound_buffer *whole = &bound->buffers[value->bucket];
        frit_status st = buffer_part(bound->buffers[whole->memory_of].buffer, value->bucket_first,
                                     value->bytes, &value->buffer, err);

        if (st) {
            drop_parts(bound, i);
            drop_memory(bound, bound->made.count);
            return st;
        }
    }
    return FRIT_OK;
}

/* Gives back the buffers whose last use is in the first `submits` submits. */
static void drop_dead(struct bound_plan *bound, uint32_t submits)
{
    for (; bound->n_dropped < bound->dying.count; bound->n_dropped++) {
        const struct bound_buffer *buffer = &bound->buffers[bound->dying.list[bound->n_dropped]];

        if (buffer->dies_after > submits)
            break;
        buffer_disown(buffer->buffer);
    }
}

/* ---- commands ---- */

/* Called when a serial has changed.  Returns true if candidates and prepared code of all launches
 * are still up to date, else spoils the plan. */
static bool check_programs(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_serials; i++) {
        struct bound_serial *serial = &bound->serials[i];
        const uint64_t now = __atomic_load_n(serial->at, __ATOMIC_ACQUIRE);

        if (serial->decides && now != serial->seen) {
            bound->spoiled = true;
            return false;
        }
        serial->seen = now;
    }
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        if (!bound->launches[i].collective && prepared_is_outdated(bound->launches[i].prepared)) {
            bound->spoiled = true;
            return false;
        }
    }
    return true;
}

static bool programs_are_current(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_serials; i++) {
        if (__atomic_load_n(bound->serials[i].at, __ATOMIC_RELAXED) != bound->serials[i].seen)
            return check_programs(bound);
    }
    return true;
}

static frit_cmd barrier(void)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
}

static void add_zeroing(struct bound_plan *bound, const struct bound_launch *l, uint32_t *n)
{
    bound->cmds[(*n)++] = (frit_cmd){.struct_size = sizeof(frit_cmd),
                                     .kind = FRIT_CMD_FILL,
                                     .dst = l->launch.workspace,
                                     .dst_offset = l->launch.workspace_offset,
                                     .bytes = l->zeroed_bytes,
                                     .pattern_bytes = 1};
    bound->cmds[(*n)++] = barrier();
}

/* Appends the commands of one launch, after a BARRIER if it is `fenced`. */
static frit_status add_cmds(struct bound_plan *bound, const frit_device *device,
                            struct bound_launch *l, bool fenced, uint32_t *n, frit_err *err)
{
    const frit_program *program = l->launch.program;
    bool own_commands =
        FRIT_HAS(program->table, frit_program_table, record) && program->table->record;
    uint32_t capacity = l->n_cmds, count = 1;
    frit_cmd *at;

    if (!array_grow(&bound->cmds, &bound->cmds_capacity, *n, capacity + 3, sizeof(*bound->cmds)))
        return fail_memory(err, sizeof(*bound->cmds));
    if (fenced)
        bound->cmds[(*n)++] = barrier();
    if (l->zeroed_bytes)
        add_zeroing(bound, l, n);
    at = &bound->cmds[*n];
    for (uint32_t i = 0; i < capacity; i++)
        at[i] = (frit_cmd){.struct_size = sizeof(frit_cmd)};
    if (own_commands) {
        TRY(fail_from(err,
                      program->table->record(program->self, &l->launch, at, capacity, &count, err),
                      "record"));
        if (count != capacity)
            return fail(err, FRIT_INTERNAL,
                        "record returned a different number of commands than before");
        TRY(launch_check_commands(device, at, count, err));
    } else {
        at->kind = FRIT_CMD_LAUNCH;
        at->launch = &l->launch;
    }
    *n += count;
    return FRIT_OK;
}

static void set_written(const struct bound_launch *l, uint64_t point)
{
    for (uint32_t i = l->n_in; i < l->launch.n_args; i++) {
        struct buffer *buffer;

        if (!l->args[i].current)
            continue;
        buffer = *l->args[i].current;
        atomic_store_explicit(&buffer->last_write, point, memory_order_release);
        buffer_changed(buffer);
        if (buffer->whole) {
            atomic_store_explicit(&buffer->whole->last_write, point, memory_order_release);
            buffer_changed(buffer->whole);
        }
    }
}

/* ---- other queues ---- */

static void add_waits(const struct bound_launch *l, struct points *after)
{
    for (uint32_t i = 0; i < l->launch.n_args; i++) {
        if (l->args[i].current)
            buffer_add_waits(*l->args[i].current, i < l->n_in, after);
    }
    for (uint32_t i = 0; i < l->n_workspaces; i++)
        buffer_add_waits(*l->workspaces[i].current, false, after);
    for (uint32_t i = 0; i < l->launch.n_derived; i++) {
        if (l->derived[i].kept)
            buffer_add_waits(l->derived[i].memory, !l->derived[i].fill, after);
    }
}

static void set_used(const struct bound_launch *l, uint64_t point)
{
    for (uint32_t i = 0; i < l->launch.n_args; i++) {
        if (l->args[i].current)
            buffer_use(*l->args[i].current, point);
    }
    for (uint32_t i = 0; i < l->n_workspaces; i++)
        buffer_use(*l->workspaces[i].current, point);
    for (uint32_t i = 0; i < l->launch.n_derived; i++) {
        if (!l->derived[i].kept)
            continue;
        buffer_use(l->derived[i].memory, point);
        if (l->derived[i].fill)
            atomic_store(&l->derived[i].memory->last_write, point);
    }
}

/* ---- submits ---- */

static bool ends_submit(const struct bound_plan *bound, uint32_t launch)
{
    if (bound->one_submit)
        return launch + 1 == bound->n_launches || bound->launches[launch + 1].collective;
    return bound->launches[launch].submit_after;
}

/* The end (exclusive) of the launches from `from` on that go into one submit; a collective stands
 * alone. */
static uint32_t submit_end(const struct bound_plan *bound, uint32_t from)
{
    while (!bound->launches[from].collective && !ends_submit(bound, from))
        from++;
    return from + 1;
}

static frit_status make_cmds(struct bound_plan *bound, const frit_device *device, uint32_t from,
                             uint32_t end, uint32_t *n, frit_err *err)
{
    for (uint32_t i = from; i < end; i++) {
        bool barrier =
            bound->launches[i].barrier || (i > from && bound->launches[i - 1].submit_after);

        TRY(add_cmds(bound, device, &bound->launches[i], barrier, n, err));
    }
    return FRIT_OK;
}

/* Submits the driver's recording of these launches, if there is one or it can be made now; else the
 * commands.  A recording that cannot be submitted is dropped. */
static frit_status submit_launches(struct bound_plan *bound, const struct replay_range *range,
                                   uint64_t *point, frit_err *err)
{
    uint32_t from = range->from, end = range->end, n = 0;
    frit_device *device = range->device;
    bool measured = profile_is_on(device->profile); /* timestamps go between the commands */

    if (!capture_fits(bound, device, from)) {
        TRY(make_cmds(bound, device, from, end, &n, err));
        if (!measured)
            capture_record(bound, range, bound->cmds, n);
    }
    if (capture_fits(bound, device, from)) {
        frit_status st = measured ? FRIT_BUSY : capture_replay(bound, range, point, err);

        if (!st)
            bound->n_captured += end - from;
        if (!st || st == FRIT_DEVICE_LOST)
            return st;
        capture_drop(bound, from);
        if (!write_addresses(bound, from, end))
            return fail(
                err, FRIT_INTERNAL,
                "a value is at another place in its chunk than the launch was prepared for");
    }
    if (n == 0)
        TRY(make_cmds(bound, device, from, end, &n, err));
    return device_submit(device, range->queue, bound->cmds, n, range->after, point, err);
}

static frit_status submit_next(struct bound_plan *bound, frit_device *device, uint32_t stream,
                               uint32_t from, struct failure **late, frit_err *err)
{
    bool one_queue = device->n_queues == 1;
    struct lineage_batch batch = {0};
    uint32_t end = submit_end(bound, from);
    struct submit_after after = {0};
    const struct replay_range range = {device, queue_of_stream(device, stream), from, end, &after};
    uint64_t point = 0;
    frit_status st;

    for (uint32_t i = from; i < end; i++)
        after.effects |= bound->launches[i].effects;
    for (uint32_t i = from; i < end && !one_queue; i++)
        add_waits(&bound->launches[i], &after.points);
    replay_enter_lineage(bound, device, from, end, stream, &batch);
    st = submit_launches(bound, &range, &point, err);
    if (st == FRIT_NO_DEVICE_MEMORY && from) {
        memory_trim(device->memory, false);
        st = submit_launches(bound, &range, &point, err);
    }
    if (batch.first)
        lineage_end(device->lineage, &batch, 0, st ? 0 : point);
    if (st)
        return st;
    for (uint32_t i = from; i < end && !one_queue; i++)
        set_used(&bound->launches[i], point);
    for (uint32_t i = from; i < end; i++)
        set_written(&bound->launches[i], point);
    replay_check_inline(bound, device, from, end, point, late);
    replay_publish_derived(bound, from, end);
    return FRIT_OK;
}

static frit_status submit_all(struct bound_plan *bound, frit_device *device, uint32_t stream,
                              struct failure **late, frit_err *err)
{
    uint32_t submits = 0;

    bound->n_dropped = 0;
    for (uint32_t at = 0; at < bound->n_launches; at = submit_end(bound, at)) {
        frit_status st = FRIT_OK;

        if (bound->launches[at].collective)
            replay_collective(bound, device, at, late);
        else
            st = submit_next(bound, device, stream, at, late, err);

        if (st && submits == 0)
            return st;
        if (st) {
            replay_give_up(bound, at, err);
            replay_fail_rest(bound, device, at, late, err);
            return FRIT_OK;
        }
        if (++submits < bound->n_submits && !bound->one_submit)
            drop_dead(bound, submits);
    }
    return FRIT_OK;
}

bool replay_await(const struct bound_plan *bound, frit_device *device)
{
    bool may = true;

    for (uint32_t i = 0; i < bound->external.count; i++) {
        const struct bound_value *value = &bound->values[bound->external.list[i]];

        if (!buffer_is_pending(value->buffer))
            continue;
        pending_wait(device->pending, value->buffer);
        may &= !value->overwritten || buffer_pins(value->buffer) == 0;
    }
    for (uint32_t i = 0; i < bound->assigned.count; i++)
        pending_wait(device->pending, bound->values[bound->assigned.list[i]].buffer);
    return may;
}

bool replay_fetch(const struct bound_plan *bound, frit_device *device)
{
    for (uint32_t i = 0; i < bound->external.count && device->fallback; i++) {
        struct buffer *buffer = bound->values[bound->external.list[i]].buffer;

        if (buffer_is_away(buffer) && mirror_fetch(device, buffer, NULL))
            return false;
    }
    return true;
}

bool replay_is_sound(struct bound_plan *bound, frit_device *device)
{
    uint64_t n_disabled = atomic_load_explicit(&device->count.disabled, memory_order_relaxed);

    if (bound->n_disabled != n_disabled) {
        bound->n_disabled = n_disabled;
        bound->spoiled |= replay_is_disabled(bound);
    }
    if (bound->spoiled || !atomic_load(&device->n_spoiled))
        return !bound->spoiled;
    for (uint32_t i = 0; i < bound->external.count; i++) {
        if (atomic_load(&bound->values[bound->external.list[i]].buffer->failure))
            return false;
    }
    return true;
}

static bool write_launches(struct bound_plan *bound, const struct segment *segment)
{
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        if (!write_scalars(&bound->launches[i], segment))
            return false;
    }
    return true;
}

/* Writes the addresses of launches without a recording; capture_replay passes those of the others
 * to the recording. */
static bool write_all_addresses(struct bound_plan *bound, const frit_device *device)
{
    for (uint32_t at = 0, end; at < bound->n_launches; at = end) {
        end = submit_end(bound, at);
        if (!capture_fits(bound, device, at) && !write_addresses(bound, at, end))
            return false;
    }
    return true;
}

frit_status replay_run(struct bound_plan *bound, frit_device *device, const struct segment *segment,
                       uint32_t stream, struct failure **late)
{
    frit_err err;
    frit_status st;

    err_init(&err);
    *late = NULL;
    bound->n_captured = 0;
    bound->one_submit = capture_is_one_submit(bound, device);
    if (!programs_are_current(bound) || !write_launches(bound, segment))
        return FRIT_UNSUPPORTED;
    st = take_memory(bound, device, &err);
    if (!st)
        st = take_parts(bound, &err);
    if (st)
        return st;
    st = replay_take_derived(bound, device, &err);
    if (st) {
        drop_parts(bound, bound->in_buckets.count);
        drop_memory(bound, bound->made.count);
        return st;
    }
    replay_note_writers(bound, device);
    st = write_all_addresses(bound, device) ? submit_all(bound, device, stream, late, &err)
                                            : FRIT_INTERNAL;
    if (st) {
        bound->spoiled |= !launch_lacked_memory(st);
        replay_restore_writers(bound, device);
        drop_memory(bound, bound->made.count);
    } else {
        replay_count_derived(bound, device);
    }
    bound->n_replays += !st;
    drop_parts(bound, bound->in_buckets.count);
    replay_drop_derived(bound);
    return st;
}

void replay_publish(struct bound_plan *bound, const struct segment *segment,
                    struct failure *failure)
{
    for (uint32_t i = 0; i < bound->wanted.count; i++) {
        const struct bound_value *value = &bound->values[bound->wanted.list[i]];
        struct slot *slot = segment->values[value->segment_value].slot;

        slot->value.layout = value->layout;
        slot->value.buffer = *value->at.current;
        if (!value->takes_owner)
            buffer_own(slot->value.buffer);
        slot->state = SLOT_READY;
        if (failure && atomic_load(&slot->value.buffer->failure))
            slot_set_failed(slot, failure_ref(failure));
    }
}

void replay_end(struct bound_plan *bound)
{
    drop_dead(bound, UINT32_MAX);
}
