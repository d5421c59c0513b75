/* SPDX-License-Identifier: Apache-2.0 */
/* Delinearises row-major numbers to the coordinates of the dims of one tag. */
#ifndef LOWER_DELINEARIZE_H
#define LOWER_DELINEARIZE_H

#include "lower/expr/expr.h"

struct delinearizer {
    uint32_t n;
    uint32_t dim[SPACE_DIMS];
    struct sched_divisor divisor[SPACE_DIMS];
    uint32_t extent[SPACE_DIMS]; /* parameters */
    int64_t count;               /* number of points */
};

/* Collects the dims of the tag; emits nothing. */
void delinearize_init(struct delinearizer *points, const struct expr *e, uint32_t tag);
/* Emits the parameters; once per phase. */
void delinearize_phase(struct delinearizer *points, struct expr *e);
/* Sets the dims to the coordinates of point number `number`. */
void delinearize_set(const struct delinearizer *points, struct expr *e, uint32_t number);

#endif
