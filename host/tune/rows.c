/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/rows.h"

enum { APPLICATION = 0x46525455 /* "FRTU" */, SCHEMA = 1 };

static const struct database_table tables[] = {
    {"records",
     "CREATE TABLE records(record INTEGER PRIMARY KEY, space INTEGER NOT NULL, "
     "key BLOB NOT NULL, text BLOB NOT NULL, digest INTEGER NOT NULL, UNIQUE(space, key, record))",
     1},
    {"claims",
     "CREATE TABLE claims(space INTEGER NOT NULL, key BLOB NOT NULL, machine INTEGER NOT NULL, "
     "process INTEGER NOT NULL, started INTEGER NOT NULL, store INTEGER NOT NULL, "
     "since INTEGER NOT NULL, UNIQUE(space, key))",
     1},
};

enum statement {
    ALL_ROWS,
    COUNT_KEYS,
    NEWEST_ROW,
    ADD_ROW,
    FORGET_ROWS,
    TRIM_ROWS,
    GET_CLAIM,
    SET_CLAIM,
    DROP_CLAIM,
    STATEMENTS
};

static const char *const sql[STATEMENTS] = {
    [ALL_ROWS] = "SELECT key, text, digest FROM records WHERE space = ?1 ORDER BY record",
    [COUNT_KEYS] = "SELECT count(DISTINCT key) FROM records WHERE space = ?1",
    [NEWEST_ROW] = "SELECT key, text, digest FROM records WHERE space = ?1 AND key = ?2 "
                   "ORDER BY record DESC LIMIT 1",
    [ADD_ROW] = "INSERT INTO records(space, key, text, digest) VALUES(?1, ?2, ?3, ?4)",
    [FORGET_ROWS] = "DELETE FROM records WHERE space = ?1 AND key = ?2",
    [TRIM_ROWS] =
        "DELETE FROM records WHERE space = ?1 AND record <= (SELECT record FROM records WHERE "
        "space = ?1 ORDER BY record LIMIT 1 OFFSET (SELECT count(*) / 2 FROM records WHERE "
        "space = ?1))",
    [GET_CLAIM] = "SELECT machine, process, started, store, since FROM claims WHERE space = ?1 "
                  "AND key = ?2",
    [SET_CLAIM] = "INSERT OR REPLACE INTO claims(space, key, machine, process, started, store, "
                  "since) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [DROP_CLAIM] = "DELETE FROM claims WHERE space = ?1 AND key = ?2 AND machine = ?3 AND "
                   "process = ?4 AND started = ?5 AND store = ?6",
};

const struct database_kind tune_database = {
    .topic = "tune",
    .contents = "decisions",
    .option = "[tune] store",
    .application = APPLICATION,
    .version = SCHEMA,
    .tables = tables,
    .n_tables = sizeof(tables) / sizeof(tables[0]),
    .sql = sql,
    .n_sql = STATEMENTS,
};

/* ---- records ---- */

static int64_t digest_of(int64_t space, const struct tune_row *row)
{
    const struct database_bytes bytes[] = {row->key, row->text};

    return database_digest(&space, 1, bytes, 2);
}

static bool get_row(sqlite3_stmt *statement, int64_t space, struct tune_row *out)
{
    *out = (struct tune_row){database_column(statement, 0), database_column(statement, 1)};
    return sqlite3_column_int64(statement, 2) == digest_of(space, out);
}

/* A statement with the namespace and, if not NULL, the key as parameters; NULL after a failure. */
static sqlite3_stmt *begin(struct database *database, enum statement which,
                           const struct database_bytes *key)
{
    sqlite3_stmt *statement = database_statement(database, which);

    if (!statement)
        return NULL;
    sqlite3_bind_int64(statement, 1, database_selected(database)->number);
    if (key)
        database_bind(statement, 2, key);
    return statement;
}

static void run(struct database *database, sqlite3_stmt *statement)
{
    if (!statement)
        return;
    database_step(database, statement);
    sqlite3_reset(statement);
}

bool tune_row_next(struct database *database, sqlite3_stmt **cursor, struct tune_row *out)
{
    if (!*cursor)
        *cursor = begin(database, ALL_ROWS, NULL);
    while (*cursor && database_step(database, *cursor)) {
        if (get_row(*cursor, database_selected(database)->number, out))
            return true;
    }
    return false;
}

bool tune_row_newest(struct database *database, const struct database_bytes *key,
                     struct database_bytes *out)
{
    sqlite3_stmt *statement = begin(database, NEWEST_ROW, key);
    struct tune_row row;

    if (!statement || !database_step(database, statement) ||
        !get_row(statement, database_selected(database)->number, &row))
        return false;
    *out = row.text;
    return true;
}

uint64_t tune_row_count_keys(struct database *database)
{
    sqlite3_stmt *statement = begin(database, COUNT_KEYS, NULL);
    uint64_t count = 0;

    if (statement && database_step(database, statement))
        count = (uint64_t)sqlite3_column_int64(statement, 0);
    if (statement)
        sqlite3_reset(statement);
    return count;
}

void tune_row_add(struct database *database, const struct tune_row *row)
{
    sqlite3_stmt *statement = begin(database, ADD_ROW, &row->key);

    if (!statement)
        return;
    database_bind(statement, 3, &row->text);
    sqlite3_bind_int64(statement, 4, digest_of(database_selected(database)->number, row));
    run(database, statement);
    database_wrote(database, 1,
                   (int64_t)(DATABASE_ROW_BYTES + 2 * row->key.n_bytes + row->text.n_bytes));
}

void tune_row_forget(struct database *database, const struct database_bytes *key)
{
    if (key)
        run(database, begin(database, FORGET_ROWS, key));
    else
        database_clear_space(database);
}

/* Their sizes are as much alike as those of the newer half. */
void tune_row_trim(struct database *database)
{
    run(database, begin(database, TRIM_ROWS, NULL));
    database_wrote(database, 0, -database_selected(database)->bytes / 2);
}

/* ---- claims ---- */

bool tune_row_claim(struct database *database, const struct database_bytes *key,
                    struct tune_claim *out)
{
    sqlite3_stmt *statement = begin(database, GET_CLAIM, key);
    bool found = statement && database_step(database, statement);

    if (found)
        *out = (struct tune_claim){.machine = sqlite3_column_int64(statement, 0),
                                   .process = sqlite3_column_int64(statement, 1),
                                   .started = sqlite3_column_int64(statement, 2),
                                   .store = sqlite3_column_int64(statement, 3),
                                   .since = sqlite3_column_int64(statement, 4)};
    if (statement)
        sqlite3_reset(statement);
    return found;
}

static sqlite3_stmt *begin_claim(struct database *database, enum statement which,
                                 const struct database_bytes *key, const struct tune_claim *claim)
{
    sqlite3_stmt *statement = begin(database, which, key);

    if (!statement)
        return NULL;
    sqlite3_bind_int64(statement, 3, claim->machine);
    sqlite3_bind_int64(statement, 4, claim->process);
    sqlite3_bind_int64(statement, 5, claim->started);
    sqlite3_bind_int64(statement, 6, claim->store);
    return statement;
}

void tune_row_set_claim(struct database *database, const struct database_bytes *key,
                        const struct tune_claim *claim)
{
    sqlite3_stmt *statement = begin_claim(database, SET_CLAIM, key, claim);

    if (statement)
        sqlite3_bind_int64(statement, 7, claim->since);
    run(database, statement);
}

void tune_row_drop_claim(struct database *database, const struct database_bytes *key,
                         const struct tune_claim *owner)
{
    run(database, begin_claim(database, DROP_CLAIM, key, owner));
}
