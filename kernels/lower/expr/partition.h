/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions the points of some dims among groups of lanes, one point per lane.  If the innermost
 * dim is long, it is divided into blocks: the lanes of a group have that dim's coordinates in a row
 * and share those of all other dims, but a group may get several blocks that are too short for it.
 * Otherwise the row-major numbers of all points are divided into blocks, and each lane
 * computes its coordinates by division. */
#ifndef LOWER_PARTITION_H
#define LOWER_PARTITION_H

#include "lower/expr/delinearize.h"

struct partition {
    struct delinearizer points; /* the dims that are delinearised: all but the innermost, or all */
    uint32_t inner;             /* the dim that is divided into blocks by itself, or BLOCK_NONE */
    int64_t n;                  /* points to divide: along that dim, or all */
    int64_t blocks;             /* of lanes / spans points: along that dim, or all */
    int64_t groups;
    uint32_t lanes;
    uint32_t spans;  /* blocks that a group has, a power of two: lanes / spans lanes on each */
    int64_t n_spans; /* of all groups */
    bool shared;     /* see sched.h: the module does not depend on the number of blocks being 1 */
    /* parameters of the phase */
    uint32_t end;      /* n; KIR_NONE: all blocks are full */
    uint32_t span_end; /* n_spans; KIR_NONE: all groups have as many spans */
    uint32_t n_blocks; /* with by_blocks: if `inner` has several blocks */
    struct sched_divisor by_blocks;
};

/* A block, as values of the module: that of a group, or that of a lane if a group has several. */
struct span {
    uint32_t number;  /* of the block among all */
    uint32_t line;    /* number of the point of `points`; KIR_NONE: `inner` is BLOCK_NONE */
    uint32_t first;   /* first point of the block; KIR_NONE: it is 0 */
    uint32_t element; /* the lane's point: its number, or its coordinate along `inner` */
};

/* Divides the points into groups of `most` lanes or fewer. */
void partition_init(struct partition *partition, const struct expr *e,
                    const struct delinearizer *points, uint32_t most);
/* Puts several blocks along the innermost dim into a group if one would leave it small, as long as
 * there are groups for the whole device.  Then no dim is uniform in a group. */
void partition_gather(struct partition *partition, const struct expr *e);
/* Divides the points into groups of `most`, a power of two, or fewer: along the innermost dim if
 * that has `line` points at least. */
void partition_init_lines(struct partition *partition, const struct expr *e,
                          const struct delinearizer *points, uint32_t most, int64_t line);
/* Emits the parameters; once per phase. */
void partition_phase(struct partition *partition, struct expr *e);
struct span partition_span(const struct partition *partition, const struct expr *e, uint32_t group,
                           uint32_t lane);
/* KIR_B: the lane has a point; KIR_NONE: every lane has one. */
uint32_t partition_mask(const struct partition *partition, const struct expr *e,
                        const struct span *span);
/* Whether every lane of every group has a point. */
bool partition_is_full(const struct partition *partition);
/* The row-major number of the lane's point among all points. */
uint32_t partition_number(const struct partition *partition, const struct expr *e,
                          const struct span *span);
/* Set the dims that are uniform in the group, and those that vary between its lanes. */
void partition_set_uniform(const struct partition *partition, struct expr *e,
                           const struct span *span);
void partition_set_varying(const struct partition *partition, struct expr *e,
                           const struct span *span);

#endif
