/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "search/dag.h"

static struct dag dag_of(uint32_t n)
{
    return (struct dag){.live = (dag_bit(n - 1) << 1) - 1};
}

static void before_is_closed(void **state)
{
    struct dag dag = dag_of(4);

    (void)state;
    dag_order(&dag, 2, dag_bit(1));
    dag_order(&dag, 3, dag_bit(2));
    dag_order(&dag, 1, dag_bit(0));
    assert_int_equal(dag.before[3], 7);
    assert_int_equal(dag.before[1], 1);
    dag_order(&dag, 1, dag_bit(1));
    assert_int_equal(dag.before[1], 1);
}

static void joining_makes_no_cycle(void **state)
{
    struct dag dag = dag_of(3);

    (void)state;
    dag_order(&dag, 1, dag_bit(0));
    dag_order(&dag, 2, dag_bit(1));
    assert_false(dag_can_join(&dag, 0, dag_bit(2)));
    assert_false(dag_can_join(&dag, 1, dag_bit(0) | dag_bit(2)));
    assert_true(dag_can_join(&dag, 2, dag_bit(0) | dag_bit(1) | dag_bit(2)));
    assert_true(dag_can_join(&dag, 0, dag_bit(0)));
}

static void e3_third_block_between(void **state)
{
    struct dag dag = dag_of(4);

    (void)state;
    dag_order(&dag, 1, dag_bit(0));
    dag_order(&dag, 2, dag_bit(1));
    assert_false(dag_can_merge(&dag, 0, 2));
    assert_false(dag_can_merge(&dag, 2, 0));
    assert_true(dag_can_merge(&dag, 0, 1));
    assert_true(dag_can_merge(&dag, 2, 1));
    assert_true(dag_can_merge(&dag, 0, 3));
    assert_true(dag_can_merge(&dag, 3, 2));
}

static void merging_keeps_the_order(void **state)
{
    struct dag dag = dag_of(5);

    (void)state;
    dag_order(&dag, 1, dag_bit(0));
    dag_order(&dag, 3, dag_bit(2));
    dag_order(&dag, 4, dag_bit(3));
    dag_merge(&dag, 1, 3);
    assert_int_equal(dag.live, 1 | 2 | 4 | 16);
    assert_int_equal(dag.before[1], 1 | 4);
    assert_int_equal(dag.before[4], 1 | 2 | 4);
    assert_false(dag_can_merge(&dag, 0, 4));
    dag_merge(&dag, 0, 1);
    assert_int_equal(dag.before[0], 4);
    assert_int_equal(dag.before[4], 1 | 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_is_closed),
        cmocka_unit_test(joining_makes_no_cycle),
        cmocka_unit_test(e3_third_block_between),
        cmocka_unit_test(merging_keeps_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
