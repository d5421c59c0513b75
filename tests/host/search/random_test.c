/* SPDX-License-Identifier: Apache-2.0 */
/* Random segments: whatever the search finds is run over symbolic values, in an independent
 * simulation of memory, and must leave what program order leaves.
 *
 *   host_search_random [SEGMENTS [SEED]]    2,000 by default, or FRIT_TEST_CASES; the seed of a
 * failure is printed */
#include "search_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/op.h"
#include "plan/relative.h"

enum { MAX_OPS = 48, MAX_VALUES = 80, EXTERNALS = 4 };

static uint64_t segments = 2000, first_seed = 1;

static uint64_t rng;

static uint32_t pick(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 16) % n);
}

/* ---- segments ---- */

static const char *const unary[] = {"exp", "neg",     "abs",        "sin", "sum",
                                    "max", "reshape", "all_reduce", "neg", "exp"};
static const char *const binary[] = {"add", "mul", "sub", "matmul", "add"};

/* Values that live: an op uses some, some of them die with it, or were forgotten before. */
static void random_segment(struct relative *relative)
{
    uint32_t alive[MAX_VALUES], n_alive = EXTERNALS, next = EXTERNALS;
    uint32_t n_ops = 1 + pick(MAX_OPS - 1), recent = 1 + pick(8);

    for (uint32_t v = 0; v < EXTERNALS; v++)
        alive[v] = v;
    for (uint32_t i = 0; i < n_ops; i++) {
        uint32_t in[2], dead[8], n_in = 1 + pick(2), n_dead = 0;
        const char *name = n_in == 1 ? unary[pick(10)] : binary[pick(5)];

        for (uint32_t k = 0; k < n_in; k++)
            in[k] = alive[pick(4) && n_alive > recent ? n_alive - 1 - pick(recent) : pick(n_alive)];
        alive[n_alive++] = next;
        for (uint32_t a = n_alive; a-- > 0 && n_dead < 6;) {
            bool used = alive[a] == in[0] || (n_in == 2 && alive[a] == in[1]);

            if (n_alive < 3 || pick(used ? 3 : 20) || (alive[a] < EXTERNALS && pick(4)))
                continue;
            dead[n_dead++] = alive[a];
            memmove(alive + a, alive + a + 1, (n_alive - a - 1) * sizeof(*alive));
            n_alive--;
        }
        rig_op(relative, name, in, n_in, next++, dead, n_dead);
    }
}

/* ---- fusers ---- */

static struct rule rules[MAX_RULES];

static uint32_t random_rules(void)
{
    static const struct rule kinds[] = {
        {.name = "chain", .kind = RULE_CHAIN},
        {.name = "linked", .kind = RULE_LINKED},
        {.name = "reduce", .kind = RULE_REDUCE},
        {.name = "greedy", .kind = RULE_GREEDY},
        {.name = "never", .kind = RULE_NEVER},
        {.name = "pair", .kind = RULE_SEQUENCE, .sequence = {FRIT_OP_exp, FRIT_OP_neg}},
        {.name = "needs_death", .kind = RULE_CHAIN, .needs_death = true},
    };
    uint32_t n = 1 + pick(5);

    for (uint32_t i = 0; i < n; i++) {
        rules[i] = kinds[pick(7)];
        rules[i].cap = pick(2) ? 1 + pick(10) : 0;
        rules[i].quality = 300 + pick(701);
        if (!pick(8))
            rules[i].lie = (enum rule_lie)(1 + pick(LIE_NOTHING));
    }
    return n;
}

/* ---- the simulation ---- */

struct machine {
    uint64_t value[MAX_VALUES]; /* 0: not in memory */
    bool gone[MAX_VALUES];
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15ull;
    return (a ^ (a >> 29)) | 1;
}

static uint64_t compute(const frit_op_desc *op, const uint64_t *value)
{
    uint64_t result = op->id;

    for (uint32_t k = 0; k < op->n_in; k++)
        result = mix(result, value[op->in[k].value]);
    return result;
}

static bool listed_dead(const struct relative *relative, uint32_t value)
{
    for (uint32_t i = 0; i < relative->n_ops; i++) {
        for (uint32_t k = 0; k < relative->ops[i].n_dead; k++) {
            if (relative->ops[i].dead[k] == value)
                return true;
        }
    }
    return false;
}

