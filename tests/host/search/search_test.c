/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks a segment gives: one case per rule of the search. */
#include "search_rig.h"

#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "plan/relative.h"

#define CHAIN(limit)                                                         \
    {                                                                        \
        .name = "chain", .kind = RULE_CHAIN, .cap = (limit), .quality = 1000 \
    }
#define EXPECT(rules, max, segment, expected) \
    rig_expect(rules, sizeof(rules) / sizeof((rules)[0]), max, segment, expected)
#define EXPECT_SOME(rules, max, segment, expected) \
    rig_expect_some(rules, sizeof(rules) / sizeof((rules)[0]), max, segment, expected)

static struct rule chain[] = {CHAIN(0)};
static struct rule linked[] = {{.name = "linked", .kind = RULE_LINKED, .quality = 1000}};

static void e1_interleaved_chains(void **state)
{
    const char *segment = "exp 0 > 2; exp 1 > 3; neg 2 > 4 ! 2; neg 3 > 5 ! 3";

    (void)state;
    EXPECT(linked, 5, segment, "linked(0 2) linked(1 3)");
    EXPECT(linked, 5, "exp 0 > 2; sum 9 > 8; neg 2 > 4 ! 2; neg 8 > 5 ! 8; exp 5 > 6 ! 5",
           "linked(0 2) 1 linked(3 4)");
    /* Nothing joins them, but one launch is saved. */
    EXPECT(chain, 5, segment, "chain(0 2 1 3)");
}

static void e2_joining_op(void **state)
{
    const char *segment = "exp 0 > 2; exp 1 > 3; neg 2 > 4 ! 2; neg 3 > 5 ! 3; add 4 5 > 6 ! 4 5";
    struct rule two[] = {CHAIN(2)};

    (void)state;
    EXPECT(chain, 5, segment, "chain(0 1 2 3 4)");
    assert_int_equal(rig_stats.merges, 1);
    /* No fuser takes both sides: the op joins the later one, which then runs last. */
    EXPECT(linked, 5, segment, "linked(0 2) linked(1 3 4)");
    EXPECT(linked, 5, "exp 0 > 2; exp 1 > 3; neg 3 > 5 ! 3; neg 2 > 4 ! 2; add 4 5 > 6 ! 4 5",
           "linked(1 2) linked(0 3 4)");
    /* Both sides are closed: a block of its own after both. */
    EXPECT(two, 5, segment, "chain(0 2) chain(1 3) 4");
}

/* Where fusers do not take program order, one block goes before the other if no edge is against
 * it. */
static void e2_one_after_the_other(void **state)
{
    struct rule rules[] = {{.name = "twice",
                            .kind = RULE_SEQUENCE,
                            .quality = 1000,
                            .sequence = {FRIT_OP_add, FRIT_OP_sub, FRIT_OP_add, FRIT_OP_sub}}};

    (void)state;
    EXPECT(rules, 5, "add 0 1 > 2; add 5 6 > 3; sub 2 7 > 4; sub 4 3 > 8", "twice(0 2 1 3)");
    EXPECT(rules, 5, "add 0 1 > 2; add 5 6 > 3; sub 3 7 > 4; sub 2 4 > 8", "twice(1 2 0 3)");
}

/* The add needs the block in between, so it can be in neither of its neighbours. */
static void e3_third_block_between(void **state)
{
    (void)state;
    EXPECT(linked, 5,
           "exp 0 > 2; exp 1 > 3; add 2 3 > 4; exp 5 > 6; add 4 6 > 7; sum 7 > 8; add 2 8 > 9",
           "0 linked(1 2) linked(3 4) 5 6");
}

static void e4_death_after_reads(void **state)
{
    (void)state;
    EXPECT(chain, 5, "exp 5 > 6; sum 9 > 1; prod 1 > 8; add 6 1 > 7 ! 6 1", "1 2 chain(0 3)");
    EXPECT(chain, 5, "exp 5 > 6; sum 9 > 1; prod 1 > 8; add 6 1 > 7 ! 6", "1 chain(0 3) 2");
    /* The last op kills what a block reads that runs after the first add's. */
    EXPECT(linked, 5,
           "sum 9 > 1; exp 5 > 6; exp 20 > 21; add 21 6 > 22; add 22 1 > 23; sum 23 > 30;"
           "add 6 1 > 24 ! 1",
           "0 1 linked(2 3 4) 5 6");
    assert_int_equal(rig_stats.repairs, 0);
    /* Reported later, the same. */
    EXPECT(chain, 5, "exp 5 > 6; sum 9 > 1; prod 1 > 8; add 6 1 > 7 ! 6; exp 7 > 10 ! 7 1",
           "1 2 chain(0 3 4)");
}

