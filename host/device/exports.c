/* SPDX-License-Identifier: Apache-2.0 */
/* One list for the process: who drops an entry does not know whether its device is still there.
 *
 * Buffers are given up outside of the lock, because that may call a `release` of the program, which
 * may drop another entry.  So exports_end waits for those who are at it. */
#include "device/exports.h"

#include <pthread.h>
#include <stddef.h>

#include "base/process.h"
#include "memory/buffer.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t dropped;
    struct exported *first;
    uint64_t n_dropping;
} exports = {.lock = PTHREAD_MUTEX_INITIALIZER, .dropped = PTHREAD_COND_INITIALIZER};

void exports_add(struct exported *exported, frit_device *device, struct buffer *buffer)
{
    buffer_own(buffer);
    pthread_mutex_lock(&exports.lock);
    *exported = (struct exported){.device = device, .buffer = buffer, .next = exports.first};
    if (exports.first)
        exports.first->prev = exported;
    exports.first = exported;
    pthread_mutex_unlock(&exports.lock);
}

/* Inside the lock: takes an entry out of the list; returns its buffer. */
static struct buffer *take_out(struct exported *exported)
{
    if (exported->prev)
        exported->prev->next = exported->next;
    else
        exports.first = exported->next;
    if (exported->next)
        exported->next->prev = exported->prev;
    exported->device = NULL;
    return exported->buffer;
}

void exports_drop(struct exported *exported)
{
    struct buffer *buffer = NULL;

    if (process_is_barred())
        return;
    pthread_mutex_lock(&exports.lock);
    if (exported->device) {
        buffer = take_out(exported);
        exports.n_dropping++;
    }
    pthread_mutex_unlock(&exports.lock);
    if (!buffer)
        return;
    buffer_disown(buffer);
    pthread_mutex_lock(&exports.lock);
    if (--exports.n_dropping == 0)
        pthread_cond_broadcast(&exports.dropped);
    pthread_mutex_unlock(&exports.lock);
}

/* Inside the lock: an entry of the device, NULL: there is none. */
static struct exported *find(const frit_device *device)
{
    struct exported *at = exports.first;

    while (at && at->device != device)
        at = at->next;
    return at;
}

void exports_end(frit_device *device)
{
    struct exported *exported;

    pthread_mutex_lock(&exports.lock);
    while ((exported = find(device))) {
        struct buffer *buffer = take_out(exported);

        pthread_mutex_unlock(&exports.lock);
        buffer_disown(buffer);
        pthread_mutex_lock(&exports.lock);
    }
    while (exports.n_dropping)
        pthread_cond_wait(&exports.dropped, &exports.lock);
    pthread_mutex_unlock(&exports.lock);
}
