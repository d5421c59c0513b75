/* SPDX-License-Identifier: Apache-2.0 */
/* A fault is noted under the lock under which the value is taken, so that nobody sees a value
 * reached without what failed on the way.  Faults are kept until a caller knows of them; one more
 * than there is room for widens the last. */
#include "util/progress.h"

#include <string.h>

void progress_init(struct progress *progress)
{
    memset(progress, 0, sizeof *progress);
    pthread_mutex_init(&progress->lock, NULL);
}

void progress_fini(struct progress *progress)
{
    pthread_mutex_destroy(&progress->lock);
}

uint64_t progress_value(struct progress *progress)
{
    uint64_t value;

    pthread_mutex_lock(&progress->lock);
    value = progress->value;
    pthread_mutex_unlock(&progress->lock);
    return value;
}

static void note(struct progress *progress, const struct fault *fault)
{
    if (progress->n_faults < PROGRESS_FAULTS) {
        progress->faults[progress->n_faults] = *fault;
        progress->faults[progress->n_faults++].first = progress->value;
    }
    progress->faults[progress->n_faults - 1].last = progress->value;
}

uint64_t progress_advance(struct progress *progress, const struct fault *fault)
{
    uint64_t value;

    pthread_mutex_lock(&progress->lock);
    value = ++progress->value;
    if (fault)
        note(progress, fault);
    pthread_mutex_unlock(&progress->lock);
    return value;
}

static void forget(struct progress *progress, uint64_t known)
{
    uint32_t n = 0;

    while (n < progress->n_faults && progress->faults[n].last <= known)
        n++;
    progress->n_faults -= n;
    memmove(progress->faults, progress->faults + n, progress->n_faults * sizeof(struct fault));
}

void progress_tell(struct progress *progress, uint64_t value, frit_failure *failure, frit_err *out)
{
    const struct fault *fault = progress->faults;
    uint64_t first;

    failure->status = FRIT_OK;
    failure->cookie = 0;
    pthread_mutex_lock(&progress->lock);
    forget(progress, failure->value);
    first = fault->first > failure->value ? fault->first : failure->value + 1;
    if (progress->n_faults > 0 && first <= value) {
        failure->status = fault->err.status;
        failure->value = first;
        failure->cookie = fault->cookie;
        *out = fault->err;
    }
    pthread_mutex_unlock(&progress->lock);
}
