/* SPDX-License-Identifier: Apache-2.0 */
/* A lock that one thread, its owner, takes all the time and others rarely.
 *
 * Dekker's rule with the cost on the rare side: the owner sets `inside` and then reads `wanted`,
 * without a fence; another thread sets `wanted`, makes every core pass a barrier (Linux
 * membarrier), and waits until the owner has left.  Where the kernel has no membarrier the owner
 * pays for the fence.  While somebody is in or waiting, the owner uses the mutex like everybody
 * else. Sections are short and never wait.  Not recursive. */
#ifndef BASE_OWNER_LOCK_H
#define BASE_OWNER_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct owner_lock {
    atomic_uint inside; /* the owner is in, without the mutex */
    atomic_uint wanted; /* somebody else is in or wants in */
    bool fenced;        /* there is no membarrier; constant */
    bool by_mutex;      /* the owner is in, with the mutex */
    pthread_mutex_t mutex;
};

void owner_lock_init(struct owner_lock *lock);
void owner_lock_fini(struct owner_lock *lock);

/* Of enter, when somebody is in the way. */
void owner_lock_wait(struct owner_lock *lock);
void owner_lock_leave_mutex(struct owner_lock *lock);

/* By the owner. */
static inline void owner_lock_enter(struct owner_lock *lock)
{
    if (lock->fenced)
        atomic_exchange(&lock->inside, 1);
    else
        atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->wanted, memory_order_seq_cst), 0))
        owner_lock_wait(lock);
}

static inline void owner_lock_leave(struct owner_lock *lock)
{
    if (__builtin_expect(lock->by_mutex, 0))
        owner_lock_leave_mutex(lock);
    else
        atomic_store_explicit(&lock->inside, 0, memory_order_release);
}

/* By any other thread. */
void owner_lock_take(struct owner_lock *lock);
void owner_lock_give(struct owner_lock *lock);

#endif
