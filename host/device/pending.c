/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pending.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/timeline.h"
#include "memory/memory.h"

struct pending_ends {
    pthread_mutex_t lock;
    pthread_cond_t ended;
};

frit_status pending_create(struct pending_ends **out, frit_err *err)
{
    struct pending_ends *ends = malloc(sizeof(*ends));

    *out = ends;
    if (!ends)
        return fail_memory(err, sizeof(*ends));
    pthread_mutex_init(&ends->lock, NULL);
    pthread_cond_init(&ends->ended, NULL);
    return FRIT_OK;
}

void pending_destroy(struct pending_ends *ends)
{
    if (!ends)
        return;
    pthread_cond_destroy(&ends->ended);
    pthread_mutex_destroy(&ends->lock);
    free(ends);
}

static atomic_uint *count_of(const struct buffer *buffer)
{
    return &((struct buffer *)buffer_whole(buffer))->pending;
}

void pending_begin(struct buffer *buffer)
{
    buffer_pin(buffer);
    atomic_fetch_add(count_of(buffer), 1);
}

void pending_end(struct pending_ends *ends, struct buffer *buffer)
{
    pthread_mutex_lock(&ends->lock);
    atomic_fetch_sub(count_of(buffer), 1);
    pthread_cond_broadcast(&ends->ended);
    pthread_mutex_unlock(&ends->lock);
    buffer_unpin(buffer);
}

void pending_wait(struct pending_ends *ends, const struct buffer *buffer)
{
    uint64_t begun;

    if (!buffer || !buffer_is_pending(buffer))
        return;
    begun = timeline_begin();
    pthread_mutex_lock(&ends->lock);
    while (buffer_is_pending(buffer))
        pthread_cond_wait(&ends->ended, &ends->lock);
    pthread_mutex_unlock(&ends->lock);
    timeline_end(begun, "collective", str_of("wait"));
}
