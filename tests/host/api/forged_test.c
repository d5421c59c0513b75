/* SPDX-License-Identifier: Apache-2.0 */
/* Files of plans that somebody wrote who may write them and knows how: rows of a real file with any
 * field changed and every digest put right.  Programs run and give the same results.  With
 * FRIT_TEST_LONG in the environment 10,000 files in all; FRIT_TEST_CASE is the number of the first.
 */
#include "api/plugin_rig.h"

#include <sqlite3.h>
#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FILES = 100, LONG_FILES = 5000, MAX_ROWS = 256, MAX_BLOB = 1 << 16, MAX_OPS = 64, N = 24 };

static char folder[32], store[64];

/* ---- numbers ---- */

static uint64_t seed;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint32_t below(uint64_t limit)
{
    return (uint32_t)(next_random() % limit);
}

/* ---- programs: whole numbers, so that every grouping gives the same bits ---- */

static frit_tensor *chain(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *a = frit_add(x, y), *b = frit_mul(a, x);

    return frit_sub(frit_take(frit_maximum(frit_take(a), frit_take(frit_neg(y)))), frit_take(b));
}

static frit_tensor *reduced(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *a = frit_mul(x, frit_take(frit_add_f(y, 3)));
    frit_tensor *sum = frit_sum(frit_take(frit_abs(a)));

    return frit_add(frit_take(a), frit_take(sum));
}

static frit_tensor *viewed(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *part = frit_slice(x, FRIT_SLICES({0, N, 2})),
                *other = frit_slice(y, FRIT_SLICES({1, N, 2}));
    frit_tensor *a = frit_sub(frit_take(part), frit_take(other));

    return frit_mul(a, frit_take(frit_relu(a)));
}

static frit_tensor *squared(frit_tensor *x, frit_tensor *y)
{
    frit_tensor *a = frit_reshape(x, FRIT_SHAPE(4, N / 4)),
                *b = frit_reshape(y, FRIT_SHAPE(N / 4, 4));
    frit_tensor *c = frit_matmul(frit_take(a), frit_take(b));

    return frit_add_f(frit_take(frit_neg(frit_take(c))), 1);
}

typedef frit_tensor *(*program)(frit_tensor *x, frit_tensor *y);
static const program programs[] = {chain, reduced, viewed, squared};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

/* Each program twice, the second time by what the first left; a tensor lives on over another. */
static void run_programs(frit_device *device, float out[PROGRAMS][2][N])
{
    float x[N], y[N];

    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 7 - 3);
        y[i] = (float)(i % 5 * 2 - 4);
    }
    memset(out, 0, sizeof(float[PROGRAMS][2][N]));
    for (int p = 0; p < PROGRAMS; p++) {
        for (int again = 0; again < 2; again++) {
            frit_tensor *tx = frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), x, sizeof(x)),
                        *ty = frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), y, sizeof(y));
            frit_tensor *made = programs[p](tx, ty);
            frit_err err = {.struct_size = sizeof(err)};
            uint64_t bytes = (p == 2 ? N / 2 : p == 3 ? 16 : N) * sizeof(float);

            if (frit_read(made, out[p][again], bytes, &err))
                fail_msg("file %llu, program %d: %s", (unsigned long long)seed, p, err.text);
            frit_release(tx);
            frit_release(ty);
            frit_release(made);
        }
    }
}

/* ---- files ---- */

struct bytes {
    size_t n;
    unsigned char at[MAX_BLOB];
};

struct row {
    int64_t node, parent, lazy;
    struct bytes key, plan, sync;
};

struct file {
    int64_t space, bytes, day;
    char name[8192];
    uint32_t n_rows;
    struct row rows[MAX_ROWS];
};

static struct file original, forged;