static void e5_merge_hides_nothing(void **state)
{
    struct rule four[] = {CHAIN(4)};
    const char *segment = "exp 0 > 2; exp 1 > 3; neg 2 > 4 ! 2; neg 3 > 5 ! 3;"
                          "abs 4 > 6 ! 4; abs 5 > 7 ! 5; add 6 7 > 8 ! 6 7";

    (void)state;
    EXPECT(four, 5, segment, "chain(0 2 4) chain(1 3 5 6)");
    assert_int_equal(rig_stats.merges, 0);
    four[0].cap = 7;
    EXPECT(four, 5, segment, "chain(0 1 2 3 4 5 6)");
}

static void e6_score_decides(void **state)
{
    struct rule same[] = {{.name = "first", .kind = RULE_CHAIN, .quality = 700},
                          {.name = "second", .kind = RULE_CHAIN, .quality = 700}};
    struct rule greedy[] = {{.name = "greedy", .kind = RULE_GREEDY, .quality = 1000}};

    (void)state;
    EXPECT(same, 5, "exp 0 > 1; neg 1 > 2 ! 1", "first(0 1)");
    same[1].quality = 800;
    EXPECT(same, 5, "exp 0 > 1; neg 1 > 2 ! 1", "second(0 1)");
    same[0].quality = same[1].quality = 0;
    EXPECT(same, 5, "exp 0 > 1; neg 1 > 2 ! 1", "0 1");
    /* A view costs nothing by itself, so nothing is saved. */
    EXPECT(greedy, 5, "reshape 0 > 1; exp 1 > 2 ! 1", "0 1");
    EXPECT(greedy, 5, "neg 0 > 1; reshape 1 > 2 ! 1; exp 2 > 3 ! 2", "greedy(0 1 2)");
}

/* Views of values from outside run by themselves where a fuser saves more without them, wherever
 * they were recorded; others stay. */
static void first_views_may_be_left_out(void **state)
{
    struct rule rules[] = {{.name = "pair",
                            .kind = RULE_SEQUENCE,
                            .quality = 1000,
                            .sequence = {FRIT_OP_exp, FRIT_OP_add}}};
    struct rule greedy[] = {{.name = "greedy", .kind = RULE_GREEDY, .quality = 1000}};

    (void)state;
    EXPECT(rules, 5, "reshape 0 > 1; reshape 0 > 2; exp 2 > 3; add 3 1 > 4 ! 3", "0 1 pair(2 3)");
    EXPECT(rules, 5, "reshape 0 > 1; exp 5 > 3; reshape 0 > 2; add 3 2 > 4 ! 3 0", "0 2 pair(1 3)");
    EXPECT(rules, 5, "exp 0 > 1; reshape 1 > 2; add 2 1 > 4 ! 2", "0 1 2");
    EXPECT(greedy, 5, "exp 0 > 1; reshape 5 > 2; add 1 2 > 4 ! 1 2", "greedy(0 1 2)");
    /* A view that lives on would be stored. */
    EXPECT(greedy, 5, "exp 0 > 1; reshape 5 > 2; add 1 2 > 4 ! 1", "1 greedy(0 2)");
    EXPECT(chain, 5, "exp 0 > 1; reshape 5 > 2; add 1 2 > 4 ! 1 2", "1 chain(0 2)");
}

static void e7_short_programs(void **state)
{
    struct rule rules[] = {{.name = "pair",
                            .kind = RULE_SEQUENCE,
                            .quality = 1000,
                            .sequence = {FRIT_OP_exp, FRIT_OP_neg}},
                           {.name = "never", .kind = RULE_NEVER, .quality = 1000}};
    const char *twice = "exp 0 > 1; neg 1 > 2 ! 1; exp 2 > 3 ! 2; neg 3 > 4 ! 3";

    (void)state;
    EXPECT(rules, 5, twice, "pair(0 1) pair(2 3)");
    EXPECT_SOME(rules, 5, twice, "pair(0 1) of 2");
    assert_int_equal(rig_stats.holes, 0);
    EXPECT_SOME(rules, 5,
                "exp 0 > 1; neg 1 > 2 ! 1; exp 2 > 3 ! 2; neg 3 > 4 ! 3;"
                "exp 10 > 11; neg 11 > 12 ! 11",
                "pair(0 1) pair(2 3) pair(4 5) of 6");
    assert_int_equal(rig_stats.holes, 2);
    /* What is found again may not run between. */
    EXPECT(rules, 5, "abs 0 > 1; exp 1 > 2 ! 1; neg 2 > 3 ! 2", "0 pair(1 2)");
}

