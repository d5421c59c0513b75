/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/replica.h"

#include "api/open.h"
#include "base/fail.h"
#include "device/device.h"
#include "record/binding.h"
#include "run/collective.h"
#include "run/rank.h"
#include "tensor/failure.h"

static frit_status group_check(const frit_replica *r, frit_err *err)
{
    frit_status st = FRIT_OK;

    pthread_mutex_lock(&r->stream->baton);
    if (r->rank->failure.status)
        st = fail(err, r->rank->failure.status, "%s", r->rank->failure.text);
    pthread_mutex_unlock(&r->stream->baton);
    return st;
}

frit_status replica_check(const frit_replica *replica, const char *call, frit_err *err)
{
    struct binding *binding;

    if (!open_find(replica->rank, NULL))
        return fail(err, FRIT_INVALID, "%s: the rank has left its group, or its device is closed",
                    call);
    TRY(binding_current(replica->device, &binding, err));
    if (binding->stream != replica->stream)
        return fail(err, FRIT_INVALID, "%s: the thread records into another stream than the rank's",
                    call);
    return group_check(replica, err)
               ? fail_context(err, "%s: the group has ended: make a new one", call)
               : FRIT_OK;
}

frit_status replica_give_up(frit_replica *replica, frit_err *err)
{
    const frit_attrs_collective attrs = {.struct_size = sizeof(attrs),
                                         .group = (int64_t)replica->rank->number};
    struct failure *why;

    (void)fail_context(err, "step %llu", (unsigned long long)replica->step);
    why = failure_create(err);
    collective_refuse(replica->stream, FRIT_OP_all_reduce, &attrs, why);
    failure_unref(why);
    return err->status;
}
