/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a replica: which parameters' gradients are reduced together, and in which order.
 * It follows from the configuration and the list of parameters alone, so that ranks which have
 * the same of both have the same schedule.
 *
 * Parameters are taken from the last to the first, as a backward pass completes them.  A bucket has
 * one element type; its parameters lie in it one after the other.  Buckets are in the order of the
 * places of their last parameters, which complete them.
 *
 * Threads: immutable once made. */
#ifndef DIST_SCHEDULE_H
#define DIST_SCHEDULE_H

#include <stdbool.h>

#include <frit/dist.h>

#include "base/arena.h"
#include "graph/op.h"

struct schedule_param {
    const char *name; /* "'head.w'", or "17" where the program gives none */
    bool is_named;
    struct op_type type;
    uint32_t bucket;
    uint64_t at; /* element of the bucket */
};

struct schedule_bucket {
    uint32_t dtype;
    uint32_t n, *params; /* in the order in which they lie in the bucket */
    uint64_t elements;
};

struct schedule {
    struct arena arena;
    frit_replica_config config; /* without zeros that stand for defaults; names are not its */
    uint32_t n_params, n_buckets;
    struct schedule_param *params;
    struct schedule_bucket *buckets;
    uint64_t digest; /* of all that ranks must agree on */
};

/* `types`: of the parameters. */
frit_status schedule_init(struct schedule *schedule, const frit_replica_config *config,
                          const struct op_type *types, uint32_t n_params, frit_err *err);
void schedule_fini(struct schedule *schedule);

uint64_t schedule_bytes(const struct schedule_bucket *bucket);
/* What ranks compare, a line for the configuration and one for each parameter: "mean, ...",
 * "'head.w' f32[512, 10]".  `line` 0 is the configuration. */
const char *schedule_line(const struct schedule *schedule, uint32_t line, char *text, size_t size);
/* "25.0 MiB f32, 'enc.6.b' to 'enc.4.w'"; `number` counts from 0. */
const char *schedule_bucket_span(const struct schedule *schedule, uint32_t number, char *text,
                                 size_t size);
/* "bucket 2 of 7 (25.0 MiB f32, 'enc.6.b' to 'enc.4.w')" */
const char *schedule_bucket_text(const struct schedule *schedule, uint32_t number, char *text,
                                 size_t size);
/* The whole schedule, a line for each bucket and parameter; NULL: no memory. */
char *schedule_text(const struct schedule *schedule);

#endif
