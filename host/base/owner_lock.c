/* SPDX-License-Identifier: Apache-2.0 */
#include "base/owner_lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One answer per process: a kernel has it or has it not. */
static bool register_barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void owner_lock_init(struct owner_lock *lock)
{
    atomic_init(&lock->inside, 0);
    atomic_init(&lock->wanted, 0);
    lock->fenced = !register_barrier();
    lock->by_mutex = false;
    pthread_mutex_init(&lock->mutex, NULL);
}

void owner_lock_fini(struct owner_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

void owner_lock_wait(struct owner_lock *lock)
{
    atomic_store_explicit(&lock->inside, 0, memory_order_release);
    pthread_mutex_lock(&lock->mutex);
    lock->by_mutex = true;
}

void owner_lock_leave_mutex(struct owner_lock *lock)
{
    lock->by_mutex = false;
    pthread_mutex_unlock(&lock->mutex);
}

void owner_lock_take(struct owner_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    atomic_exchange(&lock->wanted, 1);
    if (!lock->fenced)
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    while (atomic_load_explicit(&lock->inside, memory_order_seq_cst))
        sched_yield();
}

void owner_lock_give(struct owner_lock *lock)
{
    atomic_store_explicit(&lock->wanted, 0, memory_order_release);
    pthread_mutex_unlock(&lock->mutex);
}
