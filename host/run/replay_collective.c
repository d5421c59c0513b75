/* SPDX-License-Identifier: Apache-2.0 */
#include "run/replay_collective.h"

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "run/bound_plan.h"
#include "run/collective.h"
#include "tensor/failure.h"

void replay_collective(struct bound_plan *bound, frit_device *device, uint32_t number,
                       struct failure **late)
{
    const struct bound_launch *l = &bound->launches[number];
    struct collective_call call = *l->collective;
    struct failure *failure;
    frit_err err = ERR_INIT;

    call.ranks = bound->ranks;
    for (uint32_t i = 0; i < call.n_in; i++)
        call.in[i].buffer = *l->workspaces[i].current;
    if (l->n_workspaces)
        call.out.buffer = *l->workspaces[l->n_workspaces - 1].current;
    if (collective_begin(&call, &err) == FRIT_OK)
        return;
    (void)fail_context(&err, "%s", op_row(call.op)->name);
    failure = failure_create(&err);
    if (l->n_workspaces)
        lineage_spoil(device->lineage, call.out.buffer, failure);
    if (*late)
        failure_unref(failure);
    else
        *late = failure;
}

void replay_give_up(struct bound_plan *bound, uint32_t from, const frit_err *why)
{
    for (uint32_t i = from; i < bound->n_launches; i++) {
        const struct collective_call *call = bound->launches[i].collective;

        if (call && call->n_in)
            collective_give_up(bound->ranks, call->op, call->attrs.group, why->status, why->text);
    }
}
