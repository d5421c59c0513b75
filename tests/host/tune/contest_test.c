/* SPDX-License-Identifier: Apache-2.0 */
/* Contests on a simulated clock: who is measured, how often, who wins. */
#include "tune/contest.h"

#include "unit.h"

#include <string.h>

enum { MAX = 8, FAILS = -1 };

static const struct contest_rules usual = {.min_samples = 3, .max_samples = 10};

/* A candidate's times: the first is the warm-up's, the last one stays. */
struct script {
    int32_t priority;
    int64_t ns[4]; /* 0 ends; FAILS */
};

struct game {
    struct contest contest;
    struct contestant list[MAX];
    uint32_t trials[MAX], order[256], n_order, ranking[MAX], n_ranking;
};

static int64_t time_of(const struct script *script, uint32_t trial)
{
    uint32_t last = 0;

    while (last < 3 && script->ns[last + 1])
        last++;
    return script->ns[trial < last ? trial : last];
}

/* A trial is cut off at its limit. */
static void play(struct game *game, const struct contest_rules *rules, const struct script *scripts,
                 uint32_t n)
{
    struct contest_turn turn;

    *game = (struct game){0};
    for (uint32_t i = 0; i < n; i++)
        game->list[i].priority = scripts[i].priority;
    contest_begin(&game->contest, rules, game->list, n);
    while (contest_next(&game->contest, &turn)) {
        const int64_t ns = time_of(&scripts[turn.candidate], game->trials[turn.candidate]++);

        assert_true(game->n_order < 256);
        game->order[game->n_order++] = turn.candidate;
        if (ns == FAILS)
            contest_failed(&game->contest, &turn);
        else if (turn.limit_ns && (uint64_t)ns > turn.limit_ns)
            contest_took(&game->contest, &turn, turn.limit_ns + 1);
        else
            contest_took(&game->contest, &turn, (uint64_t)ns);
    }
    game->n_ranking = contest_rank(&game->contest, game->ranking);
}

#define PLAY(game, rules, ...)                                            \
    do {                                                                  \
        const struct script scripts[] = {__VA_ARGS__};                    \
        play(game, rules, scripts, sizeof(scripts) / sizeof(scripts[0])); \
    } while (0)

static void expect_ranking(const struct game *game, const uint32_t *expected, uint32_t n)
{
    assert_int_equal(game->n_ranking, n);
    assert_memory_equal(game->ranking, expected, n * sizeof(*expected));
}

#define RANKING(game, ...)                                                      \
    do {                                                                        \
        const uint32_t expected[] = {__VA_ARGS__};                              \
        expect_ranking(game, expected, sizeof(expected) / sizeof(expected[0])); \
    } while (0)

/* ---- scores ---- */

static void scores_are_as_documented(void **state)
{
    struct contestant one = {.state = CONTEST_LIVE, .n_samples = 1, .samples = {1000}};

    (void)state;
    assert_int_equal(contest_score(&one), 1000);
    one = (struct contestant){.n_samples = 2, .samples = {3000, 1000}};
    assert_int_equal(contest_score(&one), 1000);
    one = (struct contestant){.n_samples = 4, .samples = {1, 3000, 1000, 2000}};
    assert_int_equal(contest_score(&one), 800 + 400);
    /* Interruptions of the process are no fault of the candidate. */
    one = (struct contestant){.n_samples = 4, .samples = {1, 1000, 1000, 1000000}};
    assert_int_equal(contest_score(&one), 1000);
    /* The first of three or more is left out. */
    one = (struct contestant){.n_samples = 4, .samples = {9000, 1000, 1000, 1000}};
    assert_int_equal(contest_score(&one), 1000);
    one.state = CONTEST_FAILED;
    assert_true(contest_score(&one) == UINT64_MAX);
    one = (struct contestant){0};
    assert_true(contest_score(&one) == UINT64_MAX);
}

static void near_scores_go_by_order(void **state)
{
    struct game game;

    (void)state;
    PLAY(&game, &usual, {0, {1029000}}, {0, {1000000}});
    RANKING(&game, 0, 1);
    PLAY(&game, &usual, {0, {1031000}}, {0, {1000000}});
    RANKING(&game, 1, 0);
    PLAY(&game, &usual, {0, {1200}}, {0, {1000}}, {0, {1100}});
    RANKING(&game, 1, 2, 0);
}

/* ---- who takes part ---- */

static void higher_priorities_end_it(void **state)
{
    struct game game;

    (void)state;
    PLAY(&game, &usual, {1, {10}}, {5, {1000}}, {5, {900}}, {-1, {1}});
    RANKING(&game, 2, 1);
    assert_int_equal(game.trials[0] + game.trials[3], 0);
    PLAY(&game, &usual, {1, {10}}, {5, {FAILS}}, {5, {1000, FAILS}}, {-1, {1}});
    RANKING(&game, 0);
    assert_int_equal(game.trials[1], 1);
    assert_int_equal(game.trials[2], 2);
    PLAY(&game, &usual, {2, {FAILS}}, {1, {FAILS}}, {-5, {1}});
    assert_int_equal(game.n_ranking, 0);
    PLAY(&game, &usual, {-1, {1}});
    assert_int_equal(game.n_ranking, 0);
    play(&game, &usual, NULL, 0);
    assert_int_equal(game.n_ranking, 0);
}

static void who_fails_late_is_out(void **state)
{
    struct game game;

    (void)state;
    PLAY(&game, &usual, {0, {1000, 1000, 1000, FAILS}}, {0, {1900}});
    RANKING(&game, 1);
}

/* ---- how often ---- */

static void it_ends_when_nobody_improves(void **state)
{
    struct game game;

    (void)state;
    PLAY(&game, &usual, {0, {1000}}, {0, {1100}});
    assert_int_equal(game.list[0].n_samples, 3);
    assert_int_equal(game.list[1].n_samples, 3);
    assert_int_equal(game.n_order, 8); /* a warm-up and three samples each */
    PLAY(&game, &usual, {0, {1000}});
    assert_int_equal(game.list[0].n_samples, 3);
}

static void rounds_take_turns(void **state)
{
    static const uint32_t expected[] = {0, 0, 1, 1, 0, 1, 0, 1};
    struct game game;

    (void)state;
    PLAY(&game, &usual, {0, {1000}}, {0, {1100}});
    assert_memory_equal(game.order, expected, sizeof(expected));
}

static void the_slow_are_out_but_two(void **state)
{
    struct game game;

    (void)state;
    PLAY(&game, &usual, {0, {1000, 990, 960, 930}}, {0, {1600}}, {0, {1700}}, {0, {1400}});
    assert_int_equal(game.list[1].state, CONTEST_OUT);
    assert_int_equal(game.list[2].state, CONTEST_OUT);
    assert_int_equal(game.list[3].state, CONTEST_LIVE);
    PLAY(&game, &usual, {0, {1000}}, {0, {1600}}, {0, {1700}});
    assert_int_equal(game.list[1].state, CONTEST_LIVE);
    assert_int_equal(game.list[2].state, CONTEST_OUT);
}

static void samples_have_an_end(void **state)
{
    const struct contest_rules rules = {.min_samples = 3, .max_samples = 5};
    struct game game = {0};
    struct contest_turn turn;
    uint64_t ns = 1000000;

    (void)state;
    contest_begin(&game.contest, &rules, game.list, 1);
    for (; contest_next(&game.contest, &turn); ns = ns * 9 / 10)
        contest_took(&game.contest, &turn, ns);
    assert_int_equal(game.list[0].n_samples, 3); /* alone it need not converge */
    contest_begin(&game.contest, &rules, game.list, 2);
    for (ns = 1000000; contest_next(&game.contest, &turn); ns = ns * 9 / 10)
        contest_took(&game.contest, &turn, ns);
    assert_int_equal(game.list[0].n_samples, 5);
    assert_int_equal(game.list[1].n_samples, 5);
}

/* ---- limits ---- */

static void as_fast_as_can_be_is_enough(void **state)
{
    const struct contest_rules rules = {.min_samples = 3, .max_samples = 10, .enough_ns = 1000};
    struct game game;

    (void)state;
    PLAY(&game, &rules, {0, {1500}}, {0, {5000, 900}}, {0, {1}});
    RANKING(&game, 1, 0);
    assert_int_equal(game.trials[2], 0); /* not even compiled */
    assert_int_equal(game.list[1].n_samples, 2);
    PLAY(&game, &rules, {0, {900, 900, 1100}}, {0, {1000}}); /* only the first was quick */
    assert_int_equal(game.list[0].n_samples, 2);
    RANKING(&game, 0, 1);
}

static void what_is_faster_refutes_the_limit(void **state)
{
    const struct contest_rules rules = {
        .min_samples = 3, .max_samples = 10, .enough_ns = 1100, .least_ns = 950};
    struct game game;

    (void)state;
    PLAY(&game, &rules, {0, {800}}, {0, {400}});
    assert_true(game.contest.refuted && !game.contest.enough);
    RANKING(&game, 1, 0);
    PLAY(&game, &rules, {0, {950}}, {0, {400}});
    assert_true(!game.contest.refuted && game.contest.enough);
    RANKING(&game, 0);
}

static void what_is_far_slower_is_cut_off(void **state)
{
    const struct contest_rules rules = {
        .min_samples = 3, .max_samples = 10, .candidate_ns = 10000000};
    struct game game;

    (void)state;
    PLAY(&game, &rules, {0, {1000}}, {0, {60000000000}}, {0, {20000, 30000}}, {0, {20000, 1100}});
    RANKING(&game, 0, 3);
    assert_true(game.list[1].spent_ns <= rules.candidate_ns + 1);
    assert_int_equal(game.trials[1], 1);
    assert_true(game.list[2].spent_ns <= 20000 + 2 * (1000 * CONTEST_CUT + 1));
    assert_int_equal(game.trials[2], 3);
}

static void budgets_hold(void **state)
{
    const struct contest_rules own = {.min_samples = 3, .max_samples = 10, .candidate_ns = 5000},
                               all = {.min_samples = 3, .max_samples = 10, .budget_ns = 10000};
    struct game game;

    (void)state;
    PLAY(&game, &own, {0, {6000}}, {0, {1000}}); /* not even the warm-up ends in time */
    RANKING(&game, 1);
    assert_true(game.list[0].spent_ns <= 5001);
    PLAY(&game, &all, {0, {3000}}, {0, {2900}}, {0, {100}});
    assert_true(game.contest.spent_ns <= 12000);
    assert_int_equal(game.trials[2], 0);
    RANKING(&game, 1, 0);
}

/* ---- many ---- */

/* Whatever the times, the winner is within a few percent of the fastest. */
static void the_fastest_wins(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct script scripts[MAX] = {{0}};
        struct game game;
        int64_t best = INT64_MAX;

        for (uint32_t i = 0; i < MAX; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            scripts[i].ns[0] = 100000; /* the same for all */
            scripts[i].ns[1] = (int64_t)(1000 + (random >> 33) % 10000);
            best = scripts[i].ns[1] < best ? scripts[i].ns[1] : best;
        }
        play(&game, &usual, scripts, MAX);
        assert_true(game.n_ranking == MAX);
        assert_true((double)scripts[game.ranking[0]].ns[1] <= (double)best * 1.03);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_as_documented),
        cmocka_unit_test(near_scores_go_by_order),
        cmocka_unit_test(higher_priorities_end_it),
        cmocka_unit_test(who_fails_late_is_out),
        cmocka_unit_test(it_ends_when_nobody_improves),
        cmocka_unit_test(rounds_take_turns),
        cmocka_unit_test(the_slow_are_out_but_two),
        cmocka_unit_test(samples_have_an_end),
        cmocka_unit_test(as_fast_as_can_be_is_enough),
        cmocka_unit_test(what_is_faster_refutes_the_limit),
        cmocka_unit_test(what_is_far_slower_is_cut_off),
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(the_fastest_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
