/* SPDX-License-Identifier: Apache-2.0 */
/* How points of some dims are shared out to groups of lanes, a point each.  A long innermost dim is
 * cut into blocks by itself: lanes differ in its coordinate alone, and the dims around it are the
 * group's.  Else the numbers of all points are cut, and each lane finds its dims by division. */
#ifndef LOWER_SHARE_H
#define LOWER_SHARE_H

#include "lower/walk.h"

struct share {
    struct walk walk; /* of the dims that are found by a number: around the innermost, or all */
    uint32_t inner;   /* the dim that is cut by itself, or BLOCK_NONE */
    int64_t n;        /* what is cut: points along that dim, or all */
    int64_t blocks;   /* that this makes */
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
    uint32_t line;    /* number of the point of `walk`; KIR_NONE: no dim is cut by itself */
    uint32_t first;   /* of the block; KIR_NONE: there is one, from 0 on */
    uint32_t element; /* the lane's: its number, or its coordinate along the dim */
};

/* The points of a walk over several dims, into groups of `most` lanes or fewer. */
void share_init(struct share *share, const struct expr *e, const struct walk *walk, uint32_t most);
/* In each phase: the parameters. */
void share_phase(struct share *share, struct expr *e);
struct span share_span(const struct share *share, const struct expr *e, uint32_t group,
                       uint32_t lane);
/* B: the lane has a point; KIR_NONE: each has. */
uint32_t share_mask(const struct share *share, const struct expr *e, const struct span *span);
/* The row-major number of the lane's point among all. */
uint32_t share_number(const struct share *share, const struct expr *e, const struct span *span);
/* Sets the dims: those that all lanes of the group have in common, and the others. */
void share_set_common(const struct share *share, struct expr *e, const struct span *span);
void share_set_own(const struct share *share, struct expr *e, const struct span *span);

#endif
