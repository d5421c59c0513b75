/* SPDX-License-Identifier: Apache-2.0 */
#include "bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void bell_ring(struct bell *bell)
{
    if (!bell)
        return;
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->sleepers))
        (void)syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void bell_sleep(struct bell *bell, uint32_t seen, uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
                                  .tv_nsec = (long)(ns % 1000000000)};

    atomic_fetch_add(&bell->sleepers, 1);
    (void)syscall(SYS_futex, &bell->rings, FUTEX_WAIT, seen, &time, NULL, 0);
    atomic_fetch_sub(&bell->sleepers, 1);
}