/* A fuser that refused one block is tried again for the next. */
static void fusers_are_tried_again(void **state)
{
    struct rule rules[] = {
        {.name = "first", .kind = RULE_FIRST, .quality = 1000, .sequence = {FRIT_OP_abs}}};

    (void)state;
    EXPECT(rules, 5, "exp 0 > 1; abs 1 > 2 ! 1; neg 2 > 3 ! 2", "0 first(1 2)");
}

static void e8_order_is_simulated(void **state)
{
    (void)state;
    EXPECT(chain, 5,
           "all_reduce 0 > 1; exp 2 > 3; all_reduce 3 > 4; neg 3 > 5 ! 3; all_reduce 5 > 6",
           "0 1 2 3 4");
    EXPECT(chain, 5, "exp 0 > 1; sync_collective > 50; neg 1 > 2 ! 1; sync_collective > 51",
           "chain(0 2) 1 3");
}

/* Value 1 is reported dead when there are two linked blocks that would then wait for each other:
 * the search of the end begins again with this knowledge.  What still waits for each other is
 * split: see random_test.
 */
static void e9_late_death_makes_no_cycle(void **state)
{
    (void)state;
    EXPECT(linked, 5,
           "sum 9 > 1; exp 5 > 6; exp 20 > 21; add 21 6 > 22; add 22 1 > 23; sum 23 > 30;"
           "add 6 1 > 24; exp 40 > 41 ! 1",
           "0 1 linked(2 3 4) 5 6 7");
    assert_int_equal(rig_stats.repairs, 0);
    assert_int_equal(rig_stats.in_order, 0);
}

static void e11_closing_op_is_not_lost(void **state)
{
    (void)state;
    EXPECT_SOME(chain, 5, "exp 0 > 1; neg 1 > 2 ! 1; matmul 2 3 > 4 ! 2", "chain(0 1) 2 of 3");
    EXPECT_SOME(chain, 5, "matmul 0 1 > 2", "0 of 1");
}

static void e12_tail_is_fused(void **state)
{
    (void)state;
    EXPECT(chain, 1,
           "exp 0 > 1; neg 1 > 2 ! 1; matmul 2 3 > 4 ! 2; exp 4 > 5 ! 4; neg 5 > 6 ! 5;"
           "sum 6 > 7 ! 6; exp 7 > 8 ! 7; abs 8 > 9 ! 8",
           "chain(0 1) 2 chain(3 4) 5 chain(6 7)");
}

static void f4_fusers_compete(void **state)
{
    struct rule rules[] = {CHAIN(0),
                           {.name = "reduce", .kind = RULE_REDUCE, .quality = 900},
                           {.name = "greedy", .kind = RULE_GREEDY, .quality = 100}};

    (void)state;
    EXPECT(rules, 5, "exp 0 > 1; neg 1 > 2 ! 1; abs 2 > 3 ! 2", "chain(0 1 2)");
    EXPECT(rules, 5, "exp 0 > 1; neg 1 > 2 ! 1; sum 2 > 3 ! 2; abs 3 > 4 ! 3", "reduce(0 1 2 3)");
    rules[2].quality = 999;
    EXPECT(rules, 5, "exp 0 > 1; neg 1 > 2 ! 1; sum 2 > 3 ! 2; sum 3 > 4 ! 3", "greedy(0 1 2 3)");
}

static void no_fusers(void **state)
{
    struct search_config config = {.max_blocks = 5};
    struct search *search;
    struct relative relative = {0};
    frit_err err = ERR_INIT;

    (void)state;
    rig_expect(NULL, 0, 5, "exp 0 > 1; neg 1 > 2 ! 1", "0 1");
    rig_parse(&relative, "exp 0 > 1");
    assert_int_equal(search_create(&config, &search, &err), FRIT_OK);
    assert_true(search_open(search));
    assert_int_equal(search_push(search, &relative, &err), FRIT_OK);
    assert_false(search_open(search));
    search_destroy(search);
    relative_fini(&relative);
}

