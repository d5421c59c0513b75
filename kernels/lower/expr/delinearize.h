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
    uint32_t chunk; /* a power of two that divides the innermost extent, and is less, whose
                       parameters are in chunks then; 1 where points have one dim at most */
};

/* Collects the dims of the tag; emits nothing. */
void delinearize_init(struct delinearizer *points, const struct expr *e, uint32_t tag);
/* Sets the chunk, of at most `most` points, a power of two; before delinearize_phase. */
void delinearize_chunk(struct delinearizer *points, const struct expr *e, uint32_t most);
/* Emits the parameters; once per phase. */
void delinearize_phase(struct delinearizer *points, struct expr *e);
/* Sets the dims to the coordinates of point number `number`. */
void delinearize_set(const struct delinearizer *points, struct expr *e, uint32_t number);
/* The same for number `chunk` * points->chunk + `low`.  Where lanes of a chunk share `chunk` and
 * `low` is their number, divisions are shared, and the innermost coordinate is linear. */
void delinearize_set_chunk(const struct delinearizer *points, struct expr *e, uint32_t chunk,
                           uint32_t low);

#endif
