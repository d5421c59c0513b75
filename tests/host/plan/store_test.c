/* SPDX-License-Identifier: Apache-2.0 */
/* What was saved comes back as it was, from one process or several; what does not fit is left out,
 * and a file that is not ours to read harms nobody. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "host/plan/rig.h"
#include "plan/blob.h"
#include "plan/key.h"

enum { BIG = 1 << 28 };

/* A folder of the test's own, and the file in a folder of it that is not there yet. */
struct world {
    char folder[64];
    char path[96];
    struct store_fuser fuser;
    struct store_context context;
};

static struct world open_world(void)
{
    struct world world = {.folder = "/tmp/frit-store-XXXXXX"};

    assert_non_null(mkdtemp(world.folder));
    snprintf(world.path, sizeof(world.path), "%s/a/b/plans", world.folder);
    return world;
}

static struct store_context *context_of(struct world *world)
{
    world->context = rig_context(&world->fuser, world->path);
    return &world->context;
}

static void close_world(struct world *world)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(atomic_load(&rig_live_programs), 0);
}

static struct automaton *create(void)
{
    struct automaton *automaton;

    assert_int_equal(automaton_create(BIG, &automaton, NULL), FRIT_OK);
    return automaton;
}

/* A way of `depth` keys from `first` on; odd ones have interned attributes, each third is interned
 * as a whole. */
static void walk(struct walker *walker, uint64_t first, uint32_t depth)
{
    walker_restart(walker);
    for (uint64_t number = first; number < first + depth; number++) {
        struct op_key key = rig_key(number);
        char text[32];
        size_t n =
            (size_t)snprintf(text, sizeof(text), "attributes %llu", (unsigned long long)number % 7);

        if (number % 3 == 0)
            key = (struct op_key){{UINT64_C(2) << 62}};
        if (number % 3 == 0)
            n = (size_t)snprintf(text, sizeof(text), "key %llu", (unsigned long long)number);
        if (number % 3 == 0 || number % 2)
            key_with_interned(&key, walker_intern(walker, text, n));
        walker_step(walker, &key);
    }
}

/* Way `w` has an answer of each kind somewhere; how many plans there are. */
static uint32_t learn(struct automaton *automaton, uint32_t first, uint32_t n_ways)
{
    struct walker walker;
    uint32_t n_plans = 0;

    walker_init(&walker, automaton);
    for (uint32_t w = first; w < first + n_ways; w++) {
        struct plan_program *program = w % 2 ? rig_program(w % 50 * 10, (uint8_t)w, true) : NULL;
        struct plan *part = rig_plan(3, w, program), *all = rig_plan(5, w, program);

        walk(&walker, 10 * w, 1);
        walker_set_lazy(&walker, NULL);
        walk(&walker, 10 * w, 5);
        walker_set_lazy(&walker, w % 3 ? part : all);
        walker_set_sync(&walker, all);
        n_plans += 2;
        plan_unref(part);
        plan_unref(all);
        plan_program_unref(program);
    }
    walker_fini(&walker);
    return n_plans;
}

/* All answers of the ways as text. */
static void print(struct automaton *automaton, uint32_t first, uint32_t n_ways, struct str *out)
{
    struct walker walker;

    walker_init(&walker, automaton);
    for (uint32_t w = first; w < first + n_ways; w++) {
        for (uint32_t depth = 1; depth <= 5; depth++) {
            struct plan *plan;

            walk(&walker, 10 * w, depth);
            str_addf(out, "%u/%u: %d", w, depth, (int)walker_lazy(&walker, &plan));
            if (plan) {
                str_addf(out, " of %u, %u values\n", plan->n_calls, plan->n_values);
                plan_print(plan, out);
            }
            if (walker_sync(&walker) && walker_sync(&walker) == plan)
                str_addf(out, " and the same at a sync");
            else if (walker_sync(&walker))
                plan_print(walker_sync(&walker), out);
            str_addf(out, "\n");
        }
    }
    walker_fini(&walker);
}