/* Whether the search is open after each op: "1110". */
static void expect_open(struct rule *rules, uint32_t n_rules, uint32_t max_blocks,
                        const char *segment, const char *expected)
{
    struct search_config config = {.n_fusers = n_rules, .max_blocks = max_blocks};
    struct rig_fusers fusers;
    struct relative whole = {0}, part = {0};
    struct search *search;
    frit_err err = ERR_INIT;
    char text[64] = "";

    rig_fusers_init(&fusers, rules, n_rules);
    config.fusers = fusers.list;
    rig_parse(&whole, segment);
    assert_int_equal(search_create(&config, &search, &err), FRIT_OK);
    for (uint32_t i = 0; i < whole.n_ops; i++) {
        rig_cut(&whole, i, i + 1, &part);
        assert_int_equal(search_push(search, &part, &err), FRIT_OK);
        text[i] = search_open(search) ? '1' : '0';
    }
    assert_string_equal(text, expected);
    search_destroy(search);
    relative_fini(&whole);
    relative_fini(&part);
}

static void open_until_nothing_can_grow(void **state)
{
    struct rule two[] = {CHAIN(2)};

    (void)state;
    expect_open(chain, 1, 5, "exp 0 > 1; neg 1 > 2; sum 2 > 3", "110");
    expect_open(chain, 1, 5, "exp 0 > 1; exp 5 > 6; sum 1 > 3; sum 6 > 7", "1110");
    expect_open(two, 1, 5, "exp 0 > 1; neg 1 > 2; exp 2 > 3; neg 3 > 4", "1010");
    /* Linked blocks stay apart; the third has no place. */
    expect_open(linked, 1, 2, "exp 0 > 1; exp 2 > 3; exp 4 > 5", "110");
    expect_open(chain, 1, 2, "exp 0 > 1; exp 2 > 3; exp 4 > 5", "111");
}

static void blocks_are_limited(void **state)
{
    const char *three =
        "exp 0 > 1; exp 2 > 3; exp 4 > 5; neg 1 > 6 ! 1; neg 3 > 7 ! 3; neg 5 > 8 ! 5";

    (void)state;
    EXPECT(linked, 3, three, "linked(0 3) linked(1 4) linked(2 5)");
    EXPECT_SOME(linked, 2, three, "0 1 of 2");
    EXPECT(linked, 2, three, "0 1 2 3 4 5");
    EXPECT(chain, 2, three, "chain(0 1 3 4 2 5)");
    EXPECT(chain, 1, three, "chain(0 1 2 3 4 5)");
}

/* A death makes a block that was fed without it look again. */
static void late_death_feeds_again(void **state)
{
    struct rule needs_death[] = {
        {.name = "needs_death", .kind = RULE_CHAIN, .quality = 1000, .needs_death = true},
        {.name = "never", .kind = RULE_NEVER, .quality = 1000}};

    (void)state;
    EXPECT(needs_death, 5, "exp 0 > 1; neg 1 > 2; abs 2 > 3 ! 2", "0 needs_death(1 2)");
    EXPECT(needs_death, 5, "exp 0 > 1; neg 1 > 2; abs 2 > 3 ! 2 1", "needs_death(0 1 2)");
}

static void buried_later_is_the_same(void **state)
{
    struct rule rules[] = {
        {.name = "needs_death", .kind = RULE_CHAIN, .quality = 1000, .needs_death = true}};
    struct search_config config = {.n_fusers = 1, .max_blocks = 5};
    struct rig_fusers fusers;
    struct relative relative = {0};
    const struct plan_block *blocks;
    struct search *search;
    uint32_t n_blocks, n_ops;
    frit_err err = ERR_INIT;
    char text[64];

    (void)state;
    rig_fusers_init(&fusers, rules, 1);
    config.fusers = fusers.list;
    rig_parse(&relative, "exp 0 > 1; neg 1 > 2");
    assert_int_equal(search_create(&config, &search, &err), FRIT_OK);
    assert_int_equal(search_push(search, &relative, &err), FRIT_OK);
    assert_int_equal(relative_add_death(&relative, 1, 1, &err), FRIT_OK);
    assert_int_equal(search_finish(search, &relative, true, &blocks, &n_blocks, &n_ops, &err),
                     FRIT_OK);
    assert_string_equal(rig_blocks_text(&fusers, blocks, n_blocks, text, sizeof(text)),
                        "needs_death(0 1)");
    rig_drop(blocks, n_blocks);
    assert_int_equal(search_push(search, &relative, &err), FRIT_INTERNAL);
    search_destroy(search);
    relative_fini(&relative);
}

