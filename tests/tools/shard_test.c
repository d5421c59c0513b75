/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of a run of `frit conform`: which there are, that each case is in one, and how evenly work
 * is shared out. */
#include "unit.h"

#include <stdlib.h>

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

/* Cases 0..n-1, each with its number in `dtype`. */
static struct conform_cases make_cases(size_t n)
{
    struct conform_cases cases = {
        .at = calloc(n + 1, sizeof(*cases.at)), .count = n, .capacity = n};

    assert_non_null(cases.at);
    for (size_t i = 0; i < n; i++)
        cases.at[i].dtype = (uint32_t)i;
    return cases;
}

/* Counts in `seen` the cases of each shard, which are in order, and how many there are about. */
static void count_shards(size_t n, uint32_t count, uint32_t *seen)
{
    for (uint32_t number = 1; number <= count; number++) {
        struct conform_cases cases = make_cases(n);

        conform_shard_keep(&cases, &(struct conform_shard){number, count});
        assert_in_range(cases.count, n / count, n / count + 1);
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

/* Of the cases that take long each shard has its part, whatever their distance in the list. */
static void periods_are_shared_out(void **state)
{
    enum { CASES = 40000 };

    (void)state;
    for (uint32_t period = 2; period <= 16; period++) {
        for (uint32_t count = 2; count <= 16; count++) {
            const double mean = (double)CASES / period / count;

            for (uint32_t number = 1; number <= count; number++) {
                struct conform_cases cases = make_cases(CASES);
                double n = 0;

                conform_shard_keep(&cases, &(struct conform_shard){number, count});
                for (size_t i = 0; i < cases.count; i++)
                    n += cases.at[i].dtype % period == 0;
                free(cases.at);
                assert_true(n > 0.8 * mean && n < 1.2 * mean);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_shards_only),
        cmocka_unit_test(every_case_is_in_one_shard),
        cmocka_unit_test(periods_are_shared_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
