/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates from a row-major number: the points of the dims of one tag. */
#ifndef LOWER_DELINEARIZE_H
#define LOWER_DELINEARIZE_H

#include "lower/expr/expr.h"

struct delinearizer {
    uint32_t n;
    uint32_t dim[SPACE_DIMS];
    struct sched_divisor divisor[SPACE_DIMS];
    uint32_t extent[SPACE_DIMS]; /* parameters */
    int64_t count;               /* points */
};

/* The dims of the tag; no parameters yet. */
void delinearize_init(struct delinearizer *points, const struct expr *e, uint32_t tag);
/* In each phase: the parameters. */
void delinearize_phase(struct delinearizer *points, struct expr *e);
/* Sets the dims to those of the point. */
void delinearize_set(const struct delinearizer *points, struct expr *e, uint32_t number);

#endif
