/* SPDX-License-Identifier: Apache-2.0 */
/* What is added to a store is found, by this process and by later ones; namespaces, changed rows,
 * sizes, threads. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "host/tune/store_rig.h"
#include "tune/rows.h"

static void execute(const char *path, const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void print_record(void *ctx, const struct tune_record *record)
{
    tune_record_print(record, ctx);
}

static void expect_same_records(struct tune_store *a, struct tune_store *b)
{
    struct str texts[2] = {{0}, {0}};

    assert_int_equal(tune_store_each(a, print_record, &texts[0], NULL), FRIT_OK);
    assert_int_equal(tune_store_each(b, print_record, &texts[1], NULL), FRIT_OK);
    assert_true(texts[0].length > 1000);
    assert_string_equal(texts[0].text, texts[1].text);
    str_fini(&texts[0]);
    str_fini(&texts[1]);
}

/* Any records, the newest of a key, all their samples. */
static void test_round_trip(void **state)
{
    struct tune_rig rig = tune_rig_make();
    struct tune_store *store = tune_rig_open(rig.path), *other;
    const struct tune_record *first;
    uint64_t key = 5;

    (void)state;
    assert_int_equal(tune_rig_find(store, key), 0);
    tune_rig_add(store, key, 100);
    assert_int_equal(tune_rig_find(store, key), 100);
    first = tune_store_find(store, &key, sizeof(key));
    tune_rig_add(store, key, 200);
    assert_int_equal(tune_rig_find(store, key), 200);
    assert_int_equal(first->candidates[0].samples[0], 100); /* it may still be in use */
    assert_int_equal(tune_rig_read(rig.path, key), 200);
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct tune_record *record = record_rig_random(seed);

        assert_int_equal(tune_store_add(store, record, NULL), FRIT_OK);
        tune_record_destroy(record);
    }
    other = tune_rig_open(rig.path);
    expect_same_records(store, other);
    tune_store_close(other);
    tune_store_close(store);
    tune_rig_remove(&rig);
}

static void test_memory_only(void **state)
{
    struct tune_store *store = tune_rig_open(NULL);

    (void)state;
    assert_true(tune_rig_claim(store, 1));
    assert_false(tune_rig_claim(store, 1)); /* another thread has it */
    tune_rig_add(store, 1, 10);
    assert_int_equal(tune_rig_find(store, 1), 10);
    assert_true(tune_store_forget(store, NULL, 0));
    assert_int_equal(tune_rig_find(store, 1), 0);
    tune_store_close(store);
}

static void test_forget(void **state)
{
    struct tune_rig rig = tune_rig_make();
    struct tune_store *store = tune_rig_open(rig.path);
    const uint64_t key = 1;

    (void)state;
    for (uint64_t k = 1; k < 4; k++)
        tune_rig_add(store, k, 10 * k);
    assert_true(tune_store_forget(store, &key, sizeof(key)));
    assert_int_equal(tune_rig_find(store, 1), 0);
    assert_int_equal(tune_rig_find(store, 2), 20);
    assert_int_equal(tune_rig_read(rig.path, 1), 0);
    assert_int_equal(tune_rig_read(rig.path, 2), 20);
    assert_true(tune_store_forget(store, NULL, 0));
    assert_int_equal(tune_rig_find(store, 2), 0);
    assert_int_equal(tune_rig_read(rig.path, 3), 0);
    tune_rig_add(store, 1, 11);
    assert_int_equal(tune_rig_read(rig.path, 1), 11);
    tune_store_close(store);
    tune_rig_remove(&rig);
}

/* ---- claims ---- */

/* Two stores of a process are as two processes. */
static void test_claims(void **state)
{
    static const struct timespec later = {0, 110000000};
    struct tune_rig rig = tune_rig_make();
    struct tune_store *a = tune_rig_open(rig.path), *b = tune_rig_open(rig.path);
    const uint64_t key = 2;
    uint64_t refused_at;

    (void)state;
    assert_true(tune_rig_claim(a, 1));
    assert_false(tune_rig_claim(a, 1));
    assert_false(tune_rig_claim(b, 1));
    assert_true(tune_rig_claim(b, key));
    refused_at = clock_ns();
    assert_false(tune_rig_claim(a, key));
    tune_store_release(b, &key, sizeof(key));
    tune_store_release(b, &key, sizeof(key));
    if (tune_rig_claim(a, key)) { /* refused too short a time ago to look again */
        assert_true(clock_ns() - refused_at >= 100000000); /* or the machine is busy */
        tune_store_release(a, &key, sizeof(key));
    }
    tune_rig_add(a, 1, 10);
    nanosleep(&later, NULL);
    assert_true(tune_rig_claim(a, key));
    assert_int_equal(tune_rig_find(b, 1), 0);
    assert_false(tune_rig_claim(b, 1)); /* it is known now */
    assert_int_equal(tune_rig_find(b, 1), 10);
    nanosleep(&later, NULL);
    assert_true(tune_rig_claim(b, 1)); /* who knows it may tune it anew */
    tune_store_close(b);
    assert_true(tune_rig_claim(a, 1)); /* what is open is released */
    tune_store_close(a);
    tune_rig_remove(&rig);
}

