/* SPDX-License-Identifier: Apache-2.0 */
/* The ctc schedule: ctc_loss and its gradient (Graves et al. 2006, equations 6 to 16, in
 * logarithms), with elementwise ops and views before and behind it.
 *
 * The workspace has a table of rows, and in each, for every column, the logarithm of the
 * probability of all paths to each state: blanks at the even ones, the target's classes in between.
 * A column belongs to a lane, with a sequence of its own; a step makes the next row of it, from
 * state 0 on.  What is behind the target's length has no way back to the states before it.  Row 0
 * has all paths in state 0, row t + 1 is that after step t.
 *
 * The loss needs the last row only: one row is written over and over.  The gradient keeps all, of
 * two columns for each sequence: in the second the sequence and its target are read from their
 * ends, which gives the paths that go on from a state.  A second phase adds up for each step and
 * class the probability that the target's path is in it, a third stores the result. */
#ifndef LOWER_CTC_H
#define LOWER_CTC_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"

enum { CTC_ITEM, CTC_STEP, CTC_LABEL, CTC_CLASS, CTC_POINTS }; /* tags of dims */
enum { CTC_PHASES = 3 };

struct ctc {
    struct expr e;
    struct kir_module *m; /* of the schedule */
    struct anchor anchor;
    const struct block_op *op;
    bool gradient;
    int64_t n_items, n_steps, n_classes, n_labels, n_states, n_columns;
    uint32_t blank, label, class; /* nodes: log_probs of the blank, of a label, of a class */
    uint32_t target, steps, labels, grad, result; /* nodes */
    struct delinearizer points[CTC_POINTS];
    int64_t n_table, n_sums; /* elements of the workspace: the table, behind it the classes' sums */
    int64_t rounds;          /* of a lane in the phase with the longest loops */
    enum kir_type type;      /* computed in */
    uint32_t table;          /* workspace: argument */
    /* Emitting: values of the phase. */
    uint32_t item, mask;          /* of the lane; KIR_NONE: all have one */
    uint32_t items, columns, row; /* parameters: how many, and of a row of the table all elements */
    uint32_t last_class;          /* parameter, of the targets' type */
};

/* ---- ctc_paths.c ---- */

/* Of KIR_NONE, which always holds, and a condition. */
uint32_t ctc_both(const struct ctc *c, uint32_t a, uint32_t b);
/* The logarithm of 0. */
uint32_t ctc_never(const struct ctc *c);
/* A node of floats, in the type that is computed in. */
uint32_t ctc_value(struct ctc *c, uint32_t node);
/* The class of the label that is set, of the targets' type, within the classes. */
uint32_t ctc_class(struct ctc *c);
/* An integer as offsets are. */
uint32_t ctc_as_index(const struct ctc *c, uint32_t value);
/* The lane's sequence's numbers of steps and labels, within the extents. */
uint32_t ctc_steps(struct ctc *c);
uint32_t ctc_labels(struct ctc *c);

/* A new phase of `n` lanes; the lane's number. */
uint32_t ctc_phase(struct ctc *c, uint32_t phase, int64_t n);
/* An entry of the column's row that begins at `row`; never where `mask` does not hold. */
uint32_t ctc_read(const struct ctc *c, uint32_t row, uint32_t state, uint32_t mask);
/* The logarithm of the probability of all paths that end, after the row at `row`, in the last of so
 * many labels or the blank behind it. */
uint32_t ctc_total(const struct ctc *c, uint32_t row, uint32_t labels);
/* The table, from first row to last: the phase's lane of this number has the column of the same. */
void ctc_paths(struct ctc *c, uint32_t number);

/* ---- ctc_emit.c ---- */

/* How many lanes each phase has; the number of phases. */
uint32_t ctc_lanes(const struct ctc *c, int64_t lanes[CTC_PHASES]);
/* All phases, with their grids. */
void ctc_emit(struct ctc *c);

#endif