static void save(const struct store_context *context, struct automaton *automaton)
{
    assert_int_equal(store_save(context, automaton, NULL), FRIT_OK);
}

static uint32_t load(const struct store_context *context, struct automaton *automaton)
{
    uint32_t n_plans;

    assert_int_equal(store_load(context, automaton, &n_plans, NULL), FRIT_OK);
    return n_plans;
}

/* What a new process finds. */
static uint32_t load_count(const struct store_context *context)
{
    struct automaton *automaton = create();
    uint32_t n_plans = load(context, automaton);

    automaton_destroy(automaton);
    return n_plans;
}

static void test_round_trip(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *before = create(), *after = create();
    struct str expected = {0}, found = {0};
    struct automaton_stats stats[2];
    uint32_t n_plans;

    (void)state;
    assert_int_equal(load(context, after), 0); /* there is no file */
    n_plans = learn(before, 1, 40);
    save(context, before);
    assert_int_equal(load(context, after), n_plans);
    automaton_stats(before, &stats[0]);
    automaton_stats(after, &stats[1]);
    assert_int_equal(stats[0].nodes, stats[1].nodes);
    print(before, 1, 40, &expected);
    print(after, 1, 40, &found);
    assert_non_null(strstr(expected.text, "fake: "));
    assert_string_equal(expected.text, found.text);
    automaton_stats(after, &stats[0]);
    assert_int_equal(stats[0].nodes, stats[1].nodes); /* the ways were there */
    str_fini(&expected);
    str_fini(&found);
    automaton_destroy(before);
    automaton_destroy(after);
    close_world(&world);
}

static void step_beyond(struct walker *walker)
{
    struct op_key key = rig_key(1);

    walker_step(walker, &key);
    walker_set_lazy(walker, NULL);
}

/* Saving twice changes nothing; saving other ways adds them; saving less takes nothing away. */
static void test_saves_add_up(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *a = create(), *b = create(), *less = create();
    struct plan *plan;
    struct walker walker;
    struct stat once, twice;
    uint32_t n_a = learn(a, 1, 10), n_b = learn(b, 5, 10), n_both;

    (void)state;
    n_both = n_a / 10 * 14;
    save(context, a);
    assert_int_equal(stat(world.path, &once), 0);
    save(context, a);
    assert_int_equal(stat(world.path, &twice), 0);
    assert_int_equal(once.st_size, twice.st_size);
    assert_int_equal(load_count(context), n_a);
    save(context, b);
    walker_init(&walker, less);
    walk(&walker, 10, 5); /* way 1 without what stands at its first op and its end */
    step_beyond(&walker);
    save(context, less);
    assert_int_equal(n_a, n_b);
    assert_int_equal(load_count(context), n_both);
    automaton_destroy(a);
    a = create();
    assert_int_equal(load(context, a), n_both);
    walker_fini(&walker);
    walker_init(&walker, a);
    walk(&walker, 10, 1);
    assert_int_equal(walker_lazy(&walker, &plan), LAZY_GO_ON);
    walker_fini(&walker);
    automaton_destroy(a);
    automaton_destroy(b);
    automaton_destroy(less);
    close_world(&world);
}

/* Another space, fuser, version or row of the op table: nothing, and no harm. */
static void test_foreign(void **state)
{
    static const frit_fuser_device foreign = {.struct_size = sizeof(foreign)};
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct store_context other = *context;
    struct store_fuser fuser = world.fuser;
    struct automaton *automaton = create();
    uint32_t n_plans = learn(automaton, 1, 10);

    (void)state;
    save(context, automaton);
    automaton_destroy(automaton);
    other.space = "host 2, driver test";
    assert_int_equal(load_count(&other), 0);
    other = *context;
    other.fusers = &fuser;
    assert_int_equal(load_count(&other), n_plans);
    fuser.version++; /* plans without programs remain */
    assert_int_equal(load_count(&other), n_plans / 2);
    fuser = world.fuser;
    fuser.device = &foreign; /* the programs have no record */
    assert_int_equal(load_count(&other), n_plans / 2);
    fuser = world.fuser;
    fuser.name = "other";
    assert_int_equal(load_count(&other), n_plans / 2);
    fuser = world.fuser;
    fuser.table = &(const frit_fuser_table){.struct_size = sizeof(frit_fuser_table)};
    assert_int_equal(load_count(&other), n_plans / 2);
    other.n_fusers = 0;
    assert_int_equal(load_count(&other), n_plans / 2);
    close_world(&world);
}

