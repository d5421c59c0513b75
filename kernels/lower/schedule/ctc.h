/* SPDX-License-Identifier: Apache-2.0 */
/* The ctc schedule: ctc_loss and its gradient (Graves et al. 2006, equations 6 to 16, in
 * logarithms), with elementwise ops and views around.
 *
 * The workspace has a table.  An entry is the logarithm of the total probability of all paths to a
 * state; even states are blanks, odd ones the target's labels.  A column is one sequence and
 * belongs to one lane.  Row 0 has all paths in state 0; row t + 1 is the row after step t, which is
 * computed from state 0 upwards.  States beyond the target's length are computed too, but never
 * influence those before them.
 *
 * The loss needs only the last row, so one row is overwritten in each step.  The gradient keeps all
 * rows, with two columns per sequence: the second reads the sequence and its target backwards and
 * has the paths that continue from a state.  A second phase sums, per step and class, the
 * probability that the target's path is in the class; a third stores the result. */
#ifndef LOWER_CTC_H
#define LOWER_CTC_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"

enum { CTC_ITEM, CTC_STEP, CTC_LABEL, CTC_CLASS, CTC_POINTS }; /* tags of dims; their number */
enum { CTC_PHASES = 3 };

struct ctc {
    struct expr e;
    struct kir_module *m; /* s->module */
    struct anchor anchor;
    const struct block_op *op;
    bool gradient;
    int64_t n_items, n_steps, n_classes, n_labels, n_states, n_columns;
    uint32_t blank, label, class; /* nodes: log_probs of the blank, of a label, of a class */
    uint32_t target, steps, labels, grad, result; /* nodes: operands, result */
    struct delinearizer points[CTC_POINTS];
    int64_t n_table, n_sums; /* elements of the workspace: the table, then the sums per class */
    int64_t rounds;          /* loop rounds of a lane in the longest phase */
    enum kir_type type;      /* in which everything is computed */
    uint32_t table;          /* argument number of the workspace */
    /* During emission, values of the phase: */
    uint32_t item,
        mask; /* the lane's sequence; B: the lane has one, KIR_NONE: every lane has one */
    uint32_t items, columns,
        row;             /* parameters: their numbers, and the number of entries of a row */
    uint32_t last_class; /* parameter of the targets' type */
};

/* ---- ctc_paths.c ---- */

/* `a` and `b`; `a` may be KIR_NONE, which is true. */
uint32_t ctc_both(const struct ctc *c, uint32_t a, uint32_t b);
/* The logarithm of 0. */
uint32_t ctc_log_zero(const struct ctc *c);
/* The value of a floating-point node, in the type that is computed in. */
uint32_t ctc_value(struct ctc *c, uint32_t node);
/* The class of the current label, clamped to the number of classes, in the targets' type. */
uint32_t ctc_class(struct ctc *c);
/* Converts an integer to the index type. */
uint32_t ctc_as_index(const struct ctc *c, uint32_t value);
/* The numbers of steps and labels of the lane's sequence, clamped to the extents. */
uint32_t ctc_steps(struct ctc *c);
uint32_t ctc_labels(struct ctc *c);

/* Begins a phase of `n` lanes; returns the lane's number. */
uint32_t ctc_phase(struct ctc *c, uint32_t phase, int64_t n);
/* The entry of `state` in the row at offset `row`; the logarithm of 0 where `mask` is false. */
uint32_t ctc_read(const struct ctc *c, uint32_t row, uint32_t state, uint32_t mask);
/* The logarithm of the probability of all paths that, after the row at offset `row`, end in the
 * last of `labels` labels or in the blank after it. */
uint32_t ctc_total(const struct ctc *c, uint32_t row, uint32_t labels);
/* Computes the table; the lane with number `number` computes that column. */
void ctc_paths(struct ctc *c, uint32_t number);

/* ---- ctc_emit.c ---- */

/* Sets the number of lanes of each phase; returns the number of phases. */
uint32_t ctc_lanes(const struct ctc *c, int64_t lanes[CTC_PHASES]);
/* Emits all phases and sets their grids. */
void ctc_emit(struct ctc *c);

#endif
