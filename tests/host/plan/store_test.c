/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that were saved, by one process or by several, are loaded unchanged; what is damaged,
 * foreign or does not match its sequence is left out. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/fail.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "host/plan/store_rig.h"
#include "plan/plan.h"
#include "plan/program.h"

/* Prints a plan of sequence `w`, or what a saved one is of. */
static void print_plan(const struct store_context *context, struct plan *plan, uint32_t w,
                       struct str *out)
{
    struct plan *made = plan->saved ? store_rig_rebuild(context, plan, w) : plan_ref(plan);

    assert_non_null(made);
    str_addf(out, " of %u, %u values\n", made->n_calls, made->n_values);
    plan_print(made, out);
    plan_unref(made);
}

/* Prints the answers of all nodes of these sequences. */
static void print(const struct store_context *context, struct automaton *automaton, uint32_t first,
                  uint32_t n_sequences, struct str *out)
{
    struct walker walker;

    walker_init(&walker, automaton);
    for (uint32_t w = first; w < first + n_sequences; w++) {
        for (uint32_t depth = 1; depth <= 5; depth++) {
            struct plan *plan;

            store_rig_walk(&walker, 10 * w, depth);
            str_addf(out, "%u/%u: %d", w, depth, (int)walker_lazy(&walker, &plan));
            if (plan)
                print_plan(context, plan, w, out);
            if (walker_sync(&walker) && walker_sync(&walker) == plan)
                str_addf(out, " and the same at a sync");
            else if (walker_sync(&walker))
                print_plan(context, walker_sync(&walker), w, out);
            str_addf(out, "\n");
        }
    }
    walker_fini(&walker);
}

static void test_round_trip(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *before = store_rig_automaton(), *after = store_rig_automaton();
    struct str expected = {0}, found = {0};
    struct automaton_stats stats[2];
    uint32_t n_plans;

    (void)state;
    assert_int_equal(store_rig_load(context, after), 0); /* there is no file */
    n_plans = store_rig_learn(before, 1, 40);
    store_rig_save(context, before);
    assert_int_equal(store_rig_load(context, after), n_plans);
    automaton_stats(before, &stats[0]);
    automaton_stats(after, &stats[1]);
    assert_int_equal(stats[0].nodes, stats[1].nodes);
    print(context, before, 1, 40, &expected);
    print(context, after, 1, 40, &found);
    assert_non_null(strstr(expected.text, "fake: "));
    assert_string_equal(expected.text, found.text);
    automaton_stats(after, &stats[0]);
    assert_int_equal(stats[0].nodes, stats[1].nodes); /* print() has added no nodes */
    str_fini(&expected);
    str_fini(&found);
    automaton_destroy(before);
    automaton_destroy(after);
    store_rig_close(&rig);
}

static void step_beyond(struct walker *walker)
{
    struct op_key key = rig_key(1);

    walker_step(walker, &key);
    walker_set_lazy(walker, NULL);
}

/* Saving twice changes nothing, saving other sequences adds them, and saving fewer removes none. */
static void test_saves_add_up(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *a = store_rig_automaton(), *b = store_rig_automaton(),
                     *less = store_rig_automaton();
    struct plan *plan;
    struct walker walker;
    struct stat once, twice;
    uint32_t n_a = store_rig_learn(a, 1, 10), n_b = store_rig_learn(b, 5, 10), n_both;

    (void)state;
    n_both = n_a / 10 * 14;
    store_rig_save(context, a);
    assert_int_equal(stat(rig.path, &once), 0);
    store_rig_save(context, a);
    assert_int_equal(stat(rig.path, &twice), 0);
    assert_int_equal(once.st_size, twice.st_size);
    assert_int_equal(store_rig_count(context), n_a);
    store_rig_save(context, b);
    walker_init(&walker, less);
    store_rig_walk(&walker, 10, 5); /* sequence 1 without the answers of its first and last node */
    step_beyond(&walker);
    store_rig_save(context, less);
    assert_int_equal(n_a, n_b);
    assert_int_equal(store_rig_count(context), n_both);
    automaton_destroy(a);
    a = store_rig_automaton();
    assert_int_equal(store_rig_load(context, a), n_both);
    walker_fini(&walker);
    walker_init(&walker, a);
    store_rig_walk(&walker, 10, 1);
    assert_int_equal(walker_lazy(&walker, &plan), LAZY_GO_ON);
    walker_fini(&walker);
    automaton_destroy(a);
    automaton_destroy(b);
    automaton_destroy(less);
    store_rig_close(&rig);
}

/* Saves and checks how many nodes with answers and how many rows were written: a sequence of
 * store_rig_learn has five nodes (rows), two of them with answers. */
static void expect_saved(const struct store_context *context, struct automaton *automaton,
                         uint64_t n_nodes, uint64_t n_rows)
{
    struct store_saved saved = store_rig_save(context, automaton);

    assert_int_equal(saved.n_nodes, n_nodes);
    assert_int_equal(saved.n_rows, n_rows);
}