/* A plan with a program that has no to_state is left out, the others and its way's other answers
 * are not. */
static void test_unsaved_program(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct plan_program *program = rig_program(4, 1, false);
    struct plan *plan = rig_plan(3, 0, program), *plain = rig_plan(3, 0, NULL), *found;
    struct automaton *automaton = create();
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    walk(&walker, 10, 3);
    walker_set_lazy(&walker, plan);
    walker_set_sync(&walker, plain);
    walk(&walker, 20, 3);
    walker_set_lazy(&walker, plan);
    walker_set_sync(&walker, plan);
    save(context, automaton);
    walker_fini(&walker);
    automaton_destroy(automaton);
    automaton = create();
    assert_int_equal(load(context, automaton), 1);
    walker_init(&walker, automaton);
    walk(&walker, 10, 3);
    assert_int_equal(walker_lazy(&walker, &found), LAZY_UNKNOWN);
    assert_non_null(walker_sync(&walker));
    walker_fini(&walker);
    automaton_destroy(automaton);
    plan_unref(plan);
    plan_unref(plain);
    plan_program_unref(program);
    close_world(&world);
}

/* D9: a plan over more ops than its way has is not taken. */
static void d9_plan_longer_than_its_way(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct plan *three = rig_plan(3, 0, NULL);
    struct automaton *automaton = create();
    struct walker walker;

    (void)state;
    walker_init(&walker, automaton);
    walk(&walker, 10, 2);
    walker_set_lazy(&walker, three);
    walk(&walker, 20, 4);
    walker_set_sync(&walker, three);
    walk(&walker, 30, 4);
    walker_set_lazy(&walker, three);
    walker_fini(&walker);
    save(context, automaton);
    assert_int_equal(load_count(context), 1);
    automaton_destroy(automaton);
    plan_unref(three);
    close_world(&world);
}

static void execute(const char *path, const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static bool there(const struct world *world, const char *suffix)
{
    char path[128];

    snprintf(path, sizeof(path), "%s%s", world->path, suffix);
    return access(path, F_OK) == 0;
}

static void write_bytes(const char *path, long offset, const void *bytes, size_t n_bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n_bytes, offset), n_bytes);
    close(fd);
}

static void remove_file(const char *path)
{
    assert_int_equal(remove(path), 0);
}

/* A file of a newer Frit or of another program is neither read nor written; an older one is
 * rewritten. */
static void test_other_files(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *automaton = create();
    uint32_t n_plans = learn(automaton, 1, 4);

    (void)state;
    save(context, automaton);
    execute(world.path, "PRAGMA user_version = 2");
    assert_int_equal(load_count(context), 0);
    save(context, automaton);
    assert_int_equal(load_count(context), 0);
    execute(world.path, "PRAGMA user_version = 1");
    assert_int_equal(load_count(context), n_plans);
    execute(world.path, "DELETE FROM nodes; PRAGMA user_version = 0");
    assert_int_equal(load_count(context), 0);
    save(context, automaton);
    assert_int_equal(load_count(context), n_plans);
    execute(world.path, "PRAGMA application_id = 7");
    assert_int_equal(load_count(context), 0);
    save(context, automaton);
    assert_int_equal(load_count(context), 0);
    remove_file(world.path);
    execute(world.path, "CREATE TABLE nodes(mine)");
    save(context, automaton);
    assert_int_equal(load_count(context), 0);
    execute(world.path, "INSERT INTO nodes(mine) VALUES(1)"); /* still as it was */
    assert_false(there(&world, ".damaged"));
    automaton_destroy(automaton);
    close_world(&world);
}

