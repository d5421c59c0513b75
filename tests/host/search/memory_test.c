/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a search and of a plan may fail: cleanly, and nothing is left behind. */
#include "search_rig.h"

#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "plan/relative.h"

static struct rule rules[] = {
    {.name = "linked", .kind = RULE_LINKED, .quality = 1000},
    {.name = "pair",
     .kind = RULE_SEQUENCE,
     .quality = 1000,
     .sequence = {FRIT_OP_exp, FRIT_OP_neg}},
    {.name = "never", .kind = RULE_NEVER, .quality = 1000},
};

static const char *const segment =
    "sum 9 > 1; exp 5 > 6; exp 20 > 21; add 21 6 > 22; add 22 1 > 23; sum 23 > 30; add 6 1 > 24;"
    "exp 40 > 41 ! 1; neg 41 > 42 ! 41; exp 42 > 43; neg 43 > 44 ! 43; reshape 44 > 45";

static frit_status work(struct rig_fusers *fusers, const struct relative *relative, char text[256],
                        frit_err *err)
{
    struct search_config config = {.fusers = fusers->list, .n_fusers = 3, .max_blocks = 5};
    const struct plan_block *blocks = NULL;
    struct search *search;
    struct plan *plan;
    uint32_t n_blocks, n_ops;
    frit_status st;

    TRY(search_create(&config, &search, err));
    st = search_push(search, relative, err);
    if (!st)
        st = search_finish(search, relative, true, &blocks, &n_blocks, &n_ops, err);
    if (!st) {
        rig_blocks_text(fusers, blocks, n_blocks, text, 256);
        st = plan_create(relative, 1, blocks, n_blocks, &plan, err);
        rig_drop(blocks, n_blocks);
        if (!st)
            plan_unref(plan);
    }
    search_destroy(search);
    return st;
}

static void every_allocation_fails(void **state)
{
    struct rig_fusers fusers;
    struct relative relative = {0};
    char expected[256], text[256];
    frit_err err = ERR_INIT;
    long failures = 0;

    (void)state;
    rig_fusers_init(&fusers, rules, 3);
    rig_parse(&relative, segment);
    assert_int_equal(work(&fusers, &relative, expected, &err), FRIT_OK);
    for (long n = 0, hit = 1; hit; n++) {
        frit_status st;

        rig_counts = (struct rig_counts){0};
        failing_alloc_arm(n);
        st = work(&fusers, &relative, text, &err);
        hit = failing_alloc_disarm();
        /* Where a clone cannot be kept for later, nothing is lost. */
        assert_true(st == FRIT_OK || (hit && st == FRIT_NO_HOST_MEMORY));
        if (!st)
            assert_string_equal(text, expected);
        failures += st != FRIT_OK;
        assert_int_equal(rig_counts.clones, 0);
        assert_int_equal(rig_counts.programs, 0);
    }
    assert_true(failures > 50);
    relative_fini(&relative);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
