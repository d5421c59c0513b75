/* SPDX-License-Identifier: Apache-2.0 */
/* The file of saved plans (store/database.h): a node of a saved trie is a row of the table `nodes`;
 * its parent is another row, or 0. */
#ifndef PLAN_ROWS_H
#define PLAN_ROWS_H

#include "store/database.h"

extern const struct database_kind plan_database;

struct plan_row {
    int64_t node, parent;
    struct database_bytes key;
    int64_t lazy; /* enum lazy_kind */
    struct database_bytes plan,
        sync; /* empty: none; `sync` with one zero byte: the same as `plan` */
};

/* Reads the next node of the selected namespace in order of numbers; bytes are valid until the next
 * call.  Rows with a wrong digest are skipped.  False after the last one.  *cursor is NULL before
 * the first. */
bool plan_row_next(struct database *database, sqlite3_stmt **cursor, struct plan_row *out);
/* Adds a node, or answers to it: given answers (lazy not 0, sync not empty) replace those in the
 * file.  Returns its number, 0 after a failure. */
int64_t plan_row_put(struct database *database, const struct plan_row *row);

#endif
