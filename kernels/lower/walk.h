/* SPDX-License-Identifier: Apache-2.0 */
/* Points of some dims of a space by one number: those of one tag, in row-major order. */
#ifndef LOWER_WALK_H
#define LOWER_WALK_H

#include "lower/expr.h"

struct walk {
    uint32_t n;
    uint32_t dim[SPACE_DIMS];
    struct sched_divisor divisor[SPACE_DIMS];
    uint32_t extent[SPACE_DIMS]; /* parameters */
    int64_t count;               /* points */
};

/* The dims of the tag; no parameters yet. */
void walk_init(struct walk *walk, const struct expr *e, uint32_t tag);
/* In each phase: the parameters. */
void walk_phase(struct walk *walk, struct expr *e);
/* Sets the dims to those of the point. */
void walk_set(const struct walk *walk, struct expr *e, uint32_t number);

#endif
