/* SPDX-License-Identifier: Apache-2.0 */
/* From a block and what is known of one launch to a kernel: a module, and the numbers that this
 * launch gives it.
 *
 * Lowering runs with the concrete numbers at hand, and decides with them (which dims are one,
 * which strides are 0 or 1, whether a row fits a group), but what it decides is all that the module
 * shows of them: every number that is left becomes a parameter word.  So equal modules serve
 * launches of many sizes, and the digest of a module is the name of its compiled form.
 * Pure: equal arguments give equal modules and numbers. */
#ifndef LOWER_SCHED_H
#define LOWER_SCHED_H

#include "ir/kir.h"
#include "ir/target.h"
#include "lower/block/block.h"
#include "lower/match.h"

enum { SCHED_PHASES = KIR_PHASES, SCHED_OUTPUTS = 16 };

enum sched_from { SCHED_SCALAR, SCHED_BOUND };

/* A parameter word that the launch fills: one of its scalars, as the type, or one of its bounds,
 * brought between `least` and `most`, plus `more`. */
struct sched_late {
    uint32_t word;
    uint32_t number; /* in frit_launch.scalars or bounds */
    uint32_t type;   /* enum kir_type */
    uint32_t from;   /* enum sched_from */
    int64_t least, most, more;
};

/* The numbers.  In `arena`. */
struct sched_numbers {
    struct arena arena;
    uint32_t grid[SCHED_PHASES][3]; /* groups */
    uint32_t n_words, words_room;
    uint64_t *words; /* one per parameter of the module, in order; those of `late` are 0 */
    uint32_t n_late, late_room;
    struct sched_late *late;
    uint64_t workspace_bytes;      /* the last argument of the module, where not 0 */
    uint64_t bytes, flops;         /* predicted */
    uint64_t alias[SCHED_OUTPUTS]; /* of each output: bit i, it may have input i's memory */
};

/* What lowering works on. */
struct sched {
    const struct block *block;
    const frit_signature *sig;
    const struct kir_target *target;
    const int64_t *extents; /* of the block, see block_extents */
    struct kir_module *module;
    struct sched_numbers *numbers;
    /* The module is to serve other spaces in the same launch: what need not decide anything in it
     * is a parameter. */
    bool shared;
};

/* FRIT_UNSUPPORTED where the device leaves out some of so many rounds, all loops of a lane in a
 * phase together. */
frit_status sched_rounds(const struct sched *s, int64_t rounds, frit_err *err);

enum {
    SCHED_LEAST = 16, /* lanes of a group */
    SCHED_MANY = 64   /* rows: worth a lane each */
};

/* Lanes of a group for `n` things: of `most`, halved, the fewest that hold them all. */
uint32_t sched_lanes(uint32_t most, int64_t n);
/* Fewer of them where there would be too few groups to keep the device busy. */
uint32_t sched_spread(const struct kir_target *target, uint32_t lanes, int64_t n);

/* Bytes that the launch moves, each element of an argument once. */
uint64_t sched_bytes(const struct sched *s);

/* A parameter with its word: an index, a float. */
uint32_t sched_index(struct sched *s, int64_t value); /* I64 in a wide module, else I32 */
uint32_t sched_word(struct sched *s, enum kir_type type, uint64_t bits);
/* A scalar of the launch, as the type. */
uint32_t sched_scalar(struct sched *s, uint32_t scalar, enum kir_type type);
/* A bound of the launch, as an index: brought between the two, plus `more`. */
uint32_t sched_bound(struct sched *s, uint32_t bound, int64_t least, int64_t most, int64_t more);
/* The value of a bound, where its class is that of one number. */
bool sched_bound_known(const struct sched *s, uint32_t bound, int64_t *value);

/* Division of indices by a number of the launch, as parameters.  `x` >= 0. */
struct sched_divisor {
    uint32_t by, factor, shift; /* parameters; wide: `by` alone, else the others */
};
struct sched_divisor sched_divisor(struct sched *s, int64_t by);
uint32_t sched_divide(struct sched *s, const struct sched_divisor *divisor, uint32_t x);
/* As an index: I32 made as wide as they are. */
uint32_t sched_wide(struct sched *s, uint32_t value);

/* One way to run blocks; see fuse/fuser.h for how they become fusers. */
struct schedule {
    const char *name;                  /* a word */
    uint32_t quality;                  /* see frit_fuser_state */
    uint32_t state_bytes, value_bytes; /* that `match` keeps in the matcher */
    /* Whether it takes the block's next op, number n_ops of the matcher. */
    bool (*match)(struct matcher *matcher, const struct block *block);
    /* Whether a program can cover the ops matched so far, of which at least one value and no more
     * than a program may give is an output, and whose extents inputs and outputs have. */
    bool (*fits)(const struct matcher *matcher, const struct block *block);
    /* The module and numbers of a closed block that it accepts whole.  FRIT_UNSUPPORTED: not with
     * these numbers; the ops run by themselves. */
    frit_status (*build)(struct sched *s, frit_err *err);
    /* Not NULL: takes blocks of several components (components.h), each of which this one builds,
     * in one phase and without a workspace; `build` is NULL then. */
    const struct schedule *of_components;
};

extern const struct schedule sched_row;     /* folds over one set of dims, with all around: row.c */
extern const struct schedule sched_map;     /* elementwise over one space: map.c */
extern const struct schedule sched_foreach; /* maps over many spaces in one launch: foreach.c */
extern const struct schedule sched_scan; /* one running fold, with elementwise ops around: scan.c */
extern const struct schedule sched_pool; /* windows, with elementwise ops around: pool.c */
extern const struct schedule sched_scatter;  /* writes where an index says: scatter.c */
extern const struct schedule sched_contract; /* sums of products, with elementwise ops around */
extern const struct schedule sched_fft;      /* rfft, irfft, with elementwise ops behind: fft.c */
extern const struct schedule sched_sort;     /* sort, with elementwise ops behind: sort.c */
extern const struct schedule sched_quantize; /* to packed values, with elementwise ops before */
extern const struct schedule sched_ctc; /* ctc_loss, its gradient, elementwise ops around: ctc.c */

/* In the order in which they are tried. */
extern const struct schedule *const schedules[];
extern const uint32_t n_schedules;

#endif
