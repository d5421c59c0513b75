/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/reduction.h"

#include <stdlib.h>

#include "base/fail.h"
#include "dist/bucket.h"
#include "run/rank.h"
#include "train/cell.h"

frit_status reduction_begin(struct reduction *reduction, frit_replica *replica, frit_err *err)
{
    const size_t n = replica->schedule.n_params;

    *reduction = (struct reduction){.replica = replica, .has_batch = true};
    reduction->grads = calloc(n, sizeof(frit_tensor *));
    reduction->reduced = calloc(n, sizeof(frit_tensor *));
    reduction->is_complete = calloc(n, sizeof(*reduction->is_complete));
    if (!reduction->grads || !reduction->reduced || !reduction->is_complete)
        return fail_memory(err, n * 2 * sizeof(frit_tensor *));
    replica_note(replica);
    return FRIT_OK;
}

void reduction_end(struct reduction *reduction)
{
    for (uint32_t i = 0; i < reduction->replica->schedule.n_params && reduction->reduced; i++)
        cell_release(&reduction->reduced[i]);
    cell_release(&reduction->n_present);
    free(reduction->grads);
    free(reduction->reduced);
    free(reduction->is_complete);
}

static bool next_is_complete(const struct reduction *reduction)
{
    const struct schedule *s = &reduction->replica->schedule;
    const struct schedule_bucket *bucket = &s->buckets[reduction->n_recorded];

    if (reduction->n_recorded == s->n_buckets)
        return false;
    for (uint32_t k = 0; k < bucket->n; k++) {
        if (!reduction->is_complete[bucket->params[k]])
            return false;
    }
    return true;
}

static frit_status check_used(const struct reduction *reduction, uint32_t i, frit_err *err)
{
    const frit_replica *r = reduction->replica;

    if (reduction->grads[i] || !reduction->has_batch ||
        !(r->schedule.config.flags & FRIT_REPLICA_ALL_USED))
        return FRIT_OK;
    return fail(err, FRIT_INVALID, "parameter %s has no gradient on rank %u",
                r->schedule.params[i].name, r->rank->rank);
}

frit_status reduction_complete(struct reduction *reduction, uint32_t i, frit_err *err)
{
    TRY(check_used(reduction, i, err));
    reduction->is_complete[i] = true;
    while (next_is_complete(reduction)) {
        if (bucket_record(reduction, err)) {
            char text[256];

            return fail_context(err, "%s",
                                schedule_bucket_text(&reduction->replica->schedule,
                                                     reduction->n_recorded, text, sizeof(text)));
        }
    }
    return FRIT_OK;
}

frit_status reduction_complete_all(struct reduction *reduction, frit_err *err)
{
    for (uint32_t i = reduction->replica->schedule.n_params; i-- > 0;) {
        if (!reduction->is_complete[i])
            TRY(reduction_complete(reduction, i, err));
    }
    return FRIT_OK;
}
