/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include "unit.h"

#include "failing_alloc.h"

static void keeps_what_is_in_it(void **state)
{
    uint64_t *items = NULL;
    uint32_t capacity = 0, count = 0;

    (void)state;
    for (; count < 1000; count++) {
        assert_true(array_grow(&items, &capacity, count, 1, sizeof(*items)));
        assert_true(capacity > count);
        items[count] = count;
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(items[i], i);
    assert_int_equal(capacity, 1024);
    assert_true(array_grow(&items, &capacity, count, 5000, sizeof(*items)));
    assert_true(capacity >= 6000);
    free(items);
}

static void changes_nothing_without_memory(void **state)
{
    uint64_t *items = NULL, *before;
    uint32_t capacity = 0;

    (void)state;
    assert_true(array_grow(&items, &capacity, 0, 1, sizeof(*items)));
    before = items;
    failing_alloc_arm(0);
    assert_false(array_grow(&items, &capacity, capacity, 1, sizeof(*items)));
    assert_true(failing_alloc_disarm());
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 8);
    assert_false(array_grow(&items, &capacity, UINT32_MAX, UINT32_MAX, sizeof(*items)));
    assert_ptr_equal(items, before);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_is_in_it),
        cmocka_unit_test(changes_nothing_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
