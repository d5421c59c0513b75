/* SPDX-License-Identifier: Apache-2.0 */
#include "job/place.h"

#include <stdio.h>

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int place_compare(const struct job_place *a, const struct job_place *b)
{
    if (!a->n_buckets || !b->n_buckets)
        return compare(a->operation, b->operation);
    return a->step != b->step ? compare(a->step, b->step) : compare(a->bucket, b->bucket);
}

void place_text(const struct job_place *place, char out[JOB_PLACE_TEXT])
{
    const char *open = place->span[0] ? " (" : "", *close = place->span[0] ? ")" : "";

    if (place->n_buckets && place->bucket)
        snprintf(out, JOB_PLACE_TEXT, "step %llu, bucket %u of %u%s%s%s",
                 (unsigned long long)place->step, place->bucket, place->n_buckets, open,
                 place->span, close);
    else if (place->n_buckets)
        snprintf(out, JOB_PLACE_TEXT, "step %llu, before bucket 1 of %u",
                 (unsigned long long)place->step, place->n_buckets);
    else if (place->operation)
        snprintf(out, JOB_PLACE_TEXT, "operation %llu", (unsigned long long)place->operation);
    else
        out[0] = '\0';
}

void place_begun_text(const struct job_place *place, const struct job_place *of,
                      char out[JOB_PLACE_TEXT])
{
    if (!of->n_buckets || !place->n_buckets)
        snprintf(out, JOB_PLACE_TEXT, "%llu of %llu operations",
                 (unsigned long long)place->operation, (unsigned long long)of->operation);
    else
        snprintf(out, JOB_PLACE_TEXT, "%u of %u buckets of step %llu",
                 place->step == of->step ? place->bucket : 0, of->n_buckets,
                 (unsigned long long)of->step);
}

void place_write(struct str *out, const struct job_place *place)
{
    wire_u64(out, place->operation);
    wire_u64(out, place->step);
    wire_u32(out, place->bucket);
    wire_u32(out, place->n_buckets);
    wire_text(out, place->span);
}

void place_read(struct wire_reader *in, struct job_place *out)
{
    out->operation = wire_read_u64(in);
    out->step = wire_read_u64(in);
    out->bucket = wire_read_u32(in);
    out->n_buckets = wire_read_u32(in);
    wire_read_text(in, out->span, sizeof(out->span));
}
