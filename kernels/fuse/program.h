/* SPDX-License-Identifier: Apache-2.0 */
/* Programs over closed blocks: what the files of this room share.
 *
 * A program keeps what it answered to a signature until every launch spec of it is released.
 * Constant but for what the lock guards. */
#ifndef FUSE_PROGRAM_H
#define FUSE_PROGRAM_H

#include <pthread.h>

#include "base/map.h"
#include "base/str.h"
#include "fuse/codes.h"
#include "lower/sched.h"

/* Of saved programs and of what schedules make of a block: bumped when old bytes, or old times of
 * candidates, say nothing about new ones. */
enum { PROGRAM_VERSION = 2 };

/* One kernel of a launch, over one space, or over several where its module says `spaces`. */
struct body {
    struct code *code; /* a reference */
    uint32_t n_phases;
    uint32_t grid[SCHED_PHASES][3], lanes[SCHED_PHASES];
    uint32_t n_spaces;
    uint32_t n_args, n_words; /* of each space */
    uint32_t first_word;      /* of the first space among the launch's words */
    uint32_t *args;           /* space after space: numbers of the launch's arguments */
    uint32_t *first;          /* n_spaces + 1: groups before each space; NULL: one space */
};

/* What one launch is, but for its late words.  Constant, but for what the program's lock guards;
 * its arrays lie in the arena. */
struct prepared {
    struct arena arena;
    uint8_t digest[KIR_DIGEST]; /* of the digests of its codes; of one code its own */
    uint32_t n_bodies;
    struct body *bodies;
    uint64_t workspace_bytes, bytes, flops;
    uint32_t n_phases; /* of all bodies, one after the other */
    frit_phase *phases;
    frit_output_spec *outputs; /* of the launch */
    uint32_t n_late, n_words;
    struct sched_late *late; /* words are those of the whole launch */
    uint64_t *words;
    void *key; /* candidate and signature */
    size_t key_bytes;
    uint32_t specs;                /* that point here; guarded, with the next */
    struct prepared *next, **link; /* of this variant */
};

/* Its answers of one digest. */
struct program_variant {
    struct prepared *first;
};

struct program {
    const struct kernels_device *device;
    const char *name;
    struct block block;
    uint32_t n_in, n_out; /* arguments of a launch */
    /* Of each input and output of the block, in this order: its number among them; then
     * KERNELS_WORKSPACE.  Like all arrays here in the block's arena. */
    uint32_t *places;
    uint32_t n_candidates;
    frit_candidate *candidates;
    const struct schedule **schedules; /* of each candidate */
    pthread_mutex_t lock;              /* of the rest */
    struct map prepared;               /* candidate and signature -> struct prepared */
    struct map variants;               /* digest -> struct program_variant */
};

/* A program for a closed block, which it takes, also on failure: by `first`, and by each other
 * schedule that accepts it.  `first` NULL: by those alone; FRIT_UNSUPPORTED where there is none.
 * Its arguments are those of the block. */
frit_status program_create(const struct kernels_device *device, const struct schedule *first,
                           struct block *block, struct program **out, frit_err *err);
void program_destroy(struct program *program);

/* A fuser's program for the first `n_ops` of a block, which it takes, also on failure. */
frit_status program_of_block(const struct kernels_device *device, const struct schedule *schedule,
                             struct block *block, uint32_t n_ops, frit_program *out, frit_err *err);

/* Lowers a block for a signature, whose arguments are in the order of the block: every kernel, with
 * a reference to its code. */
frit_status prepared_create(const struct program *program, uint32_t candidate,
                            const frit_signature *sig, struct prepared **out, frit_err *err);
void prepared_destroy(void *prepared); /* NULL does nothing */

/* Whether the device computes with every type of an op. */
bool op_types_fit(const struct kir_target *target, const frit_op_desc *op);

/* Slots of the table. */
void program_spec_release(void *self, const frit_launch_spec *spec);
frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err);

extern const frit_program_table program_of_fuser, program_of_op;

#endif
