/* SPDX-License-Identifier: Apache-2.0 */
#include "run/replay_lineage.h"

#include "device/device.h"
#include "device/label.h"
#include "device/lineage.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "run/bound_plan.h"
#include "tensor/failure.h"

/* ---- operands that are written over ---- */

void replay_note_writers(struct bound_plan *bound, frit_device *device)
{
    if (!device_needs_lineage(device))
        return;
    for (uint32_t i = 0; i < bound->external.count; i++) {
        struct bound_value *value = &bound->values[bound->external.list[i]];

        if (value->overwritten)
            value->writer = atomic_load(&value->buffer->writer);
    }
}

void replay_restore_writers(struct bound_plan *bound, frit_device *device)
{
    if (!device_needs_lineage(device))
        return;
    for (uint32_t i = 0; i < bound->external.count; i++) {
        struct bound_value *value = &bound->values[bound->external.list[i]];

        if (value->overwritten && atomic_load(&value->buffer->writer) != value->writer)
            lineage_restore(device->lineage, value->buffer, value->writer);
    }
}

/* ---- launches ---- */

static atomic_bool *disabled_flag(const struct bound_launch *l)
{
    return l->block ? &program_of(l->launch.program)->disabled : NULL;
}

static void enter_derived(const struct bound_launch *l, struct lineage *lineage, bool fill)
{
    for (uint32_t i = 0; i < l->launch.n_derived; i++) {
        const struct bound_derived *use = &l->derived[i];

        if (!use->kept || use->fill != fill)
            continue;
        if (fill)
            lineage_writes(lineage, use->memory);
        else
            lineage_reads(lineage, use->memory);
    }
}

static void enter_launch(struct bound_launch *l, struct lineage *lineage, uint32_t stream,
                         struct lineage_batch *batch)
{
    const struct lineage_launch launch = {
        .stream = stream, .label = lineage_label(l->launch.cookie), .disabled = disabled_flag(l)};

    l->launch.cookie = lineage_launch(lineage, batch, &launch);
    for (uint32_t i = 0; i < l->n_in; i++) {
        if (l->args[i].current)
            lineage_reads(lineage, *l->args[i].current);
    }
    enter_derived(l, lineage, false);
    for (uint32_t i = l->n_in; i < l->launch.n_args; i++) {
        if (l->args[i].current)
            lineage_writes(lineage, *l->args[i].current);
    }
    enter_derived(l, lineage, true);
}

void replay_enter_lineage(struct bound_plan *bound, frit_device *device, uint32_t from,
                          uint32_t end, uint32_t stream, struct lineage_batch *batch)
{
    if (!device_needs_lineage(device))
        return;
    lineage_enter(device->lineage);
    for (uint32_t i = from; i < end; i++)
        enter_launch(&bound->launches[i], device->lineage, stream, batch);
    lineage_leave(device->lineage);
}

/* ---- failures ---- */

static void spoil_outputs(frit_device *device, const struct bound_launch *l,
                          struct failure *failure)
{
    if (l->collective && l->n_workspaces)
        lineage_spoil(device->lineage, *l->workspaces[l->n_workspaces - 1].current, failure);
    for (uint32_t i = l->n_in; i < l->launch.n_args; i++) {
        if (l->args[i].current)
            lineage_spoil(device->lineage, *l->args[i].current, failure);
    }
    for (uint32_t i = 0; i < l->launch.n_derived; i++) {
        if (l->derived[i].kept && l->derived[i].fill)
            lineage_spoil(device->lineage, l->derived[i].memory, failure);
    }
}

void replay_check_inline(struct bound_plan *bound, frit_device *device, uint32_t from, uint32_t end,
                         uint64_t point, struct failure **late)
{
    struct failure *failure;

    if (!(device->info->caps & FRIT_CAP_INLINE_QUEUE) || !lineage_knows(device->lineage, point))
        return;
    failure = lineage_failure_at(device->lineage, point);
    for (uint32_t i = from; i < end && failure; i++) {
        const struct bound_launch *l = &bound->launches[i];

        spoil_outputs(device, l, failure);
        if (l->block && !atomic_exchange(disabled_flag(l), true))
            device_note_disabled(device,
                                 label_text(device->labels, lineage_label(l->launch.cookie)),
                                 "a command of it failed");
    }
    if (*late)
        failure_unref(failure);
    else
        *late = failure;
}

void replay_fail_rest(struct bound_plan *bound, frit_device *device, uint32_t from,
                      struct failure **late, const frit_err *err)
{
    struct failure *failure = failure_create(err);

    for (uint32_t i = from; i < bound->n_launches; i++)
        spoil_outputs(device, &bound->launches[i], failure);
    failure_unref(*late);
    *late = failure;
}

bool replay_is_disabled(const struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_launches; i++) {
        const atomic_bool *disabled = disabled_flag(&bound->launches[i]);

        if (disabled && atomic_load(disabled))
            return true;
    }
    return false;
}

struct failure *replay_failure(const struct bound_plan *bound, frit_device *device)
{
    struct failure *failure = NULL;

    if (!atomic_load(&device->n_spoiled))
        return NULL;
    for (uint32_t i = 0; i < bound->wanted.count && !failure; i++)
        failure =
            lineage_failure_of(device->lineage, *bound->values[bound->wanted.list[i]].at.current);
    return failure;
}