/* A claim of a process that has ended, of another boot, or of long ago. */
static void test_stale_claims(void **state)
{
    static const struct {
        const char *change;
        bool live;
    } cases[] = {
        {"UPDATE claims SET store = store + 1", true},
        {"UPDATE claims SET store = store + 1, machine = machine + 1", true},
        {"UPDATE claims SET process = 2147483647", false},
        {"UPDATE claims SET process = -1", false},
        {"UPDATE claims SET started = started + 1", false},
        {"UPDATE claims SET store = store + 1, since = since - 1000", false},
        {"UPDATE claims SET store = store + 1, since = since + 1000", false},
        {"UPDATE claims SET store = 'x', since = 'y'", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tune_rig rig = tune_rig_make();
        struct tune_store *a = tune_rig_open(rig.path), *b = tune_rig_open(rig.path);

        assert_true(tune_rig_claim(a, 1));
        execute(rig.path, cases[i].change);
        assert_int_equal(tune_rig_claim(b, 1), !cases[i].live);
        tune_store_close(a);
        tune_store_close(b);
        tune_rig_remove(&rig);
    }
}

/* ---- rows ---- */

static uint64_t read_of_space(const char *path, const char *space, uint64_t key)
{
    const struct tune_store_params params = {
        .path = path, .space = space, .wait_ms = TUNE_RIG_PATIENCE_MS};
    struct tune_store *store;
    uint64_t ns;

    assert_int_equal(tune_store_open(&params, &store, NULL), FRIT_OK);
    assert_string_equal(tune_store_space(store), space);
    ns = tune_rig_find(store, key);
    tune_store_close(store);
    return ns;
}

/* Other namespaces are not looked at; those that nobody uses are deleted after 90 days, and reading
 * is use. */
static void test_namespaces(void **state)
{
    struct tune_rig rig = tune_rig_make();
    struct tune_store *store = tune_rig_open(rig.path);

    (void)state;
    tune_rig_add(store, 1, 10);
    assert_int_equal(read_of_space(rig.path, "t", 1), 0);
    execute(rig.path, "UPDATE spaces SET day = day - 89, name = 'old'");
    tune_rig_add(store, 2, 20);
    assert_int_equal(read_of_space(rig.path, "old", 1), 10); /* and renews it */
    execute(rig.path, "UPDATE spaces SET day = day - 2");
    tune_rig_add(store, 3, 30);
    assert_int_equal(read_of_space(rig.path, "old", 1), 10);
    execute(rig.path, "UPDATE spaces SET day = day - 91 WHERE name = 'old'");
    execute(rig.path, "UPDATE spaces SET day = day - 1 WHERE name = 's'");
    tune_rig_add(store, 4, 40);
    assert_int_equal(read_of_space(rig.path, "old", 1), 0);
    assert_int_equal(tune_rig_read(rig.path, 2), 20);
    tune_store_close(store);
    tune_rig_remove(&rig);
}

static void add_row(const char *path, uint64_t key, const char *text)
{
    const struct database_patience patience = {.wait_ns = INT64_C(10000000000)};
    const struct tune_row row = {{&key, sizeof(key)}, {text, strlen(text)}};
    struct database *database;

    assert_int_equal(database_open(&tune_database, path, true, &patience, &database, NULL),
                     FRIT_OK);
    database_space(database, "s");
    tune_row_add(database, &row);
    assert_true(database_commit(database));
    database_close(database);
}

/* A row that is not as it was written, or with a text that is none, is as if it were not there. */
static void test_changed_rows(void **state)
{
    static const char *const changes[] = {
        "UPDATE records SET text = replace(text, '10', '11')",
        "UPDATE records SET digest = digest + 1",
        "UPDATE records SET key = x'0200000000000000'",
    };
    struct tune_record *other = record_rig_small(7, 70);
    struct str text = {0};

    (void)state;
    tune_record_print(other, &text);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct tune_rig rig = tune_rig_make();
        struct tune_store *store = tune_rig_open(rig.path);

        tune_rig_add(store, 1, 10);
        execute(rig.path, changes[i]);
        assert_int_equal(tune_rig_read(rig.path, 1), 0);
        assert_int_equal(tune_rig_read(rig.path, 2), 0);
        add_row(rig.path, 1, "decision 1\nkey");
        assert_int_equal(tune_rig_read(rig.path, 1), 0);
        add_row(rig.path, 1, text.text); /* of another key */
        assert_int_equal(tune_rig_read(rig.path, 1), 0);
        add_row(rig.path, 7, text.text);
        assert_int_equal(tune_rig_read(rig.path, 7), 70);
        tune_rig_add(store, 1, 20);
        assert_int_equal(tune_rig_read(rig.path, 1), 20);
        tune_store_close(store);
        tune_rig_remove(&rig);
    }
    str_fini(&text);
    tune_record_destroy(other);
}

