/* SPDX-License-Identifier: Apache-2.0 */
/* The scan schedule: scan.c plans, scan_emit.c emits.
 *
 * The space has the dims of the scan's result; the scanned dim is tagged SCAN_INNER.  A row is a
 * line along it.  Ops before the scan are computed where it reads an element, ops after it where a
 * result is known, in the same round. */
#ifndef LOWER_SCAN_H
#define LOWER_SCAN_H

#include "lower/expr/anchor.h"
#include "lower/expr/partition.h"
#include "lower/rows/fold.h"

enum { SCAN_OUTER, SCAN_INNER };

/* How rows are divided among lanes. */
enum scan_form {
    SCAN_GROUP, /* a group works on one row */
    SCAN_LANE   /* each lane has a row of its own */
};

struct scan {
    struct expr e;
    struct anchor anchor;
    struct space_map root;
    uint32_t dtype;   /* dtype of elements and results */
    struct fold fold; /* the scanned fold, in the accumulated type */
    uint32_t node;    /* node of the scan's elements */
    uint32_t result;  /* node of the scan's result */
    struct delinearizer outer, inner;
    struct partition partition; /* SCAN_LANE: divides rows among lanes */
    int64_t n_row;              /* elements of a row, may be 0 */
    enum scan_form form;
    uint32_t lanes;
    int64_t n_chunks;   /* per row, each computed by a group of its own; 1: rows are not split */
    int64_t chunk_size; /* elements of a row per chunk */
};

/* Emits all phases and sets the grid and the workspace. */
void scan_emit(struct scan *scan);

#endif
