/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/bucket.h"

#include <stdlib.h>

#include "api/job.h"
#include "base/fail.h"
#include "grad/rule.h"
#include "job/place.h"
#include "run/rank.h"
#include "train/cell.h"
#include "train/section.h"

static frit_dims dims_of(const struct op_type *type)
{
    frit_dims dims = {.rank = type->rank};

    for (uint32_t d = 0; d < type->rank; d++)
        dims.dim[d] = type->dims[d];
    return dims;
}

static frit_tensor *part(frit_tensor *flat, uint64_t first, uint64_t n)
{
    const frit_slices slices = {
        .count = 1, .dim[0] = {.start = (int64_t)first, .stop = (int64_t)(first + n), .step = 1}};

    return frit_slice(flat, slices);
}

/* The flags of the ranks lie after the gradients of the first bucket. */
static bool has_flags(const struct reduction *reduction)
{
    return reduction->n_recorded == 0 &&
           reduction->replica->schedule.config.flags & FRIT_REPLICA_UNEVEN;
}

/* What the bucket consists of; the number of tensors. */
static uint32_t list_parts(const struct reduction *reduction, const struct schedule_bucket *bucket,
                           frit_tensor **parts)
{
    const frit_replica *r = reduction->replica;
    uint32_t n = 0;

    for (; n < bucket->n; n++) {
        const uint32_t i = bucket->params[n];

        parts[n] = reduction->grads[i]
                       ? reduction->grads[i]
                       : frit_zeros(r->device, bucket->dtype, dims_of(&r->schedule.params[i].type));
    }
    if (has_flags(reduction))
        parts[n++] = frit_cast(reduction->has_batch ? r->has_batch : r->has_none, bucket->dtype);
    return n;
}

/* Reads the ranks' flags.  The engine takes a mean over all ranks. */
static void read_flags(struct reduction *reduction, frit_tensor *flags)
{
    frit_replica *r = reduction->replica;
    const bool is_sum = r->schedule.config.flags & FRIT_REPLICA_SUM;
    frit_tensor *sums = frit_cast(flags, FRIT_F32);

    if (!is_sum)
        sums = frit_round(frit_mul_f(sums, r->rank->size));
    cell_release(&r->present);
    r->present = cell_own(sums);
    if (!is_sum)
        reduction->n_present = cell_own(frit_sum(sums));
}

/* From the mean over all ranks to that over the ranks that had a batch, by a factor that is 1 if
 * all had one. */
static frit_tensor *mean_of_present(const struct reduction *reduction, frit_tensor *grad,
                                    uint32_t dtype)
{
    const uint32_t wide = dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32;
    const term factor =
        t_div(t_num(reduction->replica->rank->size), t_cast(t_of(reduction->n_present), wide));

    return t_cast(t_mul(t_cast(t_of(grad), wide), factor), dtype).tensor;
}

static frit_tensor *unflatten(const struct reduction *reduction, frit_tensor *flat, uint32_t i)
{
    const struct schedule_param *param = &reduction->replica->schedule.params[i];
    frit_tensor *grad = part(flat, param->at, (uint64_t)op_elements(&param->type));

    if (reduction->n_present)
        grad = mean_of_present(reduction, grad, param->type.dtype);
    return frit_reshape(grad, dims_of(&param->type));
}

/* The job is to know where the rank is when it runs the operation. */
static void announce(const struct reduction *reduction, const struct schedule_bucket *bucket)
{
    const frit_replica *r = reduction->replica;
    struct job_place place = {
        .step = r->step, .bucket = reduction->n_recorded + 1, .n_buckets = r->schedule.n_buckets};

    schedule_bucket_span(&r->schedule, reduction->n_recorded, place.span, sizeof(place.span));
    host_job_announce(r->rank, bucket->elements + (has_flags(reduction) ? r->rank->size : 0),
                      &place);
}

static frit_status record(struct reduction *reduction, const struct schedule_bucket *bucket,
                          frit_tensor **parts, frit_err *err)
{
    frit_replica *r = reduction->replica;
    const bool is_sum = r->schedule.config.flags & FRIT_REPLICA_SUM;
    frit_tensor *flat;

    announce(reduction, bucket);
    flat = frit_all_reduce_coalesced(parts, list_parts(reduction, bucket, parts),
                                     .combine = is_sum ? FRIT_CHOICE_combine_sum
                                                       : FRIT_CHOICE_combine_mean,
                                     .group = (int64_t)r->user.number);
    if (frit_tensor_status(flat))
        return fail(err, frit_tensor_status(flat), "%s", frit_tensor_error(flat));
    if (has_flags(reduction))
        read_flags(reduction, part(flat, bucket->elements, r->rank->size));
    for (uint32_t k = 0; k < bucket->n; k++)
        reduction->reduced[bucket->params[k]] =
            cell_own(unflatten(reduction, flat, bucket->params[k]));
    return FRIT_OK;
}

frit_status bucket_record(struct reduction *reduction, frit_err *err)
{
    const struct schedule_bucket *bucket =
        &reduction->replica->schedule.buckets[reduction->n_recorded];
    frit_tensor **parts = calloc(bucket->n + 1u, sizeof(frit_tensor *));
    struct section section;
    frit_status st = parts ? section_begin(&section, reduction->replica->device, err)
                           : fail_memory(err, bucket->n * sizeof(frit_tensor *));

    if (!st) {
        st = record(reduction, bucket, parts, err);
        section_end(&section);
    }
    free(parts);
    reduction->n_recorded += !st;
    return st;
}
