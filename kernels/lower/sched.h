/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers a block, with the sizes of one launch, to a kernel: a module, and the launch's values of
 * its parameters.
 *
 * Lowering sees concrete sizes and strides and decides with them (which dims are 1, which strides
 * are 0 or 1, whether a row fits a group).  The module contains only these decisions; every other
 * number becomes a parameter.  So launches of many sizes share a module, and the digest of a module
 * names its compiled code. Pure: equal arguments give equal modules and numbers. */
#ifndef LOWER_SCHED_H
#define LOWER_SCHED_H

#include "ir/kir.h"
#include "ir/target.h"
#include "lower/block/block.h"
#include "lower/match.h"

enum { SCHED_PHASES = KIR_PHASES, SCHED_OUTPUTS = 16 };

enum sched_from { SCHED_SCALAR, SCHED_BOUND };

/* A parameter whose value is only known at launch: a scalar, converted to the type; or a bound,
 * clamped to min .. max, plus `offset`. */
struct sched_late {
    uint32_t word;
    uint32_t number; /* index in frit_launch.scalars or .bounds */
    uint32_t type;   /* enum kir_type */
    uint32_t from;   /* enum sched_from */
    int64_t min, max, offset;
};

/* Memory that holds what is made from one operand alone, see frit_derived_spec. */
struct sched_derived {
    uint64_t bytes; /* 0: there is none */
    uint64_t tag;
    uint32_t input; /* of the block */
    uint32_t phase; /* that fills it and does nothing else */
};

/* What the launch needs besides the module.  Allocated in `arena`. */
struct sched_numbers {
    struct arena arena;
    uint32_t grid[SCHED_PHASES][3]; /* groups */
    uint32_t n_words, words_capacity;
    uint64_t *words; /* values of the module's parameters, in order; 0 for those in `late` */
    uint32_t n_late, late_capacity;
    struct sched_late *late;
    struct sched_derived derived; /* the module's argument after the outputs */
    uint64_t workspace_bytes; /* the workspace is the module's last argument; 0: there is none */
    uint64_t bytes, flops;    /* estimates */
    uint32_t brief_phases;    /* bits of phases that do a small part of that */
    uint64_t alias[SCHED_OUTPUTS]; /* per output: bit i is set if it may overwrite input i */
};

/* The state of one lowering. */
struct sched {
    const struct block *block;
    const frit_signature *sig;
    const struct kir_target *target;
    const int64_t *extents; /* see block_extents */
    struct kir_module *module;
    struct sched_numbers *numbers;
    /* The module serves several spaces of one launch: sizes become parameters wherever possible. */
    bool shared;
};

/* FRIT_UNSUPPORTED if a lane runs more loop rounds in one phase, over all loops, than the device
 * completes. */
frit_status sched_check_rounds(const struct sched *s, int64_t rounds, frit_err *err);

enum { SCHED_MIN_LANES = 16 /* the smallest group */ };

/* The thresholds of the target, with defaults in place of 0. */
struct kir_tuning sched_tuning(const struct sched *s);

/* The smallest group, `most` lanes halved repeatedly, that holds `n` items; at least
 * SCHED_MIN_LANES. */
uint32_t sched_lanes(uint32_t most, int64_t n);
/* Reduces the lanes of a group while `n` items make too few groups to keep the device busy. */
uint32_t sched_spread_lanes(const struct sched *s, uint32_t lanes, int64_t n);

/* Bytes that the launch moves, counting each element of an argument once. */
uint64_t sched_bytes(const struct sched *s);

/* Add a parameter with this value. */
uint32_t sched_add_index(struct sched *s, int64_t value); /* I64 in a wide module, else I32 */
uint32_t sched_add_param(struct sched *s, enum kir_type type, uint64_t bits);
/* Adds a parameter for a scalar of the launch, converted to the type. */
uint32_t sched_add_scalar(struct sched *s, uint32_t scalar, enum kir_type type);
/* Adds an index parameter for a bound of the launch, clamped to min .. max, plus `offset`. */
uint32_t sched_add_bound(struct sched *s, uint32_t bound, int64_t min, int64_t max, int64_t offset);
/* Returns true, and the bound's value, if its class in the signature is a single number. */
bool sched_bound_known(const struct sched *s, uint32_t bound, int64_t *value);

/* Division of an index `x` >= 0 by a number that is a parameter. */
struct sched_divisor {
    uint32_t by, factor,
        shift; /* parameters; a wide module has only `by`, others only `factor` and `shift` */
};
struct sched_divisor sched_add_divisor(struct sched *s, int64_t by);
uint32_t sched_divide(struct sched *s, const struct sched_divisor *divisor, uint32_t x);
/* Converts an I32 value to the index type. */
uint32_t sched_wide(struct sched *s, uint32_t value);

/* A way to lower blocks; fuse/fuser.c makes a fuser of each. */
struct schedule {
    const char *name; /* unique */
    uint32_t quality; /* see frit_fuser_state */
    uint32_t state_bytes,
        value_bytes; /* sizes of matcher.state and of an element of matcher.values */
    /* Whether the schedule accepts the block's next op, number matcher->n_ops. */
    bool (*match)(struct matcher *matcher, const struct block *block);
    /* Whether a program can cover the ops matched so far.  Called only if at least one value, and
     * no more than a program may have, is an output, and inputs and outputs have all extents. */
    bool (*fits)(const struct matcher *matcher, const struct block *block);
    /* Builds the module and numbers of a closed block that `match` and `fits` accepted.
     * FRIT_UNSUPPORTED: not with these sizes; the ops run one by one. */
    frit_status (*build)(struct sched *s, frit_err *err);
    /* If not NULL, the schedule accepts blocks of several components (components.h), which this
     * schedule builds one by one, in one phase and without a workspace; `build` is NULL then. */
    const struct schedule *of_components;
};

extern const struct schedule sched_row; /* reductions over one set of dims, softmax, norms: row.c */
extern const struct schedule sched_map; /* elementwise over one space: map.c */
extern const struct schedule sched_foreach;  /* maps over many spaces in one launch: foreach.c */
extern const struct schedule sched_scan;     /* prefix sums and the like: scan.c */
extern const struct schedule sched_pool;     /* pooling windows: pool.c */
extern const struct schedule sched_scatter;  /* writes at positions given by indices: scatter.c */
extern const struct schedule sched_contract; /* matrix products, convolutions: contract.c */
/* The same without what could be computed before and after it, for devices with a library for
 * products: other schedules do that part better than one that follows a library's product. */
extern const struct schedule sched_contract_alone;
extern const struct schedule sched_attention; /* softmax of products times values: attention.c */
extern const struct schedule sched_attention_backward; /* its gradients: attention_backward.c */
extern const struct schedule sched_fft;                /* rfft, irfft: fft.c */
extern const struct schedule sched_sort;               /* sort.c */
extern const struct schedule sched_quantize;           /* to packed types: quantize.c */
extern const struct schedule sched_ctc;                /* ctc_loss and its gradient: ctc.c */

/* In the order in which they are tried. */
extern const struct schedule *const schedules[];
extern const uint32_t n_schedules;

#endif