/* Beyond the limit the older half is deleted. */
static void test_limit(void **state)
{
    enum { ADDED = 150, LIMIT = 20000, ROW = 400 /* at most, in the file's own count */ };
    struct tune_rig rig = tune_rig_make();
    const struct tune_store_params params = {
        .path = rig.path, .space = "s", .wait_ms = TUNE_RIG_PATIENCE_MS, .max_bytes = LIMIT};
    struct tune_store *store;
    uint64_t n_found = 0;

    (void)state;
    assert_int_equal(tune_store_open(&params, &store, NULL), FRIT_OK);
    for (uint64_t key = 0; key < ADDED; key++)
        tune_rig_add(store, key, 10);
    tune_store_close(store);
    store = tune_rig_open(rig.path);
    for (uint64_t key = 0; key < ADDED; key++) {
        const bool found = tune_rig_find(store, key);

        assert_true(found || n_found == 0); /* the newest ones */
        n_found += found;
    }
    assert_in_range(n_found, LIMIT / ROW / 3, LIMIT / (ROW / 2));
    tune_store_close(store);
    tune_rig_remove(&rig);
}

/* ---- threads, memory ---- */

enum { THREADS = 4, KEYS = 12 };

struct user {
    struct tune_store *store;
    uint32_t n_claimed;
};

static void count_record(void *ctx, const struct tune_record *record)
{
    *(uint32_t *)ctx += record->n_candidates / 3;
}

static void *use(void *ctx)
{
    struct user *user = ctx;
    uint32_t n_records = 0;

    for (uint64_t key = 0; key < KEYS; key++) {
        if (!tune_rig_find(user->store, key) && tune_rig_claim(user->store, key)) {
            user->n_claimed++;
            tune_rig_add(user->store, key, 10);
        }
        assert_int_equal(tune_store_each(user->store, count_record, &n_records, NULL), FRIT_OK);
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct tune_rig rig = tune_rig_make();
    struct tune_store *store = tune_rig_open(rig.path);
    struct user users[THREADS];
    pthread_t threads[THREADS];
    uint32_t n_claimed = 0, n_records = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.store = store};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        n_claimed += users[i].n_claimed;
    }
    assert_in_range(n_claimed, KEYS, 2 * KEYS); /* who looked just before it was added, claims it */
    assert_int_equal(tune_store_each(store, count_record, &n_records, NULL), FRIT_OK);
    assert_int_equal(n_records, KEYS);
    tune_store_close(store);
    tune_rig_remove(&rig);
}

/* Without memory an add fails or is whole, and other calls do less. */
static void test_no_memory(void **state)
{
    struct tune_record *record = record_rig_small(1, 10);
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct tune_rig rig = tune_rig_make();
        const struct tune_store_params params = {
            .path = rig.path, .space = "s", .wait_ms = TUNE_RIG_PATIENCE_MS};
        const uint64_t key = 1;
        struct tune_store *store;
        frit_status status;

        failing_alloc_arm(n);
        status = tune_store_open(&params, &store, NULL);
        if (!status) {
            tune_store_claim(store, &key, sizeof(key));
            status = tune_store_add(store, record, NULL);
            assert_int_equal(tune_store_find(store, &key, sizeof(key)) != NULL, !status);
        }
        hit = failing_alloc_disarm();
        assert_true(status == FRIT_OK || (hit && status == FRIT_NO_HOST_MEMORY));
        tune_store_close(store);
        if (!hit)
            assert_int_equal(tune_rig_read(rig.path, 1), 10);
        tune_rig_remove(&rig);
    }
    tune_record_destroy(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_memory_only),
        cmocka_unit_test(test_forget),       cmocka_unit_test(test_claims),
        cmocka_unit_test(test_stale_claims), cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_changed_rows), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
