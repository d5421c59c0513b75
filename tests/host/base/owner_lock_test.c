/* SPDX-License-Identifier: Apache-2.0 */
/* A lock with one owner excludes all other threads, whether they take it often or never, with and
 * without membarrier. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/owner_lock.h"

enum { THREADS = 2, OWNED = 400000, TAKEN = 4000 };

struct shared {
    struct owner_lock lock;
    uint64_t count, copy; /* not atomic: guarded by the lock */
    atomic_bool started;
};

static void add(struct shared *shared)
{
    shared->count++;
    shared->copy++;
    assert_int_equal(shared->count, shared->copy);
}

static void *take(void *arg)
{
    struct shared *shared = arg;

    while (!atomic_load(&shared->started))
        sched_yield();
    for (int i = 0; i < TAKEN; i++) {
        owner_lock_take(&shared->lock);
        add(shared);
        owner_lock_give(&shared->lock);
        if (i % 8 == 0)
            sched_yield(); /* lets the owner use its fast path too */
    }
    return NULL;
}

static void count_together(struct shared *shared)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take, shared), 0);
    atomic_store(&shared->started, true);
    for (int i = 0; i < OWNED; i++) {
        owner_lock_enter(&shared->lock);
        add(shared);
        owner_lock_leave(&shared->lock);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shared->count, OWNED + THREADS * TAKEN);
    assert_int_equal(atomic_load(&shared->lock.inside), 0);
    assert_int_equal(atomic_load(&shared->lock.wanted), 0);
    assert_false(shared->lock.by_mutex);
}

static void test_one_thread_at_a_time(void **state)
{
    struct shared shared = {0};

    (void)state;
    owner_lock_init(&shared.lock);
    count_together(&shared);
    owner_lock_fini(&shared.lock);
}

static void test_without_membarrier_too(void **state)
{
    struct shared shared = {0};

    (void)state;
    owner_lock_init(&shared.lock);
    shared.lock.fenced = true;
    count_together(&shared);
    owner_lock_fini(&shared.lock);
}

/* ---- waiting ---- */

struct wait {
    struct owner_lock lock;
    atomic_bool held, contended, entered;
};

static void *hold(void *arg)
{
    struct wait *wait = arg;

    owner_lock_take(&wait->lock);
    atomic_store(&wait->held, true);
    while (!atomic_load(&wait->contended))
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
    atomic_store(&wait->held, false);
    owner_lock_give(&wait->lock);
    return NULL;
}

static void test_the_owner_waits_for_a_taker(void **state)
{
    struct wait wait = {0};
    pthread_t thread;

    (void)state;
    owner_lock_init(&wait.lock);
    assert_int_equal(pthread_create(&thread, NULL, hold, &wait), 0);
    while (!atomic_load(&wait.held))
        sched_yield();
    atomic_store(&wait.contended, true);
    owner_lock_enter(&wait.lock);
    assert_false(atomic_load(&wait.held));
    owner_lock_leave(&wait.lock);
    pthread_join(thread, NULL);
    owner_lock_fini(&wait.lock);
}

static void *want(void *arg)
{
    struct wait *wait = arg;

    atomic_store(&wait->contended, true);
    owner_lock_take(&wait->lock);
    atomic_store(&wait->entered, true);
    owner_lock_give(&wait->lock);
    return NULL;
}

static void test_others_wait_for_the_owner(void **state)
{
    struct wait wait = {0};
    pthread_t thread;

    (void)state;
    owner_lock_init(&wait.lock);
    owner_lock_enter(&wait.lock);
    assert_int_equal(pthread_create(&thread, NULL, want, &wait), 0);
    while (!atomic_load(&wait.contended))
        sched_yield();
    for (int i = 0; i < 1000; i++) {
        assert_false(atomic_load(&wait.entered));
        sched_yield();
    }
    owner_lock_leave(&wait.lock);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&wait.entered));
    owner_lock_fini(&wait.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread_at_a_time),
        cmocka_unit_test(test_without_membarrier_too),
        cmocka_unit_test(test_the_owner_waits_for_a_taker),
        cmocka_unit_test(test_others_wait_for_the_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