static void get_bytes(sqlite3_stmt *statement, int column, struct bytes *out)
{
    const void *bytes = sqlite3_column_blob(statement, column);

    out->n = (size_t)sqlite3_column_bytes(statement, column);
    assert_true(out->n < MAX_BLOB);
    if (out->n)
        memcpy(out->at, bytes, out->n);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *text)
{
    sqlite3_stmt *statement;

    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

static void read_file(struct file *out)
{
    sqlite3_stmt *statement;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(store, &db), SQLITE_OK);
    statement = prepare(db, "SELECT space, name, bytes, day FROM spaces");
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    out->space = sqlite3_column_int64(statement, 0);
    snprintf(out->name, sizeof(out->name), "%s", (const char *)sqlite3_column_text(statement, 1));
    out->bytes = sqlite3_column_int64(statement, 2);
    out->day = sqlite3_column_int64(statement, 3);
    sqlite3_finalize(statement);
    statement = prepare(db, "SELECT node, parent, key, lazy, plan, sync FROM nodes ORDER BY node");
    for (out->n_rows = 0; sqlite3_step(statement) == SQLITE_ROW; out->n_rows++) {
        struct row *row = &out->rows[out->n_rows];

        assert_true(out->n_rows < MAX_ROWS);
        row->node = sqlite3_column_int64(statement, 0);
        row->parent = sqlite3_column_int64(statement, 1);
        get_bytes(statement, 2, &row->key);
        row->lazy = sqlite3_column_int64(statement, 3);
        get_bytes(statement, 4, &row->plan);
        get_bytes(statement, 5, &row->sync);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    assert_true(out->n_rows > 8);
}

static void add_digest(XXH3_state_t *state, const struct bytes *bytes)
{
    const uint64_t n = bytes->n;

    XXH3_64bits_update(state, &n, sizeof(n));
    XXH3_64bits_update(state, bytes->at, bytes->n);
}

/* As host/plan/rows.c has it. */
static int64_t digest_of(int64_t space, const struct row *row)
{
    const int64_t numbers[] = {space, row->parent, row->lazy};
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, numbers, sizeof(numbers));
    add_digest(&state, &row->key);
    add_digest(&state, &row->plan);
    add_digest(&state, &row->sync);
    return (int64_t)XXH3_64bits_digest(&state);
}

static void bind_bytes(sqlite3_stmt *statement, int column, const struct bytes *bytes)
{
    if (bytes->n)
        sqlite3_bind_blob(statement, column, bytes->at, (int)bytes->n, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, column);
}

