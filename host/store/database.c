/* SPDX-License-Identifier: Apache-2.0 */
/* The schema must match exactly before a row is read, so that no foreign view, trigger or virtual
 * table is executed.
 *
 * After the first SQLite failure every later call does nothing; the caller checks once, when it
 * commits or closes.
 *
 * Nothing is flushed to the disk: a file that a power failure damaged is found out and replaced. */
#include "store/database.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "store/patience.h"

enum {
    DAY_S = 86400,
    UNUSED_DAYS = 90, /* after which a namespace is considered abandoned */
    PROGRESS = 100    /* instructions of SQLite between two looks at the clock */
};

#define CREATE_SPACES                                                            \
    "CREATE TABLE spaces(space INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, " \
    "bytes INTEGER NOT NULL, day INTEGER NOT NULL)"
static const struct database_table spaces_table = {"spaces", CREATE_SPACES, 1};

enum statement { GET_SPACE, ALL_SPACES, ADD_SPACE, SET_SPACE, DROP_UNUSED, OWN_STATEMENTS };

static const char *const own_sql[OWN_STATEMENTS] = {
    [GET_SPACE] = "SELECT space, bytes, day FROM spaces WHERE name = ?1",
    [ALL_SPACES] = "SELECT name FROM spaces",
    [ADD_SPACE] = "INSERT INTO spaces(name, bytes, day) VALUES(?1, 0, 0)",
    [SET_SPACE] = "UPDATE spaces SET bytes = ?2, day = ?3 WHERE space = ?1",
    [DROP_UNUSED] = "DELETE FROM spaces WHERE day < ?1",
};

struct database {
    const struct database_kind *kind;
    sqlite3 *db;
    sqlite3_stmt *own[OWN_STATEMENTS];
    sqlite3_stmt *statements[DATABASE_STATEMENTS]; /* of the kind */
    char *path;
    int failure; /* the first SQLite error; 0: none */
    struct patience patience;
    struct file_limit limit;
    struct database_space space;
    int64_t day;     /* days since 1970 */
    uint64_t n_rows; /* rows written */
    bool write;
    bool foreign; /* another program's file, or a newer version's */
};

/* ---- waiting ---- */

/* Handlers of SQLite: 0 ends waiting for a lock, 1 interrupts a statement. */
static int wait_for_lock(void *ctx, int n_waits)
{
    return patience_wait(ctx, n_waits);
}

static int look_at_clock(void *ctx)
{
    return patience_exhausted(ctx);
}

/* A file for which the program was kept waiting is not used again. */
static void give_up(const struct database *database)
{
    if (patience_give_up(database->path))
        log_write(FRIT_LOG_WARN, database->kind->topic,
                  "%s is locked by another process, or slow: this process keeps no %s there; "
                  "name a file on a local disk in %s, or none",
                  database->path, database->kind->contents, database->kind->option);
}

/* ---- SQLite ---- */

/* Records the first failure; returns whether `rc` is success. */
static bool succeeded(struct database *database, int rc)
{
    if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE)
        return true;
    if (!database->failure) {
        database->failure = rc & 0xff;
        log_write(FRIT_LOG_DEBUG, database->kind->topic, "%s: %s", database->path,
                  database->db ? sqlite3_errmsg(database->db) : sqlite3_errstr(rc));
    }
    return false;
}

static bool run(struct database *database, const char *text)
{
    return !database->failure && succeeded(database, sqlite3_exec(database->db, text, 0, 0, NULL));
}

