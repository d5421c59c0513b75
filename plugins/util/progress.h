/* SPDX-License-Identifier: Apache-2.0 */
/* How far the queue is, and which of its commands failed.  Threads: any. */
#ifndef UTIL_PROGRESS_H
#define UTIL_PROGRESS_H

#include <pthread.h>

#include <frit/backend.h>

enum { PROGRESS_FAULTS = 8 };

/* A failed command, and those after it that there was no room for. */
struct fault {
    uint64_t first, last; /* timeline values */
    uint64_t cookie;
    frit_err err; /* of the first */
};

struct progress {
    pthread_mutex_t lock; /* of the rest */
    uint64_t value;       /* last handed out; everything up to it is done */
    uint32_t n_faults;
    struct fault faults[PROGRESS_FAULTS]; /* values grow */
};

void progress_init(struct progress *progress);
void progress_fini(struct progress *progress);
uint64_t progress_value(struct progress *progress);
/* The next value, reached; `fault` (may be NULL) is what failed on the way: cookie and err. */
uint64_t progress_advance(struct progress *progress, const struct fault *fault);
/* What wait is to tell, as frit_failure says; the fault's err in `out`. */
void progress_tell(struct progress *progress, uint64_t value, frit_failure *failure, frit_err *out);

#endif
