/* SPDX-License-Identifier: Apache-2.0 */
/* A number and its version, which are read together consistently: a sequence lock.  The version is
 * odd during a change, and readers retry until it is even.  All zero: the number 0, never changed.
 * Threads: any. */
#ifndef BASE_VERSIONED_H
#define BASE_VERSIONED_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

struct versioned {
    atomic_uint_least64_t version;
    atomic_uint_least64_t number;
};

static inline void versioned_set(struct versioned *v, uint64_t number)
{
    uint64_t version = atomic_load_explicit(&v->version, memory_order_relaxed) & ~UINT64_C(1);

    while (!atomic_compare_exchange_weak(&v->version, &version, version + 1)) {
        version &= ~UINT64_C(1);
        sched_yield();
    }
    atomic_store(&v->number, number);
    atomic_store(&v->version, version + 2);
}

/* Returns the number; `*version` is even, and differs after each versioned_set. */
static inline uint64_t versioned_get(const struct versioned *v, uint64_t *version)
{
    for (;;) {
        uint64_t before = atomic_load(&v->version), number = atomic_load(&v->number);

        if (!(before & 1) && atomic_load(&v->version) == before) {
            *version = before;
            return number;
        }
        sched_yield();
    }
}

#endif