/* Returns the first column of the first row; `otherwise` if there is none. */
static int64_t query_int(struct database *database, const char *text, int64_t otherwise)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = otherwise;
    int rc;

    if (database->failure ||
        !succeeded(database, sqlite3_prepare_v2(database->db, text, -1, &statement, NULL)))
        return otherwise;
    rc = sqlite3_step(statement);
    if (succeeded(database, rc) && rc == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static sqlite3_stmt *prepared(struct database *database, sqlite3_stmt **statement, const char *text)
{
    if (!database->failure && patience_exhausted(&database->patience))
        database->failure = SQLITE_BUSY;
    if (database->failure)
        return NULL;
    if (*statement)
        sqlite3_reset(*statement);
    else if (!succeeded(database, sqlite3_prepare_v3(database->db, text, -1,
                                                     SQLITE_PREPARE_PERSISTENT, statement, NULL)))
        return NULL;
    return *statement;
}

static sqlite3_stmt *own_statement(struct database *database, enum statement which)
{
    return prepared(database, &database->own[which], own_sql[which]);
}

sqlite3_stmt *database_statement(struct database *database, uint32_t which)
{
    assert(which < database->kind->n_sql);
    return prepared(database, &database->statements[which], database->kind->sql[which]);
}

bool database_step(struct database *database, sqlite3_stmt *statement)
{
    int rc;

    if (!database->failure && patience_exhausted(&database->patience))
        database->failure = SQLITE_BUSY;
    if (database->failure)
        return false;
    rc = sqlite3_step(statement);
    return succeeded(database, rc) && rc == SQLITE_ROW;
}

bool database_failed(const struct database *database)
{
    return database->failure != 0;
}

/* ---- opening ---- */

/* Whether the folder and the files are ours, as far as they are there. */
static bool is_ours(const struct database *database)
{
    static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
    const char *slash = strrchr(database->path, '/');
    int length = slash ? (int)(slash - database->path) : 1, folder;
    char path[PATH_MAX];
    struct stat info;

    snprintf(path, sizeof(path), "%.*s", length ? length : 1, slash ? database->path : ".");
    folder = file_folder(path, database->write);
    if (folder < 0)
        return false;
    close(folder);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const char *why;

        if (snprintf(path, sizeof(path), "%s%s", database->path, suffixes[i]) >= PATH_MAX)
            return false;
        why = lstat(path, &info) ? NULL : file_not_ours(&info);
        if (!why)
            continue;
        log_write(FRIT_LOG_DEBUG, database->kind->topic, "%s is not used: %s", path, why);
        return false;
    }
    return true;
}

/* Table `i` of the file: the kind's, then that of namespaces; NULL beyond. */
static const struct database_table *table_at(const struct database *database, uint32_t i)
{
    const struct database_kind *kind = database->kind;

    return i < kind->n_tables ? &kind->tables[i] : i == kind->n_tables ? &spaces_table : NULL;
}

static bool is_table(const struct database *database, const char *sql)
{
    const struct database_table *table;

    for (uint32_t i = 0; (table = table_at(database, i)); i++) {
        if (strcmp(sql, table->create) == 0)
            return true;
    }
    return false;
}

/* Whether the tables are exactly those of this version. */
static bool schema_matches(struct database *database)
{
    uint32_t n_tables = 0, n_indices = 0, n_unique = 0;
    const struct database_table *table;
    sqlite3_stmt *rows = NULL;
    bool matches = true;

    for (uint32_t i = 0; (table = table_at(database, i)); i++)
        n_unique += table->n_unique;
    if (database->failure ||
        !succeeded(database, sqlite3_prepare_v2(database->db, "SELECT type, sql FROM sqlite_master",
                                                -1, &rows, NULL)))
        return false;
    while (matches && database_step(database, rows)) {
        const char *type = (const char *)sqlite3_column_text(rows, 0);
        const char *sql = (const char *)sqlite3_column_text(rows, 1);

        if (sql)
            matches = is_table(database, sql);
        else
            matches = type && strcmp(type, "index") == 0;
        n_tables += sql != NULL;
        n_indices += !sql;
    }
    sqlite3_finalize(rows);
    return matches && n_tables == database->kind->n_tables + 1 && n_indices == n_unique;
}

static void recreate_tables(struct database *database)
{
    const struct database_table *table;
    char text[128];

    snprintf(text, sizeof(text), "PRAGMA application_id = %u; PRAGMA user_version = %u",
             (unsigned)database->kind->application, (unsigned)database->kind->version);
    run(database, text);
    for (uint32_t i = 0; (table = table_at(database, i)); i++) {
        snprintf(text, sizeof(text), "DROP TABLE IF EXISTS %s", table->name);
        run(database, text);
        run(database, table->create);
    }
}

/* Determines whether the file is empty, of this version, older, newer or another program's. */
static void identify_file(struct database *database)
{
    const struct database_kind *kind = database->kind;
    int64_t application = query_int(database, "PRAGMA application_id", 0);
    int64_t version = query_int(database, "PRAGMA user_version", 0);
    bool empty = query_int(database, "SELECT count(*) FROM sqlite_master", 1) == 0;

    if (database->failure)
        return;
    if (application == kind->application && version == kind->version) {
        if (!schema_matches(database) && !database->failure)
            database->failure = SQLITE_CORRUPT;
    } else if (database->write && ((application == kind->application && version < kind->version) ||
                                   (empty && !application))) {
        recreate_tables(database);
    } else {
        database->foreign = true;
        if (!empty)
            log_write(FRIT_LOG_DEBUG, kind->topic,
                      "%s is not used: application %#llx, version %lld (Frit writes %#x, %u)",
                      database->path, (unsigned long long)application, (long long)version,
                      (unsigned)kind->application, (unsigned)kind->version);
    }
}

