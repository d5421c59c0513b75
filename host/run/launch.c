/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to its command: the parts in order.  Everything that is only needed until the submit
 * returned lies in the batch's arena. */
#include "run/launch.h"

#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/label.h"
#include "device/limits.h"
#include "device/lineage.h"
#include "device/prepared.h"
#include "device/programs.h"
#include "plan/program.h"
#include "run/assign.h"
#include "run/batch.h"
#include "run/bind_args.h"
#include "run/bind_derived.h"
#include "run/bound_plan.h"
#include "run/frame.h"
#include "run/frame_batch.h"
#include "run/launch_parts.h"
#include "run/prepare.h"
#include "tensor/value.h"

struct launch_call launch_call_of_block(struct frame *frame, const struct frame_step *step)
{
    return (struct launch_call){.frame = frame,
                                .program = step->program,
                                .label = step->label,
                                .block = true,
                                .ops = step->ops,
                                .n_ops = step->n_ops,
                                .n_in = step->n_in,
                                .n_out = step->n_out,
                                .in = step->in,
                                .out = step->out};
}

uint64_t launch_align(const struct launch *l)
{
    const frit_device_info *info = l->frame->device->info;

    return info->align_bytes ? info->align_bytes : 64;
}

uint32_t launch_align_log2(const struct launch *l, uint64_t offset)
{
    return (uint32_t)__builtin_ctzll(offset | launch_align(l));
}

const struct value *launch_value(const struct launch *l, uint32_t index)
{
    return index < l->call->n_in ? &l->in[index] : &l->out[index - l->call->n_in];
}

/* ---- the command ---- */

enum { MAX_RECORDED = 1024 };

static bool is_known(const frit_cmd *cmd)
{
    return cmd->kind == FRIT_CMD_BARRIER ||
           (cmd->kind == FRIT_CMD_DISPATCH && cmd->kernel && cmd->launch);
}

frit_status launch_check_commands(const frit_device *device, const frit_cmd *cmds, uint32_t n,
                                  frit_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_known(&cmds[i]))
            return fail(err, FRIT_INTERNAL, "record gives commands that no program may give");
        if (cmds[i].kind == FRIT_CMD_DISPATCH)
            TRY(limits_check_grid(device, cmds[i].grid, cmds[i].group, "record", err));
    }
    return n ? FRIT_OK : fail(err, FRIT_INTERNAL, "record gives no commands");
}

/* A program of another plugin writes its own commands. */
static frit_status record(struct launch *l, frit_err *err)
{
    const frit_program *program = &l->call->program->program;
    uint32_t capacity = 8, n = 0;
    frit_cmd *cmds = NULL;

    for (int round = 0; round < 2 && (!cmds || n > capacity); round++) {
        capacity = n > capacity ? n : capacity;
        cmds = arena_array(&l->batch->arena, capacity, sizeof(*cmds));
        if (!cmds)
            return fail_memory(err, capacity * sizeof(*cmds));
        for (uint32_t i = 0; i < capacity; i++)
            cmds[i].struct_size = sizeof(*cmds);
        TRY(fail_from(err,
                      program->table->record(program->self, l->launch, cmds, capacity, &n, err),
                      "record"));
        if (n > MAX_RECORDED)
            break;
    }
    if (n > capacity)
        return fail(err, FRIT_INTERNAL, "%s: record gives %u commands", l->call->label, n);
    if (launch_check_commands(l->frame->device, cmds, n, err))
        return fail_context(err, "%s", l->call->label);
    l->n_cmds = n;
    return batch_add(l->batch, cmds, n, l->ranges, l->n_ranges, err);
}

static frit_status command(struct launch *l, frit_err *err)
{
    const frit_program_table *table = l->call->program->program.table;
    frit_cmd cmd = {.struct_size = sizeof(cmd), .kind = FRIT_CMD_LAUNCH, .launch = l->launch};

    if (FRIT_HAS(table, frit_program_table, record) && table->record)
        return record(l, err);
    return batch_add(l->batch, &cmd, 1, l->ranges, l->n_ranges, err);
}

static void enter_derived(const struct launch *l, struct lineage *lineage, bool fill)
{
    for (uint32_t i = 0; i < l->launch->n_derived; i++) {
        const struct derived_use *use = &l->derived[i];

        if (!use->kept || use->fill != fill)
            continue;
        if (fill)
            lineage_writes(lineage, use->memory);
        else
            lineage_reads(lineage, use->memory);
    }
}

/* Enters what the launch reads and writes; returns its cookie. */
static uint64_t enter_lineage(struct launch *l)
{
    const struct launch_call *call = l->call;
    frit_device *device = l->frame->device;
    struct lineage *lineage = device->lineage;
    const struct lineage_launch launch = {.stream = l->frame->stream,
                                          .label = label_of(device->labels, call->label),
                                          .disabled =
                                              call->block ? &call->program->disabled : NULL};
    uint64_t cookie;

    if (!device_needs_lineage(device))
        return launch.label;
    l->batch->lineage = lineage;
    lineage_enter(lineage);
    cookie = lineage_launch(lineage, &l->batch->launches, &launch);
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (l->in[i].type.dtype != FRIT_NO_DTYPE)
            lineage_reads(lineage, l->in[i].buffer);
    }
    enter_derived(l, lineage, false);
    for (uint32_t k = 0; k < call->n_out; k++) {
        if (l->out[k].type.dtype != FRIT_NO_DTYPE)
            lineage_writes(lineage, l->out[k].buffer);
    }
    enter_derived(l, lineage, true);
    lineage_leave(lineage);
    return cookie;
}

void launch_enter_copy(struct frame *frame, const struct buffer *from, struct buffer *to)
{
    frit_device *device = frame->device;
    struct batch *batch = &frame->scratch->batch;
    const struct lineage_launch launch = {.stream = frame->stream};

    if (!device_needs_lineage(device))
        return;
    batch->lineage = device->lineage;
    lineage_enter(device->lineage);
    lineage_launch(device->lineage, &batch->launches, &launch);
    lineage_reads(device->lineage, from);
    lineage_writes(device->lineage, to);
    lineage_leave(device->lineage);
}

static void fill_launch(struct launch *l)
{
    frit_launch *launch = l->launch;

    launch->struct_size = FRIT_END_OF(frit_launch, flags);
    launch->n_args = l->call->n_in + l->call->n_out;
    launch->arg_stride = sizeof(*l->args);
    launch->n_scalars = l->scalars.n_scalars;
    launch->n_bounds = l->scalars.n_bounds;
    launch->cookie = enter_lineage(l);
    launch->flags =
        l->call->only || (l->frame->is_trial && l->frame->at.by_ops) ? FRIT_LAUNCH_TRIAL : 0;
    launch->program = &l->call->program->program;
    launch->spec = &l->prepared->spec;
    launch->variant = &l->prepared->variant;
    launch->args = l->args;
    launch->scalars = l->scalars.scalars;
    launch->bounds = l->scalars.bounds;
}

frit_status launch_init(struct launch *l, frit_err *err)
{
    const struct launch_call *call = l->call;
    struct arena *arena = &l->batch->arena;
    uint32_t n = call->n_in + call->n_out;

    TRY(launch_scalars_gather(l->frame->graph, call->ops, call->n_ops, l->frame->ops, arena,
                              &l->scalars, err));
    l->in = arena_array(arena, n, sizeof(*l->in));
    l->copied = arena_array(arena, call->n_in, sizeof(*l->copied));
    l->launch = arena_alloc(arena, sizeof(*l->launch));
    l->args = arena_array(arena, n, sizeof(*l->args));
    if (!l->in || !l->copied || !l->launch || !l->args)
        return fail_memory(err, n * sizeof(*l->in));
    l->out = l->in + call->n_in;
    for (uint32_t k = 0; k < call->n_out; k++) {
        if (l->copy_of)
            l->out[k].type = l->copy_of->type;
        else if (call->out[k] != GRAPH_NO_VALUE)
            l->out[k].type = l->frame->graph->values[call->out[k]].type;
        layout_dense(&l->out[k].type, &l->out[k].layout);
        if (call->strides)
            memcpy(l->out[k].layout.strides, call->strides, l->out[k].type.rank * sizeof(int64_t));
    }
    return FRIT_OK;
}