/* A save writes only what was added since the last one, however large the automaton is. */
static void test_a_save_writes_what_is_new(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    struct walker walker;
    uint32_t n_plans;

    (void)state;
    n_plans = store_rig_learn(automaton, 1, 500);
    expect_saved(context, automaton, 500 * 2, 500 * 5);
    expect_saved(context, automaton, 0, 0);
    n_plans += store_rig_learn(automaton, 501, 1);
    expect_saved(context, automaton, 2, 5);
    walker_init(&walker, automaton);
    store_rig_walk(&walker, 10, 2); /* an inner node of a sequence that has answers */
    walker_set_lazy(&walker, NULL);
    store_rig_walk(&walker, 10, 6); /* one node past its end */
    walker_set_lazy(&walker, NULL);
    expect_saved(context, automaton, 2, 2);
    walker_fini(&walker);
    automaton_destroy(automaton);

    automaton = store_rig_automaton(); /* what was loaded is not saved again */
    assert_int_equal(store_rig_load(context, automaton), n_plans);
    expect_saved(context, automaton, 0, 0);
    store_rig_learn(automaton, 502, 2);
    expect_saved(context, automaton, 2 * 2, 2 * 5);
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

/* What could not be written counts as new until a save succeeds. */
static void test_what_was_not_saved_is_new(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    char path[sizeof(rig.path)];

    (void)state;
    store_rig_learn(automaton, 1, 3);
    store_rig_save(context, automaton);
    store_rig_learn(automaton, 4, 3);
    strcpy(path, rig.path);
    context->path = "/proc/no/such/place";
    expect_saved(context, automaton, 0, 0);
    context->path = path;
    expect_saved(context, automaton, 3 * 2, 3 * 5);
    assert_int_equal(store_rig_count(context), 6 * 2);
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

static void execute(const char *path, const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A full namespace is emptied while the others stay; one that was unused for long is deleted. */
static void test_each_namespace_is_bounded(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig), other = *context;
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_learn(automaton, 1, 10), n_full = 0;

    (void)state;
    other.space = "host 1, driver other";
    store_rig_save(&other, automaton);
    automaton_destroy(automaton);
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t n_before = store_rig_count(context);

        assert_int_equal(automaton_create(64 << 10, &automaton, NULL), FRIT_OK);
        store_rig_learn(automaton, 1000 * round, 10);
        store_rig_save(context, automaton);
        automaton_destroy(automaton);
        n_full += store_rig_count(context) < n_before;
        assert_int_equal(store_rig_count(&other), n_plans);
    }
    assert_in_range(n_full, 1, 20);
    execute(rig.path, "UPDATE spaces SET day = day - 89");
    store_rig_save_anew(context, 1);
    assert_int_equal(store_rig_count(&other), n_plans);
    execute(rig.path, "UPDATE spaces SET day = day - 2");
    store_rig_save_anew(context, 1);
    assert_int_equal(store_rig_count(&other), 0);
    assert_true(store_rig_count(context) > 0);
    store_rig_close(&rig);
}

/* Rows of another namespace, and programs of another fuser or fuser version, are not loaded. */
static void test_foreign(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct store_context other = *context;
    struct store_fuser fuser = rig.fuser;
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_learn(automaton, 1, 10);

    (void)state;
    store_rig_save(context, automaton);
    automaton_destroy(automaton);
    other.space = "host 2, driver test";
    assert_int_equal(store_rig_count(&other), 0);
    other = *context;
    other.fusers = &fuser;
    assert_int_equal(store_rig_count(&other), n_plans);
    fuser.version++; /* plans without programs remain */
    assert_int_equal(store_rig_count(&other), n_plans / 2);
    fuser = rig.fuser;
    fuser.name = "other";
    assert_int_equal(store_rig_count(&other), n_plans / 2);
    fuser = rig.fuser;
    fuser.table = &(const frit_fuser_table){.struct_size = sizeof(frit_fuser_table)};
    assert_int_equal(store_rig_count(&other), n_plans / 2);
    other.n_fusers = 0;
    assert_int_equal(store_rig_count(&other), n_plans / 2);
    store_rig_close(&rig);
}

/* A plan with a program that has no to_state is not saved; other plans are, those at the same node
 * included. */
static void test_unsaved_program(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct program *program = rig_program(4, 1, false);
    struct plan *plan = rig_plan(3, 0, program), *plain = rig_plan(3, 0, NULL), *found;
    struct automaton *automaton = store_rig_automaton();
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    store_rig_walk(&walker, 10, 3);
    walker_set_lazy(&walker, plan);
    walker_set_sync(&walker, plain);
    store_rig_walk(&walker, 20, 3);
    walker_set_lazy(&walker, plan);
    walker_set_sync(&walker, plan);
    store_rig_save(context, automaton);
    walker_fini(&walker);
    automaton_destroy(automaton);
    automaton = store_rig_automaton();
    assert_int_equal(store_rig_load(context, automaton), 1);
    walker_init(&walker, automaton);
    store_rig_walk(&walker, 10, 3);
    assert_int_equal(walker_lazy(&walker, &found), LAZY_UNKNOWN);
    assert_non_null(walker_sync(&walker));
    walker_fini(&walker);
    automaton_destroy(automaton);
    plan_unref(plan);
    plan_unref(plain);
    program_unref(program);
    store_rig_close(&rig);
}

/* D9: a plan over more ops than there are keys up to its node is not loaded. */
static void d9_plan_longer_than_its_sequence(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct plan *three = rig_plan(3, 0, NULL);
    struct automaton *automaton = store_rig_automaton();
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    store_rig_walk(&walker, 10, 2);
    walker_set_lazy(&walker, three);
    store_rig_walk(&walker, 20, 4);
    walker_set_sync(&walker, three);
    store_rig_walk(&walker, 30, 4);
    walker_set_lazy(&walker, three);
    walker_fini(&walker);
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), 1);
    automaton_destroy(automaton);
    plan_unref(three);
    store_rig_close(&rig);
}