static void open_file(struct database *database)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    if (database->write)
        flags |= SQLITE_OPEN_CREATE;
    if (!succeeded(database, sqlite3_open_v2(database->path, &database->db, flags, NULL)))
        return;
    if (database->write)
        (void)chmod(database->path, FILE_PRIVATE);
    sqlite3_busy_handler(database->db, wait_for_lock, &database->patience);
    sqlite3_progress_handler(database->db, PROGRESS, look_at_clock, &database->patience);
    sqlite3_db_config(database->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(database->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    run(database, "PRAGMA cell_size_check = ON; PRAGMA synchronous = OFF");
    run(database, database->write ? "BEGIN IMMEDIATE" : "BEGIN");
    identify_file(database);
}

/* No file descriptor of ours is ever closed while SQLite has the file open: that would drop its
 * locks. */
static bool is_usable(const struct database *database)
{
    struct stat info;

    if (patience_gave_up(database->path))
        return false;
    if (!database->write && lstat(database->path, &info))
        return false; /* nothing was saved yet */
    return is_ours(database);
}

static void destroy(struct database *database)
{
    free(database->path);
    free(database);
}

frit_status database_open(const struct database_kind *kind, const char *path, bool write,
                          const struct database_patience *patience, struct database **out,
                          frit_err *err)
{
    struct database *database = calloc(1, sizeof(*database));

    *out = NULL;
    if (database)
        database->path = strdup(path);
    if (!database || !database->path) {
        free(database);
        return fail_memory(err, sizeof(*database));
    }
    database->kind = kind;
    database->write = write;
    database->patience = (struct patience){.limit_ns = patience->wait_ns,
                                           .ending = patience->ending,
                                           .hurried_ns = patience->hurried_ns};
    if (!is_usable(database)) {
        destroy(database);
        return FRIT_OK;
    }
    database->day = (int64_t)time(NULL) / DAY_S;
    patience_begin(&database->patience);
    file_limit_begin(&database->limit);
    open_file(database);
    if (database->foreign)
        database_close(database);
    else
        *out = database;
    return FRIT_OK;
}

/* ---- closing ---- */

static bool rename_damaged(struct database *database)
{
    size_t size = strlen(database->path) + sizeof(".damaged");
    char *name = malloc(size);
    bool done = false;

    if (name) {
        snprintf(name, size, "%s.damaged", database->path);
        done = rename(database->path, name) == 0;
        snprintf(name, size, "%s-journal", database->path);
        if (done)
            remove(name); /* it belongs to the damaged file */
        log_write(FRIT_LOG_DEBUG, database->kind->topic, "%s is damaged%s", database->path,
                  done ? ": now NAME.damaged" : "");
    }
    free(name);
    return done;
}

struct database_end database_close(struct database *database)
{
    struct database_end end = {0};

    if (!database)
        return end;
    for (int i = 0; i < OWN_STATEMENTS; i++)
        sqlite3_finalize(database->own[i]);
    for (int i = 0; i < DATABASE_STATEMENTS; i++)
        sqlite3_finalize(database->statements[i]);
    sqlite3_close(database->db); /* rolls back uncommitted changes */
    file_limit_end(&database->limit);
    end.exhausted = database->patience.exhausted && !database->patience.ending;
    if (end.exhausted)
        give_up(database);
    end.waited_ns = patience_waited_ns(&database->patience);
    end.damaged = !database->foreign &&
                  (database->failure == SQLITE_CORRUPT || database->failure == SQLITE_NOTADB) &&
                  rename_damaged(database);
    destroy(database);
    return end;
}

/* ---- namespaces ---- */

static void run_numbers(struct database *database, sqlite3_stmt *statement, const int64_t *numbers,
                        int n)
{
    if (!statement)
        return;
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(statement, i + 1, numbers[i]);
    database_step(database, statement);
    sqlite3_reset(statement);
}

/* Deletes the kind's rows of the namespaces that `which`, with the parameter, names. */
static void delete_rows(struct database *database, const char *which, int64_t parameter)
{
    for (uint32_t i = 0; i < database->kind->n_tables; i++) {
        sqlite3_stmt *statement = NULL;
        char text[160];

        snprintf(text, sizeof(text), "DELETE FROM %s WHERE space %s",
                 database->kind->tables[i].name, which);
        run_numbers(database, prepared(database, &statement, text), &parameter, 1);
        sqlite3_finalize(statement);
    }
}

static void add_space(struct database *database, const char *name)
{
    sqlite3_stmt *add = own_statement(database, ADD_SPACE);

    if (!add)
        return;
    sqlite3_bind_text(add, 1, name, -1, SQLITE_STATIC);
    database_step(database, add);
    sqlite3_reset(add);
    if (!database->failure)
        database->space = (struct database_space){.number = sqlite3_last_insert_rowid(database->db),
                                                  .is_new = true};
}

const struct database_space *database_space(struct database *database, const char *name)
{
    sqlite3_stmt *get = own_statement(database, GET_SPACE);
    struct database_space *space = &database->space;

    *space = (struct database_space){0};
    if (!get)
        return space;
    sqlite3_bind_text(get, 1, name, -1, SQLITE_STATIC);
    if (database_step(database, get)) {
        space->number = sqlite3_column_int64(get, 0);
        space->bytes = sqlite3_column_int64(get, 1);
        if (__builtin_sub_overflow(database->day, sqlite3_column_int64(get, 2),
                                   &space->days_unused))
            space->days_unused = 0;
    }
    sqlite3_reset(get);
    if (!space->number && database->write)
        add_space(database, name);
    return space;
}

void database_each_space(struct database *database, void (*fn)(void *ctx, const char *name),
                         void *ctx)
{
    sqlite3_stmt *all = own_statement(database, ALL_SPACES);

    if (!all)
        return;
    while (database_step(database, all)) {
        const char *name = (const char *)sqlite3_column_text(all, 0);

        if (name)
            fn(ctx, name);
    }
    sqlite3_reset(all);
}

const struct database_space *database_selected(const struct database *database)
{
    return &database->space;
}

void database_clear_space(struct database *database)
{
    delete_rows(database, "= ?1", database->space.number);
    database->space.bytes = 0;
}

bool database_commit(struct database *database)
{
    const struct database_space *space = &database->space;
    const int64_t set[] = {space->number, space->bytes, database->day};
    const int64_t oldest = database->day - UNUSED_DAYS;

    run_numbers(database, own_statement(database, SET_SPACE), set, 3);
    if (space->days_unused || space->is_new) {
        delete_rows(database, "IN (SELECT space FROM spaces WHERE day < ?1)", oldest);
        run_numbers(database, own_statement(database, DROP_UNUSED), &oldest, 1);
    }
    return run(database, "COMMIT") && !database->failure;
}

/* ---- rows ---- */

void database_wrote(struct database *database, uint64_t n_rows, int64_t bytes)
{
    database->n_rows += n_rows;
    database->space.bytes += bytes;
}

uint64_t database_rows_written(const struct database *database)
{
    return database->n_rows;
}

int64_t database_last_row(const struct database *database)
{
    return sqlite3_last_insert_rowid(database->db);
}

void database_bind(sqlite3_stmt *statement, int index, const struct database_bytes *bytes)
{
    if (bytes->n_bytes)
        sqlite3_bind_blob64(statement, index, bytes->bytes, bytes->n_bytes, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, index);
}

struct database_bytes database_column(sqlite3_stmt *statement, int index)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    int n_bytes = sqlite3_column_bytes(statement, index);

    return (struct database_bytes){bytes, bytes && n_bytes > 0 ? (size_t)n_bytes : 0};
}

int64_t database_digest(const int64_t *numbers, size_t n_numbers,
                        const struct database_bytes *bytes, size_t n_bytes)
{
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, numbers, n_numbers * sizeof(*numbers));
    for (size_t i = 0; i < n_bytes; i++) {
        XXH3_64bits_update(&state, &bytes[i].n_bytes, sizeof(bytes[i].n_bytes));
        if (bytes[i].n_bytes)
            XXH3_64bits_update(&state, bytes[i].bytes, bytes[i].n_bytes);
    }
    return (int64_t)XXH3_64bits_digest(&state);
}
