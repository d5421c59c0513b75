/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is damaged, changed or not ours to read or write harms nobody. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "host/plan/store_rig.h"

static void execute(const char *path, const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
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
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_learn(automaton, 1, 4);

    (void)state;
    store_rig_save(context, automaton);
    execute(rig.path, "PRAGMA user_version = 3");
    assert_int_equal(store_rig_count(context), 0);
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), 0);
    execute(rig.path, "PRAGMA user_version = 2");
    assert_int_equal(store_rig_count(context), n_plans);
    execute(rig.path, "DELETE FROM nodes; PRAGMA user_version = 0");
    assert_int_equal(store_rig_count(context), 0);
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), n_plans);
    execute(rig.path, "PRAGMA application_id = 7");
    assert_int_equal(store_rig_count(context), 0);
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), 0);
    remove_file(rig.path);
    execute(rig.path, "CREATE TABLE nodes(mine)");
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), 0);
    execute(rig.path, "INSERT INTO nodes(mine) VALUES(1)"); /* still as it was */
    assert_false(store_rig_has(&rig, ".damaged"));
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

/* A damaged file is set aside by whoever meets it, and the next save begins anew. */
static void test_damaged(void **state)
{
    static const char *const wrong[] = {
        "DROP TABLE spaces; CREATE VIEW spaces AS SELECT 1 AS space, 'x' AS name",
        "CREATE TABLE another(x)",
        "CREATE TRIGGER t AFTER INSERT ON spaces BEGIN DELETE FROM nodes; END",
    };
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_learn(automaton, 1, 20);
    char garbage[5000];
    struct stat info;

    (void)state;
    memset(garbage, 'x', sizeof(garbage));
    store_rig_save(context, automaton);
    write_bytes(rig.path, 0, garbage, sizeof(garbage));
    assert_int_equal(store_rig_count(context), 0);
    assert_true(store_rig_has(&rig, ".damaged"));
    assert_false(store_rig_has(&rig, ""));
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), n_plans);

    assert_int_equal(stat(rig.path, &info), 0);
    for (long page = 4096; page < info.st_size; page += 4096)
        write_bytes(rig.path, page, garbage, 200);
    store_rig_save(context, automaton); /* set aside and begun anew in one go */
    assert_int_equal(store_rig_count(context), n_plans);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        execute(rig.path, wrong[i]);
        assert_int_equal(store_rig_count(context), 0);
        assert_false(store_rig_has(&rig, ""));
        store_rig_save(context, automaton);
        assert_int_equal(store_rig_count(context), n_plans);
    }
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

/* A row that is not as it was written is passed over with what hangs below it; who learns it anew
 * puts it right. */
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
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();
    uint32_t n_plans = store_rig_learn(automaton, 1, 10);

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        store_rig_save(context, automaton);
        execute(rig.path, changes[i]);
        assert_true(store_rig_count(context) < n_plans);
        store_rig_save_anew(context, 10);
        assert_int_equal(store_rig_count(context), n_plans);
        remove_file(rig.path);
    }
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

/* Nowhere to write, or somebody else writes: no failure. */
static void test_no_place(void **state)
{
    struct store_rig rig = store_rig_open();
    struct store_context *context = store_rig_context(&rig);
    struct automaton *automaton = store_rig_automaton();

    (void)state;
    store_rig_learn(automaton, 1, 2);
    context->path = "/proc/no/such/place";
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), 0);
    context->path = rig.folder; /* a folder is not a file */
    store_rig_save(context, automaton);
    assert_int_equal(store_rig_count(context), 0);
    automaton_destroy(automaton);
    store_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_changed_rows),
        cmocka_unit_test(test_no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
