/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the files of the kit share. */
#ifndef KIT_INSIDE_H
#define KIT_INSIDE_H

#include <pthread.h>

#include "kit/kit.h"
#include "util/specs.h"

/* Code of a program, newest first; only grows.  Threads: any. */
struct codes {
    pthread_mutex_t lock; /* of the list */
    struct code *first;
};

void codes_init(struct codes *codes);
void codes_fini(const struct kit_program *program, struct codes *codes);
/* The code of the variant, NULL if it is not compiled. */
void *codes_find(struct codes *codes, const frit_variant *variant);
/* Compiles what is not there. */
frit_status codes_compile(const struct kit_program *program, struct codes *codes,
                          const frit_variant *variant, const frit_cancel *cancel, frit_err *err);
/* Of the code of the variant; 0 where there is none yet. */
uint32_t codes_generation(const struct kit_program *program, struct codes *codes,
                          const frit_variant *variant);

/* A program, what is known of it, and its code.  Constant once made but for `codes` and `specs`. */
struct program {
    struct kit_program told; /* the first */
    const char *name;
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    uint32_t flags;     /* KIT_INPLACE, KIT_DENSE, KIT_COMPILED */
    uint32_t n_scalars; /* of a launch */
    uint32_t n_bounds;
    frit_candidate candidate;
    struct codes codes;
    struct specs specs;
    struct kit_block block;
};

/* The program of a row or a fuser on the device; copies the block, whose arguments are numbered.
 * FRIT_INTERNAL with a text where nothing runs it. */
frit_status program_make(const struct kit_device *device, const struct kit_row *row,
                         const struct kit_fuser *fuser, const struct kit_block *block,
                         frit_program *out, frit_err *err);
/* The one that a LAUNCH names, NULL if it is none of the kit. */
struct program *program_of(const frit_launch *launch);

/* Slots of frit.backend/1. */
frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
/* A slot of frit.program/1. */
frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err);

/* What the queue does with a launch. */
extern const struct serial_driver launch_slots;

extern const frit_fuser_table fuser_slots;

#endif
