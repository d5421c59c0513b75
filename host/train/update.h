/* SPDX-License-Identifier: Apache-2.0 */
/* What a step computes, in ops: gradients made ready, and new parameters and states from old ones.
 * Pure but for the ops that are recorded; errors travel in the tensors. */
#ifndef TRAIN_UPDATE_H
#define TRAIN_UPDATE_H

#include <frit/train.h>

#include "grad/rule.h"

/* States of a parameter.  MASTER is the parameter itself, in f32. */
enum state_kind { STATE_FIRST, STATE_SECOND, STATE_MAX_SECOND, STATE_MASTER, N_STATES };

/* What a step multiplies with: numbers of the host, or tensors of rank 0 where the device counts
 * the steps.  A step that is skipped is one whose numbers change nothing, so that nothing has to be
 * chosen per element but the gradient. */
struct update {
    const frit_optimizer_config *config;
    double rate;
    term keep[2]; /* of the old momentum, or moments */
    term add[2];  /* of the gradient to them */
    term factor;  /* the rate, with the bias corrections of Adam */
    term eps;     /* with the correction of the second moment */
    term decay;   /* AdamW: of the old parameter */
    term ok;      /* all gradients are finite; absent: steps are never skipped */
    term inverse; /* of the scale; absent: 1 */
    term clip;    /* factor of clip_norm; absent: 1 */
};

/* 1 - beta^steps after one more step: exact where the difference would cancel. */
term update_correction(term correction, double beta);
/* Fills the numbers from the count of steps with this one. */
void update_numbers(struct update *update, uint64_t steps);
/* Likewise from `ok`, the corrections with this step, and (SGD) the one before it. */
void update_numbers_on_device(struct update *update, const term *corrections, term before);

/* A gradient in the type that a step computes in, unscaled and limited by clip_value. */
term update_gradient(const struct update *update, term grad, uint32_t dtype);
/* Gradients for sums over all elements.  With `joins` small ones stand one after another in one
 * tensor, so that each sum is not a launch of its own.  Writes at most `n` and returns how many. */
uint32_t update_flatten(const term *grads, uint32_t n, bool joins, term *out);
/* The 2-norm of all, f32 or f64 of rank 0, and the factor that limits it. */
term update_norm(const term *grads, uint32_t n);
term update_clip(term norm, double limit);
/* Whether all elements of all are finite: bool of rank 0. */
term update_is_finite(const term *grads, uint32_t n);

/* The number of states of a kind that the optimiser has for a parameter of this type, 0 or 1, and
 * the type that it computes in. */
bool update_has_state(const frit_optimizer_config *config, enum state_kind kind, uint32_t dtype);
uint32_t update_dtype(uint32_t dtype);
/* How many corrections the device counts: of beta1 and beta2, or the first step of SGD. */
uint32_t update_n_corrections(const frit_optimizer_config *config);

/* From the parameter, its gradient made ready, and its states (absent ones empty) to new ones. */
void update_param(const struct update *update, term param, term grad, const term *states,
                  term *new_param, term *new_states);

#endif
