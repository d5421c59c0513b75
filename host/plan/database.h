/* SPDX-License-Identifier: Apache-2.0 */
/* The file of saved plans as rows of SQLite: nothing of it leaves this room.
 *
 * A node of a saved trie is a row of `nodes`; its parent is another row, or 0.  Threads: one at a
 * time. */
#ifndef PLAN_DATABASE_H
#define PLAN_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

struct database;

/* Opens the file, makes it with its folder if `write`, and begins a transaction.  Gives NULL and
 * FRIT_OK, after a debug line, where there is nothing to read or it cannot be written. */
frit_status database_open(const char *path, bool write, struct database **out, frit_err *err);
/* Ends it; what was not committed is as it was.  What was found damaged is set aside then.  True if
 * it was, so that a writer may begin anew.  NULL does nothing. */
bool database_close(struct database *database);

/* ---- namespaces ---- */

struct database_space {
    int64_t number;      /* 0: not there, or a failure */
    int64_t bytes;       /* that its rows take, about */
    int64_t days_unused; /* since the last commit in it */
    bool is_new;         /* it was made now */
};

/* Finds a namespace, which the calls below are about; makes it if the file is written.  Lives as
 * long as the database. */
const struct database_space *database_space(struct database *database, const char *name);
/* Deletes its rows. */
void database_clear_space(struct database *database);
/* Keeps what was written, notes that the namespace is used, and once a day deletes namespaces that
 * nobody has used for 90 days.  False: everything is as it was. */
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
    int64_t lazy;                     /* as enum lazy_kind */
    struct database_bytes plan, sync; /* empty: none; `sync` of one zero byte: the same as `plan` */
};

/* The next node of the namespace, smallest number first; the bytes are valid until the next call.
 * Rows that are not as they were written are passed over.  False after the last one. */
bool database_next(struct database *database, struct database_node *out);
/* Adds a node or its answers: what is given (lazy not 0, sync not empty) stands in the file
 * afterwards.  Its number, 0 after a failure. */
int64_t database_put(struct database *database, const struct database_node *node);

#endif
