/* SPDX-License-Identifier: Apache-2.0 */
/* The scan schedule, between scan.c (what is to be done) and scan_emit.c (the code).
 *
 * The space is that of the scan's result; the dim along which it runs is tagged SCAN_INNER.  A row
 * is a line along it.  What stands before the scan is computed where an element is taken, what
 * stands behind it where its result is known, in the same round. */
#ifndef LOWER_SCAN_H
#define LOWER_SCAN_H

#include "lower/expr/anchor.h"
#include "lower/expr/partition.h"
#include "lower/rows/fold.h"

enum { SCAN_OUTER, SCAN_INNER };

/* How lanes share rows. */
enum scan_form {
    SCAN_GROUP, /* a group works on one row */
    SCAN_LANE   /* each lane has a row of its own */
};

struct scan {
    struct expr e;
    struct anchor anchor;
    struct space_map root;
    uint32_t dtype;   /* of elements and results */
    struct fold fold; /* of one part; of the type that is carried */
    uint32_t node;    /* elements */
    uint32_t result;  /* node */
    struct delinearizer outer, inner;
    struct partition partition; /* SCAN_LANE: how rows are shared out to lanes */
    int64_t n_row;              /* elements of a row: 0 too */
    enum scan_form form;
    uint32_t lanes;
    int64_t splits, chunk; /* of a row; 1: it is done in one piece */
};

/* Emits all phases and fills the grid and the workspace. */
void scan_emit(struct scan *scan);

#endif
