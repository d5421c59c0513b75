/* SPDX-License-Identifier: Apache-2.0 */
/* The interface for drivers with a code generator: fusers and programs, which a driver passes to
 * the host as its own, and the kernels of a launch.  A driver supplies facts about the target and a
 * compiler for modules; nothing here calls a device API.  Any thread may call, except where the
 * rules of fusers and programs say otherwise. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <frit/backend.h>
#include <frit/fuser.h>

#include "ir/kir.h"
#include "ir/target.h"

/* Arguments that are no operands or outputs: the workspace, and the launch's derived memory. */
#define KERNELS_WORKSPACE UINT32_MAX
#define KERNELS_DERIVED   (UINT32_MAX - 1)

/* ---- products by a library of the vendor ---- */

enum { KERNELS_BATCHES = 2 };

/* Steps between elements of a matrix: to the next row, to the next column, to the next batch. */
struct kernels_matrix {
    int64_t row, column, batch[KERNELS_BATCHES];
};

/* For each batch: c[i][j] = sum over l < k of a[i][l] * b[l][j], plus bias[j].  A dim of one
 * element has any steps. */
struct kernels_product {
    uint32_t dtype;  /* of a and b: a float */
    uint32_t result; /* of c and bias: the same, or F32 where that has 16 bits */
    bool has_bias;   /* a vector of n elements without gaps */
    bool is_reduced; /* operands of F32 may be rounded to 10 bits of fraction (tf32) */
    uint32_t align;  /* bytes: every operand's first element, and of each batch, is so aligned */
    int64_t m, n, k, batch[KERNELS_BATCHES];
    struct kernels_matrix a, b, c;
};

/* The place of a product's operand. */
struct kernels_place {
    uint32_t arg;   /* index in frit_launch.args, or KERNELS_WORKSPACE */
    uint64_t first; /* bytes from the argument's element 0, or from the workspace's start */
};

/* A product of a launch, with how the library computes it. */
struct kernels_product_launch {
    struct kernels_product product;
    struct kernels_place a, b, c, bias, workspace;
    void *plan;
    uint64_t workspace_bytes; /* that the plan needs */
    uint64_t algorithm;       /* identifies the algorithm among those of the library's version */
};

/* ---- devices ---- */

/* One device of a driver.  It must not move, and must outlive everything made for it.  The driver
 * sets all fields but `codes`. */
struct kernels_device {
    struct kir_target target;
    void *self;
    /* Compiles a module; the caller owns `code` until `release`.  Called by any thread; may block.
     * `digest` identifies the module among all modules of this library's version and can be the key
     * of a disk cache.  On success it may have taken what the module holds and left it empty. */
    frit_status (*compile)(void *self, struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **code, frit_err *err);
    void (*release)(void *self, void *code);
    /* How often `code` was replaced by better code since it was compiled (tiered compilation).
     * NULL: never. */
    uint32_t (*generation)(void *self, void *code);
    const uint64_t *serial; /* counter of all programs, see frit_program_info.serial; may be NULL */
    /* A library for products, which becomes a candidate of programs that have one; NULL: none.  Its
     * text, with its version, is the candidate's identity. */
    const char *library;
    /* Likewise of the library where products may be reduced; NULL: it cannot reduce them. */
    const char *reduced_library;
    /* Chooses how the library computes out->product: sets `plan`, which the caller owns until
     * `product_release`, `workspace_bytes` and `algorithm`.  FRIT_UNSUPPORTED: a kernel is better
     * or the library cannot.  Any thread. */
    frit_status (*product_plan)(void *self, struct kernels_product_launch *out, frit_err *err);
    void (*product_release)(void *self, void *plan);
    struct codes *codes; /* compiled code by digest, shared by all programs; set by kernels_open */
};

/* kernels_open must precede every other call; kernels_close must follow the destruction of every
 * prototype, clone and program. */
frit_status kernels_open(struct kernels_device *device, frit_err *err);
void kernels_close(struct kernels_device *device);

/* Implementations of the slots of frit_fuser_table.  Where `device` may be NULL, it is NULL for a
 * device of another driver, for which there are no fusers and no saved programs. */
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

/* The initializers of a frit_fuser_table but `prototypes` and `from_state`. */
#define KERNELS_FUSER_SLOTS                                                                      \
    .struct_size = sizeof(frit_fuser_table), .clone = kernels_clone, .destroy = kernels_destroy, \
    .reset = kernels_reset, .push = kernels_push, .state = kernels_state, .finish = kernels_finish

/* Creates a program for one op; FRIT_UNSUPPORTED: no schedule accepts it. */
frit_status kernels_op(const struct kernels_device *device, const frit_op_desc *op,
                       frit_program *out, frit_err *err);
/* Implementation of the slot `supports` of frit_backend. */
frit_status kernels_supports(const struct kernels_device *device, const frit_op_desc *ops,
                             uint32_t count, uint32_t stride, uint64_t *bits, frit_err *err);

/* One kernel of a launch, over one space or several; spaces are independent and run in any order.
 * A launch runs its kernels one after another.  All pointers are borrowed and valid until the
 * program is destroyed; `words` may be the caller's buffer. */
struct kernels_launch {
    const struct kernels_product_launch *product; /* NULL: a kernel; else only `name` is set */
    void *code;
    const char *name; /* of the kernel, for profiles and messages */
    uint32_t n_phases;
    uint32_t n_spaces;
    uint32_t n_words, n_args;  /* per space */
    const uint32_t *args;      /* per argument of the code, space after space: its index in
                                  frit_launch.args, KERNELS_WORKSPACE or KERNELS_DERIVED */
    uint32_t fill_phases;      /* bits of phases that do nothing but fill derived memory */
    uint32_t brief_phases;     /* bits of phases that do a small part of the work */
    const uint64_t *words;     /* values of the code's parameters, space after space */
    const uint32_t (*grid)[3]; /* per phase: number of groups, over all spaces */
    const uint32_t *first; /* n_spaces + 1: number of groups before each space; NULL if the module's
                              `spaces` is false */
    uint32_t total_words;  /* capacity that `words` needs */
    uint32_t body, n_bodies; /* number of this kernel, number of kernels; see kernels_next */
    uint64_t bytes, flops;   /* estimates for the whole launch */
    const void *prepared;
};

/* Whether the program was made by this library. */
bool kernels_owns(const frit_program *program);
/* Sets `out` to the first kernel of a launch.  `words` is a buffer of `capacity` elements that must
 * live until the last kernel has run.  FRIT_INTERNAL: the buffer is too small (out->total_words is
 * the needed capacity), or the launch was not prepared and compiled. */
frit_status kernels_launch(const frit_launch *launch, uint64_t *words, uint32_t capacity,
                           struct kernels_launch *out, frit_err *err);
/* Replaces *launch by the next kernel; false: there is none. */
bool kernels_next(struct kernels_launch *launch);

#endif
