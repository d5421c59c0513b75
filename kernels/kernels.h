/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver with a code generator takes from here: fusers and programs for single ops, which it
 * hands to the host as its own, and what a launch of one of them is.  A driver brings facts of the
 * target and a compiler for modules; nothing here calls a device.  Threads: any, but for the
 * fusers' and programs' own rules. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <frit/backend.h>
#include <frit/fuser.h>

#include "ir/digest.h"
#include "ir/kir.h"
#include "ir/target.h"

#define KERNELS_WORKSPACE UINT32_MAX

/* One device of a driver; lives, without moving, as long as what was made for it.  Filled by the
 * driver but for `codes`. */
struct kernels_device {
    struct kir_target target;
    void *self;
    /* Any thread, may block: code for a module, owned by the caller until `release`.  `digest`
     * names the module among all of this library's version: what a cache on disk is keyed by. Where
     * it succeeds it may have taken what the module holds and left it empty. */
    frit_status (*compile)(void *self, struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **code, frit_err *err);
    void (*release)(void *self, void *code);
    /* NULL: never.  How often `code` got better since it was made (a second tier). */
    uint32_t (*generation)(void *self, void *code);
    const uint64_t *serial; /* of all programs, as frit_program_info says; NULL likewise */
    struct codes *codes;    /* compiled code by digest, shared by all programs; see kernels_open */
};

/* First of all, and last of all: when every prototype, clone and program is destroyed. */
frit_status kernels_open(struct kernels_device *device, frit_err *err);
void kernels_close(struct kernels_device *device);

/* A slot of frit_fuser_table each; `prototypes` wants the device. */
frit_status kernels_prototypes(const struct kernels_device *device, frit_fuser *out,
                               uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err);
frit_status kernels_clone(const void *fuser, void **out, frit_err *err);
void kernels_destroy(void *fuser);
void kernels_reset(void *fuser);
void kernels_push(void *fuser, const frit_op_desc *ops, uint32_t count, uint32_t stride);
void kernels_state(const void *fuser, frit_fuser_state *out);
frit_status kernels_finish(void *fuser, frit_program *out, frit_err *err);
frit_status kernels_from_state(const struct kernels_device *device, const frit_op_desc *ops,
                               uint32_t n_ops, uint32_t op_stride, const void *bytes,
                               uint64_t n_bytes, frit_program *out, frit_err *err);

/* A program for one op; FRIT_UNSUPPORTED: no schedule takes it. */
frit_status kernels_op(const struct kernels_device *device, const frit_op_desc *op,
                       frit_program *out, frit_err *err);
/* Slot `supports` of frit_backend. */
frit_status kernels_supports(const struct kernels_device *device, const frit_op_desc *ops,
                             uint32_t count, uint32_t stride, uint64_t *bits, frit_err *err);

/* A launch of such a program, for submit: one kernel after the other, each over one space or
 * several, in no order and with nothing between them.  Everything is borrowed: `words` are those
 * given or live as long as the rest, until the program is destroyed. */
struct kernels_launch {
    void *code;
    const char *name; /* of the kernel, for people */
    uint32_t n_phases;
    uint32_t n_spaces;
    uint32_t n_words, n_args;  /* of each space */
    const uint32_t *args;      /* of each of the code's, space after space: its number in
                                  frit_launch.args, or KERNELS_WORKSPACE */
    const uint64_t *words;     /* likewise space after space */
    const uint32_t (*grid)[3]; /* groups, of each phase; of several spaces of all of them */
    const uint32_t *first;     /* n_spaces + 1: groups before each space; NULL: the module's
                                  `spaces` is false */
    uint32_t total_words;      /* of the whole launch */
    uint32_t body, n_bodies;   /* this kernel, and how many there are: see kernels_next */
    uint64_t bytes, flops;     /* that the launch touches and computes, by its signature */
    const void *prepared;
};

/* Whether a program is one of ours. */
bool kernels_owns(const frit_program *program);
/* The first kernel of a launch.  `words` has room for `room` and is used until the last one;
 * FRIT_INTERNAL where that is too little (total_words says how much), or the launch was not
 * prepared and compiled. */
frit_status kernels_launch(const frit_launch *launch, uint64_t *words, uint32_t room,
                           struct kernels_launch *out, frit_err *err);
/* The next one, in its place; false: that was the last. */
bool kernels_next(struct kernels_launch *launch);

#endif
