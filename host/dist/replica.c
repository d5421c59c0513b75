/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/replica.h"

#include <stdio.h>

#include "api/open.h"
#include "base/fail.h"
#include "device/device.h"
#include "record/binding.h"
#include "run/collective.h"
#include "run/drain.h"
#include "tensor/failure.h"

/* ---- what operations are for ---- */

/* Every step has the buckets of the schedule. */
static void describe(void *ctx, uint64_t i, char note[FRIT_COLLECTIVE_NOTE], char *what,
                     size_t size)
{
    const frit_replica *r = ctx;
    const uint64_t step = i / r->schedule.n_buckets + 1;
    const uint32_t passes = atomic_load(&r->noted[step % NOTED_STEPS]);
    char bucket[200];

    if (passes)
        snprintf(note, FRIT_COLLECTIVE_NOTE, "step %u after %u %s", (unsigned)step, passes,
                 passes == 1 ? "pass" : "passes");
    else
        snprintf(note, FRIT_COLLECTIVE_NOTE, "step %llu", (unsigned long long)step);
    snprintf(what, size, "step %llu, %s", (unsigned long long)step,
             schedule_bucket_text(&r->schedule, (uint32_t)(i % r->schedule.n_buckets), bucket,
                                  sizeof(bucket)));
}

/* Ranks without batches do not know how many passes the others make. */
void replica_note(frit_replica *replica)
{
    const uint64_t run = atomic_load(&replica->user.n_begun) / replica->schedule.n_buckets;
    const bool is_uneven = replica->schedule.config.flags & FRIT_REPLICA_UNEVEN;

    replica->step++;
    if (replica->step - run >= NOTED_STEPS)
        (void)stream_drain(replica->stream, DRAIN_SYNC);
    atomic_store(&replica->noted[replica->step % NOTED_STEPS], is_uneven ? 0 : replica->passes);
    replica->passes = 0;
}

/* ---- the rank ---- */

static const uint64_t user_numbers = 1ull << 62;

frit_status replica_bind(frit_replica *replica, frit_err *err)
{
    struct frit_rank *rank = replica->rank;

    if (rank->user)
        return fail(err, FRIT_BUSY, "the rank has a replica");
    if (rank->number >= user_numbers)
        return fail(err, FRIT_INVALID, "the number of a group with a replica is below 2^62");
    replica->user.number = user_numbers + rank->number;
    replica->user.describe = describe;
    replica->user.ctx = replica;
    pthread_mutex_lock(&replica->stream->baton);
    rank->user = &replica->user;
    pthread_mutex_unlock(&replica->stream->baton);
    return FRIT_OK;
}

/* Runs what is queued, which names the group by the user's number. */
void replica_unbind(frit_replica *replica)
{
    if (!replica->user.ctx || !open_find(replica->rank, NULL))
        return;
    (void)stream_drain(replica->stream, DRAIN_SYNC);
    pthread_mutex_lock(&replica->stream->baton);
    replica->rank->user = NULL;
    pthread_mutex_unlock(&replica->stream->baton);
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
    return rank_check(replica->rank, err)
               ? fail_context(err, "%s: the group has ended: make a new one", call)
               : FRIT_OK;
}

frit_status replica_give_up(frit_replica *replica, frit_err *err)
{
    const frit_attrs_collective attrs = {.struct_size = sizeof(attrs),
                                         .group = (int64_t)replica->user.number};
    struct failure *why = failure_create(err);

    collective_refuse(replica->stream, FRIT_OP_all_reduce_coalesced, &attrs, why);
    failure_unref(why);
    return fail_context(err, "step %llu", (unsigned long long)replica->step);
}
