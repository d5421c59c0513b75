/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the tuner (store/database.h).  Table `records` has the text of each record
 * (tune/record.h); rows are added and never changed, and the newest of a key counts.  Table
 * `claims` has who tunes a key at the moment.  All of the selected namespace. */
#ifndef TUNE_ROWS_H
#define TUNE_ROWS_H

#include "store/database.h"
#include "tune/claim.h"

extern const struct database_kind tune_database;

struct tune_row {
    struct database_bytes key, text;
};

/* Reads the next row, in the order in which they were added; bytes are valid until the next call.
 * Rows with a wrong digest are skipped.  False after the last one.  *cursor is NULL before the
 * first. */
bool tune_row_next(struct database *database, sqlite3_stmt **cursor, struct tune_row *out);
/* Reads the text of the newest row of a key; valid until the next call. */
bool tune_row_newest(struct database *database, const struct database_bytes *key,
                     struct database_bytes *out);
/* How many keys have rows. */
uint64_t tune_row_count_keys(struct database *database);
void tune_row_add(struct database *database, const struct tune_row *row);
/* Deletes the rows of a key; NULL: of all keys. */
void tune_row_forget(struct database *database, const struct database_bytes *key);
/* Deletes the older half of the rows. */
void tune_row_trim(struct database *database);

bool tune_row_claim(struct database *database, const struct database_bytes *key,
                    struct tune_claim *out);
/* Adds the claim in the place of another one. */
void tune_row_set_claim(struct database *database, const struct database_bytes *key,
                        const struct tune_claim *claim);
/* Deletes the claim if it is by that owner. */
void tune_row_drop_claim(struct database *database, const struct database_bytes *key,
                         const struct tune_claim *owner);

#endif
