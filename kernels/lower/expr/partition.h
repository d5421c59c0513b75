/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions the points of some dims among groups of lanes, one point a lane.  A long innermost dim
 * is cut into blocks by itself: the lanes of a group differ in its coordinate alone and have the
 * other dims in common.  Otherwise the row-major numbers of all points are cut into blocks, and
 * each lane computes its coordinates by division. */
#ifndef LOWER_PARTITION_H
#define LOWER_PARTITION_H

#include "lower/expr/delinearize.h"

struct partition {
    struct delinearizer
        points;     /* of the dims that are found by a number: around the innermost, or all */
    uint32_t inner; /* the dim that is cut by itself, or BLOCK_NONE */
    int64_t n;      /* what is cut: points along that dim, or all */
    int64_t blocks; /* that this makes */
    int64_t groups;
    uint32_t lanes;
    bool shared; /* see sched.h: whether there are several blocks does not show */
    /* parameters of the phase */
    uint32_t end;      /* n; KIR_NONE: blocks fill up */
    uint32_t n_blocks; /* with by_blocks: where a dim is cut into several */
    struct sched_divisor by_blocks;
};

/* The block of a group, as values; KIR_NONE where it says so. */
struct span {
    uint32_t line;    /* number of the point of `points`; KIR_NONE: no dim is cut by itself */
    uint32_t first;   /* of the block; KIR_NONE: there is one, from 0 on */
    uint32_t element; /* the lane's: its number, or its coordinate along the dim */
};

/* Cuts the points of several dims into groups of `most` lanes or fewer. */
void partition_init(struct partition *partition, const struct expr *e,
                    const struct delinearizer *points, uint32_t most);
/* In each phase: the parameters. */
void partition_phase(struct partition *partition, struct expr *e);
struct span partition_span(const struct partition *partition, const struct expr *e, uint32_t group,
                           uint32_t lane);
/* B: the lane has a point; KIR_NONE: each has. */
uint32_t partition_mask(const struct partition *partition, const struct expr *e,
                        const struct span *span);
/* The row-major number of the lane's point among all. */
uint32_t partition_number(const struct partition *partition, const struct expr *e,
                          const struct span *span);
/* Sets the dims: those that all lanes of the group have in common, and the others. */
void partition_set_common(const struct partition *partition, struct expr *e,
                          const struct span *span);
void partition_set_own(const struct partition *partition, struct expr *e, const struct span *span);

#endif
