/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of the plugin `fake-candidates`, which a test gets as its interface of this id. */
#ifndef CANDIDATES_STATS_H
#define CANDIDATES_STATS_H

#include <frit/types.h>

#define CANDIDATES_STATS "org.frit.candidates.stats/1"

/* Of one instance, that is of one host.  `name` is a row of candidates.def; UINT64_MAX for a name
 * that is none.  Threads: any. */
typedef struct candidates_stats {
    uint32_t struct_size;
    uint32_t reserved;
    /* Launches that began, of all programs. */
    uint64_t (*launches)(void *instance, frit_str name);
    /* Calls of prepare, refused ones too. */
    uint64_t (*prepares)(void *instance, frit_str name);
    uint64_t (*compiles)(void *instance, frit_str name);
    /* Replays of recordings, of all devices. */
    uint64_t (*replays)(void *instance);
} candidates_stats;

#endif
