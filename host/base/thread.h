/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library, and calls of the program's threads that pthread_cancel must not cut off.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* pthread_create for a thread that leaves the program's signals to the program's threads: it blocks
 * all but those of its own faults (SIGSEGV and the like), which would end the process without its
 * handler.  Returns an error number. */
int thread_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx);

/* From hold to release a request to cancel the calling thread stays pending.  Nests; `before` is
 * what hold returned. */
static inline int thread_hold_cancel(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void thread_release_cancel(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

/* Holds until the end of the block.  For every function that a program calls and that may wait, do
 * input or output, or call a driver: a thread that ended there would keep locks. */
#define HOLD_CANCEL                                                                 \
    const int held_cancel __attribute__((cleanup(thread_release_cancel), unused)) = \
        thread_hold_cancel()

#endif
