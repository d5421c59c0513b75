/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The index walker: steps several operands together through one space of dims, whatever their
 * strides.
 *
 * Built by pushing dims from the outermost to the innermost.  Neighbouring dims that every operand
 * crosses with one step become one dim and extents of 1 vanish, so the order stays row-major and
 * rows get as long as the layouts allow.  Positions and steps are in bytes and relative: the user
 * adds them to its own addresses. */
#ifndef UTIL_WALK_H
#define UTIL_WALK_H

#include <stdbool.h>

#include <frit/types.h>

enum { WALK_OPERANDS = 16 };

enum walk_mode {
    WALK_ROWS,    /* stops once per row of the innermost dim */
    WALK_ELEMENTS /* stops at every element */
};

struct walk {
    enum walk_mode mode;
    uint32_t n; /* operands */
    uint32_t rank;
    bool empty;
    int64_t count;               /* elements from the present stop on: 1 for WALK_ELEMENTS */
    int64_t at[WALK_OPERANDS];   /* where each operand is */
    int64_t step[WALK_OPERANDS]; /* from one element of the row to the next */
    int64_t dims[FRIT_MAX_RANK];
    int64_t index[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK][WALK_OPERANDS];
};

/* A space of no dims: one element. */
void walk_init(struct walk *walk, enum walk_mode mode, uint32_t n);
/* One more dim, inside all others; `strides` has one entry per operand. */
void walk_push(struct walk *walk, int64_t extent, const int64_t *strides);

/* Goes to the first stop; false if there is none.  May be called again. */
bool walk_first(struct walk *walk);
/* Goes to the next stop; false after the last. */
bool walk_next(struct walk *walk);

#endif
