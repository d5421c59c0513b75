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

/* What one launch is, but for its late words, in one block of memory.  Constant but for `specs`. */
struct prepared {
    struct code *code;
    uint32_t specs; /* that point here; guarded by the program's lock */
    uint32_t n_phases, n_late, n_words;
    uint32_t grid[SCHED_PHASES][3];
    frit_phase phases[SCHED_PHASES];
    uint64_t workspace_bytes, bytes, flops;
    frit_output_spec *outputs; /* of a launch */
    struct sched_late *late;
    uint64_t *words;
    size_t key_bytes;
    unsigned char *key; /* candidate and signature */
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
    struct map codes;                  /* digest -> struct program_code */
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

/* Whether the device computes with every type of an op. */
bool op_types_fit(const struct kir_target *target, const frit_op_desc *op);

/* The code of some of a program's answers, with a reference each. */
struct program_code {
    struct code *code;
    uint32_t n_prepared;
};

/* Slots of the table. */
void program_spec_release(void *self, const frit_launch_spec *spec);
frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err);

extern const frit_program_table program_of_fuser, program_of_op;

#endif
