/* SPDX-License-Identifier: Apache-2.0 */
/* What passes and schedules may know of a device: facts, never which device it is.  Filled by the
 * driver; a part of what compiled code depends on. */
#ifndef KIR_TARGET_H
#define KIR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/tuning.h"

enum { KIR_SHAPES = 16 };

/* Fragments that a device multiplies: sums of m x n, left of m x k, right of k x n. */
struct kir_fragment_shape {
    uint32_t m, n, k;
    uint32_t dtype, sum; /* of left and right; of sums */
    uint32_t team;       /* threads; 0: that of the target */
    bool from_blocks; /* left and right are loaded from tiles, in blocks alone, and multiplied while
                         lanes go on, to a mwait */
};

struct kir_target {
    uint32_t lanes;         /* of a group for streaming work, a power of two */
    uint32_t lanes_per_row; /* of a group that works on one row together */
    uint32_t max_lanes;     /* of a group */
    uint32_t near_lanes;    /* neighbours that exchange values at little cost; 0: all do */
    uint32_t units;         /* groups that run at the same time, about */
    uint32_t group_bytes;   /* of group tiles */
    uint32_t lane_bytes;    /* that group_bytes has less for each lane of a group above `lanes` */
    uint32_t registers;     /* that hold values of several lanes; 0: each lane has its own */
    uint32_t bindings;      /* arguments of a kernel at most */
    uint32_t launch_args;   /* of a launch over several spaces at most, all together; 0: no limit */
    uint32_t
        launch_words;     /* arguments and parameters of one kernel's spaces at most; 0: no limit */
    uint32_t max_rounds;  /* of all loops of a lane in a phase: more are left out; 0: no limit */
    uint32_t align_bytes; /* aligned to this many, neighbours are one access if the code shows it */
    bool rereads_are_cached; /* reading a row again right away costs little */
    bool
        lanes_interleaved; /* lanes run a few at a time up to the next barrier, then the next few */
    bool keeps_derived;    /* what is made from one operand alone is kept while that is the same, so
                              that it is made once */
    bool winograd;         /* convolutions may be computed by Winograd's transforms, which round */
    bool stages_tiles;     /* what many lanes read again and again belongs into a group's tile */
    bool fma;              /* fused in one rounding */
    bool scale;            /* by a power of 2, as one instruction */
    bool exp2;             /* of F32, as one instruction */
    bool fmax;             /* of F32, as one instruction, as is fmin */
    bool dot2;             /* of two BF16 */
    bool f64, i64;         /* arithmetic; without f64 no module may have F64 values */
    bool exact_div;        /* division and square root of floats are correctly rounded */
    bool denormals;        /* are kept */
    bool atomic_f32;
    uint32_t team; /* threads that hold a fragment together: lanes of a team are these times lanes
                      of a thread */
    bool reuses_tiles;       /* tiles that are never used at the same time share memory */
    bool folds_fragments;    /* mlargest, mtotal, mnarrow, peer */
    bool copies;             /* memory to tiles while lanes go on: tcopy */
    uint32_t fragment_bytes; /* of group tiles where fragments are multiplied: few groups at a time
                                are enough there; 0: group_bytes */
    uint32_t fragment_lanes; /* of a group there; 0: max_lanes */
    uint32_t n_shapes;       /* 0: the device multiplies no fragments */
    struct kir_fragment_shape shapes[KIR_SHAPES];
    uint32_t store_bytes; /* the least that is stored without touching its neighbours */
    struct kir_tuning tuning;
};

#endif
