/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation of the kernel compiler's modules by the vendor's run-time compiler.  Threads: any. */
#ifndef HIP_COMPILE_H
#define HIP_COMPILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "emit/c/ctext.h"
#include "ir/digest.h"
#include "ir/kir.h"

#include "api.h"
#include "parts.h"

struct device;

/* Forms in which a kernel is compiled, as bits. */
enum {
    FORM_ALIGNED = 1,    /* for arguments whose addresses are all multiples of ARG_ALIGN */
    FORM_BY_ADDRESS = 2, /* its argument block is read in memory, even if it fits into parameters */
    N_FORMS = 4
};

struct code_form {
    gpu_module modules[MOST_PARTS]; /* by part; NULL: not compiled yet, or there are fewer */
    gpu_function *functions;        /* of each phase */
    struct ctext_phase *phases;
};

/* A compiled kernel.  A form belongs to the thread that set its bit in `making`, and is constant
 * once its bit in `ready` is set. */
struct kernel_code {
    struct kir_module module;
    uint8_t digest[KIR_DIGEST];
    uint32_t n_phases;
    bool by_value;       /* a submitted launch has its argument block in the kernel's parameters */
    bool same_unaligned; /* the aligned form is right for any address */
    _Atomic uint32_t refs;  /* of the kernel compiler, and of each task */
    _Atomic uint32_t ready; /* bits: 1 << form */
    /* Likewise, with the device's `compile_lock`: a thread makes it; a task is to make it; a task
     * could not. */
    uint32_t making, wanted, failed;
    uint64_t tasks[N_FORMS]; /* the last task of each form, 0: none; with the lock */
    struct code_form forms[N_FORMS];
};

/* Initializes the device's targets and kernel compiler.  After a failure too the caller calls
 * compile_close.  The device must be entered. */
frit_status compile_open(struct device *device, frit_err *err);
void compile_close(struct device *device);

/* The form of `code` for launches of this kind (bits FORM_*), compiled if it was not yet.  The
 * device must be entered. */
frit_status compile_form(struct device *device, struct kernel_code *code, uint32_t form,
                         const struct code_form **out, frit_err *err);

/* Whether such a form is being compiled in the background, which this begins unless the form is
 * there.  False too where compile_form has to do it: the host has no threads for that, or it failed
 * there. */
bool compile_is_pending(struct device *device, struct kernel_code *code, uint32_t form);

/* Compiles a text to a code object, which the caller frees with hip_free.  `folds_fragments`: it
 * folds rows of fragments. */
frit_status compile_text(struct device *device, const char *name, const char *text,
                         bool folds_fragments, void **code, uint64_t *n_bytes, frit_err *err);

#endif
