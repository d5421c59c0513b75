/* SPDX-License-Identifier: Apache-2.0 */
/* The schema must match exactly before a row is read, so that no foreign view, trigger or virtual
 * table is executed.  Each row has a digest over its other columns.
 *
 * After the first SQLite failure every later call does nothing; the caller checks once, when it
 * commits or closes.
 *
 * Nothing is flushed to the disk: a file that a power failure damaged is found out and replaced. */
#include "plan/database.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"

enum {
    APPLICATION = 0x46524954, /* "FRIT" */
    SCHEMA = 2,
    ROW_BYTES = 64, /* approximate size of a row without its blobs */
    DAY_S = 86400,
    UNUSED_DAYS = 90, /* after which a namespace is considered abandoned */
    /* Percent of the patience: */
    LOAD_PART = 30,
    HURRIED_PART = 10, /* of a background save that the end waits for */
    SAVE_PART = 50,
    BACKGROUND_WAIT_MS = 5000,
    POLL_MS = 2,    /* between two tries to take a lock */
    PROGRESS = 100, /* instructions of SQLite between two looks at the clock */
    NS_PER_MS = 1000000
};

#define CREATE_SPACES                                                            \
    "CREATE TABLE spaces(space INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, " \
    "bytes INTEGER NOT NULL, day INTEGER NOT NULL)"
#define CREATE_NODES                                                                            \
    "CREATE TABLE nodes(node INTEGER PRIMARY KEY, space INTEGER NOT NULL, "                     \
    "parent INTEGER NOT NULL, key BLOB NOT NULL, lazy INTEGER NOT NULL, plan BLOB, sync BLOB, " \
    "digest INTEGER NOT NULL, UNIQUE(space, parent, key))"

enum statement {
    GET_SPACE,
    ADD_SPACE,
    SET_SPACE,
    CLEAR_SPACE,
    CLEAR_UNUSED,
    DROP_UNUSED,
    ALL_NODES,
    GET_NODE,
    ADD_NODE,
    SET_NODE,
    STATEMENTS
};

static const char *const sql[STATEMENTS] = {
    [GET_SPACE] = "SELECT space, bytes, day FROM spaces WHERE name = ?1",
    [ADD_SPACE] = "INSERT INTO spaces(name, bytes, day) VALUES(?1, 0, 0)",
    [SET_SPACE] = "UPDATE spaces SET bytes = ?2, day = ?3 WHERE space = ?1",
    [CLEAR_SPACE] = "DELETE FROM nodes WHERE space = ?1",
    [CLEAR_UNUSED] = "DELETE FROM nodes WHERE space IN (SELECT space FROM spaces WHERE day < ?1)",
    [DROP_UNUSED] = "DELETE FROM spaces WHERE day < ?1",
    [ALL_NODES] = "SELECT node, parent, key, lazy, plan, sync, digest FROM nodes "
                  "WHERE space = ?1 ORDER BY node",
    [GET_NODE] = "SELECT node, parent, key, lazy, plan, sync, digest FROM nodes "
                 "WHERE space = ?1 AND parent = ?2 AND key = ?3",
    [ADD_NODE] = "INSERT INTO nodes(space, parent, key, lazy, plan, sync, digest) "
                 "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SET_NODE] = "UPDATE nodes SET lazy = ?4, plan = ?5, sync = ?6, digest = ?7 WHERE space = ?1 "
                 "AND parent = ?2 AND key = ?3",
};

struct database {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    char *path;
    int failure; /* the first SQLite error; 0: none */
    struct database_patience patience;
    int64_t begun_ns, begun_queued_ns; /* when its waiting began */
    struct file_limit limit;
    bool late, hurried; /* it was kept waiting too long; `patience.ending` was seen set */
    struct database_space space;
    int64_t day;     /* days since 1970 */
    uint64_t n_rows; /* rows written */
    bool write;
    bool foreign; /* another program's file, or a newer version's */
};

/* ---- waiting ---- */

/* The file that was given up in this process, by the digest of its path; 0: none. */
static atomic_uint_fast64_t slow_file;

static uint64_t file_key(const char *path)
{
    return XXH3_64bits(path, strlen(path)) | 1;
}

/* Time that passed without this thread computing. */
static int64_t idle_ns(void)
{
    struct timespec wall, own;

    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (wall.tv_sec - own.tv_sec) * INT64_C(1000000000) + wall.tv_nsec - own.tv_nsec;
}