/* The last op in program order that uses or makes the value. */
static uint32_t last_use(const struct relative *relative, uint32_t value)
{
    uint32_t last = UINT32_MAX;

    for (uint32_t i = 0; i < relative->n_ops; i++) {
        const frit_op_desc *op = &relative->ops[i];

        if (op->out[0].value == value)
            last = i;
        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].value == value)
                last = i;
        }
    }
    return last;
}

static bool holds(const struct plan_block *block, uint32_t op)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (block->ops[i] == op)
            return true;
    }
    return false;
}

/* A program: reads memory, computes inside, writes what it makes and what does not die in it. */
static void run_block(const struct relative *relative, const struct plan_block *block,
                      struct machine *machine)
{
    uint64_t inside[MAX_VALUES] = {0};

    for (uint32_t i = 0; i < block->n_ops; i++) {
        const frit_op_desc *op = &relative->ops[block->ops[i]];

        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t value = op->in[k].value;

            if (!inside[value])
                inside[value] = machine->value[value];
            if (!inside[value] || machine->gone[value])
                fail_msg("op %u uses value %u, which is not there", block->ops[i], value);
        }
        inside[op->out[0].value] = compute(op, inside);
    }
    for (uint32_t i = 0; i < block->n_ops; i++) {
        uint32_t value = relative->ops[block->ops[i]].out[0].value;

        machine->value[value] = inside[value];
    }
    for (uint32_t v = 0; v < relative->n_values; v++) {
        if (listed_dead(relative, v) && holds(block, last_use(relative, v))) {
            machine->gone[v] = true;
            machine->value[v] = 0;
        }
    }
}

/* Runs the blocks over the first n_ops ops and compares with program order. */
static void assert_runs(const struct relative *relative, const struct plan_block *blocks,
                        uint32_t n_blocks, uint32_t n_ops)
{
    struct machine ours = {0};
    uint64_t plain[MAX_VALUES] = {0};
    bool met[MAX_OPS] = {false};
    uint32_t ordered = 0, n = 0;

    for (uint32_t v = 0; v < relative->n_values; v++)
        ours.value[v] = plain[v] = mix(77, v);
    for (uint32_t i = 0; i < n_ops; i++)
        ours.value[relative->ops[i].out[0].value] = 0;
    for (uint32_t i = 0; i < n_ops; i++)
        plain[relative->ops[i].out[0].value] = compute(&relative->ops[i], plain);
    for (uint32_t b = 0; b < n_blocks; b++) {
        for (uint32_t i = 0; i < blocks[b].n_ops; i++) {
            uint32_t op = blocks[b].ops[i];

            assert_true(op < n_ops && !met[op]);
            met[op] = true;
            n++;
            if (op_row(relative->ops[op].id)->traits & FRIT_OP_ORDERED) {
                assert_true(op + 1 > ordered);
                ordered = op + 1;
            }
        }
        run_block(relative, &blocks[b], &ours);
    }
    assert_int_equal(n, n_ops);
    for (uint32_t v = 0; v < relative->n_values; v++) {
        if (!ours.gone[v] && ours.value[v] != plain[v])
            fail_msg("value %u is not what it should be", v);
    }
}

/* ---- the tests ---- */

struct result {
    char text[2048];
    uint32_t n_ops;
};

enum how { IN_ONE_GO, OP_BY_OP, IN_PIECES };

/* Into `part`, which grows as a queue does. */
static void push(struct search *search, const struct relative *relative, enum how how,
                 struct relative *part)
{
    frit_err err = ERR_INIT;

    for (uint32_t at = 0; at < relative->n_ops;) {
        uint32_t more = how == OP_BY_OP ? 1 : how == IN_PIECES ? 1 + pick(9) : relative->n_ops;

        if (more > relative->n_ops - at)
            more = relative->n_ops - at;
        rig_cut(relative, at, at + more, part);
        assert_int_equal(search_push(search, part, &err), FRIT_OK);
        at += more;
    }
}

static void search_once(struct search *search, const struct rig_fusers *fusers,
                        const struct relative *relative, enum how how, bool all,
                        struct result *result)
{
    const struct plan_block *blocks;
    struct relative part = {0};
    struct plan *plan;
    uint32_t n_blocks;
    frit_err err = ERR_INIT;

