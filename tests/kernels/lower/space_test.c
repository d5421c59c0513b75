/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces: quotients and settling by brute force, and the forms that they take. */
#include <string.h>

#include "kernels/lower/rig.h"
#include "lower/space/space.h"
#include "unit.h"

static int64_t count_of(const struct space *space)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < space->n_dims; d++)
        count *= space->extent[d];
    return count;
}

static int64_t value_at(const struct space *space, const struct space_expr *expr, int64_t point)
{
    int64_t sum = expr->c;

    for (uint32_t d = space->n_dims; d-- > 0;) {
        sum += expr->k[d] * (point % space->extent[d]);
        point /= space->extent[d];
    }
    return sum;
}

/* The value at the point of this row-major number, with leaves. */
static int64_t value_of(const struct space *space, const struct space_expr *expr, int64_t point)
{
    int64_t leaves[SPACE_LEAVES], sum = value_at(space, expr, point);

    for (uint32_t i = 0; i < space->n_leaves; i++) {
        leaves[i] = value_at(space, &space->leaf[i].of, point);
        for (uint32_t j = 0; j < i; j++)
            leaves[i] += space->leaf[i].of.k[SPACE_DIMS + j] * leaves[j];
        assert_true(leaves[i] >= 0 && space->leaf[i].by > 1);
        leaves[i] /= space->leaf[i].by;
        sum += expr->k[SPACE_DIMS + i] * leaves[i];
    }
    return sum;
}

static int64_t floor_of(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Quotients of quotients by chance, at every point, before and after the space settles: its points
 * keep their numbers. */
static void test_quotients(void **state)
{
    enum { EXPRS = 6 };
    uint64_t random = 7;

    (void)state;
    for (uint32_t round = 0; round < 3000; round++) {
        struct space space = {0};
        struct space_expr exprs[EXPRS] = {{0}}, *in_use[EXPRS];
        int64_t by[EXPRS], wanted[EXPRS][256], count = 1;
        uint32_t source[EXPRS];

        for (uint32_t d = 0; d < 3; d++) {
            int64_t extent = 1 + rig_random(&random, 6);

            count *= extent;
            space_dim(&space, extent, rig_random(&random, 4) == 0);
        }
        for (uint32_t i = 0; i < EXPRS; i++) {
            in_use[i] = &exprs[i];
            source[i] = i < 2 ? i : rig_random(&random, i);
            by[i] = 1 + rig_random(&random, 12);
            if (i < 2) {
                exprs[i].c = (int64_t)rig_random(&random, 40) - 20;
                for (uint32_t d = 0; d < space.n_dims; d++)
                    exprs[i].k[d] =
                        (int64_t)rig_random(&random, 13) * (rig_random(&random, 4) ? 1 : -1);
            } else {
                exprs[i] = space_div(&space, &exprs[source[i]], by[i]);
            }
            for (int64_t p = 0; p < count; p++) {
                wanted[i][p] = value_of(&space, &exprs[i], p);
                if (i >= 2)
                    assert_int_equal(wanted[i][p], floor_of(wanted[source[i]][p], by[i]));
            }
        }
        assert_false(space.overflow);
        space_settle(&space, in_use, EXPRS);
        assert_int_equal(count_of(&space), count);
        for (uint32_t i = 0; i < EXPRS; i++)
            for (int64_t p = 0; p < count; p++)
                assert_int_equal(value_of(&space, &exprs[i], p), wanted[i][p]);
    }
}

/* Dims and leaves that are left for a store of `out`, dense, and a load of `in` with a stride more
 * than dense, both numbered alike. */
static void settle_forms(uint32_t n_out, const int64_t *out, uint32_t n_in, const int64_t *in,
                         bool dense, uint32_t n_dims, uint32_t n_leaves)
{
    struct space space = {0};
    struct space_map map = {.rank = n_out}, through = {0};
    struct space_expr store, load;
    int64_t strides[FRIT_MAX_RANK], stride = 1;

    for (uint32_t d = 0; d < n_out; d++)
        map.at[d] = space_dim(&space, out[d], 0);
    store = space_linear(&map, out);
    space_unlinear(&space, &store, n_in, in, &through);
    for (uint32_t d = n_in; d-- > 0;) {
        strides[d] = stride;
        stride *= in[d] + !dense;
    }
    load = space_offset(&through, strides);
    space_settle(&space, (struct space_expr *[]){&store, &load}, 2);
    assert_int_equal(space.n_dims, n_dims);
    assert_int_equal(space.n_leaves, n_leaves);
}

static void test_forms(void **state)
{
    (void)state;
    settle_forms(3, (const int64_t[]){4, 5, 6}, 1, (const int64_t[]){120}, true, 1, 0);
    settle_forms(3, (const int64_t[]){4, 5, 6}, 2, (const int64_t[]){6, 20}, true, 1, 0);
    settle_forms(1, (const int64_t[]){120}, 3, (const int64_t[]){4, 5, 6}, false, 3, 0);
    settle_forms(3, (const int64_t[]){4, 5, 6}, 1, (const int64_t[]){120}, false, 1, 0);
    settle_forms(2, (const int64_t[]){3, 8}, 2, (const int64_t[]){4, 6}, false, 2, 0);
    settle_forms(2, (const int64_t[]){20, 6}, 3, (const int64_t[]){4, 5, 6}, false, 3, 0);
    settle_forms(0, NULL, 2, (const int64_t[]){1, 1}, false, 0, 0);
}

/* Dims of different tags stay apart; a store over [3, 8] and a load over [4, 6] need a quotient. */
static void test_tags(void **state)
{
    const int64_t dims[2] = {3, 8}, other[2] = {4, 6}, strides[2] = {100, 1};
    struct space space = {0};
    struct space_map map = {.rank = 2}, through = {0};
    struct space_expr store, load, rows;

    (void)state;
    map.at[0] = space_dim(&space, 3, 1);
    map.at[1] = space_dim(&space, 8, 2);
    store = space_linear(&map, dims);
    space_settle(&space, (struct space_expr *[]){&store}, 1);
    assert_int_equal(space.n_dims, 2);
    space = (struct space){0};
    map.at[0] = space_dim(&space, 3, 1);
    map.at[1] = space_dim(&space, 8, 1);
    store = space_linear(&map, dims);
    rows = map.at[0];
    space_unlinear(&space, &store, 2, other, &through);
    load = space_offset(&through, strides);
    space_settle(&space, (struct space_expr *[]){&store, &load, &rows}, 3);
    assert_int_equal(space.n_leaves, 1);
    for (int64_t p = 0; p < 24; p++)
        assert_int_equal(value_of(&space, &load, p), p / 6 * 100 + p % 6);
}

/* What has no elements has coordinates all the same, of use to nobody. */
static void test_empty_dims(void **state)
{
    static const int64_t dims[] = {3, 0, 2};
    struct space space = {.n_dims = 1, .extent = {4}};
    struct space_expr linear = {.k = {1}};
    struct space_map map;

    (void)state;
    memset(&map, 0x5a, sizeof(map));
    space_unlinear(&space, &linear, 3, dims, &map);
    assert_int_equal(map.rank, 3);
    assert_int_equal(space.n_leaves, 0);
    for (uint32_t d = 0; d < 3; d++)
        assert_int_equal(value_at(&space, &map.at[d], 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_empty_dims),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