static void write_file(const struct file *file)
{
    sqlite3_stmt *statement;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(store, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA synchronous = OFF; BEGIN; DELETE FROM nodes; "
                                  "DELETE FROM spaces",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    statement = prepare(db, "INSERT INTO spaces(space, name, bytes, day) VALUES(?1, ?2, ?3, ?4)");
    sqlite3_bind_int64(statement, 1, file->space);
    sqlite3_bind_text(statement, 2, file->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, file->bytes);
    sqlite3_bind_int64(statement, 4, file->day);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    statement = prepare(db, "INSERT OR IGNORE INTO nodes(node, space, parent, key, lazy, plan, "
                            "sync, digest) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    for (uint32_t i = 0; i < file->n_rows; i++) {
        const struct row *row = &file->rows[i];

        sqlite3_bind_int64(statement, 1, row->node);
        sqlite3_bind_int64(statement, 2, file->space);
        sqlite3_bind_int64(statement, 3, row->parent);
        bind_bytes(statement, 4, &row->key);
        sqlite3_bind_int64(statement, 5, row->lazy);
        bind_bytes(statement, 6, &row->plan);
        bind_bytes(statement, 7, &row->sync);
        sqlite3_bind_int64(statement, 8, digest_of(file->space, row));
        sqlite3_step(statement); /* a key may be NULL, which the table does not take */
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* ---- forging ---- */

static void forge_word(struct bytes *bytes)
{
    uint32_t word, at;

    if (bytes->n < sizeof(word))
        return;
    at = below(3) ? below(bytes->n / sizeof(word)) * 4 : below(bytes->n - 3);
    memcpy(&word, bytes->at + at, sizeof(word));
    switch (below(6)) {
    case 0:
        word = (uint32_t)next_random();
        break;
    case 1:
        word = below(12);
        break;
    case 2:
        word ^= UINT32_C(1) << below(32);
        break;
    case 3:
        word++;
        break;
    case 4:
        word--;
        break;
    default:
        word = UINT32_MAX - below(2);
        break;
    }
    memcpy(bytes->at + at, &word, sizeof(word));
}

static void swap_words(struct bytes *bytes)
{
    unsigned char *a, *b, kept[4];

    if (bytes->n < 8)
        return;
    a = bytes->at + below(bytes->n / 4) * 4;
    b = bytes->at + below(bytes->n / 4) * 4;
    memcpy(kept, a, 4);
    memmove(a, b, 4);
    memcpy(b, kept, 4);
}

/* Each op of the plan alone, in any order. */
static void make_steps(struct bytes *bytes)
{
    uint32_t head[4], order[MAX_OPS], at;

    if (bytes->n < sizeof(head))
        return;
    memcpy(head, bytes->at, sizeof(head));
    if (!head[2] || head[2] > MAX_OPS)
        return;
    for (uint32_t i = 0; i < head[2]; i++) {
        const uint32_t k = below(i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    head[3] = head[2];
    memcpy(bytes->at, head, sizeof(head));
    at = sizeof(head);
    for (uint32_t i = 0; i < head[2]; i++) {
        const uint32_t step[] = {0, below(9), 5, 1, order[i]};

        memcpy(bytes->at + at, step, sizeof(step));
        at += sizeof(step);
    }
    bytes->n = at;
}

/* Any answer: changed, or that of any node. */
static void forge_answer(struct bytes *bytes)
{
    const struct row *other = &original.rows[below(original.n_rows)];
    const size_t digest = sizeof(uint64_t);
    uint64_t sealed;

    if (below(3) == 0)
        *bytes = below(2) ? other->plan : other->sync;
    bytes->n = bytes->n > digest ? bytes->n - digest : 0;
    switch (below(8)) {
    case 0:
        swap_words(bytes);
        break;
    case 1:
        bytes->n = bytes->n ? below(bytes->n) : 0;
        break;
    case 2:
        make_steps(bytes);
        break;
    case 3:
        break; /* whole, but another node's */
    default:
        for (uint32_t n = 1 + below(3); n > 0; n--)
            forge_word(bytes);
        break;
    }
    sealed = XXH3_64bits(bytes->at, bytes->n);
    memcpy(bytes->at + bytes->n, &sealed, sizeof(sealed));
    bytes->n += digest;
    if (below(20) == 0) { /* the same as the plan */
        bytes->n = 1;
        bytes->at[0] = 0;
    }
}

static int64_t any_number(void)
{
    switch (below(4)) {
    case 0:
        return (int64_t)next_random();
    case 1:
        return INT64_MIN + below(2);
    case 2:
        return INT64_MAX - below(2);
    default:
        return below(5);
    }
}

static void forge_row(struct row *row)
{
    switch (below(12)) {
    case 0:
        row->parent = below(2) ? any_number() : original.rows[below(original.n_rows)].node;
        break;
    case 1:
        row->node = any_number();
        break;
    case 2:
        row->lazy = any_number();
        break;
    case 3:
        forge_word(&row->key);
        break;
    case 4:
        row->key = original.rows[below(original.n_rows)].key;
        break;
    case 5:
    case 6:
        forge_answer(&row->sync);
        break;
    default:
        row->lazy = 2;
        forge_answer(&row->plan);
        break;
    }
}

static void forge(void)
{
    forged = original;
    if (below(20) == 0)
        forged.day = any_number();
    if (below(20) == 0)
        forged.bytes = any_number();
    for (uint32_t n = 1 + below(original.n_rows); n > 0; n--)
        forge_row(&forged.rows[below(forged.n_rows)]);
}

/* ---- tests ---- */

static void open_rig(struct plugin_rig *rig)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.org.frit.blocks", RIG_BLOCKS);
    rig_set(rig, "fusion", "store", store);
    rig_set(rig, "plugin.cpu", "option.tier", "0");
    rig_host(rig);
}

static void open_device(struct plugin_rig *rig, const char *name)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_device_open(rig->host, name, &rig->dev, &err))
        fail_msg("%s", err.text);
}

static void nothing_in_a_file_changes_results(const char *device)
{
    static float expected[PROGRAMS][2][N], found[PROGRAMS][2][N];
    const char *first = getenv("FRIT_TEST_CASE");
    const uint64_t start = first ? strtoull(first, NULL, 10) : 0;
    uint64_t files = first ? 1 : getenv("FRIT_TEST_LONG") ? LONG_FILES : FILES;
    uint64_t n_loaded = 0, n_hits = 0;
    struct plugin_rig rig;

    open_rig(&rig);
    open_device(&rig, device);
    run_programs(rig.dev, expected);
    frit_device_close(rig.dev);
    read_file(&original);
    for (uint64_t i = start; i < start + files; i++) {
        frit_stats stats;

        seed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        for (int n = 0; n < 4; n++)
            next_random();
        if (i) /* the first as it is */
            forge();
        else
            forged = original;
        write_file(&forged);
        open_device(&rig, device);
        run_programs(rig.dev, found);
        if (memcmp(found, expected, sizeof(found)) != 0)
            fail_msg("%s: other results with file %llu: FRIT_TEST_CASE=%llu", device,
                     (unsigned long long)i, (unsigned long long)i);
        stats = rig_stats(&rig);
        assert_true(i || (stats.store_loaded && !stats.explorations && !stats.plan_misses));
        n_loaded += stats.store_loaded;
        n_hits += stats.plan_hits;
        frit_device_close(rig.dev);
    }
    assert_true(n_loaded > files && n_hits > files); /* much of what is forged is used */
    frit_host_close(rig.host);
}

static void on_reference(void **state)
{
    (void)state;
    nothing_in_a_file_changes_results("reference:0");
}

static void on_cpu(void **state)
{
    (void)state;
    nothing_in_a_file_changes_results("cpu:0");
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/frit-forged-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(store, sizeof(store), "%s/plans.db", folder);
    return 0;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(on_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(on_cpu, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