/* A damaged file is set aside by whoever meets it, and the next save begins anew. */
static void test_damaged(void **state)
{
    static const char *const wrong[] = {
        "DROP TABLE spaces; CREATE VIEW spaces AS SELECT 1 AS space, 'x' AS name",
        "CREATE TABLE another(x)",
        "CREATE TRIGGER t AFTER INSERT ON spaces BEGIN DELETE FROM nodes; END",
    };
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *automaton = create();
    uint32_t n_plans = learn(automaton, 1, 20);
    char garbage[5000];
    struct stat info;

    (void)state;
    memset(garbage, 'x', sizeof(garbage));
    save(context, automaton);
    write_bytes(world.path, 0, garbage, sizeof(garbage));
    assert_int_equal(load_count(context), 0);
    assert_true(there(&world, ".damaged"));
    assert_false(there(&world, ""));
    save(context, automaton);
    assert_int_equal(load_count(context), n_plans);

    assert_int_equal(stat(world.path, &info), 0);
    for (long page = 4096; page < info.st_size; page += 4096)
        write_bytes(world.path, page, garbage, 200);
    save(context, automaton); /* set aside and begun anew in one go */
    assert_int_equal(load_count(context), n_plans);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        execute(world.path, wrong[i]);
        assert_int_equal(load_count(context), 0);
        assert_false(there(&world, ""));
        save(context, automaton);
        assert_int_equal(load_count(context), n_plans);
    }
    automaton_destroy(automaton);
    close_world(&world);
}

/* A row that is not as it was written is passed over with what hangs below it; a save puts it
 * right. */
static void test_changed_rows(void **state)
{
    static const char *const changes[] = {
        "UPDATE nodes SET parent = parent + 1 WHERE parent > 0",
        "UPDATE nodes SET lazy = 1",
        "UPDATE nodes SET plan = sync",
        "UPDATE nodes SET sync = NULL",
        "UPDATE nodes SET digest = 'text'",
        "UPDATE nodes SET key = zeroblob(32)||key",
        "UPDATE nodes SET key = substr(key, 1, 31) WHERE length(key) = 32",
        "UPDATE nodes SET space = 99",
    };
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *automaton = create();
    uint32_t n_plans = learn(automaton, 1, 10);

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        save(context, automaton);
        execute(world.path, changes[i]);
        assert_true(load_count(context) < n_plans);
        save(context, automaton);
        assert_int_equal(load_count(context), n_plans);
        remove_file(world.path);
    }
    automaton_destroy(automaton);
    close_world(&world);
}

/* Nowhere to write, or somebody else writes: no failure. */
static void test_no_place(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *automaton = create();

    (void)state;
    learn(automaton, 1, 2);
    context->path = "/proc/no/such/place";
    save(context, automaton);
    assert_int_equal(load_count(context), 0);
    context->path = world.folder; /* a folder is no file */
    save(context, automaton);
    assert_int_equal(load_count(context), 0);
    automaton_destroy(automaton);
    close_world(&world);
}

/* A file that has grown beyond its bound holds afterwards what was saved last. */
static void test_bound(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    const uint64_t bytes = 400 << 10;
    struct stat info = {0};

    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        struct automaton *automaton;
        uint32_t n_plans;

        assert_int_equal(automaton_create(bytes, &automaton, NULL), FRIT_OK);
        n_plans = learn(automaton, 1000 * round, 40);
        save(context, automaton);
        automaton_destroy(automaton);
        assert_int_equal(stat(world.path, &info), 0);
        assert_true((uint64_t)info.st_size < 5 * bytes);
        assert_true(load_count(context) >= n_plans);
    }
    assert_true((uint64_t)info.st_size > 3 * bytes); /* it had to be emptied */
    close_world(&world);
}

