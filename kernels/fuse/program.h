/* SPDX-License-Identifier: Apache-2.0 */
/* Programs over closed blocks.
 *
 * A program caches the result of prepare until all its launch specs are released.  Everything is
 * constant except the fields that the lock guards. */
#ifndef FUSE_PROGRAM_H
#define FUSE_PROGRAM_H

#include <pthread.h>

#include "base/map.h"
#include "ir/digest.h"
#include "lower/sched.h"

/* Version of saved programs and of the code that schedules make.  Increment it when saved bytes or
 * measured times of candidates become invalid. */
enum { PROGRAM_VERSION = 6 };

/* One kernel of a launch, over one space or, if its module has `spaces`, several; or a product of
 * the vendor's library. */
struct body {
    struct code *code;                      /* owned reference; NULL: a product */
    struct kernels_product_launch *product; /* allocated in the arena; its plan is owned */
    uint32_t n_phases;
    uint32_t grid[SCHED_PHASES][3], lanes[SCHED_PHASES];
    uint32_t n_spaces;
    uint32_t n_args, n_words; /* per space */
    uint32_t first_word;      /* index of its first word among the launch's */
    uint32_t *args;           /* argument numbers of the launch, space after space */
    uint32_t *first;       /* n_spaces + 1: number of groups before each space; NULL: one space */
    uint32_t fill_phases;  /* bits of phases that fill derived memory */
    uint32_t brief_phases; /* bits of phases that do a small part of the work */
};

/* The result of prepare: a launch without the values in `late`.  Constant except the fields that
 * the program's lock guards; arrays are allocated in the arena. */
struct prepared {
    struct arena arena;
    const struct kernels_device *device;
    uint8_t
        digest[KIR_DIGEST]; /* of its code's digest, or of all digests if it has several bodies */
    uint32_t n_bodies;
    struct body *bodies;
    uint64_t workspace_bytes, bytes, flops;
    uint32_t n_phases; /* of all bodies in order */
    frit_phase *phases;
    frit_output_spec *outputs; /* per output of the launch */
    frit_derived_spec derived; /* bytes 0: there is none */
    uint32_t n_late, n_words;
    struct sched_late *late; /* `word` is an index into the whole launch's words */
    uint64_t *words;
    void *key; /* the bytes of candidate and signature */
    size_t key_bytes;
    uint32_t specs; /* number of launch specs; guarded by the lock, like next and link */
    struct prepared *next, **link; /* list of results of the same variant */
};

/* The cached results with one digest. */
struct program_variant {
    struct prepared *first;
};

struct program {
    const struct kernels_device *device;
    const char *name;
    struct block block;
    uint32_t n_in, n_out; /* arguments of a launch */
    /* Per input, then output, of the block: its argument number.  All arrays are allocated in the
     * block's arena. */
    uint32_t *arg_numbers;
    uint32_t n_candidates;
    frit_candidate *candidates;
    const struct schedule **schedules;   /* per candidate; NULL: the vendor's library */
    const struct variation **variations; /* per candidate; NULL: the schedule as it is */
    uint32_t product;          /* op that the library computes; BLOCK_NONE: it is not a candidate */
    pthread_mutex_t lock;      /* guards the fields below */
    struct map prepared;       /* candidate and signature -> struct prepared */
    struct map variants;       /* digest -> struct program_variant */
    struct prepared *released; /* the last one that no launch spec uses any more; NULL: none yet */
};

/* Creates a program for a closed block, which it takes, also on failure.  The candidates are
 * `first`, if not NULL, every other schedule that accepts the block, the vendor's library, and the
 * variations of these schedules; FRIT_UNSUPPORTED if no schedule accepts it.  The program's
 * arguments are those of the block. */
frit_status program_create(const struct kernels_device *device, const struct schedule *first,
                           struct block *block, struct program **out, frit_err *err);
void program_destroy(struct program *program);

/* Creates a fuser's program for the first `n_ops` of a block, which it takes, also on failure. */
frit_status program_of_block(const struct kernels_device *device, const struct schedule *schedule,
                             struct block *block, uint32_t n_ops, frit_program *out, frit_err *err);

extern const frit_program_table program_of_fuser, program_of_op;

#endif
