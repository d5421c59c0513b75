/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of the plugin `null`, which a test gets as its interface of this id. */
#ifndef NULL_STATS_H
#define NULL_STATS_H

#include <frit/types.h>

#define NULL_STATS "org.frit.null.stats/1"

/* Of one instance, that is of one host. */
typedef struct null_stats {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  A row of calls.def or counts.def; UINT64_MAX for a name that is none. */
    uint64_t (*get)(void *instance, frit_str name);
    /* [any] +nonblock  Lets `n` more compiles end that wait at option.compile_gate, now or later;
     * UINT64_MAX: all. */
    void (*open_gate)(void *instance, uint64_t n);
} null_stats;

#endif