/* A file that has outgrown its bound is emptied, and then holds what was saved last. */
static void test_bound(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    const uint64_t bytes = 400 << 10;
    struct stat info = {0};

    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        struct automaton *automaton;
        uint32_t n_plans;

        assert_int_equal(automaton_create(bytes, &automaton, NULL), FRIT_OK);
        n_plans = store_rig_learn(automaton, 1000 * round, 40);
        store_rig_save(context, automaton);
        automaton_destroy(automaton);
        assert_int_equal(stat(rig.path, &info), 0);
        assert_true((uint64_t)info.st_size < 5 * bytes);
        assert_true(store_rig_count(context) >= n_plans);
    }
    assert_true((uint64_t)info.st_size > 3 * bytes); /* it had to be emptied */
    store_rig_close(&rig);
}

/* A load takes no more than half of what the automaton may keep. */
static void test_load_is_bounded(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton(), *small;
    struct automaton_stats stats;
    uint32_t n_plans = store_rig_learn(automaton, 1, 200);

    (void)state;
    store_rig_save(context, automaton);
    automaton_destroy(automaton);
    assert_int_equal(automaton_create(64 << 10, &small, NULL), FRIT_OK);
    assert_in_range(store_rig_load(context, small), 1, n_plans / 2);
    automaton_stats(small, &stats);
    assert_true(stats.bytes <= 64 << 10);
    assert_int_equal(stats.generations, 2);
    automaton_destroy(small);
    store_rig_close(&rig);
}

struct saver {
    pthread_t thread;
    const struct store_context *context;
    uint32_t first;
};

static void *save_and_load(void *ctx)
{
    const struct saver *saver = ctx;

    for (uint32_t round = 0; round < 5; round++) {
        struct automaton *automaton = store_rig_automaton();

        store_rig_load(saver->context, automaton);
        store_rig_learn(automaton, saver->first + 10 * round, 10);
        store_rig_save(saver->context, automaton);
        automaton_destroy(automaton);
    }
    return NULL;
}

/* Several savers at once, as if in several processes: nothing is lost or damaged. */
static void test_at_once(void **state)
{
    struct store_rig rig = store_rig_open();
    const struct store_context *context = store_rig_context(&rig);
    struct saver savers[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        savers[i] = (struct saver){.context = context, .first = 1000 * i};
        assert_int_equal(pthread_create(&savers[i].thread, NULL, save_and_load, &savers[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        pthread_join(savers[i].thread, NULL);
    assert_false(store_rig_has(&rig, ".damaged"));
    assert_int_equal(store_rig_count(context), 3 * 5 * 10 * 2);
    store_rig_close(&rig);
}

/* Whichever allocation fails (those of SQLite excepted), the call returns a failure or works
 * without it, and nothing leaks. */
static void test_no_memory(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    struct store_loaded loaded;
    struct store_saved saved;
    bool has_failed = true;

    (void)state;
    store_rig_learn(automaton, 1, 2);
    for (long n = 0; has_failed; n++) {
        frit_status status;

        failing_alloc_arm(n);
        status = store_save(context, automaton, &saved, NULL);
        has_failed = failing_alloc_disarm();
        assert_true(status == FRIT_OK || (has_failed && status == FRIT_NO_HOST_MEMORY));
    }
    assert_int_equal(store_rig_count(context), 4);
    automaton_destroy(automaton);
    has_failed = true;
    for (long n = 0; has_failed && n < 10000; n++) {
        frit_err err = ERR_INIT;
        frit_status status;

        automaton = store_rig_automaton();
        failing_alloc_arm(n);
        status = store_load(context, automaton, &loaded, &err);
        has_failed = failing_alloc_disarm();
        assert_true(status == FRIT_OK || (has_failed && status == FRIT_NO_HOST_MEMORY));
        assert_true(loaded.n_plans <= 4 && (has_failed || loaded.n_plans == 4));
        automaton_destroy(automaton);
    }
    assert_false(has_failed);
    store_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_saves_add_up),
        cmocka_unit_test(test_a_save_writes_what_is_new),
        cmocka_unit_test(test_what_was_not_saved_is_new),
        cmocka_unit_test(test_each_namespace_is_bounded),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_unsaved_program),
        cmocka_unit_test(d9_plan_longer_than_its_sequence),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_load_is_bounded),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