/* A load takes no more than half of what the automaton may keep. */
static void test_load_is_bounded(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *automaton = create(), *small;
    struct automaton_stats stats;
    uint32_t n_plans = learn(automaton, 1, 200);

    (void)state;
    save(context, automaton);
    automaton_destroy(automaton);
    assert_int_equal(automaton_create(64 << 10, &small, NULL), FRIT_OK);
    assert_in_range(load(context, small), 1, n_plans / 2);
    automaton_stats(small, &stats);
    assert_true(stats.bytes <= 64 << 10);
    assert_int_equal(stats.generations, 2);
    automaton_destroy(small);
    close_world(&world);
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
        struct automaton *automaton = create();

        load(saver->context, automaton);
        learn(automaton, saver->first + 10 * round, 10);
        save(saver->context, automaton);
        automaton_destroy(automaton);
    }
    return NULL;
}

/* Savers at once, as several processes: nothing is lost, nothing damaged. */
static void test_at_once(void **state)
{
    struct world world = open_world();
    const struct store_context *context = context_of(&world);
    struct saver savers[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        savers[i] = (struct saver){.context = context, .first = 1000 * i};
        assert_int_equal(pthread_create(&savers[i].thread, NULL, save_and_load, &savers[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        pthread_join(savers[i].thread, NULL);
    assert_false(there(&world, ".damaged"));
    assert_int_equal(load_count(context), 3 * 5 * 10 * 2);
    close_world(&world);
}

/* Whatever allocation of ours fails, it is told or does not matter, and nothing leaks. */
static void test_no_memory(void **state)
{
    struct world world = open_world();
    struct store_context *context = context_of(&world);
    struct automaton *automaton = create();
    uint32_t n_plans;
    bool hit = true;

    (void)state;
    learn(automaton, 1, 2);
    for (long n = 0; hit; n++) {
        frit_status status;

        failing_alloc_arm(n);
        status = store_save(context, automaton, NULL);
        hit = failing_alloc_disarm();
        assert_true(status == FRIT_OK || (hit && status == FRIT_NO_HOST_MEMORY));
    }
    assert_int_equal(load_count(context), 4);
    automaton_destroy(automaton);
    hit = true;
    for (long n = 0; hit && n < 10000; n++) {
        frit_err err = ERR_INIT;
        frit_status status;

        automaton = create();
        failing_alloc_arm(n);
        status = store_load(context, automaton, &n_plans, &err);
        hit = failing_alloc_disarm();
        assert_true(status == FRIT_OK || (hit && status == FRIT_NO_HOST_MEMORY));
        assert_true(n_plans <= 4 && (hit || n_plans == 4));
        automaton_destroy(automaton);
    }
    assert_false(hit);
    close_world(&world);
}

/* Bytes that are not as they were written are refused, whichever. */
static void test_blob(void **state)
{
    struct world world = open_world();
    const struct store_context *context = context_of(&world);
    struct plan_program *program = rig_program(5, 9, true);
    struct plan *plan = rig_plan(4, 5, program), *again;
    struct str bytes = {0}, second = {0};

    (void)state;
    assert_int_equal(blob_write(plan, context, &bytes, NULL), FRIT_OK);
    assert_int_equal(blob_read(bytes.text, bytes.length, context, &again, NULL), FRIT_OK);
    assert_int_equal(blob_write(again, context, &second, NULL), FRIT_OK);
    assert_int_equal(bytes.length, second.length);
    assert_memory_equal(bytes.text, second.text, bytes.length);
    plan_unref(again);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_int_equal(blob_read(bytes.text, i, context, &again, NULL), FRIT_INCOMPATIBLE);
        bytes.text[i] = (char)(bytes.text[i] ^ 1);
        assert_int_equal(blob_read(bytes.text, bytes.length, context, &again, NULL),
                         FRIT_INCOMPATIBLE);
        bytes.text[i] = (char)(bytes.text[i] ^ 1);
        assert_null(again);
    }
    str_fini(&bytes);
    str_fini(&second);
    plan_unref(plan);
    plan_program_unref(program);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_saves_add_up),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_unsaved_program),
        cmocka_unit_test(d9_plan_longer_than_its_way),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_changed_rows),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_load_is_bounded),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_blob),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