/* Time that this thread could have computed, on a busy machine, but for other threads; 0 where the
 * kernel does not count it. */
static int64_t queued_ns(void)
{
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    char text[128], *end;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    strtoll(text, &end, 10);
    return strtoll(end, NULL, 10);
}

static void begin_waiting(struct database *database)
{
    database->begun_ns = idle_ns();
    database->begun_queued_ns = queued_ns();
}

static int64_t limit_ns(struct database *database)
{
    const struct database_patience *patience = &database->patience;

    const int64_t one_percent_ns = (int64_t)patience->ms * (NS_PER_MS / 100);

    if (!patience->ending)
        return one_percent_ns * (database->write ? SAVE_PART : LOAD_PART);
    if (!database->hurried && atomic_load(patience->ending)) {
        database->hurried = true;
        begin_waiting(database);
    }
    return database->hurried ? one_percent_ns * HURRIED_PART
                             : (int64_t)BACKGROUND_WAIT_MS * NS_PER_MS;
}

static bool is_late(struct database *database)
{
    const int64_t limit = limit_ns(database);
    int64_t idle = idle_ns() - database->begun_ns;

    if (idle > limit) /* only then, since it is slow */
        idle -= queued_ns() - database->begun_queued_ns;
    database->late |= idle > limit;
    return database->late;
}

/* Handlers of SQLite: 0 ends waiting for a lock, 1 interrupts a statement. */
static int wait_for_lock(void *ctx, int n_waits)
{
    const struct timespec pause = {0, POLL_MS * NS_PER_MS};

    (void)n_waits;
    if (is_late(ctx))
        return 0;
    nanosleep(&pause, NULL);
    return 1;
}

static int look_at_clock(void *ctx)
{
    return is_late(ctx);
}

/* A file for which the program was kept waiting is not used again. */
static void give_up(const struct database *database)
{
    if (atomic_exchange(&slow_file, file_key(database->path)) != file_key(database->path))
        log_write(FRIT_LOG_WARN, "plan",
                  "%s is locked by another process, or slow: this process keeps no plans there; "
                  "name a file on a local disk in [fusion] store, or none",
                  database->path);
}

/* ---- SQLite ---- */

/* Records the first failure; returns whether `rc` is success. */
static bool succeeded(struct database *database, int rc)
{
    if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE)
        return true;
    if (!database->failure) {
        database->failure = rc & 0xff;
        log_write(FRIT_LOG_DEBUG, "plan", "%s: %s", database->path,
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

/* Returns a prepared statement, reset; NULL after a failure. */
static sqlite3_stmt *statement_of(struct database *database, enum statement which)
{
    sqlite3_stmt **statement = &database->statements[which];

    if (!database->failure && is_late(database))
        database->failure = SQLITE_BUSY;
    if (database->failure)
        return NULL;
    if (*statement)
        sqlite3_reset(*statement);
    else if (!succeeded(database, sqlite3_prepare_v3(database->db, sql[which], -1,
                                                     SQLITE_PREPARE_PERSISTENT, statement, NULL)))
        return NULL;
    return *statement;
}

static bool step(struct database *database, sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);

    return succeeded(database, rc) && rc == SQLITE_ROW;
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
        log_write(FRIT_LOG_DEBUG, "plan", "%s is not used: %s", path, why);
        return false;
    }
    return true;
}

/* Whether the tables are exactly those of this version; SQLite adds one index per UNIQUE. */
static bool schema_matches(struct database *database)
{
    return query_int(database,
                     "SELECT count(*) = 4 AND sum(sql IS NULL AND type = 'index' OR sql IN "
                     "('" CREATE_SPACES "', '" CREATE_NODES "')) = 4 FROM sqlite_master",
                     0) == 1;
}

static void recreate_tables(struct database *database)
{
    char text[128];

    snprintf(text, sizeof(text), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION, SCHEMA);
    run(database, "DROP TABLE IF EXISTS spaces; DROP TABLE IF EXISTS nodes");
    run(database, text);
    run(database, CREATE_SPACES ";" CREATE_NODES);
}

