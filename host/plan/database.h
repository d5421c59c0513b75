/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite file of saved plans; only this file's functions access SQLite.  It is used only where
 * nobody else could have written it (base/file.h).
 *
 * A file that another process has locked, or that is slow, keeps nobody waiting: what is not done
 * in time is given up, and then the process does not use the file any more, with one warning.
 *
 * A node of a saved trie is a row of the table `nodes`; its parent is another row, or 0.  One
 * thread at a time. */
#ifndef PLAN_DATABASE_H
#define PLAN_DATABASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

struct database;

/* How long threads may be kept waiting between opening and closing, computing not counted. */
struct database_patience {
    uint32_t ms; /* of a program in all: one load, a background save that its end meets, one save */
    const atomic_bool *ending; /* NULL, or of a background thread, which may wait longer; once it is
                                  set, somebody waits for that thread, which then gives way */
};

/* Opens the file, with `write` creating it and its folder, and begins a transaction.  If there is
 * nothing to read, or the file cannot be used, returns FRIT_OK and NULL. */
frit_status database_open(const char *path, bool write, const struct database_patience *patience,
                          struct database **out, frit_err *err);
/* Closes the database and rolls back what was not committed.  A damaged file is renamed; returns
 * true then, and a writer may start a new file.  NULL does nothing. */
bool database_close(struct database *database);

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
/* Deletes the rows of the namespace. */
void database_clear_space(struct database *database);
/* Commits, updates the namespace's last use, and once a day deletes namespaces not used for 90
 * days.  False: nothing has changed. */
bool database_commit(struct database *database);
uint64_t database_rows_written(const struct database *database);

/* ---- rows ---- */

struct database_bytes {
    const void *bytes;
    size_t n_bytes;
};

struct database_node {
    int64_t node, parent;
    struct database_bytes key;
    int64_t lazy; /* enum lazy_kind */
    struct database_bytes plan,
        sync; /* empty: none; `sync` with one zero byte: the same as `plan` */
};

/* Reads the next node of the namespace in order of numbers; bytes are valid until the next call.
 * Rows with a wrong digest are skipped.  False after the last one. */
bool database_next(struct database *database, struct database_node *out);
/* Adds a node, or answers to it: given answers (lazy not 0, sync not empty) replace those in the
 * file.  Returns its number, 0 after a failure. */
int64_t database_put(struct database *database, const struct database_node *node);

#endif
