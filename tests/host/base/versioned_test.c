/* SPDX-License-Identifier: Apache-2.0 */
/* A number and its version belong together, whoever changes them meanwhile. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/versioned.h"

enum { CHANGES = 300000, WRITERS = 2 };

static struct versioned shared;
static atomic_bool done;

/* The n-th change makes it n: with one writer the version is twice that. */
static void *count_up(void *unused)
{
    (void)unused;
    for (uint64_t i = 1; i <= CHANGES; i++)
        versioned_set(&shared, i);
    atomic_store(&done, true);
    return NULL;
}

static void test_a_pair_is_never_torn(void **state)
{
    uint64_t version = 0, number;
    pthread_t writer;

    (void)state;
    shared = (struct versioned){0};
    atomic_store(&done, false);
    assert_int_equal(pthread_create(&writer, NULL, count_up, NULL), 0);
    while (!atomic_load(&done)) {
        number = versioned_get(&shared, &version);
        assert_int_equal(version, 2 * number);
    }
    pthread_join(writer, NULL);
    assert_int_equal(versioned_get(&shared, &version), CHANGES);
}

static void *change(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < CHANGES / 10; i++)
        versioned_set(&shared, i);
    return NULL;
}

static void test_no_change_is_lost(void **state)
{
    pthread_t writers[WRITERS];
    uint64_t version;

    (void)state;
    shared = (struct versioned){0};
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, change, NULL), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    assert_int_equal(versioned_get(&shared, &version), CHANGES / 10 - 1);
    assert_int_equal(version, 2 * WRITERS * (CHANGES / 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pair_is_never_torn),
        cmocka_unit_test(test_no_change_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