static unsigned n_warnings;

static void count_warning(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx, (void)level;
    n_warnings += strcmp(topic, "fusion") == 0 && strstr(text, "fuser liar") != NULL;
}

/* Reported once, however many blocks it makes; to fail at finish is not a lie. */
static void liars_are_reported(void **state)
{
    (void)state;
    for (enum rule_lie lie = LIE_ACCEPTED; lie <= LIE_NOTHING; lie++) {
        struct rule rules[] = {{.name = "liar", .kind = RULE_CHAIN, .lie = lie, .quality = 1000}};

        n_warnings = 0;
        log_set_sink(count_warning, NULL);
        EXPECT(rules, 5, "exp 0 > 1; exp 5 > 6; neg 1 > 2 ! 1; neg 6 > 7 ! 6", "0 1 2 3");
        log_set_sink(NULL, NULL);
        assert_int_equal(n_warnings, lie == LIE_FINISH ? 0 : 1);
    }
}

/* Whatever a fuser says, the next one makes the program. */
static void liars_are_dropped(void **state)
{
    static const enum rule_lie lies[] = {LIE_ACCEPTED, LIE_SHRINKS, LIE_OPEN,  LIE_QUALITY,
                                         LIE_FINISH,   LIE_PROGRAM, LIE_TABLE, LIE_RECORD,
                                         LIE_CLONE,    LIE_NOTHING};

    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct rule rules[] = {
            {.name = "liar", .kind = RULE_GREEDY, .lie = lies[i], .quality = 1000},
            {.name = "chain", .kind = RULE_CHAIN, .quality = 500}};

        EXPECT(rules, 5, "exp 0 > 1; neg 1 > 2 ! 1; exp 2 > 3 ! 2; exp 9 > 10; add 3 10 > 11",
               "chain(0 1 2 3 4)");
        assert_true(rig_stats.dropped > 0);
        EXPECT(rules, 1, "exp 0 > 1; sum 1 > 2; exp 2 > 3; neg 3 > 4 ! 3", "0 1 chain(2 3)");
    }
}

static void f2_closed_fusers_are_left_alone(void **state)
{
    struct rule rules[] = {CHAIN(2), {.name = "never", .kind = RULE_NEVER, .quality = 1000}};

    (void)state;
    EXPECT(rules, 5, "exp 0 > 1; neg 1 > 2 ! 1; abs 2 > 3 ! 2; exp 3 > 4 ! 3",
           "chain(0 1) chain(2 3)");
    assert_int_equal(rig_counts.after_close, 0);
}

/* One that is never used need not be written, which is worth a tensor. */
static void f5_dead_outputs(void **state)
{
    struct rule rules[] = {CHAIN(0), {.name = "reduce", .kind = RULE_REDUCE, .quality = 1000}};

    (void)state;
    EXPECT(rules, 5, "exp 0 > 1 ! 1; neg 0 > 2", "chain(0 1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e1_interleaved_chains),
        cmocka_unit_test(e2_joining_op),
        cmocka_unit_test(e2_one_after_the_other),
        cmocka_unit_test(e3_third_block_between),
        cmocka_unit_test(e4_death_after_reads),
        cmocka_unit_test(e5_merge_hides_nothing),
        cmocka_unit_test(e6_score_decides),
        cmocka_unit_test(first_views_may_be_left_out),
        cmocka_unit_test(e7_short_programs),
        cmocka_unit_test(fusers_are_tried_again),
        cmocka_unit_test(e8_order_is_simulated),
        cmocka_unit_test(e9_late_death_makes_no_cycle),
        cmocka_unit_test(e11_closing_op_is_not_lost),
        cmocka_unit_test(e12_tail_is_fused),
        cmocka_unit_test(f2_closed_fusers_are_left_alone),
        cmocka_unit_test(f4_fusers_compete),
        cmocka_unit_test(f5_dead_outputs),
        cmocka_unit_test(no_fusers),
        cmocka_unit_test(open_until_nothing_can_grow),
        cmocka_unit_test(blocks_are_limited),
        cmocka_unit_test(late_death_feeds_again),
        cmocka_unit_test(buried_later_is_the_same),
        cmocka_unit_test(liars_are_dropped),
        cmocka_unit_test(liars_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
