/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code of a device, by the digest of its module: one for all programs whose modules are
 * equal.  The module is kept until it is compiled; the code is given back to the driver with the
 * last reference.  Threads: any; no lock is held while the driver compiles. */
#ifndef FUSE_CODES_H
#define FUSE_CODES_H

#include "kernels.h"

struct codes;
struct code;

/* `device` outlives it. */
frit_status codes_create(const struct kernels_device *device, struct codes **out, frit_err *err);
/* Nobody has a reference to its code any more.  NULL does nothing. */
void codes_destroy(struct codes *codes);

/* The code for a module: a new reference.  Takes what the module holds, also on failure. */
frit_status codes_take(struct codes *codes, struct kir_module *module, struct code **out,
                       frit_err *err);
struct code *code_ref(struct code *code);
void code_unref(struct code *code);

/* Once, whoever asks: others wait; where it fails, one of those tries again. */
frit_status code_compile(struct code *code, const frit_cancel *cancel, frit_err *err);

/* The driver's; NULL: not compiled. */
void *code_compiled(const struct code *code);
uint32_t code_generation(const struct code *code);
const uint8_t *code_digest(const struct code *code);
const char *code_name(const struct code *code);

#endif