/* Determines whether the file is empty, of this version, older, newer or another program's. */
static void identify_file(struct database *database)
{
    int64_t application = query_int(database, "PRAGMA application_id", 0);
    int64_t version = query_int(database, "PRAGMA user_version", 0);
    bool empty = query_int(database, "SELECT count(*) FROM sqlite_master", 1) == 0;

    if (database->failure)
        return;
    if (application == APPLICATION && version == SCHEMA) {
        if (!schema_matches(database) && !database->failure)
            database->failure = SQLITE_CORRUPT;
    } else if (database->write &&
               ((application == APPLICATION && version < SCHEMA) || (empty && !application))) {
        recreate_tables(database);
    } else {
        database->foreign = true;
        if (!empty)
            log_write(FRIT_LOG_DEBUG, "plan",
                      "%s is not used: application %#llx, version %lld (Frit writes %#x, %d)",
                      database->path, (unsigned long long)application, (long long)version,
                      (unsigned)APPLICATION, SCHEMA);
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
    sqlite3_busy_handler(database->db, wait_for_lock, database);
    sqlite3_progress_handler(database->db, PROGRESS, look_at_clock, database);
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

    if (atomic_load(&slow_file) == file_key(database->path))
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

frit_status database_open(const char *path, bool write, const struct database_patience *patience,
                          struct database **out, frit_err *err)
{
    struct database *database = calloc(1, sizeof(*database));

    *out = NULL;
    if (database)
        database->path = strdup(path);
    if (!database || !database->path) {
        free(database);
        return fail_memory(err, sizeof(*database));
    }
    database->write = write;
    database->patience = *patience;
    if (!is_usable(database)) {
        destroy(database);
        return FRIT_OK;
    }
    database->day = (int64_t)time(NULL) / DAY_S;
    begin_waiting(database);
    file_limit_begin(&database->limit);
    open_file(database);
    if (database->foreign) {
        database_close(database);
        return FRIT_OK;
    }
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
        log_write(FRIT_LOG_DEBUG, "plan", "%s is damaged%s", database->path,
                  done ? ": now NAME.damaged" : "");
    }
    free(name);
    return done;
}

bool database_close(struct database *database)
{
    bool damaged;

    if (!database)
        return false;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(database->statements[i]);
    sqlite3_close(database->db); /* rolls back uncommitted changes */
    file_limit_end(&database->limit);
    if (database->late && !database->patience.ending)
        give_up(database);
    damaged = !database->foreign &&
              (database->failure == SQLITE_CORRUPT || database->failure == SQLITE_NOTADB);
    if (damaged)
        damaged = rename_damaged(database);
    destroy(database);
    return damaged;
}

/* ---- namespaces ---- */

/* Runs a statement with integer parameters. */
static void run_numbers(struct database *database, enum statement which, const int64_t *numbers,
                        int n)
{
    sqlite3_stmt *statement = statement_of(database, which);

    if (!statement)
        return;
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(statement, i + 1, numbers[i]);
    step(database, statement);
    sqlite3_reset(statement);
}

static void add_space(struct database *database, const char *name)
{
    sqlite3_stmt *add = statement_of(database, ADD_SPACE);

    if (!add)
        return;
    sqlite3_bind_text(add, 1, name, -1, SQLITE_STATIC);
    step(database, add);
    sqlite3_reset(add);
    if (!database->failure)
        database->space = (struct database_space){.number = sqlite3_last_insert_rowid(database->db),
                                                  .is_new = true};
}

const struct database_space *database_space(struct database *database, const char *name)
{
    sqlite3_stmt *get = statement_of(database, GET_SPACE);
    struct database_space *space = &database->space;

    *space = (struct database_space){0};
    if (!get)
        return space;
    sqlite3_bind_text(get, 1, name, -1, SQLITE_STATIC);
    if (step(database, get)) {
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

void database_clear_space(struct database *database)
{
    run_numbers(database, CLEAR_SPACE, &database->space.number, 1);
    database->space.bytes = 0;
}

bool database_commit(struct database *database)
{
    const struct database_space *space = &database->space;
    const int64_t set[] = {space->number, space->bytes, database->day};
    const int64_t oldest = database->day - UNUSED_DAYS;

    run_numbers(database, SET_SPACE, set, 3);
    if (space->days_unused || space->is_new) {
        run_numbers(database, CLEAR_UNUSED, &oldest, 1);
        run_numbers(database, DROP_UNUSED, &oldest, 1);
    }
    return run(database, "COMMIT") && !database->failure;
}

uint64_t database_rows_written(const struct database *database)
{
    return database->n_rows;
}

/* ---- rows ---- */

static struct database_bytes column(sqlite3_stmt *statement, int index)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    int n_bytes = sqlite3_column_bytes(statement, index);

    return (struct database_bytes){bytes, bytes && n_bytes > 0 ? (size_t)n_bytes : 0};
}

static void digest_bytes(XXH3_state_t *state, const struct database_bytes *bytes)
{
    XXH3_64bits_update(state, &bytes->n_bytes, sizeof(bytes->n_bytes));
    if (bytes->n_bytes)
        XXH3_64bits_update(state, bytes->bytes, bytes->n_bytes);
}

static int64_t digest_of(int64_t space, const struct database_node *node)
{
    const int64_t numbers[] = {space, node->parent, node->lazy};
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, numbers, sizeof(numbers));
    digest_bytes(&state, &node->key);
    digest_bytes(&state, &node->plan);
    digest_bytes(&state, &node->sync);
    return (int64_t)XXH3_64bits_digest(&state);
}

/* Reads a row; false if its digest is wrong. */
static bool get_row(sqlite3_stmt *statement, int64_t space, struct database_node *out)
{
    *out = (struct database_node){
        .node = sqlite3_column_int64(statement, 0),
        .parent = sqlite3_column_int64(statement, 1),
        .key = column(statement, 2),
        .lazy = sqlite3_column_int64(statement, 3),
        .plan = column(statement, 4),
        .sync = column(statement, 5),
    };
    return sqlite3_column_int64(statement, 6) == digest_of(space, out);
}

bool database_next(struct database *database, struct database_node *out)
{
    sqlite3_stmt *all = database->statements[ALL_NODES];
    int64_t space = database->space.number;

    if (!all && (all = statement_of(database, ALL_NODES)))
        sqlite3_bind_int64(all, 1, space);
    while (all && !database->failure && !is_late(database) && step(database, all)) {
        if (get_row(all, space, out))
            return true;
    }
    return false;
}

static void bind_bytes(sqlite3_stmt *statement, int index, const struct database_bytes *bytes)
{
    if (bytes->n_bytes)
        sqlite3_bind_blob64(statement, index, bytes->bytes, bytes->n_bytes, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, index);
}

static int64_t bytes_of(const struct database_node *node)
{
    return (int64_t)(ROW_BYTES + node->key.n_bytes + node->plan.n_bytes + node->sync.n_bytes);
}

static void write_row(struct database *database, enum statement which, int64_t space,
                      const struct database_node *node)
{
    sqlite3_stmt *statement = statement_of(database, which);

    if (!statement)
        return;
    sqlite3_bind_int64(statement, 1, space);
    sqlite3_bind_int64(statement, 2, node->parent);
    bind_bytes(statement, 3, &node->key);
    sqlite3_bind_int64(statement, 4, node->lazy);
    bind_bytes(statement, 5, &node->plan);
    bind_bytes(statement, 6, &node->sync);
    sqlite3_bind_int64(statement, 7, digest_of(space, node));
    step(database, statement);
    database->n_rows++;
    database->space.bytes += bytes_of(node);
}

static bool same_bytes(const struct database_bytes *a, const struct database_bytes *b)
{
    return a->n_bytes == b->n_bytes && (!a->n_bytes || memcmp(a->bytes, b->bytes, a->n_bytes) == 0);
}

int64_t database_put(struct database *database, const struct database_node *node)
{
    sqlite3_stmt *get = statement_of(database, GET_NODE);
    struct database_node wanted = *node, there = {0};
    int64_t space = database->space.number;
    bool sound;

    if (!get)
        return 0;
    sqlite3_bind_int64(get, 1, space);
    sqlite3_bind_int64(get, 2, node->parent);
    bind_bytes(get, 3, &node->key);
    if (!step(database, get)) {
        write_row(database, ADD_NODE, space, node);
        return database->failure ? 0 : sqlite3_last_insert_rowid(database->db);
    }
    sound = get_row(get, space, &there);
    if (sound && !node->lazy) {
        wanted.lazy = there.lazy;
        wanted.plan = there.plan;
    }
    if (sound && !node->sync.n_bytes)
        wanted.sync = there.sync;
    if (!sound || wanted.lazy != there.lazy || !same_bytes(&wanted.plan, &there.plan) ||
        !same_bytes(&wanted.sync, &there.sync)) {
        database->space.bytes -= bytes_of(&there);
        write_row(database, SET_NODE, space, &wanted);
    }
    sqlite3_reset(get);
    return database->failure ? 0 : there.node;
}
