/* SPDX-License-Identifier: Apache-2.0 */
/* A SQLite file of ours.  It is used only where nobody else could have written it (base/file.h).
 *
 * A file that another process has locked, or that is slow, keeps nobody waiting: what is not done
 * in time is given up, and then the process does not use the file any more, with one warning.
 *
 * Rows belong to namespaces, which are deleted after 90 days without use.  A kind of file adds its
 * tables, each with an integer column `space`, and the statements that read and write them.  One
 * thread at a time. */
#ifndef STORE_DATABASE_H
#define STORE_DATABASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include <frit/status.h>

struct database;

struct database_table {
    const char *name;
    const char *create;
    uint32_t n_unique; /* its constraints UNIQUE, for each of which SQLite adds an index */
};

enum { DATABASE_STATEMENTS = 9 };

/* What a file holds. */
struct database_kind {
    const char *topic;    /* of log lines */
    const char *contents; /* in them: "plans" */
    const char *option;   /* that names the file: "[fusion] store" */
    uint32_t application; /* unique to the kind */
    uint32_t version;     /* of the tables; an older file is emptied, a newer one is not used */
    const struct database_table *tables;
    uint32_t n_tables;
    const char *const *sql; /* statements, see database_statement */
    uint32_t n_sql;         /* at most DATABASE_STATEMENTS */
};

/* How long threads may be kept waiting between opening and closing, computing not counted. */
struct database_patience {
    int64_t wait_ns;
    const atomic_bool *ending; /* see patience.h */
    int64_t hurried_ns;
};

/* Opens the file, with `write` creating it and its folder, and begins a transaction.  If there is
 * nothing to read, or the file cannot be used, returns FRIT_OK and NULL. */
frit_status database_open(const struct database_kind *kind, const char *path, bool write,
                          const struct database_patience *patience, struct database **out,
                          frit_err *err);

struct database_end {
    bool damaged;   /* the file was damaged and is renamed; a writer may start a new file */
    bool exhausted; /* the patience was: the file is not used again, and the log says so */
    int64_t waited_ns;
};

/* Closes the database and rolls back what was not committed.  NULL does nothing. */
struct database_end database_close(struct database *database);

/* ---- namespaces ---- */

struct database_space {
    int64_t number;      /* 0: it does not exist, or a failure */
    int64_t bytes;       /* approximate size of its rows */
    int64_t days_unused; /* since the last commit */
    bool is_new;         /* it was created by this call */
};

/* Selects a namespace for the calls below; with `write` creates it.  The result lives as long as
 * the database. */
const struct database_space *database_space(struct database *database, const char *name);
/* Calls `fn` with the name of each; none is selected by that. */
void database_each_space(struct database *database, void (*fn)(void *ctx, const char *name),
                         void *ctx);
/* The selected one. */
const struct database_space *database_selected(const struct database *database);
/* Deletes the rows of the namespace. */
void database_clear_space(struct database *database);
/* Commits, updates the namespace's last use, and once a day deletes namespaces not used for 90
 * days.  False: nothing has changed. */
bool database_commit(struct database *database);

/* ---- rows ---- */

enum { DATABASE_ROW_BYTES = 64 /* approximate size of a row without its blobs */ };

struct database_bytes {
    const void *bytes;
    size_t n_bytes;
};

/* The statement of that index in the kind's, reset; NULL after a failure. */
sqlite3_stmt *database_statement(struct database *database, uint32_t which);
/* Whether there is a row; false also after a failure. */
bool database_step(struct database *database, sqlite3_stmt *statement);
/* After a failure every later call does nothing, and database_commit fails. */
bool database_failed(const struct database *database);
/* Rows of the namespace were written, or deleted, so that its size changes by `bytes`. */
void database_wrote(struct database *database, uint64_t n_rows, int64_t bytes);
uint64_t database_rows_written(const struct database *database);

/* Number of the row that was added last. */
int64_t database_last_row(const struct database *database);

/* The bytes, NULL where there are none. */
void database_bind(sqlite3_stmt *statement, int index, const struct database_bytes *bytes);
/* Valid until the next step. */
struct database_bytes database_column(sqlite3_stmt *statement, int index);
/* Of numbers and of byte strings with their lengths, for a column that shows changed rows. */
int64_t database_digest(const int64_t *numbers, size_t n_numbers,
                        const struct database_bytes *bytes, size_t n_bytes);

#endif