    search_reset(search);
    push(search, relative, how, &part);
    assert_int_equal(search_finish(search, &part, all, &blocks, &n_blocks, &result->n_ops, &err),
                     FRIT_OK);
    assert_true(result->n_ops >= 1 && result->n_ops <= relative->n_ops);
    assert_true(!all || result->n_ops == relative->n_ops);
    assert_runs(relative, blocks, n_blocks, result->n_ops);
    if (plan_create(relative, 1, blocks, n_blocks, &plan, &err))
        fail_msg("%s", err.text);
    plan_unref(plan);
    rig_blocks_text(fusers, blocks, n_blocks, result->text, sizeof(result->text));
    rig_drop(blocks, n_blocks);
    relative_fini(&part);
}

static void same_however(struct search *search, const struct rig_fusers *fusers,
                         const struct relative *relative, bool all)
{
    struct result first, other;

    search_once(search, fusers, relative, IN_ONE_GO, all, &first);
    for (enum how how = IN_ONE_GO; how <= IN_PIECES; how++) {
        search_once(search, fusers, relative, how, all, &other);
        assert_string_equal(first.text, other.text);
        assert_int_equal(first.n_ops, other.n_ops);
    }
}

/* As a stream does it: ops until the search closes, run what it covers, feed the rest again. */
static void lazily(struct search *search, const struct rig_fusers *fusers,
                   const struct relative *relative)
{
    struct relative part = {0};
    struct result result;
    frit_err err = ERR_INIT;

    for (uint32_t first = 0; first < relative->n_ops; first += result.n_ops) {
        uint32_t end = first;

        search_reset(search);
        relative_reset(&part);
        while (end < relative->n_ops && search_open(search)) {
            rig_cut(relative, end, end + 1, &part);
            end++;
            assert_int_equal(search_push(search, &part, &err), FRIT_OK);
        }
        search_once(search, fusers, &part, IN_ONE_GO, end == relative->n_ops, &result);
    }
    relative_fini(&part);
}

static void one_segment(uint64_t seed, struct search_stats *sum)
{
    static const uint32_t limits[] = {1, 2, 5, 64};
    struct relative relative = {0};
    struct rig_fusers fusers;
    uint32_t n_rules;

    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    rig_counts = (struct rig_counts){0};
    random_segment(&relative);
    n_rules = random_rules();
    rig_fusers_init(&fusers, rules, n_rules);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct search_config config = {
            .fusers = fusers.list, .n_fusers = n_rules, .max_blocks = limits[i]};
        struct search *search;
        struct search_stats stats;
        frit_err err = ERR_INIT;

        assert_int_equal(search_create(&config, &search, &err), FRIT_OK);
        same_however(search, &fusers, &relative, true);
        same_however(search, &fusers, &relative, false);
        lazily(search, &fusers, &relative);
        search_stats(search, &stats);
        sum->merges += stats.merges;
        sum->holes += stats.holes;
        sum->repairs += stats.repairs;
        sum->in_order += stats.in_order;
        sum->dropped += stats.dropped;
        search_destroy(search);
    }
    relative_fini(&relative);
    assert_int_equal(rig_counts.clones, 0);
    assert_int_equal(rig_counts.programs, 0);
}

static uint64_t seed_now;

static int say_seed(void **state)
{
    (void)state;
    print_message("last seed %llu\n", (unsigned long long)seed_now);
    return 0;
}

static void e10_any_limit_runs_the_same(void **state)
{
    struct search_stats sum = {0};

    (void)state;
    for (uint64_t i = 0; i < segments; i++) {
        seed_now = first_seed + i;
        one_segment(seed_now, &sum);
    }
    print_message("merges %llu, holes %llu, repairs %llu, in program order %llu, dropped %llu\n",
                  (unsigned long long)sum.merges, (unsigned long long)sum.holes,
                  (unsigned long long)sum.repairs, (unsigned long long)sum.in_order,
                  (unsigned long long)sum.dropped);
    /* The simulation at the end is the last resort: the rules before it suffice. */
    assert_int_equal(sum.in_order, 0);
    assert_true(segments < 1000 || (sum.merges && sum.holes && sum.repairs && sum.dropped));
    /* So does knowing the programs around holes, nearly always. */
    assert_true(segments < 1000 || sum.repairs < segments / 5);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(e10_any_limit_runs_the_same, say_seed),
    };
    const char *many = getenv("FRIT_TEST_CASES");

    if (many)
        segments = strtoull(many, NULL, 10);
    if (argc > 1)
        segments = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
