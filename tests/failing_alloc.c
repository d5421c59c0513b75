/* SPDX-License-Identifier: Apache-2.0 */
/* The linker turns malloc into __wrap_malloc and __real_malloc into malloc, and so on. */
#include "failing_alloc.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *ptr, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *ptr, size_t bytes);

/* Allocations that still succeed before the one that fails; negative: it has failed. */
static atomic_long n_before_failure = LONG_MAX;

static bool fails(void)
{
    return atomic_fetch_sub(&n_before_failure, 1) == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *ptr, size_t bytes)
{
    return fails() ? NULL : __real_realloc(ptr, bytes);
}

void failing_alloc_arm(long n)
{
    atomic_store(&n_before_failure, n);
}

bool failing_alloc_disarm(void)
{
    return atomic_exchange(&n_before_failure, LONG_MAX) < 0;
}
