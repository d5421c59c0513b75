/* SPDX-License-Identifier: Apache-2.0 */
/* A lock for sections of a few instructions that several threads enter often: waiting is looking
 * again, and after a while giving the core to somebody else, never sleeping.  All zero is free. */
#ifndef BASE_SHORT_LOCK_H
#define BASE_SHORT_LOCK_H

#include <sched.h>
#include <stdatomic.h>

struct short_lock {
    atomic_uint taken;
};

static inline void short_lock_enter(struct short_lock *lock)
{
    while (atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire)) {
        for (int looks = 0; atomic_load_explicit(&lock->taken, memory_order_relaxed); looks++) {
            if (looks == 256) {
                sched_yield();
                looks = 0;
            }
        }
    }
}

static inline void short_lock_leave(struct short_lock *lock)
{
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif
