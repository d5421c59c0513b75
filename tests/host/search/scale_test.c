/* SPDX-License-Identifier: Apache-2.0 */
/* Large graphs: the work of a search grows with the ops, whatever they share, and what it finds is
 * the same whether they come one by one or at once. */
#include "search_rig.h"

#include <string.h>

#include "base/fail.h"
#include "plan/relative.h"
#include "search/search.h"

enum { SMALLEST = 512, LARGEST = 1024, TEXT = 1 << 17 };

#define RULES(...)  \
    {               \
        __VA_ARGS__ \
    }
#define CHAIN(limit)                                                         \
    {                                                                        \
        .name = "chain", .kind = RULE_CHAIN, .cap = (limit), .quality = 1000 \
    }
#define LINKED                                                \
    {                                                         \
        .name = "linked", .kind = RULE_LINKED, .quality = 900 \
    }
#define NEVER                                                \
    {                                                        \
        .name = "never", .kind = RULE_NEVER, .quality = 1000 \
    }
#define REDUCE                                                \
    {                                                         \
        .name = "reduce", .kind = RULE_REDUCE, .quality = 900 \
    }
#define DEAF                                                                            \
    {                                                                                   \
        .name = "needs_death", .kind = RULE_CHAIN, .quality = 1000, .needs_death = true \
    }

/* ---- graphs ---- */

struct sketch {
    struct relative relative;
    uint32_t next; /* value */
};

static uint32_t op(struct sketch *g, const char *name, uint32_t a, uint32_t b, uint32_t dead)
{
    const uint32_t in[] = {a, b};

    rig_op(&g->relative, name, in, b == UINT32_MAX ? 1 : 2, g->next, &dead, dead != UINT32_MAX);
    return g->next++;
}

#define NONE UINT32_MAX

static void unrelated(struct sketch *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        op(g, "exp", g->next++, NONE, NONE);
}

static void unrelated_folds(struct sketch *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        op(g, i % 3 ? "sum" : "exp", g->next++, NONE, NONE);
}

static void one_input(struct sketch *g, uint32_t n)
{
    uint32_t x = g->next++;

    for (uint32_t i = 0; i < n; i++)
        op(g, "exp", x, NONE, NONE);
}

/* v = v + g; p = p + v, for each parameter; v dies late. */
static void optimiser(struct sketch *g, uint32_t n)
{
    for (uint32_t i = 0; i + 3 < n; i += 4) {
        uint32_t v = g->next++, grad = g->next++, p = g->next++;
        uint32_t scaled = op(g, "neg", v, NONE, NONE), moved, step;

        moved = op(g, "add", scaled, grad, NONE);
        step = op(g, "neg", moved, NONE, scaled);
        op(g, "sub", p, step, step);
    }
}

static void one_chain(struct sketch *g, uint32_t n)
{
    uint32_t x = g->next++;

    for (uint32_t i = 0; i < n; i++)
        x = op(g, "neg", x, NONE, i ? x : NONE);
}

/* A chain and ops beside it that join it, each made `ahead` of its use. */
static void fed_chain(struct sketch *g, uint32_t n, uint32_t ahead)
{
    uint32_t x = g->next++, side[8];

    for (uint32_t i = 0; i < n / 2 + ahead; i++) {
        if (i >= ahead)
            x = op(g, "add", x, side[(i - ahead) % 8], side[(i - ahead) % 8]);
        side[i % 8] = op(g, "exp", g->next++, NONE, NONE);
    }
}

static void fed_at_once(struct sketch *g, uint32_t n)
{
    fed_chain(g, n, 1);
}

static void fed_ahead(struct sketch *g, uint32_t n)
{
    fed_chain(g, n, 3);
}

static void eight_chains(struct sketch *g, uint32_t n)
{
    uint32_t x[8];

    for (uint32_t k = 0; k < 8; k++)
        x[k] = g->next++;
    for (uint32_t i = 0; i < n; i++)
        x[i % 8] = op(g, "neg", x[i % 8], NONE, i >= 8 ? x[i % 8] : NONE);
}

/* Two chains that meet now and then, with folds between. */
static void ladder(struct sketch *g, uint32_t n)
{
    uint32_t x = g->next++, y = g->next++;

    for (uint32_t i = 0; i < n; i++) {
        if (i % 7 == 6)
            x = op(g, "add", x, y, NONE);
        else if (i % 11 == 10)
            y = op(g, "sum", y, NONE, NONE);
        else if (i % 2)
            x = op(g, "exp", x, NONE, NONE);
        else
            y = op(g, "neg", y, NONE, y);
    }
}

static const struct shape {
    const char *name;
    void (*make)(struct sketch *g, uint32_t n);
} shapes[] = {{"unrelated", unrelated}, {"unrelated folds", unrelated_folds},
              {"one input", one_input}, {"optimiser", optimiser},
              {"one chain", one_chain}, {"fed at once", fed_at_once},
              {"fed ahead", fed_ahead}, {"eight chains", eight_chains},
              {"two that meet", ladder}};

/* ---- fusers ---- */

static struct set {
    uint32_t n;
    struct rule rules[3];
} sets[] = {{1, RULES(CHAIN(0))},
            {1, RULES(CHAIN(16))},
            {1, RULES(LINKED)},
            {1, RULES(NEVER)},
            {1, RULES(DEAF)},
            {2, RULES(CHAIN(3), NEVER)},
            {3, RULES(CHAIN(0), LINKED, REDUCE)}};

/* ---- searching ---- */

struct found {
    char text[TEXT];
    struct search_stats stats;
    uint32_t n_launches, n_ops;
};

static void search_graph(const struct relative *relative, struct set *set, bool one_by_one,
                         bool all, struct found *found)
{
    struct search_config config = {.n_fusers = set->n, .max_blocks = 5};
    struct relative part = {0};
    const struct plan_block *blocks;
    struct rig_fusers fusers;
    struct search *search;
    uint32_t n_blocks;
    frit_err err = ERR_INIT;

    rig_fusers_init(&fusers, set->rules, set->n);
    config.fusers = fusers.list;
    assert_int_equal(search_create(&config, &search, &err), FRIT_OK);
    for (uint32_t i = 0; i < relative->n_ops && one_by_one; i++) {
        rig_cut(relative, i, i + 1, &part);
        assert_int_equal(search_push(search, &part, &err), FRIT_OK);
    }
    assert_int_equal(search_finish(search, one_by_one ? &part : relative, all, &blocks, &n_blocks,
                                   &found->n_ops, &err),
                     FRIT_OK);
    rig_blocks_text(&fusers, blocks, n_blocks, found->text, TEXT);
    found->n_launches = n_blocks;
    rig_drop(blocks, n_blocks);
    search_stats(search, &found->stats);
    search_destroy(search);
    relative_fini(&part);
}

/* The answer is the same one by one, which may take a second pass where deaths come late. */
static void assert_same(const struct found *at_once, const struct found *one_by_one)
{
    struct search_stats a = at_once->stats, b = one_by_one->stats;

    assert_string_equal(at_once->text, one_by_one->text);
    assert_int_equal(at_once->n_ops, one_by_one->n_ops);
    assert_true(a.pushes <= b.pushes && a.merges <= b.merges);
    a.pushes = b.pushes;
    a.merges = b.merges;
    assert_memory_equal(&a, &b, sizeof(a));
}

/* The pushes of a search that takes the ops one by one. */
static uint64_t work_of(const struct shape *shape, struct set *set, uint32_t n)
{
    static struct found first, second;
    struct sketch g = {0};

    shape->make(&g, n);
    for (int all = 0; all < 2; all++) {
        search_graph(&g.relative, set, false, all, &first);
        search_graph(&g.relative, set, true, all, &second);
        assert_same(&first, &second);
    }
    assert_int_equal(first.stats.in_order, 0);
    relative_fini(&g.relative);
    return second.stats.pushes + second.stats.merges;
}

static void work_grows_with_ops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
            uint64_t before = work_of(&shapes[i], &sets[k], SMALLEST);

            for (uint32_t n = 2 * SMALLEST; n <= LARGEST; n *= 2) {
                uint64_t work = work_of(&shapes[i], &sets[k], n);

                if (10 * work > 24 * before) /* blocks without a limit double: n log n */
                    fail_msg("%s, fusers %zu: work %llu for %u ops, %llu for half of them",
                             shapes[i].name, k, (unsigned long long)work, n,
                             (unsigned long long)before);
                before = work;
            }
        }
    }
}

/* Of fusers that take 16 ops: an optimiser's step runs four parameters of four ops at a time. */
static void independent_ops_are_grouped(void **state)
{
    static struct found found;
    struct set sixteen = {1, RULES(CHAIN(16))};

    (void)state;
    for (uint32_t n = 16; n <= LARGEST; n *= 4) {
        for (size_t i = 0; i < 4; i++) {
            struct sketch g = {0};

            if (shapes[i].make == unrelated_folds)
                continue;
            shapes[i].make(&g, n);
            search_graph(&g.relative, &sixteen, false, true, &found);
            assert_true(found.n_launches <= n / 16 + n / 256);
            relative_fini(&g.relative);
        }
    }
}

/* v = 0.9 v + 2 g; p = p - 0.01 v, as of a scope: what is not kept dies with the last op. */
static void momentum(struct sketch *g, uint32_t n_params, bool late)
{
    frit_err err = ERR_INIT;

    for (uint32_t i = 0; i < n_params; i++) {
        uint32_t v = g->next++, slope = g->next++, p = g->next++;
        uint32_t doubled = op(g, "neg", slope, NONE, NONE), scaled = op(g, "exp", v, NONE, NONE);
        uint32_t moved = op(g, "add", scaled, doubled, NONE), step;

        if (!late) {
            relative_add_death(&g->relative, g->relative.n_ops - 1, doubled, &err);
            relative_add_death(&g->relative, g->relative.n_ops - 1, scaled, &err);
        }
        step = op(g, "neg", moved, NONE, NONE);
        op(g, "sub", p, step, late ? NONE : step);
    }
    for (uint32_t i = 0; i < n_params && late; i++) {
        for (uint32_t k = 3; k < 7; k++) {
            if (k != 5)
                relative_add_death(&g->relative, g->relative.n_ops - 1, 8 * i + k, &err);
        }
    }
}

static void search_momentum(uint32_t n_params, bool late, bool one_by_one, struct found *found)
{
    /* As of map kernels: sixteen outputs, and more while the block may still close some. */
    static struct set sixteen = {
        2, RULES({.name = "map", .kind = RULE_CHAIN, .quality = 1000, .outputs = 16}, NEVER)};
    struct sketch g = {0};

    momentum(&g, n_params, late);
    search_graph(&g.relative, &sixteen, one_by_one, true, found);
    relative_fini(&g.relative);
}

/* However many parameters a step has, a launch has as many of them. */
static void launches_grow_with_parameters(void **state)
{
    static struct found found, other;

    (void)state;
    for (uint32_t n = 64; n <= 1024; n *= 4) {
        search_momentum(n, false, false, &found);
        if (found.n_launches > n / 8 + n / 64)
            fail_msg("%u launches for %u parameters", found.n_launches, n);
        if (found.stats.pushes > 32 * 5 * (uint64_t)n) /* of two fusers */
            fail_msg("%llu pushes for %u parameters", (unsigned long long)found.stats.pushes, n);
        search_momentum(n, true, false, &other);
        assert_string_equal(found.text, other.text);
        search_momentum(n, true, true, &other);
        assert_same(&found, &other);
    }
}

/* What finish takes itself is taken once, however late its deaths are. */
static void finish_makes_one_pass(void **state)
{
    static struct found early, late;

    (void)state;
    search_momentum(64, false, false, &early);
    search_momentum(64, true, false, &late);
    assert_same(&early, &late);
    assert_int_equal(late.stats.pushes, early.stats.pushes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_grows_with_ops),
        cmocka_unit_test(independent_ops_are_grouped),
        cmocka_unit_test(launches_grow_with_parameters),
        cmocka_unit_test(finish_makes_one_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
