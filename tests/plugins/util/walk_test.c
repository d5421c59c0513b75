/* SPDX-License-Identifier: Apache-2.0 */
/* The walker against positions computed from indices: every combination of strides of both signs
 * and 0, both modes, extents 0 and 1. */
#include "unit.h"

#include "util/walk.h"

enum { RANK = 3 };

struct space {
    int64_t dims[RANK];
    int64_t strides[RANK][2];
};

static void push_all(struct walk *walk, enum walk_mode mode, const struct space *space)
{
    walk_init(walk, mode, 2);
    for (int d = 0; d < RANK; d++)
        walk_push(walk, space->dims[d], space->strides[d]);
}

/* Row-major order, each element once, each operand where its strides say. */
static void check_space(enum walk_mode mode, const struct space *space)
{
    int64_t n = space->dims[0] * space->dims[1] * space->dims[2], seen = 0;
    struct walk walk;

    push_all(&walk, mode, space);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t i = 0; i < walk.count; i++, seen++) {
            int64_t index[RANK] = {seen / (space->dims[1] * space->dims[2]),
                                   seen / space->dims[2] % space->dims[1], seen % space->dims[2]};

            assert_true(seen < n);
            for (int k = 0; k < 2; k++) {
                int64_t at = 0;

                for (int d = 0; d < RANK; d++)
                    at += index[d] * space->strides[d][k];
                assert_int_equal(walk.at[k] + i * walk.step[k], at);
            }
        }
    assert_int_equal(seen, n);
}

static void positions(void **state)
{
    static const int64_t strides[] = {-12, -4, 0, 4, 8, 24};
    static const int64_t dims[][RANK] = {{2, 3, 4}, {1, 3, 2}, {3, 1, 1}, {1, 1, 1}, {2, 0, 3}};
    const size_t n = sizeof strides / sizeof *strides;

    (void)state;
    for (size_t shape = 0; shape < sizeof dims / sizeof *dims; shape++)
        for (size_t pick = 0; pick < n * n * n; pick++) {
            int64_t a = strides[pick % n], b = strides[pick / n % n], c = strides[pick / n / n];
            struct space space = {{dims[shape][0], dims[shape][1], dims[shape][2]},
                                  {{a, c}, {b, a}, {c, b}}};

            check_space(WALK_ROWS, &space);
            check_space(WALK_ELEMENTS, &space);
        }
}

static void dense_dims_merge(void **state)
{
    const struct space dense = {{2, 3, 4}, {{48, 96}, {16, 32}, {4, 8}}};
    const struct space split = {{2, 3, 4}, {{48, 96}, {16, 40}, {4, 8}}};
    struct walk walk;

    (void)state;
    push_all(&walk, WALK_ROWS, &dense);
    assert_true(walk_first(&walk));
    assert_int_equal(walk.count, 24);
    assert_false(walk_next(&walk));
    push_all(&walk, WALK_ROWS, &split); /* one operand alone is enough to part the dims */
    assert_true(walk_first(&walk));
    assert_int_equal(walk.count, 4);
}

static void no_dims_is_one_element(void **state)
{
    struct walk walk;

    (void)state;
    walk_init(&walk, WALK_ROWS, 1);
    assert_true(walk_first(&walk));
    assert_int_equal(walk.count, 1);
    assert_false(walk_next(&walk));
}

static void begins_again(void **state)
{
    const struct space space = {{2, 2, 2}, {{1, 9}, {5, -3}, {7, 2}}};
    struct walk walk;
    int stops = 0;

    (void)state;
    push_all(&walk, WALK_ELEMENTS, &space);
    assert_true(walk_first(&walk));
    assert_true(walk_next(&walk));
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        stops++;
    assert_int_equal(stops, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),
        cmocka_unit_test(dense_dims_merge),
        cmocka_unit_test(no_dims_is_one_element),
        cmocka_unit_test(begins_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
