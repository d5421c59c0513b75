/* SPDX-License-Identifier: Apache-2.0 */
/* Each row has a digest over its other columns. */
#include "plan/rows.h"

#include <string.h>

enum { APPLICATION = 0x46524954 /* "FRIT" */, SCHEMA = 2 };

static const struct database_table tables[] = {
    {"nodes",
     "CREATE TABLE nodes(node INTEGER PRIMARY KEY, space INTEGER NOT NULL, "
     "parent INTEGER NOT NULL, key BLOB NOT NULL, lazy INTEGER NOT NULL, plan BLOB, sync BLOB, "
     "digest INTEGER NOT NULL, UNIQUE(space, parent, key))",
     1},
};

enum statement { ALL_NODES, GET_NODE, ADD_NODE, SET_NODE, STATEMENTS };

static const char *const sql[STATEMENTS] = {
    [ALL_NODES] = "SELECT node, parent, key, lazy, plan, sync, digest FROM nodes "
                  "WHERE space = ?1 ORDER BY node",
    [GET_NODE] = "SELECT node, parent, key, lazy, plan, sync, digest FROM nodes "
                 "WHERE space = ?1 AND parent = ?2 AND key = ?3",
    [ADD_NODE] = "INSERT INTO nodes(space, parent, key, lazy, plan, sync, digest) "
                 "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SET_NODE] = "UPDATE nodes SET lazy = ?4, plan = ?5, sync = ?6, digest = ?7 WHERE space = ?1 "
                 "AND parent = ?2 AND key = ?3",
};

const struct database_kind plan_database = {
    .topic = "plan",
    .contents = "plans",
    .option = "[fusion] store",
    .application = APPLICATION,
    .version = SCHEMA,
    .tables = tables,
    .n_tables = sizeof(tables) / sizeof(tables[0]),
    .sql = sql,
    .n_sql = STATEMENTS,
};

static int64_t digest_of(int64_t space, const struct plan_row *row)
{
    const int64_t numbers[] = {space, row->parent, row->lazy};
    const struct database_bytes bytes[] = {row->key, row->plan, row->sync};

    return database_digest(numbers, 3, bytes, 3);
}

/* Reads a row; false if its digest is wrong. */
static bool get_row(sqlite3_stmt *statement, int64_t space, struct plan_row *out)
{
    *out = (struct plan_row){
        .node = sqlite3_column_int64(statement, 0),
        .parent = sqlite3_column_int64(statement, 1),
        .key = database_column(statement, 2),
        .lazy = sqlite3_column_int64(statement, 3),
        .plan = database_column(statement, 4),
        .sync = database_column(statement, 5),
    };
    return sqlite3_column_int64(statement, 6) == digest_of(space, out);
}

bool plan_row_next(struct database *database, sqlite3_stmt **cursor, struct plan_row *out)
{
    const int64_t space = database_selected(database)->number;

    if (!*cursor && (*cursor = database_statement(database, ALL_NODES)))
        sqlite3_bind_int64(*cursor, 1, space);
    while (*cursor && database_step(database, *cursor)) {
        if (get_row(*cursor, space, out))
            return true;
    }
    return false;
}

static int64_t bytes_of(const struct plan_row *row)
{
    return (int64_t)(DATABASE_ROW_BYTES + row->key.n_bytes + row->plan.n_bytes + row->sync.n_bytes);
}

static void write_row(struct database *database, enum statement which, int64_t space,
                      const struct plan_row *row)
{
    sqlite3_stmt *statement = database_statement(database, which);

    if (!statement)
        return;
    sqlite3_bind_int64(statement, 1, space);
    sqlite3_bind_int64(statement, 2, row->parent);
    database_bind(statement, 3, &row->key);
    sqlite3_bind_int64(statement, 4, row->lazy);
    database_bind(statement, 5, &row->plan);
    database_bind(statement, 6, &row->sync);
    sqlite3_bind_int64(statement, 7, digest_of(space, row));
    database_step(database, statement);
    database_wrote(database, 1, bytes_of(row));
}

static bool same_bytes(const struct database_bytes *a, const struct database_bytes *b)
{
    return a->n_bytes == b->n_bytes && (!a->n_bytes || memcmp(a->bytes, b->bytes, a->n_bytes) == 0);
}

int64_t plan_row_put(struct database *database, const struct plan_row *row)
{
    sqlite3_stmt *get = database_statement(database, GET_NODE);
    struct plan_row wanted = *row, there = {0};
    int64_t space = database_selected(database)->number;
    bool sound;

    if (!get)
        return 0;
    sqlite3_bind_int64(get, 1, space);
    sqlite3_bind_int64(get, 2, row->parent);
    database_bind(get, 3, &row->key);
    if (!database_step(database, get)) {
        write_row(database, ADD_NODE, space, row);
        return database_failed(database) ? 0 : database_last_row(database);
    }
    sound = get_row(get, space, &there);
    if (sound && !row->lazy) {
        wanted.lazy = there.lazy;
        wanted.plan = there.plan;
    }
    if (sound && !row->sync.n_bytes)
        wanted.sync = there.sync;
    if (!sound || wanted.lazy != there.lazy || !same_bytes(&wanted.plan, &there.plan) ||
        !same_bytes(&wanted.sync, &there.sync)) {
        database_wrote(database, 0, -bytes_of(&there));
        write_row(database, SET_NODE, space, &wanted);
    }
    sqlite3_reset(get);
    return database_failed(database) ? 0 : there.node;
}
