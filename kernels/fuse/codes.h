/* SPDX-License-Identifier: Apache-2.0 */
/* A device's compiled code by module digest, shared by all programs with equal modules.  A module
 * is kept until it is compiled; code is released with its last reference.  Thread-safe; no lock is
 * held while the driver compiles. */
#ifndef FUSE_CODES_H
#define FUSE_CODES_H

#include "kernels.h"

struct codes;
struct code;

/* `device` must outlive it. */
frit_status codes_create(const struct kernels_device *device, struct codes **out, frit_err *err);
/* All references to code must be released.  NULL does nothing. */
void codes_destroy(struct codes *codes);

/* Returns a new reference to the code of a module.  Takes what the module holds, also on failure.
 */
frit_status codes_take(struct codes *codes, struct kir_module *module, struct code **out,
                       frit_err *err);
struct code *code_ref(struct code *code);
void code_unref(struct code *code);

/* Compiles the code once: concurrent callers wait; if the compilation fails, one of them tries
 * again. */
frit_status code_compile(struct code *code, const frit_cancel *cancel, frit_err *err);

/* The driver's code; NULL: not compiled. */
void *code_compiled(const struct code *code);
uint32_t code_generation(const struct code *code);
/* Instructions of the module that it was compiled, or is to be compiled, from. */
uint64_t code_insts(const struct code *code);
const uint8_t *code_digest(const struct code *code);
const char *code_name(const struct code *code);

#endif
