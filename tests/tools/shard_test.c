/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of a run of `frit conform`: which there are, that each case is in one, and how evenly work
 * is shared out. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/conform.h"
#include "conform/shard.h"

static void takes_shards_only(void **state)
{
    static const char *const wrong[] = {"",
                                        "1",
                                        "/",
                                        "1/",
                                        "/2",
                                        "0/2",
                                        "3/2",
                                        "0/0",
                                        "-1/2",
                                        "+1/2",
                                        " 1/2",
                                        "1 /2",
                                        "1/2 ",
                                        "1/2/3",
                                        "1/1001",
                                        "1.5/2",
                                        "a/b",
                                        "0x1/2",
                                        "99999999999999999999/2",
                                        "1/99999999999999999999",
                                        "4294967297/4294967298"};
    struct conform_shard shard;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(conform_shard_parse(wrong[i], &shard));
    assert_true(conform_shard_parse("1/1", &shard));
    assert_true(conform_shard_parse("12/1000", &shard));
    assert_int_equal(shard.number, 12);
    assert_int_equal(shard.count, 1000);
}

/* Cases 0..n-1, each with its number in `dtype`; row i has lengths[i % n_lengths] of them. */
static struct conform_cases make_cases(size_t n, const size_t *lengths, size_t n_lengths)
{
    static char names[400][16];
    struct conform_cases cases = {
        .at = calloc(n + 1, sizeof(*cases.at)), .count = n, .capacity = n};
    size_t row = 0, left = lengths[0];

    assert_non_null(cases.at);
    for (size_t i = 0; i < n; i++) {
        cases.at[i].dtype = (uint32_t)i;
        snprintf(names[row], sizeof(names[row]), "row-%zu", row);
        cases.at[i].row.name = names[row];
        if (--left == 0)
            left = lengths[++row % n_lengths];
    }
    return cases;
}

/* The lengths of conform's rows, about. */
static const size_t mixed[] = {120, 923, 1, 310, 744, 16, 16, 16, 1417, 60};

/* Counts in `seen` the cases of each shard, which are in order. */
static void count_shards(size_t n, uint32_t count, uint32_t *seen)
{
    for (uint32_t number = 1; number <= count; number++) {
        struct conform_cases cases = make_cases(n, mixed, 10);

        assert_true(conform_shard_keep(&cases, &(struct conform_shard){number, count}));
        for (size_t i = 0; i < cases.count; i++) {
            assert_true(i == 0 || cases.at[i].dtype > cases.at[i - 1].dtype);
            seen[cases.at[i].dtype]++;
        }
        free(cases.at);
    }
}

static void every_case_is_in_one_shard(void **state)
{
    static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 1000, 1001};

    (void)state;
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        for (uint32_t count = 1; count <= 40; count++) {
            uint32_t seen[1001] = {0};

            count_shards(lengths[k], count, seen);
            for (size_t i = 0; i < 1001; i++)
                assert_int_equal(seen[i], i < lengths[k]);
        }
    }
}

/* How many rows the cases are of, each of which is in one place of the list. */
static size_t count_rows(const struct conform_cases *cases)
{
    size_t n = 0;

    for (size_t i = 0; i < cases->count; i++)
        n += i == 0 || strcmp(cases->at[i].row.name, cases->at[i - 1].row.name) != 0;
    return n;
}

static void shards_have_whole_rows_and_are_alike(void **state)
{
    enum { CASES = 40000 };
    struct conform_cases all = make_cases(CASES, mixed, 10);
    const size_t n_rows = count_rows(&all);

    (void)state;
    free(all.at);
    for (uint32_t count = 2; count <= 16; count++) {
        size_t rows = 0;

        for (uint32_t number = 1; number <= count; number++) {
            struct conform_cases cases = make_cases(CASES, mixed, 10);

            assert_true(conform_shard_keep(&cases, &(struct conform_shard){number, count}));
            assert_in_range(cases.count, CASES * 95 / 100 / count, CASES * 105 / 100 / count);
            rows += count_rows(&cases);
            free(cases.at);
        }
        assert_int_equal(rows, n_rows);
    }
}

/* A row that is longer than a shard is cut, so that every shard has something to do. */
static void long_rows_are_cut(void **state)
{
    static const size_t one[] = {1000};

    (void)state;
    for (uint32_t number = 1; number <= 8; number++) {
        struct conform_cases cases = make_cases(1000, one, 1);

        assert_true(conform_shard_keep(&cases, &(struct conform_shard){number, 8}));
        assert_in_range(cases.count, 100, 126);
        free(cases.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_shards_only),
        cmocka_unit_test(every_case_is_in_one_shard),
        cmocka_unit_test(shards_have_whole_rows_and_are_alike),
        cmocka_unit_test(long_rows_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