static void add_to_bound(const struct launch *l, uint32_t n_barriers)
{
    const struct launch_call *call = l->call;

    bound_plan_add_launch(l->frame->bound,
                          &(struct bind_launch){.launch = l->launch,
                                                .cache = call->cache,
                                                .prepared = l->prepared,
                                                .values = l->in,
                                                .in = call->in,
                                                .out = l->copy_of ? NULL : call->out,
                                                .ops = call->ops,
                                                .workspaces = l->workspaces,
                                                .derived = l->derived,
                                                .n_ops = call->n_ops,
                                                .n_in = call->n_in,
                                                .n_out = call->n_out,
                                                .n_workspaces = l->n_workspaces,
                                                .n_cmds = l->n_cmds ? l->n_cmds : 1,
                                                .barrier = l->batch->n_barriers > n_barriers,
                                                .block = call->block,
                                                .classes = l->scalars.classes,
                                                .decisions = l->decisions});
}

/* What prepare said is kept with the batch, which takes the reference over. */
static frit_status finish(struct launch *l, frit_err *err)
{
    struct prepared *prepared = l->prepared;
    uint32_t n_barriers = l->batch->n_barriers;

    TRY(launch_bind_args(l, err));
    fill_launch(l);
    TRY(command(l, err));
    add_to_bound(l, n_barriers);
    l->prepared = NULL;
    TRY(batch_keep(l->batch, l->call->program, prepared, err));
    for (uint32_t k = 0; k < l->call->n_out && !l->copy_of; k++) {
        if (l->call->out[k] != GRAPH_NO_VALUE)
            l->frame->values[l->call->out[k]].value = l->out[k];
    }
    l->batch->n_launches++;
    return FRIT_OK;
}

/* Where assigned memory does not suit the program, the query is put again without. */
static frit_status prepare(struct launch *l, frit_err *err)
{
    frit_status st;

    launch_assign(l);
    st = launch_prepare(l, err);
    if (!l->n_assigned || st == FRIT_BUSY || launch_lacked_memory(st) ||
        (l->call->in_parts && *l->call->in_parts) || (!st && launch_assigned_fits(l)))
        return st;
    launch_unassign(l);
    return launch_prepare(l, err);
}

static frit_status launch(struct launch *l, frit_err *err)
{
    struct frame_mark mark = frame_mark(l->frame);
    frit_status st = launch_init(l, err);

    if (!st)
        st = prepare(l, err);
    if (!st)
        st = finish(l, err);
    prepared_unref(l->prepared);
    if (st)
        frame_undo(l->frame, &mark);
    return st;
}

frit_status launch_add(const struct launch_call *call, frit_err *err)
{
    struct launch l = {.call = call, .frame = call->frame, .batch = &call->frame->scratch->batch};

    TRY(launch(&l, err));
    if (call->block)
        atomic_fetch_add(&call->frame->device->count.fused, 1);
    return FRIT_OK;
}

frit_status launch_copy(struct frame *frame, uint32_t number, const int64_t *strides,
                        struct value *out, frit_err *err)
{
    const struct value *value = &frame->values[number].value;
    struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = value->type};
    struct program_call row = {
        .op = FRIT_OP_copy, .n_in = 1, .n_out = 1, .in = &in, .out = &value->type};
    struct launch_call call = {
        .frame = frame, .label = "copy", .n_in = 1, .n_out = 1, .in = &number, .strides = strides};
    struct launch l = {
        .call = &call, .frame = frame, .batch = &frame->scratch->batch, .copy_of = value};
    frit_status st;

    TRY(programs_get(frame->device, &row, &call.program, err));
    if (!call.program)
        return fail(err, FRIT_UNSUPPORTED, "the driver of %s cannot copy this type",
                    frame->device->name);
    st = programs_prepared_cache(frame->device, call.program, &call.cache, err);
    if (!st)
        st = launch(&l, err);
    program_unref(call.program);
    if (!st)
        *out = l.out[0];
    return st;
}

bool launch_lacked_memory(frit_status status)
{
    return status == FRIT_NO_DEVICE_MEMORY || status == FRIT_NO_HOST_MEMORY;
}
