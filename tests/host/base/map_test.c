/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"

enum { COUNT = 5000 };

static int values[COUNT];
static unsigned dropped;

static void drop(void *value)
{
    *(int *)value += 1;
    dropped++;
}

static void finds_every_key(void **state)
{
    struct map map = {0};
    char key[16];

    (void)state;
    assert_null(map_get(&map, "0", 1));
    for (int i = 0; i < COUNT; i++) {
        int length = snprintf(key, sizeof(key), "%d", i);

        assert_null(map_get(&map, key, (size_t)length));
        assert_true(map_add(&map, key, (size_t)length, &values[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        int length = snprintf(key, sizeof(key), "%d", i);

        assert_ptr_equal(map_get(&map, key, (size_t)length), &values[i]);
    }
    assert_int_equal(map.count, COUNT);
    assert_ptr_equal(map_get(&map, "12", 1), &values[1]); /* the length counts */
    map_fini(&map, drop);
    assert_int_equal(dropped, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(values[i], 1);
}

static void keys_are_bytes(void **state)
{
    struct map map = {0};
    int a, b, c;

    (void)state;
    assert_true(map_add(&map, "x\0y", 3, &a));
    assert_true(map_add(&map, "x\0z", 3, &b));
    assert_true(map_add(&map, "", 0, &c));
    assert_ptr_equal(map_get(&map, "x\0y", 3), &a);
    assert_ptr_equal(map_get(&map, "x\0z", 3), &b);
    assert_ptr_equal(map_get(&map, "", 0), &c);
    assert_null(map_get(&map, "x", 1));
    map_fini(&map, NULL);
    assert_null(map_get(&map, "", 0));
}

static void a_failed_add_changes_nothing(void **state)
{
    struct map map = {0};
    int value;

    (void)state;
    for (long n = 0; n < 2; n++) { /* the table, the key */
        failing_alloc_arm(n);
        assert_false(map_add(&map, "a", 1, &value));
        assert_true(failing_alloc_disarm());
        assert_int_equal(map.count, 0);
        assert_null(map_get(&map, "a", 1));
        map_fini(&map, NULL);
    }
    assert_true(map_add(&map, "a", 1, &value));
    assert_ptr_equal(map_get(&map, "a", 1), &value);
    map_fini(&map, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_key),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(a_failed_add_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
